"""Tells how rare the words of a text are. Pure.

The vocabulary of the bundled tokenizer tells it, whose words are sorted by their frequency in English text: it is the
same in every store, so that the words of a plan count the same among 5 cues and among 500.
"""

import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from app.foundation.models.tokens import MINILM, load_tokenizer
from app.foundation.text.words import STEM, STOP_WORDS, WORD

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
