"""Finding links, with a real Postgres."""

from uuid import UUID

import pytest
from sqlalchemy import text

from app.db.engine import Database
from app.embeddings.backfill import embed_waiting
from app.links import names, titles
from app.links.derive import link_waiting
from app.memories.lifecycle import delete_memories, empty_trash, restore_memories
from app.memories.memory import NewMemory, SourceReference
from tests.links.conftest import Linked

GATEWAY = "The gateway drops requests when its cache is cold."
INCIDENT = "On that night the Kestrel gateway dropped every tenth request."


async def waiting(store: Linked) -> int:
    statement = text("SELECT count(*) FROM pending_links JOIN workspaces USING (workspace_id) WHERE name = :name")
    async with store.database.statements() as connection:
        return int((await connection.execute(statement, {"name": store.workspace})).scalar_one())


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
        for number in range(titles.BEARERS + 1)
    ]
    (text_id,) = await store.notes({"x": "He read the Market Overview first."})
    await store.add(*chunks[:-1])
    assert len(await store.links(text_id)) == titles.BEARERS
    await store.add(chunks[-1])
    assert await store.links(text_id) == []
    (later,) = await store.notes({"y": "She skipped the Market Overview entirely."})
    assert await store.links(later) == []


async def test_a_title_that_many_texts_name_is_common(store: Linked) -> None:
    (alice,) = await store.notes({"Alice": "She leads the team."})
    await store.add(*(NewMemory(kind="note", body=f"Item {n}: ask Alice again.") for n in range(titles.MENTIONED)))
    assert len(await store.links(alice)) == titles.MENTIONED
    await store.add(NewMemory(kind="note", body="One more time they asked Alice too."))
    assert await store.links(alice) == []
    (later,) = await store.notes({"z": "Nobody told Alice about it."})
    assert await store.links(later) == []


async def test_a_rare_name_in_common_links_each_pair(store: Linked) -> None:
    first, second, third = await store.notes(
        {
            "retries": "Retry storms began at the Zephyrine proxy after midnight.",
            "certificates": "Certificates expire unnoticed on the Zephyrine proxy.",
            "birds": "A zephyrine wind blew.",
        }
    )
    assert await store.links(first) == [("same_entity", "in", second)]
    assert await store.links(third) == []


async def test_a_name_that_many_have_links_none(store: Linked) -> None:
    ids = await store.add(
        *(NewMemory(kind="note", body=f"Finding {n} on the Zephyrine proxy.") for n in range(names.BEARERS + 1))
    )
    assert [await store.links(memory_id) for memory_id in ids] == [[]] * len(ids)


async def test_near_vectors_are_linked_once_they_are_there(store: Linked) -> None:
    one, other, far = await store.notes(
        {
            "one": "The scout returned zero actors for the dietary supplement market.",
            "other": "For the dietary supplement market the scout returned no actors at all.",
            "far": "Knead the dough for ten minutes and bake it in a hot oven.",
        }
    )
    assert await store.links(one) == []
    await embed_waiting(store.database, store.provider, ids=[one, other, far])
    await link_waiting(store.database)
    assert await store.links(one) == [("similar", "in", other)]
    assert await store.links(far) == []
    assert await waiting(store) == 0


async def test_linking_again_changes_nothing(store: Linked, database: Database) -> None:
    ids = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT}, embed=True)
    before = [await store.links(memory_id) for memory_id in ids]
    async with database.transaction() as connection:
        again = "INSERT INTO pending_links SELECT workspace_id, memory_id, 'words' FROM memories"
        await connection.execute(text(f"{again} WHERE memory_id = ANY(:ids)"), {"ids": ids})
    assert await link_waiting(database) >= 2
    assert [await store.links(memory_id) for memory_id in ids] == before


async def test_links_of_what_is_deleted_come_back_with_it(store: Linked, database: Database) -> None:
    gateway, night = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT})
    await delete_memories(database, workspace=store.workspace, ids=[gateway])
    assert await store.links(night) == []
    (later,) = await store.notes({"Another night": "Again the Kestrel gateway failed, and again nobody woke."})
    assert ("mentions", "out", gateway) not in await store.links(later)
    await restore_memories(database, workspace=store.workspace, ids=[gateway])
    await link_waiting(database)
    assert ("mentions", "out", gateway) in await store.links(night)
    assert ("mentions", "out", gateway) in await store.links(later)


async def test_what_is_destroyed_takes_its_links_along(store: Linked, database: Database) -> None:
    gateway, night = await store.notes({"Kestrel gateway": GATEWAY, "A bad night": INCIDENT})
    await delete_memories(database, workspace=store.workspace, ids=[gateway])
    async with database.transaction() as connection:
        old = "UPDATE memories SET valid_until = now() - interval '40 days' WHERE memory_id = :id"
        await connection.execute(text(old), {"id": gateway})
    await empty_trash(database, days=30)
    async with database.statements() as connection:
        left = "SELECT count(*) FROM links WHERE from_id = :id OR to_id = :id"
        assert (await connection.execute(text(left), {"id": night})).scalar_one() == 0


async def test_another_workspace_names_nothing_here(store: Linked, workspace: str) -> None:
    elsewhere = Linked(store.database, store.provider, store.counter, f"{workspace}-other")
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
    assert await waiting(store) == 0
