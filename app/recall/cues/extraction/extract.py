"""Extracts the lessons of a session: those that a person states, and those that the agent found. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.intake.sessions.transcript import USER, Turn
from app.recall.cues.cue import AGENT, EXTRACTED, FOUND_BY, LONGEST_QUOTE, PERSON, PROJECT, Evidence, NewCue, cut
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


def extract(turns: Sequence[Turn], by_author: Mapping[str, TurnModel] | None = None) -> list[NewCue]:
    """Returns the cues of a session in the order of its turns, at most one of a turn, with its number as evidence."""
    by_author = by_author or models()
    asked: list[str] = []
    found: list[NewCue | None] = []
    for item in spoken_turns(turns):
        if item.turn.role == USER:
            found.append(_of_person(item, asked[-SUBJECTS:], by_author[PERSON]))
            asked += item.sentences
        else:
            found.append(_of_agent(item, asked[-SUBJECTS:], by_author[AGENT]))
    return [cue for cue in found if cue is not None]


def ordinal_of(cue: NewCue) -> int:
    """Returns the number of the turn that a cue was extracted from."""
    return cue.evidence[0].ordinal or 0


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


def _of_person(item: SpokenTurn, asked: Sequence[str], model: TurnModel) -> NewCue | None:
    features = of_person(item)
    likely = model.probability(features)
    # Who says "as we did with X", lists the steps of something, or picks an option and says why, states a lesson.
    is_stated = states_precedent(item) or states_procedure(item) or states_decision(item)
    likely = max(likely, model.shown) if is_stated else likely
    if likely < model.candidate:
        return None
    kept = lesson_of_person(item)
    return _cue(item, kind_of_person(item, features, kept), kept, asked, likely=likely, model=model)


def _of_agent(item: SpokenTurn, asked: Sequence[str], model: TurnModel) -> NewCue | None:
    """Returns what an agent found, unless the person contradicts it in the next turn.

    What the person approves of there has the person's trust.
    """
    if "open_contradicts" in signs_of(item.after, "person"):
        return None
    likely = model.probability(of_agent(item))
    if likely < model.candidate:
        return None
    cue = _cue(item, kind_of_agent(item), lesson_of_agent(item), asked, likely=likely, model=model)
    if is_accepted(item):
        return replace(cue, details={**cue.details, FOUND_BY: AGENT})
    return replace(cue, trust=AGENT)


def _cue(
    item: SpokenTurn, kind: str, kept: Sequence[str], asked: Sequence[str], *, likely: float, model: TurnModel
) -> NewCue:
    lesson, trigger = join_sentences(kept), trigger_of(kind, item, kept, asked)
    quote = cut(_verbatim(item, kept), LONGEST_QUOTE)
    return NewCue(
        kind=kind,
        trigger=trigger,
        lesson=lesson,
        details=details_of(kind, item, kept, trigger=trigger, lesson=lesson),
        confidence=round(likely, 3),
        consequence=consequence_of(item, lesson),
        scope=scope_of(lesson) if item.turn.role == USER else PROJECT,
        quote=quote,
        evidence=(Evidence(ordinal=item.turn.ordinal, quote=quote),),
        origin=EXTRACTED,
        is_candidate=likely < model.shown,
    )


def _verbatim(item: SpokenTurn, kept: Sequence[str]) -> str:
    """Returns the first sentence of a lesson as it stands in its turn."""
    return next((part for part in item.sentences if kept[0] in part), item.sentences[0])
