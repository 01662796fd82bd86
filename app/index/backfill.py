"""The verb that gives memories their vectors."""

import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import structlog
from sqlalchemy.exc import ProgrammingError

from app.db.engine import Database, again_after_deadlock, sqlstate_of
from app.db.queue import EMBED, enqueue
from app.index import vectors as store
from app.index.vectors import StoredModel, WaitingText, embedded_text
from app.models.following import pinned
from app.models.protocols import EmbeddingProvider

BATCH = 256
"""Texts embedded between two writes: 5 s of work at most is lost when a worker is killed."""

POURING_SECONDS = 10.0
POURING_BYTES = 1_000_000
"""Of vectors that come within POURING_SECONDS: fewer, 120 a second of 384 dimensions, an index takes in one by one in a
twentieth of a core's time. On a busy machine seconds lie between two batches of a stream."""
UNDEFINED_TABLE = "42P01"
"""SQLSTATE: the vectors of a model that the store has moved away from are dropped."""

logger = structlog.get_logger()


async def serving_model(database: Database, provider: EmbeddingProvider) -> StoredModel | None:
    """The stored model, if the provider (`pinned`) can add to its vectors: made now where the database has none.

    None where the provider is switched off, or where the stored vectors are of another model.
    """
    if not provider.enabled:
        return None
    async with database.transaction() as connection:
        model = await store.register_model(connection, provider.model_id, provider.dimension)
    if pinned(provider, model.name) is not None:
        return model
    logger.warning("another model's vectors are stored", stored=model.name, configured=provider.model_id)
    return None


async def embed_waiting(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace_id: int | None = None,
    ids: Sequence[UUID] | None = None,
    seconds: float = math.inf,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Embed memories that wait for a vector, newest first; of one workspace, or these ids, where given. How many.

    No batch is begun after so many seconds, except for the first.

    Safe to kill and to run twice at once: a batch is written whole, and a vector is written once.

    Raises:
        EmbeddingUnavailable: the provider does not answer; what was embedded before is stored.
    """
    done, end = 0, time.monotonic() + seconds
    while (not done or time.monotonic() < end) and (batch := await _next(database, workspace_id, ids)):
        model = await serving_model(database, provider)
        speaker = None if model is None else pinned(provider, model.name)
        if model is None or speaker is None:
            break
        if await _embed(database, speaker, model, batch):
            done += len(batch)
            on_progress(len(batch))
    return done


async def _next(database: Database, workspace_id: int | None, ids: Sequence[UUID] | None) -> list[WaitingText]:
    async with database.statements() as connection:
        return await store.waiting(connection, limit=BATCH, workspace_id=workspace_id, ids=ids)


async def _embed(
    database: Database, provider: EmbeddingProvider, model: StoredModel, batch: Sequence[WaitingText]
) -> bool:
    """False where the store has moved to another model meanwhile: what is left of the batch waits for that one's."""
    texts = [embedded_text(item.title, item.body) for item in batch]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    literals = store.as_literals(await provider.embed_documents(list(places)))
    by_workspace: dict[int, list[tuple[WaitingText, str]]] = defaultdict(list)
    for item, text in zip(batch, texts, strict=True):
        by_workspace[item.workspace_id].append((item, literals[places[text]]))
    for workspace_id, pairs in by_workspace.items():
        if not await _written(database, model, workspace_id, pairs):
            return False
    return True


async def _written(
    database: Database, model: StoredModel, workspace_id: int, pairs: Sequence[tuple[WaitingText, str]]
) -> bool:
    async def attempt() -> bool:
        async with database.transaction() as connection:
            ids, hashes = [item.memory_id for item, _ in pairs], [item.content_hash for item, _ in pairs]
            literals = [literal for _, literal in pairs]
            return await store.write(connection, model, workspace_id, ids, literals, hashes=hashes)

    return await again_after_deadlock(attempt)


def pouring(before: int, now: int) -> bool:
    """Whether so many vectors come that an index is better built when they are over: `vector_bytes`, POURING_SECONDS
    apart.

    Built at once, 100,000 take 20 s of two cores; added to an index one by one, 55 s of one (docs/adr/0006).
    """
    return now - before > POURING_BYTES


async def vector_bytes(database: Database) -> int:
    """What the served model's vectors take."""
    async with database.statements() as connection:
        return await store.vector_bytes(connection)


async def build_indexes(database: Database) -> int:
    """Give every workspace that has grown beyond the exact scan its vector index. How many were built."""
    built = 0
    async with _unless_moved(), database.statements() as connection:
        model = await store.active_model(connection)
        if model is not None:
            for workspace_id in await store.crowded_workspaces(connection, model):
                built += await store.build_index(connection, model, workspace_id)
    return built


async def lacks_an_index(database: Database) -> bool:
    """Whether a workspace has grown beyond the exact scan and has no vector index yet."""
    crowded: list[int] = []
    async with _unless_moved(), database.statements() as connection:
        model = await store.active_model(connection)
        crowded = [] if model is None else await store.crowded_workspaces(connection, model)
    return bool(crowded)


@asynccontextmanager
async def _unless_moved() -> AsyncIterator[None]:
    try:
        yield
    except ProgrammingError as error:
        if sqlstate_of(error) != UNDEFINED_TABLE:
            raise
        logger.info("the store moved to another model while its indexes were built")


async def backfill_state(database: Database) -> int:
    """How many memories wait for a vector."""
    async with database.statements() as connection:
        return await store.waiting_count(connection)


async def find_unlisted(database: Database) -> bool:
    """Put on the waiting list what lacks a vector and is not on it, found by count, as after a restored backup.

    Whether there was any.
    """
    async with database.transaction() as connection:
        model = await store.active_model(connection)
        if model is None or not await store.is_served(connection, model):
            return False
        done, total = await store.progress(connection, model)
        if done + await store.listed_count(connection, model) >= total:
            return False
        await store.list_waiting(connection, model)
        await enqueue(connection, EMBED)
    return True
