"""Scores the passages of the best memories. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped] # the package has no types

from app.foundation.models.protocols import Matrix, Vector
from app.foundation.text.passages import Passage, announces, is_filler, last_sentence, passages_of
from app.foundation.text.words import IDEOGRAPH, STOP_WORDS, WORD, fold

LEXICAL = 0.5
"""Share of the lexical score; the rest is the similarity's. On three of six report trees, right answers are 0.70 with
0.5 and 0.68 with 0.4; on the others both are equal (benchmarks/retrieval.md)."""
_OF_MEMORY = 0.3
"""Share of its memory's evidence (neighbours, phrases) that a passage gets. Without it prompts lose 0.03. A gain by
links counts in full, because what a link brings may have nothing of its own."""
_OF_TITLE = 0.5
"""Share by which a word of the title counts beside one of the passage. The short passages of a file whose title has the
query's words stood before those that answer: on three of six report trees evidence 0.75 with 1, 0.77 with 0.5."""
_LEAST_STATED = 5
"""Words from which a sentence with a colon at its end says something without a list: `Options considered:` does not."""
_POINTS = re.compile(r"\b(?:following|follows?|below|these|here|folgend\w*|folgt)\b", re.IGNORECASE)
"""Words of a sentence that leaves all it says to a list."""
SAME = 2
"""Letters at the beginning of an ASCII word that stemming keeps."""
K1, B = 1.2, 0.4
"""Saturation and length normalisation of BM25, as in `app.storage.index.indexing`."""
_STEMMED = frozenset(
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

    def share(self, lexemes: Collection[str]) -> float:
        """Returns the share of the query's weight that these lexemes have."""
        whole = sum(self.weights.values())
        return sum(weight for word, weight in self.weights.items() if word in lexemes) / whole if whole else 0.0


class _Need(NamedTuple):
    """A need of a query."""

    vector: Vector | None
    lexemes: frozenset[str]
    full: float
    """The score of a text of mean length that has each of its lexemes once; 0 without words."""


def need_of(text: str, terms: Terms, vector: Vector | None) -> _Need:
    """Returns a sentence of a query as a need."""
    counts, _ = _Lexemes(terms).of(text)
    lexemes = frozenset(counts)
    return _Need(vector, lexemes, terms.full * terms.share(lexemes))


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
    late: float | None = None
    """Its late score, by the model's token vectors; None where neither its text nor another has codes."""


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
    late: Sequence[float] | None = None
    """The late scores of its passages; None if the codes of their words are not stored."""


def read_text(title: str, body: str, *, similarity: float | None, evidence: float, links: float = 0.0) -> ReadText:
    """Returns a memory's text with its passages, still without vectors; `links` is lent in full."""
    return ReadText(title, body, similarity or 0.0, _OF_MEMORY * evidence + links, passages_of(body), None)


def score_passages(
    texts: Sequence[ReadText], terms: Terms, query: Vector | None, needs: Sequence[_Need] = ()
) -> list[list[PassageScore]]:
    """Returns the passages of each text with their scores, in the order of the text.

    Of a query with several needs, half of a passage's score is that for the need to which it speaks most. If a text has
    late scores, the passages of one without get what others of their similarity and words have on the average.
    """
    whole = _Need(query, frozenset(terms.weights), terms.full)
    lexemes = _Lexemes(terms)
    said = [lexemes.of_passages(text) for text in texts]
    late = any(text.late is not None for text in texts)
    mean = float(np.mean([length for item in said for _, length in item] or [1])) or 1.0
    found = [_scores(text, own, mean, terms, [whole, *needs]) for text, own in zip(texts, said, strict=True)]
    return [_with_late(text, items) for text, items in zip(texts, found, strict=True)] if late else found


_LEAST_LATE, _OF_SIMILARITY, _OF_LEXICAL = 0.21, 0.45, 0.43
"""The late score of a passage without codes: least squares over 12,000 passages of 14 report trees, which explain 0.69
of the variance."""


_LEAST_SIMILARITY, _BY_LEXICAL = 0.24, 0.38
"""The similarity of a passage without a vector: least squares over 18,000 passages of the same trees."""


def expected_similarity(item: PassageScore) -> float:
    """Returns the similarity that passages with these words have on the average."""
    return _LEAST_SIMILARITY + _BY_LEXICAL * item.lexical


def expected_late(item: PassageScore) -> float:
    """Returns the late score that passages of this similarity and these words have on the average."""
    return _LEAST_LATE + _OF_SIMILARITY * item.similarity + _OF_LEXICAL * item.lexical


def _with_late(text: ReadText, items: Sequence[PassageScore]) -> list[PassageScore]:
    late = text.late or map(expected_late, items)
    return [item._replace(late=score) for item, score in zip(items, late, strict=True)]


def evidence_in(text: str, items: Sequence[PassageScore]) -> list[PassageScore]:
    """Returns the passages of a text that can be evidence.

    A sentence that announces a list stands above its items, which have its scores if these are better, and nowhere
    else. It stays where the text has no list below it and it says something. A text that states nothing is left out.
    """
    found: list[PassageScore] = []
    lead: PassageScore | None = None
    others = [item.passage for item in items]
    for item in items:
        start, end, head = item.passage
        is_led = lead is not None and head is not None and lead.passage.start <= head[0] < lead.passage.end <= start
        if not is_led:
            lead = item if announces(text[start:end]) else None
        if lead is not None and not is_led:
            last, _ = last_sentence(text, start, end)
            has_items = any(other.head is not None and start <= other.head[0] < end <= other.start for other in others)
            if has_items or _only_announces(text[last:end]):
                end = start + len(text[start:last].rstrip())
        if end > start and not is_filler(text[start:end], text[slice(*head)] if head else ""):
            scored = _better(item, lead) if lead is not None and is_led else item
            found.append(scored._replace(passage=Passage(start, end, head)))
    return found


def _only_announces(sentence: str) -> bool:
    return len(sentence.split()) < _LEAST_STATED or _POINTS.search(sentence) is not None


def _better(item: PassageScore, lead: PassageScore) -> PassageScore:
    """Returns an item with the scores of the sentence that announces it, where these are better."""
    late = None if item.late is None or lead.late is None else max(item.late, lead.late)
    if lead.evidence <= item.evidence:
        return item._replace(late=late)
    _, evidence, similarity, lexical, own, *_ = lead
    return item._replace(evidence=evidence, similarity=similarity, lexical=lexical, own=own, late=late)


Said = tuple[Mapping[str, float], float]
"""The query's lexemes in a passage, how often each, and the number of its words."""


def _scores(
    text: ReadText, said: Sequence[Said], mean: float, terms: Terms, needs: Sequence[_Need]
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


def _similarities(text: ReadText, need: _Need) -> Sequence[float]:
    if text.vectors is None or need.vector is None:
        return [text.similarity] * len(text.passages)
    similarities: list[float] = (text.vectors @ need.vector).tolist()
    return similarities


def _bm25(counts: Mapping[str, float], length: float, terms: Terms, need: _Need) -> float:
    """Returns BM25 as a share of a full match, 0 to 1; `length` is a share of the mean."""
    norm = K1 * (1 - B + B * length)
    score = sum(
        terms.weights[word] * count * (K1 + 1) / (count + norm)
        for word, count in counts.items()
        if word in need.lexemes
    )
    return min(1.0, score / need.full) if need.full else 0.0


class _Lexemes:
    """Counts the query's lexemes in texts.

    ASCII words that begin like no lexeme of the query have none, and are not stemmed. Other words may lose their
    accents or their article. Of characters without blanks between words the pairs are words, too.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._spoken = [_stemmer(language) for language in terms.languages if language in _STEMMED]
        self._beginnings = {lexeme[:SAME] for lexeme in terms.weights}
        self._known: dict[str, Sequence[str]] = {}

    def of(self, text: str) -> Said:
        """Returns the query's lexemes in a text, how often each, and the number of its words without stop words."""
        words = [word for word in WORD.findall(fold(text).lower()) if word not in STOP_WORDS]
        looked_at = [word for word in words if word[:SAME] in self._beginnings]
        if not text.isascii():
            pairs = [one + other for one, other in pairwise(words) if _are_ideographs(one, other)]
            looked_at = [word for word in (*words, *pairs) if word[:SAME] in self._beginnings or not word.isascii()]
        counts: dict[str, float] = {}
        for word in looked_at:
            for lexeme in self._of_word(word):
                counts[lexeme] = counts.get(lexeme, 0) + 1
        return counts, len(words)

    def of_passages(self, text: ReadText) -> list[Said]:
        """Returns the same of each passage of a text, and of its title in part, because all passages share it."""
        of_title, number = self.of(text.title)
        lent = {lexeme: _OF_TITLE * count for lexeme, count in of_title.items()}
        said = [self.of(part.of(text.body)) for part in text.passages]
        return [
            (
                {**lent, **{lexeme: count + lent.get(lexeme, 0) for lexeme, count in counts.items()}}
                if counts
                else lent,
                its + _OF_TITLE * number,
            )
            for counts, its in said
        ]

    def _of_word(self, word: str) -> Sequence[str]:
        """Returns the query's lexemes of a word, of each language once."""
        if word not in self._known:
            stems = {stemmer.stem_word(word) for stemmer in self._spoken} | {word}
            self._known[word] = [stem for stem in stems if stem in self._terms.weights]
        return self._known[word]


def _are_ideographs(one: str, other: str) -> bool:
    return IDEOGRAPH.fullmatch(one) is not None and IDEOGRAPH.fullmatch(other) is not None


@lru_cache(maxsize=32)
def _stemmer(language: str) -> SnowballStemmer:
    return SnowballStemmer(language)
