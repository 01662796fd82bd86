"""Distributes a migrated schema over a Citus cluster's nodes, each workspace to one (docs/how-to/deployment.md)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from app.errors import ConfigurationError, DatabaseUnavailable
from app.foundation.db.audit import SILENT
from app.foundation.db.migrations import IS_MIGRATED, REVISION, SCHEMA, lacking
from app.foundation.db.pool import CONNECT_TIMEOUT_SECONDS, OWNER, SERVICE, SESSION_SETTINGS, libpq_url
from app.foundation.db.session import Session

SHARDS = 32
"""Shards of a table, each with the workspaces of one range of hashes; more than nodes, so that some can be moved."""
_FIRST = "sources"
"""The table whose shards those of all others lie beside."""
_ON_ALL_NODES = ("workspaces", "embedding_models")
"""Tables that are read with those of every workspace, and seldom written."""
_HAS_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
_DISTRIBUTED = "SELECT logicalrelid::regclass::text FROM pg_dist_partition"
_FOREIGN_KEYS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND conparentid = 0 AND conrelid::regclass::text = ANY(%s::text[]) ORDER BY oid
"""
_IDENTITIES = """
SELECT attrelid::regclass::text, attname FROM pg_attribute
WHERE attidentity <> '' AND attrelid::regclass::text = ANY(%s::text[]) ORDER BY 1
"""
IN_ORDER = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""Lets a transaction change a table that all nodes have after tables whose foreign keys lead there: Citus changes
their shards one after the other then. One Postgres ignores the setting."""
# Citus makes the policies of shards without AS RESTRICTIVE, so that each row that one policy admits is seen. Both
# policies of such a table therefore state the conditions of both.
_POLICIES_OF_USERS = """
SELECT w.polrelid::regclass::text, pg_get_expr(w.polqual, w.polrelid), pg_get_expr(u.polqual, u.polrelid)
FROM pg_policy w JOIN pg_policy u ON u.polrelid = w.polrelid AND u.polname = 'own_user'
WHERE w.polname = 'own_workspace' AND pg_get_expr(w.polqual, w.polrelid) <> pg_get_expr(u.polqual, u.polrelid)
    AND w.polrelid::regclass::text = ANY(%s::text[]) ORDER BY 1
"""
_STATE_BOTH = "ALTER POLICY {policy} ON {table} USING ({workspace} AND {user}) WITH CHECK ({workspace} AND {user})"
# SET LOCAL goes to the nodes that a transaction reaches, which set_config() does not.
_BIND_FUNCTION = """
CREATE OR REPLACE FUNCTION priors_bind(workspace text, of_user text, seen text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SET LOCAL priors.workspace_id = %L', workspace);
    EXECUTE format('SET LOCAL priors."user" = %L', of_user);
    IF seen <> '' THEN
        EXECUTE format('SET LOCAL priors.sees = %L', seen);
    END IF;
END $$
"""
_GRANT_BIND = (
    f"ALTER FUNCTION priors_bind(text, text, text) OWNER TO {OWNER}",
    f"GRANT EXECUTE ON FUNCTION priors_bind(text, text, text) TO {SERVICE}",
)
# The nodes ask each other as the role that a session has taken. A shard that moves is filled as the owner, whose rows
# must not be under policies then; those of the owner let all rows pass anyway.
_POWERS = {OWNER: "LOGIN BYPASSRLS", SERVICE: "LOGIN"}
_LACK_POWERS = f"""
SELECT rolname FROM pg_roles
WHERE rolname = ANY(%s::text[]) AND NOT (rolcanlogin AND (rolbypassrls OR rolname <> '{OWNER}'))
"""  # noqa: S608 - a constant
_TRIGGERS = "citus.enable_unsafe_triggers"
_MOVE_SILENTLY = (f"SET LOCAL {_TRIGGERS} = 'on'", "SET LOCAL citus.propagate_set_commands = 'local'", SILENT)
"""Lets rows move to the nodes with their triggers, and without an entry in the audit log."""
SETTINGS = {
    "priors.distributed": "on",
    "citus.propagate_set_commands": "local",
    # Functions of the owner look up an index on the node that the statement has reached.
    "citus.allow_nested_distributed_execution": "on",
    # The triggers of the audit log stay within a workspace's shards.
    _TRIGGERS: "on",
    # The nodes do not learn the settings of a session of the coordinator. They plan each statement for its values.
    **{name: value for name, value in SESSION_SETTINGS.items() if name != "plan_cache_mode"},
}
"""Settings of the database on each node."""


_LACKING_TABLES = """
SELECT name FROM unnest(%(names)s::text[]) AS name
WHERE NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass(name)) ORDER BY 1
"""
_OWN_SETTINGS = """
SELECT unnest(s.setconfig) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
WHERE d.datname = current_database() AND s.setrole = 0
"""


class Distribution(NamedTuple):
    """The tables that a call has distributed; empty if there was nothing to do."""

    everywhere: Sequence[str]
    """Tables of which each node has a copy."""
    by_workspace: Sequence[str]
    """Tables of which each node has the rows of its workspaces."""


def distribute(url: str, *, shards: int = SHARDS) -> Distribution:
    """Distributes the tables that are not distributed yet, with their rows, all or none.

    `shards` counts for the first table; later ones lie beside it.

    Raises:
        ConfigurationError: the server has no Citus, or the schema is not that of this version.
        DatabaseUnavailable: the database does not answer, or refuses a statement.
    """
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
            return _distribute_tables(connection, shards)
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"the tables were not distributed: {str(error).splitlines()[0]}") from error


async def lacking_parts(session: Session) -> list[str]:
    """Returns the tables and settings of a distributed store that only `distribute` gives it; none if it is whole."""
    tables = [*_ON_ALL_NODES, *tables_of_workspaces()]
    settings = set(await session.column(_OWN_SETTINGS))
    return [
        *await session.column(_LACKING_TABLES, {"names": tables}),
        *(name for name, value in SETTINGS.items() if f"{name}={value}" not in settings),
    ]


def _distribute_tables(connection: psycopg.Connection, shards: int) -> Distribution:
    _check(connection)
    done = {name for (name,) in connection.execute(_DISTRIBUTED)}
    everywhere = [name for name in _ON_ALL_NODES if name not in done]
    by_workspace = [name for name in tables_of_workspaces() if name not in done]
    tables = [*everywhere, *by_workspace]
    connection.execute(IN_ORDER)
    for statement in _MOVE_SILENTLY:
        connection.execute(statement)
    _unite_policies(connection)
    if tables:
        connection.execute("SELECT set_config('citus.shard_count', %s, true)", [str(shards)])
        keys = _without_foreign_keys(connection, tables)
        _number_by_sequences(connection, tables)
        for name in everywhere:
            connection.execute("SELECT create_reference_table(%s)", [name])
        for name in by_workspace:
            beside = "none" if name == _FIRST else _FIRST
            connection.execute(
                "SELECT create_distributed_table(%s, 'workspace_id', colocate_with => %s)", [name, beside]
            )
        for key in keys:
            connection.execute(key)
    _prepare_sessions(connection)
    return Distribution(everywhere, by_workspace)


def tables_of_workspaces() -> list[str]:
    """Returns the tables that have rows of workspaces, _FIRST before the others."""
    names = [name for name, table in SCHEMA.items() if table.of_workspace and name not in _ON_ALL_NODES]
    return sorted(names, key=lambda name: name != _FIRST)


def _check(connection: psycopg.Connection) -> None:
    if not _value(connection, _HAS_CITUS):
        raise ConfigurationError(
            "this database has no Citus: set PRIORS_DATABASE_URL to the coordinator of a Citus cluster;"
            " docs/how-to/deployment.md says how to make one"
        )
    if mend := lacking(_value(connection, REVISION) if _value(connection, IS_MIGRATED) else None):
        raise ConfigurationError(mend)


def _value(connection: psycopg.Connection, question: str) -> Any:  # noqa: ANN401 - of any column
    row = connection.execute(sql.SQL(question)).fetchone()
    return row and row[0]


def _without_foreign_keys(connection: psycopg.Connection, tables: Sequence[str]) -> list[sql.Composed]:
    """Drops the foreign keys of these tables; returns the statements that make them again."""
    again = []
    for table, name, definition in connection.execute(_FOREIGN_KEYS, [tables]).fetchall():
        of = {"table": sql.Identifier(table), "name": sql.Identifier(name), "definition": sql.SQL(definition)}
        connection.execute(sql.SQL("ALTER TABLE {table} DROP CONSTRAINT {name}").format(**of))
        again.append(sql.SQL("ALTER TABLE {table} ADD CONSTRAINT {name} {definition}").format(**of))
    return again


def _unite_policies(connection: psycopg.Connection) -> None:
    """Lets each policy of the tables with users admit only what all of them admit."""
    for table, workspace, user in connection.execute(_POLICIES_OF_USERS, [tables_of_workspaces()]).fetchall():
        conditions = {"table": sql.Identifier(table), "workspace": sql.SQL(workspace), "user": sql.SQL(user)}
        for policy in ("own_workspace", "own_user"):
            connection.execute(sql.SQL(_STATE_BOTH).format(policy=sql.Identifier(policy), **conditions))


def _number_by_sequences(connection: psycopg.Connection, tables: Sequence[str]) -> None:
    """Replaces identity columns, which Citus cannot distribute, by a sequence of the same numbers."""
    for table, column in connection.execute(_IDENTITIES, [tables]).fetchall():
        of = {
            "table": sql.Identifier(table),
            "column": sql.Identifier(column),
            "sequence": sql.Identifier(f"{table}_{column}_numbers"),
            "owner": sql.Identifier(OWNER),
            "service": sql.Identifier(SERVICE),
        }
        for statement in (
            "CREATE SEQUENCE {sequence}",
            "SELECT setval({sequence_name}, coalesce(max({column}), 0) + 1, false) FROM {table}",
            "ALTER SEQUENCE {sequence} OWNER TO {owner}",
            "ALTER SEQUENCE {sequence} OWNED BY {table}.{column}",
            "GRANT USAGE, SELECT ON SEQUENCE {sequence} TO {service}",
            "ALTER TABLE {table} ALTER COLUMN {column} DROP IDENTITY",
            "ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT nextval({sequence_name})",
        ):
            named = sql.Literal(f"{table}_{column}_numbers")
            connection.execute(sql.SQL(statement).format(**of, sequence_name=named))


def _prepare_sessions(connection: psycopg.Connection) -> None:
    """Lets sessions of the service's roles reach the nodes, with the workspace that they are bound to."""
    for (role,) in connection.execute(_LACK_POWERS, [list(_POWERS)]).fetchall():
        connection.execute(sql.SQL("ALTER ROLE {} {}").format(sql.Identifier(role), sql.SQL(_POWERS[role])))
    for statement in (_BIND_FUNCTION, *_GRANT_BIND):
        connection.execute(sql.SQL(statement))
    database = sql.Identifier(connection.info.dbname)
    for name, value in SETTINGS.items():
        of = {"database": database, "name": sql.SQL(name), "value": sql.Literal(value)}
        connection.execute(sql.SQL("ALTER DATABASE {database} SET {name} = {value}").format(**of))
