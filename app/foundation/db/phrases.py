"""Finds a phrase in all texts of a workspace, whatever tables they are in, and takes it out of them.

The columns come from the catalogue of the schema, so that a new table takes part by itself.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import msgspec

from app.foundation.db.migrations import SCHEMA, Table
from app.foundation.db.session import Row, Session
from app.foundation.text.words import UNSPACED

_SEARCHED = {table.name for table in SCHEMA.values() if table.of_workspace} - {"workspaces"}
"""Tables whose texts are content."""
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
_FIXED = frozenset(
    """audit.operation audit.object contexts.format contexts.model cues.edited cues.model effects.kind
    issue_occurrences.status maps.kind memories.language observations.model recalls.purpose recalls.mode
    refusals.reason sessions.format""".split()  # noqa: SIM905 - fifteen quoted names cannot be read
)
"""The columns without a check whose values are the service's own: names of models, formats, kinds and states."""
_FIXED_KEYS = frozenset(
    """mode priority format role allocation counter model status severity family state trust scope origin
    kind""".split()  # noqa: SIM905 - as above
)
"""The keys of the service's own documents whose values are fixed, too."""
_GIVEN = frozenset({"metadata", "stages", "tools", "request", "args"})
"""The columns of documents all of whose values were given: no key of them is fixed."""
_STRINGS = """
SELECT one #>> '{{}}' AS own FROM jsonb_path_query(
    {column}::jsonb, 'strict $.** ? (@.type() == "object").keyvalue() ? ({of_value}).value'
) AS one
UNION ALL SELECT one #>> '{{}}' FROM jsonb_path_query(
    {column}::jsonb, 'strict $.** ? (@.type() == "array")[*] ? (@.type() == "string")'
) AS one
"""
"""The strings of a document of JSON, without its keys and the values of fixed ones."""
_BETWEEN = r"E'\x01'"
"""Stands between two texts that are searched at once: it is no blank, so that no phrase reaches over it."""
_PAGE_ROWS = 100
"""Documents that are read at once."""
_DECODER = msgspec.json.Decoder(float_hook=Decimal)
_ENCODER = msgspec.json.Encoder(decimal_format="number")
"""Read and write JSON with the figures as they are."""
_JOBS_WITH = """
SELECT t.id, t.args::text AS document, t.lock, t.queueing_lock FROM procrastinate_jobs t
WHERE t.args ->> 'workspace_id' = %(workspace_id)s::text AND t.status <> 'doing' AND {text} ~ %(pattern)s
"""
_REDACT_JOB = """
UPDATE procrastinate_jobs SET args = %(document)s::jsonb, lock = %(lock)s, queueing_lock = %(queueing_lock)s
WHERE id = %(id)s
"""
_REDACT = """
SELECT regexp_replace(one, %(pattern)s, %(sign)s, 'g')
FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS given(one, place) ORDER BY place
"""
_FORMS = """
SELECT DISTINCT form[1] FROM unnest(%(texts)s::text[]) AS given(one), regexp_matches(one, %(pattern)s, 'g') AS form
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
        if row.table_name in _SEARCHED and f"{row.table_name}.{row.name}" not in _FIXED:
            found[row.table_name][row.name] = row.kind
    return found


def _holds(columns: Mapping[str, str]) -> str:
    """Returns the condition of a row with the phrase."""
    parts = [
        # array_to_string() is no function for an UPDATE on a cluster.
        f"EXISTS (SELECT FROM unnest(t.{name}) AS one WHERE one ~ %(pattern)s)"
        if kind == "text[]"
        else f"{_text(name, kind)} ~ %(pattern)s"
        for name, kind in columns.items()
    ]
    return f"t.workspace_id = %(workspace_id)s AND ({' OR '.join(parts)})"


def _text(name: str, kind: str) -> str:
    """Returns the expression of the text of a column: of JSON its strings alone."""
    if kind == "text":
        return f"t.{name}"
    if kind == "text[]":
        return f"array_to_string(t.{name}, {_BETWEEN})"
    own = ('@.value.type() == "string"', *(f'@.key != "{key}"' for key in sorted(_fixed_keys(name))))
    strings = _STRINGS.format(column=f"t.{name}", of_value=" && ".join(own))
    return f"(SELECT string_agg(own, {_BETWEEN}) FROM ({strings}) AS owned)"  # noqa: S608 - a column of the schema


def _fixed_keys(column: str) -> frozenset[str]:
    return frozenset() if column in _GIVEN else _FIXED_KEYS


def _forms(table: str, columns: Mapping[str, str]) -> str:
    """Returns the query for the forms in which the phrase is written in a table."""
    text = ", ".join(_text(name, kind) for name, kind in columns.items())
    found = f"regexp_matches(concat_ws({_BETWEEN}, {text}), %(pattern)s, 'g')"
    return f"SELECT DISTINCT form[1] FROM {table} t, {found} AS form WHERE {_holds(columns)}"  # noqa: S608 - names of the schema


def _without(name: str, kind: str) -> str:
    """Returns the expression of a column without the phrase."""
    if kind == "text[]":
        one = "regexp_replace(one, %(pattern)s, %(sign)s, 'g')"
        own = f"unnest(t.{name}) WITH ORDINALITY AS own(one, place)"
        return f"ARRAY(SELECT {one} FROM {own} ORDER BY place)"  # noqa: S608 - a column of the schema
    return f"regexp_replace(t.{name}, %(pattern)s, %(sign)s, 'g')"


def _documents(columns: Mapping[str, str]) -> dict[str, str]:
    return {name: kind for name, kind in columns.items() if kind in {"json", "jsonb"}}


def _change_strings(value: Any, change: Callable[[str], str], fixed: frozenset[str]) -> Any:  # noqa: ANN401 - any JSON
    """Returns a decoded document of JSON with its strings changed, but not its keys and the values of fixed ones."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_change_strings(item, change, fixed) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item if key in fixed and isinstance(item, str) else _change_strings(item, change, fixed)
        for key, item in value.items()
    }


def _of_memories() -> Iterator[Table]:
    """Yields the tables whose rows are memories, or parts of one."""
    found = {"memories"}
    for table in SCHEMA.values():
        if table.name == "memories" or (
            "memory_id" in table.key and any(reference.table in found for reference in table.references)
        ):
            found.add(table.name)
            yield table


async def memories_with(session: Session, pattern: str) -> list[UUID]:
    """Returns the memories that have the phrase in their text or in anything that is a part of them."""
    texts = await _texts(session)
    parts = [
        f"SELECT t.memory_id FROM {table.name} t WHERE {_holds(texts[table.name])}"  # noqa: S608 - names of the schema
        for table in _of_memories()
        if table.name in texts
    ]
    return await session.column(" UNION ".join(parts), {"pattern": pattern})


async def count_rows(session: Session, pattern: str) -> dict[str, int]:
    """Returns the number of rows with the phrase in each table that is no part of a memory."""
    own = {table.name for table in _of_memories()}
    values = {"pattern": pattern}
    found = {
        name: await session.value(f"SELECT count(*) FROM {name} t WHERE {_holds(columns)}", values)  # noqa: S608 - the same
        for name, columns in (await _texts(session)).items()
        if name not in own
    }
    return {name: count for name, count in found.items() if count}


async def redact(session: Session, pattern: str) -> None:
    """Puts a sign in the place of the phrase in all tables, the log and the jobs among them, as their owner.

    Each form in which it is written has a sign of its own: two names that differ in case alone stay two names.
    """
    redaction = _Redaction(session, pattern)
    for name, columns in (await _texts(session)).items():
        # The documents first: their rows are found by their keys, which may hold the phrase.
        if documents := _documents(columns):
            await redaction.of_documents(name, documents)
        if texts := {column: kind for column, kind in columns.items() if column not in documents}:
            await redaction.of_texts(name, texts)
    await redaction.of_jobs()


class _Redaction:
    """The redaction of one phrase, with the sign of each of its forms."""

    def __init__(self, session: Session, pattern: str) -> None:
        self._session, self._pattern = session, pattern
        self._signs = defaultdict[str, str](lambda: f"[forgotten {uuid4().hex[:6]}]")

    async def of_texts(self, table: str, columns: Mapping[str, str]) -> None:
        """Redacts the columns of text of a table."""
        changes = ", ".join(f"{column} = {_without(column, kind)}" for column, kind in columns.items())
        update = f"UPDATE {table} t SET {changes} WHERE {_holds(columns)}"  # noqa: S608 - names of the schema
        for form in await self._session.column(_forms(table, columns), {"pattern": self._pattern}):
            await self._session.execute(update, self._values(form))

    async def of_documents(self, table: str, columns: Mapping[str, str]) -> None:
        """Redacts the columns of JSON of a table: the strings of the documents, never their keys."""
        keys = [name for name in SCHEMA[table].key if name != "workspace_id"]
        chosen = [*(f"t.{name} AS key_{name}" for name in keys), *(f"t.{name}::text AS {name}" for name in columns)]
        changes = ", ".join(f"{name} = %({name})s::{kind}" for name, kind in columns.items())
        row_of = " AND ".join(["t.workspace_id = %(workspace_id)s", *(f"t.{name} = %(key_{name})s" for name in keys)])
        update = f"UPDATE {table} t SET {changes} WHERE {row_of}"  # noqa: S608 - names of the schema
        found = f"SELECT {', '.join(chosen)} FROM {table} t WHERE {_holds(columns)}"  # noqa: S608 - the same
        async for row in self._rows(found):
            values = row._asdict()
            for name in columns:
                if values[name] is not None:
                    values[name] = await self._document(values[name], _fixed_keys(name))
            await self._session.execute(update, values)

    async def of_jobs(self) -> None:
        """Redacts the arguments of jobs that do not run, and the subjects of their locks."""
        statement = _JOBS_WITH.format(text=_text("args", "jsonb"))
        for row in await self._session.rows(statement, {"pattern": self._pattern}):
            locks = {name: await self._lock(getattr(row, name)) for name in ("lock", "queueing_lock")}
            await self._session.execute(
                _REDACT_JOB, {"id": row.id, "document": await self._document(row.document), **locks}
            )

    async def _rows(self, statement: str) -> AsyncIterator[Row]:
        await self._session.execute(f"DECLARE forgotten NO SCROLL CURSOR FOR {statement}", {"pattern": self._pattern})
        while page := await self._session.rows(f"FETCH {_PAGE_ROWS} FROM forgotten"):
            for row in page:
                yield row
        await self._session.execute("CLOSE forgotten")

    async def _document(self, document: str, fixed: frozenset[str] = frozenset()) -> str:
        value, texts = _DECODER.decode(document), dict[str, str]()
        _change_strings(value, lambda text: texts.setdefault(text, text), fixed)
        redacted = dict(zip(texts, await self._redact_texts(list(texts)), strict=True))
        return _ENCODER.encode(_change_strings(value, redacted.__getitem__, fixed)).decode()

    async def _lock(self, lock: str | None) -> str | None:
        """Returns the lock of a job: after the task and the workspace stands its subject, which may be a name."""
        task, own, subject = (lock or "").partition(f":{self._session.workspace_id}:")
        return f"{task}{own}{(await self._redact_texts([subject]))[0]}" if own else lock

    async def _redact_texts(self, texts: Sequence[str]) -> list[str]:
        """Returns these texts without the phrase."""
        given = list(texts)
        for form in await self._session.column(_FORMS, {"texts": given, "pattern": self._pattern}):
            given = await self._session.column(_REDACT, {"texts": given, **self._values(form)})
        return given

    def _values(self, form: str) -> dict[str, str]:
        exact = f"{_START}{_escape(form)}{_END}"
        return {"pattern": exact, "sign": self._signs[exact]}
