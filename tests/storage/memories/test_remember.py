"""Storing memories: word for word, once, and in whole batches."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from app.errors import InvalidInput, NotFound
from app.foundation.db.database import Database
from app.foundation.db.session import EMBED
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.storage.index import models, vectors
from app.storage.index.indexing import pending_texts
from app.storage.index.service import Embedder, Statistics
from app.storage.links.lookup import pending_vectors
from app.storage.memories import remember as remembering
from app.storage.memories.memory import GivenVector, NewMemory, ObservationDetail, Remembered, SourceReference, new_id
from app.storage.memories.remember import BATCH, WriteGate
from app.storage.memories.service import Memories
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import UNMADE, Workspace
from tests.conftest import link_pending, workspace_in

LOG = SourceReference(kind="session", uri="log-1", title="A work log")


def message(body: str, ordinal: int) -> NewMemory:
    return NewMemory(kind="message", title="Ann", body=body, source=LOG, ordinal=ordinal)


async def store(database: Database, counter: TokenCounter, workspace: Workspace, *memories: NewMemory) -> Remembered:
    return await WriteGate(database=database, counter=counter).remember(workspace, memories)


async def test_text_is_kept_word_for_word(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    body = "  Zwölf Boxkämpfer —\r\n\tjagen «Viktor» 🥊 \u200b quer…  "
    result = await store(
        database, counter, workspace,
        NewMemory(
            kind="note", title="T", body=body, tags=("a", "ß"), metadata={"n": [1, {"x": None}]}, final_score=7.25,
            occurred_at=datetime(2026, 3, 1, 12, tzinfo=UTC), source=LOG, ordinal=3, run_id="r/1",
        ),
    )  # fmt: skip
    (memory_id,) = result.ids
    assert memory_id is not None
    memory = await Memories(database=database).get(workspace, memory_id=memory_id)
    assert memory.body == body
    assert (memory.title, memory.tags, memory.metadata) == ("T", ("a", "ß"), {"n": [1, {"x": None}]})
    assert (memory.final_score, memory.ordinal, memory.run_id) == (7.25, 3, "r/1")
    assert (memory.source_kind, memory.source_uri, memory.source_title) == ("session", "log-1", "A work log")
    assert memory.occurred_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert memory.tokens == counter.count("T\n" + body)


async def test_known_text_is_not_stored_twice(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    first = await store(database, counter, workspace, message("hello there", 0), message("hello there", 1))
    again = await store(database, counter, workspace, message("hello there", 1), message("hello there", 0))
    assert (first.stored, again.stored, again.unchanged) == (2, 0, 2)
    assert again.ids == first.ids[::-1]


async def test_one_batch_may_name_a_memory_twice(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    result = await store(database, counter, workspace, message("twice", 0), message("twice", 0))
    assert (result.stored, result.unchanged) == (1, 1)
    assert len(set(result.ids)) == 1


async def test_the_first_batches_of_a_call_are_small(
    database: Database, counter: TokenCounter, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "FIRST_BATCH", 2)
    monkeypatch.setattr(remembering, "BATCH", 4)
    sizes, screen = list[int](), WriteGate._screen

    def counted(gate: WriteGate, memories: Sequence[NewMemory]) -> Any:
        sizes.append(len(memories))
        return screen(gate, memories)

    monkeypatch.setattr(WriteGate, "_screen", counted)
    result = await store(database, counter, workspace, *(message(f"turn {place}", place) for place in range(13)))
    assert (sizes, result.stored) == ([2, 4, 4, 3], 13)


async def test_known_text_takes_new_facts(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    given = message("the lesson", 0)
    await store(database, counter, workspace, given)
    moment = datetime(2026, 5, 4, tzinfo=UTC)
    result = await store(
        database, counter, workspace, structs.replace(given, final_score=8.0, tags=("new",), occurred_at=moment)
    )
    assert (result.stored, result.updated, result.unchanged) == (0, 1, 0)
    assert result.ids[0] is not None
    memory = await Memories(database=database).get(workspace, memory_id=result.ids[0])
    assert (memory.final_score, memory.tags, memory.occurred_at) == (8.0, ("new",), moment)


async def test_a_known_observation_takes_new_details(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    def given(**detail: Any) -> NewMemory:
        return NewMemory(kind="observation", body="It grew.", observation=ObservationDetail(**detail))

    first = await store(database, counter, workspace, NewMemory(kind="observation", body="It grew."))
    changes: list[tuple[dict[str, Any], bool]] = [
        ({"verdict": "revise", "facts": ("a",), "task": "t"}, True),
        ({"verdict": "accept", "facts": ("b", "c")}, True),
        ({"facts": ()}, False),
    ]
    for change, counts in changes:
        again = await store(database, counter, workspace, given(**change))
        assert (again.ids, again.updated, again.unchanged) == (first.ids, int(counts), int(not counts))
    late = given(verdict="late", facts=("late",), output_path="/o.md")
    filled = await WriteGate(database=database, counter=counter).remember(workspace, [late], known_first=True)
    assert filled.updated == 1
    (memory,) = await Memories(database=database).list_live(workspace)
    detail = memory.observation
    assert detail is not None
    assert (detail.task, detail.verdict, detail.facts, detail.output_path) == ("t", "accept", ("b", "c"), "/o.md")


async def test_what_is_said_again_loses_nothing_of_what_was_said_before(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    moment = datetime(2026, 5, 4, tzinfo=UTC)
    first = NewMemory(
        kind="note", body="the lesson", run_id="run-1", final_score=9.0, tags=("a",), metadata={"by": "ann", "n": 1},
        occurred_at=moment,
    )  # fmt: skip
    await store(database, counter, workspace, first)
    await store(database, counter, workspace, NewMemory(kind="note", body="the lesson", run_id="run-2"))
    result = await store(
        database, counter, workspace,
        NewMemory(kind="note", body="the lesson", final_score=4.0, tags=("b", "a"), metadata={"n": 2}),
    )  # fmt: skip
    assert result.ids[0] is not None
    memory = await Memories(database=database).get(workspace, memory_id=result.ids[0])
    assert (memory.run_id, memory.final_score, memory.occurred_at) == ("run-1", 4.0, moment)
    assert (memory.tags, memory.metadata) == (("a", "b"), {"by": "ann", "n": 2})


async def test_an_import_fills_only_what_is_empty(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    given = NewMemory(kind="note", body="the lesson", final_score=3.0, metadata={"n": 2})
    await store(database, counter, workspace, given)
    again = structs.replace(given, final_score=8.2, metadata={"n": 1, "id": 7}, run_id="run-1")
    result = await WriteGate(database=database, counter=counter).remember(workspace, [again], known_first=True)
    assert result.ids[0] is not None
    memory = await Memories(database=database).get(workspace, memory_id=result.ids[0])
    assert (memory.final_score, memory.metadata, memory.run_id) == (3.0, {"n": 2, "id": 7}, "run-1")


async def test_what_cannot_be_stored_does_not_stop_the_rest(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    result = await store(database, counter, workspace, message("good", 0), message(" ", 1), message("fine", 2))
    assert result.stored == 2
    assert [(item.index, item.reason.split(":")[0]) for item in result.rejected] == [(1, "body")]
    assert result.ids[1] is None


async def test_many_writers_of_the_same_memories_store_each_once(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    memories = [message(f"message {number}", number) for number in range(60)]
    results = await asyncio.gather(
        *(store(database, counter, workspace, *(memories if turn % 2 else memories[::-1])) for turn in range(8))
    )
    assert sum(result.stored for result in results) == 60
    assert sum(result.unchanged for result in results) == 7 * 60
    assert len({memory_id for result in results for memory_id in result.ids}) == 60


async def test_a_workspace_is_made_at_the_first_write(
    database: Database, counter: TokenCounter, workspace_name: str
) -> None:
    workspace = await Workspaces(database=database).resolve(workspace_name)
    assert await Memories(database=database).list_live(workspace) == []
    assert (await store(database, counter, workspace)).ids == ()
    assert (await Workspaces(database=database).resolve(workspace_name)).workspace_id == UNMADE
    await store(database, counter, workspace, message("hello", 0))
    assert await Memories(database=database).list_live(workspace) == [], "what was resolved before stays as it was"
    workspace = await Workspaces(database=database).resolve(workspace_name)
    assert [memory.body for memory in await Memories(database=database).list_live(workspace)] == ["hello"]


async def test_nothing_is_seen_from_another_workspace(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    result = await store(database, counter, workspace, message("secret", 0))
    other = await workspace_in(database, f"{workspace.name}-other")
    await store(database, counter, other, message("public", 0))
    assert [memory.body for memory in await Memories(database=database).list_live(other)] == ["public"]
    assert [source.memories for source in await Memories(database=database).list_sources(other)] == [1]
    assert result.ids[0] is not None
    with pytest.raises(NotFound):
        await Memories(database=database).get(other, memory_id=result.ids[0])


@pytest.mark.parametrize("name", ["", "a b", "ü", "x" * 65, "-a", "a/b", "a\0"])
async def test_a_workspace_may_not_be_called_that(database: Database, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await Workspaces(database=database).resolve(name)
    assert caught.value.field == "X-Workspace"


async def test_pages_follow_each_other(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    await store(database, counter, workspace, *(message(f"m{number}", number) for number in range(5)))
    seen, before = [], None
    while page := await Memories(database=database).list_live(workspace, limit=2, before=before):
        seen += [memory.body for memory in page]
        before = (page[-1].created_at, page[-1].memory_id)
    assert sorted(seen) == [f"m{number}" for number in range(5)]


async def test_there_is_no_such_memory(database: Database, workspace: Workspace) -> None:
    with pytest.raises(NotFound, match="there is no memory"):
        await Memories(database=database).get(workspace, memory_id=new_id())


async def test_memories_wait_for_their_vector_and_get_it_once(
    database: Database, counter: TokenCounter, provider: EmbeddingProvider, workspace: Workspace
) -> None:
    result = await store(database, counter, workspace, *(message(f"text {number}", number) for number in range(3)))
    ids = [memory_id for memory_id in result.ids if memory_id]
    assert await Embedder(database=database, provider=provider).embed_pending(workspace, ids=ids) == 3
    assert await Embedder(database=database, provider=provider).embed_pending(workspace, ids=ids) == 0
    async with database.session(workspace) as session:
        statement = "SELECT count(*) FROM embeddings WHERE memory_id = ANY(%(ids)s::uuid[])"
        assert await session.value(statement, {"ids": ids}) == 3


def wordy() -> str:
    """The longest body that is taken, of compounds so varied that their index entries pass 1 MB."""
    signs = [chr(0x4E00 + number) for number in range(20_000)]
    words = (
        "-".join(signs[(7 * word + 31 * part) % 20_000] + signs[(11 * word + part) % 20_000] for part in range(6))
        for word in range(12_000)
    )
    return " ".join(words)[:200_000]


async def test_what_the_text_index_cannot_hold_is_rejected_alone(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    notes = [NewMemory(kind="note", body=body) for body in ("before it", wordy(), "after it")]
    result = await store(database, counter, workspace, *notes)
    (refused,) = result.rejected
    assert (result.stored, refused.index, refused.code) == (2, 1, "invalid")
    assert refused.reason.startswith("body: has too many different words")
    assert [memory_id is None for memory_id in result.ids] == [False, True, False]


async def test_a_writer_waits_for_no_other_to_ask_a_worker(database: Database, workspace: Workspace) -> None:
    lock = f"test:{new_id()}"
    counted = "SELECT count(*) FROM procrastinate_jobs WHERE queueing_lock = %(lock)s"
    async with database.session(workspace) as one:
        await one.enqueue(EMBED, lock=lock)
        async with database.session(workspace) as other:
            await other.execute("SET LOCAL lock_timeout = '5s'")
            await other.enqueue(EMBED, lock=lock)
    async with database.across() as session:
        assert await session.value(counted, {"lock": lock}) == 1


async def test_metadata_has_a_limit(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    note = NewMemory(kind="note", body="a lesson", metadata={"log": "x" * 100_001})
    result = await store(database, counter, workspace, note)
    assert [refused.reason.split(":")[0] for refused in result.rejected] == ["metadata"]


async def test_writers_of_the_same_memories_in_other_orders_do_not_fail(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    notes = [NewMemory(kind="note", body=f"lesson number {number}") for number in range(40)]
    await store(database, counter, workspace, *notes)

    async def rewrite(score: float, step: int) -> Remembered:
        return await store(
            database, counter, workspace, *[structs.replace(note, final_score=score) for note in notes[::step]]
        )

    results = await asyncio.gather(*(rewrite(score, step) for score in (1.0, 2.0, 3.0) for step in (1, -1)))
    assert all(not result.rejected for result in results)
    scores = {memory.final_score for memory in await Memories(database=database).list_live(workspace, limit=100)}
    assert len(scores) == 1


async def test_no_search_has_to_read_through_pending_words(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    merge = "SELECT priors_merge_pending()"
    options = "SELECT reloptions FROM pg_class WHERE relname = 'lexical_terms_ix'"
    await store(database, counter, workspace, *(message(f"word{place} and more", place) for place in range(50)))
    await store(database, counter, workspace, structs.replace(message("word3 and more", 3), tags=("known",)))
    async with database.across() as session:
        assert await session.value(options) == ["fastupdate=on"]
        assert await session.value(merge) == 0


@pytest.mark.one_server("each node counts the rows of its shards itself")
async def test_the_planner_learns_of_tables_that_have_grown(own_database_url: str, counter: TokenCounter) -> None:
    database = Database(own_database_url, pool_size=2)
    known = "SELECT reltuples FROM pg_class WHERE relname IN ('memories', 'memories_kind_ix')"

    async def told() -> set[float]:
        async with database.across() as session:
            return set(await session.column(known))

    workspace = await workspace_in(database, "w")
    await store(
        database, counter, workspace, *(message(f"{place} {'of many words ' * 40}", place) for place in range(1_500))
    )
    assert 1_500 not in await told()
    await Statistics(database=database).refresh_all(database.across)
    assert await told() == {1_500}
    await database.close()


async def test_a_vector_that_comes_along_is_stored_with_the_text(
    database: Database, counter: TokenCounter, provider: EmbeddingProvider, workspace: Workspace
) -> None:
    (made,) = (await provider.embed_documents(["Ann\nwith a vector"])).astype("<f4")
    brought = GivenVector(model=provider.model_id, vector=made.tobytes())
    secret = structs.replace(message(f"the key is AKIA{'A' * 16}", 1), embedding=brought)
    late = message("with a vector", 2)
    await store(database, counter, workspace, late)
    result = await store(
        database,
        counter,
        workspace,
        structs.replace(message("with a vector", 0), embedding=brought),
        secret,
        structs.replace(late, embedding=brought),
    )
    assert (result.stored, result.unchanged) == (2, 1)
    async with database.session(workspace) as session:
        pending = await pending_texts(session, limit=10, ids=[item for item in result.ids if item])
        assert [item.memory_id for item in pending] == [result.ids[1]], "masked words are not those of the vector"
        model = await models.active_model(session)
        assert model is not None
        found = await vectors.nearest_of(
            session, model, [item for item in result.ids if item],
            vectors.as_literals(made[None]),
        )  # fmt: skip
        assert found == [(min(result.ids[0], result.ids[2]), pytest.approx(1, abs=1e-3))]  # type: ignore[type-var]
    await link_pending(database, workspace)
    await store(database, counter, workspace, structs.replace(late, embedding=brought))
    async with database.session(workspace) as session:
        assert result.ids[2] not in await pending_vectors(session, 10)


async def test_a_later_batch_is_heard_last(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    async def batches() -> AsyncIterator[Sequence[NewMemory]]:
        for score in range(7):
            yield [
                structs.replace(message("the same text", 0), final_score=float(score)),
                NewMemory(kind="note", body=""),
            ]

    done = [one async for one in WriteGate(database=database, counter=counter).remember_batches(workspace, batches())]
    assert [(one.stored, one.updated, [item.index for item in one.rejected]) for one in done] == [
        (1, 0, [1]), *[(0, 1, [1])] * 6,
    ]  # fmt: skip
    assert len({one.ids[0] for one in done}) == 1
    assert [memory.final_score for memory in await Memories(database=database).list_live(workspace)] == [6.0]


async def test_what_a_batch_cannot_store_ends_the_call_and_keeps_the_batches_before(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    async def batches() -> AsyncIterator[Sequence[NewMemory]]:
        yield [message("first", 0)]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        async for _ in WriteGate(database=database, counter=counter).remember_batches(workspace, batches()):
            pass
    assert [memory.body for memory in await Memories(database=database).list_live(workspace)] == ["first"]


async def test_a_call_of_several_batches_counts_as_one(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    given = [message(f"body {place}", place) for place in range(BATCH + 2)]
    given[BATCH + 1] = NewMemory(kind="note", body="")
    result = await store(database, counter, workspace, *given)
    assert (result.stored, [item.index for item in result.rejected]) == (BATCH + 1, [BATCH + 1])
    assert len(result.ids) == BATCH + 2


async def test_batches_that_are_left_end_at_once(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    ended = asyncio.Event()

    async def batches() -> AsyncIterator[Sequence[NewMemory]]:
        try:
            yield [message("hello there", 0)]
            await asyncio.Event().wait()
        finally:
            ended.set()

    outcomes = WriteGate(database=database, counter=counter).remember_batches(workspace, batches())
    assert (await anext(outcomes)).stored == 1
    await outcomes.aclose()
    assert ended.is_set()
