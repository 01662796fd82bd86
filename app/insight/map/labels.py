"""Labels clusters with their most distinctive words, by class-based tf-idf. Pure."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

Word = tuple[str, str]
"""The most frequent spelling of a word, and the language of its texts."""

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+|`[^`\n]*`")
_SHORTEST, _LONGEST = 2, 40
"""Least and most letters of a word that counts."""
CANDIDATES = 300
"""Words kept of a cluster: enough for a label even after all stop words of Postgres' largest list, twice."""
TERMS = 5
"""Most words of a label."""


Counted = tuple[str, Counter[str]]
"""A text: its language, and how often it has each word."""


def count_words(texts: Iterable[tuple[str, str]]) -> list[Counted]:
    """Counts the words of texts, which are pairs of language and text."""
    return [(language, Counter(words_of(text))) for language, text in texts]


def distinctive(texts: Sequence[Counted], clusters: Sequence[int]) -> list[list[Word]]:
    """Ranks each cluster's words, the most distinctive first.

    A word's weight is its share of the cluster's words times ln(1 + A / f); A is the mean number of words of a cluster,
    and f the word's frequency in all clusters. Words of only one text come last.
    """
    count = max(clusters, default=-1) + 1
    by_cluster: list[Counter[str]] = [Counter() for _ in range(count)]
    holders: list[Counter[str]] = [Counter() for _ in range(count)]
    forms: dict[str, Counter[Word]] = defaultdict(Counter)
    for (language, words), cluster in zip(texts, clusters, strict=True):
        for word, times in words.items():
            by_cluster[cluster][word.casefold()] += times
            forms[word.casefold()][word, language] += times
        holders[cluster].update({word.casefold() for word in words})
    overall = sum(by_cluster, Counter[str]())
    mean = overall.total() / max(1, count)
    return [
        [_most_frequent_spelling(forms[word]) for word in _rank_words(words, held, overall, mean)]
        for words, held in zip(by_cluster, holders, strict=True)
    ]


def _rank_words(words: Counter[str], holders: Counter[str], overall: Counter[str], mean: float) -> list[str]:
    def place(word: str) -> tuple[bool, float, str]:
        return holders[word] < 2, -words[word] * math.log1p(mean / overall[word]), word  # noqa: PLR2004 - only one text

    return sorted(words, key=place)[:CANDIDATES]


def _most_frequent_spelling(forms: Counter[Word]) -> Word:
    """Returns the most frequent spelling of a word; of equally frequent ones, the first in the alphabet."""
    return min(forms.items(), key=lambda item: (-item[1], item[0]))[0]


def words_of(text: str) -> list[str]:
    """Lists a text's words, without addresses, code and numbers."""
    return [word for word in _WORD.findall(_ADDRESS.sub(" ", text)) if _SHORTEST <= len(word) <= _LONGEST]


def label(words: Iterable[tuple[str, str]]) -> list[str]:
    """Chooses the first words by their lexemes: no word without one (a stop word), no two with the same one."""
    chosen: dict[str, str] = {}
    for word, lexeme in words:
        if lexeme:
            chosen.setdefault(lexeme, word)
        if len(chosen) == TERMS:
            break
    return list(chosen.values())
