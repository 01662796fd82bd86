"""Says the times of Russian, German, Spanish and Chinese queries in English, which `dates` reads. Pure."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from app.foundation.text.data import read_toml

_KINDS = ("month", "season", "weekday", "unit", "number")
_PART = "part"
"""The words that `last` and `this` stand before: a unit longer than a day ("an diesem Tag" is not today), a day of the
week, a season."""
_DIGITS = {
    "day": "[12][0-9]|3[01]|0?[1-9]",
    "year": "(?:19|20)[0-9][0-9]",
    "until": "(?:19|20)[0-9][0-9]",
}
_END = r"(?=\s*(?:[?!.,;:)]|$))"
"""The end of a clause: "до 2000 символов" and "hasta 2000 mensajes" name no year."""
_WITH_DOTS = re.compile(
    r"(?<!version )(?<!release )(?<!versión )(?<!версия )(?<!версии )(?<![\w.])"
    r"(0?[1-9]|[12][0-9]|3[01])\.(0?[1-9]|1[0-2])\.((?:19|20)[0-9][0-9])(?![\w]|\.[0-9])",
    re.IGNORECASE,
)
"""A date like 24.12.2025, whose year stands last."""
_WITH_SLASHES = re.compile(r"(?<![\w/.])([0-3]?[0-9])/([0-3]?[0-9])/((?:19|20)[0-9][0-9])(?![\w/])")
"""A date like 24/12/2025; the month stands first only where no month has the second number."""
_MONTHS = 12
_Words = dict[str, str]
"""The English words of a kind, each with the regular expression of the foreign ones."""


class _Language:
    """The phrases of a language."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.separated: bool = table["separated"]
        self.signs = frozenset(table["signs"].split() if self.separated else table["signs"].strip())
        self._words: dict[str, _Words] = {kind: dict(table[kind]) for kind in _KINDS}
        longer = {english: foreign for english, foreign in self._words["unit"].items() if english != "day"}
        self._words[_PART] = self._words["weekday"] | self._words["season"] | longer
        start, end = (r"(?<!\w)", r"(?!\w)") if self.separated else ("", "")
        self._phrases = [
            (re.compile(f"{start}(?:{self._pattern(foreign)}){end}", re.IGNORECASE), english)
            for foreign, english in table["phrases"]
        ]

    def in_english(self, text: str) -> str:
        """Returns the text with the times of this language; a comma parts each from the next word ("may fail")."""
        for pattern, english in self._phrases:
            text = pattern.sub(partial(self._in_english, english), text)
        return text

    def _pattern(self, foreign: str) -> str:
        for kind, words in self._words.items():
            digits = "(?<![0-9])[0-9]{1,3}|" if kind == "number" else ""
            foreign = foreign.replace(f"{{{kind}}}", f"(?P<{kind}>{digits}{'|'.join(words.values())})", 1)
            foreign = foreign.replace(f"{{{kind}}}", f"(?P<other_{kind}>{'|'.join(words.values())})")
        for name, pattern in _DIGITS.items():
            foreign = foreign.replace(f"{{{name}}}", f"(?P<{name}>{pattern})")
        return foreign.replace("{end}", _END)

    def _in_english(self, english: str, match: re.Match[str]) -> str:
        groups = match.groupdict()
        for name in re.findall(r"\{(\w+)\}", english):
            found = groups.get(name) or groups.get(f"other_{name}")
            said = self._word(name, found) if found else "one" if name == "number" else ""
            english = english.replace(f"{{{name}}}", said)
        return f" {english.strip()}, "

    def _word(self, kind: str, found: str) -> str:
        if kind in _DIGITS or found.isdecimal():
            return found
        return next(
            english for english, foreign in self._words[kind].items() if re.fullmatch(foreign, found, re.IGNORECASE)
        )


_TABLES = read_toml("app.foundation.text", "foreign_dates.toml", dict[str, dict[str, Any]])
_LANGUAGES: Sequence[_Language] = tuple(map(_Language, _TABLES.values()))
_WORD = re.compile(r"\w+")
_SIGN_LETTERS = 4


def _with_slashes(match: re.Match[str]) -> str:
    day, month = int(match[1]), int(match[2])
    day, month = (month, day) if month > _MONTHS >= day else (day, month)
    return f"{match[3]}-{month:02}-{day:02}"


def in_english(text: str) -> str:
    """Returns the text with the times that it names in these languages said in English; all else stays."""
    text = _WITH_DOTS.sub(lambda match: f"{match[3]}-{int(match[2]):02}-{int(match[1]):02}", text)
    text = _WITH_SLASHES.sub(_with_slashes, text)
    begun = {word[:_SIGN_LETTERS] for word in _WORD.findall(text.lower())}
    for language in _LANGUAGES:
        if not language.signs.isdisjoint(begun if language.separated else text):
            text = language.in_english(text)
    return text
