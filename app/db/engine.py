"""Connections: one pool a process, and the two ways to use it."""

import select
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from app.db.queue import enqueued_last
from app.errors import ConfigurationError, DatabaseUnavailable

CONNECT_TIMEOUT_SECONDS = 5
DEADLOCK = "40P01"
DEADLOCK_RETRIES = 2
POOL_TIMEOUT_SECONDS = 10
SESSION_SETTINGS = {
    # 100 misses one of a hundred clusters of a clustered store altogether, at 100,000 rows (docs/retrieval.md).
    "hnsw.ef_search": "200",
    # An answer of more than ef_search hits is scanned on for; a smaller one never gets there.
    "hnsw.iterative_scan": "strict_order",
    # The statements choose their own path, so planning them anew for each query's values only costs time.
    "plan_cache_mode": "force_generic_plan",
    # The hot statements' estimated cost crosses the threshold that compiles them, which takes longer than they do.
    "jit": "off",
    # What is shown is the date that is indexed.
    "TimeZone": "UTC",
}


T = TypeVar("T")


def sqlalchemy_url(url: str) -> URL:
    """`postgres://…` or `postgresql://…` as SQLAlchemy and psycopg want it.

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
    """The same for what speaks to libpq itself."""
    return sqlalchemy_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


class Database:
    """One pool of connections to one database."""

    def __init__(self, url: str, *, pool_size: int, application_name: str = "priors") -> None:
        self.url = url
        self._engine = create_async_engine(
            sqlalchemy_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=POOL_TIMEOUT_SECONDS,
            connect_args={
                "options": " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items()),
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "application_name": application_name,
            },
        )
        self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        event.listen(self._engine.sync_engine, "checkout", _refuse_a_dead_connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A connection inside BEGIN … COMMIT; an exception rolls back. What it enqueues is added last.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        with _translated():
            async with self._engine.begin() as connection, enqueued_last(connection):
                yield connection

    @asynccontextmanager
    async def statements(self) -> AsyncIterator[AsyncConnection]:
        """A connection on which each statement is its own transaction: two round trips fewer for a reader.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        with _translated():
            async with self._autocommit.connect() as connection:
                yield connection

    @asynccontextmanager
    async def direct(self) -> AsyncIterator[psycopg.AsyncConnection]:
        """The driver's own connection, each statement its own transaction: for the hot path (docs/adr/0005).

        Reading 15 memories takes 0.27 ms this way and 1.05 ms through SQLAlchemy's result rows.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        async with self.statements() as connection, _driver_of(connection) as driver:
            yield driver

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()


async def copy(connection: AsyncConnection, statement: str, rows: bytes) -> None:
    """Send rows to a `COPY … FROM STDIN`, inside the connection's transaction.

    Raises:
        DatabaseUnavailable: the connection was lost.
    """
    async with (
        _driver_of(connection) as driver,
        driver.cursor() as cursor,
        cursor.copy(statement.encode()) as copying,
    ):
        await copying.write(rows)


@asynccontextmanager
async def _driver_of(connection: AsyncConnection) -> AsyncIterator[psycopg.AsyncConnection]:
    """The driver's connection inside SQLAlchemy's, which learns of it when it is lost."""
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, psycopg.AsyncConnection), "the URL names psycopg"  # noqa: S101
    try:
        yield driver
    except psycopg.OperationalError as error:
        if driver.broken or driver.closed:
            await connection.invalidate()
            raise DatabaseUnavailable(f"the database does not answer: {_first_line(error)}") from error
        raise


class _translated:  # noqa: N801 - reads as a word where it is used
    """Turns a lost or refused connection into DatabaseUnavailable, and nothing else."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, PoolTimeoutError):
            raise DatabaseUnavailable(
                "every database connection is in use; try again, or raise PRIORS_POOL_SIZE"
            ) from error
        if isinstance(error, ProgrammingError) and getattr(error.orig, "sqlstate", None) is None:
            raise ConfigurationError(f"PRIORS_DATABASE_URL is refused: {_first_line(error.orig)}") from error
        if isinstance(error, OperationalError | InterfaceError) and _lost(error):
            raise DatabaseUnavailable(f"the database does not answer: {_first_line(error.orig)}") from error


def sqlstate_of(error: DBAPIError) -> str | None:
    """The five letters by which Postgres names what went wrong."""
    return getattr(error.orig, "sqlstate", None)


async def again_after_deadlock(attempt: Callable[[], Awaitable[T]]) -> T:
    """`attempt`, which is one transaction, made again where Postgres broke a deadlock by ending it.

    Writers take their locks in one order, so this is for what comes between, like the database's own upkeep.
    """
    for _ in range(DEADLOCK_RETRIES):
        try:
            return await attempt()
        except OperationalError as error:
            if sqlstate_of(error) != DEADLOCK:
                raise
    return await attempt()


def _lost(error: DBAPIError) -> bool:
    return error.connection_invalidated or sqlstate_of(error) in {None, "57P01", "57P02", "57P03"}


def _first_line(error: BaseException | None) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _refuse_a_dead_connection(dbapi_connection: Any, _record: object, _proxy: object) -> None:  # noqa: ANN401 - SQLAlchemy's adapter has no public type
    """An idle connection that has something to read was closed by the server; asking costs no round trip."""
    driver_connection = dbapi_connection.driver_connection
    if driver_connection.closed:
        raise DisconnectionError
    poll = select.poll()
    poll.register(driver_connection.fileno(), select.POLLIN)
    if poll.poll(0):
        raise DisconnectionError
