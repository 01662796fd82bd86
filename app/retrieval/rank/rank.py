"""From the pool to a ranking. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.retrieval.candidates import Candidate
from app.retrieval.rank.fusion import Evidence, Relevance, Relevances, relevances
from app.retrieval.rank.presets import Preset, Threshold
from app.retrieval.rank.quality import Rank, Weights, rank
from app.retrieval.rank.spreading import ties_of
from app.retrieval.rank.texts import Hints, Reading, Text, readings
from app.retrieval.recall import Hit, HitLink
from app.text.dates import closeness, periods
from app.text.names import named

SECONDS_A_DAY = 86_400


class Ranked(NamedTuple):
    """A candidate with all that its score is made of."""

    candidate: Candidate
    relevance: Relevance
    rank: Rank
    giver: Candidate | None = None
    """The memory whose link lifted it."""

    @property
    def link(self) -> HitLink | None:
        """The link that lifted it."""
        tie = self.relevance.tie
        if tie is None or self.giver is None:
            return None
        return HitLink(
            relation=tie.relation, direction=tie.direction, memory_id=self.giver.memory_id, title=self.giver.title
        )

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
            "dated": self.relevance.dated,
            "links": self.relevance.links,
            "phrases": self.relevance.phrases,
            "time": self.relevance.time,
            "own": self.relevance.own,
            "turn": self.relevance.turn,
            "evidence": self.relevance.evidence,
            "relevance": self.rank.relevance,
            "qual_weight": self.rank.qual_weight,
            "q_adjust": self.rank.q_adjust,
            "recency": self.rank.recency,
        }


def ranked(
    pool: Sequence[Candidate], preset: Preset, *, query: str, full_match: float, now: datetime
) -> Iterator[Ranked]:
    """The pool's relevant memories, best first; ties by id. `full_match` as `relevances` takes it."""
    if preset.blend.by_rank:
        # Ranks of what scores alike follow the order of the pool.
        pool = sorted(pool, key=lambda item: item.memory_id)
    found = relevances(_evidence(pool, query, now), full_match=full_match, blend=preset.blend)
    givers = {item.giver: item for item in pool if item.giver is not None}
    if preset.nearest is not None and any(item.similarity is not None for item in pool):
        pool, found = _nearest(pool, preset.nearest)
    if preset.by_place:
        pool, found = _by_place(pool, found)
    values = found.values
    ranks = {
        place: _rank(pool[place], values[place], preset, now)
        for place in _relevant(pool, found, preset.threshold, worded=full_match > 0)
    }
    for place in sorted(ranks, key=lambda place: (-ranks[place].value, pool[place].memory_id)):
        relevance = found[place]
        yield Ranked(pool[place], relevance, ranks[place], givers[relevance.tie.giver] if relevance.tie else None)


def _evidence(pool: Sequence[Candidate], query: str, now: datetime) -> list[Evidence]:
    """In the order of the fields and by the ids' numbers: names cost twice the time, and an id hashes slowly."""
    titles = named(query, [item.title for item in pool])
    times = periods(query, now)
    dates = [closeness(item.happened_at, times) for item in pool] if times else [0.0] * len(pool)
    numbers: dict[int, int] = {}
    return [
        Evidence(
            item.similarity,
            item.bm25,
            None if item.source_id is None else numbers.setdefault(item.source_id.int, len(numbers)),
            item.ordinal,
            has_its_name,
            date,
            item.giver,
            ties_of(item.ties),
        )
        for item, has_its_name, date in zip(pool, titles, dates, strict=True)
    ]


def reread(best: Sequence[Ranked], texts: Sequence[Text], preset: Preset, *, query: str, now: datetime) -> list[Ranked]:
    """The first of a ranking (and their texts), in the order that is theirs once the texts have been read."""
    if preset.hints is None:
        return list(best)
    found = [
        _hinted(item.relevance, reading, preset.hints)
        for item, reading in zip(best, readings(query, texts), strict=True)
    ]
    most = max((relevance.evidence for relevance in found), default=0.0) or 1.0
    again = [
        item._replace(relevance=relevance, rank=_rank(item.candidate, relevance.value, preset, now))
        for item, relevance in zip(best, (part._replace(value=part.evidence / most) for part in found), strict=True)
    ]
    return sorted(again, key=lambda item: (-item.rank.value, item.candidate.memory_id))


def _hinted(relevance: Relevance, reading: Reading, hints: Hints) -> Relevance:
    phrases = hints.phrases * reading.phrases * relevance.evidence
    time = hints.time * reading.time * relevance.evidence
    own = hints.own * reading.own * relevance.evidence
    turn = (hints.asks * reading.asks + hints.answers * reading.answers) * relevance.evidence
    evidence = relevance.evidence + phrases + time + own + turn
    return relevance._replace(evidence=evidence, phrases=phrases, time=time, own=own, turn=turn)


def _relevant(
    pool: Sequence[Candidate], found: Relevances, threshold: Threshold | None, *, worded: bool
) -> Sequence[int]:
    """The places of what the threshold leaves: nothing at all where nothing in the pool speaks to the query.

    Where the query is `worded` and nobody has a word of it, a hit stands by its own similarity alone: what stands
    beside it, or is linked with it, was found by nothing better.
    """
    if threshold is None or not pool:
        return range(len(pool))
    if worded and not any(item.bm25 > 0 for item in pool):
        near = [place for place, item in enumerate(pool) if (item.similarity or 0.0) >= threshold.unworded]
        return [place for place in near if found.values[place] >= threshold.share]
    similarities = [item.similarity for item in pool if item.similarity is not None]
    least_lexical = threshold.lexical if similarities else threshold.lexical_alone
    if max(similarities, default=-1.0) < threshold.similarity and all(value < least_lexical for value in found.lexical):
        return ()
    return [place for place, value in enumerate(found.values) if value >= threshold.share]


def _rank(item: Candidate, value: float, preset: Preset, now: datetime) -> Rank:
    return rank(
        value,
        final_score=item.final_score,
        quality=0 if preset.by_place else item.quality,
        age_days=(now - item.happened_at).total_seconds() / SECONDS_A_DAY,
        weights=preset.weights,
    )


def _nearest(pool: Sequence[Candidate], count: int) -> tuple[list[Candidate], Relevances]:
    """The `count` nearest, each with sim = 1 - distance / 2 as its relevance."""
    near = sorted(
        (item for item in pool if item.similarity is not None),
        key=lambda item: (-(item.similarity or 0.0), item.memory_id),
    )[:count]
    values = [1 - (1 - (item.similarity or 0.0)) / 2 for item in near]
    nothing = [0.0] * len(near)
    return near, Relevances((values, values, values, nothing, values, nothing, nothing, nothing))


def _by_place(pool: Sequence[Candidate], found: Relevances) -> tuple[list[Candidate], Relevances]:
    """Each with 1 / place as its relevance, in the arm where it stands higher; what neither arm has is left out."""
    places: dict[UUID, int] = {}
    for scores in (
        [(-item.similarity, item.memory_id) for item in pool if item.similarity is not None],
        [(-item.bm25, item.memory_id) for item in pool if item.bm25 > 0],
    ):
        for place, (_, memory_id) in enumerate(sorted(scores), start=1):
            places[memory_id] = min(place, places.get(memory_id, place))
    kept = [place for place, item in enumerate(pool) if item.memory_id in places]
    chosen = [pool[place] for place in kept]
    return chosen, found.of(kept, [1 / places[item.memory_id] for item in chosen])


MOST_RERANKED = 24
"""Hits that are read again: each is a run of a large model, and hardly any of those behind would come to the front."""
SHARE = 0.5
"""Of the relevance, what the re-ranker says of it. Half, because it was not measured (docs/retrieval.md)."""


def reranked(hits: Sequence[Hit], scores: Sequence[float], weights: Weights) -> list[Hit]:
    """The hits in their new order. `scores` are of the first of them; what was not scored counts as the worst that was.

    Each score becomes a probability, and that a share of the best one's, as relevance is. Ratings, judgement and age
    count as before.
    """
    if not scores:
        return list(hits)
    known = [_probability(score) for score in scores]
    best = max(known) or 1.0
    fits = [*(value / best for value in known), *[min(known) / best] * (len(hits) - len(known))]
    raw = [*scores, *[None] * (len(hits) - len(known))]
    again = [_again(hit, fit, score, weights) for hit, fit, score in zip(hits, fits, raw, strict=True)]
    return sorted(again, key=lambda hit: -hit.score)


def _again(hit: Hit, fit: float, score: float | None, weights: Weights) -> Hit:
    parts = hit.explain
    before = parts["relevance"] or 0.0
    relevance = (1 - SHARE) * before + SHARE * fit
    factor = weights.relevance * (parts["q_adjust"] or 0.0) * (parts["recency"] or 0.0)
    value = hit.score + factor * (relevance - before)
    added = {"score": value, "relevance": relevance, "before_reranking": before, "reranker": score}
    return replace(hit, score=value, explain={**parts, **added})


def _probability(score: float) -> float:
    """The logistic function, without overflow."""
    if score >= 0:
        return 1 / (1 + math.exp(-score))
    power = math.exp(max(score, -700.0))
    return power / (1 + power)
