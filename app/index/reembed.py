"""The verb that moves a store to another model while the old one serves, and the one that drops what it left behind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import DEADLOCK, Database, sqlstate_of
from app.db.queue import EMBED, enqueue
from app.errors import ConfigurationError
from app.index import vectors as store
from app.index.backfill import BATCH
from app.index.pending import compare_all_anew
from app.index.vectors import StoredModel, embedded_text
from app.models.following import FOLLOW_SECONDS
from app.models.protocols import EmbeddingProvider

GRACE_SECONDS = 2.5 * FOLLOW_SECONDS
"""Before the switch every process prepares the new model; after it each answer that began with the old one is given."""
LOCK_NOT_AVAILABLE = "55P03"
"""SQLSTATE: `lock_timeout` has passed."""
PATIENCE = 120
"""Attempts at what waits for others to let go of a table, half a second each."""
PAUSE_SECONDS = 0.2
"""Between two attempts."""
TAKEN_FOR_GOOD = 10
"""Attempts to begin a move: the server takes a moment to notice that the one before was killed."""

T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Called with (memories that have the new vector, memories)."""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A store on its way to another model."""

    model: StoredModel
    done: int
    """Memories that have a vector of it,"""
    total: int
    """of so many."""
    under_way: bool
    """Whether somebody is at it now; else it was broken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveState:
    """Where a store stands between its models."""

    move: Move | None
    retiring: tuple[str, ...]
    """Models that are no longer served, and whose vectors are still to be dropped."""


async def move_state(database: Database) -> MoveState:
    """Whether the store moves to another model, how far it is, and what is left of those before."""
    async with database.transaction() as connection:
        models = await store.models(connection, held=True)
        candidate = next((model.stored for model in models if model.state == store.CANDIDATE), None)
        move = None
        if candidate is not None:
            done, total = await store.progress(connection, candidate)
            under_way = bool((await connection.execute(store.MOVING)).scalar_one())
            move = Move(model=candidate, done=done, total=total, under_way=under_way)
    return MoveState(move=move, retiring=tuple(model.name for model in models if model.state == store.RETIRING))


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
        ConfigurationError: the provider is switched off, or the store is being moved already.
        EmbeddingUnavailable: it does not answer; what was embedded stays.
    """
    if not provider.enabled:
        raise ConfigurationError("the model is `noop`, which has no vectors; name another")
    await provider.start()
    async with _moving(database) as held:
        candidate = await _patiently(database, partial(_registered, provider))
        done = await _fill(database, held, provider, candidate, on_progress)
        if await store.active_model(held) != candidate:
            await _build_indexes(database, candidate)
            await asyncio.sleep(grace_seconds)
            done += await _fill(database, held, provider, candidate, on_progress)
            await _patiently(database, partial(_switch, candidate))
            logger.info("switched", model=candidate.name)
        if await store.retired(held, for_seconds=0):
            await asyncio.sleep(grace_seconds)
            await _drop_all(database, held, for_seconds=0, attempts=PATIENCE)
    return done


async def drop_retired(database: Database) -> int:
    """Drop the vectors of models that are no longer served, after a move that was killed. How many models.

    While a store is being moved that is the move's own business.
    """
    async with database.statements() as held:
        if not (await held.execute(store.TRY_MOVE)).scalar_one():
            return 0
        try:
            return await _drop_all(database, held, for_seconds=GRACE_SECONDS, attempts=1)
        finally:
            await _let_go(held)


@asynccontextmanager
async def _moving(database: Database) -> AsyncIterator[AsyncConnection]:
    """The one move at a time: a connection that holds its lock, which ends with it, however that ends."""
    async with database.statements() as held:
        for _ in range(TAKEN_FOR_GOOD):
            if (await held.execute(store.TRY_MOVE)).scalar_one():
                break
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            raise ConfigurationError(
                f"the store is being moved to {await _destination(held)} already: wait for that to end, or stop it"
            )
        try:
            yield held
        finally:
            await _let_go(held)


async def _destination(connection: AsyncConnection) -> str:
    models = {model.state: model.name for model in await store.models(connection)}
    return models.get(store.CANDIDATE) or models.get(store.ACTIVE) or "another model"


async def _let_go(held: AsyncConnection) -> None:
    """A connection that cannot say so any more is closed: the lock ends with it."""
    try:
        await held.execute(store.END_MOVE)
    except DBAPIError:
        await held.invalidate()


async def _patiently(
    database: Database, work: Callable[[AsyncConnection], Awaitable[T]], attempts: int = PATIENCE
) -> T:
    """`work` in a transaction that never makes others wait for long, tried again while others are in its way."""
    for left in reversed(range(attempts)):
        try:
            async with database.transaction() as connection:
                return await work(connection)
        except OperationalError as error:
            if not left or sqlstate_of(error) not in {LOCK_NOT_AVAILABLE, DEADLOCK}:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("the last attempt returns or raises")


async def _registered(provider: EmbeddingProvider, connection: AsyncConnection) -> StoredModel:
    await store.wait_briefly(connection)
    return await store.register_candidate(connection, provider.model_id, provider.dimension)


async def _switch(candidate: StoredModel, connection: AsyncConnection) -> None:
    await store.wait_briefly(connection)
    await store.switch(connection, candidate)
    await enqueue(connection, EMBED)


async def _build_indexes(database: Database, candidate: StoredModel) -> None:
    async with database.statements() as connection:
        for workspace_id in await store.crowded_workspaces(connection, candidate):
            await store.build_index(connection, candidate, workspace_id)


async def _drop_all(database: Database, held: AsyncConnection, *, for_seconds: float, attempts: int) -> int:
    """Drop what retires; a table that others hold on to is left for the next time."""
    dropped = 0
    for model in await store.retired(held, for_seconds=for_seconds):
        try:
            await _patiently(database, partial(_dropped, model), attempts)
        except OperationalError as error:
            if sqlstate_of(error) != LOCK_NOT_AVAILABLE:
                raise
            logger.warning("vectors of a former model are still in use, and dropped later", model=model.name)
            continue
        dropped += 1
        logger.info("dropped", model=model.name)
    return dropped


async def _dropped(model: StoredModel, connection: AsyncConnection) -> None:
    # Before the table is locked, and undone where it cannot be.
    await compare_all_anew(connection)
    await store.drop_model(connection, model)
    served = await store.active_model(connection)
    if served is not None:
        # A writer that began before the switch and ended after it has written vectors of the old model.
        await store.list_waiting(connection, served)
        await enqueue(connection, EMBED)


async def _fill(
    database: Database,
    held: AsyncConnection,
    provider: EmbeddingProvider,
    candidate: StoredModel,
    on_progress: OnProgress,
) -> int:
    """Embed what has no vector of the candidate, newest first.

    What is to be done is asked on the connection that holds the move's lock: when that is lost, so is the move.
    """
    done = 0
    before: tuple[int, UUID] | None = None
    while True:
        batch = await store.lacking(held, candidate, limit=BATCH, before=before)
        on_progress(*await store.progress(held, candidate))
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
