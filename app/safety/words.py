"""Scores the wording of a text: the words, pairs of words and parts of words that orders to a reader are made of. Pure.

A feature is a number below `BUCKETS`, made by hashing, so that no list of words is kept. Everything runs on arrays, in
time linear in the text.
"""

import functools
from importlib.resources import files
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BUCKETS_BITS = 18
BUCKETS = 1 << BUCKETS_BITS
PARTS = (3, 4, 5)
"""Lengths of the parts of words, in letters: they tell forms and compounds of a word that is known."""
LONGEST_WORD = 40
"""Letters of the longest word whose parts count: what is longer is no word."""
STEM = 4
"""Letters at the beginning of a word that stand for all of its forms."""
FEWEST = 64
"""Features of about eight words."""
LETTER, DIGIT, SINGLE = 1, 2, 3
"""Kinds of characters: letters and digits form runs, a Chinese character or a mark stands alone."""
MARKS = '!?:<>[]{}@#/`"«“'
ODD = np.uint64(0x9E3779B97F4A7C15)
POWERS = np.cumprod(np.full(64, 0x100000001B3, np.uint64))

Hashes = NDArray[np.uint64]


class Features(NamedTuple):
    """The features of a text, in no order."""

    places: NDArray[np.int64]
    """Place of each feature in the text, in characters."""
    buckets: NDArray[np.int64]


@functools.cache
def _kinds() -> NDArray[np.uint8]:
    """Returns the kind of each character of the first plane, after folding and in lower case."""
    kinds = np.zeros(1 << 16, np.uint8)
    for first, last in ("az", "ая"):
        kinds[ord(first) : ord(last) + 1] = LETTER
    kinds[ord("0") : ord("9") + 1] = DIGIT
    kinds[0x3400:0xA000] = SINGLE
    kinds[[ord(mark) for mark in MARKS]] = SINGLE
    return kinds


def features(text: str) -> Features:
    """Returns the features of a normalised text."""
    codes = np.frombuffer(_lowered(text).encode("utf-32-le", "replace"), np.uint32)
    kinds = _kinds()[np.minimum(codes, 0xFFFF)]
    places = np.flatnonzero(kinds)
    if not len(places):
        return Features(places, places)
    letters, kinds = codes[places].astype(np.uint64), kinds[places]
    first = np.ones(len(places), bool)
    first[1:] = (kinds[1:] != kinds[:-1]) | (kinds[1:] == SINGLE) | (np.diff(places) > 1)
    letters[kinds == DIGIT] = np.where(first[kinds == DIGIT], ord("0"), 0)
    starts = np.flatnonzero(first)
    word = np.cumsum(first) - 1
    within, size = np.arange(len(places)) - starts[word], np.bincount(word)[word]
    spelled = letters * POWERS[np.minimum(within, len(POWERS) - 1)]
    words = np.add.reduceat(spelled, starts)
    stems = np.add.reduceat(np.where(within < STEM, spelled, 0), starts)
    parts = [*_sequences(words, stems), *_parts(letters, first, (kinds == LETTER) & (size <= LONGEST_WORD))]
    found = [(places[starts[item] if of_words else item], hashes) for of_words, item, hashes in parts]
    return Features(np.concatenate([place for place, _ in found]), np.concatenate([_bucket(item) for _, item in found]))


def _lowered(text: str) -> str:
    """Returns a text in lower case, each character at its place."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(min(letter.lower(), letter, key=len) for letter in text)


Part = tuple[bool, NDArray[np.int64], Hashes]
"""True if the places are those of words, the places, and the hashes."""


def _sequences(words: Hashes, stems: Hashes) -> list[Part]:
    """Returns the words, pairs of words and of stems that follow each other, pairs with a gap, and triples."""
    every = np.arange(len(words))
    return [
        (True, every, words),
        (True, every[1:], words[:-1] * POWERS[1] + words[1:] + POWERS[11]),
        (True, every[1:], stems[:-1] * POWERS[2] + stems[1:] + POWERS[12]),
        (True, every[2:], words[:-2] * POWERS[3] + words[2:] + POWERS[13]),
        (True, every[2:], words[:-2] * POWERS[4] + words[1:-1] * POWERS[5] + words[2:] + POWERS[14]),
    ]


def _parts(letters: Hashes, first: NDArray[np.bool_], of_words: NDArray[np.bool_]) -> list[Part]:
    """Returns the runs of letters inside a word. One at an edge of the word differs from one in the middle."""
    found: list[Part] = []
    last = np.append(first[1:], True)
    for length in PARTS:
        size = len(letters) - length + 1
        if size <= 0:
            break
        inside = of_words[:size].copy()
        hashes = np.full(size, POWERS[20 + length])
        for step in range(length):
            hashes += letters[step : step + size] * POWERS[step]
            inside &= of_words[step : step + size] & (~first[step : step + size] if step else True)
        hashes += first[:size] * POWERS[30] + last[length - 1 :] * POWERS[31]
        kept = np.flatnonzero(inside)
        found.append((False, kept, hashes[kept]))
    return found


def _bucket(hashes: Hashes) -> NDArray[np.int64]:
    mixed = (hashes ^ (hashes >> np.uint64(29))) * ODD
    return (mixed >> np.uint64(64 - BUCKETS_BITS)).astype(np.int64)


@functools.cache
def table() -> NDArray[np.float32]:
    """Reads the weight of each bucket. `python -m benchmarks.evidence --write` fits them."""
    stored = np.load(BytesIO(files("app.safety").joinpath("words.npz").read_bytes()))
    return np.asarray(stored["weights"] * stored["unit"], np.float32)


def scores(text: str, starts: list[int]) -> NDArray[np.float64]:
    """Returns the score of each sentence together with those beside it; `starts` are the places of the sentences.

    The sum of the weights is divided by the root of their number, so that a long sentence has no advantage. Fewer
    features than FEWEST say nothing.
    """
    found = features(text)
    owners = np.maximum(np.searchsorted(starts, found.places, side="right") - 1, 0)
    sums = np.bincount(owners, table()[found.buckets], len(starts))
    numbers = beside(np.bincount(owners, minlength=len(starts)))
    return np.where(numbers < FEWEST, -np.inf, beside(sums) / np.sqrt(np.maximum(numbers, 1)))


def beside(values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the sum of each value and its two neighbours."""
    summed = np.array(values, np.float64)
    summed[1:] += values[:-1]
    summed[:-1] += values[1:]
    return summed
