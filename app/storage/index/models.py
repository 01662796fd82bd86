"""The SQL of embedding models: the one that is served, the one that the store moves to, and those that retire."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import field

import psycopg

from app.errors import ConfigurationError
from app.foundation.db.session import Row, Session
from app.foundation.values import frozen

_LOCK_MODELS = "SELECT pg_advisory_xact_lock(hashtext('priors.embedding_models'))"
_LOCK_TIMEOUT = "500ms"
"""Time that a change of a table waits for its lock: all later statements on the table wait behind it."""
ACTIVE, CANDIDATE, RETIRING = "active", "candidate", "retiring"
"""The states of a model: served, moved to, and no longer served and about to be dropped."""

_MODELS = f"""
SELECT model_id, name, dimension,
    CASE WHEN active THEN '{ACTIVE}' WHEN retiring_since IS NULL THEN '{CANDIDATE}' ELSE '{RETIRING}' END AS state
FROM embedding_models
"""  # noqa: S608 - constants
_ALL = f"{_MODELS} ORDER BY model_id"
_SERVED = f"{_MODELS} WHERE active"
_NAMED = f"{_MODELS} WHERE name = %(name)s"
_RETIRED = f"{_MODELS} WHERE retiring_since <= now() - make_interval(secs => %(seconds)s) ORDER BY model_id"
_IS_SERVED = "SELECT 1 FROM embedding_models WHERE model_id = %(model_id)s AND active FOR KEY SHARE"
_HELD = " FOR KEY SHARE"
_ADD = "SELECT priors_add_model(%(name)s, %(dimension)s, %(active)s)"
_RETIRE_CANDIDATES = """
UPDATE embedding_models SET retiring_since = now() WHERE NOT active AND retiring_since IS NULL AND name <> %(name)s
"""
_UNRETIRE = "UPDATE embedding_models SET retiring_since = NULL WHERE name = %(name)s"
_RETIRE_OTHERS = """
UPDATE embedding_models SET active = false, retiring_since = now()
WHERE model_id <> %(model_id)s AND retiring_since IS NULL
"""
_SERVE = "UPDATE embedding_models SET active = true, retiring_since = NULL WHERE model_id = %(model_id)s"
_LOCK_RETIRING = """
SELECT 1 FROM embedding_models WHERE model_id = %(model_id)s AND retiring_since IS NOT NULL FOR UPDATE
"""
_REMOVE = "DELETE FROM embedding_models WHERE model_id = %(model_id)s"

MOVE = "priors.reembed"
"""The lock that allows one move at a time."""
_TRY_LOCK = "SELECT pg_try_advisory_lock(hashtext(%(work)s), hashtext(%(of)s))"
_UNLOCK = "SELECT pg_advisory_unlock(hashtext(%(work)s), hashtext(%(of)s))"
_IS_LOCKED = """
SELECT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
    AND (classid, objid) = (CAST(hashtext(%(work)s) AS oid), CAST(hashtext(%(of)s) AS oid))
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""


@frozen
class StoredModel:
    """A model whose vectors are stored."""

    model_id: int
    name: str
    dimension: int
    """Dimension of its vectors."""
    state: str = field(default=ACTIVE, compare=False)
    """ACTIVE, CANDIDATE or RETIRING."""

    @property
    def partition(self) -> str:
        """The table that holds its vectors."""
        return f"embeddings_{self.model_id}"

    def index_name(self, workspace_id: int) -> str:
        """Returns the name of the HNSW index over one workspace's vectors of this model."""
        return f"embeddings_{self.model_id}_{workspace_id}_hnsw"


@frozen
class Move:
    """The state of a store that moves to another model."""

    model: StoredModel
    done: int
    """Memories that have a vector of the new model."""
    total: int
    """Number of all memories."""
    in_progress: bool
    """True while a process moves the store; False if the move was interrupted."""


@frozen
class MoveState:
    """The move of a store, and the models that retire."""

    move: Move | None
    retiring: tuple[str, ...]
    """Models that are no longer served, but whose vectors are still stored."""


async def active_model(session: Session, *, held: bool = False) -> StoredModel | None:
    """Returns the model whose vectors are served; None if no vector was ever stored.

    With `held`, the model is not dropped before the transaction ends.
    """
    row = await session.row(_SERVED + _HELD if held else _SERVED)
    return None if row is None else _stored_model(row)


async def is_served(session: Session, model: StoredModel) -> bool:
    """Tells whether the store still serves this model; if so, it is not dropped before the transaction ends.

    It costs a writer no time, because each vector's foreign key locks the same row.
    """
    return await session.row(_IS_SERVED, {"model_id": model.model_id}) is not None


async def models(session: Session, *, held: bool = False) -> list[StoredModel]:
    """Returns every model; with `held`, none of them is dropped before the transaction ends."""
    return [_stored_model(row) for row in await session.rows(_ALL + _HELD if held else _ALL)]


async def register(session: Session, name: str, dimension: int) -> StoredModel:
    """Returns the active model. If there is none, it registers `name` and queues every memory for a vector."""
    found = await active_model(session)
    if found is None:
        await session.execute(_LOCK_MODELS)
        found = await active_model(session)
    return found or await _add(session, name, dimension, active=True)


async def register_candidate(session: Session, name: str, dimension: int) -> StoredModel:
    """Returns the model of that name, and makes it the candidate, with a partition, unless it serves already.

    There is one candidate at a time: the vectors of an earlier, unfinished one are dropped later.

    Raises:
        ConfigurationError: the model is stored with another dimension.
    """
    await session.execute(_LOCK_MODELS)
    await session.execute(_RETIRE_CANDIDATES, {"name": name})
    await session.execute(_UNRETIRE, {"name": name})
    row = await session.row(_NAMED, {"name": name})
    if row is None:
        return await _add(session, name, dimension, active=False)
    if row.dimension != dimension:
        raise ConfigurationError(f"{name} is stored with {row.dimension} numbers a vector, not {dimension}")
    return _stored_model(row)


async def _add(session: Session, name: str, dimension: int, *, active: bool) -> StoredModel:
    model_id = await session.value(_ADD, {"name": name, "dimension": dimension, "active": active})
    return StoredModel(model_id=model_id, name=name, dimension=dimension)


def _stored_model(row: Row) -> StoredModel:
    return StoredModel(**row._asdict())


async def wait_briefly(session: Session) -> None:
    """Lets this transaction wait at most _LOCK_TIMEOUT for a lock."""
    await session.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")


async def switch(session: Session, candidate: StoredModel) -> None:
    """Makes this model the served one and retires the others, for whose vectors no memory is pending any more.

    The session sees all workspaces.
    """
    await session.execute(_LOCK_MODELS)
    await session.execute(_RETIRE_OTHERS, {"model_id": candidate.model_id})
    await session.execute(_SERVE, {"model_id": candidate.model_id})
    await session.execute("DELETE FROM pending_embeddings")


async def retired_models(session: Session, *, for_seconds: float) -> list[StoredModel]:
    """Returns the models that have been neither served nor moved to for `for_seconds`."""
    return [_stored_model(row) for row in await session.rows(_RETIRED, {"seconds": for_seconds})]


async def drop_model(session: Session, model: StoredModel) -> None:
    """Drops a retiring model's vectors after the last writer of them has ended.

    The model's row is locked first, so that a writer that has just checked the model can finish.
    """
    if await session.row(_LOCK_RETIRING, {"model_id": model.model_id}) is None:
        return
    await session.execute(f"DROP TABLE IF EXISTS {model.partition}")
    await session.execute(_REMOVE, {"model_id": model.model_id})


@asynccontextmanager
async def lock(session: Session, work: str, of: str = "") -> AsyncIterator[bool]:
    """Holds the lock of some work while the connection lives; yields False if another process holds it."""
    values = {"work": work, "of": of}
    if not await session.value(_TRY_LOCK, values):
        yield False
        return
    try:
        yield True
    finally:
        # Postgres releases the lock of a lost connection.
        with suppress(psycopg.Error):
            await session.execute(_UNLOCK, values)


async def progress_of_all(session: Session, model: StoredModel) -> tuple[int, int]:
    """Returns the number of memories that have a vector of this model, and of all memories, in all workspaces."""
    statement = f"SELECT (SELECT count(*) FROM {model.partition} WHERE passage = 0), (SELECT count(*) FROM lexical)"  # noqa: S608 - made of a number
    done, total = await session.one(statement)
    return done, total


async def move_state(session: Session) -> MoveState:
    """Returns the move to another model, if there is one, with its progress, and the models that retire.

    The session sees all workspaces.
    """
    known = await models(session, held=True)
    candidate = next((model for model in known if model.state == CANDIDATE), None)
    move = None
    if candidate is not None:
        done, total = await progress_of_all(session, candidate)
        in_progress = await session.value(_IS_LOCKED, {"work": MOVE, "of": ""})
        move = Move(model=candidate, done=done, total=total, in_progress=in_progress)
    return MoveState(move=move, retiring=tuple(model.name for model in known if model.state == RETIRING))
