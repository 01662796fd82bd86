"""Holds the words of many texts as numbers, so that the words of a plan are compared with all of them at once. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.models.protocols import Vector
from app.text.words import content_words

Places = NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class WordRows:
    """The words of texts, one row for each text. Made by `NO_WORDS` and `with_texts`."""

    words: Places
    """The numbers of all texts' words, one text after the other."""
    ends: Places
    """The place in `words` after the last word of each text."""

    def with_texts(self, texts: Sequence[str], numbers: dict[str, int]) -> "WordRows":
        """Returns these rows followed by those of more texts; new words get the next of the `numbers`."""
        found = [[numbers.setdefault(word, len(numbers)) for word in content_words(text)] for text in texts]
        words = np.array([number for row in found for number in row], dtype=np.int32)
        ends = np.cumsum([len(row) for row in found], dtype=np.int64) + len(self.words)
        return WordRows(words=np.concatenate([self.words, words]), ends=np.concatenate([self.ends, ends]))

    def part(self, rows: Places) -> "WordRows":
        """Returns some of the rows."""
        starts = np.concatenate([[0], self.ends])[rows]
        sizes = self.ends[rows] - starts
        ends = np.cumsum(sizes)
        at = np.repeat(starts - (ends - sizes), sizes) + np.arange(sizes.sum())
        return WordRows(words=self.words[at], ends=ends)

    def sums(self, values: Vector) -> Vector:
        """Returns the sum of the values of each row's words."""
        running = np.concatenate([[0.0], np.cumsum(values[self.words], dtype=np.float64)])
        found: Vector = np.diff(running[np.concatenate([[0], self.ends])]).astype(np.float32)
        return found

    @property
    def rows(self) -> Places:
        """The row of each word."""
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))


NO_WORDS = WordRows(words=np.zeros(0, dtype=np.int32), ends=np.zeros(0, dtype=np.int64))


def telling(kinds: Sequence[WordRows], count: int) -> Vector:
    """Returns the weight of each of `count` words, of which n of N rows have one: ln(1 + (N - n + 0.5) / (n + 0.5))."""
    total = max((len(kind.ends) for kind in kinds), default=0)
    pairs = np.sort(np.concatenate([kind.rows * count + kind.words for kind in kinds]))
    known = np.bincount(pairs[np.diff(pairs, prepend=-1) > 0] % max(1, count), minlength=count)
    found: Vector = np.log1p((total - known + 0.5) / (known + 0.5)).astype(np.float32)
    return found


def overlaps(rows: WordRows, asked: Sequence[int | None], weights: Vector) -> Vector:
    """Returns the share of words that each row and a plan have in common, 0 to 1, the rare ones counting more.

    `asked` has the numbers of the plan's words, None for words that no row has.
    """
    unknown = float(weights.max(initial=0.0)) or 1.0
    known = [number for number in asked if number is not None and number < len(weights)]
    mine = np.zeros(len(weights), dtype=np.float32)
    mine[known] = weights[known]
    size = float(mine.sum()) + unknown * (len(asked) - len(known))
    sizes = rows.sums(weights) * size
    shared: Vector = (rows.sums(mine) / np.sqrt(np.where(sizes > 0, sizes, np.inf))).astype(np.float32)
    return shared
