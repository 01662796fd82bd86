"""Extracts the lessons of a session: those that a person states, and those that the agent found. Pure."""

from collections.abc import Mapping, Sequence

from app.intake.sessions.transcript import USER, Turn
from app.recall.cues.cue import AGENT, EXTRACTED, FOUND_BY, LONGEST_QUOTE, PERSON, PROJECT, Evidence, NewCue, cut
from app.recall.cues.extraction.features import SpokenTurn, is_accepted, of_agent, of_person, spoken_turns
from app.recall.cues.extraction.lesson import (
    consequence_of,
    details_of,
    join_sentences,
    kind_of_agent,
    kind_of_person,
    lesson_of,
    scope_of,
    states_lesson,
    trigger_of,
)
from app.recall.cues.signs import TurnModel, models, signs_of

SUBJECTS = 12
"""Sentences of the person before a turn among which its subject is looked for."""


def extract(turns: Sequence[Turn], by_author: Mapping[str, TurnModel] | None = None) -> list[NewCue]:
    """Returns the cues of a session in the order of its turns, at most one of a turn, with its number as evidence."""
    by_author = by_author or models()
    asked: list[str] = []
    found: list[NewCue] = []
    for item in spoken_turns(turns):
        author, features = describe(item)
        model = by_author[author]
        likely = model.probability(features)
        if author == PERSON and states_lesson(item):
            likely = max(likely, model.shown)
        if likely >= model.candidate and not _is_refuted(item):
            found.append(_cue(item, asked[-SUBJECTS:], likely, is_candidate=likely < model.shown))
        asked += [part.text for part in item.sentences] if author == PERSON else []
    return found


def ordinal_of(cue: NewCue) -> int:
    """Returns the number of the turn that a cue was extracted from."""
    return cue.evidence[0].ordinal or 0


def likely_turns(turns: Sequence[Turn], least: float) -> list[int]:
    """Returns the places of the turns that hold a lesson with this probability or more, the likeliest first."""
    places = {turn.ordinal: place for place, turn in enumerate(turns)}
    described = [(places[item.turn.ordinal], *describe(item)) for item in spoken_turns(turns)]
    found = [(models()[author].probability(features), place) for place, author, features in described]
    return [place for likely, place in sorted(found, key=lambda item: -item[0]) if likely >= least]


def describe(item: SpokenTurn) -> tuple[str, dict[str, float]]:
    """Returns the author of a turn, whose model judges it, and its features."""
    return (PERSON, of_person(item)) if item.turn.role == USER else (AGENT, of_agent(item))


def _is_refuted(item: SpokenTurn) -> bool:
    return item.turn.role != USER and "open_contradicts" in signs_of(item.after, "person")


def _cue(item: SpokenTurn, asked: Sequence[str], likely: float, *, is_candidate: bool) -> NewCue:
    """Returns the cue of a turn. What the person approves of in an agent's turn has the person's trust."""
    by_person = item.turn.role == USER
    kept = lesson_of(item)
    kind = kind_of_person(item, kept) if by_person else kind_of_agent(item)
    lesson, trigger = join_sentences(kept), trigger_of(kind, item, kept, asked)
    details = details_of(kind, item, kept, trigger=trigger, lesson=lesson)
    confirmed = {FOUND_BY: AGENT} if not by_person and is_accepted(item) else {}
    # The first sentence of a lesson as it stands in its turn.
    quote = cut(next(part for part, _ in item.sentences if kept[0].text in part), LONGEST_QUOTE)
    return NewCue(
        kind=kind,
        trigger=trigger,
        lesson=lesson,
        details={**details, **confirmed},
        confidence=round(likely, 3),
        consequence=consequence_of(item, lesson),
        scope=scope_of(lesson) if by_person else PROJECT,
        quote=quote,
        evidence=(Evidence(ordinal=item.turn.ordinal, quote=quote),),
        trust=PERSON if by_person or confirmed else AGENT,
        origin=EXTRACTED,
        is_candidate=is_candidate,
    )
