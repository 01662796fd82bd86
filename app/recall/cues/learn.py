"""A lesson of a session, as its agent states it, and the turns of the user that prove it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct, structs

from app.foundation.text.prose import speech_of
from app.foundation.text.words import WORD
from app.intake.sessions.transcript import USER
from app.recall.cues.cue import (
    AGENT,
    CONSEQUENCES,
    DECISION,
    DISCOVERY,
    LIST_LIMIT,
    NEGATIVE_RESULT,
    PERSON,
    PRECEDENT,
    PREFERENCE,
    PROCEDURE,
    CueKind,
    Evidence,
    NewCue,
    Severity,
    Told,
    Words,
)
from app.recall.cues.evidence import QuotedTurn
from app.recall.cues.keep import StoredCues
from app.storage.memories.gate import unstorable

_LEAST_WORDS = 3
"""Words of a quote below which it proves nothing: "ok" and "do it" stand in every session."""


class Lesson(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A lesson of a session, as the agent that took part in it states it."""

    kind: Annotated[
        CueKind,
        Meta(description="precedent: done so before; discovery: a found cause; negative_result: tried, and failed"),
    ]
    when: Annotated[Told, Meta(description="the act or situation in which it applies, in the words of a later plan")]
    lesson: Annotated[Told, Meta(description="the rule, wish, choice, cause or failure, understandable alone")]
    instead: Annotated[Words, Meta(description="what to do instead")] = ""
    steps: Annotated[list[Told], Meta(max_length=LIST_LIMIT, description="in their order")] = []
    because: Words = ""
    severity: Annotated[Severity, Meta(description="the cost of the mistake")]
    quote: Annotated[Words, Meta(description="the user's exact words")] = ""
    session: Annotated[str, Meta(max_length=2_000, description="id of the session of `quote`")] = ""

    def cue(self) -> NewCue:
        """Returns it as a cue of the agent's own; what its kind has no field for stands in the lesson."""
        fields: Mapping[str, Mapping[str, Any]] = {
            PREFERENCE: {"context": self.when},
            PRECEDENT: {"situation": self.when, "action": self.lesson, "outcome": self.because},
            PROCEDURE: {"goal": self.when, "steps": list(self.steps)},
            DECISION: {"subject": self.when, "choice": self.instead or self.lesson, "reasoning": self.because},
            DISCOVERY: {"domain": self.when, "implications": self.instead},
            NEGATIVE_RESULT: {"attempted": self.when, "failure_reason": self.because, "led_to": self.instead},
        }
        details = {name: value for name, value in fields.get(self.kind, {}).items() if value}
        told = ["; ".join(value) if isinstance(value, list) else value for value in details.values()]
        more = {"Instead": self.instead, "Steps": "; ".join(self.steps), "Because": self.because}
        sentences = [f"{name}: {text.strip().rstrip('.')}." for name, text in more.items() if text and text not in told]
        evidence = Evidence(session=self.session, quote=self.quote)
        return NewCue(
            kind=self.kind,
            trigger=self.when,
            lesson=" ".join([self.lesson.strip(), *sentences]),
            details=details,
            consequence=CONSEQUENCES[self.severity],
            quote=self.quote,
            evidence=(evidence,) if self.session or self.quote else (),
            trust=AGENT,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A stored lesson, and who stands behind it."""

    kept: StoredCues
    trust: str
    """person where the user's words prove it, else agent."""
    message: int | None = None
    reason: str = ""
    """The reason why it is the agent's own conclusion."""

    @property
    def cue_id(self) -> UUID | None:
        """The id of the cue; None for a rejected one."""
        return self.kept.ids[0]


def reason_of_trust(lesson: Lesson) -> str:
    """Returns the reason why a lesson is the agent's own conclusion."""
    if not lesson.quote.strip():
        return "no quote was given"
    if not lesson.session:
        return "no session was named in which the user said so"
    if not is_long_enough(lesson.quote):
        return f"a quote of fewer than {_LEAST_WORDS} words proves nothing"
    return f"the quote stands in no stored turn of the user in session {lesson.session}, or only in what he pasted"


def is_long_enough(quote: str) -> bool:
    """Tells if a quote has so many words that it proves whose words a lesson is."""
    return len(WORD.findall(quote)) >= _LEAST_WORDS


def claims_of(cues: Sequence[NewCue]) -> dict[int, Evidence]:
    """Returns by its place the first evidence of each agent's own cue that quotes a session without naming the turn."""
    return {
        place: proof
        for place, cue in enumerate(cues)
        for proof in cue.evidence[:1]
        if cue.trust == AGENT and proof.session and proof.ordinal is None and is_long_enough(proof.quote)
        if not any(unstorable({"session": proof.session, "quote": proof.quote}))
    }


def with_proof(cue: NewCue, proof: Evidence, turn: QuotedTurn) -> NewCue:
    """Returns a cue whose first evidence stands in this turn, with the trust of the one who says it."""
    evidence = (structs.replace(proof, ordinal=turn.ordinal), *cue.evidence[1:])
    return replace(cue, evidence=evidence, trust=PERSON if turn.role == USER else AGENT)


def proofs_of(quotes: Sequence[str], turns: Sequence[Sequence[QuotedTurn]]) -> list[QuotedTurn | None]:
    """Returns for each quote the first turn that says it; a user's says only what is not pasted."""

    @cache
    def speech(body: str) -> str:
        return " ".join(speech_of(body).text.split()).lower()

    return [
        next((turn for turn in found if turn.role != USER or quote.lower() in speech(turn.body)), None)
        for quote, found in zip(quotes, turns, strict=True)
    ]
