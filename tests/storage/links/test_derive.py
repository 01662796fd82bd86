"""Finding links, with a real Postgres."""

from uuid import UUID

import pytest

from app.foundation.db.database import Database
from app.operations.maintenance import empty_trash
from app.storage.index.indexing import WORDS, leave_links, queue_for_links, reindex_memories
from app.storage.links import lookup
from app.storage.links.relations import MENTIONED, MENTIONS, NAME_BEARERS, SAME_ENTITY, SIMILAR, TITLE_BEARERS
from app.storage.links.store import forget_found
from app.storage.memories.memory import NewMemory, SourceReference
from app.storage.memories.service import Memories
from tests.storage.links.conftest import Linked

GATEWAY = "The gateway drops requests when its cache is cold."
INCIDENT = "On that night the Kestrel gateway dropped every tenth request."


async def pending(store: Linked) -> int:
    async with store.database.session(store.workspace) as session:
        return int(await session.value("SELECT count(*) FROM pending_links"))


async def mentions(store: Linked, memory_id: UUID) -> list[tuple[str, UUID]]:
    return [(direction, other) for relation, direction, other in await store.links(memory_id) if relation == MENTIONS]


async def retold(store: Linked, memory_id: UUID, title: str, body: str, *, link: bool = True) -> None:
    """Give a memory another text, as a renamed file or a later judgement does."""
    async with store.database.session(store.workspace) as session:
        await session.execute(
            "UPDATE memories SET title = %(title)s, body = %(body)s WHERE memory_id = %(memory_id)s",
            {"title": title, "body": body, "memory_id": memory_id},
        )
        await reindex_memories(session, [memory_id])
        await forget_found(session, [memory_id])
    if link:
        await store.link()


@pytest.mark.parametrize("titled_first", [True, False])
async def test_a_text_is_linked_with_what_it_names_whichever_comes_first(store: Linked, *, titled_first: bool) -> None:
    notes = {"Kestrel gateway": GATEWAY, "A bad night": INCIDENT}
    order = list(notes) if titled_first else list(notes)[::-1]
    ids = {title: (await store.notes({title: notes[title]}))[0] for title in order}
    assert ("mentions", "out", ids["Kestrel gateway"]) in await store.links(ids["A bad night"])
    assert ("mentions", "in", ids["A bad night"]) in await store.links(ids["Kestrel gateway"])


async def test_two_of_one_batch_are_linked(store: Linked) -> None:
    gateway, night = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT})
    assert ("mentions", "out", gateway) in await store.links(night)


async def test_the_forms_of_a_word_are_different_names(store: Linked) -> None:
    (walk,) = await store.notes({"Walking on Glass": "A novel."})
    other, same = await store.notes({"a": "They saw Walks On Glass there.", "b": "They read Walking on Glass there."})
    assert [link for link in await store.links(walk) if link[0] == "mentions"] == [("mentions", "in", same)]
    assert ("mentions", "out", walk) not in await store.links(other)


async def test_a_title_that_many_bear_names_none_of_them(store: Linked) -> None:
    chunks = [
        NewMemory(
            kind="chunk",
            title="Market Overview",
            body=f"Part {number} of it, in other words {'again ' * number}",
            source=SourceReference(kind="report", uri=f"{number}.md"),
            ordinal=0,
        )
        for number in range(TITLE_BEARERS + 1)
    ]
    (text_id,) = await store.notes({"x": "He read the Market Overview first."})
    await store.add(*chunks[:-1])
    assert {link[0] for link in await store.links(text_id)} == {MENTIONS, SAME_ENTITY}
    assert len([link for link in await store.links(text_id) if link[0] == MENTIONS]) == TITLE_BEARERS
    await store.add(chunks[-1])
    assert await store.links(text_id) == []
    (later,) = await store.notes({"y": "She skipped the Market Overview entirely."})
    assert await store.links(later) == []


async def test_a_title_that_many_texts_name_is_common(store: Linked) -> None:
    (alice,) = await store.notes({"Alice": "She leads the team."})
    await store.add(*(NewMemory(kind="note", body=f"Item {n}: ask Alice again.") for n in range(MENTIONED)))
    assert len(await store.links(alice)) == MENTIONED
    await store.add(NewMemory(kind="note", body="One more time they asked Alice too."))
    assert await store.links(alice) == []
    (later,) = await store.notes({"z": "Nobody told Alice about it."})
    assert await store.links(later) == []


async def test_a_text_that_is_replaced_again_and_again_names_once(store: Linked) -> None:
    (gateway,) = await store.notes({"Kestrel Gateway": GATEWAY})
    for version in range(MENTIONED + 2):
        (status,) = await store.notes({f"Status {version}": f"Version {version} of the Kestrel Gateway is late."})
        assert await mentions(store, gateway) == [("in", status)]
        await Memories(database=store.database).delete(store.workspace, ids=[status])
    assert await mentions(store, gateway) == []
    await Memories(database=store.database).restore(store.workspace, ids=[status])
    await store.link()
    assert await mentions(store, gateway) == [("in", status)]


async def test_only_the_beginning_of_a_long_text_is_read(store: Linked) -> None:
    (gateway,) = await store.notes({"Kestrel Gateway": GATEWAY})
    far = "so it goes on. " * (lookup.READ_CHARACTERS // 15)
    await store.notes({"long": f"{far} Then the Kestrel Gateway failed."})
    assert await mentions(store, gateway) == []
    (near,) = await store.notes({"longer": f"Then the Kestrel Gateway failed. {far} {far}"})
    assert await mentions(store, gateway) == [("in", near)]


async def test_a_rare_name_in_common_links_each_pair(store: Linked) -> None:
    first, second, third = await store.notes(
        {
            "retries": "Retry storms began at the Zephyrine proxy after midnight.",
            "certificates": "Certificates expire unnoticed on the Zephyrine proxy.",
            "birds": "A zephyrine wind blew.",
        }
    )
    assert [(link[0], link[2]) for link in await store.links(first)] == [(SAME_ENTITY, second)]
    assert await store.links(third) == []


@pytest.mark.parametrize(
    "notes",
    [
        {
            "Batching survey": "Continuous batching raises throughput. The Survey compares two servers.",
            "KV-cache reuse survey": "Survey of prefix caching across requests: prefill costs 40 percent less.",
        },
        {
            "Batching Runbook": "Continuous batching raises throughput. In this Runbook two servers are compared.",
            "KV-cache Reuse Runbook": "Runbook of prefix caching: prefill costs 40 percent less.",
        },
        {
            "a": "Continuous batching raises throughput. The Harness compares it; any harness would.",
            "b": "Caching of prefixes: the Harness counts 40 percent less for prefill.",
        },
    ],
    ids=["type", "ending", "lower case"],
)
async def test_a_word_for_a_kind_of_document_links_nothing(store: Linked, notes: dict[str, str]) -> None:
    one, other = await store.notes(notes)
    assert await store.links(one) == []
    assert await store.links(other) == []


async def test_a_name_that_many_have_links_none(store: Linked) -> None:
    ids = await store.add(
        *(NewMemory(kind="note", body=f"Finding {n} on the Zephyrine proxy.") for n in range(NAME_BEARERS + 1))
    )
    assert [await store.links(memory_id) for memory_id in ids] == [[]] * len(ids)


async def test_a_name_that_many_have_stays_common_although_some_write_it_in_lower_case(store: Linked) -> None:
    bodies = [
        "They read the Harness log.",
        "Nobody trusts the Harness.",
        *["The Harness is a harness."] * (NAME_BEARERS - 1),
    ]
    ids = await store.add(*(NewMemory(kind="note", body=f"{body} Note {n}.") for n, body in enumerate(bodies)))
    assert [await store.links(memory_id) for memory_id in ids] == [[]] * len(ids)


async def test_a_name_that_becomes_common_unlinks_those_it_linked(store: Linked) -> None:
    ids = await store.add(
        NewMemory(kind="note", body="Again the Zephyrine proxy met Quillon."),
        NewMemory(kind="note", body="Nobody told Quillon where the Zephyrine proxy was."),
        *(NewMemory(kind="note", body=f"Finding {n} on the Zephyrine proxy.") for n in range(NAME_BEARERS - 2)),
    )
    assert len(await store.links(ids[0])) == NAME_BEARERS - 1
    await store.notes({"last": "One more on the Zephyrine proxy."})
    assert [link[2] for link in await store.links(ids[0])] == [ids[1]]
    assert await store.links(ids[-1]) == []


async def test_near_vectors_are_linked_once_they_are_there(store: Linked) -> None:
    one, other, far = await store.notes(
        {
            "one": "The scout returned zero actors for the dietary supplement market.",
            "other": "For the dietary supplement market the scout returned no actors at all.",
            "far": "Knead the dough for ten minutes and bake it in a hot oven.",
        }
    )
    assert await store.links(one) == []
    await store.embed([one, other, far])
    await store.link()
    assert [(link[0], link[2]) for link in await store.links(one)] == [(SIMILAR, other)]
    assert await store.links(far) == []
    assert await pending(store) == 0


async def test_linking_again_changes_nothing(store: Linked, database: Database) -> None:
    ids = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT}, embed=True)
    before = [await store.links(memory_id) for memory_id in ids]
    async with database.session(store.workspace) as session:
        await queue_for_links(session, ids, step=WORDS)
    assert await store.link() >= 2
    assert [await store.links(memory_id) for memory_id in ids] == before


async def test_links_of_what_is_deleted_come_back_with_it(store: Linked, database: Database) -> None:
    gateway, night = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT})
    await Memories(database=database).delete(store.workspace, ids=[gateway])
    assert await store.links(night) == []
    (later,) = await store.notes({"Another night": "Again the Kestrel gateway failed, and again nobody woke."})
    assert ("mentions", "out", gateway) not in await store.links(later)
    await Memories(database=database).restore(store.workspace, ids=[gateway])
    await store.link()
    assert ("mentions", "out", gateway) in await store.links(night)
    assert ("mentions", "out", gateway) in await store.links(later)


async def test_what_is_destroyed_takes_its_links_along(store: Linked, database: Database) -> None:
    gateway, night = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT})
    await Memories(database=database).delete(store.workspace, ids=[gateway])
    async with database.across() as session:
        old = "UPDATE memories SET valid_until = now() - interval '40 days' WHERE memory_id = %(id)s"
        await session.execute(old, {"id": gateway})
    await empty_trash(database.across, days=30)
    async with database.across() as session:
        left = "SELECT count(*) FROM links WHERE from_id = %(id)s OR to_id = %(id)s"
        assert await session.value(left, {"id": night}) == 0


async def test_a_text_that_has_changed_is_linked_by_what_it_says_now(store: Linked) -> None:
    gateway, tower = await store.notes({"Kestrel gateway": GATEWAY, "Heron tower": "It stands by the river."})
    (night,) = await store.notes({"A bad night": INCIDENT})
    await retold(store, night, "A bad night", "On that night the Heron tower lost its light.")
    assert await mentions(store, night) == [("out", tower)]
    assert await mentions(store, gateway) == []


async def test_a_title_that_has_changed_is_named_no_more(store: Linked) -> None:
    gateway, night = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT})
    (tower,) = await store.notes({"x": "Nobody lit the Heron tower."})
    await retold(store, gateway, "Heron tower", GATEWAY)
    assert await mentions(store, night) == []
    assert await mentions(store, gateway) == [("in", tower)]
    await retold(store, gateway, "", GATEWAY)
    assert await mentions(store, gateway) == []


async def test_what_changes_while_it_is_linked_is_linked_again(store: Linked, database: Database) -> None:
    (night,) = await store.notes({"A bad night": INCIDENT}, link=False)
    async with database.session(store.workspace) as session:
        (read,) = await lookup.pending_texts(session, 10)
    await retold(store, night, "A bad night", GATEWAY, link=False)
    async with database.session(store.workspace) as session:
        assert await leave_links(session, {night: read.asked}, step=WORDS) == set()
    async with database.session(store.workspace) as session:
        (again,) = await lookup.pending_texts(session, 10)
    assert again.body == GATEWAY


async def test_a_longer_title_takes_the_place_whichever_comes_first(store: Linked) -> None:
    (show,) = await store.notes({"Scaredy Squirrel Show": "It ran for a year."})
    (text_id,) = await store.notes({"x": "They met at the Scaredy Squirrel Show in town."})
    await store.notes({"Scaredy Squirrel": "A book for children."})
    assert await mentions(store, text_id) == [("out", show)]


async def test_another_workspace_names_nothing_here(store: Linked) -> None:
    elsewhere = await store.elsewhere()
    (gateway,) = await elsewhere.notes({"Kestrel gateway": GATEWAY})
    (night,) = await store.notes({"A bad night": INCIDENT})
    assert await store.links(night) == []
    assert await elsewhere.links(gateway) == []


async def test_places_in_a_source_are_next_to_each_other(store: Linked) -> None:
    source = SourceReference(kind="session", uri="log")
    turns = [
        NewMemory(kind="message", body=body, source=source, ordinal=n * 2) for n, body in enumerate(("a1", "b2", "c3"))
    ]
    first, second, third = await store.add(*turns)
    assert await store.links(second) == [("next", "out", third), ("next", "in", first)]
    assert await store.links(first) == [("next", "out", second)]


async def test_texts_of_any_shape_are_linked(store: Linked) -> None:
    strange = ["'", "a & b | c", "\\", "x" * 3000, "Ab" * 1500 + " Cd", "!" * 50, "(:*)", "Ñ" * 70, "’s The"]
    ids: list[UUID] = await store.add(
        *(
            NewMemory(kind="note", title=item[:500], body=f"They saw {item} there, Once Upon {item}.")
            for item in strange
        )
    )
    assert len(ids) == len(strange)
    assert await pending(store) == 0
