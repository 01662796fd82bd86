"""The scan's rules, and RE2, the engine that searches them in time linear in the text."""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped] # the package has no types

from app.foundation.safety.normal import fold
from app.foundation.text.data import read_toml

PACKAGE = "app.foundation.safety"
"""The package with the files of rules, signs and weights."""
COMPACT, HIDDEN, ADDRESSED = "compact", "hidden", "addressed"
"""Severities of the rules that apply only in spaced letters, in hidden places, and in hidden places and titles."""
_WORD = re.compile(r"[a-z]{3,}")
_LETTERS = {"ru": "а-яa-z", "de": "a-z", "fr": "a-z", "es": "a-z"}
"""Letters of a language after folding. The class of all letters would make an expression twenty times as large."""
_NESTED = 3
"""Levels at which a word list may name other lists."""
_MOST_MATCHES = 1_000
"""Matches of one rule in one text, quoted ones included. A text with more counts as not quoted."""
_BEFORE_CHARACTERS = 8
"""Characters before a match in which an exception may begin: "do not forget" starts there in other languages."""
_AFTER_CHARACTERS = 80
"""Characters after a match in which its exception may stand."""


@functools.cache
def linear(pattern: str) -> Any:  # noqa: ANN401 - re2 has no types
    """Compiles an expression for RE2."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An expression for one kind of instruction, with examples."""

    name: str
    family: str
    language: str
    severity: str
    pattern: str
    caught: tuple[str, ...]
    """Texts that the rule must find."""
    spared: tuple[str, ...]
    """Texts that the rule must not find."""
    unless: str = ""
    """An expression of Python's that voids a match if it occurs in it or in the few characters before it."""
    unless_after: str = ""
    """An expression of Python's that voids a match if it follows it."""

    def spares(self, text: str, start: int, end: int) -> bool:
        """Tells if a match is one of the rule's exceptions."""
        if self.unless and _exception(self.unless).search(text, max(0, start - _BEFORE_CHARACTERS), end):
            return True
        return bool(self.unless_after and _exception(self.unless_after).match(text, end, end + _AFTER_CHARACTERS))


@functools.cache
def _exception(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _RuleFile:
    """The file of rules."""

    words: Mapping[str, str]
    """Word lists by name."""
    rule: Sequence[Rule]


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Reads every rule, with its word lists filled in."""
    found = read_toml(PACKAGE, "rules.toml", _RuleFile)
    return tuple(_fill_in(rule, found.words) for rule in found.rule)


@functools.cache
def vocabulary() -> frozenset[str]:
    """Returns the words of the rules' expressions and examples, folded and in lower case."""
    sources = (text for rule in rules() for text in (rule.pattern, *rule.caught))
    return frozenset(word for source in sources for word in _WORD.findall(fold(source).lower()))


def _fill_in(rule: Rule, words: Mapping[str, str]) -> Rule:
    texts = (rule.pattern, rule.unless, rule.unless_after)
    pattern, unless, unless_after = (fold(_fill(text, words, rule.language)) for text in texts)
    return replace(rule, pattern=pattern, unless=unless, unless_after=unless_after)


def _fill(pattern: str, words: Mapping[str, str], language: str) -> str:
    for _ in range(_NESTED):
        for name, alternatives in words.items():
            pattern = pattern.replace(f"{{{name}}}", alternatives)
    letters = _LETTERS.get(language)
    if letters is None:
        return pattern
    inside = pattern.replace(r"[^\p{L}", f"[^{letters}").replace(r"[\p{L}", f"[{letters}")
    return inside.replace(r"\p{L}", f"[{letters}]")


class Match(NamedTuple):
    """A place where a rule matches."""

    rule: Rule
    start: int
    end: int
    excess: bool
    """True for the last match that is searched for: neither quotation nor exceptions excuse it."""


class Book:
    """Rules that are searched together. A rule is tried only if the text has the words that it requires."""

    def __init__(self, chosen: Sequence[Rule]) -> None:
        options = re2.Options()
        options.case_sensitive = False
        options.max_mem = 256 << 20
        self.rules = tuple(chosen)
        self._all: Any = re2.Filter()
        for rule in chosen:
            self._all.Add(rule.pattern, options)
        self._all.Compile()
        self._expressions: list[Any] = [self._all.re(number) for number in range(len(chosen))]

    def matches(self, text: str) -> Iterator[Match]:
        """Yields the rules' matches, exceptions left out."""
        for number in sorted(self._all.Match(text, potential=False) or ()):
            rule = self.rules[number]
            for count, found in enumerate(itertools.islice(self._expressions[number].finditer(text), _MOST_MATCHES)):
                excess = count == _MOST_MATCHES - 1
                if excess or not rule.spares(text, found.start(), found.end()):
                    yield Match(rule, found.start(), found.end(), excess)


@functools.cache
def book(severity: str) -> Book:
    """Compiles the rules of one severity."""
    return Book([rule for rule in rules() if rule.severity == severity])
