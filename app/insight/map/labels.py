"""Labels clusters with their most distinctive words, by class-based tf-idf. Pure."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

Word = tuple[str, str]
"""A word as most of its texts write it, and the language of these texts."""

WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+|`[^`\n]*`")
SHORTEST, LONGEST = 2, 40
"""Letters of a word that counts."""
CANDIDATES = 300
"""Words kept of a cluster: enough for a label even after all stop words of Postgres' largest list, twice."""
TERMS = 5
"""Words of a label."""


def distinctive(texts: Sequence[tuple[str, str]], clusters: Sequence[int]) -> list[list[Word]]:
    """Ranks each cluster's words, the most distinctive first; `texts` are pairs of language and text.

    A word's weight is its share of the cluster's words times ln(1 + A / f); A is the mean number of words of a cluster,
    and f the word's frequency in all clusters. Words of only one text come last.
    """
    counted = _Counted(texts, clusters)
    mean = sum(words.total() for words in counted.by_cluster) / max(1, len(counted.by_cluster))
    return [
        [counted.shown(word) for word in _ranked(words, holders, counted.overall, mean)]
        for words, holders in zip(counted.by_cluster, counted.holders, strict=True)
    ]


def _ranked(words: Counter[str], holders: Counter[str], overall: Counter[str], mean: float) -> list[str]:
    def place(word: str) -> tuple[bool, float, str]:
        return holders[word] < 2, -words[word] * math.log1p(mean / overall[word]), word  # noqa: PLR2004 - only one text

    return sorted(words, key=place)[:CANDIDATES]


class _Counted:
    """The case-folded words of each cluster, and their spellings."""

    def __init__(self, texts: Sequence[tuple[str, str]], clusters: Sequence[int]) -> None:
        count = max(clusters, default=-1) + 1
        self.by_cluster: list[Counter[str]] = [Counter() for _ in range(count)]
        self.holders: list[Counter[str]] = [Counter() for _ in range(count)]
        self.overall: Counter[str] = Counter()
        self._forms: dict[str, Counter[Word]] = {}
        for (language, text), cluster in zip(texts, clusters, strict=True):
            self._add(language, Counter(words_of(text)), cluster)

    def _add(self, language: str, words: Counter[str], cluster: int) -> None:
        folded: Counter[str] = Counter()
        for word, times in words.items():
            folded[word.casefold()] += times
            self._forms.setdefault(word.casefold(), Counter())[word, language] += times
        self.by_cluster[cluster].update(folded)
        self.holders[cluster].update(folded.keys())
        self.overall.update(folded)

    def shown(self, word: str) -> Word:
        """Returns the most frequent spelling of a word; of equally frequent ones, the first in the alphabet."""
        return min(self._forms[word].items(), key=lambda item: (-item[1], item[0]))[0]


def words_of(text: str) -> list[str]:
    """Lists a text's words, without addresses, code and numbers."""
    return [word for word in WORD.findall(ADDRESS.sub(" ", text)) if SHORTEST <= len(word) <= LONGEST]


def label(words: Iterable[tuple[str, str]]) -> list[str]:
    """Chooses the first words by their lexemes: no word without one (a stop word), no two with the same one."""
    chosen: dict[str, str] = {}
    for word, lexeme in words:
        if lexeme:
            chosen.setdefault(lexeme, word)
        if len(chosen) == TERMS:
            break
    return list(chosen.values())
