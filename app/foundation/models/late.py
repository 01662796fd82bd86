"""Late interaction: compares each word of a query with the words of a text, by the token vectors of the model. Pure.

It is the scoring of ColBERT (Khattab and Zaharia, SIGIR 2020): the mean, over the query's words, of the best similarity
to a word of the text. The vectors are those from which the embedding model makes the vector of the whole text. A text
keeps the signs of projections of each (Charikar, STOC 2002): 32 bytes, where a vector in half precision takes 768.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_256
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.foundation.text.words import STOP_WORDS

Matrix = NDArray[np.float32]
"""Shape (tokens, dimension)."""

BITS = 256
"""Bits of a token's code. On 278 questions of 14 trees 184 answers are right with 256 bits, 185 with 384 and 179 with
128, and 177 without codes."""
BYTES = BITS // 8
MOST_WORDS = 64
"""Words of a request that are compared, the first ones: they take 8 ms for the passages of 32 chunks, on one core."""
_EXPECTED = float(np.sqrt(np.pi / 2 / BITS))
"""The factor by which the product of a unit vector and a sign code is their cosine, on the average."""

Codes = NDArray[np.uint8]
"""Shape (tokens, BYTES)."""


class TokenCodes(NamedTuple):
    """The words of a text that mean something, as codes."""

    ends: NDArray[np.int64]
    """The character at which each ends."""
    codes: Codes


@lru_cache(maxsize=4)
def _projection(dimension: int) -> Matrix:
    """Returns signs that are the same on every machine; shape (dimension, BITS)."""
    drawn = np.frombuffer(shake_256(b"token codes").digest(dimension * BYTES), np.uint8)
    return (2.0 * np.unpackbits(drawn).reshape(dimension, BITS) - 1).astype(np.float32)


def means_something(token: str) -> bool:
    """Returns False for marks, for the model's own tokens like `[UNK]`, and for words that every text has."""
    return any(map(str.isalnum, token)) and token not in STOP_WORDS and not token.startswith("[")


def codes_of(vectors: Matrix) -> Codes:
    """Returns the codes of token vectors; shape (tokens, BYTES)."""
    return np.packbits(vectors @ _projection(vectors.shape[1]) > 0, axis=1)


def project_words(vectors: Matrix) -> Matrix:
    """Returns the token vectors of a query, MOST_WORDS at most, in the form that is compared: of unit length."""
    found: Matrix = vectors[:MOST_WORDS] @ _projection(vectors.shape[1])
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    return found


def late_scores(query: Matrix, texts: Sequence[Sequence[Codes]]) -> list[list[float]]:
    """Returns, of each text, how well each of its passages speaks of a query's words: 0 to 1, about 0.4 on the average.

    The score is the mean, over the words of the query (`project_words`), of the best cosine similarity to a word of the
    passage or of its title. Each text has the codes of its title, and of each passage.
    """
    parts = [part for text in texts for part in text]
    found = iter(_best_similarities(query, parts))
    scores: list[list[float]] = []
    for text in texts:
        title, *passages = islice(found, len(text))
        scores.append([float(np.maximum(title, passage).mean()) for passage in passages])
    return scores


def _best_similarities(query: Matrix, parts: Sequence[Codes]) -> NDArray[np.float32]:
    """Returns the best similarity of each word of the query to a word of each part, 0 to none; shape (parts, words)."""
    best = np.zeros((len(parts), len(query)), np.float32)
    places = [place for place, part in enumerate(parts) if len(part)]
    if places:
        signs = np.unpackbits(np.concatenate([parts[place] for place in places]), axis=1).astype(np.float32)
        # A bit stands for 1 or -1: twice the bits' product without the query's own sum is the product of the signs.
        products = _EXPECTED * (2 * (signs @ query.T) - query.sum(axis=1))
        starts = np.cumsum([0, *(len(parts[place]) for place in places[:-1])])
        best[places] = np.maximum(np.maximum.reduceat(products, starts, axis=0), 0)
    return best
