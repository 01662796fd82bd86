"""The named ways to rank."""

from dataclasses import dataclass

from app.retrieval.fusion import DEFAULT_BLEND, Blend
from app.retrieval.ranking import Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A recipe: how relevance is found and what else counts."""

    name: str
    weights: Weights
    blend: Blend = DEFAULT_BLEND
    least_evidence: float = 0.0
    """Evidence below which a memory is not relevant at all."""
    title_kinds: frozenset[str] = frozenset({"observation", "cue", "note"})
    """Kinds of which two with one title are the same thing; a chunk's title is its section, a message's its speaker."""
    nearest: int | None = None
    """Only the vector arm's nearest so many are ranked, by 1 - distance / 2; None: the pool of both arms."""
    most: int | None = None
    """It never gives more hits than this."""


DEFAULT = Preset(name="default", weights=Weights(), least_evidence=0.3)
CLASSIC = Preset(
    name="classic",
    weights=Weights(half_life_days=None),
    title_kinds=frozenset({"observation", "chunk", "message", "cue", "note"}),
    nearest=12,
    most=4,
)
"""The original recipe to the letter: the 12 nearest, no recency, deduplicated by title, the best 4."""

PRESETS = {preset.name: preset for preset in (DEFAULT, CLASSIC)}
