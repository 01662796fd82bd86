"""The rules, read once from their file, and searched by an engine whose time is linear in the text."""

import functools
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

COMPACT, HIDDEN = "compact", "hidden"
"""Rules for letters that stood apart, and for places that a person does not see."""
LETTERS = {"ru": "а-яёa-z", "de": "a-zäöüß", "fr": "a-zà-öø-ÿœ", "es": "a-záéíóúüñ"}
"""What a letter is in a language: every letter there is makes an expression twenty times as large."""
MOST_OF_A_RULE = 20
"""Findings of one rule in one text: a text that repeats itself a thousand times is one finding's worth of news."""


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


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Every rule, its words put in."""
    found = tomllib.loads(files("app.injection").joinpath("rules.toml").read_text(encoding="utf-8"))
    words: dict[str, str] = found["words"]
    return tuple(
        Rule(**{**rule, "pattern": _filled(rule["pattern"], words, rule["language"]), "caught": tuple(rule["caught"]),
                "spared": tuple(rule["spared"])})
        for rule in found["rule"]
    )  # fmt: skip


def _filled(pattern: str, words: dict[str, str], language: str) -> str:
    for name, alternatives in words.items():
        pattern = pattern.replace(f"{{{name}}}", alternatives)
    letters = LETTERS.get(language, r"\p{L}")
    inside = pattern.replace(r"[^\p{L}", f"[^{letters}").replace(r"[\p{L}", f"[{letters}")
    return inside.replace(r"\p{L}", f"[{letters}]")


class Book:
    """Rules of one severity group, asked all at once and then one by one."""

    def __init__(self, chosen: Sequence[Rule]) -> None:
        import re2  # type: ignore[import-untyped] # noqa: PLC0415 - it carries no types; only where text is stored

        options = re2.Options()
        options.case_sensitive = False
        options.max_mem = 256 << 20
        self.rules = tuple(chosen)
        self._expressions: list[Any] = [re2.compile(rule.pattern, options) for rule in chosen]
        self._all: Any = re2.Set.SearchSet(options)
        for rule in chosen:
            self._all.Add(rule.pattern)
        self._all.Compile()

    def matches(self, text: str) -> Iterator[tuple[Rule, int, int]]:
        """Each rule that matches, with where it starts and ends."""
        for number in sorted(self._all.Match(text) or ()):
            for count, match in enumerate(self._expressions[number].finditer(text)):
                if count == MOST_OF_A_RULE:
                    break
                yield self.rules[number], match.start(), match.end()


@functools.cache
def book(severity: str) -> Book:
    """The rules of `block` and `flag`, of COMPACT, or of HIDDEN."""
    if severity in {COMPACT, HIDDEN}:
        return Book([rule for rule in rules() if rule.severity == severity])
    return Book([rule for rule in rules() if rule.severity not in {COMPACT, HIDDEN}])
