"""The SQLite store of an existing harness: its observations and the feedback people gave. Nothing in it is changed."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from app.errors import InvalidInput
from app.memories.memory import NewMemory, ObservationDetail
from app.observations.reply import facts_of
from app.runs.exported import as_moment

MAGIC = b"SQLite format 3\0"
OF_MEMORY = ("observation_id", "memory_id", "obs_id")
RATING = ("rating", "delta", "vote", "value", "feedback")
COMMENT = ("comment", "note", "reason")
MOMENT = ("timestamp", "created_at", "ts")
DOWN = frozenset({"down", "-", "bad", "negative", "thumbs_down", "no", "👎"})
UP = frozenset({"up", "+", "good", "positive", "thumbs_up", "yes", "👍"})


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
    quality: int
    ratings: tuple[HarnessRating, ...]


def is_harness(path: Path) -> bool:
    """Whether the file is a SQLite database, told by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_harness(path: Path) -> Iterator[HarnessObservation | str]:
    """Its observations in their order; a text for each row that is none: what is wrong with it.

    Raises:
        InvalidInput: the file has no such tables, or is damaged.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            ratings = _ratings(connection)
            for row in connection.execute("SELECT * FROM observations ORDER BY id"):
                yield _observation(dict(row), ratings)
    except sqlite3.Error as error:
        raise InvalidInput("", f"cannot be read as a harness's store: {error}") from error


def _ratings(connection: sqlite3.Connection) -> dict[str, list[HarnessRating]]:
    found: dict[str, list[HarnessRating]] = {}
    tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'memory_feedback_log'").fetchall()
    if not tables:
        return found
    for row in connection.execute("SELECT rowid AS row_number, * FROM memory_feedback_log ORDER BY rowid"):
        values = dict(row)
        rating = _sign(_first(values, RATING))
        if rating:
            found.setdefault(str(_first(values, OF_MEMORY)), []).append(
                HarnessRating(
                    log_id=str(values.get("id", values["row_number"])),
                    rating=rating,
                    comment=str(_first(values, COMMENT) or ""),
                    created_at=_moment(_first(values, MOMENT)),
                )
            )
    return found


def _observation(row: Mapping[str, Any], ratings: Mapping[str, Sequence[HarnessRating]]) -> HarnessObservation | str:
    row_id = str(row.get("id"))
    facts = tuple(facts_of(row.get("facts") or ""))
    narrative = str(row.get("narrative") or "").strip()
    detail = ObservationDetail(
        task=str(row.get("task") or ""),
        task_type=str(row.get("task_type") or ""),
        narrative=narrative,
        facts=facts,
        output_path=None if row.get("output_path") is None else str(row["output_path"]),
        verdict=str(row.get("final") or ""),
    )
    if not detail.body:
        return f"observation {row_id}: has neither narrative nor facts"
    score = row.get("final_score")
    memory = NewMemory(
        kind="observation",
        title=str(row.get("title") or ""),
        body=detail.body,
        tags=_tags(row.get("tags")),
        run_id=None if row.get("run_id") in {None, "", "none", "None"} else str(row["run_id"]),
        final_score=float(score) if isinstance(score, int | float) else None,
        occurred_at=_moment(row.get("timestamp")),
        metadata={"imported_id": row_id},
        observation=detail,
    )
    quality = row.get("quality")
    return HarnessObservation(
        row_id=row_id,
        memory=memory,
        quality=max(-3, min(3, round(quality))) if isinstance(quality, int | float) else 0,
        ratings=tuple(ratings.get(row_id, ())),
    )


def _tags(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - whatever the column holds
    if not isinstance(value, str) or not value.strip():
        return ()
    try:
        loaded = json.loads(value)
    except ValueError:
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
