"""The presets: named recipes for ranking, with their weights, their thresholds, and how quality and age count. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import mul
from typing import NamedTuple

import numpy as np

from app.foundation.values import frozen
from app.recall.retrieval.rank.features import DEFAULT_BLEND, Blend, TextFeatures, values
from app.storage.recalls.parts import UNSCORED

_GOOD_SCORE = 7.0
"""An evaluator's score below this counts half. It is the pipeline's own pass mark."""
_RATING_STEP = 0.15
"""Share by which one rating changes the rank. At most three ratings count, which change it by 45 %."""
_LEAST_ADJUSTMENT = 0.2
"""Least share of its rank that a memory keeps, regardless of the number of ratings."""


_MOST_OF_AN_INFLUENCE = 0.1
"""Most that an estimated effect adds to a rank, or takes from it: a seventh of what the best relevance gives. It is the
bound of `benchmarks/pipeline.py`, by which influence beats quality alone in each of 50 simulated pipelines."""


_IN_USE_OF_QUALITY = values("quality")


@frozen
class Weights:
    """Weights of relevance, quality and recency."""

    relevance: float = _IN_USE_OF_QUALITY["relevance"]
    quality: float = _IN_USE_OF_QUALITY["quality"]
    half_life_days: float | None = _IN_USE_OF_QUALITY["half_life_days"]
    """Days after which recency is in the middle between 1 and its floor; None if age does not count."""
    recency_floor: float = _IN_USE_OF_QUALITY["recency_floor"]
    """Least factor of an old memory."""


class Rank(NamedTuple):
    """A rank with its components.

    value = (w_rel · relevance + w_qual · qual_weight) · q_adjust · recency + role + influence.
    """

    value: float
    relevance: float
    qual_weight: float
    q_adjust: float
    recency: float
    role: float = 0.0
    """The gain of a memory that serves the asking agent's role (`app.recall.retrieval.rank.asking`)."""
    influence: float = 0.0
    """Its gain or loss by its estimated effect on later runs; answers show it where it is not 0."""


def qual_weight(final_score: float | None) -> float:
    """Returns an evaluator's score, 0 to 10, as a weight from 0 to 1; halved below _GOOD_SCORE."""
    if final_score is None:
        return UNSCORED
    share = final_score / 10
    return share if final_score >= _GOOD_SCORE else share / 2


def quality_adjustment(quality: int) -> float:
    """Returns the factor of a memory's ratings, -3 to 3: 1 + 0.15 each, at least 0.2."""
    return max(_LEAST_ADJUSTMENT, 1 + _RATING_STEP * quality)


def recency(age_days: float | None, weights: Weights) -> float:
    """Returns the factor of a memory's age: 1 when new, half way to the floor after the half-life, or if unknown."""
    if weights.half_life_days is None:
        return 1.0
    floor = weights.recency_floor
    age_days = weights.half_life_days if age_days is None else age_days
    return floor + (1 - floor) * math.exp2(-max(0.0, age_days) / weights.half_life_days)


def rank(
    relevance: float,
    *,
    final_score: float | None,
    quality: int,
    age_days: float | None,
    weights: Weights,
    role: float = 0.0,
    influence: float = 0.0,
) -> Rank:
    """Returns the rank of a memory of this relevance (0 to 1), score, ratings, age, and gains by role and effect.

    `influence` is a share of _MOST_OF_AN_INFLUENCE, -1 to 1.
    """
    weight, adjustment, fresh = qual_weight(final_score), quality_adjustment(quality), recency(age_days, weights)
    value = (weights.relevance * relevance + weights.quality * weight) * adjustment * fresh + role
    gain = _MOST_OF_AN_INFLUENCE * influence
    return Rank(value + gain, relevance, weight, adjustment, fresh, role, gain)


MOST_RERANKED = 24
"""Most hits that the re-ranker scores: each takes a run of a large model, and later hits would seldom move to the
front."""
RERANKER_SHARE = 0.5
"""Share of the re-ranker's score in the relevance. Half, because it was not measured (benchmarks/retrieval.md)."""

Components = Mapping[str, float | None]
"""Every component of a hit's score, by name."""


def rerank_by_quality(
    hits: Sequence[Components], scores: Sequence[float], weights: Weights
) -> list[tuple[int, dict[str, float | None]]]:
    """Returns the hits in their new order, each by its earlier place and with its new components.

    `scores` belong to the first hits; a hit without a score counts as the worst scored one. Each score becomes a
    probability, and then a share of the best probability, on the scale of relevance. Ratings, judgement and age count
    as before.
    """
    if not scores:
        return list(enumerate(map(dict, hits)))
    known = [logistic(score) for score in scores]
    best = max(known) or 1.0
    fits = [*(value / best for value in known), *[min(known) / best] * (len(hits) - len(known))]
    raw = [*scores, *[None] * (len(hits) - len(known))]
    again = [_reranked_components(hit, fit, score, weights) for hit, fit, score in zip(hits, fits, raw, strict=True)]
    return sorted(enumerate(again), key=lambda item: -(item[1]["score"] or 0.0))


def _reranked_components(
    parts: Components, fit: float, score: float | None, weights: Weights
) -> dict[str, float | None]:
    before = parts.get("relevance") or 0.0
    relevance = (1 - RERANKER_SHARE) * before + RERANKER_SHARE * fit
    factor = weights.relevance * (parts.get("q_adjust") or 0.0) * (parts.get("recency") or 0.0)
    value = (parts["score"] or 0.0) + factor * (relevance - before)
    return {**parts, "score": value, "relevance": relevance, "before_reranking": before, "reranker": score}


def logistic(score: float) -> float:
    """Returns the logistic function of a score, without overflow."""
    if score >= 0:
        return 1 / (1 + math.exp(-score))
    power = math.exp(max(score, -700.0))
    return power / (1 + power)


UNLINKED = Blend(links={})
_NEVER = float("inf")


OF_SIMILARITY, OF_LEXICAL, OF_KNOWN, INTERCEPT = 15.7, 5.6, 4.3, -10.9
"""Coefficients of the logistic function, fitted on six report trees with the questions of each asked of the others,
both classes weighing the same. With each tree left out its AUC is 0.96 over all, and 0.97 over the trees' own questions
(benchmarks/retrieval.md)."""


def probability(similarity: float, lexical: float, known: float) -> float:
    """Returns the probability that a store speaks to a query.

    It takes the best similarity of a memory or passage, the best lexical score, and the share of the query's words, by
    their weights, that the store has; each is 0 to 1.
    """
    return logistic(OF_SIMILARITY * similarity + OF_LEXICAL * lexical + OF_KNOWN * known + INTERCEPT)


class Signs(NamedTuple):
    """The signs that a store answers a request, beside the store's size and its other passages."""

    late: float
    """The best late score of a single passage: how well it speaks of each word of the request."""
    share: float
    """The greatest share of the request's words, by their weights, that stand together in one passage."""
    similarity: float
    """The best similarity of a memory or a passage."""
    known: float
    """Share of the request's words, by their weights, that the store has: an unknown name or number lowers it."""
    gap: float
    """By how much the nearest passage is nearer than the 20th: the best of thousands always looks good."""
    size: float
    """Logarithm of the number of live memories."""


ANSWERED_BY = Signs(late=8.62, share=1.36, similarity=11.27, known=4.64, gap=8.59, size=-0.77)
ANSWERED_INTERCEPT = -9.51
"""Coefficients of the logistic function of `answerable`, which `python -m benchmarks.gates` fits to 14 trees, three
invented and eleven real: 178 requests whose answer a history shows, 67 without an answer, and 280 from other sets,
which weigh a tenth. Of 93 more the answer would not be shown: silence is right there, too, so they teach nothing."""


def answerable(signs: Signs) -> float:
    """Returns the probability that a store has an answer to a request."""
    return logistic(sum(map(mul, ANSWERED_BY, signs)) + ANSWERED_INTERCEPT)


HIT_SIMILARITY, HIT_LEXICAL, HIT_KNOWN, HIT_INTERCEPT = 7.6, 3.8, 1.8, -8.6
"""Coefficients for a hit, fitted on the 20 best hits of 270 questions, each asked of all of six report trees: 27,593
hits, of which 307 have needed evidence. With each tree left out its AUC is 0.953 (benchmarks/retrieval.md)."""
PROMISED = (0.0, 0.003, 0.030, 0.068, 0.137, 0.319, 0.543, 0.690, 0.880, 1.0)
OBSERVED = (0.0, 0.002, 0.059, 0.093, 0.232, 0.283, 0.351, 0.393, 0.579, 0.697)
"""The share of hits with needed evidence where the logistic function promises a value, joined by lines; the last pair
continues the line before it. Three bins with falling shares are one. Uncorrected, it promises up to 0.3 too much."""


def hit_probability(similarity: float, lexical: float, known: float) -> float:
    """Returns the probability that a hit speaks to a query: that it has evidence which the query needs.

    It takes the hit's best similarity and best lexical score, each of the memory or one of its passages, and the share
    of the query's words, by their weights, that the store has; each is 0 to 1.
    """
    promised = logistic(HIT_SIMILARITY * similarity + HIT_LEXICAL * lexical + HIT_KNOWN * known + HIT_INTERCEPT)
    return float(np.interp(promised, PROMISED, OBSERVED))


@frozen
class _Floor:
    """The least that speaks for a hit whose similarity is below the threshold's; one of these is enough.

    Chosen on nine data sets with each left out in turn, always with the same result (benchmarks/retrieval.md): on those
    left out 2 of 1,373 pieces of evidence are lost, and 591 of the 1,936 hits of queries about something else are left.
    """

    lexical: float = 0.25
    """Lexical score of its own."""
    lexical_alone: float = 0.1
    """The same where it has no similarity."""
    lent: float = 0.1
    """Gain by its neighbours and links: an answer may share no word with its question, which stands before it."""


@frozen
class Threshold:
    """The limits below which a query has no hits, or a candidate is left out of the answer.

    Measured on six development sets (benchmarks/retrieval.md): the best similarity to a real question is 0.4 or more in
    99 of 100 cases, and 0.3 to 0.4 where a good part of the question's words is found; the best to a question about
    something else is below 0.4 in 95 of 100, with few of its words found.
    """

    answerable: float = 0.48
    """A query is answerable if the best similarity and the best lexical score, by its weight, together reach this. Of
    3,200 questions about something else 87 get an answer; 468 did when a similarity of 0.3 or a lexical score of 0.4
    was enough. Of 2,343 real questions one gets none that had evidence among its 20 hits before."""
    lexical_weight: float = 0.4
    """Weight of the best lexical score in that sum."""
    likely: float = 0.5
    """Least probability, by the function `answerable`, of a request whose passages were read; for others `answerable`
    above decides. With the tree left out it is silent in 59 of 67 requests that have no answer, and in 21 of 178 whose
    answer is shown. 0.4 makes it 56 and 18, 0.3 52 and 12."""
    lexical: float = 0.8
    """A query is also answerable if the best lexical score reaches this: a name or a number that the model does not
    know may be found by its letters alone."""
    lexical_alone: float = 0.2
    """The limit of the lexical score if no memory has a similarity."""
    similarity: float = 0.3
    """A hit with this similarity needs nothing else."""
    unmatched: float = 0.45
    """If the query has words and none of them is found, each hit needs this similarity instead. On 304 reports the
    nearest to 41 such queries about other things had at most 0.34; the nearest to 32 in Cyrillic, of which the model
    knows only the letters, had 0.30 to 0.48 (two above 0.45). The price: 11 English paraphrases that shared no word
    with a report had 0.15 to 0.41 and are not answered; at 0.3 three of them were, one rightly."""
    share: float = 0.2
    """A hit with less than this share of the best hit's evidence is left out."""
    floor: _Floor = _Floor()
    """The least that each hit must have of its own."""

    def of_memories(self) -> "Threshold":
        """Returns the threshold for memories whose passages will tell if the query has an answer."""
        return replace(self, answerable=0.0, floor=_Floor(lexical=0.0, lexical_alone=0.0))

    def of_words(self) -> "Threshold":
        """Returns the threshold for a query in a script that the model does not know: its words must answer it.

        The bundled model sees only letters of such texts, so that any two of them are alike: by similarity 15 of 15
        Russian and 30 of 30 Chinese questions about something else got an answer, by this 5 and 14, and none of 200
        real ones lost its memory. With 0.2 as the least lexical score 4 and 8 do, and 10 are lost.
        """
        return replace(self, answerable=_NEVER, unmatched=_NEVER, lexical=self.floor.lexical_alone)

    def for_unmeasured_model(self) -> "Threshold":
        """Returns the threshold for a model whose similarities were not measured: they may lie lower.

        A query is then answerable if its best memory could stand alone by meaning, or by a good part of the words.
        """
        answerable, lexical = min(self.answerable, self.similarity), min(self.lexical, 0.4)
        return replace(self, answerable=answerable, lexical=lexical)


@frozen
class Preset:
    """A recipe for ranking."""

    name: str
    weights: Weights
    blend: Blend = DEFAULT_BLEND
    text_features: TextFeatures | None = TextFeatures()
    """Weights of the features of the best hits' texts; None if the texts do not count."""
    threshold: Threshold | None = None
    """Excludes irrelevant memories; None if all candidates are ranked."""
    title_kinds: frozenset[str] = frozenset({"observation"})
    """Kinds for which two memories of one title are duplicates. A chunk's title is its section, a message's its
    speaker, and two cues or notes of one title may contradict each other."""
    dedupe_by_text: bool = True
    """True if memories of near-identical texts are duplicates too."""
    nearest: int | None = None
    """Number of the vector arm's nearest memories to rank, by 1 - distance / 2; None ranks the pool of both arms."""
    by_place: bool = False
    """True if the better of a memory's places in the two arms alone gives its rank, regardless of scores and
    ratings."""
    judges_all: bool = False
    """True if the evaluator's score weighs every memory and roles do not count. Otherwise it weighs only what runs
    produced, and nothing if the query asks what went wrong."""
    most: int | None = None
    """Most hits that it gives."""
    most_terms: int | None = None
    """Most terms of the query that count, the rarest; None if only the lexical arm's own limit applies."""


DEFAULT = Preset(name="default", weights=Weights(), threshold=Threshold())
CLASSIC = Preset(
    name="classic",
    weights=Weights(half_life_days=None),
    blend=UNLINKED,
    text_features=None,
    title_kinds=frozenset({"observation", "chunk", "message", "cue", "note"}),
    dedupe_by_text=False,
    nearest=12,
    judges_all=True,
    most=4,
    most_terms=8,
)
"""The original recipe to the letter: the 12 nearest, no recency, deduplicated by title, the best 4; 8 terms are
looked up where there are no vectors."""

_RANKS = Preset(name="ranks", weights=Weights(), blend=Blend(by_rank=True), threshold=Threshold())
"""The default with reciprocal rank fusion in place of score fusion."""

CLOSEST = Preset(
    name="closest",
    weights=Weights(relevance=1.0, quality=0.0, half_life_days=None),
    blend=UNLINKED,
    text_features=None,
    title_kinds=frozenset(),
    dedupe_by_text=False,
    by_place=True,
    judges_all=True,
)
"""The memories nearest to a text, with duplicates and badly rated ones: for comparisons, not for agents."""

PRESETS = {preset.name: preset for preset in (DEFAULT, CLASSIC, _RANKS, CLOSEST)}
