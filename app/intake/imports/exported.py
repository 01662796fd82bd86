"""Reads runs and observations from an earlier harness's exports, and finds the ones that are stored already."""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from itertools import zip_longest
from typing import Any
from uuid import UUID

import psycopg
from msgspec import structs

from app.errors import InvalidInput
from app.foundation.db.session import Session
from app.foundation.text.data import check_value, read_toml
from app.foundation.values import frozen
from app.intake.runs import store as runs
from app.intake.runs.observations.observation import facts_of
from app.intake.runs.run import NewRun, Run
from app.storage.memories.memory import NewMemory, ObservationDetail

_FIELDS: Mapping[str, Mapping[str, tuple[str, str]]] = read_toml(
    "app.intake.imports", "fields.toml", dict[str, dict[str, tuple[str, str]]]
)
_SCORES = ("wiggum_scores", "round_scores", "scores")
_LISTS = frozenset({"facts", "queries"})
"""Keys of an observation that are empty where their value is 0 or false."""
_PLAIN = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
REFUSED_BY_THE_DATABASE = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError)

# Observations that a person deleted, a better one replaced, or quarantine holds; an import must not restore them.
_TAKEN_OUT = """
SELECT DISTINCT m.content_hash FROM memories m
WHERE m.workspace_id = %(workspace_id)s AND m.kind = 'observation' AND m.source_id IS NULL
    AND m.retired_as IN ('deleted', 'superseded', 'quarantined')
    AND m.content_hash = ANY(%(hashes)s::bytea[])
    AND NOT EXISTS (
        SELECT FROM memories o
        WHERE o.workspace_id = %(workspace_id)s AND o.valid_until IS NULL AND o.content_hash = m.content_hash
            AND o.kind = m.kind AND o.source_id IS NULL AND o.ordinal IS NULL
    )
"""

# An id takes precedence over a title, and a live memory over a retired one. A join by either of two conditions would
# compare every name with every observation.
_NAMED = """
WITH named AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::text[], %(titles)s::text[]) WITH ORDINALITY AS given(id, title, place)
), observed AS MATERIALIZED (
    SELECT m.memory_id, m.valid_until, m.created_at, m.metadata ->> 'imported_id' AS id, m.title FROM memories m
    WHERE m.workspace_id = %(workspace_id)s AND m.kind = 'observation'
)
SELECT DISTINCT ON (place) place, memory_id FROM (
    SELECT named.place, 1 AS choice, observed.* FROM named JOIN observed USING (id)
    UNION ALL
    SELECT named.place, 2, observed.* FROM named JOIN observed USING (title)
) AS found
ORDER BY place, choice, valid_until IS NULL DESC, created_at DESC
"""

_JUDGED = """
SELECT coalesce(bool_or(request ->> 'final_score' IS NOT NULL), false) AS final_score,
    coalesce(bool_or(request ->> 'verdict' <> ''), false) AS verdict
FROM compressions WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND NOT earlier
"""


@frozen
class ImportedObservation:
    """An observation, with its judgement if the earlier store has one."""

    memory: NewMemory
    row_id: str = ""
    quality: int | None = None
    """The quality in the earlier store; None if its feedback log alone gives it."""
    ratings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The rows of its feedback log: rating, comment and moment, by a name that no other row of it has."""


Entry = tuple[str, NewRun | ImportedObservation | str]
"""The name of a line or row, with its content, or with the reason why it is left out."""


def run_of(given: Mapping[str, Any]) -> NewRun:
    """Returns the run of an exported line; unknown keys go into its metadata, word for word.

    Raises:
        InvalidInput: it has no `run_id`, or a value has the wrong type for its key.
    """
    run_id = given.get("run_id")
    if isinstance(run_id, bool) or not isinstance(run_id, str | int) or not str(run_id).strip():
        raise InvalidInput("run_id", "is missing; it names the run")
    values, taken = _read(given, "run")
    scored = next((key for key in _SCORES if isinstance(given.get(key), list)), "")
    if scores := tuple(number_of(scored, item) for item in given.get(scored, ()) if item is not None):
        values = {"round_scores": scores, "final_score": scores[-1], **values}
    whole, _ = _read(given, "spent")
    if whole:
        values.setdefault("stages", {"run": whole})
    metadata = {key: value for key, value in given.items() if key not in taken | {"run_id", scored or None}}
    return NewRun(run_id=str(run_id), metadata=metadata or None, **values)


def _read(given: Mapping[str, Any], record: str) -> tuple[dict[str, Any], set[str]]:
    """Returns the fields of a record by the map of its kind, and the keys that they were read from."""
    values, taken = dict[str, Any](), set[str]()
    for key, (name, reader) in _FIELDS[record].items():
        value = None if given.get(key) is None else _READERS[reader](key, given[key])
        if value is not None:
            values[name] = value
            taken.add(key)
    return values, taken


def given_memories(run: NewRun) -> list[tuple[str | None, str | None]]:
    """Returns id and title, as far as they are known, of each memory that the earlier store gave to a run."""
    lists = ((run.metadata or {}).get(name) for name in ("memory_hits", "memory_context_titles"))
    ids, titles = (found if isinstance(found, list) else [] for found in lists)
    return [
        (None if name is None else str(name), None if title is None else str(title))
        for name, title in zip_longest(ids, titles)
    ]


async def memories_named(
    session: Session, named: Mapping[str, Sequence[tuple[str | None, str | None]]]
) -> dict[str, list[UUID]]:
    """Returns, for each run, the observations with these ids in the earlier store, or else with these titles; once."""
    given = [(run_id, *item) for run_id, items in named.items() for item in items]
    values = {"ids": [known for _, known, _ in given], "titles": [title for _, _, title in given]}
    found: dict[str, list[UUID]] = {run_id: [] for run_id in named}
    for place, memory_id in await session.rows(_NAMED, values):
        of_run = found[given[place - 1][0]]
        if memory_id not in of_run:
            of_run.append(memory_id)
    return found


def observation_of(fields: Mapping[str, Any]) -> NewMemory:
    """Returns the observation of an exported line or row; its fields may be nested in `observation`.

    Raises:
        InvalidInput: a value has the wrong type for its key, or cannot be stored.
    """
    inner = fields.get("observation")
    given = {**fields, **inner} if isinstance(inner, dict) else fields
    said = {key: value for key, value in given.items() if value or (value != "" and key not in _LISTS)}
    detail = ObservationDetail(**_read(said, "detail")[0])
    check_value(detail)
    memory, _ = _read(said, "memory")
    body = detail.body(memory.pop("body", ""))
    return NewMemory(kind="observation", body=body, observation=detail, **memory)


def _tags(key: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    """Returns the tags of a list, of a JSON list as text, or of a text that separates them by commas."""
    if isinstance(value, list) and all(isinstance(tag, str | int | float) for tag in value):
        return tuple(map(str, value))
    if not isinstance(value, str):
        raise InvalidInput(key, "must be a list of texts, or a text with commas between them")
    try:
        loaded = json.loads(value)
    except (ValueError, RecursionError):
        loaded = value.split(",")
    items = loaded if isinstance(loaded, list) else [loaded]
    return tuple(dict.fromkeys(str(item).strip()[:100] for item in items if str(item).strip()))[:64]


def only_new(run: NewRun, filled: frozenset[str]) -> NewRun | None:
    """Returns the fields of a run that are not stored yet; None if all are. An import replaces no stored field."""
    if not filled:
        return run
    said: dict[str, Any] = {name: None for name in filled if "." not in name}
    metadata = {key: value for key, value in (run.metadata or {}).items() if f"metadata.{key}" not in filled}
    left = structs.replace(run, **said, metadata=metadata or None)
    return None if left == NewRun(run_id=run.run_id) else left


async def filled_fields(session: Session, run_id: str) -> frozenset[str]:
    """Returns the fields that are stored of a run, in its row or in the request for its observation.

    Each key of its metadata is a field, named `metadata.key`.
    """
    judged = await session.one(_JUDGED, {"run_id": run_id})
    names = {name for name in ("final_score", "verdict") if getattr(judged, name)}
    return frozenset(names | _nonempty_fields(await runs.find(session, run_id)))


def _nonempty_fields(run: Run | None) -> set[str]:
    if run is None:
        return set()
    names = (name for name in NewRun.__struct_fields__ if name not in {"run_id", "metadata"})
    said = {name for name in names if getattr(run, name) not in (None, "", (), {})}
    return said | {f"metadata.{key}" for key in run.metadata}


async def taken_out(session: Session, hashes: Collection[bytes]) -> set[bytes]:
    """Returns the content hashes, among these, whose observations were stored before and are retired."""
    return {bytes(item) for item in await session.column(_TAKEN_OUT, {"hashes": list(hashes)})}


def refusal(error: Exception) -> str:
    """Returns the reason why the database refuses a value, for the person who imports it."""
    return f"the database refuses it: {next(iter(str(error).splitlines()), type(error).__name__)}"


def moment_of(_key: str, value: Any) -> datetime | None:  # noqa: ANN401 - any JSON value
    """Returns a date, or the date of a text in ISO format; None for any other value."""
    if not isinstance(value, str):
        return value if isinstance(value, datetime) else None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def text_of(key: str, value: Any) -> str:  # noqa: ANN401 - any value of a line or row
    """Returns a text, or a number as text; "" for None.

    Raises:
        InvalidInput: the value is binary, a list or an object.
    """
    if isinstance(value, bytes):
        raise InvalidInput(key, "is binary; it must be a text")
    if isinstance(value, dict | list | bool):
        raise InvalidInput(key, "must be a text")
    return "" if value is None else str(value)


def _texts(key: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    if not isinstance(value, str | list):
        raise InvalidInput(key, "must be a list of texts")
    return (value,) if isinstance(value, str) else tuple(map(str, value))


def _facts(_key: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    return tuple(facts_of(value))


def _whole_number(key: str, value: Any) -> int | None:  # noqa: ANN401 - any JSON value
    """Returns a whole number, or that of a text; None for any other value."""
    if isinstance(value, bool):
        raise InvalidInput(key, "must be a whole number")
    written = isinstance(value, str) and value.strip().isdecimal() and _PLAIN.fullmatch(value)
    return int(value) if written or isinstance(value, int) else None


def number_of(key: str, value: Any) -> float:  # noqa: ANN401 - any JSON value
    """Returns a finite number, or that of a text.

    Raises:
        InvalidInput: the value is no such number.
    """
    if not _is_number(value):
        raise InvalidInput(key, "must be a number")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidInput(key, "is too large") from error
    if not math.isfinite(number):
        raise InvalidInput(key, "must be a finite number")
    return number


def _is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return _PLAIN.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _amount(key: str, value: Any) -> float | None:  # noqa: ANN401 - any JSON value
    return number_of(key, value) if _is_number(value) else None


def _object(_key: str, value: Any) -> Mapping[str, Any] | None:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, dict) else None


def _metadata(key: str, value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    if not isinstance(value, dict):
        raise InvalidInput(key, "must be an object")
    return value


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "text": text_of, "texts": _texts, "facts": _facts, "tags": _tags, "moment": moment_of, "number": number_of,
    "amount": _amount, "whole number": _whole_number, "object": _object, "metadata": _metadata,
}  # fmt: skip
"""Readers of values by their names in the map; they return None for a value that becomes metadata."""
