"""Extracts the lessons of a session: those that a person states, and those that the agent found. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.intake.sessions.transcript import USER, Turn
from app.recall.cues.cue import AGENT, FOUND_BY, LONGEST_QUOTE, PERSON, PROJECT, cut
from app.recall.cues.extraction.features import SpokenTurn, is_accepted, of_agent, of_person, spoken_turns
from app.recall.cues.extraction.lesson import (
    consequence_of,
    details_of,
    join_sentences,
    kind_of_agent,
    kind_of_person,
    lesson_of_agent,
    lesson_of_person,
    scope_of,
    states_decision,
    states_precedent,
    states_procedure,
    trigger_of,
)
from app.recall.cues.signs import TurnModel, models, signs_of

SUBJECTS = 12
"""Sentences of the person before a turn among which its subject is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A cue that a turn holds."""

    kind: str
    ordinal: int
    """The turn's place among the session's messages."""
    trigger: str
    lesson: str
    quote: str
    """Words of that turn, verbatim."""
    confidence: float
    """Probability that it is a lasting lesson, 0 to 1."""
    consequence: float
    scope: str
    trust: str = PERSON
    is_sure: bool = True
    """False for a candidate, which is told only once a person accepts it."""
    details: Mapping[str, Any] = field(default_factory=dict)


def extract(turns: Sequence[Turn], by_author: Mapping[str, TurnModel] | None = None) -> list[Extracted]:
    """Returns the cues of a session in the order of its turns, at most one of a turn."""
    by_author = by_author or models()
    asked: list[str] = []
    found: list[Extracted | None] = []
    for item in spoken_turns(turns):
        if item.turn.role == USER:
            found.append(_of_person(item, asked[-SUBJECTS:], by_author[PERSON]))
            asked += item.sentences
        else:
            found.append(_of_agent(item, asked[-SUBJECTS:], by_author[AGENT]))
    return [cue for cue in found if cue is not None]


def likely_turns(turns: Sequence[Turn], least: float) -> list[int]:
    """Returns the places of the turns that hold a lesson with this probability or more, the likeliest first."""
    places = {turn.ordinal: place for place, turn in enumerate(turns)}
    found = [(_likely(item), places[item.turn.ordinal]) for item in spoken_turns(turns)]
    return [place for likely, place in sorted(found, key=lambda item: -item[0]) if likely >= least]


def describe(item: SpokenTurn) -> tuple[str, dict[str, float]]:
    """Returns the author of a turn, whose model judges it, and its features."""
    return (PERSON, of_person(item)) if item.turn.role == USER else (AGENT, of_agent(item))


def _likely(item: SpokenTurn) -> float:
    author, features = describe(item)
    return models()[author].probability(features)


def _of_person(item: SpokenTurn, asked: Sequence[str], model: TurnModel) -> Extracted | None:
    features = of_person(item)
    likely = model.probability(features)
    # Who says "as we did with X", lists the steps of something, or picks an option and says why, states a lesson.
    is_stated = states_precedent(item) or states_procedure(item) or states_decision(item)
    likely = max(likely, model.shown) if is_stated else likely
    if likely < model.candidate:
        return None
    kept = lesson_of_person(item)
    kind = kind_of_person(item, features, kept)
    return _cue(item, kind, kept, asked, likely=likely, is_sure=likely >= model.shown)


def _of_agent(item: SpokenTurn, asked: Sequence[str], model: TurnModel) -> Extracted | None:
    """Returns what an agent found, unless the person contradicts it in the next turn.

    What the person approves of there has the person's trust.
    """
    if "open_contradicts" in signs_of(item.after, "person"):
        return None
    likely = model.probability(of_agent(item))
    if likely < model.candidate:
        return None
    kept, trust = lesson_of_agent(item), PERSON if is_accepted(item) else AGENT
    cue = _cue(item, kind_of_agent(item), kept, asked, likely=likely, is_sure=likely >= model.shown, trust=trust)
    return replace(cue, details={**cue.details, FOUND_BY: AGENT}) if trust == PERSON else cue


def _cue(
    item: SpokenTurn,
    kind: str,
    kept: Sequence[str],
    asked: Sequence[str],
    *,
    likely: float,
    is_sure: bool,
    trust: str = PERSON,
) -> Extracted:
    lesson, trigger = join_sentences(kept), trigger_of(kind, item, kept, asked)
    return Extracted(
        kind=kind,
        ordinal=item.turn.ordinal,
        trigger=trigger,
        lesson=lesson,
        quote=cut(_verbatim(item, kept), LONGEST_QUOTE),
        confidence=round(likely, 3),
        consequence=consequence_of(item, lesson),
        scope=scope_of(lesson) if trust == PERSON and item.turn.role == USER else PROJECT,
        trust=trust,
        is_sure=is_sure,
        details=details_of(kind, item, kept, trigger=trigger, lesson=lesson),
    )


def _verbatim(item: SpokenTurn, kept: Sequence[str]) -> str:
    """Returns the first sentence of a lesson as it stands in its turn."""
    return next((part for part in item.sentences if kept[0] in part), item.sentences[0])
