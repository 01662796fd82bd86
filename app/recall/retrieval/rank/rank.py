"""Ranks a pool of candidates by relevance, quality and recency, then the best ones again by their texts. Pure."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from app.foundation.text.dates import closeness, periods
from app.foundation.text.words import IDEOGRAPH, STOP_WORDS, titles_in_query
from app.intake.cases.judgement import is_lesson
from app.recall.retrieval.rank.asking import DEFAULT_ROLE, Role, asks_for_failures, fit
from app.recall.retrieval.rank.features import (
    ArmScores,
    Relevance,
    Relevances,
    SeedLink,
    TextFeatures,
    relevances,
)
from app.recall.retrieval.rank.presets import Preset, Rank, Threshold, rank

_READ_CHARACTERS = 4_000
"""Characters that are read of each text and of the query: the important part is early, and the caller waits."""
_REMEMBERED = 2_048
"""Texts whose forms are remembered, about 12 kB each: those that are hits again and again."""
_PAIR_LIMIT = 64
"""Most pairs of words that are searched for in each text; a question has ten."""
LONG_ENOUGH = 100
"""Characters of a turn that loses nothing (benchmarks/retrieval.md compares other lengths)."""
_LETTERS_OF_AN_IDEOGRAPH = 3
"""Characters that a Chinese or Japanese one counts as: of 100 memories the English text has 3.4 times as many (median)
as its Chinese translation."""
_QUESTION_MARKS = ("?", "？", "؟")
_WORDS_ONLY = bytes(ord(sign) if not sign.isascii() or sign.isalnum() else ord(" ") for sign in map(chr, range(256)))
"""Translation of ASCII marks to blanks; all other bytes stay. It takes a fifth of a regular expression's time."""

_STOPS = frozenset(word.encode() for word in STOP_WORDS)
_ASKS_WHEN = re.compile(
    r"\s*(?:when|how long|(?:(?:in|on|during|since) )?(?:what|which) (?:year|month|week|day|date))\b"
)
_TELLS_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|since|recently|(?:last|next|this|past) (?:few )?(?:night|weekend|week|"
    r"month|year|spring|summer|autumn|fall|winter)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|"
    r"april|june|july|august|september|october|november|december|(?:19|20)[0-9][0-9])\b"
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|myself|we|our|ours|ich|mich|mir|mein\w*|wir|unser\w*|je|j|moi|mon|mes|nous|notre|yo|mi|mis|nosotros|я|"
    r"меня|мне|мо[йяёи]|мою|мо[еи][йх]|мы|нас|нам|наш\w*)\b"
)


class HitText(NamedTuple):
    """A hit's text."""

    title: str
    body: str
    source: Hashable | None
    ordinal: int | None
    """Its place as a turn of a conversation; None if it is not a turn."""


class TextReading(NamedTuple):
    """The features of one text."""

    phrases: float
    """Share of the query's pairs of neighbouring words that are neighbours in the text too."""
    time: bool
    """True if the query asks for a time and the text tells one."""
    own: bool
    """True if the text is in the first person and the query names its speaker."""
    asks: bool
    """True if the text ends in a question: the next turn of the source is more likely to have the answer."""
    answers: bool
    """True if the turn before it in its source, which is among the hits too, has a question."""
    short: float
    """Share of LONG_ENOUGH characters that a turn lacks, 0 to 1: short turns agree, thank and greet more than they
    say."""


def readings(query: str, texts: Sequence[HitText]) -> list[TextReading]:
    """Returns the features of each text for the query."""
    asked = query[:_READ_CHARACTERS].lower()
    pairs, when = _pairs(asked), _ASKS_WHEN.match(asked) is not None
    lowered = [_lower(text.title, text.body[:_READ_CHARACTERS]) for text in texts]
    speakers = titles_in_query(asked, [text.title for text in texts])
    questions = {
        (text.source, text.ordinal)
        for text in texts
        if text.ordinal is not None and any(mark in text.body for mark in _QUESTION_MARKS)
    }
    return [
        TextReading(
            phrases=_share(pairs, words),
            time=when and _TELLS_TIME.search(words) is not None,
            own=speaks and text.ordinal is not None and _FIRST_PERSON.search(words) is not None,
            asks=text.ordinal is not None and text.body.rstrip().endswith(_QUESTION_MARKS),
            answers=text.ordinal is not None and (text.source, text.ordinal - 1) in questions,
            short=0.0 if text.ordinal is None else _shortness(text.body.strip()),
        )
        for text, words, speaks in zip(texts, lowered, speakers, strict=True)
    ]


@lru_cache(maxsize=_REMEMBERED)
def _lower(title: str, body: str) -> str:
    return f"{title} {body}".lower()


def _shortness(said: str) -> float:
    length = len(said)
    if length < LONG_ENOUGH and not said.isascii():
        length += (_LETTERS_OF_AN_IDEOGRAPH - 1) * len(IDEOGRAPH.findall(said))
    return max(0.0, 1 - length / LONG_ENOUGH)


def _pairs(asked: str) -> list[bytes]:
    """Returns pairs of neighbouring words, except of two stop words. The second may be longer in a text (plurals)."""
    words = _words_with_blanks(asked).split()
    pairs = (b" %b %b" % (one, other) for one, other in pairwise(words) if one not in _STOPS or other not in _STOPS)
    return list(dict.fromkeys(pairs))[:_PAIR_LIMIT]


def _share(pairs: Sequence[bytes], lowered: str) -> float:
    if not pairs:
        return 0.0
    words = _words_with_blanks(lowered)
    return sum(map(words.__contains__, pairs)) / len(pairs)


@lru_cache(maxsize=_REMEMBERED)
def _words_with_blanks(lowered: str) -> bytes:
    """Returns the words, with one blank before each. Splitting and joining would take three times as long."""
    words = b" " + lowered.encode().translate(_WORDS_ONLY)
    while b"  " in words:
        words = words.replace(b"  ", b" ")
    return words


_SECONDS_A_DAY = 86_400
GAINS = (
    "vector", "lexical", "fused", "neighbours", "source", "named", "dated", "links", "phrases", "time", "own", "turn",
    "short", "evidence",
)  # fmt: skip
"""The components of a relevance that answers show, in their order."""
INFLUENCE = "influence"
COMPONENTS = ("score", "similarity", "bm25", *GAINS, *(name for name in Rank._fields[1:] if name != INFLUENCE))
"""All components of a score; INFLUENCE follows them where it is not 0."""


class Candidate(NamedTuple):
    """A memory in the pool, with the fields that ranking needs. It is a tuple, because an answer makes hundreds."""

    memory_id: UUID
    title: str
    source_id: UUID | None
    ordinal: int | None
    final_score: float | None
    quality: int
    happened_at: datetime | None
    """None for a chunk of an undated report."""
    similarity: float | None
    """Cosine similarity, -1 to 1; None if the memory has no vector."""
    bm25: float
    """BM25 score; 0 if the memory has none of the query's terms."""
    seed: int | None = None
    """Number of the memory as a seed (one of the arms' best, whose links count); None if it is not a seed."""
    edges: Sequence[Sequence[Any]] | None = None
    """Its links with seeds, each with the fields of an Edge."""
    facet: str = ""
    """The kind of its document; without a document the kind of the memory."""
    passage: int | None = None
    """Number of the passage that has the similarity; None if no memory of the workspace has several."""


class Asking(NamedTuple):
    """A query, and who asks when."""

    query: str
    now: datetime
    role: Role = DEFAULT_ROLE
    influences: Mapping[UUID, float] = MappingProxyType({})
    """The influence of memories by their estimated effects, -1 to 1; those without one have none."""


class Ranked(NamedTuple):
    """A candidate with its score and all components of it."""

    candidate: Candidate
    relevance: Relevance
    rank: Rank
    seed: Candidate | None = None
    """The memory whose link boosts it."""

    @property
    def explain(self) -> dict[str, float | None]:
        """Every component of the score, by name."""
        value, *factors, influence = self.rank
        gains = (getattr(self.relevance, name) for name in GAINS)
        parts = (value, self.candidate.similarity, self.candidate.bm25, *gains, *factors)
        known = dict(zip(COMPONENTS, parts, strict=True))
        return {**known, INFLUENCE: influence} if influence else known


def rank_pool(pool: Sequence[Candidate], preset: Preset, asking: Asking, *, full_match: float) -> Iterator[Ranked]:
    """Yields the pool's relevant memories, best first; equal ranks are sorted by id.

    `full_match` is the parameter of `relevances`.
    """
    if preset.blend.by_rank:
        # Memories with equal scores get ranks in the order of the pool.
        pool = sorted(pool, key=lambda item: item.memory_id)
    found = relevances(_evidence(pool, asking.query, asking.now), full_match=full_match, blend=preset.blend)
    seeds = {item.seed: item for item in pool if item.seed is not None}
    if preset.nearest is not None and any(item.similarity is not None for item in pool):
        pool, found = _nearest(pool, preset.nearest)
    if preset.by_place:
        pool, found = _by_place(pool, found)
    values = found.values
    weigh = _weigher(preset, asking)
    ranks = {
        place: weigh(pool[place], values[place], "")
        for place in _relevant(pool, found, preset.threshold, has_words=full_match > 0)
    }
    for place in sorted(ranks, key=lambda place: (-ranks[place].value, pool[place].memory_id)):
        relevance = found[place]
        yield Ranked(pool[place], relevance, ranks[place], seeds[relevance.edge.seed] if relevance.edge else None)


def _evidence(pool: Sequence[Candidate], query: str, now: datetime) -> list[ArmScores]:
    """Returns the evidence of each candidate.

    Positional arguments and integers of the ids make it fast: keywords take twice the time, and a UUID hashes slowly.
    """
    titles = titles_in_query(query, [item.title for item in pool])
    times = periods(query, now)
    dates = (
        [0.0 if item.happened_at is None else closeness(item.happened_at, times) for item in pool]
        if times
        else [0.0] * len(pool)
    )
    numbers: dict[int, int] = {}
    return [
        ArmScores(
            item.similarity,
            item.bm25,
            None if item.source_id is None else numbers.setdefault(item.source_id.int, len(numbers)),
            item.ordinal,
            has_its_name,
            date,
            item.seed,
            [SeedLink._make(edge) for edge in item.edges] if item.edges else (),
        )
        for item, has_its_name, date in zip(pool, titles, dates, strict=True)
    ]


def reread(best: Sequence[Ranked], texts: Sequence[HitText], preset: Preset, asking: Asking) -> list[Ranked]:
    """Ranks the best hits again, with the features of their texts.

    A text can raise the best evidence, so a hit needs its share of the best once more.
    """
    if preset.text_features is None:
        return list(best)
    found = [
        _with_text(item.relevance, reading, preset.text_features)
        for item, reading in zip(best, readings(asking.query, texts), strict=True)
    ]
    weigh = _weigher(preset, asking)
    most = max((relevance.evidence for relevance in found), default=0.0) or 1.0
    again = [
        item._replace(
            relevance=part._replace(value=part.evidence / most),
            rank=weigh(item.candidate, part.evidence / most, text.body),
        )
        for item, part, text in zip(best, found, texts, strict=True)
        if preset.threshold is None or part.evidence >= preset.threshold.share * most
    ]
    return sorted(again, key=lambda item: (-item.rank.value, item.candidate.memory_id))


def _with_text(relevance: Relevance, reading: TextReading, features: TextFeatures) -> Relevance:
    phrases = features.phrases * reading.phrases * relevance.evidence
    time = features.time * reading.time * relevance.evidence
    own = features.own * reading.own * relevance.evidence
    turn = (features.asks * reading.asks + features.answers * reading.answers) * relevance.evidence
    short = features.short * reading.short * relevance.evidence
    evidence = relevance.evidence + phrases + time + own + turn + short
    return relevance._replace(evidence=evidence, phrases=phrases, time=time, own=own, turn=turn, short=short)


def _relevant(
    pool: Sequence[Candidate], found: Relevances, threshold: Threshold | None, *, has_words: bool
) -> Sequence[int]:
    """Returns the places that pass the threshold; returns none if no candidate is relevant to the query.

    If the query has words and no candidate has any of them, only a hit's own similarity counts, because its neighbours
    and links were found by similarity alone too.
    """
    if threshold is None or not pool:
        return range(len(pool))
    if has_words and not any(item.bm25 > 0 for item in pool):
        near = [place for place, item in enumerate(pool) if (item.similarity or 0.0) >= threshold.unmatched]
        return [place for place in near if found.values[place] >= threshold.share]
    similarities = [item.similarity for item in pool if item.similarity is not None]
    if not _is_answerable(max(similarities, default=None), max(found.column("lexical")), threshold):
        return ()
    lexical, neighbours, links, dated = map(found.column, ("lexical", "neighbours", "links", "dated"))
    return [
        place
        for place, value in enumerate(found.values)
        if value >= threshold.share
        and (dated[place] > 0 or _stands(pool[place], lexical[place], neighbours[place] + links[place], threshold))
    ]


def _is_answerable(similarity: float | None, lexical: float, threshold: Threshold) -> bool:
    """Tells if the best scores of a pool, each of any of its memories, say that something is relevant."""
    if similarity is None:
        return lexical >= threshold.lexical_alone
    together = similarity + threshold.lexical_weight * lexical
    return together >= threshold.answerable or lexical >= threshold.lexical


def _stands(item: Candidate, lexical: float, lent: float, threshold: Threshold) -> bool:
    """Tells if a hit has something of its own or is lent enough by others; one of the time that is asked for does."""
    floor = threshold.floor
    least = floor.lexical_alone if item.similarity is None else floor.lexical
    return lexical >= least or (item.similarity or 0.0) >= threshold.similarity or lent >= floor.lent


def _weigher(preset: Preset, asking: Asking) -> Callable[[Candidate, float, str], Rank]:
    """Returns what ranks a memory by its relevance, and by its text where it is known."""
    of_failures = asks_for_failures(asking.query)

    def weigh(item: Candidate, value: float, body: str) -> Rank:
        age = None if item.happened_at is None else (asking.now - item.happened_at).total_seconds() / _SECONDS_A_DAY
        counts = preset.judges_all or not (of_failures or is_lesson(item.facet))
        return rank(
            value,
            final_score=item.final_score if counts else None,
            quality=0 if preset.by_place else item.quality,
            age_days=age,
            weights=preset.weights,
            role=fit(asking.role, item.facet, item.title, body),
            influence=asking.influences.get(item.memory_id, 0.0),
        )

    return weigh


def _nearest(pool: Sequence[Candidate], count: int) -> tuple[list[Candidate], Relevances]:
    """Returns the `count` nearest candidates, each with sim = 1 - distance / 2 as its relevance."""
    near = sorted(
        (item for item in pool if item.similarity is not None),
        key=lambda item: (-(item.similarity or 0.0), item.memory_id),
    )[:count]
    values = [1 - (1 - (item.similarity or 0.0)) / 2 for item in near]
    nothing = [0.0] * len(near)
    return near, Relevances((values, values, values, nothing, values, nothing, nothing, nothing))


def _by_place(pool: Sequence[Candidate], found: Relevances) -> tuple[list[Candidate], Relevances]:
    """Returns the candidates of the arms, each with 1 / place as its relevance, by its better place in the two arms."""
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
