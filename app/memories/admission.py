"""Checks that a memory can be stored: sizes, ranges, and text that Postgres can hold."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from app.memories.memory import KINDS, SOURCE_KINDS, NewMemory, ObservationDetail, in_utc
from app.workspaces.workspace import unknown_language

BODY_LIMIT = 200_000
"""Characters. Postgres refuses a tsvector over 1 MB, which the most varied text of this length does not reach."""
TITLE_LIMIT = 1_000
URI_LIMIT = 2_000
"""Bytes; an index row holds at most 2,700."""
TAG_LIMIT = 100
TAGS_LIMIT = 64
METADATA_DEPTH = 32
METADATA_LIMIT = 100_000
"""Bytes as JSON."""
NAME_LIMIT = 200
TASK_LIMIT = 20_000
LARGEST_ORDINAL = 2**31 - 1
SMALLEST_SCORE, LARGEST_SCORE = 1e-6, 10
"""Limits of a score other than 0; a `real` column cannot hold far smaller numbers."""


def reason_to_reject(memory: NewMemory) -> str | None:
    """Returns the reason why a memory cannot be stored, with the field and the remedy; None if it can."""
    return next(_reasons(memory), None)


def _reasons(memory: NewMemory) -> Iterator[str]:
    if memory.kind not in KINDS:
        yield f"kind: must be one of {', '.join(KINDS)}"
    if not memory.body.strip():
        yield "body: is empty; a memory needs text"
    yield from _too_long("body", memory.body, BODY_LIMIT)
    yield from _too_long("title", memory.title, TITLE_LIMIT)
    yield from _source_reasons(memory)
    yield from _number_reasons(memory)
    yield from tag_reasons(memory.tags)
    yield from _too_long("language", memory.language or "", NAME_LIMIT)
    if reason := unknown_language(memory.language or ""):
        yield f"language: {reason}"
    yield from _too_long("run_id", memory.run_id or "", NAME_LIMIT)
    yield from unstorable(
        {name: getattr(memory, name) for name in ("body", "title", "language", "run_id", "tags", "metadata")}
    )
    yield from _metadata_reasons(memory.metadata)
    if memory.observation is not None:
        yield from _observation_reasons(memory.observation)


def _observation_reasons(detail: ObservationDetail) -> Iterator[str]:
    limits = {"task": TASK_LIMIT, "task_type": NAME_LIMIT, "verdict": NAME_LIMIT, "output_path": TASK_LIMIT}
    for name, limit in {**limits, "narrative": BODY_LIMIT}.items():
        yield from _too_long(f"observation.{name}", getattr(detail, name) or "", limit)
    yield from _too_long("observation.facts", "".join(detail.facts), BODY_LIMIT)
    yield from unstorable({f"observation.{name}": getattr(detail, name) for name in (*limits, "narrative", "facts")})


def _metadata_reasons(metadata: Mapping[str, Any]) -> Iterator[str]:
    if not metadata:
        return
    size = len(msgspec.json.encode(dict(metadata)))
    if size > METADATA_LIMIT:
        yield f"metadata: has {size:,} bytes as JSON; at most {METADATA_LIMIT:,} are taken"


def score_reasons(field: str, score: float) -> Iterator[str]:
    """Yields the reason why a number is no evaluator's score."""
    if not (score == 0 or SMALLEST_SCORE <= score <= LARGEST_SCORE):
        yield f"{field}: must be from {SMALLEST_SCORE:f} to {LARGEST_SCORE}, or 0"


def _too_long(field: str, text: str, limit: int) -> Iterator[str]:
    if len(text) > limit:
        yield f"{field}: has {len(text):,} characters; at most {limit:,} are taken, so split it"


def too_long_uri(uri: str) -> str:
    """Returns the reason why no index can hold this URI; "" if it can."""
    size = len(uri.encode(errors="replace"))
    return f"has {size:,} bytes; at most {URI_LIMIT:,} are taken, so shorten it" if size > URI_LIMIT else ""


def _source_reasons(memory: NewMemory) -> Iterator[str]:
    source = memory.source
    if source is None:
        return
    if source.kind not in SOURCE_KINDS:
        yield f"source.kind: must be one of {', '.join(SOURCE_KINDS)}"
    if not source.uri.strip():
        yield "source.uri: is empty; it names the source"
    if reason := too_long_uri(source.uri):
        yield f"source.uri: {reason}"
    yield from _too_long("source.title", source.title, TITLE_LIMIT)
    yield from unstorable({"source.uri": source.uri, "source.title": source.title})


def _number_reasons(memory: NewMemory) -> Iterator[str]:
    if memory.ordinal is not None and not 0 <= memory.ordinal <= LARGEST_ORDINAL:
        yield f"ordinal: must be from 0 to {LARGEST_ORDINAL}"
    if memory.ordinal is not None and memory.source is None:
        yield "ordinal: is a place in a source, so it needs a source"
    score = memory.final_score
    if score is not None:
        yield from score_reasons("final_score", score)
    if memory.occurred_at is not None and not in_calendar(memory.occurred_at):
        yield "occurred_at: is outside the years 1 to 9999"


def in_calendar(moment: datetime) -> bool:
    """Returns whether a database can hold the moment."""
    try:
        in_utc(moment)
    except (OverflowError, ValueError):
        return False
    return True


def tag_reasons(tags: tuple[str, ...]) -> Iterator[str]:
    """Yields the reasons why a memory cannot have these tags."""
    if len(tags) > TAGS_LIMIT:
        yield f"tags: at most {TAGS_LIMIT} are taken"
    for tag in tags:
        if not tag.strip() or len(tag) > TAG_LIMIT:
            yield f"tags: each has 1 to {TAG_LIMIT} characters"


def unstorable(value: Any, field: str = "", depth: int = 0) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yields a reason for each text in a JSON value that Postgres cannot hold: NUL, and halves of a surrogate pair."""
    if depth > METADATA_DEPTH:
        yield f"{field}: is nested deeper than {METADATA_DEPTH} levels"
        return
    match value:
        case str():
            yield from _unstorable_text(value, field)
        case Mapping():
            for key, item in value.items():
                yield from _unstorable_text(key, field or "key")
                yield from unstorable(item, f"{field}.{key}" if field else key, depth + 1)
        case list() | tuple():
            for item in value:
                yield from unstorable(item, field, depth + 1)


def _unstorable_text(text: str, field: str) -> Iterator[str]:
    if "\0" in text:
        yield f"{field}: contains a NUL character, which cannot be stored"
    elif not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        yield f"{field}: contains half of a surrogate pair, which is no character"
