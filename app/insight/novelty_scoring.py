"""How much a passage adds to memories. Pure.

Meaning, words and details are weighed against each other, because each of them alone is fooled: texts with one
vocabulary are near in meaning whatever they state, and the same facts in other words share few of them.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.text.words import NEGATION, SHINGLE_WORDS, STOP_WORDS, WORD

KNOWN_SIMILARITY, UNRELATED_SIMILARITY = 0.95, 0.35
"""Cosine at which a text says what is stored, and at which it is about something else."""
DETAIL_SHARE = 0.75
"""Weight of new numbers and names against new meaning: the same vocabulary with other facts is near in meaning."""
REWORDED = 0.2
"""Share of a passage's words that stand in no known run of words, from which on it is not a copy."""
ANCHORED = 0.6
"""What known numbers and names, and no new ones, take from the weight of other words: the same facts retold."""
ANCHORS = 2
"""Known numbers and names that make it certain; one may be chance."""
OTHER_WORDS = (0.5, 0.7)
"""Share of new words from which on near meaning is doubted, and at which it is not believed: measured on pairs in
English, Russian and German, retold facts have 0.15 to 0.6 new words, other facts 0.6 to 0.9. The model puts any two
Russian sentences at 0.5 to 0.7."""
ALIKE = 0.3
"""Share of new words up to which a "not" more or less makes the difference."""
GERMAN_SHARE = 0.1
"""Share of German's own small words from which on a text is German: capital letters then tell no names."""

NUMBER = re.compile(r"(\d+(?:[.,\u00a0\u202f]\d+)*)\s?(%|‰|°|[$€£¥₽]|[^\W\d_]+)?")
THOUSANDS = re.compile(r"\d{1,3}(?:[.,\u00a0\u202f]\d{3})+")
SEPARATOR = re.compile(r"[.,\u00a0\u202f]")
NAME = re.compile(r"(?<![.!?]\s)(?<!^)(?<![\n\"“«])\b[^\W\d_a-zа-яёäöüß][\w-]+", re.MULTILINE)
GERMAN = frozenset({"der", "die", "das", "und", "ist", "mit", "für", "von", "den", "dem", "auf", "nach", "ein", "eine"})
UNIT_LETTERS, NAME_LETTERS = 3, 4
"""Letters by which a unit, and two words made of one name, are told."""


@dataclass(frozen=True)
class Profile:
    """What a text is compared by; each part is worked out once."""

    text: str

    @cached_property
    def tokens(self) -> list[str]:
        """Its words, in order."""
        return WORD.findall(self.text.casefold())

    @cached_property
    def runs(self) -> list[str]:
        """Every SHINGLE_WORDS words of it; of a shorter text all its words as one."""
        last = max(1, len(self.tokens) - SHINGLE_WORDS + 1)
        return [" ".join(self.tokens[at : at + SHINGLE_WORDS]) for at in range(last)] if self.tokens else []

    @cached_property
    def run_set(self) -> frozenset[str]:
        """The same without their order."""
        return frozenset(self.runs)

    @cached_property
    def content(self) -> list[str]:
        """Its words that carry content, each once."""
        return [
            word for word in dict.fromkeys(self.tokens) if word not in STOP_WORDS and not word.isdigit() and word[1:]
        ]

    @cached_property
    def by_beginning(self) -> Mapping[str, Sequence[str]]:
        """Its content words by their first letters."""
        found: dict[str, list[str]] = defaultdict(list)
        for word in self.content:
            found[word[:3]].append(word)
        return found

    @cached_property
    def numbers(self) -> frozenset[tuple[str, str]]:
        """Its numbers, each with the beginning of the word or the sign after it."""
        return frozenset((_value(value), unit.casefold()[:UNIT_LETTERS]) for value, unit in NUMBER.findall(self.text))

    @cached_property
    def names(self) -> frozenset[str]:
        """Its capitalised words within sentences, but not in German, which capitalises every noun."""
        german = sum(word in GERMAN for word in self.tokens)
        if german > GERMAN_SHARE * len(self.tokens):
            return frozenset()
        return frozenset(name.casefold() for found in NAME.findall(self.text) for name in WORD.findall(found))

    @cached_property
    def negations(self) -> int:
        """How often it denies."""
        return len(NEGATION.findall(self.text))

    def has(self, word: str) -> bool:
        """Whether it has this word in any form, as far as their beginnings tell."""
        return any(_same(word, other) for other in self.by_beginning.get(word[:3], ()))

    def names_it(self, name: str) -> bool:
        """Whether it has this name, or a word made of it: Norwegian and Norway, Лиона and Лион."""
        return self.has(name) or any(
            _shared(name, other) >= NAME_LETTERS for other in self.by_beginning.get(name[:3], ())
        )

    def states(self, number: tuple[str, str]) -> bool:
        """Whether it has this number of the same thing.

        The word after a number is its unit for certain where it comes after other numbers as well.
        """
        value, unit = number
        if number in self.numbers:
            return True
        measured = unit in {other for _, other in self.numbers} or (unit and not unit.isalpha())
        return not measured and value in {other for other, _ in self.numbers}


def _value(written: str) -> str:
    if THOUSANDS.fullmatch(written):
        return SEPARATOR.sub("", written)
    return written.replace(",", ".")


def _shared(one: str, other: str) -> int:
    """With how many letters alike they begin."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _same(one: str, other: str) -> bool:
    """Two forms of one word begin alike and differ by an ending: насос and насоса, leak and leaking."""
    shared = _shared(one, other)
    if one == other:
        return True
    return shared >= max(3, min(len(one), len(other)) - 2) and max(len(one), len(other)) - shared <= 3  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Details:
    """A passage's numbers and names: how many a memory has, and how many it lacks."""

    known: int
    new: int

    @property
    def share(self) -> float:
        """Of the new ones; 0 where there are none at all."""
        return self.new / (self.known + self.new) if self.new else 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """How much a passage adds: to all memories together, and to each, in their order."""

    novelty: float
    shares: tuple[float, ...]


def scored(passage: Profile, memories: Sequence[Profile], similarities: Sequence[float | None], task: Profile) -> Score:
    """How much a passage adds to these memories, 0 to 1; None is the similarity of a memory without a vector.

    What the task says is known: its words, numbers and names count neither for the passage nor against it. A passage
    without a word says nothing, so it adds nothing.
    """
    if not passage.tokens:
        return Score(novelty=0.0, shares=(1.0,) * len(memories))
    words = _new_words(passage, memories, task)
    cores = [
        _core(passage, memory, share, similarity, task)
        for memory, share, similarity in zip(memories, words, similarities, strict=True)
    ]
    together = frozenset().union(task.run_set, *(memory.run_set for memory in memories))
    shares = tuple(core * _unsaid(passage, memory.run_set) for core, memory in zip(cores, memories, strict=True))
    return Score(novelty=min(cores, default=1.0) * _unsaid(passage, together), shares=shares)


def _core(passage: Profile, memory: Profile, words: float, similarity: float | None, task: Profile) -> float:
    numbers, names = _numbers(passage, memory, task), _names(passage, memory, task)
    details = max(numbers.share, names.share)
    anchored = (1 - details) * min(1.0, (numbers.known + names.known) / ANCHORS)
    retold = 1 - ANCHORED * anchored
    if similarity is None:
        meaning = words * retold
    else:
        meaning = _distance(similarity) * retold
        details = max(details, _beyond(words, OTHER_WORDS) * (1 - anchored))
    if words <= ALIKE and passage.negations != memory.negations and _of_one_length(passage, memory):
        details = 1.0
    return 1 - (1 - meaning) * (1 - DETAIL_SHARE * details)


def _distance(similarity: float) -> float:
    return min(1.0, max(0.0, (KNOWN_SIMILARITY - similarity) / (KNOWN_SIMILARITY - UNRELATED_SIMILARITY)))


def _beyond(share: float, ends: tuple[float, float]) -> float:
    return min(1.0, max(0.0, (share - ends[0]) / (ends[1] - ends[0])))


def _of_one_length(one: Profile, other: Profile) -> bool:
    shorter, longer = sorted((len(one.tokens), len(other.tokens)))
    return shorter > 2 / 3 * longer


def _new_words(passage: Profile, memories: Sequence[Profile], task: Profile) -> list[float]:
    """The share of the passage's content words that each memory lacks, each weighed by how few memories have it."""
    words = [word for word in passage.content if not task.has(word)]
    held = [[memory.has(word) for memory in memories] for word in words]
    # A word that nobody has tells as much as one that a single memory has: it may only be another way to say it.
    weights = [math.log1p((len(memories) + 1) / (max(1, sum(row)) + 0.5)) for row in held]
    total = sum(weights)
    if not words:
        return [0.0 if _said_without_words(passage, memory, task) else 1.0 for memory in memories]
    return [
        sum(weight for weight, row in zip(weights, held, strict=True) if not row[at]) / total
        for at in range(len(memories))
    ]


def _said_without_words(passage: Profile, memory: Profile, task: Profile) -> bool:
    """Of a text that has none: whether its figures, or its signs, are the memory's."""
    if passage.numbers:
        return all(memory.states(number) or task.states(number) for number in passage.numbers)
    return passage.text.strip() == memory.text.strip()


def _unsaid(passage: Profile, known: frozenset[str]) -> float:
    """0 where every word of the passage stands in a run of words that is known, as in a copy; 1 from REWORDED on."""
    if not passage.tokens:
        return 1.0
    covered = [False] * len(passage.tokens)
    for at, run in enumerate(passage.runs):
        if run in known:
            covered[at : at + SHINGLE_WORDS] = [True] * len(covered[at : at + SHINGLE_WORDS])
    return min(1.0, (1 - sum(covered) / len(covered)) / REWORDED)


def _numbers(passage: Profile, memory: Profile, task: Profile) -> Details:
    asked = [number for number in passage.numbers if not task.states(number)]
    known = sum(memory.states(number) for number in asked)
    return Details(known=known, new=len(asked) - known)


def _names(passage: Profile, memory: Profile, task: Profile) -> Details:
    asked = [name for name in passage.names if not task.names_it(name)]
    known = sum(memory.names_it(name) for name in asked)
    return Details(known=known, new=len(asked) - known)
