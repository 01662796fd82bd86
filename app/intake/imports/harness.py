"""The SQLite store of an existing harness: its observations and the feedback people gave. Nothing in it is changed."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from app.errors import InvalidInput, check
from app.intake.imports.exported import as_moment, number_of
from app.memories.admission import in_calendar, unstorable
from app.memories.memory import NewMemory, ObservationDetail
from app.runs.feedback.store import replayed
from app.runs.observations.observation import facts_of, storable
from app.safety.secrets import masked_values

MAGIC = b"SQLite format 3\0"
LOG = "memory_feedback_log"
OF_MEMORY = ("observation_id", "memory_id", "obs_id")
RATING = ("rating", "delta", "vote", "value", "feedback")
COMMENT = ("comment", "note", "reason")
MOMENT = ("timestamp", "created_at", "ts")
DOWN = frozenset({"down", "-", "bad", "negative", "thumbs_down", "no", "👎"})
UP = frozenset({"up", "+", "good", "positive", "thumbs_up", "yes", "👍"})
SHOWN_CHARACTERS = 50
"""Characters shown of what a row holds in place of an id or a rating."""
CARRIED_OVER = "carried over from an earlier store"
LONGEST_KEY_PART = 40
"""Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessRating:
    """A row of its feedback log."""

    log_id: str
    rating: int
    comment: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessObservation:
    """A row of its observations."""

    row_id: str
    memory: NewMemory
    quality: int | None
    """None if the store gives none: its log decides."""
    ratings: tuple[HarnessRating, ...]


@dataclass(slots=True)
class _Log:
    """The feedback log by observation, and what cannot be read of it."""

    ratings: dict[str, list[HarnessRating]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


def is_harness(path: Path) -> bool:
    """Tells by its first bytes whether the file is a SQLite database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_harness(path: Path) -> Iterator[HarnessObservation | str]:
    """Yields the observations in their order, and a text for each row that is left out: the reason.

    Raises:
        InvalidInput: the file has no such tables, or is damaged.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            yield from _rows(connection)
    except sqlite3.Error as error:
        raise InvalidInput("", f"cannot be read as a harness's store: {error}") from error


def _rows(connection: sqlite3.Connection) -> Iterator[HarnessObservation | str]:
    log = _log(connection)
    seen: set[str] = set()
    for row in connection.execute("SELECT * FROM observations ORDER BY id"):
        row_id = str(row["id"])
        seen.add(row_id)
        try:
            yield _observation(dict(row), row_id, log.ratings.get(row_id, ()))
        except InvalidInput as error:
            yield f"observation {_shown(row_id)}: {error}"
    yield from log.unreadable
    for row_id, ratings in log.ratings.items():
        if row_id not in seen:
            yield from (f"rating {_shown(item.log_id)}: is of no observation ({_shown(row_id)})" for item in ratings)


def _log(connection: sqlite3.Connection) -> _Log:
    log = _Log()
    if not connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (LOG,)).fetchall():
        return log
    times: Counter[str] = Counter()
    for row in connection.execute(f"SELECT rowid AS row_number, * FROM {LOG} ORDER BY rowid"):  # noqa: S608 - a constant
        values = dict(row)
        if not (set(OF_MEMORY) & values.keys() and set(RATING) & values.keys()):
            columns = ", ".join(name for name in values if name != "row_number")
            log.unreadable.append(f"{LOG}: its columns ({columns}) do not say which rating is of which observation")
            return log
        log_id = str(_first(values, ("id", "row_number")))
        times[log_id] += 1
        try:
            rating = _rating(values, log_id if times[log_id] == 1 else f"{log_id}#{times[log_id]}")
            log.ratings.setdefault(str(_first(values, OF_MEMORY)), []).append(rating)
        except InvalidInput as error:
            log.unreadable.append(f"rating {_shown(log_id)}: {error}")
    return log


def _rating(values: Mapping[str, Any], log_id: str) -> HarnessRating:
    given, moment = _first(values, RATING), _moment(_first(values, MOMENT))
    rating, comment = _sign(given), _text({"comment": _first(values, COMMENT)}, "comment")
    if not rating:
        raise InvalidInput("rating", f"is neither up nor down ({_shown(given)})")
    if moment is not None and not in_calendar(moment):
        raise InvalidInput("timestamp", "is outside the years 1 to 9999")
    check(unstorable({"comment": comment}))
    return HarnessRating(log_id=log_id, rating=rating, comment=comment, created_at=moment)


def _observation(row: Mapping[str, Any], row_id: str, ratings: Sequence[HarnessRating]) -> HarnessObservation:
    detail = ObservationDetail(
        task=_text(row, "task"),
        task_type=_text(row, "task_type"),
        narrative=_text(row, "narrative").strip(),
        facts=tuple(facts_of(_text(row, "facts"))),
        output_path=_text(row, "output_path") or None,
        verdict=_text(row, "final"),
    )
    check_detail(detail)
    if not detail.body:
        raise InvalidInput("", "has neither narrative nor facts")
    run_id = _text(row, "run_id")
    memory = NewMemory(
        kind="observation",
        title=_text(row, "title"),
        body=detail.body,
        tags=tags_of(_text(row, "tags")),
        run_id=None if run_id in {"", "none", "None"} else run_id,
        final_score=_number(row, "final_score"),
        occurred_at=_moment(row.get("timestamp")),
        metadata={"imported_id": row_id},
        observation=detail,
    )
    quality = _number(row, "quality")
    return HarnessObservation(
        row_id=row_id,
        memory=memory,
        quality=None if quality is None else max(-3, min(3, round(quality))),
        ratings=tuple(ratings),
    )


def check_detail(detail: ObservationDetail) -> None:
    """Raises InvalidInput where a text of it cannot be stored."""
    check(unstorable(asdict(detail)))


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, bytes):
        raise InvalidInput(name, "is binary; it must be a text")
    return "" if value is None else str(value)


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    return None if value is None or value == "" else number_of(name, value)


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever the column holds
    return storable(str(value))[:SHOWN_CHARACTERS]


def tags_of(value: str) -> tuple[str, ...]:
    """Returns the tags of a text: a JSON list, or names with commas between them."""
    if not value.strip():
        return ()
    try:
        loaded = json.loads(value)
    except (ValueError, RecursionError):
        loaded = value.split(",")
    items = loaded if isinstance(loaded, list) else [loaded]
    return tuple(dict.fromkeys(str(item).strip()[:100] for item in items if str(item).strip()))[:64]


def _moment(value: Any) -> datetime | None:  # noqa: ANN401 - whatever the column holds
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value).astimezone()
        except (OverflowError, OSError, ValueError):
            return None
    return as_moment(value)


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:  # noqa: ANN401 - whatever the column holds
    return next((values[name] for name in names if values.get(name) is not None), None)


def _sign(value: Any) -> int:  # noqa: ANN401 - whatever the column holds
    if isinstance(value, str):
        word = value.strip().lower()
        if word in UP | DOWN:
            return 1 if word in UP else -1
        try:
            value = float(word)
        except ValueError:
            return 0
    if isinstance(value, int | float):
        return (value > 0) - (value < 0)
    return 0


def new_entries(
    prefix: str, item: HarnessObservation, before: Mapping[str, int], *, mask: bool
) -> list[dict[str, Any]]:
    """Returns the ratings of the old log that are not in ours."""
    keyed = {f"{prefix}log:{key_part(rating.log_id)}": rating for rating in item.ratings}
    return [
        {
            "idempotency_key": key,
            "rating": new.rating,
            "comment": masked_values(new.comment) if mask else new.comment,
            "created_at": new.created_at,
        }
        for key, new in keyed.items()
        if key not in before
    ]


def missing_entries(
    prefix: str, item: HarnessObservation, before: Mapping[str, int], entries: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the ratings that bring the observation's imported ones to the quality that its old store gives it."""
    if item.quality is None:
        return []
    missing = item.quality - replayed([*before.values(), *(entry["rating"] for entry in entries)])
    rating = {"rating": 1 if missing > 0 else -1, "comment": CARRIED_OVER}
    return [
        {**rating, "idempotency_key": f"{prefix}carried:{len(before) + len(entries) + place}"}
        for place in range(abs(missing))
    ]


def key_part(name: str) -> str:
    """Returns a name as part of a key; of a long one, or one that no index can hold, its hash."""
    if len(name) <= LONGEST_KEY_PART and name.isprintable() and ":" not in name:
        return name
    return hashlib.blake2b(name.encode(errors="replace"), digest_size=16).hexdigest()
