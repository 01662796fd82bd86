"""The SQL of embedding models: which one is served, which one the store moves to, and which ones retire."""

from contextlib import suppress
from dataclasses import dataclass

import psycopg

from app.db.session import Row, Session
from app.errors import ConfigurationError
from app.index.pending import queue_lacking_of_all

LOCK_MODELS = "SELECT pg_advisory_xact_lock(hashtext('priors.embedding_models'))"
LOCK_TIMEOUT = "500ms"
"""Time that a change of a table waits for others: whoever waits for a table queues everybody else behind it."""
ACTIVE, CANDIDATE, RETIRING = "active", "candidate", "retiring"
"""The states of a model: served, moved to, and no longer served and about to be dropped."""

COLUMNS = "model_id, name, dimension"
MODELS = f"SELECT {COLUMNS}, active, retiring_since FROM embedding_models ORDER BY model_id"  # noqa: S608 - constants
SERVED = f"SELECT {COLUMNS} FROM embedding_models WHERE active"  # noqa: S608 - constants
NAMED = f"SELECT {COLUMNS} FROM embedding_models WHERE name = %(name)s"  # noqa: S608 - constants
IS_SERVED = "SELECT 1 FROM embedding_models WHERE model_id = %(model_id)s AND active FOR KEY SHARE"
HELD = " FOR KEY SHARE"
ADD = "SELECT priors_add_model(%(name)s, %(dimension)s, %(active)s)"
RETIRE_CANDIDATES = """
UPDATE embedding_models SET retiring_since = CASE WHEN name <> %(name)s THEN now() END
WHERE NOT active AND (retiring_since IS NULL) = (name <> %(name)s)
"""
SWITCH = """
UPDATE embedding_models SET active = (model_id = %(model_id)s),
    retiring_since = CASE WHEN model_id <> %(model_id)s THEN coalesce(retiring_since, now()) END
"""
RETIRED = f"""
SELECT {COLUMNS} FROM embedding_models
WHERE retiring_since <= now() - make_interval(secs => %(seconds)s) ORDER BY model_id
"""  # noqa: S608 - constants
LOCK_RETIRING = """
SELECT 1 FROM embedding_models WHERE model_id = %(model_id)s AND retiring_since IS NOT NULL FOR UPDATE
"""
REMOVE = "DELETE FROM embedding_models WHERE model_id = %(model_id)s"

TRY_MOVE = "SELECT pg_try_advisory_lock(hashtext('priors.reembed'), 0)"
END_MOVE = "SELECT pg_advisory_unlock(hashtext('priors.reembed'), 0)"
MOVING = """
SELECT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = 0
    AND classid = CAST(hashtext('priors.reembed') AS oid)
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model whose vectors are stored."""

    model_id: int
    name: str
    dimension: int
    """Numbers of a vector."""

    @property
    def partition(self) -> str:
        """The table that holds its vectors."""
        return f"embeddings_{self.model_id}"

    def index_name(self, workspace_id: int) -> str:
        """Returns the name of the HNSW index over one workspace's vectors of this model."""
        return f"embeddings_{self.model_id}_{workspace_id}_hnsw"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model that the database has vectors of, or is about to."""

    stored: StoredModel
    state: str
    """ACTIVE, CANDIDATE or RETIRING."""

    @property
    def name(self) -> str:
        """The name under which its vectors are stored."""
        return self.stored.name


async def active_model(session: Session, *, held: bool = False) -> StoredModel | None:
    """Returns the model whose vectors are served; None where no vector was ever stored.

    One that is `held` is not dropped before the transaction ends.
    """
    row = await session.row(SERVED + HELD if held else SERVED)
    return None if row is None else _stored(row)


async def is_served(session: Session, model: StoredModel) -> bool:
    """Tells whether the store still serves this model; it is then not dropped before the transaction ends.

    It costs a writer nothing: each vector's foreign key locks the same row.
    """
    return await session.row(IS_SERVED, {"model_id": model.model_id}) is not None


async def models(session: Session, *, held: bool = False) -> list[KnownModel]:
    """Returns every model; where they are `held` none of them is dropped before the transaction ends."""
    return [
        KnownModel(
            stored=_stored(row), state=ACTIVE if row.active else CANDIDATE if row.retiring_since is None else RETIRING
        )
        for row in await session.rows(MODELS + HELD if held else MODELS)
    ]


async def register(session: Session, name: str, dimension: int) -> StoredModel:
    """Returns the active model; where there is none, `name` becomes it, and every memory is queued for a vector."""
    found = await active_model(session)
    if found is None:
        await session.execute(LOCK_MODELS)
        found = await active_model(session)
    return found or await _add(session, name, dimension, active=True)


async def register_candidate(session: Session, name: str, dimension: int) -> StoredModel:
    """Returns the model of that name, its partition made now if need be; it does not serve yet unless it did.

    There is one candidate at a time: another one's half-filled vectors are given up.

    Raises:
        ConfigurationError: it is known with another dimension.
    """
    await session.execute(LOCK_MODELS)
    await session.execute(RETIRE_CANDIDATES, {"name": name})
    row = await session.row(NAMED, {"name": name})
    if row is None:
        return await _add(session, name, dimension, active=False)
    if row.dimension != dimension:
        raise ConfigurationError(f"{name} is stored with {row.dimension} numbers a vector, not {dimension}")
    return _stored(row)


async def _add(session: Session, name: str, dimension: int, *, active: bool) -> StoredModel:
    model_id = await session.value(ADD, {"name": name, "dimension": dimension, "active": active})
    return StoredModel(model_id=model_id, name=name, dimension=dimension)


def _stored(row: Row) -> StoredModel:
    return StoredModel(model_id=row.model_id, name=row.name, dimension=row.dimension)


async def wait_briefly(session: Session) -> None:
    """Let this transaction wait LOCK_TIMEOUT at most for the locks of others."""
    await session.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")


async def switch(session: Session, candidate: StoredModel) -> None:
    """Serve this model from now on; the others retire. Every memory without a vector of it is queued for one.

    The session sees all workspaces.
    """
    await session.execute(LOCK_MODELS)
    await session.execute(SWITCH, {"model_id": candidate.model_id})
    await session.execute("DELETE FROM pending_embeddings")
    await queue_lacking_of_all(session, candidate.partition)


async def retired(session: Session, *, for_seconds: float) -> list[StoredModel]:
    """Returns the models that have not been served, nor moved to, for so long."""
    return [_stored(row) for row in await session.rows(RETIRED, {"seconds": for_seconds})]


async def drop_model(session: Session, model: StoredModel) -> None:
    """Drop a retiring model's vectors, once nobody writes them; waits LOCK_TIMEOUT at most, as others wait for it.

    The model's row is locked first, so that a writer who has just made sure of the model is not cut short.
    """
    await wait_briefly(session)
    if await session.row(LOCK_RETIRING, {"model_id": model.model_id}) is None:
        return
    await session.execute(f"DROP TABLE IF EXISTS {model.partition}")
    await session.execute(REMOVE, {"model_id": model.model_id})


async def try_move(session: Session) -> bool:
    """Take the lock of the one move at a time, for as long as the connection lives; tells whether it was free."""
    return bool(await session.value(TRY_MOVE))


async def end_move(session: Session) -> None:
    """Give the lock back; a connection that was lost has given it back by that."""
    with suppress(psycopg.Error):
        await session.execute(END_MOVE)


async def is_moving(session: Session) -> bool:
    """Tells whether somebody moves the store to another model now."""
    return bool(await session.value(MOVING))
