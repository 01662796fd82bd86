"""The values of a cue: given, stored, and the turns that are its evidence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from app.foundation.text.data import read_toml
from app.storage.memories.gate import unstorable
from app.storage.memories.memory import in_utc

CORRECTION, PREFERENCE, PRECEDENT, PROCEDURE = "correction", "preference", "precedent", "procedure"
DECISION, DISCOVERY, NEGATIVE_RESULT = "decision", "discovery", "negative_result"
CueKind = Literal["correction", "preference", "precedent", "procedure", "decision", "discovery", "negative_result"]
FOUND_BY = "found_by"
"""The field of a finding that says who made it: an agent, where a person has confirmed it."""
DETAILS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        CORRECTION: frozenset(),
        PREFERENCE: frozenset({"context", "preferred_over"}),
        PRECEDENT: frozenset({"situation", "action", "outcome"}),
        PROCEDURE: frozenset({"goal", "steps"}),
        DECISION: frozenset({"subject", "choice", "alternatives", "reasoning"}),
        DISCOVERY: frozenset({"domain", "implications", FOUND_BY}),
        NEGATIVE_RESULT: frozenset({"attempted", "failure_reason", "led_to", FOUND_BY}),
    }
)
"""The fields that a kind has beyond trigger and lesson: texts, and lists of texts for steps and alternatives."""

PROJECT, USER = "project", "user"
PERSON, AGENT, IMPORTED, WEB = TRUSTS = ("person", "agent", "imported", "web")
"""Trust tiers of a cue, the most trusted first. In `## Before you act` stands what a person said, and after it, with
its author, what an agent concluded."""
EXTRACTED, GIVEN, PROPOSED = "extracted", "given", "proposed"
ACTIVE, RETIRED, SUPERSEDED = "active", "retired", "superseded"
"""Only an active cue fires. A proposed one waits for a person's decision; a superseded one names the cue that holds in
its place, after a conflict or a merge."""
TAKEN_AWAY = frozenset({RETIRED, SUPERSEDED})
Severity = Literal["low", "medium", "high", "severe"]
CONSEQUENCES: Mapping[str, float] = MappingProxyType({"low": 0.2, "medium": 0.5, "high": 0.8, "severe": 1.0})
_SMALLEST_SHARE = 1e-6
"""Least confidence and consequence above 0: the database's 32 bits hold no number below 1e-45."""
SEVERE = 0.75
"""Least consequence of a cue that is told with a checkpoint."""
TRIGGER, TOGETHER, ADAPTED = 0, 1, 2
"""The places of a cue's vectors in the database: that of its trigger, that of trigger and lesson together, and that of
trigger and lesson by the adapted model, zeros if the model has no adapted form."""
VECTORS_OF_CUE = 3
VECTORS_VERSION = "+1"
"""Follows the name of the model in the database. It changes with the adapter of plans and with the places: cues that
were embedded before are then embedded again. The version of the written graphs (`bundled.py`) changes with it too."""
STARTER = "starter"


class Evidence(Struct, frozen=True, kw_only=True, rename={"memory_id": "turn_id", "ordinal": "message"}):
    """A turn, or another text, that a cue was learnt from."""

    source_id: UUID | None = None
    memory_id: UUID | None = None
    """The memory of the turn; None if the turn is not stored."""
    session: str = ""
    """The id of the session, as its writer names it; "" for a text that is no session."""
    path: str = ""
    """The file, for a text in a document, such as a decision record."""
    section: str = ""
    """The heading path of that text in its file."""
    ordinal: int | None = None
    """Position of the turn in its session, from 0."""
    quote: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCue:
    """A cue as its writer gives it."""

    kind: str
    trigger: str
    """The situation in which the lesson applies."""
    lesson: str
    details: Mapping[str, Any] = field(default_factory=dict)
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
    is_candidate: bool = False
    """True for a cue that does not fire until a person accepts it."""
    action_types: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Paths that the cue is about."""
    tags: tuple[str, ...] = ()
    language: str | None = None


EDITABLE = tuple(
    name for name in NewCue.__slots__ if name not in {"evidence", "origin", "is_candidate", "language", "tags"}
)


class Cue(Struct, frozen=True, kw_only=True, rename={"cue_id": "id"}):
    """A stored cue. Its id is the id of its memory."""

    cue_id: UUID
    kind: str
    trigger: str
    lesson: str
    standing: str
    """Its lesson; if it holds in place of one that it contradicts, both, with their days."""
    details: Mapping[str, Any]
    confidence: float
    consequence: float
    scope: str
    quote: str
    trust: str
    origin: str
    state: str
    """`active`, `proposed`, `retired` or `superseded`."""
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
    quality: int
    """The ratings, applied in order, -3 to 3."""
    edited: tuple[str, ...]
    """The fields that a person changed; a file or a session that is read again leaves them as they are."""
    suspect: bool
    """True if the injection scan has a finding in it that no person has released."""
    created_at: datetime
    updated_at: datetime

    @property
    def by_agent(self) -> bool:
        """True if an agent concluded it, whether a person has confirmed it or not."""
        return self.trust == AGENT or bool(self.details.get(FOUND_BY))

    def proofs_in(self, source_id: UUID) -> list[Evidence]:
        """Returns the evidence of the cue in a source."""
        return [proof for proof in self.evidence if proof.source_id == source_id]


LONGEST_LESSON, LONGEST_TRIGGER, LONGEST_QUOTE = 700, 160, 300
"""Characters of the texts of a cue that is made of turns or documents."""
TEXT_LIMIT = 2_000
"""Most characters of a trigger, a lesson or a quote: a cue is a sentence, its turn has the rest."""
LIST_LIMIT = 50
"""Most pieces of evidence, files, action types, steps or alternatives."""
Words = Annotated[str, Meta(max_length=TEXT_LIMIT)]
Told = Annotated[str, Meta(min_length=1, max_length=TEXT_LIMIT)]


def objections(cue: NewCue) -> Iterator[str]:
    """Yields the reasons why a cue cannot be stored, each with its field and the remedy.

    Its writers give words and numbers of the types that their forms have.
    """
    for name in ("trigger", "lesson"):
        if not getattr(cue, name).strip():
            yield f"{name}: is empty; a cue says when it applies (trigger) and what to do then (lesson)"
    for name in ("trigger", "lesson", "quote"):
        if len(getattr(cue, name)) > TEXT_LIMIT:
            yield f"{name}: has {len(getattr(cue, name)):,} characters; at most {TEXT_LIMIT:,} are taken"
    for name in ("confidence", "consequence"):
        value = getattr(cue, name)
        if value != 0 and not _SMALLEST_SHARE <= value <= 1:
            yield f"{name}: must be 0, or from {_SMALLEST_SHARE:f} to 1"
    yield from _time_reasons(cue)
    yield from _detail_reasons(cue)
    yield from unstorable({name: getattr(cue, name) for name in EDITABLE})


def _time_reasons(cue: NewCue) -> Iterator[str]:
    moments = [("valid_from", cue.valid_from), ("valid_until", cue.valid_until)]
    moments += [("evidence.at", item.at) for item in cue.evidence]
    outside = [reason for name, moment in moments for reason in unstorable(moment, name)]
    yield from outside
    if not outside and cue.valid_from and cue.valid_until and in_utc(cue.valid_until) <= in_utc(cue.valid_from):
        yield "valid_until: must be after valid_from"


def _detail_reasons(cue: NewCue) -> Iterator[str]:
    allowed = DETAILS.get(cue.kind, frozenset())
    for name, value in cue.details.items():
        texts = value if isinstance(value, list | tuple) else [value]
        if name not in allowed:
            known = f"has the fields {', '.join(sorted(allowed))}" if allowed else "has no further fields"
            yield f"details.{name}: a {cue.kind} {known}"
        elif len(texts) > LIST_LIMIT or not all(isinstance(text, str) and len(text) <= TEXT_LIMIT for text in texts):
            yield f"details.{name}: must be a text of {TEXT_LIMIT:,} characters, or a list of {LIST_LIMIT}, at most"


@cache
def starter_cues() -> Sequence[NewCue]:
    """Returns the first library: a start for a store that has no cues of its own yet."""
    found = read_toml("app.recall.cues.review", "starter.toml", dict[str, list[NewCue]])["cues"]
    # Their confidence is lower than that of a cue that a person states: nobody in the workspace has said it.
    return [replace(cue, details={**cue.details}, confidence=0.5, tags=(STARTER,), language="english") for cue in found]


def days_of(evidence: Iterable[Evidence]) -> tuple[date, ...]:
    """Returns the days on which the turns of this evidence were said, in their order."""
    return tuple(sorted({in_utc(item.at).date() for item in evidence if item.at is not None}))


def subject_of(cue: Cue) -> str:
    """Returns the subject of a cue: as a decision states it, or else the situation in which it applies."""
    return str(cue.details.get("subject") or cue.trigger)


def choice_of(cue: Cue) -> str:
    """Returns the chosen alternative of a decision; where none is stated, its lesson."""
    return str(cue.details.get("choice") or cue.lesson).strip().rstrip(".")


def moment_of(cue: Cue) -> datetime:
    """Returns the moment of the first turn that says so; without one, that from which the cue holds."""
    return min((in_utc(item.at) for item in cue.evidence if item.at is not None), default=in_utc(cue.valid_from))


def cue_text(trigger: str, lesson: str) -> str:
    """Returns trigger and lesson as one text, which the adapted model is trained on and reads.

    A lesson that has the trigger's words says them once.
    """
    return lesson if trigger in lesson else f"{trigger}\n{lesson}"


def cut(text: str, longest: int) -> str:
    """Shortens a text to its first characters, at the end of a word."""
    return text if len(text) <= longest else text.lstrip()[:longest].rsplit(maxsplit=1)[0]
