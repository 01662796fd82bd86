"""Passages of long memories, with a real Postgres and the real model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from uuid import UUID

import numpy as np
import pytest

from app.foundation.db.database import Database
from app.foundation.models.late import BYTES, TokenCodes
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter, Window
from app.operations.doctor import OK, WARN, diagnose
from app.recall.retrieval.arms import Shape, vector_arm
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.settings import Settings
from app.storage.index import embedding, vectors
from app.storage.index.embedding import MOST_PASSAGES, cut_to
from app.storage.index.indexing import PendingText, reindex_memories
from app.storage.index.models import StoredModel
from app.storage.index.service import Embedder
from app.storage.index.vectors import PassageVector
from app.storage.links import lookup
from app.storage.memories.memory import NewMemory, new_id
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from tests.conftest import workspace_in
from tests.fakes.providers import Stuck

FILLING = "The committee met on a grey morning and read the minutes of the last meeting aloud to everybody present. "
FACT = "Bees fly out of the hive to gather nectar from the lavender, and turn it into honey. "
ON_BEES = (
    "The keeper looks after nine hives at the edge of the village. "
    "In June the whole colony is busy with the blossoms of the lime trees. "
    "A good summer gives her forty jars, and she sells them at the market. "
    "In winter the bees live on what they have stored in the combs. "
)
ASKED = "how do insects make something sweet out of flowers"
LONG = (FILLING * 30 + FACT + ON_BEES * 3).strip()
STORED = (
    "SELECT passage, starts, ends FROM embeddings WHERE memory_id = ANY(%(ids)s::uuid[]) ORDER BY memory_id, passage"
)
LIMIT = 60
Range = tuple[int, int, int | None]
"""The number of a passage, and the characters at which it begins and ends."""


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = Database(url, pool_size=2)
    try:
        yield database
    finally:
        await database.close()


def window_of(counter: TokenCounter) -> Window:
    return Window(254, counter)


async def stored(database: Database, workspace: Workspace, ids: Sequence[UUID | None]) -> list[Range]:
    async with database.session(workspace) as session:
        return [(*row,) for row in await session.tuples(STORED, {"ids": list(ids)})]


def test_a_long_text_is_cut_at_sentences_into_passages_that_overlap(counter: TokenCounter) -> None:
    (parts,) = cut_to(window_of(counter), [("Minutes", LONG)])
    assert len(parts) > 2
    assert parts[0].starts == 0
    assert parts[-1].ends == len(LONG)
    for part, following in pairwise(parts):
        assert part.ends is not None
        assert part.starts < following.starts < part.ends < len(LONG)
    for part in parts:
        said = LONG[part.starts : part.ends]
        assert part.text == f"Minutes\n{said}"
        assert said[-1] == "."
        assert said[0].isupper()
        assert counter.count(part.text) <= 254


def test_texts_that_fit_have_one_passage_and_endless_ones_a_limited_number(counter: TokenCounter) -> None:
    short, endless, titled = cut_to(
        window_of(counter), [("T", "short"), ("", FILLING * 5_000), (FILLING * 20, "a short body")]
    )
    assert [(part.text, part.starts, part.ends) for part in short] == [("T\nshort", 0, None)]
    assert len(endless) == MOST_PASSAGES
    assert [part.text for part in titled] == [FILLING * 20, "a short body"]


@pytest.mark.meaning
async def test_what_a_memory_says_at_its_end_is_found_and_explained(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    notes = [NewMemory(kind="note", body=body) for body in (LONG, FILLING * 29, "A short note about rain.")]
    ids = (await WriteGate(database=database, counter=counter).remember(workspace, notes)).ids
    await Embedder(database=database, provider=provider).embed_pending(workspace)
    found = await Retrieval(database=database, provider=provider).find(
        workspace, Query(text=ASKED, k=3, preset="closest")
    )
    first, explain = found.hits[0], found.hits[0].explain
    assert first.memory.memory_id == ids[0]
    assert "bees" in LONG[int(explain["passage_starts"] or 0) : int(explain["passage_ends"] or 0)]
    assert (explain["passage"] or 0) > 2
    assert explain["similarity"] is not None
    assert explain["similarity"] > 0.2
    assert "without_vector" not in explain
    assert "passage" not in next(hit for hit in found.hits if hit.memory.memory_id == ids[2]).explain


async def test_another_text_replaces_all_passages_and_deleting_removes_them(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    gate = WriteGate(database=database, counter=counter)
    (memory_id,) = (await gate.remember(workspace, [NewMemory(kind="note", body=LONG)])).ids
    assert memory_id is not None
    await Embedder(database=database, provider=provider).embed_pending(workspace)
    assert len(await stored(database, workspace, [memory_id])) > 2
    async with database.session(workspace) as session:
        await session.execute("UPDATE memories SET body = 'brief' WHERE memory_id = %(id)s", {"id": memory_id})
        await reindex_memories(session, [memory_id])
    assert await stored(database, workspace, [memory_id]) == []
    await Embedder(database=database, provider=provider).embed_pending(workspace)
    assert await stored(database, workspace, [memory_id]) == [(0, 0, None)]
    (other,) = (await gate.remember(workspace, [NewMemory(kind="note", body=f"{LONG} Again.")])).ids
    assert other is not None
    await Embedder(database=database, provider=provider).embed_pending(workspace)
    assert len(await stored(database, workspace, [other])) > 2
    await Memories(database=database).delete(workspace, ids=[other])
    assert await stored(database, workspace, [other]) == []


def near(distance: float, count: int, *, dimension: int, chance: np.random.Generator) -> list[PassageVector]:
    """Vectors at about this distance from the first axis."""
    noise = chance.normal(size=(count, dimension)).astype(np.float32)
    rows = distance * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    rows[:, 0] = 1
    return [PassageVector(literal, place, place + 1) for place, literal in enumerate(vectors.as_literals(rows))]


@pytest.mark.parametrize("indexed", [False, True])
async def test_an_arm_has_enough_memories_where_passages_of_a_few_lead(
    *,
    indexed: bool,
    own_database_url: str,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "INDEXED_FROM", 1)
    async with opened(own_database_url) as database:
        workspace = await workspace_in(database, "w")
        model = await Embedder(database=database, provider=provider).serving_model()
        assert model is not None
        bodies = [NewMemory(kind="note", body=f"note number {place}") for place in range(80)]
        ids = [
            item
            for item in (await WriteGate(database=database, counter=counter).remember(workspace, bodies)).ids
            if item
        ]
        made = partial(near, dimension=model.dimension, chance=np.random.default_rng(7))
        long = {memory_id: made(0.1, MOST_PASSAGES) for memory_id in ids[:9]}
        short = {memory_id: made(place / 10, 1) for place, memory_id in enumerate(ids[9:], 2)}
        async with database.session(workspace) as session:
            await vectors.write(session, model, long | short)
        if indexed:
            async with database.across(transaction=False) as session:
                assert await vectors.build_indexes(session, model) == 1
        shape = Shape(
            model=model, vector_workspace=workspace.workspace_id if indexed else None, lexical=False, kept=False,
            clauses=(), scanned=(), has_passages=True, limit=LIMIT, linked=False,
        )  # fmt: skip
        query = vectors.as_literal(np.eye(1, model.dimension, dtype=np.float32)[0])
        async with database.session(workspace) as session:
            rows = await session.tuples(vector_arm(shape), {"vector": query})
            similar = await lookup.nearest(session, model, ids[:1], count=5, least=0.01, indexed=indexed)
    assert {row[0] for row in rows[:9]} == {*long}
    assert [row[0] for row in rows[9:]] == ids[9:LIMIT]
    assert len({other for _, other, _ in similar}) == 5


async def of_first(database: Database, model: StoredModel, memory_id: UUID) -> str:
    async with database.across() as session:
        vector = f"SELECT embedding::text FROM {model.partition} WHERE memory_id = %(id)s AND starts = 0"
        return str(await session.value(vector, {"id": memory_id}))


MOVED = """
INSERT INTO embeddings (workspace_id, memory_id, model_id, embedding) SELECT workspace_id, memory_id, 2, embedding
FROM embeddings
"""
LACKING_THE_REST = """
INSERT INTO pending_embeddings (workspace_id, memory_id, partial)
SELECT %(workspace_id)s, unnest(%(ids)s::uuid[]), true RETURNING 1
"""


async def test_a_first_vector_stays_as_it_is_when_what_it_lacks_is_made(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    notes = [NewMemory(kind="note", body=body) for body in (LONG[:500], "A short note about rain.")]
    ids = (await WriteGate(database=database, counter=counter).remember(workspace, notes)).ids
    remote = Stuck()
    assert await Embedder(database=database, provider=remote).embed_pending(workspace) == 2
    assert remote.asked == [2]
    remote = Stuck()
    async with database.session(workspace) as session:
        await session.execute(LACKING_THE_REST, {"ids": list(ids)})
    assert await Embedder(database=database, provider=remote).embed_pending(workspace) == 2
    assert remote.asked == [2]
    assert await Embedder(database=database, provider=remote).embed_pending(workspace) == 0
    assert await stored(database, workspace, ids) == [(0, 0, None), (0, 0, None)]


TOKENS = "SELECT tokens, octet_length(parts) AS parts FROM embeddings WHERE memory_id = %(id)s AND passage = 0"


@pytest.mark.meaning
async def test_a_vector_of_an_earlier_version_gains_the_codes_of_its_words(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    note = NewMemory(kind="note", title="Honey", body="Bees make honey.\n\nThe ferry is late.")
    (memory_id,) = (await WriteGate(database=database, counter=counter).remember(workspace, [note])).ids
    assert memory_id is not None
    await Embedder(database=database, provider=provider).embed_pending(workspace)
    async with database.session(workspace) as session:
        made = await session.one(TOKENS, {"id": memory_id})
        await session.execute("UPDATE embeddings SET tokens = NULL WHERE memory_id = %(id)s", {"id": memory_id})
        await session.execute(LACKING_THE_REST, {"ids": [memory_id]})
    title, *passages = vectors.unpacked_tokens(made.tokens, 2) or []
    assert (len(title), [len(codes) for codes in passages]) == (1, [3, 2])
    assert await Embedder(database=database, provider=provider).embed_pending(workspace) == 1
    async with database.session(workspace) as session:
        assert await session.one(TOKENS, {"id": memory_id}) == made


@pytest.mark.meaning
async def test_a_start_queues_what_has_no_codes_once(
    own_database_url: str, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    async with opened(own_database_url) as database:
        workspace = await workspace_in(database, "bees")
        note = NewMemory(kind="note", title="Honey", body="Bees make honey.")
        (memory_id,) = (await WriteGate(database=database, counter=counter).remember(workspace, [note])).ids
        assert memory_id is not None
        await Embedder(database=database, provider=provider).embed_pending(workspace)
        async with database.session(workspace) as session:
            await session.execute("DELETE FROM pending_links")
        async with database.session(workspace) as session:
            await session.execute("UPDATE embeddings SET tokens = NULL")
        await Embedder(database=database, provider=Stuck()).queue_without_codes(database.across)
        assert await Embedder(database=database, provider=provider).embed_pending(workspace) == 0
        await Embedder(database=database, provider=provider).queue_without_codes(database.across)
        assert await Embedder(database=database, provider=provider).embed_pending(workspace) == 1
        await Embedder(database=database, provider=provider).queue_without_codes(database.across)
        assert await Embedder(database=database, provider=provider).embed_pending(workspace) == 0
        async with database.session(workspace) as session:
            assert await session.column("SELECT memory_id FROM pending_links WHERE step = 'vectors'") == []


@pytest.mark.meaning
async def test_a_title_that_fills_the_first_window_has_no_codes_of_a_passage(provider: EmbeddingProvider) -> None:
    texts = [("word " * 200, "ferry " * 60), ("Ferry", "It is late.")]
    (long, *rest), (short,) = await embedding.embed_passages(provider, await embedding.cut(provider, texts))
    assert long.tokens == b""
    assert [part.tokens for part in rest] == [None] * len(rest)
    assert rest
    assert vectors.unpacked_tokens(long.tokens, 1) is None
    assert short.tokens is not None
    assert [len(codes) for codes in vectors.unpacked_tokens(short.tokens, 1) or []] == [1, 1]


def test_codes_of_a_title_are_stored_once_and_those_of_other_passages_are_not_taken() -> None:
    codes = np.random.default_rng(1).integers(0, 256, (5, BYTES), np.uint8)
    first = TokenCodes(np.array([4, 10, 15]), codes[:3])
    second = TokenCodes(np.array([4, 12, 20]), codes[[0, 3, 4]])
    stored = vectors.packed_tokens(5, [first, second])
    found = vectors.unpacked_tokens(stored, 2)
    assert found is not None
    assert [part.tolist() for part in found] == [codes[:1].tolist(), codes[1:3].tolist(), codes[3:].tolist()]
    assert len(stored) == 3 * 2 + 5 * BYTES
    for passages in (1, 3, 200):
        assert vectors.unpacked_tokens(stored, passages) is None
    assert vectors.unpacked_tokens(vectors.packed_tokens(0, [TokenCodes(first.ends[:0], codes[:0])]), 1) is not None


def test_a_few_long_texts_are_a_batch() -> None:
    long, short = (
        PendingText(workspace_id=1, memory_id=new_id(), title="", body=body, content_hash=b"")
        for body in (FILLING * 5_000, "short")
    )
    assert embedding.portion([short] * 9, 8) == [short] * 8
    assert embedding.portion([short, long, long], MOST_PASSAGES + 1) == [short, long]
    assert embedding.portion([long, short], 8) == [long]
    assert embedding.portion([], 8) == []


async def test_a_backfill_goes_on_after_a_part_of_the_passages(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    gate = WriteGate(database=database, counter=counter)
    (memory_id,) = (await gate.remember(workspace, [NewMemory(kind="note", body=LONG)])).ids
    assert memory_id is not None
    ((*parts,),) = await embedding.cut(provider, [("", LONG)])
    (found,) = await embedding.embed_passages(provider, [parts])
    model = await Embedder(database=database, provider=provider).serving_model()
    assert model is not None
    async with database.session(workspace) as session:
        await vectors.insert(session, model, {memory_id: found[:2]})
    assert await Embedder(database=database, provider=provider).embed_pending(workspace) == 1
    expected = [(place, part.starts, part.ends) for place, part in enumerate(parts)]
    assert await stored(database, workspace, [memory_id]) == expected
    assert await Embedder(database=database, provider=provider).embed_pending(workspace) == 0


async def test_the_doctor_counts_texts_that_go_on_after_their_last_vector(
    own_database_url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    async def told() -> tuple[str, str]:
        (found,) = [item for item in await diagnose(mended) if item.subject == "long texts"]
        return found.status, found.message

    mended = replace(settings, database_url=own_database_url)
    async with opened(own_database_url) as database:
        workspace = await workspace_in(database, "w")
        # Only the numbers and ranges of passages count.
        notes = [NewMemory(kind="note", body=body) for body in ("four", "endless")]
        whole, endless = (
            item
            for item in (await WriteGate(database=database, counter=counter).remember(workspace, notes)).ids
            if item
        )
        model = await Embedder(database=database, provider=provider).serving_model()
        assert model is not None
        literal = vectors.as_literal(np.eye(1, model.dimension, dtype=np.float32)[0])
        made = [PassageVector(literal, 0, 4)] * MOST_PASSAGES
        async with database.session(workspace) as session:
            await vectors.write(session, model, {whole: made})
        assert await told() == (OK, f"none is longer than {MOST_PASSAGES} passages")
        async with database.session(workspace) as session:
            await vectors.write(session, model, {endless: made})
        status, message = await told()
    assert (status, message.split(" memories")[0]) == (WARN, "1"), message


async def test_a_batch_is_embedded_in_groups_of_passages() -> None:
    parts = [[embedding.PendingPassage("a")] * count for count in (1, 3, 5, 1, 1)]
    assert list(embedding.groups(parts, 4)) == [slice(0, 2), slice(2, 3), slice(3, 5)]


def test_vectors_of_passages_that_were_cut_in_another_way_are_not_taken() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    stored = vectors.packed_parts([0, 5, 9], rows)
    found = vectors.unpacked_parts(stored, [0, 5, 9], 4)
    assert found is not None
    assert found.tolist() == rows.tolist()
    assert vectors.unpacked_parts(stored, [0, 6, 9], 4) is None
    assert vectors.unpacked_parts(stored, [0, 5], 4) is None
    assert vectors.unpacked_parts(stored, [0, 5, 9], 8) is None
