"""Scores the passages of the best memories, so that an answer shows those that speak to the query. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from sys import intern
from typing import NamedTuple

import numpy as np
from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped] # the package has no types

from app.foundation.models.protocols import Matrix, Vector
from app.foundation.text.passages import REMEMBERED, Passage, passages_of
from app.foundation.text.words import IDEOGRAPH, STOP_WORDS, WORD

LEXICAL = 0.5
"""Share of the lexical score; the rest is the similarity's. On three of six report trees, right answers are 0.70 with
0.5 and 0.68 with 0.4; on the others both are equal (benchmarks/retrieval.md)."""
OF_MEMORY = 0.3
"""Share of its memory's evidence (neighbours, phrases) that a passage gets. Without it prompts lose 0.03. A gain by
links counts in full, because what a link brings may have nothing of its own."""
OF_TITLE = 0.5
"""Share by which a word of the title counts beside one of the passage. The short passages of a file whose title has the
query's words stood before those that answer: on three of six report trees evidence 0.75 with 1, 0.77 with 0.5."""
SAME = 2
"""Letters at the beginning of an ASCII word that stemming keeps."""
K1, B = 1.2, 0.4
"""Saturation and length normalisation of BM25, as in `app.storage.index.indexing`."""
STEMMED = frozenset(
    """arabic danish dutch english finnish french german greek hungarian italian norwegian portuguese romanian russian
    spanish swedish tamil turkish""".split()  # noqa: SIM905 - a list of words
)  # fmt: skip
"""Text search languages that the stemmer knows; words of others are compared as they are."""


class Terms(NamedTuple):
    """The words of a query as the store knows them."""

    weights: Mapping[str, float]
    """The inverse document frequency of each lexeme."""
    full: float
    """The score of a text of mean length that has each of them once; 0 without words."""
    languages: tuple[str, ...]
    stored: frozenset[str] = frozenset()
    """The lexemes that the statistics have: those of the latest memories are missing."""
    beginnings: frozenset[str] = frozenset()
    """The first letters of the lexemes (`beginnings_of`); empty if all words are stemmed."""

    def share(self, lexemes: Collection[str]) -> float:
        """Returns the share of the query's weight that these lexemes have."""
        whole = sum(self.weights.values())
        return sum(weight for word, weight in self.weights.items() if word in lexemes) / whole if whole else 0.0


def beginnings_of(lexemes: Iterable[str]) -> frozenset[str]:
    """Returns the first letters of lexemes: an ASCII word with another beginning has none of these lexemes."""
    return frozenset(lexeme[:SAME] for lexeme in lexemes)


class Need(NamedTuple):
    """A need of a query."""

    vector: Vector | None
    lexemes: frozenset[str]
    full: float
    """The score of a text of mean length that has each of its lexemes once; 0 without words."""


def need_of(text: str, terms: Terms, vector: Vector | None) -> Need:
    """Returns a sentence of a query as a need."""
    (counts,) = _Lexemes(terms).of(_words_of_text(text))
    lexemes = frozenset(counts)
    return Need(vector, lexemes, terms.full * terms.share(lexemes))


def fuse_scores(similarity: float, lexical: float) -> float:
    """Returns the weighted sum of a similarity and a lexical score."""
    return LEXICAL * lexical + (1 - LEXICAL) * max(0.0, similarity)


class PassageScore(NamedTuple):
    """A passage of a memory with what speaks for it."""

    passage: Passage
    evidence: float
    """The weighted sum of both scores, and the share of its memory's evidence."""
    similarity: float
    """Cosine similarity; its memory's where it has no vector of its own."""
    lexical: float
    """BM25 as a share of a full match, 0 to 1."""
    own: float = 0.0
    """The evidence without what its memory lends."""
    vector: Vector | None = None
    lexemes: frozenset[str] = frozenset()
    """The query's lexemes that it has."""


class ReadText(NamedTuple):
    """The text of a memory with what is stored of it."""

    title: str
    body: str
    similarity: float
    lent: float
    """The evidence that its memory lends to each of its passages: a share of its own, and its gain by links."""
    passages: Sequence[Passage]
    vectors: Matrix | None
    """The vectors of its passages; None if they are not stored, or if it is a single passage."""


def read_text(title: str, body: str, *, similarity: float | None, evidence: float, links: float = 0.0) -> ReadText:
    """Returns a memory's text with its passages, still without vectors."""
    return ReadText(title, body, similarity or 0.0, OF_MEMORY * evidence + links, passages_of(body), None)


def score_passages(
    texts: Sequence[ReadText], terms: Terms, query: Vector | None, needs: Sequence[Need] = ()
) -> list[list[PassageScore]]:
    """Returns the passages of each text with their scores, in the order of the text.

    Of a query with several needs, half of a passage's score is that for the need to which it speaks most.
    """
    whole = Need(query, frozenset(terms.weights), terms.full)
    lexemes = _Lexemes(terms)
    said = [_lexemes_of_passages(text, lexemes) for text in texts]
    mean = float(np.mean([length for item in said for _, length in item] or [1])) or 1.0
    return [_scores(text, own, mean, terms, [whole, *needs]) for text, own in zip(texts, said, strict=True)]


Said = tuple[Mapping[str, float], float]
"""The query's lexemes in a passage, how often each, and the number of its words."""


def _scores(
    text: ReadText, said: Sequence[Said], mean: float, terms: Terms, needs: Sequence[Need]
) -> list[PassageScore]:
    """Returns the scores of a text's passages; `mean` is the mean number of words of all."""
    similarities = [_similarities(text, need) for need in needs]
    found: list[PassageScore] = []
    for place, (passage, (counts, length)) in enumerate(zip(text.passages, said, strict=True)):
        lexical = [_bm25(counts, length / mean, terms, need) if counts else 0.0 for need in needs]
        own = fuse_scores(similarities[0][place], lexical[0])
        if len(needs) > 1:
            others = zip(similarities[1:], lexical[1:], strict=True)
            own = (own + max(fuse_scores(of_need[place], words) for of_need, words in others)) / 2
        vector = None if text.vectors is None else text.vectors[place]
        scores = (own + text.lent, similarities[0][place], lexical[0], own)
        found.append(PassageScore(passage, *scores, vector, frozenset(counts)))
    return found


def _similarities(text: ReadText, need: Need) -> Sequence[float]:
    if text.vectors is None or need.vector is None:
        return [text.similarity] * len(text.passages)
    similarities: list[float] = (text.vectors @ need.vector).tolist()
    return similarities


def _bm25(counts: Mapping[str, float], length: float, terms: Terms, need: Need) -> float:
    """Returns BM25 as a share of a full match, 0 to 1; `length` is a share of the mean."""
    norm = K1 * (1 - B + B * length)
    score = sum(
        terms.weights[word] * count * (K1 + 1) / (count + norm)
        for word, count in counts.items()
        if word in need.lexemes
    )
    return min(1.0, score / need.full) if need.full else 0.0


class Words(NamedTuple):
    """The words of a text's passages without stop words; of characters without blanks between words the pairs too."""

    counts: Sequence[Mapping[str, int]]
    """The number of times that each is in each passage."""
    numbers: Sequence[int]
    """The number of words of each passage; pairs do not count."""
    by_beginning: Mapping[str, Sequence[str]]
    """All words by their first letters; those with other characters than ASCII under an empty beginning."""


def _words_of(passages: Iterable[str]) -> Words:
    """Returns the words of passages. Equal words of all texts are one string, so that what is remembered is small."""
    counts: list[Mapping[str, int]] = []
    numbers: list[int] = []
    by_beginning: dict[str, list[str]] = {}
    for text in passages:
        words = [intern(word) for word in WORD.findall(text.lower()) if word not in STOP_WORDS]
        pairs = () if text.isascii() else (one + other for one, other in pairwise(words) if _are_ideographs(one, other))
        # The garbage collector does not visit a plain dict of strings and numbers.
        counts.append(dict(Counter([*words, *pairs])))
        numbers.append(len(words))
    for word in dict.fromkeys(word for passage in counts for word in passage):
        by_beginning.setdefault(word[:SAME] if word.isascii() else "", []).append(word)
    return Words(counts, numbers, by_beginning)


def _are_ideographs(one: str, other: str) -> bool:
    return IDEOGRAPH.fullmatch(one) is not None and IDEOGRAPH.fullmatch(other) is not None


@lru_cache(maxsize=REMEMBERED)
def _words_of_passages(body: str) -> Words:
    return _words_of(part.of(body) for part in passages_of(body))


@lru_cache(maxsize=REMEMBERED)
def _words_of_text(text: str) -> Words:
    return _words_of([text])


class _Lexemes:
    """Finds the query's lexemes in texts, and looks at each word once.

    ASCII words that begin like no lexeme of the query have none: stemming takes most of the time. Other words may lose
    their accents or their article.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._spoken = [_stemmer(language) for language in terms.languages if language in STEMMED]
        self._known: dict[str, Sequence[str]] = {}

    def of(self, words: Words) -> list[dict[str, float]]:
        """Returns the query's lexemes in each passage, how often each."""
        beginnings = {*self._terms.beginnings, ""} if self._terms.beginnings else words.by_beginning.keys()
        looked_at = (word for beginning in beginnings for word in words.by_beginning.get(beginning, ()))
        found = [(word, lexemes) for word in looked_at if (lexemes := self._of_word(word))]
        return [_count_lexemes(counts, found) if found else {} for counts in words.counts]

    def _of_word(self, word: str) -> Sequence[str]:
        """Returns the query's lexemes of a word, of each language once."""
        if word not in self._known:
            stems = {stemmer.stem_word(word) for stemmer in self._spoken} | {word}
            self._known[word] = [stem for stem in stems if stem in self._terms.weights]
        return self._known[word]


def _count_lexemes(counts: Mapping[str, int], found: Sequence[tuple[str, Sequence[str]]]) -> dict[str, float]:
    lexemes: dict[str, float] = {}
    for word, its in found:
        if count := counts.get(word):
            for lexeme in its:
                lexemes[lexeme] = lexemes.get(lexeme, 0) + count
    return lexemes


def _lexemes_of_passages(text: ReadText, lexemes: _Lexemes) -> list[Said]:
    """Returns the lexemes of each passage; those of the title count in part, because all its passages share them."""
    title, words = _words_of_text(text.title), _words_of_passages(text.body)
    (of_title,) = lexemes.of(title)
    lent = {lexeme: OF_TITLE * count for lexeme, count in of_title.items()}
    return [
        (
            {**lent, **{lexeme: count + lent.get(lexeme, 0) for lexeme, count in counts.items()}} if counts else lent,
            number + OF_TITLE * title.numbers[0],
        )
        for counts, number in zip(lexemes.of(words), words.numbers, strict=True)
    ]


@lru_cache(maxsize=32)
def _stemmer(language: str) -> SnowballStemmer:
    return SnowballStemmer(language)
