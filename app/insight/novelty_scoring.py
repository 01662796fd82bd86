"""Cuts texts into passages, and scores how much a passage adds to memories. Pure.

The score combines meaning, words and details, because each alone is misled: texts with one vocabulary have similar
vectors whatever they state, and the same facts in other words share few words.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.foundation.text.prose import sentences_of
from app.foundation.text.words import NEGATION, SHINGLE_WORDS, STOP_WORDS, WORD

_KNOWN_SIMILARITY, _UNRELATED_SIMILARITY = 0.95, 0.35
"""A text of at least the first cosine repeats a memory; a text of at most the second is about something else."""
_DETAIL_SHARE = 0.75
"""Weight of new numbers and names against new meaning: other facts in the same vocabulary are similar in meaning."""
_REWORDED = 0.2
"""Share of a passage's words outside known shingles above which it is not a copy."""
_ANCHORED = 0.6
"""Weight that new words lose if all numbers and names are known: the passage then retells the same facts."""
_ANCHORS = 2
"""Known numbers and names that make a retelling certain; one may be chance."""
_OTHER_WORDS = (0.5, 0.7)
"""Above the first share of new words a similar meaning counts less; from the second on it does not count. Measured
on pairs in English, Russian and German: retold facts have 0.15 to 0.6 new words, other facts 0.6 to 0.9. The model
gives any two Russian sentences a cosine of 0.5 to 0.7."""
_ALIKE = 0.3
"""Up to this share of new words, a different number of negations makes the passage new."""
_GERMAN_SHARE = 0.1
"""Share of German function words that makes a text German; capital letters do not mark names in German."""

_NUMBER = re.compile(r"(\d+(?:[.,\u00a0\u202f]\d+)*)\s?(%|‰|°|[$€£¥₽]|[^\W\d_]+)?")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,\u00a0\u202f]\d{3})+")
_SEPARATOR = re.compile(r"[.,\u00a0\u202f]")
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)(?<![\n\"“«])\b[^\W\d_a-zа-яёäöüß][\w-]+", re.MULTILINE)
GERMAN = frozenset({"der", "die", "das", "und", "ist", "mit", "für", "von", "den", "dem", "auf", "nach", "ein", "eine"})
_UNIT_LETTERS, _NAME_LETTERS = 3, 4
"""Number of first letters that identify a unit, and that two forms of one name share."""


@dataclass(frozen=True)
class Profile:
    """The properties that texts are compared by, each computed once."""

    text: str

    @cached_property
    def tokens(self) -> list[str]:
        """The case-folded words in order."""
        return WORD.findall(self.text.casefold())

    @cached_property
    def shingles(self) -> list[str]:
        """The shingles in order; of a shorter text, all its words as one."""
        last = max(1, len(self.tokens) - SHINGLE_WORDS + 1)
        return [" ".join(self.tokens[at : at + SHINGLE_WORDS]) for at in range(last)] if self.tokens else []

    @cached_property
    def shingle_set(self) -> frozenset[str]:
        """The shingles as a set."""
        return frozenset(self.shingles)

    @cached_property
    def content(self) -> list[str]:
        """The distinct words without stop words, numbers and single letters."""
        return [
            word for word in dict.fromkeys(self.tokens) if word not in STOP_WORDS and not word.isdigit() and word[1:]
        ]

    @cached_property
    def by_beginning(self) -> Mapping[str, Sequence[str]]:
        """The content words by their first three letters."""
        found: dict[str, list[str]] = defaultdict(list)
        for word in self.content:
            found[word[:3]].append(word)
        return found

    @cached_property
    def numbers(self) -> frozenset[tuple[str, str]]:
        """The numbers, each with the first letters of the word or the sign after it (its unit)."""
        return frozenset((_value(value), unit.casefold()[:_UNIT_LETTERS]) for value, unit in _NUMBER.findall(self.text))

    @cached_property
    def names(self) -> frozenset[str]:
        """The capitalised words within sentences; empty for German, which capitalises every noun."""
        german = sum(word in GERMAN for word in self.tokens)
        if german > _GERMAN_SHARE * len(self.tokens):
            return frozenset()
        return frozenset(name.casefold() for found in _NAME.findall(self.text) for name in WORD.findall(found))

    @cached_property
    def negations(self) -> int:
        """The number of negations."""
        return len(NEGATION.findall(self.text))

    def has(self, word: str) -> bool:
        """Tells if the text has a form of this word, judged by their first letters."""
        return any(_same(word, other) for other in self.by_beginning.get(word[:3], ()))

    def has_name(self, name: str) -> bool:
        """Tells if the text has this name, or a word derived from it: Norwegian and Norway, Лиона and Лион."""
        return self.has(name) or any(
            _common_prefix_length(name, other) >= _NAME_LETTERS for other in self.by_beginning.get(name[:3], ())
        )

    def states(self, number: tuple[str, str]) -> bool:
        """Tells if the text has this number with the same unit.

        The word after a number counts as its unit if it also follows other numbers.
        """
        value, unit = number
        if number in self.numbers:
            return True
        measured = unit in {other for _, other in self.numbers} or (unit and not unit.isalpha())
        return not measured and value in {other for other, _ in self.numbers}


def _value(written: str) -> str:
    if _THOUSANDS.fullmatch(written):
        return _SEPARATOR.sub("", written)
    return written.replace(",", ".")


def _common_prefix_length(one: str, other: str) -> int:
    """Counts the equal first letters of two words."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _same(one: str, other: str) -> bool:
    """Tells if two words may be forms of one: they differ only in the ending, as насос and насоса, leak and leaking."""
    shared = _common_prefix_length(one, other)
    if one == other:
        return True
    return shared >= max(3, min(len(one), len(other)) - 2) and max(len(one), len(other)) - shared <= 3  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class NoveltyScore:
    """The share of a passage that memories do not hold, 0 to 1."""

    novelty: float
    """Novelty against all memories together."""
    shares: tuple[float, ...]
    """Novelty against each memory, in their order."""


def score_passage(
    passage: Profile, memories: Sequence[Profile], similarities: Sequence[float | None], task: Profile
) -> NoveltyScore:
    """Scores how much a passage adds to memories; the similarity of a memory without a vector is None.

    The words, numbers and names of the task are known: they count neither for the passage nor against it. A passage
    without words adds nothing.
    """
    if not passage.tokens:
        return NoveltyScore(novelty=0.0, shares=(1.0,) * len(memories))
    words = _new_words(passage, memories, task)
    cores = [
        _core(passage, memory, share, similarity, task)
        for memory, share, similarity in zip(memories, words, similarities, strict=True)
    ]
    known = [memory.shingle_set for memory in memories]
    shares = tuple(core * _not_copied(passage, shingles) for core, shingles in zip(cores, known, strict=True))
    together = frozenset().union(task.shingle_set, *known)
    return NoveltyScore(novelty=min(cores, default=1.0) * _not_copied(passage, together), shares=shares)


def _core(passage: Profile, memory: Profile, words: float, similarity: float | None, task: Profile) -> float:
    numbers = [memory.states(number) for number in passage.numbers if not task.states(number)]
    names = [memory.has_name(name) for name in passage.names if not task.has_name(name)]
    details = max(_new_share(numbers), _new_share(names))
    anchored = (1 - details) * min(1.0, (sum(numbers) + sum(names)) / _ANCHORS)
    retold = 1 - _ANCHORED * anchored
    if similarity is None:
        meaning = words * retold
    else:
        meaning = _ramp(similarity, _KNOWN_SIMILARITY, _UNRELATED_SIMILARITY) * retold
        details = max(details, _ramp(words, *_OTHER_WORDS) * (1 - anchored))
    if words <= _ALIKE and passage.negations != memory.negations and _of_similar_length(passage, memory):
        details = 1.0
    return 1 - (1 - meaning) * (1 - _DETAIL_SHARE * details)


def _new_share(known: Sequence[bool]) -> float:
    """Returns the share of new details, 0 to 1; 0 if there are none at all."""
    return known.count(False) / len(known) if known else 0.0


def _ramp(value: float, start: float, end: float) -> float:
    """Returns 0 at `start` and 1 at `end`, linear between them and constant beyond."""
    return min(1.0, max(0.0, (value - start) / (end - start)))


def _of_similar_length(one: Profile, other: Profile) -> bool:
    shorter, longer = sorted((len(one.tokens), len(other.tokens)))
    return shorter > 2 / 3 * longer


def _new_words(passage: Profile, memories: Sequence[Profile], task: Profile) -> list[float]:
    """Returns the share of the passage's content words that each memory lacks; rare words weigh more."""
    words = [word for word in passage.content if not task.has(word)]
    held = [[memory.has(word) for memory in memories] for word in words]
    # A word that no memory has weighs as much as one that a single memory has: it may be a synonym.
    weights = [math.log1p((len(memories) + 1) / (max(1, sum(row)) + 0.5)) for row in held]
    total = sum(weights)
    if not words:
        return [0.0 if _same_figures(passage, memory, task) else 1.0 for memory in memories]
    return [
        sum(weight for weight, row in zip(weights, held, strict=True) if not row[at]) / total
        for at in range(len(memories))
    ]


def _same_figures(passage: Profile, memory: Profile, task: Profile) -> bool:
    """Tells if a memory has the numbers of a passage without content words, or, if it has none, the same text."""
    if passage.numbers:
        return all(memory.states(number) or task.states(number) for number in passage.numbers)
    return passage.text.strip() == memory.text.strip()


def _not_copied(passage: Profile, known: frozenset[str]) -> float:
    """Returns 0 if known shingles cover every word of the passage, as in a copy; rises to 1 at a share of _REWORDED."""
    covered = [False] * len(passage.tokens)
    for at, shingle in enumerate(passage.shingles):
        if shingle in known:
            covered[at : at + SHINGLE_WORDS] = [True] * len(covered[at : at + SHINGLE_WORDS])
    return min(1.0, (1 - sum(covered) / len(covered)) / _REWORDED)


_PASSAGE_TOKENS = 200
"""Size of a passage, as `tokens_about` counts: 150 English words, and well within the model's 256 tokens."""
_ASCII_TOKENS, _OTHER_TOKENS = 0.22, 0.6
"""Tokens of a character, and further tokens for each byte beyond its first. Measured on English (0.21 a character)
and Russian (0.80), which the model's vocabulary spells out."""


def passages(text: str) -> list[str]:
    """Returns the text in groups of sentences of at most _PASSAGE_TOKENS."""
    groups: list[list[str]] = []
    size = 0.0
    for piece in _pieces(text):
        cost = tokens_about(piece)
        if not groups or size + cost > _PASSAGE_TOKENS:
            groups.append([])
            size = 0.0
        groups[-1].append(piece)
        size += cost
    return [" ".join(group) for group in groups]


def tokens_about(text: str) -> float:
    """Estimates how many tokens the model makes of a text."""
    return _ASCII_TOKENS * len(text) + _OTHER_TOKENS * (len(text.encode("utf-8", "surrogatepass")) - len(text))


def _pieces(text: str) -> Iterator[str]:
    """Yields sentences. One too long for a passage is split into words, and a word too long for it into pieces."""
    for sentence in sentences_of(text) or [text.strip()]:
        if tokens_about(sentence) <= _PASSAGE_TOKENS:
            yield sentence
            continue
        for word in sentence.split():
            yield from (word[at : at + _PASSAGE_TOKENS] for at in range(0, len(word), _PASSAGE_TOKENS))


def shares(counts: Sequence[int], budget: int) -> list[int]:
    """Returns how many passages of each text are compared, at least one, and at most `budget` together.

    Short texts are compared whole; longer ones all get the same number of passages.
    """
    most, left = 1, budget - len(counts)
    for level in range(1, max(counts, default=1)):
        left -= sum(count > level for count in counts)
        if left < 0:
            break
        most = level + 1
    return [min(count, most) for count in counts]


def spread(found: Sequence[str], count: int) -> list[str]:
    """Returns `count` of the passages, evenly spread over the text."""
    return [found[(2 * place + 1) * len(found) // (2 * count)] for place in range(count)]
