"""The verb that moves a store to another model while the old one serves."""

import asyncio
from collections.abc import Callable
from uuid import UUID

import structlog

from app.db.engine import Database
from app.db.queue import enqueue
from app.embeddings import store
from app.embeddings.backfill import BATCH
from app.embeddings.following import FOLLOW_SECONDS
from app.embeddings.provider import EmbeddingProvider
from app.embeddings.store import StoredModel
from app.errors import ConfigurationError
from app.memories.scored_text import embedded_text

GRACE_SECONDS = 2.5 * FOLLOW_SECONDS
"""Before the switch every process prepares the new model; after it each answer that began with the old one is given."""

OnProgress = Callable[[int, int], None]
"""Called with (memories that have the new vector, memories)."""

logger = structlog.get_logger()


async def reembed(
    database: Database,
    provider: EmbeddingProvider,
    *,
    grace_seconds: float = GRACE_SECONDS,
    on_progress: OnProgress = lambda _done, _total: None,
) -> int:
    """Give every memory a vector of `provider`'s model in a partition of its own, switch to it, drop the old ones.

    Queries are answered by the old model until the switch. Killed at any moment, running it again goes on. How many
    memories were embedded.

    Raises:
        ConfigurationError: the provider is switched off.
        EmbeddingUnavailable: it does not answer; what was embedded stays.
    """
    if not provider.enabled:
        raise ConfigurationError("the model is `noop`, which has no vectors; name another")
    await provider.start()
    async with database.transaction() as connection:
        candidate = await store.register_candidate(connection, provider.model_id, provider.dimension)
    done = await _fill(database, provider, candidate, on_progress)
    async with database.statements() as connection:
        for workspace_id in await store.crowded_workspaces(connection, candidate):
            await store.build_index(connection, candidate, workspace_id)
    await asyncio.sleep(grace_seconds)
    done += await _fill(database, provider, candidate, on_progress)
    async with database.transaction() as connection:
        old = await store.switch(connection, candidate)
        await enqueue(connection, "embed_waiting", lock="embed_waiting")
    logger.info("switched", model=candidate.name, before=[model.name for model in old])
    await asyncio.sleep(grace_seconds if old else 0)
    for model in old:
        async with database.transaction() as connection:
            await store.drop_model(connection, model)
    async with database.transaction() as connection:
        # What was written with the old model between the switch and the drop.
        await store.list_waiting(connection, candidate)
        await enqueue(connection, "embed_waiting", lock="embed_waiting")
    return done


async def _fill(
    database: Database, provider: EmbeddingProvider, candidate: StoredModel, on_progress: OnProgress
) -> int:
    """Embed what has no vector of the candidate, newest first."""
    done = 0
    before: tuple[int, UUID] | None = None
    while True:
        async with database.statements() as connection:
            batch = await store.lacking(connection, candidate, limit=BATCH, before=before)
            counts = await store.progress(connection, candidate)
        on_progress(*counts)
        if not batch:
            return done
        matrix = await provider.embed_documents([embedded_text(item.title, item.body) for item in batch])
        literals = store.as_literals(matrix)
        for workspace_id in sorted({item.workspace_id for item in batch}):
            pairs = [
                (item.memory_id, literal)
                for item, literal in zip(batch, literals, strict=True)
                if item.workspace_id == workspace_id
            ]
            async with database.transaction() as connection:
                await store.insert(
                    connection, candidate, workspace_id, [pair[0] for pair in pairs], [pair[1] for pair in pairs]
                )
        done += len(batch)
        before = (batch[-1].workspace_id, batch[-1].memory_id)
