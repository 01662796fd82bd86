"""Whole workspaces and users, whatever tables they are in: read, written and destroyed by the catalogue of the schema.

A new table with a workspace takes part by itself.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import psycopg

from app.errors import InvalidInput
from app.foundation.db.audit import AUDITED, SILENT
from app.foundation.db.migrations import SCHEMA, Reference, Table
from app.foundation.db.session import Session

LEFT_OUT = frozenset({"workspaces", "audit"})
"""Tables that are no part of a dump: the header has the workspace, and the log is this server's."""
_PAGE_ROWS = 100
"""Rows that are read at once; a run's output may take megabytes."""
# A number of the server's is left out; on a cluster it comes from a sequence, not from an identity.
_COLUMNS = """
SELECT c.relname AS table_name, array_agg(a.attname::text ORDER BY a.attnum) AS names
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0
    AND NOT a.attisdropped AND a.attidentity = '' AND a.attgenerated = '' AND a.attname <> 'workspace_id'
    AND coalesce(pg_get_expr(d.adbin, d.adrelid), '') NOT LIKE 'nextval(%%'
GROUP BY c.relname
"""
_HEADER = "SELECT to_json(w) FROM workspaces w WHERE workspace_id = %(workspace_id)s"
_MAKE = "SELECT workspace_id FROM priors_make_workspace(%(name)s, %(language)s)"
_TAKE = "SELECT set_config('priors.workspace_id', %(workspace)s::text, true)"
_COLUMNS_OF_WORKSPACES = """
SELECT attname FROM pg_attribute WHERE attrelid = 'workspaces'::regclass AND attnum > 0 AND NOT attisdropped
    AND attname NOT IN ('workspace_id', 'name', 'created_at')
"""
# Whoever writes into it has ended then, and who comes later waits and finds no workspace. The counts of refusals, which
# it may not have, lead a cluster to the workspace's node: each node has a copy of the row, and writers hold theirs.
_LOCK = """
SELECT 1 FROM workspaces w LEFT JOIN refusals r ON r.workspace_id = %(workspace)s
WHERE w.workspace_id = %(workspace)s FOR UPDATE OF w
"""
# A job that runs ends by itself, and is removed then: the worker could not note the end of one that is gone.
_FORGET_JOBS = """
DELETE FROM procrastinate_jobs WHERE args ->> 'workspace_id' = %(workspace)s::text AND status <> 'doing'
"""
_OWN_INDEXES = r"""
SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'i'
    AND c.relname LIKE 'embeddings\_%%' AND right(c.relname, length(%(ending)s)) = %(ending)s
"""
_FORGET_ENTRIES = (
    "DELETE FROM audit WHERE workspace_id = %(workspace)s AND for_user = %(user)s",
    """
    UPDATE audit SET ids = '{}', ids_hash = NULL
    WHERE workspace_id = %(workspace)s AND for_user = '' AND ids && %(names)s::text[]
    """,
)
"""Entries of other users stay: the same names may be theirs, as the key of an item is."""
_WORKSPACE = "'workspace:' || %(workspace)s::text"
"""The lexeme by which the word index tells workspaces apart."""
_READ_AS = {("lexical", "terms"): f"ts_delete(t.terms, {_WORKSPACE}) AS terms"}
_WRITTEN_AS = {
    ("lexical", "terms"): f"terms || array_to_tsvector(ARRAY[{_WORKSPACE}])",
    ("embeddings", "model_id"): "%(model)s::smallint",
    # Without the dump's vectors each memory lacks its first one, too.
    ("pending_embeddings", "partial"): "partial AND %(model)s::smallint > 0",
}
"""Columns whose values depend on the server."""
_ORDERED_BY = {"feedback": "position"}
"""Columns that the server numbers in the order of insertion."""
_OWNED = {
    "artifacts": "t.artifact_id IN (SELECT o.artifact_id FROM artifact_touches o"
    " JOIN memories m USING (workspace_id, memory_id) WHERE o.workspace_id = %(workspace)s)",
    "run_sections": "t.run_id IN (SELECT run_id FROM runs WHERE workspace_id = %(workspace)s)",
}
"""The conditions of a user's rows in tables that neither name a user nor refer to a row of one."""
_UNKNOWN = "simple"
"""The language of a workspace whose dump names none."""


class DumpedTable(NamedTuple):
    """The columns of one table that a dump has."""

    table: str
    columns: tuple[str, ...]


_TABLES = tuple(table for table in SCHEMA.values() if table.of_workspace)
"""The tables with a workspace, each after those that it refers to."""


async def workspace(session: Session) -> dict[str, Any]:
    """Returns the row of the session's workspace."""
    found: dict[str, Any] = await session.value(_HEADER)
    return found


async def make(session: Session, name: str, given: Mapping[str, Any]) -> int:
    """Makes a workspace with these columns, as far as this version has them, and returns its id."""
    workspace_id: int = await session.value(_MAKE, {"name": name, "language": str(given.get("language", _UNKNOWN))})
    await session.value(_TAKE, {"workspace": workspace_id})
    known = set(await session.column(_COLUMNS_OF_WORKSPACES))
    columns = ", ".join(f"{key} = given.{key}" for key in given if key in known)
    if columns:
        statement = f"""
        UPDATE workspaces w SET {columns} FROM json_populate_record(NULL::workspaces, %(given)s::json) AS given
        WHERE w.workspace_id = %(workspace)s
        """  # noqa: S608 - columns of the schema
        values = {"workspace": workspace_id, "given": msgspec.json.encode(given).decode()}
        await session.execute(statement, values)
    return workspace_id


async def parts(session: Session) -> dict[str, DumpedTable]:
    """Returns the tables of a dump as this database has them, each after those that it refers to."""
    known = {row.table_name: tuple(row.names) for row in await session.rows(_COLUMNS)}
    names = [table.name for table in _TABLES if table.name in known and table.name not in LEFT_OUT]
    return {name: DumpedTable(name, known[name]) for name in names}


def of_user(table: Table) -> str | None:
    """Returns the condition of a user's rows in a session that sees the user's alone; None for a table without any."""
    if table.of_user:
        return "true"
    if table.name in _OWNED:
        return _OWNED[table.name]
    return " AND ".join(sorted(f"({_referring(key)})" for key in table.references if _is_owned(key))) or None


def _is_owned(key: Reference) -> bool:
    return key.table != "workspaces" and key.table not in _OWNED and of_user(SCHEMA[key.table]) is not None


def _referring(key: Reference) -> str:
    own, table = ", ".join(f"t.{name}" for name in key.columns), SCHEMA[key.table]
    theirs = ", ".join(f"t.{name}" for name in table.key)
    return f"({own}) IN (SELECT {theirs} FROM {table.name} t WHERE {_own(of_user(table))})"  # noqa: S608 - names of tables


_SERVED = "t.model_id IN (SELECT model_id FROM embedding_models WHERE active)"
"""The condition of the vectors that a dump has."""


def _own(condition: str | None) -> str:
    return f"t.workspace_id = %(workspace)s AND {condition or 'true'}"


async def rows(session: Session, part: DumpedTable, *, user: bool) -> AsyncIterator[list[str]]:
    """Yields the rows of a table as JSON, page by page; with `user` those of the user whose rows the session sees."""
    table = SCHEMA[part.table]
    condition = of_user(table) if user else "true"
    if condition is None:
        return
    if part.table == "embeddings":
        condition = f"{condition} AND {_SERVED}"
    columns = ", ".join(_READ_AS.get((part.table, name), f"t.{name}") for name in part.columns)
    order = _ORDERED_BY.get(part.table) or ", ".join(table.key)
    cursor = f"dumped_{part.table}"
    values = {"workspace": session.workspace_id}
    await session.execute(
        f"DECLARE {cursor} NO SCROLL CURSOR FOR SELECT replace(row_to_json(dumped_row)::text, E'\\n', ' ') FROM"  # noqa: S608 - names of columns
        f" (SELECT {columns} FROM {part.table} t WHERE {_own(condition)} ORDER BY {order}) AS dumped_row",
        values,
    )
    while page := await session.column(f"FETCH {_PAGE_ROWS} FROM {cursor}"):
        yield page
    await session.execute(f"CLOSE {cursor}")


async def write(session: Session, part: DumpedTable, lines: Sequence[str], given: Mapping[str, Any]) -> int:
    """Writes rows, given as JSON, and returns their number. Columns that the dump lacks get their defaults.

    Raises:
        InvalidInput: a row cannot be stored.
    """
    columns = ", ".join(part.columns)
    values = ", ".join(_WRITTEN_AS.get((part.table, name), name) for name in part.columns)
    statement = f"""
    INSERT INTO {part.table} (workspace_id, {columns}) SELECT %(workspace)s::bigint, {values}
    FROM json_populate_recordset(NULL::{part.table}, %(dumped)s::json) RETURNING workspace_id
    """  # noqa: S608 - checked against the schema
    with storable(part.table):
        return await session.execute(statement, {**given, "dumped": f"[{','.join(lines)}]"})


@contextmanager
def storable(table: str) -> Iterator[None]:
    """Turns the refusal of what a dump has for a table into InvalidInput."""
    try:
        yield
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise InvalidInput(table, f"a row of the dump cannot be stored: {reason}") from error


async def destroy(session: Session, workspace_id: int, name: str) -> dict[str, int]:
    """Destroys a workspace with its rows, indexes and jobs; returns the numbers of rows by table."""
    values = {"workspace": workspace_id}
    await session.execute(SILENT)
    await session.execute(_LOCK, values)
    found = {
        table.name: await session.execute(
            f"DELETE FROM {table.name} WHERE workspace_id = %(workspace)s",  # noqa: S608 - a table of the schema
            values,
        )
        for table in reversed(_TABLES)
    }
    await session.execute(_FORGET_JOBS, values)
    for index in await session.column(_OWN_INDEXES, {"ending": f"_{workspace_id}_hnsw"}):
        await session.execute(f"DROP INDEX {index}")
    session.changes.note_erasure("workspace", name, None)
    return {table: count for table, count in found.items() if count}


async def audited_keys(session: Session) -> list[str]:
    """Returns the names that the log gives to what is the session's user's."""
    found = list[str]()
    for name, columns in AUDITED.items():
        if SCHEMA[name].of_user:
            key = ", ".join(f"{column}::text" for column in columns)
            found += await session.column(f"SELECT concat_ws('/', {key}) FROM {name}")  # noqa: S608 - of AUDITED
    return found


async def erase_entries_of(session: Session, workspace_id: int, user: str, names: Sequence[str]) -> None:
    """Destroys the entries of a user's objects, and takes these names and hashes out of all others."""
    values = {"workspace": workspace_id, "user": user, "names": names}
    for statement in _FORGET_ENTRIES:
        await session.execute(statement, values)


async def is_empty(session: Session, workspace_id: int) -> bool:
    """Tells whether no table has a row of a workspace but `workspaces` and the log."""
    held = " OR ".join(
        f"EXISTS (SELECT FROM {table.name} WHERE workspace_id = %(workspace)s)"
        for table in _TABLES
        if table.name not in LEFT_OUT
    )
    return not await session.value(f"SELECT {held}", {"workspace": workspace_id})
