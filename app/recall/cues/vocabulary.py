"""Holds the words of many texts as numbers, so that the words of a plan are compared with all of them at once. Pure.

How rare a word is tells the vocabulary of the bundled tokenizer, whose words are sorted by their frequency in English
text: it is the same in every store, so that the words of a plan count the same among 5 cues and among 500.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from app.foundation.models.protocols import Vector
from app.foundation.models.tokenizer import MINILM, load_tokenizer
from app.foundation.text.words import STEM, STOP_WORDS, WORD

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Places = NDArray[np.integer[Any]]
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
"""A place between two words of an identifier: `drop_column` and `dropColumn` are "drop column"."""
FIRST_WORD, LAST_WORD = 1_996, 30_522
"""The range of whole words in the tokenizer's vocabulary."""
FREQUENT = 96
"""Words at its beginning that count as equally frequent: particles, mostly."""
PIECE = 0.25
"""Rarity that each further piece adds to a word that is not in the vocabulary."""
CACHED = 65_536


def words_of(text: str) -> Mapping[str, float]:
    """Returns the stems of a text's words without stop words and numbers, each with its rarity, 0 to about 2."""
    words = (word for word in WORD.findall(HUMP.sub(" ", text).lower()) if word not in STOP_WORDS)
    return {word[:STEM]: rarity(word) for word in words if not word.isdigit() and (len(word) > 1 or not word.isascii())}


@lru_cache(maxsize=CACHED)
def rarity(word: str) -> float:
    """Returns how rare a word is: 0 for the most frequent ones, 1 for the rarest, more for those of several pieces."""
    pieces = _tokenizer().encode(word, add_special_tokens=False).ids
    if len(pieces) != 1 or pieces[0] < FIRST_WORD:
        return 1.0 + PIECE * max(0, len(pieces) - 1)
    rank = max(0, pieces[0] - FIRST_WORD) + FREQUENT
    return math.log(rank / FREQUENT) / math.log((LAST_WORD - FIRST_WORD + FREQUENT) / FREQUENT)


@cache
def _tokenizer() -> "Tokenizer":
    return load_tokenizer(MINILM / "tokenizer.json")


@dataclass(frozen=True, kw_only=True)
class WordRows:
    """The words of texts, one row for each text. Made by `NO_WORDS` and `with_texts`."""

    words: Places
    """The numbers of all texts' words, one text after the other."""
    ends: Places
    """The place in `words` after the last word of each text."""

    def with_texts(self, texts: Sequence[str], numbers: dict[str, int]) -> "WordRows":
        """Returns these rows followed by those of more texts; new words get the next of the `numbers`."""
        found = [[numbers.setdefault(word, len(numbers)) for word in words_of(text)] for text in texts]
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

    def shared_rarity(self, asked: Mapping[int, float]) -> Vector:
        """Returns, for each row, the sum of the rarities of the words that it shares with a plan, by their numbers."""
        known = int(self.words.max(initial=-1)) + 1
        values = np.zeros(known, dtype=np.float64)
        for number, value in asked.items():
            if number < known:
                values[number] = value
        running = np.concatenate([[0.0], np.cumsum(values[self.words])])
        found: Vector = np.diff(running[np.concatenate([[0], self.ends])]).astype(np.float32)
        return found


NO_WORDS = WordRows(words=np.zeros(0, dtype=np.int32), ends=np.zeros(0, dtype=np.int64))
