"""Reads the files of an earlier harness: its SQLite store, with people's feedback, or JSON lines. It changes none."""

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from app.errors import InvalidInput, check
from app.foundation.text.data import json_lines, unstorable
from app.intake.imports.exported import (
    Entry,
    ImportedObservation,
    moment_of,
    number_of,
    observation_of,
    run_of,
    text_of,
)
from app.intake.runs.feedback.store import LEAST_QUALITY, MOST_QUALITY
from app.intake.runs.observations.observation import storable
from app.intake.runs.run import NewRun

_MAGIC = b"SQLite format 3\0"
LOG = "memory_feedback_log"
_JOURNAL, _NO_JOURNAL = 18, b"\x01\x01"
"""Place and value of the bytes that say that a database has no write-ahead log (sqlite.org/fileformat2.html)."""
_OF_MEMORY = ("observation_id", "memory_id", "obs_id")
_RATING = ("rating", "delta", "vote", "value", "feedback")
COMMENT = ("comment", "note", "reason")
_MOMENT = ("timestamp", "created_at", "ts")
_DOWN = frozenset({"down", "-", "bad", "negative", "thumbs_down", "no", "👎"})
UP = frozenset({"up", "+", "good", "positive", "thumbs_up", "yes", "👍"})
_LARGEST_LINE = 10_000_000
"""Most bytes of a line."""
_NO_RUN = frozenset({"none", "None"})
"""Texts that mean that there is no run id."""
_SHOWN_CHARACTERS = 50
"""Characters that messages show of an unreadable id or rating."""
_LONGEST_KEY_PART = 40
"""Most characters of a name in a key; a longer name is hashed."""


def read_harness(path: Path) -> Iterator[Entry]:
    """Yields the entries of a file: a SQLite database, which its first bytes identify, or JSON lines.

    Raises:
        OSError: the file cannot be read.
        InvalidInput: the database has no such tables, or is damaged.
    """
    with path.open("rb") as file:
        is_database = file.read(len(_MAGIC)) == _MAGIC
    return _read_database(path) if is_database else _read_lines(path)


def harness_bytes(path: Path) -> bytes:
    """Returns the content of a file, of a SQLite database with what is only in its journal so far.

    Raises:
        InvalidInput: the file cannot be read, or the database is damaged.
    """
    try:
        content = path.read_bytes()
        if not content.startswith(_MAGIC):
            return content
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            content = connection.serialize()
    except (OSError, sqlite3.Error) as error:
        raise InvalidInput(str(path), f"cannot be read: {error}") from error
    return content[:_JOURNAL] + _NO_JOURNAL + content[_JOURNAL + len(_NO_JOURNAL) :]


def _read_database(path: Path) -> Iterator[Entry]:
    """Yields the observations in their order, and the rows that are left out."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            yield from _rows(connection)
    except sqlite3.Error as error:
        raise InvalidInput("", f"cannot be read as a harness's store: {error}") from error


def _check_tables(connection: sqlite3.Connection) -> None:
    """Raises InvalidInput for a view in the place of a table: its rows are computed, and may have no end."""
    statement = "SELECT name FROM sqlite_master WHERE type <> 'table' AND lower(name) IN ('observations', ?)"
    for (name,) in connection.execute(statement, (LOG,)):
        raise InvalidInput("", f"cannot be read as a harness's store: {name} is no table")


def _rows(connection: sqlite3.Connection) -> Iterator[Entry]:
    _check_tables(connection)
    ratings: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    unreadable: list[Entry] = []
    for row_id, log_id, rating in _log(connection):
        if isinstance(rating, str):
            unreadable.append((log_id, rating))
        else:
            ratings[row_id][log_id] = rating
    for row in connection.execute("SELECT * FROM observations ORDER BY id"):
        row_id = str(row["id"])
        name = f"observation {_shown_value(row_id)}"
        try:
            yield name, _observation(dict(row), row_id, ratings.pop(row_id, {}))
        except InvalidInput as error:
            yield name, str(error)
    yield from unreadable
    for row_id, items in ratings.items():
        reason = f"is of no observation ({_shown_value(row_id)})"
        yield from ((f"rating {_shown_value(log_id)}", reason) for log_id in items)


def _log(connection: sqlite3.Connection) -> Iterator[tuple[str, str, Mapping[str, Any] | str]]:
    """Yields the observation's id, the id and the rating of each row, or its name and why it cannot be read."""
    if not connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (LOG,)).fetchall():
        return
    times: Counter[str] = Counter()
    for row in connection.execute(f"SELECT rowid AS row_number, * FROM {LOG} ORDER BY rowid"):  # noqa: S608 - a constant
        values = dict(row)
        if not (set(_OF_MEMORY) & values.keys() and set(_RATING) & values.keys()):
            columns = ", ".join(name for name in values if name != "row_number")
            yield "", LOG, f"its columns ({columns}) do not say which rating is of which observation"
            return
        row_id, log_id = str(_first(values, _OF_MEMORY)), str(_first(values, ("id", "row_number")))
        times[log_id] += 1
        try:
            yield row_id, log_id if times[log_id] == 1 else f"{log_id}#{times[log_id]}", _rating(values)
        except InvalidInput as error:
            yield row_id, f"rating {_shown_value(log_id)}", str(error)


def _rating(values: Mapping[str, Any]) -> Mapping[str, Any]:
    given = _first(values, _RATING)
    rating = {
        "rating": _sign(given),
        "comment": text_of("comment", _first(values, COMMENT)),
        "created_at": _moment(_first(values, _MOMENT)),
    }
    if not rating["rating"]:
        raise InvalidInput("rating", f"is neither up nor down ({_shown_value(given)})")
    check(unstorable(rating))
    return rating


def _observation(row: Mapping[str, Any], row_id: str, ratings: Mapping[str, Mapping[str, Any]]) -> ImportedObservation:
    texts = {name: text_of(name, row.get(name)) for name in ("narrative", "facts", "tags", "run_id")}
    memory = observation_of(
        {
            **{name: value for name, value in row.items() if value != ""},
            **texts,
            "narrative": texts["narrative"].strip(),
            "run_id": "" if texts["run_id"] in _NO_RUN else texts["run_id"],
            "body": "",
            "metadata": {"imported_id": row_id},
            "occurred_at": _moment(row.get("timestamp")),
        }
    )
    if not memory.body:
        raise InvalidInput("", "has neither narrative nor facts")
    quality = None if row.get("quality") in {None, ""} else round(number_of("quality", row["quality"]))
    return ImportedObservation(
        row_id=row_id,
        memory=memory,
        quality=None if quality is None else max(LEAST_QUALITY, min(MOST_QUALITY, quality)),
        ratings=ratings,
    )


def _shown_value(value: Any) -> str:  # noqa: ANN401 - whatever the column holds
    return storable(str(value))[:_SHOWN_CHARACTERS]


def _moment(value: Any) -> datetime | None:  # noqa: ANN401 - whatever the column holds
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value).astimezone()
        except (OverflowError, OSError, ValueError):
            return None
    return moment_of("timestamp", value)


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:  # noqa: ANN401 - whatever the column holds
    return next((values[name] for name in names if values.get(name) is not None), None)


def _sign(value: Any) -> int:  # noqa: ANN401 - whatever the column holds
    if isinstance(value, str):
        word = value.strip().lower()
        if word in UP | _DOWN:
            return 1 if word in UP else -1
        try:
            value = float(word)
        except ValueError:
            return 0
    if isinstance(value, int | float):
        return (value > 0) - (value < 0)
    return 0


def _read_lines(path: Path) -> Iterator[Entry]:
    """Yields the runs and observations of a file of JSON lines."""
    for number, given in json_lines(_lines(path), dict[str, Any], longest=_LARGEST_LINE):
        try:
            yield f"line {number}", given if isinstance(given, str) else _imported_record(given)
        except InvalidInput as error:
            yield f"line {number}", str(error)


def _imported_record(given: Mapping[str, Any]) -> NewRun | ImportedObservation:
    observation = given.get("kind") == "observation" or any(
        given.get(name) is not None for name in ("narrative", "facts", "observation")
    )
    return ImportedObservation(memory=observation_of(given)) if observation else run_of(given)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: _line(file), b"")


def _line(file: BinaryIO) -> bytes:
    """Returns the next line, or the beginning of a line that is too long."""
    line = rest = file.readline(_LARGEST_LINE + 1)
    while len(rest) > _LARGEST_LINE and not rest.endswith(b"\n"):
        rest = file.readline(_LARGEST_LINE + 1)
    return line


def key_part(name: str) -> str:
    """Returns a name as part of a key, or its hash if it is long or cannot be stored in an index."""
    if len(name) <= _LONGEST_KEY_PART and name.isprintable() and ":" not in name:
        return name
    return hashlib.blake2b(name.encode(errors="replace"), digest_size=16).hexdigest()
