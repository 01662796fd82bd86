"""The values of a cue: given, stored, and the turns that are its evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

CORRECTION, PREFERENCE, PRECEDENT, PROCEDURE = "correction", "preference", "precedent", "procedure"
DECISION, DISCOVERY, NEGATIVE_RESULT = "decision", "discovery", "negative_result"
CUE_KINDS = (CORRECTION, PREFERENCE, PRECEDENT, PROCEDURE, DECISION, DISCOVERY, NEGATIVE_RESULT)
DETAILS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        CORRECTION: frozenset(),
        PREFERENCE: frozenset({"context", "preferred_over"}),
        PRECEDENT: frozenset({"situation", "action", "outcome"}),
        PROCEDURE: frozenset({"goal", "steps"}),
        DECISION: frozenset({"subject", "choice", "alternatives", "reasoning"}),
        DISCOVERY: frozenset({"domain", "implications"}),
        NEGATIVE_RESULT: frozenset({"attempted", "failure_reason", "led_to"}),
    }
)
"""The fields that a kind has beyond trigger and lesson: texts, and lists of texts for steps and alternatives."""

PROJECT, USER = SCOPES = ("project", "user")
PERSON, AGENT, IMPORTED, WEB = TRUSTS = ("person", "agent", "imported", "web")
"""Who stands behind a cue, the most trusted first. Only a person's may stand in `## Before you act`."""
EXTRACTED, GIVEN, PROPOSED = ORIGINS = ("extracted", "given", "proposed")
ACTIVE, RETIRED, SUPERSEDED = "active", "retired", "superseded"
STATES = (ACTIVE, PROPOSED, RETIRED, SUPERSEDED)
"""Only an active cue fires. A proposed one waits for a person's decision; a superseded one names the cue that holds in
its place, after a conflict or a merge."""
CONSEQUENCES: Mapping[str, float] = MappingProxyType({"low": 0.2, "medium": 0.5, "high": 0.8, "severe": 1.0})
"""The consequence that each word stands for, 0 to 1."""
SEVERE = 0.75
"""Least consequence of a cue that is told with a checkpoint."""
NO_DETAILS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A turn, or another text, that a cue was learnt from."""

    source_id: UUID | None = None
    memory_id: UUID | None = None
    """The memory of the turn; None if the turn is not stored."""
    session: str = ""
    """The id of the session, as its writer names it."""
    ordinal: int | None = None
    """Position of the turn in its session, from 0."""
    quote: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCue:
    """A cue as its writer gives it."""

    kind: str
    """One of CUE_KINDS."""
    trigger: str
    """The situation in which the lesson applies."""
    lesson: str
    details: Mapping[str, Any] = field(default_factory=lambda: NO_DETAILS)
    """The further fields of its kind (DETAILS)."""
    confidence: float = 1.0
    """Probability that it is a lasting lesson, 0 to 1."""
    consequence: float = CONSEQUENCES["medium"]
    """Cost of the mistake, 0 to 1."""
    scope: str = PROJECT
    quote: str = ""
    """The words of the turn that say so."""
    evidence: tuple[Evidence, ...] = ()
    trust: str = PERSON
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    origin: str = GIVEN
    action_types: tuple[str, ...] = ()
    """Names of action types; without any, they are classified."""
    files: tuple[str, ...] = ()
    """Paths that the cue is about."""
    tags: tuple[str, ...] = ()
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """A stored cue. Its id is the id of its memory."""

    cue_id: UUID
    kind: str
    trigger: str
    lesson: str
    details: Mapping[str, Any]
    confidence: float
    consequence: float
    scope: str
    quote: str
    trust: str
    origin: str
    state: str
    """One of STATES."""
    action_types: tuple[str, ...]
    files: tuple[str, ...]
    tags: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    seen_on: tuple[date, ...]
    """The days of its evidence."""
    fired: int
    """Number of activations that showed it."""
    heeded: int
    ignored: int
    last_fired_at: datetime | None
    valid_from: datetime
    valid_until: datetime | None
    superseded_by: UUID | None
    disputed_by: tuple[UUID, ...]
    """Cues that contradict it where it is not clear which one holds."""
    suspect: bool
    """True if the injection scan has a finding in it that no person has released."""
    created_at: datetime
    updated_at: datetime
