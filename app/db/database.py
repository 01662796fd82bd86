"""One pool of connections a process, and the sessions that it opens."""

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar, cast

import psycopg
from sqlalchemy import PoolProxiedConnection, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import create_async_engine

from app.db.roles import OWNER, SERVICE, TAKE_SERVICE
from app.db.session import EVERYONE, Scope, Session, Workspace
from app.db.wire import Command, Wire
from app.errors import ConfigurationError, DatabaseUnavailable, InvalidInput, StorageFull

CONNECT_TIMEOUT_SECONDS = 5
DEADLOCK_RETRIES = 2
POOL_TIMEOUT_SECONDS = 10
SESSION_SETTINGS = {
    # 100 misses one of a hundred clusters of a clustered store altogether, at 100,000 rows (docs/retrieval.md).
    "hnsw.ef_search": "200",
    # An answer of more than ef_search hits is scanned on for; a smaller one never gets there.
    "hnsw.iterative_scan": "strict_order",
    # The statements choose their own path, so a new plan for each query's values only costs time.
    "plan_cache_mode": "force_generic_plan",
    # The hot statements' estimated cost crosses the threshold that compiles them, which takes longer than they do.
    "jit": "off",
    # What is shown is the date that is indexed.
    "TimeZone": "UTC",
}
GOING_DOWN = frozenset({"57P01", "57P02", "57P03"})
"""SQLSTATEs of a server that stops, was killed, or is starting."""
TRY_TO_WRITE = (
    "CREATE TEMPORARY TABLE priors_room ON COMMIT DROP AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)"
)
"""A megabyte beside the tables, gone at the end of its transaction."""
WIRE = "wire"
"""The key under which the pool keeps a connection's Wire."""

T = TypeVar("T")


def sqlalchemy_url(url: str) -> URL:
    """Returns a `postgres://…` or `postgresql://…` URL in the form that SQLAlchemy and psycopg expect.

    Raises:
        ConfigurationError: not a Postgres URL.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigurationError("PRIORS_DATABASE_URL is not a URL; write postgresql://user@host/database") from None
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise ConfigurationError(
            f"PRIORS_DATABASE_URL names {parsed.get_backend_name()}; Priors needs postgresql://user@host/database"
        )
    return parsed.set(drivername="postgresql+psycopg")


def libpq_url(url: str) -> str:
    """Returns the URL in the form that libpq expects."""
    return sqlalchemy_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


class Database:
    """One pool of connections to one database. Each connection runs as the service's role, which owns nothing."""

    def __init__(self, url: str, *, pool_size: int, admin_url: str = "", application_name: str = "priors") -> None:
        self.url = url
        self.admin_url = admin_url or url
        """The URL of a role that may migrate. The embedded Postgres has a separate role for this."""
        self.trouble = ""
        """The reason why the server does not start, if its keeper knows it."""
        self._full = ""
        self._engine = create_async_engine(
            sqlalchemy_url(url),
            isolation_level="AUTOCOMMIT",
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=POOL_TIMEOUT_SECONDS,
            pool_reset_on_return=None,
            connect_args={
                "options": " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items()),
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "application_name": application_name,
            },
        )
        event.listen(self._engine.sync_engine, "checkout", _refuse_a_dead_connection)

    @asynccontextmanager
    async def session(
        self, workspace: Workspace | int, *, transaction: bool = True, snapshot: bool = False
    ) -> AsyncIterator[Session]:
        """Opens a session of a workspace whose statements are one transaction; an exception rolls it back.

        BEGIN goes out with the first statement, and the jobs with COMMIT. Without a transaction each statement is one
        of its own, in one round trip: for readers. With `snapshot`, all statements see the state at the first one.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        async with self._wire() as wire:
            scope = _scope_of(workspace, transaction=transaction)._replace(snapshot=snapshot)
            session = Session(wire, scope)
            with _taken_by_others(scope):
                async with _committed(session) if transaction else nullcontext():
                    yield session

    @asynccontextmanager
    async def across(self, *, transaction: bool = True) -> AsyncIterator[Session]:
        """Opens a session that sees all workspaces, as the owner of the tables. For `operations/` and the worker.

        Without a transaction each statement is its own, as `CREATE INDEX CONCURRENTLY` wants it.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        async with self._wire() as wire:
            session = Session(wire, Scope(None, transaction=transaction))
            async with _committed(session) if transaction else _owning(wire):
                yield session

    async def check(self) -> None:
        """Checks that the database answers.

        Raises:
            DatabaseUnavailable: it does not answer.
        """
        async with self._wire() as wire:
            await wire.exchange([Command(b"SELECT 1")])

    async def lack_of_room(self) -> str:
        """Returns why nothing can be written; "" where it can. The disk is tried only once a write has found it full.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        if self._full:
            with suppress(StorageFull):
                async with self.across() as session:
                    await session.execute(TRY_TO_WRITE)
                self._full = ""
        return self._full

    async def close(self) -> None:
        """Closes every connection."""
        await self._engine.dispose()

    @asynccontextmanager
    async def _wire(self) -> AsyncIterator[Wire]:
        """Opens a connection of the pool. A connection that is not idle at the end is closed."""
        with _pool_errors(self.trouble):
            pooled = await self._engine.raw_connection()
        wire = _wire_of(pooled)
        try:
            with _lost_connections(wire):
                if not wire.secured:
                    wire.secured = await _takes_service(wire)
                yield wire
        except StorageFull as error:
            self._full = str(error)
            raise
        finally:
            if not wire.idle:
                wire.close()
            # The connection needs no reset, so this does not wait.
            pooled.close()


def _scope_of(workspace: Workspace | int, *, transaction: bool) -> Scope:
    if isinstance(workspace, int):
        return Scope(workspace, transaction)
    return Scope(workspace.workspace_id, transaction, workspace.user, workspace.sees)


def _wire_of(pooled: PoolProxiedConnection) -> Wire:
    wire = pooled.info.get(WIRE)
    if wire is None:
        wire = pooled.info[WIRE] = Wire(cast("psycopg.AsyncConnection", pooled.driver_connection))
    return cast("Wire", wire)


async def _takes_service(wire: Wire) -> bool:
    """Takes the service's role; returns False if it does not exist yet, and the next call tries again."""
    (result,) = await wire.exchange([Command(TAKE_SERVICE.encode())])
    wire.distributed = result.ntuples == 1 and result.get_value(0, 1) == b"t"
    return result.ntuples == 1


@asynccontextmanager
async def _committed(session: Session) -> AsyncIterator[None]:
    try:
        yield
        await session.commit()
    except BaseException:
        await _ended(session.roll_back())
        raise


@asynccontextmanager
async def _owning(wire: Wire) -> AsyncIterator[None]:
    """Takes the owner's role outside of a transaction; if it cannot be given back, the connection is closed."""
    if not wire.secured:
        yield
        return
    wire.secured = False
    try:
        await wire.exchange([Command(f"SET ROLE {OWNER}".encode())])
        yield
    finally:
        await _ended(_serving_again(wire))
        if not wire.secured:
            wire.close()


async def _serving_again(wire: Wire) -> None:
    """Gives the owner's role back, and every advisory lock that a cancelled task still holds."""
    await wire.exchange([Command(b"SELECT pg_advisory_unlock_all()"), Command(f"SET ROLE {SERVICE}".encode())])
    wire.secured = True


async def _ended(work: Awaitable[None]) -> None:
    """Waits for work that a cancellation must not interrupt. If it fails, the connection is not idle afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except psycopg.Error:
            break
    if cancelled is not None:
        raise cancelled


@contextmanager
def _taken_by_others(scope: Scope) -> Iterator[None]:
    """Turns the refusal to change a row of another user, which a session does not see, into InvalidInput."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        if scope.sees == EVERYONE:
            raise
        message = "does not own what this id names: it is another user's, or nobody's; choose another id"
        raise InvalidInput("user", message) from error


@contextmanager
def _pool_errors(trouble: str) -> Iterator[None]:
    """Turns the errors of opening a connection into DatabaseUnavailable or ConfigurationError."""
    try:
        yield
    except PoolTimeoutError as error:
        message = "every database connection is in use; try again, or raise PRIORS_POOL_SIZE"
        raise DatabaseUnavailable(message) from error
    except (DBAPIError, psycopg.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, psycopg.ProgrammingError) and cause.sqlstate is None:
            raise ConfigurationError(f"PRIORS_DATABASE_URL is refused: {_first_line(cause)}") from error
        if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
            raise DatabaseUnavailable(f"the database does not answer: {trouble or _first_line(cause)}") from error
        raise


@contextmanager
def _lost_connections(wire: Wire) -> Iterator[None]:
    """Turns a lost connection into DatabaseUnavailable, a full disk into StorageFull, and nothing else."""
    try:
        yield
    except psycopg.errors.DiskFull as error:
        message = f"the disk of the database is full, so nothing can be written: {_first_line(error)}; free some space"
        raise StorageFull(message) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if wire.broken or error.sqlstate in GOING_DOWN:
            raise DatabaseUnavailable(f"the database does not answer: {_first_line(error)}") from error
        raise


async def again_after_deadlock(attempt: Callable[[], Awaitable[T]]) -> T:
    """Runs `attempt`, which is one transaction, again if Postgres ended it to resolve a deadlock.

    Writers take their locks in one order, so deadlocks come from other work, like the database's own upkeep.
    """
    for _ in range(DEADLOCK_RETRIES):
        with suppress(psycopg.errors.DeadlockDetected):
            return await attempt()
    return await attempt()


class LockedByOthers(Exception):
    """Other transactions hold the locks that this one needs, and did not release them in time."""


async def again_while_locked(attempt: Callable[[], Awaitable[T]], *, attempts: int, pause: float) -> T:
    """Runs `attempt`, which is one transaction with a lock_timeout, again if others hold its locks.

    `pause` are the seconds between two attempts.

    Raises:
        LockedByOthers: none of the attempts got its locks.
    """
    for left in reversed(range(attempts)):
        try:
            return await attempt()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if not left:
                raise LockedByOthers from error
        await asyncio.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _first_line(error: BaseException | None) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _refuse_a_dead_connection(dbapi_connection: Any, _record: object, _proxy: object) -> None:  # noqa: ANN401 - SQLAlchemy's adapter has no public type
    """Refuses an idle connection with unread data, because the server has closed it. It costs no round trip."""
    driver = dbapi_connection.driver_connection
    if driver.closed:
        raise DisconnectionError
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    if poll.poll(0):
        raise DisconnectionError
