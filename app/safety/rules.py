"""The rules, read once from their file, and searched by an engine whose time is linear in the text."""

import functools
import itertools
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from app.safety.normal import folded

COMPACT, HIDDEN, ADDRESSED = "compact", "hidden", "addressed"
"""Rules for letters that stood apart, for places that a person does not see, and, of these, for titles too."""
WORD = re.compile(r"[a-z]{3,}")
LETTERS = {"ru": "а-яa-z", "de": "a-z", "fr": "a-z", "es": "a-z"}
"""What a letter is in a language: every letter there is makes an expression twenty times as large. Without accents, as
the text is read."""
NESTED = 3
"""How deep a list of words may name other lists."""
MOST_MATCHES = 1_000
"""Of one rule in one text, quoted ones included; a text that has more quotes nothing."""
SPARED_BEFORE = 8
"""Characters before a match that are looked at too: "do not forget" stands there in other languages."""
SPARED_WITHIN = 80
"""Characters after a match in which its rule's exception is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What an instruction of one kind looks like."""

    name: str
    family: str
    language: str
    severity: str
    pattern: str
    caught: tuple[str, ...]
    spared: tuple[str, ...]
    unless: str = ""
    """What no match contains, nor the few characters before it; Python's, as the next."""
    unless_after: str = ""
    """What does not follow a match."""

    def spares(self, text: str, start: int, end: int) -> bool:
        """Whether a match is one of the rule's exceptions."""
        if self.unless and _exception(self.unless).search(text, max(0, start - SPARED_BEFORE), end):
            return True
        return bool(self.unless_after and _exception(self.unless_after).match(text, end, end + SPARED_WITHIN))


@functools.cache
def _exception(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Every rule, its words put in."""
    found = tomllib.loads(files("app.safety").joinpath("rules.toml").read_text(encoding="utf-8"))
    words: dict[str, str] = found["words"]
    return tuple(_rule(rule, words) for rule in found["rule"])


@functools.cache
def vocabulary() -> frozenset[str]:
    """Words, in small Latin letters, of which the rules' expressions and examples are made."""
    sources = (text for rule in rules() for text in (rule.pattern, *rule.caught))
    return frozenset(word for source in sources for word in WORD.findall(folded(source).lower()))


def _rule(given: dict[str, Any], words: dict[str, str]) -> Rule:
    patterns = {
        name: folded(_filled(given.get(name, ""), words, given["language"]))
        for name in ("pattern", "unless", "unless_after")
    }
    examples = {name: tuple(given[name]) for name in ("caught", "spared")}
    return Rule(**{**given, **patterns, **examples})


def _filled(pattern: str, words: dict[str, str], language: str) -> str:
    for _ in range(NESTED):
        for name, alternatives in words.items():
            pattern = pattern.replace(f"{{{name}}}", alternatives)
    letters = LETTERS.get(language)
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
    """It is the last that is looked for: quotation and exceptions no longer count."""


class Book:
    """Rules of one severity group. A rule is asked only where a text has the words that it cannot do without."""

    def __init__(self, chosen: Sequence[Rule]) -> None:
        import re2  # type: ignore[import-untyped] # noqa: PLC0415 - it carries no types; only where text is stored

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
        """What the rules find."""
        for number in sorted(self._all.Match(text, potential=False) or ()):
            rule = self.rules[number]
            for count, found in enumerate(itertools.islice(self._expressions[number].finditer(text), MOST_MATCHES)):
                excess = count == MOST_MATCHES - 1
                if excess or not rule.spares(text, found.start(), found.end()):
                    yield Match(rule, found.start(), found.end(), excess)


@functools.cache
def book(severity: str) -> Book:
    """The rules of `block` and `flag`, or of one of the others."""
    apart = {COMPACT, HIDDEN, ADDRESSED}
    if severity in apart:
        return Book([rule for rule in rules() if rule.severity == severity])
    return Book([rule for rule in rules() if rule.severity not in apart])
