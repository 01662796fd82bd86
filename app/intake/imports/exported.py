"""The runs of an existing harness's export, and what is stored already of what an export holds."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg

from app.db.session import Session
from app.errors import InvalidInput
from app.runs import store as runs
from app.runs.run import NewRun, Run

SCORES = ("wiggum_scores", "round_scores", "scores")
TEXTS = {"task": "task", "task_type": "task_type", "agent": "agent", "final": "verdict", "verdict": "verdict",
         "output": "output", "output_path": "output_path"}  # fmt: skip
LISTS = {"queries": "queries", "issues": "issues", "wiggum_issues": "issues"}
MOMENTS = {"timestamp": "finished_at", "finished_at": "finished_at", "started_at": "started_at"}
NUMBERS = ("lines", "bytes")
PLAIN = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
REFUSED_BY_THE_DATABASE = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError)

# A person deleted it, a better one took its place, or it was held back; none of these comes back by itself.
TAKEN_OUT = """
SELECT DISTINCT m.content_hash FROM memories m
WHERE m.workspace_id = %(workspace_id)s AND m.kind = 'observation' AND m.source_id IS NULL
    AND m.retired_as IN ('deleted', 'superseded', 'quarantined')
    AND m.content_hash = ANY(%(hashes)s::bytea[])
    AND NOT EXISTS (
        SELECT FROM memories o
        WHERE o.workspace_id = m.workspace_id AND o.valid_until IS NULL AND o.content_hash = m.content_hash
            AND o.kind = m.kind AND o.source_id IS NULL AND o.ordinal IS NULL
    )
"""

JUDGED = """
SELECT coalesce(bool_or(request ->> 'final_score' IS NOT NULL), false) AS final_score,
    coalesce(bool_or(request ->> 'verdict' <> ''), false) AS verdict
FROM compressions WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND NOT earlier
"""


def run_of_line(given: Mapping[str, Any]) -> NewRun:
    """Returns the run of an exported line; keys that no field has stay in its metadata, word for word.

    Raises:
        InvalidInput: it has no `run_id`, or a value of another type than its key says.
    """
    run_id = given.get("run_id")
    if isinstance(run_id, bool) or not isinstance(run_id, str | int) or not str(run_id).strip():
        raise InvalidInput("run_id", "is missing; it names the run")
    values: dict[str, Any] = {}
    taken = {"run_id"}
    for names, converted in ((TEXTS, _text), (LISTS, _texts)):
        for key, name in names.items():
            if given.get(key) is not None:
                values[name] = converted(key, given[key])
                taken.add(key)
    values |= _numbers(given, taken) | _moments(given, taken)
    scores = _scores(given, taken)
    final_score = given.get("final_score")
    if final_score is not None:
        values["final_score"] = number_of("final_score", final_score)
        taken.add("final_score")
    elif scores:
        values["final_score"] = scores[-1]
    metadata = {key: value for key, value in given.items() if key not in taken}
    return NewRun(run_id=str(run_id), round_scores=scores or None, metadata=metadata or None, **values)


def _scores(given: Mapping[str, Any], taken: set[str]) -> tuple[float, ...]:
    for key in SCORES:
        value = given.get(key)
        if isinstance(value, list):
            taken.add(key)
            return tuple(number_of(key, item) for item in value if item is not None)
    return ()


def only_new(run: NewRun, filled: frozenset[str]) -> NewRun | None:
    """Returns what is not stored yet of a run; None if all of it is. An import replaces nothing that is stored."""
    if not filled:
        return run
    said: dict[str, Any] = {name: None for name in filled if "." not in name}
    metadata = {key: value for key, value in (run.metadata or {}).items() if f"metadata.{key}" not in filled}
    left = replace(run, **said, metadata=metadata or None)
    return None if left == NewRun(run_id=run.run_id) else left


async def filled(session: Session, run_id: str) -> frozenset[str]:
    """Returns the fields of a run that are stored, be it only in what its observation was asked for with.

    Of its metadata each key is a field, as `metadata.key`.
    """
    judged = await session.one(JUDGED, {"run_id": run_id})
    names = {name for name in ("final_score", "verdict") if getattr(judged, name)}
    return frozenset(names | _filled(await runs.find(session, run_id)))


def _filled(run: Run | None) -> set[str]:
    if run is None:
        return set()
    names = (name for name in NewRun.__slots__ if name not in {"run_id", "metadata"})
    said = {name for name in names if getattr(run, name) not in (None, "", (), {})}
    return said | {f"metadata.{key}" for key in run.metadata}


async def taken_out(session: Session, hashes: Collection[bytes]) -> set[bytes]:
    """Returns those of these content hashes whose observations were stored before and are retired."""
    return {bytes(item) for item in await session.column(TAKEN_OUT, {"hashes": list(hashes)})}


def refusal(error: Exception) -> str:
    """Returns why the database refuses a value, for the person who imports it."""
    return f"the database refuses it: {next(iter(str(error).splitlines()), type(error).__name__)}"


def _numbers(given: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in NUMBERS:
        value = given.get(key)
        if isinstance(value, bool):
            raise InvalidInput(key, "must be a whole number")
        if isinstance(value, int) or (isinstance(value, str) and value.strip().isdecimal() and PLAIN.fullmatch(value)):
            found[key] = int(value)
    taken.update(found)
    return found


def _moments(given: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, name in MOMENTS.items():
        moment = as_moment(given.get(key))
        if moment is not None:
            found.setdefault(name, moment)
            taken.add(key)
    return found


def as_moment(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON value
    """Returns the date of a text in ISO format; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def _text(key: str, value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict | list | bool):
        raise InvalidInput(key, "must be a text")
    return str(value)


def _texts(key: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise InvalidInput(key, "must be a list of texts")
    return tuple(item if isinstance(item, str) else str(item) for item in value)


def number_of(key: str, value: Any) -> float:  # noqa: ANN401 - any JSON value
    """Returns a finite number, also from a text.

    Raises:
        InvalidInput: the value is no such number.
    """
    if isinstance(value, str) and PLAIN.fullmatch(value.strip()):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(key, "must be a number")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidInput(key, "is too large") from error
    if not math.isfinite(number):
        raise InvalidInput(key, "must be a finite number")
    return number
