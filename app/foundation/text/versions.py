"""Names versions: `v3`, `r3`, `round 3`, `exp-03`, `third draft`, and which spellings are of one version. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import NamedTuple

KINDS = "version|ver|run|iteration|iter|round|attempt|revision|rev|draft|trial|experiment|exp"
VERSION = re.compile(
    rf"(?<![^\W_])(?:(?P<short>v\.?|r(?=\d{{1,2}}(?!\d)))|(?P<word>{KINDS})[\s_.-]{{0,3}})"
    r"(?P<number>\d{1,4}(?:\.\d{1,3}){0,2})(?![^\W_])",
    re.IGNORECASE,
)
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_CARDINALS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_IN_WORDS = re.compile(
    rf"(?<![^\W_])(?:(?P<before>{'|'.join(_ORDINALS)}|\d(?:st|nd|rd|th))[\s_-](?P<of>{KINDS})"
    rf"|(?P<word>{KINDS})[\s_-](?P<after>{'|'.join(_CARDINALS)}))(?![^\W_])(?! in a row)",
    re.IGNORECASE,
)
"""A version whose number is a word: `third draft`, `Round two`."""
PERIODS = (
    "week|wk|kw|cw|day|month|quarter|sprint|phase|pilot|release|build|wave|cycle|edition|episode|season|stage|batch"
)
_IN_NAME = re.compile(
    rf"(?<![^\W_])(?P<word>[a-z](?=\d{{1,2}}(?!\d))|(?:{PERIODS})(?=[\s_.-]?\d))[\s_.-]?(?P<number>\d{{1,3}}(?:\.\d{{1,3}}){{0,2}})(?![^\W_])",
    re.IGNORECASE,
)
"""A version in the name of a file or folder: `w11`, `memo_K1`, `pilot2`, `sprint-4`. In a text, `week 3` is a time, and
groups of a UUID are longer."""
BARE = re.compile(r"\d{1,4}(?:\.\d{1,3}){0,2}")
_RANGE = re.compile(r"\s*(?:to|through|until|[-–—…]|bis|до|à|a)\s*")
LONGEST_RANGE, MOST_BETWEEN = 100, 1_000
"""Most versions from the first to the last of a range that are named one by one, and most of a text's ranges together:
90 kB of ranges take 0.1 s, and took 3.5 without the second limit."""
_AS_V = frozenset({"v", "v.", "version", "ver", "revision", "rev"})
_SPELLED = re.compile(rf"(?P<word>[a-z]|(?:{KINDS}|{PERIODS})-)(?P<number>\d+(?:\.\d+){{0,2}})")
"""A version as it is stored."""


def versions_in(text: str) -> Iterator[str]:
    """Yields the versions that a text names, in its order: `v3`, `run-2`; `v2 to v4` gives all of them."""
    found, left = list(VERSION.finditer(text)), MOST_BETWEEN
    for match, following in zip_longest(found, found[1:]):
        word = match["short"] or match["word"]
        yield _spelling(word, match["number"])
        if following and _RANGE.fullmatch(text[match.end() : following.start()]):
            first, last = match["number"], following["number"]
            if first.isdigit() and last.isdigit() and int(last) - int(first) <= min(LONGEST_RANGE, left):
                left -= max(0, int(last) - int(first))
                yield from (_spelling(word, str(number)) for number in range(int(first) + 1, int(last)))


def _spelling(word: str, number: str) -> str:
    word = word.lower()
    number = ".".join(str(int(part)) for part in number.split("."))
    return f"v{number}" if word in _AS_V else f"{word}{number}" if len(word) == 1 else f"{word}-{number}"


def version_in(text: str) -> str:
    """Returns the first version that a name, a title or a task names, also in words; empty where it names none."""
    if version := next(versions_in(text), ""):
        return version
    match = _IN_WORDS.search(text)
    if match is None:
        return ""
    said, word = (match["before"] or match["after"]).lower(), (match["of"] or match["word"]).lower()
    number = said[0] if said[0].isdigit() else (_ORDINALS if said in _ORDINALS else _CARDINALS).index(said) + 1
    return f"v{number}" if word in _AS_V else f"{word}-{number}"


def whole_version(value: str) -> str:
    """Returns the version that a field is, a bare number included; empty where it is more, or none."""
    text = value.strip()
    if BARE.fullmatch(text):
        return f"v{text}"
    return OF_NAMES.version(text) if _IN_NAME.fullmatch(text) else ""


def version_of(value: str) -> str:
    """Returns the version that a field is or names; empty where it names none."""
    return whole_version(value) or version_in(value.strip())


def spellings(named: Iterable[tuple[str, float | None]]) -> dict[str, str]:
    """Returns the spelling that stands for each version: the first seen of `r1`, `round-1` and `v1`.

    Names come with the score that a judgement gives them. Kinds of versions stay apart where judgements score the
    same number of both, and differently: runs of a version are no versions.
    """
    scores: dict[str, dict[str, set[float]]] = {}
    for name, score in named:
        if match := _SPELLED.fullmatch(name):
            known = scores.setdefault(match["word"], {}).setdefault(match["number"], set())
            known |= set() if score is None else {score}
    groups: list[list[str]] = []
    for word, own in scores.items():
        fits = (group for group in groups if not any(_differ(scores[other], own) for other in group))
        if group := next(fits, None):
            group.append(word)
        else:
            groups.append([word])
    return {
        f"{word}{number}": f"{next(first for first in group if number in scores[first])}{number}"
        for group in groups
        for word in group
        for number in scores[word]
    }


def _differ(one: Mapping[str, set[float]], other: Mapping[str, set[float]]) -> bool:
    return any(scores and other.get(number) and scores != other[number] for number, scores in one.items())


def version_order(version: str) -> tuple[int, ...]:
    """Returns what versions are sorted by: their numbers."""
    return tuple(map(int, re.findall(r"\d+", version)))


def without_version(text: str) -> str:
    """Returns a text without the versions in it."""
    return _IN_WORDS.sub(" ", VERSION.sub(" ", text))


class Spelling(NamedTuple):
    """A way in which the names of files and folders spell versions."""

    pattern: re.Pattern[str]

    def version(self, name: str) -> str:
        """Returns the version that a name has; empty without one."""
        if self.pattern is VERSION or (match := self.pattern.search(name)) is None:
            return version_in(name)
        return _spelling(match["word"], match["number"])

    def rest(self, name: str) -> str:
        """Returns a name without the versions in it."""
        left = without_version(name)
        return left if self.pattern is VERSION else self.pattern.sub(" ", left)


COMMON, OF_NAMES = Spelling(VERSION), Spelling(_IN_NAME)
"""The spellings of versions in any text, and those that are versions in names alone."""
