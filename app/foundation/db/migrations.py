"""Applies migrations, and tells the state of the schema."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError

from app.errors import ConfigurationError, DatabaseUnavailable
from app.foundation.db.database import Database
from app.foundation.db.pool import CONNECT_TIMEOUT_SECONDS, libpq_url

SCRIPTS = Path(__file__).parents[3] / "migrations"
_TABLE = re.compile(r"^CREATE TABLE (\w+) \($(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^    (?!CONSTRAINT)\"?(\w+)\"? ", re.MULTILINE)
_KEY = re.compile(r"PRIMARY KEY \(([^)]*)\)")
_REFERENCE = re.compile(r"FOREIGN KEY \(([^)]*)\)\s+REFERENCES (\w+)")


class Reference(NamedTuple):
    """A foreign key: these columns are the primary key of another table."""

    columns: tuple[str, ...]
    table: str


class Table(NamedTuple):
    """A table of the schema."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    references: tuple[Reference, ...]

    @property
    def of_workspace(self) -> bool:
        """True if each row belongs to a workspace."""
        return "workspace_id" in self.columns

    @property
    def of_user(self) -> bool:
        """True if each row belongs to a user or to nobody."""
        return "user_id" in self.columns


def _tables(statements: str) -> Iterator[Table]:
    for name, body in _TABLE.findall(statements):
        references = tuple(Reference(_names(columns), table) for columns, table in _REFERENCE.findall(body))
        (key,) = _KEY.findall(body)
        yield Table(name, tuple(_COLUMN.findall(body)), _names(key), references)


def _names(columns: str) -> tuple[str, ...]:
    return tuple(name.strip(' "') for name in columns.split(","))


SCHEMA: Mapping[str, Table] = {
    table.name: table for table in _tables((SCRIPTS / "schema.sql").read_text(encoding="utf-8"))
}
"""The tables by their names, each after those that it refers to."""


LAST_BEFORE_BASELINE = "0048"
"""The last revision of the development before 0.1.0: from_0048.sql makes a store at it one at the baseline."""
_EARLIER = tuple(f"{number:04}" for number in range(1, int(LAST_BEFORE_BASELINE) + 1))
"""The revisions of that development. A dump of a store at one of them can be loaded."""
IS_MIGRATED = "SELECT to_regclass('alembic_version') IS NOT NULL"
REVISION = "SELECT version_num FROM alembic_version"
_OLDEST = "SELECT obj_description('alembic_version'::regclass)"
"""The oldest revision whose version of Priors can use the schema, as the migrations left it."""
LEAST_SERVER = 160_000
"""Postgres 16 as a `server_version_num`."""
_EXTENSION = """
SELECT x.installed,
    r.rolsuper OR x.trusted AND has_database_privilege(current_database(), 'CREATE')
FROM pg_available_extension_versions x, pg_roles r
WHERE x.name = 'vector' AND r.rolname = current_user ORDER BY x.installed DESC, x.trusted DESC LIMIT 1
"""
"""Says if pgvector is in the database, and if this role may create it: a trusted extension needs no superuser."""
_OF_WORKSPACES = ", ".join(f"'{name}'" for name, table in SCHEMA.items() if table.of_workspace)
IS_UNSECURED = f"""
SELECT count(*) > 0 FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND (
    c.relname IN ({_OF_WORKSPACES})
    OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = to_regclass('embeddings'))
) AND NOT (
    c.relowner IS NOT DISTINCT FROM to_regrole('priors_owner')
    AND EXISTS (SELECT FROM aclexplode(c.relacl) AS a WHERE a.grantee = to_regrole('priors_service'))
    AND c.relrowsecurity AND c.relforcerowsecurity
    AND 2 = (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid AND polname IN ('own_workspace', 'all_workspaces'))
    AND (NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'user_id' AND NOT attisdropped)
        OR EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = 'own_user'))
)
"""  # noqa: S608 - constants
"""Tells if a table with a workspace lacks its owner, its grants or its policies, as after a restore of a dump that
leaves these out, or on a server without the roles."""


def configuration(url: str = "") -> Config:
    """Returns Alembic's configuration for the database at `url`."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["url"] = url
    return config


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(configuration())


def head() -> str:
    """Returns the revision that this version of Priors needs."""
    revision = _scripts().get_current_head()
    assert revision is not None, "the project carries its migrations"  # noqa: S101
    return revision


def known_revisions() -> list[str]:
    """Returns the revisions that this version knows, the newest first."""
    return [*(script.revision for script in _scripts().walk_revisions()), *reversed(_EARLIER)]


def oldest_served(revision: str) -> str:
    """Returns the oldest revision whose version of Priors can use the schema at this one.

    A migration that breaks the version before it has a `breaks`, which says how.
    """
    scripts = list(_scripts().iterate_revisions(revision, "base"))
    return next((script.revision for script in scripts if getattr(script.module, "breaks", "")), scripts[-1].revision)


class SchemaState(NamedTuple):
    """The state of a database's schema."""

    revision: str | None
    """The revision that it is at; None for an empty database."""
    mend: str
    """The remedy before the database can be used; "" if none is needed."""


async def state(database: Database) -> SchemaState:
    """Returns the state of the schema.

    Raises:
        ConfigurationError: the role of the URL may not read it.
        DatabaseUnavailable: the database does not answer.
    """
    revision = await current(database)
    if (mend := lacking(revision)) and not await _is_served(database, revision):
        return SchemaState(revision, mend)
    async with database.across() as session:
        unsecured = await session.value(IS_UNSECURED)
    mend = "the tables lack their owner, grants or policies, as after a restore: run `priors store migrate`"
    return SchemaState(revision, mend if unsecured else "")


async def _is_served(database: Database, revision: str | None) -> bool:
    """Tells if the schema is newer than this version and yet serves it, as during an upgrade of several services."""
    known = known_revisions()
    if revision is None or revision in known:
        return False
    async with database.across() as session:
        return await session.value(_OLDEST) in known


def lacking(revision: str | None) -> str:
    """Returns the remedy for a database at another revision than this version needs; "" if none is needed."""
    if revision == head():
        return ""
    if revision not in (None, *known_revisions()):
        return f"the database is at {revision}, which this version of Priors does not know: upgrade Priors"
    if revision in _EARLIER[:-1]:
        return (
            f"the database is at {revision}, from before 0.1.0: `priors dump` its workspaces with the version"
            " that wrote it, and `priors workspace load` them into a new store"
        )
    return f"the database is at {revision or 'nothing'}, {head()} is needed: run `priors store migrate`"


async def current(database: Database) -> str | None:
    """Returns the revision that the database is at; None for an empty database.

    Raises:
        ConfigurationError: the role of the URL may not read it.
        DatabaseUnavailable: the database does not answer.
    """
    try:
        async with database.across() as session:
            revision: str | None = await session.value(REVISION) if await session.value(IS_MIGRATED) else None
            return revision
    except psycopg.errors.InsufficientPrivilege:
        return await _current_for_login(database)


async def _current_for_login(database: Database) -> str | None:
    """Asks as the role that migrates: after a restore the owner's role may exist, but own nothing."""
    try:
        async with await psycopg.AsyncConnection.connect(
            libpq_url(database.admin_url), connect_timeout=CONNECT_TIMEOUT_SECONDS
        ) as connection:
            row = await (await connection.execute(REVISION)).fetchone()
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"the database does not answer: {error}") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(f"the role of PRIORS_DATABASE_URL may not read the database: {error}") from error
    return None if row is None else str(row[0])


def upgrade(url: str) -> None:
    """Applies every migration that the database lacks. Concurrent calls wait for each other.

    Raises:
        ConfigurationError: the database is newer than this version, or older than LAST_BEFORE_BASELINE; the server is
            too old, or lacks pgvector, or the role may not create it.
        DatabaseUnavailable: the database does not answer, or refuses a statement.
    """
    try:
        _check_server(url)
        command.upgrade(configuration(url), "head")
    except CommandError as error:
        reason = "upgrade Priors if it is newer; if it is from before 0.1.0, dump it with the version that wrote it"
        raise ConfigurationError(f"{error}: {reason}, and load the dump into a new store") from error
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"the database does not answer: {error}") from error
    except DBAPIError as error:
        raise DatabaseUnavailable(f"the migrations were not applied: {str(error.orig).splitlines()[0]}") from error


def _check_server(url: str) -> None:
    """Raises ConfigurationError for a server on which the first migration would fail halfway, with what mends it."""
    with psycopg.connect(libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
        if connection.info.server_version < LEAST_SERVER:
            shown = connection.info.parameter_status("server_version")
            raise ConfigurationError(f"the server is Postgres {shown}, and Priors needs 16 or newer: upgrade it")
        row = connection.execute(_EXTENSION).fetchone()
    if row is None:
        raise ConfigurationError("the server has no pgvector: install it there (github.com/pgvector/pgvector)")
    is_made, may_be_made = row
    if not is_made and not may_be_made:
        raise ConfigurationError(
            "the role of PRIORS_DATABASE_URL may not create the extension vector:"
            " run `CREATE EXTENSION vector` in this database as its owner or as a superuser, and try again"
        )


def print_sql() -> None:
    """Prints the SQL of every migration, without a database."""
    command.upgrade(configuration(), "head", sql=True)
