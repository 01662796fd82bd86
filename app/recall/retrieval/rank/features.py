"""Features of candidates, their relevance and the weights of both; leaves out hits that repeat a better one. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import starmap
from math import exp, sqrt
from typing import Any, NamedTuple, Protocol, TypeVar

from app.foundation.text.data import read_toml
from app.foundation.text.words import Wording, wording
from app.foundation.values import frozen

WEIGHTS = read_toml("app.recall.retrieval.rank", "weights.toml", dict[str, dict[str, dict[str, Any]]])
"""The numbers that the ranking uses, by part and name, like `blend` and `lexical`, and where they come from."""


def values(part: str) -> Mapping[str, float]:
    """Returns the numbers of a part by name."""
    return {name: weight["value"] for name, weight in WEIGHTS[part].items()}


_SOURCE_STRIDE = 2**33
"""Distance between the numbers of two sources' places: more than the largest ordinal (2**31 - 1) and its neighbours."""
_IN_USE = values("blend")
SPREADING: Mapping[str, float] = values("links")
"""Share of a seed's evidence that one link spreads, by relation. `similar` has none, because it costs half a point."""


@frozen
class Blend:
    """Weights of the arms and of the association; weights.toml says what each does and where it was measured."""

    lexical: float = _IN_USE["lexical"]
    repeated: float = _IN_USE["repeated"]
    next: float = _IN_USE["next"]
    second: float = _IN_USE["second"]
    source_lexical: float = _IN_USE["source_lexical"]
    source_vector: float = _IN_USE["source_vector"]
    named: float = _IN_USE["named"]
    dated: float = _IN_USE["dated"]
    links: Mapping[str, float] = field(default_factory=lambda: SPREADING)
    """If empty, links do not count."""
    by_rank: bool = False
    """True if reciprocal ranks are fused instead of the scores."""


DEFAULT_BLEND = Blend()

_TEXT_IN_USE = values("text_features")


@frozen
class TextFeatures:
    """Share by which each feature of a text changes its evidence; weights.toml says where it was measured."""

    phrases: float = _TEXT_IN_USE["phrases"]
    time: float = _TEXT_IN_USE["time"]
    own: float = _TEXT_IN_USE["own"]
    asks: float = _TEXT_IN_USE["asks"]
    answers: float = _TEXT_IN_USE["answers"]
    short: float = _TEXT_IN_USE["short"]


class SeedLink(NamedTuple):
    """A link between a memory and a seed, seen from the memory."""

    seed: int
    """The seed's number."""
    relation: str
    direction: str
    """`out` if the link leads from the memory to the seed (it mentions the seed, is derived from it …); else `in`."""
    weight: float
    """Weight of the link, above 0 and at most 1."""
    degree: float
    """Sum of the weights of the seed's links of this relation, at least 1; the gain is divided by its square root."""


class Boost(NamedTuple):
    """The gain of a memory by its links."""

    value: float
    edge: SeedLink | None
    """The link that it comes from."""


class ArmScores(NamedTuple):
    """The arms' scores of one memory, and its other features."""

    similarity: float | None
    """Cosine similarity, -1 to 1; None without a vector."""
    bm25: float
    source: int | None
    """Identifies the source: an arbitrary number that all memories of one source share."""
    ordinal: int | None
    named: bool = False
    """True if the query names the memory's title."""
    dated: float = 0.0
    """Closeness of the memory's moment to the time that the query names, 0 to 1."""
    seed: int | None = None
    """Number of this memory as a seed; None if it is not a seed."""
    edges: Sequence[SeedLink] = ()
    """Its links with seeds."""


class Relevance(NamedTuple):
    """A memory's relevance with its components."""

    value: float
    """The relevance that ranking weighs against quality, from 0 to 1; the best of the pool has 1."""
    evidence: float
    """fused + neighbours + source + named + dated + links, and the features of the text. Its scale is the same for
    all queries, so that a threshold can exclude irrelevant memories."""
    vector: float
    """Similarity, from 0 (unrelated or worse) to 1 (the same)."""
    lexical: float
    """BM25, from 0 to 1: the score of a memory of mean length that has each of the query's terms once."""
    fused: float
    """Weighted sum of both scores."""
    neighbours: float
    """Gain by its neighbours in the source."""
    source: float
    """Gain by its source."""
    named: float
    """Gain by its title, because the query names it."""
    dated: float = 0.0
    """Gain by its moment, because the query names the time."""
    links: float = 0.0
    """Gain by the strongest of its links with a seed."""
    edge: SeedLink | None = None
    """The link of this gain."""
    phrases: float = 0.0
    """Gain by its text, because neighbouring words of the query are neighbours in it too."""
    time: float = 0.0
    """Gain by its text, because the query asks for a time and the text tells one."""
    own: float = 0.0
    """Gain by its text, because the query names its speaker and the text is in the first person."""
    turn: float = 0.0
    """Gain of a turn that follows a question; negative for a turn that is a question."""
    short: float = 0.0
    """Loss of a turn of few characters; never positive."""


class Relevances:
    """The relevances of a pool's memories, in their order. Each is made on demand, because an answer needs only the
    best of hundreds."""

    def __init__(self, columns: Iterable[Sequence[Any]]) -> None:
        """Takes the first fields of Relevance, in their order, each as the values of all memories."""
        self._columns = tuple(columns)

    @property
    def values(self) -> Sequence[float]:
        """The `value` of each memory."""
        return self._columns[0]

    def column(self, name: str) -> Sequence[float]:
        """Returns this field of each memory."""
        column: Sequence[float] = self._columns[Relevance._fields.index(name)]
        return column

    def of(self, places: Sequence[int], values: Sequence[float]) -> "Relevances":
        """Returns the relevances at these places, with other values."""
        return Relevances((values, *([column[place] for place in places] for column in self._columns[1:])))

    def __iter__(self) -> Iterator[Relevance]:
        return starmap(Relevance, zip(*self._columns, strict=True))

    def __getitem__(self, place: int) -> Relevance:
        return Relevance(*(column[place] for column in self._columns))


def relevances(pool: Sequence[ArmScores], *, full_match: float, blend: Blend = DEFAULT_BLEND) -> Relevances:
    """Returns the relevance of each memory of the pool, in its order.

    `full_match` is the BM25 score of a memory of mean length that has each of the query's terms once. Both scores get a
    scale that does not depend on the other candidates. On LoCoMo dev it finds as much as min-max scaling over the pool
    (recall@10 0.764 and 0.763), and it can show that no memory is relevant.
    """
    vector = [0.0 if not item.similarity or item.similarity < 0 else min(1.0, item.similarity) for item in pool]
    lexical = _lexical(pool, full_match)
    if blend.by_rank:
        fused = reciprocal_ranks(pool)
    else:
        share = _lexical_share(pool, full_match, blend)
        fused = [share * words + (1 - share) * meaning for words, meaning in zip(lexical, vector, strict=True)]
    neighbours = _from_neighbours(pool, fused, blend)
    sources = _from_source(pool, lexical, vector, blend)
    found = [own + beside + above for own, beside, above in zip(fused, neighbours, sources, strict=True)]
    titles = [blend.named * value if item.named else 0.0 for item, value in zip(pool, found, strict=True)]
    known = [value + title for value, title in zip(found, titles, strict=True)]
    dates = [blend.dated * item.dated * value for item, value in zip(pool, known, strict=True)]
    alone = [value + date for value, date in zip(known, dates, strict=True)]
    boosts = spread(alone, [item.seed for item in pool], [item.edges for item in pool], blend.links)
    links = [boost.value for boost in boosts]
    raw = [value + link for value, link in zip(alone, links, strict=True)]
    best = max(raw, default=0.0) or 1.0
    values = [value / best for value in raw]
    edges = [boost.edge for boost in boosts]
    return Relevances((values, raw, vector, lexical, fused, neighbours, sources, titles, dates, links, edges))


_KNEE = 0.8
"""The lexical score above which a pool without vectors is bent instead of cut off."""


def _lexical(pool: Sequence[ArmScores], full_match: float) -> list[float]:
    """Returns the lexical scores, at most 1. Without vectors nothing else tells full matches apart: they near 1."""
    shares = [item.bm25 / full_match if item.bm25 and full_match else 0.0 for item in pool]
    if any(item.similarity is not None for item in pool):
        return [min(1.0, share) for share in shares]
    rest = 1 - _KNEE
    return [share if share <= _KNEE else 1 - rest * exp((_KNEE - share) / rest) for share in shares]


def reciprocal_ranks(pool: Sequence[ArmScores], *, constant: float = 60.0) -> list[float]:
    """Fuses both arms by reciprocal ranks, from 0 to 1. Cormack, Clarke and Büttcher 2009, with their k = 60."""
    totals = [0.0] * len(pool)
    for scores in ([item.similarity for item in pool], [item.bm25 or None for item in pool]):
        found = sorted((-score, place) for place, score in enumerate(scores) if score is not None)
        for order, (_, place) in enumerate(found, start=1):
            totals[place] += (constant + 1) / (constant + order) / 2
    return totals


def _lexical_share(pool: Sequence[ArmScores], full_match: float, blend: Blend) -> float:
    """Returns the share of the lexical score in the fused score."""
    if all(item.similarity is None for item in pool):
        return 1.0
    best = max(item.bm25 for item in pool)
    if best <= 0 or not full_match:
        return 0.0
    words, meaning = blend.lexical * max(1.0, best / full_match) ** -blend.repeated, 1 - blend.lexical
    return words / (words + meaning) if meaning else 1.0


def _from_neighbours(pool: Sequence[ArmScores], fused: Sequence[float], blend: Blend) -> list[float]:
    """Returns the gain of each memory by its neighbours.

    Each place of each source is one number, because an answer needs hundreds of look-ups.
    """
    at = [
        None if item.source is None or item.ordinal is None else item.source * _SOURCE_STRIDE + item.ordinal
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
    pool: Sequence[ArmScores], lexical: Sequence[float], vector: Sequence[float], blend: Blend
) -> list[float]:
    words: dict[int | None, float] = {}
    meaning: dict[int | None, float] = {}
    for item, word, near in zip(pool, lexical, vector, strict=True):
        if word > words.get(item.source, 0.0):
            words[item.source] = word
        if near > meaning.get(item.source, 0.0):
            meaning[item.source] = near
    gains = {
        source: blend.source_lexical * words.get(source, 0.0) + blend.source_vector * meaning.get(source, 0.0)
        for source in words.keys() | meaning.keys()
        if source is not None
    }
    return [0.0 if item.source is None else gains.get(item.source, 0.0) for item in pool]


_NOTHING = Boost(0.0, None)


def spread(
    evidence: Sequence[float],
    seeds: Sequence[int | None],
    edges: Sequence[Sequence[SeedLink]],
    shares: Mapping[str, float] = SPREADING,
) -> list[Boost]:
    """Returns the gain of each memory by its links, in the order of `evidence`.

    The best candidates of each arm are seeds. A memory that is linked with a seed gains a share of the seed's own
    evidence: the relation's share times the link's weight, divided by the square root of its `degree`. Only the
    strongest link counts, and the gain does not spread further, so that one link explains a hit.

    A gain is never negative, and never exceeds the greatest share of the greatest evidence: no memory loses by links,
    and a hub with thousands of links cannot flood an answer. An unknown seed or relation gives no gain.
    """
    if not any(edges):
        return [_NOTHING] * len(edges)
    given = {seed: max(0.0, value) for seed, value in zip(seeds, evidence, strict=True) if seed is not None}
    return [_strongest(its, given, shares) if its else _NOTHING for its in edges]


def _strongest(edges: Sequence[SeedLink], given: Mapping[int, float], shares: Mapping[str, float]) -> Boost:
    best = _NOTHING
    for edge in edges:
        value = shares.get(edge.relation, 0.0) * edge.weight * given.get(edge.seed, 0.0) / sqrt(edge.degree)
        if value > best.value:
            best = Boost(value, edge)
    return best


_NEAR = 0.8
"""Least Jaccard index of two texts that are duplicates. A 100-word text with a changed number or name stays above
it; one with a changed sentence does not."""


class _Titled(Protocol):
    """The fields of a hit that dedupe reads."""

    @property
    def kind(self) -> str:
        """The memory's kind."""

    @property
    def title(self) -> str:
        """The memory's title, compared without case and white space; an empty title equals no other."""

    @property
    def body(self) -> str:
        """The memory's text."""


T = TypeVar("T", bound=_Titled)


def drop_duplicates(
    ranked: Iterable[T],
    *,
    title_kinds: frozenset[str],
    by_text: bool = True,
    paired: Callable[[T], bool] = lambda _: False,
) -> Iterator[T]:
    """Yields `ranked` without the duplicates of better hits, by near-identical text or, for these kinds, by title.

    A `paired` hit belongs to another one that may have its title, so only their texts are compared.
    """
    titles: set[str] = set()
    kept: list[Wording] = []
    for item in ranked:
        title = " ".join(item.title.casefold().split()) if item.kind in title_kinds else ""
        words = wording(item.body) if by_text else None
        if (title in titles and not paired(item)) or (words and any(words.is_near(other, _NEAR) for other in kept)):
            continue
        titles |= {title} if title else set()
        kept += [words] if words else []
        yield item
