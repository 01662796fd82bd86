"""Scores the wording of a text: the words, pairs of words and parts of words that orders to a reader are made of. Pure.

A feature is a number below `BUCKETS`, made by hashing, so that no list of words is kept. Everything runs on arrays, in
time linear in the text.
"""

import functools
from collections.abc import Iterator, Sequence
from importlib.resources import files
from io import BytesIO
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_BUCKETS_BITS = 18
BUCKETS = 1 << _BUCKETS_BITS
_PARTS = (3, 4, 5)
"""Lengths of the parts of words, in letters: they tell forms and compounds of a word that is known."""
_LONGEST_WORD = 40
"""Letters of the longest word whose parts count: what is longer is no word."""
_STEM = 4
"""Letters at the beginning of a word that stand for all of its forms."""
_FEWEST = 64
"""Features of about eight words."""
_PORTION = 32_768
"""Characters that are read together."""
LETTER, DIGIT, SINGLE = 1, 2, 3
"""Kinds of characters: letters and digits form runs, a Chinese character or a mark stands alone."""
_MARKS = '!?:<>[]{}@#/`"«“'
_ODD = np.uint64(0x9E3779B97F4A7C15)
_POWERS = np.cumprod(np.full(64, 0x100000001B3, np.uint64))

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
    kinds[[ord(mark) for mark in _MARKS]] = SINGLE
    return kinds


def features(texts: Sequence[str]) -> Features:
    """Returns the features of normalised texts, as if they were one; none has words of two texts."""
    read = "\n".join(map(_lower, texts))
    codes = np.frombuffer(read.encode("utf-32-le", "replace"), np.uint32)
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
    spelled = letters * _POWERS[np.minimum(within, len(_POWERS) - 1)]
    words = np.add.reduceat(spelled, starts)
    stems = np.add.reduceat(np.where(within < _STEM, spelled, 0), starts)
    owners = np.searchsorted(_starts_of(texts), places[starts], side="right")
    parts = [*_sequences(words, stems, owners), *_parts(letters, first, (kinds == LETTER) & (size <= _LONGEST_WORD))]
    found = [(places[starts[item] if of_words else item], hashes) for of_words, item, hashes in parts]
    return Features(np.concatenate([place for place, _ in found]), np.concatenate([_bucket(item) for _, item in found]))


def _starts_of(texts: Sequence[str]) -> list[int]:
    """Returns the place of each text among the features of all."""
    return list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))


def _lower(text: str) -> str:
    """Returns a text in lower case, each character at its place."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(min(letter.lower(), letter, key=len) for letter in text)


Part = tuple[bool, NDArray[np.int64], Hashes]
"""True if the places are those of words, the places, and the hashes."""


def _sequences(words: Hashes, stems: Hashes, owners: NDArray[np.int64]) -> list[Part]:
    """Returns the words, pairs of words and of stems that follow each other, pairs with a gap, and triples.

    Those of a sequence have one owner.
    """
    every = np.arange(len(words))
    two, three = np.flatnonzero(owners[1:] == owners[:-1]), np.flatnonzero(owners[2:] == owners[:-2])
    return [
        (True, every, words),
        (True, two + 1, words[two] * _POWERS[1] + words[two + 1] + _POWERS[11]),
        (True, two + 1, stems[two] * _POWERS[2] + stems[two + 1] + _POWERS[12]),
        (True, three + 2, words[three] * _POWERS[3] + words[three + 2] + _POWERS[13]),
        (True, three + 2, words[three] * _POWERS[4] + words[three + 1] * _POWERS[5] + words[three + 2] + _POWERS[14]),
    ]


def _parts(letters: Hashes, first: NDArray[np.bool_], of_words: NDArray[np.bool_]) -> list[Part]:
    """Returns the runs of letters inside a word. One at an edge of the word differs from one in the middle.

    A run's hash continues that of the run of one letter less.
    """
    found: list[Part] = []
    last = np.append(first[1:], True)
    hashes, inside = letters * _POWERS[0], of_words
    for step in range(1, min(_PARTS[-1], len(letters))):
        size = len(letters) - step
        hashes = hashes[:size] + letters[step:] * _POWERS[step]
        inside = inside[:size] & of_words[step:] & ~first[step:]
        if (length := step + 1) in _PARTS:
            kept = np.flatnonzero(inside)
            at_edges = first[kept] * _POWERS[30] + last[kept + step] * _POWERS[31]
            found.append((False, kept, hashes[kept] + _POWERS[20 + length] + at_edges))
    return found


def _bucket(hashes: Hashes) -> NDArray[np.int64]:
    mixed = (hashes ^ (hashes >> np.uint64(29))) * _ODD
    return (mixed >> np.uint64(64 - _BUCKETS_BITS)).astype(np.int64)


@functools.cache
def table() -> NDArray[np.float32]:
    """Reads the weight of each bucket. `python -m benchmarks.evidence --write` fits them."""
    stored = np.load(BytesIO(files("app.foundation.safety").joinpath("words.npz").read_bytes()))
    return np.asarray(stored["weights"] * stored["unit"], np.float32)


def scores(texts: Sequence[str], starts: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    """Returns the score of each sentence together with those beside it, text by text.

    `starts` has the places of each text's sentences. The sum of the weights is divided by the root of their number, so
    that a long sentence has no advantage. Fewer features than _FEWEST say nothing.

    Texts are read together, because a step of numpy's takes longer to begin than to read a paragraph.
    """
    return [score for first, after in _portions(texts) for score in _scores(texts[first:after], starts[first:after])]


def _portions(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields the first text and the one after the last of portions of about _PORTION characters."""
    first, characters = 0, 0
    for place, text in enumerate(texts):
        if place > first and characters + len(text) > _PORTION:
            yield first, place
            first, characters = place, 0
        characters += len(text)
    if texts:
        yield first, len(texts)


def _scores(texts: Sequence[str], starts: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    found = features(texts)
    # What stands before a text's first sentence belongs to it.
    places = [start + place for start, own in zip(_starts_of(texts), starts, strict=True) for place in (0, *own[1:])]
    counts = [len(own) for own in starts]
    owners = np.searchsorted(places, found.places, side="right") - 1
    text_of = np.repeat(np.arange(len(texts)), counts)
    sums = beside(np.bincount(owners, table()[found.buckets], len(places)), text_of)
    numbers = beside(np.bincount(owners, minlength=len(places)), text_of)
    scored = np.where(numbers < _FEWEST, -np.inf, sums / np.sqrt(np.maximum(numbers, 1)))
    return np.split(scored, np.cumsum(counts)[:-1])


def beside(values: NDArray[np.float64] | NDArray[np.int64], texts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the sum of each value and its two neighbours in the same text; `texts` has the text of each value."""
    summed = np.array(values, np.float64)
    joined = texts[1:] == texts[:-1]
    summed[1:] += np.where(joined, values[:-1], 0)
    summed[:-1] += np.where(joined, values[1:], 0)
    return summed
