"""Says cues so that they are done: imperative sentences, checkpoints, contradictions outright. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.cues.cue import DECISION, NEGATIVE_RESULT, PREFERENCE, SEVERE, Cue
from app.cues.opening import continued, is_act, opening, small
from app.text.sentences import sentences_of
from app.text.words import content_words

HEADING = "## Before you act"
REFERS_BACK = re.compile(r"^(?:\W*\w+\W+){0,3}?(?:it|its|them|they|this|that|these|those|there)\b", re.IGNORECASE)
"""A lesson that cannot be understood without its trigger."""
CHECK = "STOP and check your plan against this first."
"""The step that a severe cue asks for."""
UNSETTLED = "(not settled: another lesson says otherwise)"
QUOTED = 90
"""Most characters of a quote, or of a session's name, in a reason."""
FORBIDDEN = re.compile(
    r"\b(?:(?P<act>never|do not|don['’]t|must not)|not|instead of|rather than|avoid|no)\s+(?P<what>[^.;:!?]{4,120})",
    re.IGNORECASE,
)
LEAST_SHARED, LEAST_WORDS = 0.6, 2
"""Share of the words of a rejected way that a plan must have to contain it, and their least number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A plan that contains what was rejected or has failed."""

    rejected: str
    statement: str


def in_one_line(text: str) -> str:
    """Returns a text without line breaks."""
    return " ".join(text.split())


def imperative(cue: Cue) -> str:
    """Returns the sentence that tells when to do what."""
    return f"{opening(cue.trigger)}: {continued(in_one_line(cue.lesson))}"


def reason(cue: Cue) -> str:
    """Returns why the lesson holds, and where it was learnt; empty if that is unknown."""
    given = cue.details.get("failure_reason") or cue.details.get("reasoning") or cue.details.get("outcome")
    where = _where(cue)
    if given:
        return f"because {_told(given)}{where}"
    if said := _beyond(cue):
        return f"because “{_cut(said, QUOTED)}”" + (f" (said{where})" if where else "")
    return f"learnt{where}" if where else ""


def _beyond(cue: Cue) -> str:
    """Returns the sentences of the quote that say more than the lesson."""
    lesson = content_words(cue.lesson)
    parts = sentences_of(in_one_line(cue.quote))
    return " ".join(part for part in parts if not content_words(part) <= lesson).rstrip(".")


def _told(detail: str | Sequence[str]) -> str:
    """Returns a detail, a text or a list of texts, without the full stop at its end."""
    return in_one_line(detail if isinstance(detail, str) else "; ".join(detail)).rstrip(".")


def _where(cue: Cue) -> str:
    first = cue.evidence[0] if cue.evidence else None
    if first is None:
        return ""
    if first.session:
        name = _cut(in_one_line(first.session), QUOTED)
        return f" in {name}" if name.lower().startswith("session") else f" in session {name}"
    if first.path:
        return f" in {_cut(in_one_line(first.path), QUOTED)}"
    return f" on {first.at.date().isoformat()}" if first.at else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def checkpoint(cue: Cue) -> str:
    """Returns the step that a severe cue asks for; empty for others."""
    return CHECK if cue.consequence >= SEVERE else ""


def line(cue: Cue, *, detailed: bool) -> str:
    """Returns a cue as a line of the section; a detailed one with its trigger, if it is severe as a step to check."""
    unsettled = f" {UNSETTLED}" if cue.disputed_by else ""
    if not detailed:
        return f"- {imperative(cue) if REFERS_BACK.match(cue.lesson) else in_one_line(cue.lesson)}{unsettled}"
    if not checkpoint(cue):
        return f"- {imperative(cue)}{unsettled}"
    because = reason(cue)
    joined = f", {because}" if because.startswith("because") else f" ({because})" if because else ""
    return f"- [ ] {imperative(cue).rstrip('.')}{unsettled}{joined}. {checkpoint(cue)}"


def least_tokens(cue: Cue) -> int:
    """Returns a number of tokens that the shortest line of a cue has at least: each word is one or more."""
    return len(cue.lesson.split())


def contradiction(cue: Cue, plan: str) -> Contradiction | None:
    """Returns what a plan contains that the cue rejects; None if it contains nothing of it.

    What the plan itself rules out ("do not …", "instead of …") it does not contain.
    """
    for rejected in _rejected(cue):
        wanted = content_words(rejected)
        if len(wanted & _meant(plan)) >= max(LEAST_WORDS, LEAST_SHARED * len(wanted)):
            return Contradiction(rejected=rejected, statement=_statement(cue, rejected))
    return None


@lru_cache(maxsize=1)
def _meant(plan: str) -> frozenset[str]:
    """Returns the words of a plan without what it rules out; many cues are compared with one plan."""
    return content_words(FORBIDDEN.sub(" ", plan))


def _rejected(cue: Cue) -> Sequence[str]:
    """Returns the ways that a cue speaks against."""
    details = cue.details
    found: list[str] = []
    if cue.kind == NEGATIVE_RESULT:
        found.append(str(details.get("attempted") or ""))
    if cue.kind == DECISION:
        given = details.get("alternatives") or ()
        found += [given] if isinstance(given, str) else list(given)
    if cue.kind == PREFERENCE:
        found.append(str(details.get("preferred_over") or ""))
    found += [match["what"] for match in FORBIDDEN.finditer(cue.lesson)]
    return [text for text in map(in_one_line, found) if text]


def _statement(cue: Cue, rejected: str) -> str:
    failed = cue.details.get("failure_reason")
    because = f"it failed because {_told(failed)}" if failed else f"it was rejected{_where(cue)}"
    way = _told(cue.details.get("led_to") or cue.details.get("choice") or cue.lesson)
    told = small(rejected).rstrip(".")
    acts = [in_one_line(match["what"]) for match in FORBIDDEN.finditer(cue.lesson) if match["act"]]
    about = told if rejected in acts or is_act(told) else f"go with {told}"
    return f"You are about to {about}; {because}; the established way is: {way}."


def markdown_of(warnings: Sequence[str], lines: Sequence[str]) -> str:
    """Returns the section of these lines, contradictions first; empty without any."""
    told = [*(f"- **{warning}**" for warning in warnings), *lines]
    return "\n".join([HEADING, "", *told]) + "\n" if told else ""
