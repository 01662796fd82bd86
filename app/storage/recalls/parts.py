"""Takes the score of a hit apart into parts that add up to it. Pure."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_QUALITY_WEIGHT = 0.3
"""The weight of an evaluator's score in all presets, for a hit whose query gave no other."""
UNSCORED = 0.5
"""The weight of a memory without an evaluator's score, that of an average one. No score has it, because those below 7
are halved."""
_TEXT = ("phrases", "time", "own", "turn", "short")
_GAINS = ("neighbours", "source", "named", "links", "dated")
_ADDED = ("role", "influence", "place", "state")


class ScoreParts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of a score, which is their sum; a part below 0 was taken from it."""

    words: float = 0.0
    meaning: float = 0.0
    neighbours: float = 0.0
    source: float = 0.0
    """Other hits of its source."""
    named: float = 0.0
    """Its title stands in the query."""
    links: float = 0.0
    dated: float = 0.0
    """Its time stands in the query."""
    text: float = 0.0
    """Features of its text."""
    quality: float = 0.0
    """The evaluator's score."""
    unscored: float = 0.0
    """The share of a memory without an evaluator's score."""
    ratings: float = 0.0
    recency: float = 0.0
    role: float = 0.0
    influence: float = 0.0
    """Its estimated effect on later runs."""
    place: float = 0.0
    """Its place in a report."""
    state: float = 0.0
    """The state of the case that the query continues."""
    other: float = 0.0
    """The rest: all of it where components are not known, as of a score that was imported."""


def parts_of(score: float, explain: Mapping[str, Any], quality_weight: float | None = None) -> ScoreParts:
    """Returns the parts of a score, whatever preset and weights made it: their sum is the score.

    score = (w_rel · relevance + w_qual · qual_weight) · q_adjust · recency + what is added. The first summand follows
    from the others, so that it is right for each weight of relevance and after a re-ranker.
    """
    added = {name: _number(explain, name) for name in _ADDED}
    ratings, age = (_number(explain, name, 1.0) for name in ("q_adjust", "recency"))
    if "relevance" not in explain or not ratings * age:
        return ScoreParts(**added, other=score - sum(added.values()))
    base = (score - sum(added.values())) / (ratings * age)
    weight = _QUALITY_WEIGHT if quality_weight is None else quality_weight
    quality = weight * _number(explain, "qual_weight")
    name = "unscored" if _number(explain, "qual_weight") == UNSCORED else "quality"
    return ScoreParts(
        **_divide(base - quality, explain),
        **{name: quality},
        ratings=base * (ratings - 1),
        recency=base * ratings * (age - 1),
        **added,
    )


def _divide(relevance: float, explain: Mapping[str, Any]) -> dict[str, float]:
    """Divides the share of the relevance by the evidence of each kind."""
    fused = _number(explain, "fused")
    words = fused * _share_of_words(explain)
    found = {name: _number(explain, name) for name in _GAINS}
    # Features of the text may speak against a hit; then the other parts are smaller by as much.
    found |= {"words": words, "meaning": fused - words, "text": max(0.0, sum(_number(explain, one) for one in _TEXT))}
    total = sum(found.values())
    if total <= 0:
        return {"other": relevance}
    return {name: relevance * value / total for name, value in found.items()}


def _share_of_words(explain: Mapping[str, Any]) -> float:
    """Returns the share of words in the fused evidence, by the mix that the evidence of both arms tells."""
    lexical, vector, fused = (_number(explain, name) for name in ("lexical", "vector", "fused"))
    if lexical + vector == 0 or fused == 0:
        return 0.0
    mix = 0.5 if lexical == vector else (fused - vector) / (lexical - vector)
    share = mix * lexical / fused if 0 <= mix <= 1 else lexical / (lexical + vector)
    return max(0.0, min(1.0, share))


def _number(explain: Mapping[str, Any], name: str, otherwise: float = 0.0) -> float:
    value = explain.get(name)
    return float(value) if isinstance(value, int | float) else otherwise
