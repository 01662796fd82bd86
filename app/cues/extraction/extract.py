"""Extracts the cues of a session: corrections, preferences, decisions and so on, each with its turn. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.cues.cue import AGENT, CORRECTION, DISCOVERY, NEGATIVE_RESULT, PERSON, PRECEDENT, PROCEDURE, PROJECT
from app.cues.extraction.details import details_of, goal_of, stated_kind
from app.cues.extraction.features import Heard, heard, numbers
from app.cues.extraction.model import kinds, probability, weights, words_weigh
from app.cues.extraction.signs import signs_of
from app.cues.extraction.speech import sentences_in, speech_of
from app.cues.extraction.weight import BASE, consequence_of, scope_of
from app.cues.extraction.wording import LONGEST_QUOTE, cut, lesson_of, named_request, quote_of, reasoned, trigger_of
from app.intake.sessions.transcript import ASSISTANT, USER, Turn

Vectors = Mapping[int, NDArray[np.float32]]
AGENT_CONFIDENCE = 0.5
"""Confidence of what an agent concluded: nobody confirmed it."""
FEWEST_WORDS = 6
"""Words of a sentence in which an agent states a conclusion."""
STATED_CONFIDENCE = 0.5
"""Least confidence of a precedent that a turn states outright ("as we did with X")."""
MARKUP = "*#`_ "
LASTING = frozenset({"lasting", "record"})
FURTHER = 0.4
"""Weight of its signs from which on a further sentence of a turn is a cue of its own."""
MOST_CUES = 3
"""Cues of a turn."""


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


class Holding(NamedTuple):
    """A person's turn that holds a cue."""

    place: int
    """Its place among the person's turns."""
    described: NDArray[np.float64]
    """Its features."""
    likely: float
    """Probability that it holds a cue, 0 to 1."""


class Candidates(NamedTuple):
    """The turns of a session that hold cues, before the kinds of the cues are told."""

    items: Sequence[Heard]
    holding: Sequence[Holding]
    concluded: Sequence[Extracted]
    """The cues in the agent's turns."""

    @property
    def texts(self) -> dict[int, str]:
        """The texts whose vectors help to tell kinds, by their turns' ordinals."""
        turns = [self.items[found.place].turn for found in self.holding]
        return {turn.ordinal: turn.text for turn in turns}


def candidates(turns: Sequence[Turn]) -> Candidates:
    """Returns the turns of a session that hold cues."""
    items = heard(turns)
    found = [Holding(place, described := numbers(item), _likely(item, described)) for place, item in enumerate(items)]
    threshold = weights().threshold
    return Candidates(items, [item for item in found if item.likely >= threshold], _concluded(turns))


def _likely(item: Heard, described: NDArray[np.float64]) -> float:
    """Returns the probability that a turn holds a cue; one that states a precedent holds one."""
    is_stated = stated_kind(item, quote_of(item)) == PRECEDENT
    return max(probability(described), STATED_CONFIDENCE if is_stated else 0.0)


def cues_of(found: Candidates, vectors: Vectors) -> list[Extracted]:
    """Returns the cues of a session in the order of its turns.

    `vectors` are those of `found.texts`, by the model that the weights name; without them, kinds are told from words
    alone.
    """
    said = [cue for item in found.holding for cue in _said(found.items, item, vectors)]
    return sorted([*said, *found.concluded], key=lambda cue: cue.ordinal)


def extract(turns: Sequence[Turn], vectors: Vectors | None = None) -> list[Extracted]:
    """Returns the cues of a session, as `cues_of` does."""
    return cues_of(candidates(turns), vectors or {})


def _said(items: Sequence[Heard], holding: Holding, vectors: Vectors) -> list[Extracted]:
    """Returns the cues that a person's turn holds: one, and others for further lasting statements in it."""
    item = items[holding.place]
    first = _cue(items, holding, quote_of(item), vectors.get(item.turn.ordinal))
    return [first, *(_cue(items, holding, quote, None) for quote in further(item, first.quote))]


def further(item: Heard, quote: str) -> list[str]:
    """Returns the sentences of a turn, beside the one that is quoted, that state by themselves what lasts."""
    told = [part for part in sentences_in(item.speech.text) if not part.startswith(quote) and part not in quote]
    parts = [part for part in told if not part.endswith("?")]
    lasting = [part for part in parts if signs_of(part) & LASTING and len(part.split()) >= FEWEST_WORDS]
    return [cut(part, LONGEST_QUOTE) for part in lasting if words_weigh(signs_of(part)) >= FURTHER][: MOST_CUES - 1]


def _cue(items: Sequence[Heard], holding: Holding, quote: str, vector: NDArray[np.float32] | None) -> Extracted:
    item = items[holding.place]
    by_kind = kinds(holding.described, vector)
    if quote != quote_of(item):
        by_kind = kinds(numbers(replace(item, speech=speech_of(quote), signs=signs_of(quote))), None)
    kind = stated_kind(item, quote) or max(by_kind, key=by_kind.__getitem__)
    trigger = trigger_of(item, quote)
    if kind == PROCEDURE and (goal := goal_of(item.speech.text)) and not signs_of(goal) & LASTING:
        trigger = goal
    return Extracted(
        kind=kind,
        ordinal=item.turn.ordinal,
        trigger=trigger,
        lesson=lesson_of(item, quote),
        quote=reasoned(item, quote) if kind == CORRECTION else quote,
        confidence=round(holding.likely, 3),
        consequence=consequence_of(items, holding.place, kind, holding.described),
        scope=scope_of(quote),
        details=details_of(kind, item, trigger=trigger, quote=quote),
    )


def _concluded(turns: Sequence[Turn]) -> list[Extracted]:
    """Returns what the agent concluded or gave up, at most one cue a turn."""
    found, request = [], ""
    for turn in turns:
        if turn.role == USER:
            request = named_request(turn.text) or request
        elif turn.role == ASSISTANT and (cue := _conclusion(turn, request)) is not None:
            found.append(cue)
    return found


def _conclusion(turn: Turn, request: str) -> Extracted | None:
    for part in sentences_in(speech_of(turn.text).text):
        signs = signs_of(part, "replies")
        if len(part.split()) >= FEWEST_WORDS and not part.endswith(("?", ":")) and signs & {"concluded", "gave_up"}:
            quote = cut(part, LONGEST_QUOTE)
            return Extracted(
                kind=DISCOVERY if "concluded" in signs else NEGATIVE_RESULT,
                ordinal=turn.ordinal,
                trigger=request or quote,
                lesson=quote.strip(MARKUP),
                quote=quote,
                confidence=AGENT_CONFIDENCE,
                consequence=BASE,
                scope=PROJECT,
                trust=AGENT,
            )
    return None
