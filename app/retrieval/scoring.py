"""From the pool to a ranking. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.retrieval.arms import Candidate
from app.retrieval.fusion import Evidence, Relevance, relevances
from app.retrieval.naming import named
from app.retrieval.presets import Preset, Threshold
from app.retrieval.ranking import Rank, rank

SECONDS_A_DAY = 86_400


class Ranked(NamedTuple):
    """A candidate with all that its score is made of."""

    candidate: Candidate
    relevance: Relevance
    rank: Rank

    @property
    def explain(self) -> dict[str, float | None]:
        """Every component of the score, by name."""
        return {
            "score": self.rank.value,
            "similarity": self.candidate.similarity,
            "bm25": self.candidate.bm25,
            "vector": self.relevance.vector,
            "lexical": self.relevance.lexical,
            "fused": self.relevance.fused,
            "neighbours": self.relevance.neighbours,
            "source": self.relevance.source,
            "named": self.relevance.named,
            "evidence": self.relevance.evidence,
            "relevance": self.rank.relevance,
            "qual_weight": self.rank.qual_weight,
            "q_adjust": self.rank.q_adjust,
            "recency": self.rank.recency,
        }


def ranked(pool: Sequence[Candidate], preset: Preset, *, query: str, full_match: float, now: datetime) -> list[Ranked]:
    """The pool's relevant memories, best first; ties by id. `full_match` as `relevances` takes it."""
    if preset.blend.by_rank:
        # Ranks of what scores alike follow the order of the pool.
        pool = sorted(pool, key=lambda item: item.memory_id)
    titles = named(query, [item.title for item in pool])
    numbers: dict[UUID | None, int] = {}
    evidence = [
        Evidence(
            similarity=item.similarity,
            bm25=item.bm25,
            source=None if item.source_id is None else numbers.setdefault(item.source_id, len(numbers)),
            ordinal=item.ordinal,
            named=has_its_name,
        )
        for item, has_its_name in zip(pool, titles, strict=True)
    ]
    scored = list(zip(pool, relevances(evidence, full_match=full_match, blend=preset.blend), strict=True))
    if preset.nearest is not None and any(item.similarity is not None for item in pool):
        scored = _nearest(pool, preset.nearest)
    if preset.by_place:
        scored = _by_place(scored)
    result = [
        Ranked(candidate=item, relevance=relevance, rank=_rank(item, relevance, preset, now))
        for item, relevance in _relevant(scored, preset.threshold)
    ]
    return sorted(result, key=lambda item: (-item.rank.value, item.candidate.memory_id))


def _relevant(
    scored: Sequence[tuple[Candidate, Relevance]], threshold: Threshold | None
) -> Sequence[tuple[Candidate, Relevance]]:
    """What the threshold leaves: nothing at all where nothing in the pool speaks to the query."""
    if threshold is None or not scored:
        return scored
    similarities = [item.similarity for item, _ in scored if item.similarity is not None]
    least_lexical = threshold.lexical if similarities else threshold.lexical_alone
    if max(similarities, default=-1.0) < threshold.similarity and all(
        relevance.lexical < least_lexical for _, relevance in scored
    ):
        return ()
    return [(item, relevance) for item, relevance in scored if relevance.value >= threshold.share]


def _rank(item: Candidate, relevance: Relevance, preset: Preset, now: datetime) -> Rank:
    return rank(
        relevance.value,
        final_score=item.final_score,
        quality=0 if preset.by_place else item.quality,
        age_days=(now - item.happened_at).total_seconds() / SECONDS_A_DAY,
        weights=preset.weights,
    )


def _nearest(pool: Sequence[Candidate], count: int) -> list[tuple[Candidate, Relevance]]:
    """The `count` nearest, each with sim = 1 - distance / 2 as its relevance."""
    near = sorted(
        (item for item in pool if item.similarity is not None),
        key=lambda item: (-(item.similarity or 0.0), item.memory_id),
    )[:count]
    return [(item, _by_distance(1 - (1 - (item.similarity or 0.0)) / 2)) for item in near]


def _by_place(scored: Sequence[tuple[Candidate, Relevance]]) -> list[tuple[Candidate, Relevance]]:
    """Each with 1 / place as its relevance, in the arm where it stands higher; what neither arm has is left out."""
    places: dict[UUID, int] = {}
    for scores in (
        [(-item.similarity, item.memory_id) for item, _ in scored if item.similarity is not None],
        [(-item.bm25, item.memory_id) for item, _ in scored if item.bm25 > 0],
    ):
        for place, (_, memory_id) in enumerate(sorted(scores), start=1):
            places[memory_id] = min(place, places.get(memory_id, place))
    return [
        (item, relevance._replace(value=1 / places[item.memory_id]))
        for item, relevance in scored
        if item.memory_id in places
    ]


def _by_distance(value: float) -> Relevance:
    return Relevance(
        value=value, evidence=value, vector=value, lexical=0.0, fused=value, neighbours=0.0, source=0.0, named=0.0
    )
