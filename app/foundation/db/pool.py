"""A pool of connections to one server, or to the one of several that takes writes; the roles that they take.

One of the two roles owns everything and the other serves. Neither may log in, except on a Citus cluster, whose nodes
ask each other as these roles. The role of the URL is a member of both; a connection takes the service's as soon as it
is opened, and the owner's only for work across workspaces. migrations/security.sql makes both, and `priors store
migrate` makes them again.
"""

import errno
import os
import re
import select
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import PoolProxiedConnection, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import create_async_engine

from app.errors import ConfigurationError, ConnectionsInUse, DatabaseUnavailable, StorageFull
from app.foundation.db.wire import Command, Wire

OWNER = "priors_owner"
SERVICE = "priors_service"
LOGIN = "priors"
"""The role that the embedded Postgres' URL names for the service."""

DISTRIBUTED = "coalesce(current_setting('priors.distributed', true) = 'on', false)"
"""Tells if the tables are distributed over the nodes of a Citus cluster, as `priors store distribute` noted it."""

_TAKE_SERVICE = f"""
SELECT set_config('role', '{SERVICE}', false), {DISTRIBUTED} AS distributed,
    -- A generic plan knows no workspace, so no node.
    CASE WHEN {DISTRIBUTED} THEN set_config('plan_cache_mode', 'auto', false) END
FROM pg_roles
WHERE rolname = '{SERVICE}'
    AND CASE WHEN current_setting('server_version_num')::int >= 160000 THEN pg_has_role(session_user, oid, 'SET') END
"""  # noqa: S608 - constants
"""Takes the service's role if it exists and may be taken, and tells whether the tables are distributed. A database
without this role is not migrated yet."""

LOGIN_POWERS = """
SELECT session_user AS login, rolsuper AS superuser, rolbypassrls AS bypasses, current_user AS role
FROM pg_roles WHERE rolname = session_user
"""
"""Reads the powers of the role that the URL names, as one row. Row-level security applies to a superuser, or to a
role with BYPASSRLS, only while it has taken the service's role: `doctor` warns of both."""

MAKE_LOGIN = f"""
DO $$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['{OWNER}', '{SERVICE}'] LOOP
        IF to_regrole(role) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
    IF to_regrole('{LOGIN}') IS NULL THEN
        CREATE ROLE {LOGIN} LOGIN;
    END IF;
    GRANT {OWNER}, {SERVICE} TO {LOGIN} WITH INHERIT FALSE, SET TRUE;
END $$
"""
"""Makes the three roles of an embedded Postgres, run by its superuser at every start. Its login inherits nothing: a
connection that has not taken a role can read no table."""

EVERYONE, OWN_ROWS, SHARED = "", "own", "shared"
"""The rows that a session sees, by the policy `own_user`: those of all users and of nobody, only those of its user, or
those of its user and nobody's."""


class WorkspaceScope(Protocol):
    """The part of a tenant that a session needs."""

    @property
    def workspace_id(self) -> int:
        """The tenant's id; 0 if it does not exist yet, so that nothing is found."""

    @property
    def user(self) -> str:
        """The user for whom is written; "" for nobody."""

    @property
    def sees(self) -> str:
        """The users whose rows are seen: EVERYONE, OWN_ROWS or SHARED."""


def users_of(user: str, sees: str) -> tuple[str, ...] | None:
    """Returns the users whose rows are seen, "" for nobody; None for all."""
    if sees == EVERYONE:
        return None
    return (user,) if sees == OWN_ROWS else tuple(dict.fromkeys(("", user)))


class Scope(NamedTuple):
    """The rows that a session may see, and the way in which it puts statements into transactions."""

    workspace_id: int | None
    """The workspace whose rows are seen; None for all workspaces."""
    transaction: bool
    """True if all statements are one transaction; False if each statement is its own."""
    user: str = ""
    """The user for whom is written; "" for nobody."""
    sees: str = EVERYONE
    snapshot: bool = False
    """True if all statements of the transaction see the state at the first one."""


CONNECT_TIMEOUT_SECONDS = 5
SILENCE = {"keepalives_idle": "20", "keepalives_interval": "5", "keepalives_count": "4", "tcp_user_timeout": "40000"}
"""Gives a TCP connection up after 40 seconds without a sign of the server, in seconds and milliseconds. Without it, a
statement whose server was lost with its network waits for two hours. What the URL says of these wins."""
POOL_TIMEOUT_SECONDS = 10
SESSION_SETTINGS = {
    # 100 misses one of a hundred clusters of a clustered store altogether, at 100,000 rows (benchmarks/retrieval.md).
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
_GOING_DOWN = frozenset({"57P01", "57P02", "57P03", "08001", "08006"})
"""SQLSTATEs of a server that stops, was killed, or is starting; and of one whose cluster misses a node."""
_NODE_LOST = (
    "failure on connection",
    "terminating connection",
    "closed the connection unexpectedly",
    "connection has been closed unexpectedly",
    "could not receive data from server",
    "could not send data to server",
    "no connection to the server",
    "could not commit transaction for shard",
    "failed to prepare transaction",
)
"""The words of Citus and of its libpq about a node that was lost in a transaction, with the SQLSTATE of any internal
error. Those of Citus are English everywhere, those of a node and of libpq are in the language of `lc_messages`."""
READ_ONLY_DISK = os.strerror(errno.EROFS)
"""The words of the system about a disk that is mounted read-only, where the server's messages are in English."""
OWN_FILES = frozenset({"buffile.c", "md.c", "fd.c", "slru.c", "xlog.c"})
"""The sources of Postgres that open and write its own files, and check no privilege. The server names the source of
each error, in any language; a cluster's coordinator names itself for its nodes."""
_WIRE = "wire"
"""The key under which the pool keeps a connection's Wire."""
_DATABASE_URL = "PRIORS_DATABASE_URL"
_SEVERAL_HOSTS = re.compile(r"(\w+(?:\+\w+)?://(?:[^@/?]*@)?)([^@/?]*,[^@/?]*)((?:/[^?]*)?)(?:\?(.*))?")
"""A URL of several hosts: before them, the hosts, the database, the parameters."""


def sqlalchemy_url(url: str) -> URL:
    """Returns a `postgres://…` or `postgresql://…` URL in the form that SQLAlchemy and psycopg expect.

    It may name several hosts, `postgresql://user@one:5432,two:5432/database?target_session_attrs=read-write`.

    Raises:
        ConfigurationError: not a Postgres URL.
    """
    try:
        parsed = make_url(_with_hosts_as_parameters(url))
    except (ArgumentError, ValueError, psycopg.ProgrammingError):
        raise ConfigurationError(f"{_DATABASE_URL} is not a URL; write postgresql://user@host/database") from None
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise ConfigurationError(
            f"{_DATABASE_URL} names {parsed.get_backend_name()}; Priors needs postgresql://user@host/database"
        )
    return parsed.set(drivername="postgresql+psycopg", query={**SILENCE, **parsed.query})


def libpq_url(url: str) -> str:
    """Returns the URL in the form that libpq expects."""
    return sqlalchemy_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _with_hosts_as_parameters(url: str) -> str:
    """Returns a URL of several hosts with these among its parameters, where SQLAlchemy reads them and libpq too."""
    if (several := _SEVERAL_HOSTS.fullmatch(url)) is None:
        return url
    before, hosts, database, parameters = several.groups()
    known = conninfo_to_dict(f"postgresql://{hosts}")
    named = urlencode({"host": known["host"], "port": known["port"]})
    return f"{before}{database}?{'&'.join(filter(None, (named, parameters)))}"


class Pool:
    """Connections, each of which runs as the service's role, which owns nothing."""

    def __init__(self, url: str, *, size: int) -> None:
        self.trouble = ""
        """The reason why the server does not start, if its keeper knows it."""
        self.full = ""
        """The reason why the latest write found no room; "" if none did."""
        self._engine = create_async_engine(
            sqlalchemy_url(url),
            isolation_level="AUTOCOMMIT",
            pool_size=size,
            max_overflow=0,
            pool_timeout=POOL_TIMEOUT_SECONDS,
            pool_reset_on_return=None,
            connect_args={
                "options": " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items()),
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "application_name": "priors",
            },
        )
        event.listen(self._engine.sync_engine, "checkout", _refuse_a_dead_connection)

    async def close(self) -> None:
        """Closes every connection."""
        await self._engine.dispose()

    @asynccontextmanager
    async def wire(self) -> AsyncIterator[Wire]:
        """Opens a connection. A connection that is not idle at the end is closed.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
            ConfigurationError: the URL has a parameter that libpq does not know.
            StorageFull: the disk of the server is full.
        """
        with _pool_errors(self.trouble):
            pooled = await self._engine.raw_connection()
        wire = _wire_of(pooled)
        try:
            with _refused_writes(), _lost_connections(wire):
                if not wire.secured:
                    wire.secured = await _takes_service(wire)
                yield wire
        except StorageFull as error:
            self.full = str(error)
            raise
        finally:
            if not wire.idle:
                wire.close()
            # The connection needs no reset, so this does not wait.
            pooled.close()


def _wire_of(pooled: PoolProxiedConnection) -> Wire:
    wire = pooled.info.get(_WIRE)
    if wire is None:
        wire = pooled.info[_WIRE] = Wire(cast("psycopg.AsyncConnection", pooled.driver_connection))
    return cast("Wire", wire)


async def _takes_service(wire: Wire) -> bool:
    """Takes the service's role; returns False if it does not exist yet, and the next call tries again."""
    (result,) = await wire.exchange([Command(_TAKE_SERVICE.encode())])
    wire.distributed = result.ntuples == 1 and result.get_value(0, 1) == b"t"
    return result.ntuples == 1


@contextmanager
def _pool_errors(trouble: str) -> Iterator[None]:
    """Turns the errors of opening a connection into DatabaseUnavailable or ConfigurationError."""
    try:
        yield
    except PoolTimeoutError as error:
        message = "every database connection is in use; try again, or raise PRIORS_POOL_SIZE"
        raise ConnectionsInUse(message) from error
    except (DBAPIError, psycopg.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, psycopg.ProgrammingError) and cause.sqlstate is None:
            raise ConfigurationError(f"{_DATABASE_URL} is refused: {_first_line(cause)}") from error
        if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
            raise DatabaseUnavailable(f"the database does not answer: {trouble or _first_line(cause)}") from error
        raise


@contextmanager
def _refused_writes() -> Iterator[None]:
    """Turns the error of a full disk, or of a read-only one, into StorageFull."""
    try:
        yield
    except psycopg.errors.DiskFull as error:
        message = f"the disk of the database is full, so nothing can be written: {_first_line(error)}; free some space"
        raise StorageFull(message) from error
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InternalError_) as error:
        if not _is_of_a_read_only_disk(error):
            raise
        reason = f"the disk of the database is read-only: {_first_line(error)}"
        message = f"{reason}; mount it for writing, and let Postgres write its files"
        raise StorageFull(message) from error


def _is_of_a_read_only_disk(error: psycopg.Error) -> bool:
    """Tells whether the server may not write its files.

    Postgres gives that the SQLSTATE of a missing privilege, and for a temporary file that of an internal error.
    """
    if READ_ONLY_DISK in str(error):
        return True
    return isinstance(error, psycopg.errors.InsufficientPrivilege) and error.diag.source_file in OWN_FILES


@contextmanager
def _lost_connections(wire: Wire) -> Iterator[None]:
    """Turns a lost connection into DatabaseUnavailable, and nothing else.

    A server that has become a replica, as after a switch of the primary, counts as lost: its connection is closed.
    """
    try:
        yield
    except psycopg.errors.ReadOnlySqlTransaction as error:
        wire.close()
        message = "the database takes no writes: it is a replica, or was made read-only; name all servers in the URL"
        raise DatabaseUnavailable(f"{message}, with target_session_attrs=read-write") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if wire.broken or error.sqlstate in _GOING_DOWN:
            raise DatabaseUnavailable(f"the database does not answer: {_first_line(error)}") from error
        raise
    except psycopg.errors.InternalError_ as error:
        if any(words in str(error) for words in _NODE_LOST):
            raise DatabaseUnavailable(f"the database does not answer: {_first_line(error)}") from error
        raise


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
