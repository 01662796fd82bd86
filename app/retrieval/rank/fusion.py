"""From two raw scores to one relevance: normalisation, fusion and association. Pure: lists in, lists out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, NamedTuple

from app.retrieval.rank.spreading import SPREADING, Tie, spread

SOURCE_STRIDE = 2**33
"""Beyond the largest ordinal (2**31 - 1) and its neighbours, so that no two sources touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """How the arms and the association are mixed; measured on LoCoMo dev (docs/retrieval.md)."""

    lexical: float = 0.6
    """Share of the lexical score in the fused one; the rest is the vector's."""
    next: float = 0.3
    """What the fused score of the memory before and after adds."""
    second: float = 0.15
    """What that of the two beyond adds."""
    source_lexical: float = 0.3
    """What the source's best lexical score adds."""
    source_vector: float = 0.1
    """What the source's best vector score adds."""
    named: float = 0.2
    """Share by which a memory gains whose title the query names: 3 points of recall@10 (docs/retrieval.md)."""
    dated: float = 0.5
    """Share by which a memory gains that is from the time which the query names: 13 points of recall@5 where a question
    says `last month` (docs/retrieval.md)."""
    links: Mapping[str, float] = field(default_factory=lambda: SPREADING)
    """What a link of each relation passes on (`spreading`); empty: links do not count."""
    by_rank: bool = False
    """Fuse by reciprocal ranks in place of the scores."""


DEFAULT_BLEND = Blend()


class Evidence(NamedTuple):
    """What the arms know of one memory."""

    similarity: float | None
    """Cosine similarity, -1 to 1; None without a vector."""
    bm25: float
    source: int | None
    """Any number, the same for memories of one source."""
    ordinal: int | None
    named: bool = False
    """Whether the query names its title."""
    dated: float = 0.0
    """How well its moment fits the time that the query names, 0 to 1."""
    giver: int | None = None
    """Its number, where others may gain by their links with it."""
    ties: Sequence[Tie] = ()
    """Its links with givers."""


class Relevance(NamedTuple):
    """A memory's relevance and what it is made of."""

    value: float
    """From 0 to 1, the pool's best: what ranking weighs against quality."""
    evidence: float
    """fused + neighbours + source + named + dated + links, and what its text adds: means the same for every query, so
    that a threshold can tell junk."""
    vector: float
    """Similarity, from 0 (unrelated or worse) to 1 (the same)."""
    lexical: float
    """BM25, from 0 to 1: as much as a memory of mean length gets that has each of the query's terms once."""
    fused: float
    """The two, mixed."""
    neighbours: float
    """What its neighbours in the source added."""
    source: float
    """What its source added."""
    named: float
    """What its title added, because the query names it."""
    dated: float = 0.0
    """What its moment added, because the query names the time."""
    links: float = 0.0
    """What the strongest of its links with a giver added."""
    tie: Tie | None = None
    """That link."""
    phrases: float = 0.0
    """What its text added, because words stand together in it as they do in the query."""
    time: float = 0.0
    """What its text added, because the query asks when and it tells a time."""
    own: float = 0.0
    """What its text added, because the query names who says it and they tell of themselves."""
    turn: float = 0.0
    """What its place in a conversation added, after a question, or took, as a question."""


class Relevances:
    """The relevance of each memory of a pool, in its order; each is put together when it is asked for, because an
    answer needs the best of hundreds."""

    def __init__(self, columns: Iterable[Sequence[Any]]) -> None:
        """`columns` are the first of Relevance's fields, in their order, each with what all memories have."""
        self._columns = tuple(columns)

    @property
    def values(self) -> Sequence[float]:
        """Each one's `value`."""
        return self._columns[0]

    @property
    def lexical(self) -> Sequence[float]:
        """Each one's `lexical`."""
        return self._columns[Relevance._fields.index("lexical")]

    def of(self, places: Sequence[int], values: Sequence[float]) -> "Relevances":
        """Those at these places, with other values."""
        return Relevances((values, *([column[place] for place in places] for column in self._columns[1:])))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Relevance]:
        return starmap(Relevance, zip(*self._columns, strict=True))

    def __getitem__(self, place: int) -> Relevance:
        return Relevance(*(column[place] for column in self._columns))


def relevances(pool: Sequence[Evidence], *, full_match: float, blend: Blend = DEFAULT_BLEND) -> Relevances:
    """The relevance of each memory of the pool, in its order.

    `full_match` is the BM25 score of a memory of mean length that has each of the query's terms once. Both scores are
    put on a scale that does not depend on the other candidates: on LoCoMo dev that finds as much as stretching each
    to the pool's least and greatest (recall@10 0.764 and 0.763), and it keeps "nothing is relevant" visible.
    """
    vector = [0.0 if not item.similarity or item.similarity < 0 else min(1.0, item.similarity) for item in pool]
    lexical = [min(1.0, item.bm25 / full_match) if item.bm25 and full_match else 0.0 for item in pool]
    if blend.by_rank:
        fused = reciprocal_ranks(pool)
    else:
        share = _lexical_share(pool, blend)
        fused = [share * words + (1 - share) * meaning for words, meaning in zip(lexical, vector, strict=True)]
    neighbours = _from_neighbours(pool, fused, blend)
    sources = _from_source(pool, lexical, vector, blend)
    found = [own + beside + above for own, beside, above in zip(fused, neighbours, sources, strict=True)]
    titles = [blend.named * value if item.named else 0.0 for item, value in zip(pool, found, strict=True)]
    known = [value + title for value, title in zip(found, titles, strict=True)]
    dates = [blend.dated * item.dated * value for item, value in zip(pool, known, strict=True)]
    alone = [value + date for value, date in zip(known, dates, strict=True)]
    lifts = spread(alone, [item.giver for item in pool], [item.ties for item in pool], blend.links)
    links = [lift.value for lift in lifts]
    raw = [value + link for value, link in zip(alone, links, strict=True)]
    best = max(raw, default=0.0) or 1.0
    values = [value / best for value in raw]
    ties = [lift.tie for lift in lifts]
    return Relevances((values, raw, vector, lexical, fused, neighbours, sources, titles, dates, links, ties))


def reciprocal_ranks(pool: Sequence[Evidence], *, constant: float = 60.0) -> list[float]:
    """Reciprocal rank fusion of both arms, from 0 to 1. Cormack, Clarke and Büttcher 2009, with their k = 60."""
    totals = [0.0] * len(pool)
    for scores in ([item.similarity for item in pool], [item.bm25 or None for item in pool]):
        found = sorted((-score, place) for place, score in enumerate(scores) if score is not None)
        for order, (_, place) in enumerate(found, start=1):
            totals[place] += (constant + 1) / (constant + order) / 2
    return totals


def _lexical_share(pool: Sequence[Evidence], blend: Blend) -> float:
    if all(item.similarity is None for item in pool):
        return 1.0
    return blend.lexical if any(item.bm25 > 0 for item in pool) else 0.0


def _from_neighbours(pool: Sequence[Evidence], fused: Sequence[float], blend: Blend) -> list[float]:
    """Each place of each source is one number, because hundreds of look-ups are made for an answer."""
    at = [
        None if item.source is None or item.ordinal is None else item.source * SOURCE_STRIDE + item.ordinal
        for item in pool
    ]
    scores: dict[int, float] = {}
    for place, score in zip(at, fused, strict=True):
        if place is not None and score > scores.get(place, 0.0):
            scores[place] = score
    known = scores.get
    return [
        0.0
        if place is None
        else blend.next * (known(place - 1, 0.0) + known(place + 1, 0.0))
        + blend.second * (known(place - 2, 0.0) + known(place + 2, 0.0))
        for place in at
    ]


def _from_source(
    pool: Sequence[Evidence], lexical: Sequence[float], vector: Sequence[float], blend: Blend
) -> list[float]:
    words: dict[int | None, float] = {}
    meaning: dict[int | None, float] = {}
    for item, word, near in zip(pool, lexical, vector, strict=True):
        if word > words.get(item.source, 0.0):
            words[item.source] = word
        if near > meaning.get(item.source, 0.0):
            meaning[item.source] = near
    lifts = {
        source: blend.source_lexical * words.get(source, 0.0) + blend.source_vector * meaning.get(source, 0.0)
        for source in words.keys() | meaning.keys()
        if source is not None
    }
    return [0.0 if item.source is None else lifts.get(item.source, 0.0) for item in pool]
