"""Scores the passages of the best memories, so that an answer shows those that speak to the query. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped] # the package has no types

from app.models.protocols import Matrix, Vector
from app.text.passages import Passage, passages_of
from app.text.words import IDEOGRAPH, STOP_WORDS, WORD

LEXICAL = 0.4
"""Share of the lexical score; the rest is the similarity's. Right answers on the three report trees: 0.72 with 0.3 to
0.4, 0.71 with 0.5 (docs/retrieval.md)."""
OF_MEMORY = 0.3
"""Share of its memory's evidence (neighbours, phrases) that a passage gets. Without it prompts lose 0.03. A gain by
links counts in full, because what a link brings may have nothing of its own."""
K1, B = 1.2, 0.4
"""Saturation and length normalisation of BM25, as in `app.index.indexing`."""
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
    known: float = 1.0
    """Share of the words, by their weights, that the store has."""


def fused(similarity: float, lexical: float) -> float:
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
    vector: Vector | None = None

    @property
    def own(self) -> float:
        """The weighted sum of both scores, without what its memory lends."""
        return fused(self.similarity, self.lexical)


class ReadText(NamedTuple):
    """The text of a memory with what is stored of it."""

    title: str
    body: str
    similarity: float
    lent: float
    """What its memory lends to each of its passages: a share of its evidence, and its gain by links."""
    passages: Sequence[Passage]
    vectors: Matrix | None
    """The vectors of its passages; None if they are not stored, or if it is a single passage."""


def read_text(title: str, body: str, *, similarity: float | None, evidence: float, links: float = 0.0) -> ReadText:
    """Returns a memory's text with its passages, still without vectors."""
    return ReadText(title, body, similarity or 0.0, OF_MEMORY * evidence + links, passages_of(body), None)


def scored(texts: Sequence[ReadText], terms: Terms, query: Vector | None) -> list[list[PassageScore]]:
    """Returns the passages of each text with their scores, in the order of the text."""
    lexemes = [[_lexemes(f"{text.title}\n{part.of(text.body)}", terms) for part in text.passages] for text in texts]
    mean = float(np.mean([count for item in lexemes for _, count in item] or [1])) or 1.0
    return [_scores(text, found, terms, mean, query) for text, found in zip(texts, lexemes, strict=True)]


Lexemes = tuple[Mapping[str, int], int]
"""The query's lexemes in a text, how often each, and the number of the text's words."""


def _scores(
    text: ReadText, lexemes: Sequence[Lexemes], terms: Terms, mean: float, query: Vector | None
) -> list[PassageScore]:
    near = [text.similarity] * len(text.passages)
    if text.vectors is not None and query is not None:
        near = [float(value) for value in text.vectors @ query]
    found = []
    for place, (passage, (counts, length)) in enumerate(zip(text.passages, lexemes, strict=True)):
        norm = K1 * (1 - B + B * length / mean)
        bm25 = sum(terms.weights[word] * count * (K1 + 1) / (count + norm) for word, count in counts.items())
        lexical = min(1.0, bm25 / terms.full) if terms.full else 0.0
        vector = None if text.vectors is None else text.vectors[place]
        found.append(PassageScore(passage, fused(near[place], lexical) + text.lent, near[place], lexical, vector))
    return found


def _lexemes(text: str, terms: Terms) -> Lexemes:
    words = [word for word in WORD.findall(text.lower()) if word not in STOP_WORDS]
    counts: dict[str, int] = {}
    for lexeme in _stems(words, terms.languages):
        if lexeme in terms.weights:
            counts[lexeme] = counts.get(lexeme, 0) + 1
    return counts, len(words)


def _stems(words: Sequence[str], languages: Iterable[str]) -> Iterator[str]:
    """Yields the lexemes of each word, of each language once; of characters without blanks between words, the pairs."""
    spoken = [_stemmer(language) for language in languages if language in STEMMED]
    for word in words:
        yield from {stemmer.stem_word(word) for stemmer in spoken} | {word}
    for one, other in pairwise(words):
        if IDEOGRAPH.fullmatch(one) and IDEOGRAPH.fullmatch(other):
            yield one + other


@lru_cache(maxsize=32)
def _stemmer(language: str) -> SnowballStemmer:
    return SnowballStemmer(language)
