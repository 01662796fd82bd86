"""The verbs that move a store to another model while the old one serves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog

from app.errors import ConfigurationError
from app.foundation.db.database import Database, LockedByOthers, again_while_locked
from app.foundation.db.distribution import IN_ORDER
from app.foundation.db.session import EMBED_CUES, Across, Session
from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.values import frozen
from app.storage.index import embedding, models, vectors
from app.storage.index.indexing import BATCH, queue_all_for_links, queue_lacking_of_all
from app.storage.index.models import StoredModel
from app.storage.index.service import FOLLOW_SECONDS
from app.storage.index.vectors import by_workspace

_GRACE_SECONDS = 2.5 * FOLLOW_SECONDS
"""Time before the switch in which every process prepares the new model, and time after it in which the answers that
began with the old model end."""
_PATIENCE = 120
"""Attempts at work that needs the lock of a table; each waits half a second."""
_PAUSE_SECONDS = 0.2
"""Time between two attempts."""
_ATTEMPTS_TO_BEGIN = 10
"""Attempts to begin a move: the server takes a moment to notice that an earlier move was killed."""

T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Called with the number of memories that have the new vector, and of all memories."""
ForgetSimilar = Callable[[Session], Awaitable[None]]
"""Removes the links that were found by vectors, in all workspaces and in the transaction that drops the vectors."""

logger = structlog.get_logger()


@frozen
class ModelMoves:
    """Moves a store to another model."""

    database: Database
    forget_similar: ForgetSimilar
    grace_seconds: float = _GRACE_SECONDS

    async def reembed(
        self, across: Across, provider: EmbeddingProvider, *, on_progress: OnProgress = lambda _done, _total: None
    ) -> int:
        """Embeds every memory by `provider`'s model in a new partition, switches to it, and drops the old vectors.

        Queries are answered by the old model until the switch. After it was killed, another call continues. A worker
        embeds the texts of cues afterwards; until then plans are compared with them by words, files and acts. Returns
        how many memories were embedded.

        Raises:
            ConfigurationError: the provider is switched off, or the store is being moved already.
            EmbeddingUnavailable: the provider does not answer; the vectors so far stay.
        """
        if not provider.enabled:
            raise ConfigurationError("the model is `noop`, which has no vectors; name another")
        await provider.start()
        async with _moving(across) as held:
            register = partial(models.register_candidate, name=provider.model_id, dimension=provider.dimension)
            candidate = await _patiently(across, register)
            done = await self._fill(held, provider, candidate, on_progress)
            if await models.active_model(held) != candidate:
                async with across(transaction=False) as session:
                    await vectors.build_indexes(session, candidate)
                await asyncio.sleep(self.grace_seconds)
                done += await self._fill(held, provider, candidate, on_progress)
                await _patiently(across, partial(_switch, candidate=candidate))
                logger.info("switched", model=candidate.name)
            if await models.retired_models(held, for_seconds=0):
                await asyncio.sleep(self.grace_seconds)
                await self._drop_all(across, held, for_seconds=0, attempts=_PATIENCE)
        async with across() as session:
            await session.enqueue(EMBED_CUES)
        return done

    async def drop_retired(self, across: Across) -> int:
        """Drops the vectors of models that are no longer served, after a killed move, and their links.

        While a move is in progress, that move drops them. Returns the number of models.
        """
        async with across(transaction=False) as held, models.lock(held, models.MOVE) as mine:
            return await self._drop_all(across, held, for_seconds=self.grace_seconds, attempts=1) if mine else 0

    async def _drop_all(self, across: Across, held: Session, *, for_seconds: float, attempts: int) -> int:
        """Drops retiring models; leaves a table that others lock for the next call."""
        dropped = 0
        for model in await models.retired_models(held, for_seconds=for_seconds):
            try:
                await _patiently(across, partial(self._drop, model=model), attempts)
            except LockedByOthers:
                logger.warning("vectors of a former model are still in use, and dropped later", model=model.name)
                continue
            dropped += 1
            logger.info("dropped", model=model.name)
        return dropped

    async def _drop(self, session: Session, *, model: StoredModel) -> None:
        # The links go first, and come back if the table cannot be locked: the retiring model found them.
        await self.forget_similar(session)
        await queue_all_for_links(session)
        await models.drop_model(session, model)
        if (served := await models.active_model(session)) is not None:
            # A writer that began before the switch and ended after it may have written vectors of the old model.
            await queue_lacking_of_all(session, served.partition)

    async def _fill(
        self, held: Session, provider: EmbeddingProvider, candidate: StoredModel, on_progress: OnProgress
    ) -> int:
        """Embeds the memories that have no vector of the candidate, newest first. Returns their number.

        The connection that holds the move's lock also reads the remaining work, so that its loss ends the move.
        """
        done = 0
        before: tuple[int, UUID] | None = None
        while True:
            batch = await vectors.lacking_of_all(held, candidate, limit=BATCH, before=before)
            on_progress(*await models.progress_of_all(held, candidate))
            if not batch:
                return done
            texts = await embedding.cut(provider, [(item.title, item.body) for item in batch])
            for part in embedding.groups(texts, BATCH):
                found = await embedding.embed_passages(provider, texts[part])
                for workspace_id, own in by_workspace(batch[part], found).items():
                    async with self.database.session(workspace_id) as session:
                        await vectors.insert(session, candidate, own)
            done += len(batch)
            before = (batch[-1].workspace_id, batch[-1].memory_id)


async def _switch(session: Session, *, candidate: StoredModel) -> None:
    await models.switch(session, candidate)
    await queue_lacking_of_all(session, candidate.partition)


@asynccontextmanager
async def _moving(across: Across) -> AsyncIterator[Session]:
    """Opens a session that holds the lock of moves; the lock ends with the session."""
    async with across(transaction=False) as held:
        for _ in range(_ATTEMPTS_TO_BEGIN):
            async with models.lock(held, models.MOVE) as mine:
                if mine:
                    yield held
                    return
            await asyncio.sleep(_PAUSE_SECONDS)
        names = {model.state: model.name for model in await models.models(held)}
        other = names.get(models.CANDIDATE) or names.get(models.ACTIVE) or "another model"
        raise ConfigurationError(f"the store is being moved to {other} already: wait for that to end, or stop it")


async def _patiently(across: Across, work: Callable[[Session], Awaitable[T]], attempts: int = _PATIENCE) -> T:
    """Runs `work` in a transaction that waits only briefly for locks; runs it again while others hold them."""

    async def attempt() -> T:
        async with across() as session:
            await models.wait_briefly(session)
            await session.execute(IN_ORDER)
            return await work(session)

    return await again_while_locked(attempt, attempts=attempts, pause=_PAUSE_SECONDS)
