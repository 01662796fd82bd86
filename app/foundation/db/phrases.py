"""Finds a phrase in all texts of a workspace, whatever tables they are in, and takes it out of them.

The columns come from the catalogue of the schema, so that a new table takes part by itself.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from uuid import UUID, uuid4

from app.foundation.db.migrations import SCHEMA, Table
from app.foundation.db.session import Session
from app.foundation.text.words import UNSPACED

_APART = frozenset({"workspaces"})
"""Tables whose texts are no content."""
# A column with a check of its own holds one of a few words; the name of a user is no text, but says whose a row is.
_COLUMNS = """
SELECT c.relname AS table_name, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS kind
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0
    AND NOT a.attisdropped AND a.attgenerated = '' AND a.attname <> 'user_id'
    AND format_type(a.atttypid, a.atttypmod) IN ('text', 'text[]', 'json', 'jsonb')
    AND NOT EXISTS (
        SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]
    )
ORDER BY c.relname, a.attnum
"""
_JOBS = "procrastinate_jobs"
_REDACT_JOBS = """
UPDATE procrastinate_jobs SET args = regexp_replace(args::text, %(pattern)s, %(sign)s, 'g')::jsonb,
    lock = regexp_replace(lock, %(pattern)s, %(sign)s, 'g'),
    queueing_lock = regexp_replace(queueing_lock, %(pattern)s, %(sign)s, 'g')
WHERE args ->> 'workspace_id' = %(workspace)s::text AND status <> 'doing' AND args::text ~ %(pattern)s
"""
_START = rf"(?:(?<![[:alnum:]])|(?<=\\[nrtbf])|(?<=[{UNSPACED}])|(?=[{UNSPACED}]))"
_END = rf"(?:(?![[:alnum:]])|(?=[{UNSPACED}])|(?<=[{UNSPACED}]))"
"""The ends of a word. In JSON a line feed before it is written with a letter, and some scripts have no blanks."""
_BLANKS = r"(?:\s|\\[nrt])+"


def pattern_of(phrase: str) -> str:
    """Returns the regular expression of Postgres that finds a phrase as whole words, in any case, in text and JSON."""
    forms = dict.fromkeys(unicodedata.normalize(form, phrase) for form in ("NFC", "NFD"))
    words = (_BLANKS.join(map(_expression, form.split())) for form in forms)
    return f"{_START}(?:{'|'.join(words)}){_END}"


def _expression(word: str) -> str:
    return "".join(map(_sign, word))


def _sign(sign: str) -> str:
    """Returns the expression of a character in any case, whatever the locale of the database."""
    cases = sorted({case for case in (sign, sign.lower(), sign.upper(), sign.casefold()) if len(case) == 1})
    if len(cases) > 1:
        return f"[{''.join(cases)}]"
    if sign in {'"', "\\"}:
        return rf"\\?\{sign}"
    return _escape(sign)


def _escape(text: str) -> str:
    return re.sub(r"([^\w\s])", r"\\\1", text)


async def _texts(session: Session) -> Mapping[str, Mapping[str, str]]:
    """Returns the columns of text of each table of workspaces, with their types."""
    found = defaultdict[str, dict[str, str]](dict)
    for row in await session.rows(_COLUMNS):
        table = SCHEMA.get(row.table_name)
        if table is not None and table.of_workspace and table.name not in _APART:
            found[row.table_name][row.name] = row.kind
    return found


def _holds(columns: Mapping[str, str]) -> str:
    """Returns the condition of a row with the phrase."""
    parts = [f"{_text(name, kind)} ~ %(pattern)s" for name, kind in columns.items()]
    return f"t.workspace_id = %(workspace)s AND ({' OR '.join(parts)})"


def _text(name: str, kind: str) -> str:
    return f"array_to_string(t.{name}, E'\\n')" if kind == "text[]" else f"t.{name}::text"


def _forms(table: str, columns: Mapping[str, str]) -> str:
    """Returns the query for the forms in which the phrase is written in a table."""
    text = ", ".join(_text(name, kind) for name, kind in columns.items())
    found = f"regexp_matches(concat_ws(E'\\n', {text}), %(pattern)s, 'g')"
    return f"SELECT DISTINCT form[1] FROM {table} t, {found} AS form WHERE {_holds(columns)}"  # noqa: S608 - names of the schema


def _without(name: str, kind: str) -> str:
    """Returns the expression of a column without the phrase."""
    if kind == "text[]":
        one = "regexp_replace(one, %(pattern)s, %(sign)s, 'g')"
        own = f"unnest(t.{name}) WITH ORDINALITY AS own(one, place)"
        return f"ARRAY(SELECT {one} FROM {own} ORDER BY place)"  # noqa: S608 - a column of the schema
    return f"regexp_replace(t.{name}::text, %(pattern)s, %(sign)s, 'g')::{kind}"


def _of_memories() -> Iterator[Table]:
    """Yields the tables whose rows are memories, or parts of one."""
    found = {"memories"}
    for table in SCHEMA.values():
        if table.name == "memories" or (
            "memory_id" in table.key and any(reference.table in found for reference in table.references)
        ):
            found.add(table.name)
            yield table


async def memories_with(session: Session, workspace_id: int, pattern: str) -> list[UUID]:
    """Returns the memories that have the phrase in their text or in anything that is a part of them."""
    texts = await _texts(session)
    parts = [
        f"SELECT t.memory_id FROM {table.name} t WHERE {_holds(texts[table.name])}"  # noqa: S608 - names of the schema
        for table in _of_memories()
        if table.name in texts
    ]
    return await session.column(" UNION ".join(parts), {"workspace": workspace_id, "pattern": pattern})


async def count_rows(session: Session, workspace_id: int, pattern: str) -> dict[str, int]:
    """Returns the number of rows with the phrase in each table that is no part of a memory."""
    own = {table.name for table in _of_memories()}
    values = {"workspace": workspace_id, "pattern": pattern}
    found = {
        name: await session.value(f"SELECT count(*) FROM {name} t WHERE {_holds(columns)}", values)  # noqa: S608 - the same
        for name, columns in (await _texts(session)).items()
        if name not in own
    }
    return {name: count for name, count in found.items() if count}


async def redact(session: Session, workspace_id: int, pattern: str) -> None:
    """Puts a sign in the place of the phrase in all tables, the log and the jobs among them.

    Each form in which it is written has a sign of its own: two names that differ in case alone stay two names.
    """
    signs = defaultdict[str, str](lambda: f"[forgotten {uuid4().hex[:6]}]")
    for name, columns in (await _texts(session)).items():
        changes = ", ".join(f"{column} = {_without(column, kind)}" for column, kind in columns.items())
        update = f"UPDATE {name} t SET {changes} WHERE {_holds(columns)}"  # noqa: S608 - the same
        values = {"workspace": workspace_id, "pattern": pattern}
        for form in await session.column(_forms(name, columns), values):
            exact = f"{_START}{_escape(form)}{_END}"
            await session.execute(update, {**values, "pattern": exact, "sign": signs[exact]})
    # A form that stands in jobs alone has no sign yet.
    for form in (*signs, pattern):
        await session.execute(_REDACT_JOBS, {"workspace": workspace_id, "pattern": form, "sign": signs[form]})
