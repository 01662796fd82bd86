"""The values of logged recalls, as the log stores and the routes answer them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct

from app.errors import check
from app.foundation.text.faults import unstorable
from app.storage.memories.memory import in_utc

TRIAL = "trial"
"""The purpose of a recall by which a person tries out what an agent would get."""
IMPORTED = "import"
"""The purpose of a recall that an earlier harness made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """An arm that did not serve an answer, or did so only in part, with the reason."""

    arm: str
    reason: str
    silent: bool
    """True if the arm was left out completely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitLink:
    """The link that brought a hit, or boosts it."""

    relation: str
    direction: str
    """`out` if the link leads from the hit to the other memory (it mentions that memory, is derived from it …); else
    `in`."""
    memory_id: UUID
    """The memory at the other end of the link, which is relevant to the query itself."""
    title: str = ""
    """The title of that memory; empty in the log, which stores no text of memories."""


Explanation = dict[str, float | HitLink | None]


Withholding = Literal["draw", "next", "room", "threshold"]
"""The reason why a memory that was found was not shown. A draw took its slot; it was the next candidate for the slot
that a draw took, which stayed empty; the budget or the wanted number left no room, or another hit says the same; or it
was not likely enough to matter."""


class WithheldMemory(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A memory that a recall found and did not show."""

    rank: int
    """The slot that was to be its own, or that it was next for, from 1; of one that no draw withheld, its place among
    all that was found."""
    memory_id: UUID
    title: str = ""
    """The memory's present title; empty in the log, which stores no text of memories."""
    score: float
    reason: Withholding
    propensity: float | None = None
    """The probability with which it was to be shown; of the next candidate, after its slot was drawn. None where no
    draw decided."""
    given_to: UUID | None = None
    """The next candidate, if a draw gave it the slot; its hit has the probability of that as its own."""


class LoggedHit(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A hit of a logged recall."""

    rank: int
    memory_id: UUID
    title: str
    """The memory's present title."""
    score: float
    explain: Explanation
    propensity: float | None
    """The probability with which it was to be shown; None where no draw decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRecall:
    """A logged recall."""

    recall_id: UUID
    purpose: str
    query: str
    agent: str | None
    run_id: str | None
    parameters: Mapping[str, Any]
    mode: str
    degraded: tuple[Degradation, ...]
    tokens: int | None
    took_ms: float
    created_at: datetime
    hits: tuple[LoggedHit, ...]
    withheld: tuple[WithheldMemory, ...]
    """Memories that were found for a run and not shown to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSummary:
    """A logged recall with the number of its hits."""

    recall_id: UUID
    purpose: str
    query: str
    agent: str | None
    run_id: str | None
    mode: str
    degraded: tuple[Degradation, ...]
    tokens: int | None
    took_ms: float
    created_at: datetime
    hits: int


Outcome = Literal["empty", "degraded"]
"""A reason to look at a recall: it found nothing, or it was answered without an arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFilters:
    """Conditions of logged recalls; None is no condition."""

    text: str | None = None
    """A part of the query, in upper or lower case."""
    agent: str | None = None
    run_id: str | None = None
    mode: str | None = None
    purpose: str | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallDay:
    """The recalls of one day in UTC."""

    day: date
    recalls: int = 0
    empty: int = 0
    """Recalls that found nothing."""
    degraded: int = 0
    p95_ms: float | None = None
    """Milliseconds; None for a day without recalls."""


def checked_filters(asked: RecallFilters) -> RecallFilters:
    """Returns the conditions with their moments in UTC.

    Raises:
        InvalidInput: a text or moment that the log cannot have.
    """
    check(unstorable(asdict(asked)))
    since, until = (None if moment is None else in_utc(moment) for moment in (asked.since, asked.until))
    return replace(asked, since=since, until=until)
