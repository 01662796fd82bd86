"""Extracts the cues of a session: corrections, preferences, decisions and so on, each with its turn. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cues.cue import AGENT, DISCOVERY, NEGATIVE_RESULT, PERSON, PROJECT
from app.cues.extraction.details import details_of
from app.cues.extraction.features import Heard, heard, numbers
from app.cues.extraction.model import kinds, probability, weights
from app.cues.extraction.signs import signs_of
from app.cues.extraction.speech import sentences_in, speech_of
from app.cues.extraction.weight import BASE, consequence_of, scope_of
from app.cues.extraction.wording import LONGEST_QUOTE, LONGEST_TRIGGER, cut, lesson_of, quote_of, trigger_of
from app.intake.sessions.transcript import ASSISTANT, USER, Turn

Vectors = Mapping[int, NDArray[np.float32]]
AGENT_CONFIDENCE = 0.5
"""Confidence of what an agent concluded: nobody confirmed it."""
FEWEST_WORDS = 6
"""Words of a sentence in which an agent states a conclusion."""
MARKUP = "*#`_ "


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
    consequence: float
    scope: str
    trust: str = PERSON
    details: Mapping[str, Any] = field(default_factory=dict)


def texts_of(turns: Sequence[Turn]) -> dict[int, str]:
    """Returns the texts whose vectors help to tell kinds, by their turns' places."""
    return {turn.ordinal: turn.text for turn in turns if turn.role == USER and turn.text.strip()}


def extract(turns: Sequence[Turn], vectors: Vectors | None = None) -> list[Extracted]:
    """Returns the cues of a session in the order of its turns.

    Args:
        turns: the session's messages.
        vectors: vectors of `texts_of(turns)`, by the model that the weights name; without them, kinds are told from
            words alone.
    """
    items = heard(turns)
    said = [cue for place in range(len(items)) if (cue := _said(items, place, vectors or {})) is not None]
    return sorted([*said, *_concluded(turns)], key=lambda cue: cue.ordinal)


def _said(items: Sequence[Heard], place: int, vectors: Vectors) -> Extracted | None:
    """Returns the cue that a person's turn holds; None if it is too unlikely that it holds one."""
    item = items[place]
    described = numbers(item)
    likely = probability(described)
    if likely < weights().threshold:
        return None
    by_kind = kinds(described, vectors.get(item.turn.ordinal))
    kind = max(by_kind, key=by_kind.__getitem__)
    quote = quote_of(item)
    trigger = trigger_of(item, quote)
    return Extracted(
        kind=kind,
        ordinal=item.turn.ordinal,
        trigger=trigger,
        lesson=lesson_of(item, quote),
        quote=quote,
        confidence=round(likely, 3),
        consequence=consequence_of(items, place, kind),
        scope=scope_of(quote),
        details=details_of(kind, item, trigger=trigger, quote=quote),
    )


def _concluded(turns: Sequence[Turn]) -> list[Extracted]:
    """Returns what the agent concluded or gave up, at most one cue a turn."""
    found, request = [], ""
    for turn in turns:
        if turn.role == USER:
            request = turn.text
        elif turn.role == ASSISTANT and (cue := _conclusion(turn, request)) is not None:
            found.append(cue)
    return found


def _conclusion(turn: Turn, request: str) -> Extracted | None:
    for part in sentences_in(speech_of(turn.text).text):
        signs = signs_of(part, "replies")
        if len(part.split()) >= FEWEST_WORDS and not part.endswith(("?", ":")) and signs & {"concluded", "gave_up"}:
            quote = cut(part, LONGEST_QUOTE)
            trigger = cut(" ".join(speech_of(request).text.split()), LONGEST_TRIGGER)
            return Extracted(
                kind=DISCOVERY if "concluded" in signs else NEGATIVE_RESULT,
                ordinal=turn.ordinal,
                trigger=trigger or quote,
                lesson=quote.strip(MARKUP),
                quote=quote,
                confidence=AGENT_CONFIDENCE,
                consequence=BASE,
                scope=PROJECT,
                trust=AGENT,
            )
    return None
