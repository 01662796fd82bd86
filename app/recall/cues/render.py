"""Renders cues so that they are done: when and what, the way instead, contradictions outright. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.foundation.text.prose import sentences_of
from app.foundation.text.words import content_words, in_one_line
from app.recall.cues.cue import AGENT, SEVERE, Cue
from app.recall.cues.ways import acts_forbidden, rejected_in

HEADING = "## Before you act"
CHECK = "STOP and check your plan against this first."
UNSETTLED = "(not settled: another lesson says otherwise)"
QUOTED = 90
STEPS = ("steps",)
DETAILS = (
    ("Steps", STEPS),
    ("Instead", ("instead", "led_to", "choice")),
    ("Rejected", ("alternatives", "preferred_over")),
    ("So", ("implications",)),
)
"""Lines of a cue beyond its lesson, and the fields that they are made of."""
REASONS = ("because", "failure_reason", "reasoning", "outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Something in a plan that a cue rejects, or that has failed."""

    cue_id: UUID
    rejected: str
    statement: str


def imperative(cue: Cue) -> str:
    """Returns when to do what, in two lines; the first is left out where the lesson says it."""
    return "\n".join(_core(cue))


def _core(cue: Cue) -> Iterator[str]:
    if not content_words(cue.trigger) <= content_words(cue.lesson):
        yield f"When: {in_one_line(cue.trigger)}"
    author = "Concluded by an agent" if cue.trust == AGENT else "Found by an agent, confirmed by the user"
    label = f"{author}{_where(cue)}" if cue.by_agent else "Then"
    yield f"{label}: {in_one_line(cue.standing)}" + (f" {UNSETTLED}" if cue.disputed_by else "")


def reason(cue: Cue) -> str:
    """Returns why the lesson holds, and where it was learnt unless its author tells that; empty if that is unknown."""
    where = _where(cue)
    given = _detail(cue, REASONS)
    if not content_words(given) <= content_words(cue.lesson):
        return f"{given}{f' (learnt{where})' if where else ''}"
    if said := _beyond(cue):
        return f"“{_cut(said, QUOTED)}”{f' (said{where})' if where else ''}"
    return f"learnt{where}" if where and not cue.by_agent else ""


def _beyond(cue: Cue) -> str:
    lesson = content_words(cue.lesson)
    parts = sentences_of(in_one_line(cue.quote))
    return " ".join(part for part in parts if not content_words(part) <= lesson).rstrip(".")


def _detail(cue: Cue, names: Sequence[str]) -> str:
    """Returns the first of these fields that a cue has, numbered if it has steps, without a full stop; "" if none."""
    given = next((cue.details[name] for name in names if cue.details.get(name)), "")
    if not isinstance(given, str) and names == STEPS:
        given = " ".join(f"{number}. {in_one_line(step).rstrip('.')};" for number, step in enumerate(given, start=1))
    return in_one_line(given if isinstance(given, str) else "; ".join(given)).rstrip(".;" if names == STEPS else ".")


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
    """Returns the step that a severe cue asks for; empty for others, and for what an agent concluded."""
    return CHECK if cue.consequence >= SEVERE and not cue.by_agent else ""


def entry(cue: Cue, *, detailed: bool) -> str:
    """Returns a cue as an item of the section: when and what; a detailed one with the way, the steps and the reason."""
    lines = [*_core(cue), *(_details(cue) if detailed else ())]
    if check := checkpoint(cue):
        lines.append(check)
    mark = "- [ ] " if check else "- "
    return "\n".join([f"{mark}{lines[0]}", *(f"  {line}" for line in lines[1:])])


def _details(cue: Cue) -> Iterator[str]:
    known = content_words(f"{cue.trigger} {cue.lesson}")
    for label, names in DETAILS:
        if not content_words(given := _detail(cue, names)) <= known:
            yield f"{label}: {given}"
    if because := reason(cue):
        yield f"Because: {because}" if not because.startswith("learnt") else because.capitalize()


def least_tokens(cue: Cue) -> int:
    """Returns a number of tokens that the shortest entry of a cue has at least: each word is one or more."""
    return len(cue.lesson.split())


def contradiction(cue: Cue, plan: str, *, applies: bool = False) -> Contradiction | None:
    """Returns what a plan, to which the cue `applies`, contains that it rejects; None if it contains nothing of it."""
    rejected = rejected_in(cue, plan, applies=applies)
    if not rejected:
        return None
    return Contradiction(cue_id=cue.cue_id, rejected=rejected, statement=_statement(cue, rejected))


def way_of(cue: Cue) -> str:
    """Returns the established way that a cue tells."""
    return _detail(cue, DETAILS[1][1]) or in_one_line(cue.lesson).rstrip(".")


def _statement(cue: Cue, rejected: str) -> str:
    given = _detail(cue, REASONS)
    what = "It failed" if cue.details.get("failure_reason") else f"It was rejected{_where(cue)}"
    because = f"{what}: {given}" if given else what
    first = rejected.partition(" ")[0]
    told = rejected if first[1:] != first[1:].lower() else rejected[:1].lower() + rejected[1:]
    about = told if rejected in acts_forbidden(cue.lesson) else f"go with {told}"
    return f"You are about to {about.rstrip('.')}. {because}. The established way: {way_of(cue)}."


def markdown_of(warnings: Sequence[str], entries: Sequence[str]) -> str:
    """Returns the section of these entries, contradictions first; empty without any."""
    told = [*(f"- **{warning}**" for warning in warnings), *entries]
    return "\n".join([HEADING, "", *told]) + "\n" if told else ""
