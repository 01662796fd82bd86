"""The verb that moves a store to another model while the old one serves, and the one that drops a retired model."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeVar
from uuid import UUID

import structlog

from app.db.database import Database, LockedByOthers, again_while_locked
from app.db.session import EMBED, Across, Session
from app.errors import ConfigurationError
from app.index import models, vectors
from app.index.backfill import BATCH
from app.index.following import FOLLOW_SECONDS
from app.index.models import StoredModel
from app.index.pending import PendingText, queue_all_for_links, queue_lacking_of_all
from app.index.vectors import embedded_text
from app.models.protocols import EmbeddingProvider

GRACE_SECONDS = 2.5 * FOLLOW_SECONDS
"""Time before the switch in which every process prepares the new model, and after it in which each answer that began
with the old one is given."""
PATIENCE = 120
"""Attempts at work that waits for others to let go of a table, half a second each."""
PAUSE_SECONDS = 0.2
"""Time between two attempts."""
ATTEMPTS_TO_BEGIN = 10
"""Attempts to begin a move: the server takes a moment to notice that the one before was killed."""

T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Called with (memories that have the new vector, memories)."""
ForgetSimilar = Callable[[Session], Awaitable[None]]
"""Removes the links by vectors of all workspaces, in the transaction that drops the vectors."""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A store on its way to another model."""

    model: StoredModel
    done: int
    """Memories that have a vector of it."""
    total: int
    """All memories."""
    in_progress: bool
    """True while a process moves it; else the move was broken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveState:
    """The place of a store between its models."""

    move: Move | None
    retiring: tuple[str, ...]
    """Models that are no longer served, and whose vectors are still to be dropped."""


async def move_state(across: Across) -> MoveState:
    """Returns whether the store moves to another model, how far it is, and which models are still to be dropped."""
    async with across() as session:
        known = await models.models(session, held=True)
        candidate = next((model.stored for model in known if model.state == models.CANDIDATE), None)
        move = None
        if candidate is not None:
            done, total = await vectors.progress_of_all(session, candidate)
            move = Move(model=candidate, done=done, total=total, in_progress=await models.is_moving(session))
    return MoveState(move=move, retiring=tuple(model.name for model in known if model.state == models.RETIRING))


async def reembed(
    database: Database,
    provider: EmbeddingProvider,
    *,
    across: Across,
    forget_similar: ForgetSimilar,
    grace_seconds: float = GRACE_SECONDS,
    on_progress: OnProgress = lambda _done, _total: None,
) -> int:
    """Give every memory a vector of `provider`'s model in a partition of its own, switch to it, drop the old ones.

    Queries are answered by the old model until the switch. Killed at any moment, running it again goes on. Returns how
    many memories were embedded.

    Raises:
        ConfigurationError: the provider is switched off, or the store is being moved already.
        EmbeddingUnavailable: it does not answer; what was embedded stays.
    """
    if not provider.enabled:
        raise ConfigurationError("the model is `noop`, which has no vectors; name another")
    await provider.start()
    async with _moving(across) as held:
        candidate = await _patiently(across, partial(_registered, provider))
        done = await _fill(database, held, provider, candidate, on_progress)
        if await models.active_model(held) != candidate:
            await _build_indexes(across, candidate)
            await asyncio.sleep(grace_seconds)
            done += await _fill(database, held, provider, candidate, on_progress)
            await _patiently(across, partial(_switch, candidate))
            logger.info("switched", model=candidate.name)
        if await models.retired(held, for_seconds=0):
            await asyncio.sleep(grace_seconds)
            await _drop_all(across, held, forget_similar, for_seconds=0, attempts=PATIENCE)
    return done


async def drop_retired(across: Across, *, forget_similar: ForgetSimilar) -> int:
    """Drop the vectors of models that are no longer served, after a move that was killed. Returns how many models.

    While a store is being moved the move itself drops them.
    """
    async with across(transaction=False) as held:
        if not await models.try_move(held):
            return 0
        async with _given_back(held):
            return await _drop_all(across, held, forget_similar, for_seconds=GRACE_SECONDS, attempts=1)


@asynccontextmanager
async def _moving(across: Across) -> AsyncIterator[Session]:
    """Opens a session that holds the lock of the one move at a time; the lock ends with it, however that ends."""
    async with across(transaction=False) as held:
        for _ in range(ATTEMPTS_TO_BEGIN):
            if await models.try_move(held):
                break
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            raise ConfigurationError(
                f"the store is being moved to {await _destination(held)} already: wait for that to end, or stop it"
            )
        async with _given_back(held):
            yield held


async def _destination(session: Session) -> str:
    names = {model.state: model.name for model in await models.models(session)}
    return names.get(models.CANDIDATE) or names.get(models.ACTIVE) or "another model"


@asynccontextmanager
async def _given_back(held: Session) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await models.end_move(held)


async def _patiently(across: Across, work: Callable[[Session], Awaitable[T]], attempts: int = PATIENCE) -> T:
    """Does `work` in a transaction that never makes others wait for long, again while others are in its way."""

    async def attempt() -> T:
        async with across() as session:
            return await work(session)

    return await again_while_locked(attempt, attempts=attempts, pause=PAUSE_SECONDS)


async def _registered(provider: EmbeddingProvider, session: Session) -> StoredModel:
    await models.wait_briefly(session)
    return await models.register_candidate(session, provider.model_id, provider.dimension)


async def _switch(candidate: StoredModel, session: Session) -> None:
    await models.wait_briefly(session)
    await models.switch(session, candidate)
    await session.enqueue(EMBED)


async def _build_indexes(across: Across, candidate: StoredModel) -> None:
    async with across(transaction=False) as session:
        for workspace_id in await vectors.crowded_workspaces(session, candidate):
            await vectors.build_index(session, candidate, workspace_id)


async def _drop_all(
    across: Across, held: Session, forget_similar: ForgetSimilar, *, for_seconds: float, attempts: int
) -> int:
    """Drop what retires; a table that others hold on to is left for the next time."""
    dropped = 0
    for model in await models.retired(held, for_seconds=for_seconds):
        try:
            await _patiently(across, partial(_dropped, model, forget_similar), attempts)
        except LockedByOthers:
            logger.warning("vectors of a former model are still in use, and dropped later", model=model.name)
            continue
        dropped += 1
        logger.info("dropped", model=model.name)
    return dropped


async def _dropped(model: StoredModel, forget_similar: ForgetSimilar, session: Session) -> None:
    # Before the table is locked, and undone where it cannot be: nearness was another model's.
    await forget_similar(session)
    await queue_all_for_links(session)
    await models.drop_model(session, model)
    served = await models.active_model(session)
    if served is not None:
        # A writer that began before the switch and ended after it has written vectors of the old model.
        await queue_lacking_of_all(session, served.partition)
        await session.enqueue(EMBED)


async def _fill(
    database: Database, held: Session, provider: EmbeddingProvider, candidate: StoredModel, on_progress: OnProgress
) -> int:
    """Embed what has no vector of the candidate, newest first. Returns how many memories.

    The connection that holds the move's lock also reads the work that is left, so that losing it ends the move.
    """
    done = 0
    before: tuple[int, UUID] | None = None
    while True:
        batch = await vectors.lacking_of_all(held, candidate, limit=BATCH, before=before)
        on_progress(*await vectors.progress_of_all(held, candidate))
        if not batch:
            return done
        matrix = await provider.embed_documents([embedded_text(item.title, item.body) for item in batch])
        await _insert(database, candidate, batch, vectors.as_literals(matrix))
        done += len(batch)
        before = (batch[-1].workspace_id, batch[-1].memory_id)


async def _insert(
    database: Database, candidate: StoredModel, batch: Sequence[PendingText], literals: Sequence[str]
) -> None:
    """Store the vectors of a batch, each workspace's in a session of its own. A batch is in order of workspaces."""
    pairs = zip(batch, literals, strict=True)
    for workspace_id, group in groupby(pairs, key=lambda pair: pair[0].workspace_id):
        own = list(group)
        async with database.session(workspace_id) as session:
            await vectors.insert(
                session, candidate, [item.memory_id for item, _ in own], [literal for _, literal in own]
            )
