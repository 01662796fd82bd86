"""Normalises text (accents, homoglyphs, invisible and full-width characters), and holds the scan's rules. Pure.

RE2 searches the rules in time linear in the text. Measured: the package confusable-homoglyphs alone reads 11 to 36 % of
our respelled attacks, the normal view 88 to 92 %. The 32 letters that only the package knew are in _HOMOGLYPHS.
"""

import bisect
import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped] # the package has no types

from app.foundation.text.data import read_toml
from app.foundation.values import frozen

Span = tuple[int, int]
"""Start and end of a stretch of text, in characters."""
_Step = tuple[int, int]
"""Length of a stretch of a view, and of the stretch of the original that it stands for, in characters."""
Change = tuple[int, int, str]
"""Start and end of a stretch, and its replacement."""


class NormalView:
    """A rewritten text that maps its positions back to the original. The map is built at its first use."""

    def __init__(self, text: str, *, steps: Callable[[], Iterable[_Step]] | None = None) -> None:
        """`steps` covers the whole text in order; without it, the view is the original itself."""
        self.text = text
        self._steps = steps

    def position(self, at: int) -> int:
        """Returns the position of a character in the original."""
        if self._steps is None:
            return at
        starts, original_starts, widths = self._map
        step = bisect.bisect_right(starts, at) - 1
        length = starts[step + 1] - starts[step] if step + 1 < len(starts) else 1
        return original_starts[step] + (at - starts[step]) * max(widths[step] - 1, 0) // max(length - 1, 1)

    def span(self, start: int, end: int) -> Span:
        """Returns the span in the original of a stretch of this text."""
        first = self.position(start)
        return first, max(first + 1, self.position(max(end - 1, start)) + 1)

    @functools.cached_property
    def _map(self) -> tuple[list[int], list[int], list[int]]:
        """Returns, for each step, its start here, its start in the original, and its length there."""
        steps = list(self._steps()) if self._steps is not None else []
        starts = itertools.accumulate((length for length, _ in steps), initial=0)
        original_starts = itertools.accumulate((width for _, width in steps), initial=0)
        return list(starts), list(original_starts), [*(width for _, width in steps), 1]


def rewritten(text: str, changes: Sequence[Change]) -> NormalView:
    """Applies changes, which are in order and do not overlap."""
    parts: list[str] = []
    last = 0
    for start, end, replacement in changes:
        parts += (text[last:start], replacement)
        last = end
    return NormalView("".join([*parts, text[last:]]), steps=lambda: _steps(changes, len(text)))


def _steps(changes: Sequence[Change], length: int) -> Iterable[_Step]:
    last = 0
    for start, end, replacement in changes:
        yield start - last, start - last
        yield len(replacement), end - start
        last = end
    yield length - last, length - last


class Pieces(NamedTuple):
    """Texts from several places of the original, joined by line breaks."""

    text: str
    starts: tuple[int, ...]
    """Position of each piece in `text`."""
    spans: tuple[Span, ...]
    """Span of each piece in the original."""

    def span(self, at: int) -> Span:
        """Returns the original span of the piece at a position."""
        return self.spans[max(bisect.bisect_right(self.starts, at) - 1, 0)]


def pieces(found: Iterable[tuple[str, Span]]) -> Pieces | None:
    """Joins texts with their spans; returns None if there are none."""
    items = list(found)
    if not items:
        return None
    starts = itertools.accumulate((len(text) + 1 for text, _ in items[:-1]), initial=0)
    return Pieces("\n".join(text for text, _ in items), tuple(starts), tuple(span for _, span in items))


_PLAIN = re.compile(r"[\t\n\r -~]*")
"""A text of these characters is normal already."""
_BLANKS = {"\x0b": " ", "\x0c": "\n", "\x1c": " ", "\x1d": " ", "\x1e": " ", "\x1f": " ", "\x85": "\n", "\u2800": " "}
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Invisible Hangul letters."""
_INVISIBLE_CATEGORIES = frozenset({"Mn", "Me", "Cf", "Cc"})
"""Marks on letters, format and control characters; they are removed."""
_BLANK_CATEGORIES = {"Zs": " ", "Zl": "\n", "Zp": "\n", "Cs": "\ufffd"}
_SYLLABLES = range(0xAC00, 0xD7A4)
"""Hangul syllables; decomposition would split them into letters."""
_IGNORABLE = range(0xE0000, 0xE1000)
_LATIN_NAME = re.compile(
    r"(?:LATIN (?:SMALL|CAPITAL) LETTER|LATIN LETTER|NEGATIVE (?:CIRCLED|SQUARED) LATIN) "
    r"(?:(?:SMALL CAPITAL|CAPITAL LETTER|SMALL|DOTLESS|SCRIPT|OPEN|TURNED|REVERSED|LONG|BARRED) )?([A-Z])(?: WITH .+)?"
)
"""Unicode names of Latin letters with a stroke or a hook, of small capitals and the like."""
_SPELLED = {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ɑ": "a", "ɩ": "i", "ʊ": "u", "ð": "d"}
_HOMOGLYPHS = {
    pair[0]: pair[1]
    for pair in """
    аa еe оo рp сc уy хx іi јj ѕs ԁd ԛq ԝw һh ӏl кk мm тt вb нh гr АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ІI ЈJ ЅS
    αa οo εe νv ιi κk ρp τt υu χx γy ωw ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX օo ոn սu ցg հh զq յj լl աw ՕO ՍU ՏS ԼL
    Ꭵi ᎪA ᎬE ᎻH ᏔW ᎷM ᏢP ᏚS ᎢT ᎡR ᏀG ᎠD ᏃZ ᏙV ᏟC ᏞL ᎫJ ᏦK ᏴB
    ͺi ͿJ σo ϒY ϜF ϱp ϲc ϳj ϹC ϺM Ьb ѡw ѴV ѵv ҮY үy ҽe Ӏl ԌG ԜW գq ռn քf ᎩY ᎳW ᎽY Ꮒh Ꮟb ᏒR ᏕS Ꮷd ᏳG
    """.split()  # noqa: SIM905 - a hundred quoted pairs cannot be read
}
"""Cyrillic, Greek, Armenian and Cherokee letters with the Latin letters that they look like. They are read as Latin in
words that have Latin letters too; if every foreign letter of the text is a homoglyph, also in words next to Latin ones.
"""
_TO_LATIN = str.maketrans(_HOMOGLYPHS)
_FOREIGN = r"\u0370-\u058f\u13a0-\u13ff"
_ALIKE = "".join(_HOMOGLYPHS)
_MIXED_WORD = re.compile(rf"\b(?=\w*[A-Za-z])(?=\w*[{_FOREIGN}])\w+")
_NO_HOMOGLYPH = re.compile(rf"(?![{_ALIKE}])[{_FOREIGN}]")
_NEXT_TO_LATIN = re.compile(rf"(?<=[A-Za-z] )[{_ALIKE}]{{2,}}\b|\b[{_ALIKE}]{{2,}}(?= [A-Za-z])")
_LETTER = r"[A-Za-z\u00c0-\u058f]"
_INVISIBLE = re.compile(
    rf"(?<={_LETTER})[\x00-\x08\x0e-\x1b\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    rf"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]+(?={_LETTER})"
)


class _Folds(dict[int, str]):
    """The folded form of each character, computed when it first occurs."""

    def __missing__(self, number: int) -> str:
        self[number] = found = _fold_letter(chr(number))
        return found


def _fold_letter(letter: str) -> str:
    category = unicodedata.category(letter)
    if letter in _BLANKS or category in _BLANK_CATEGORIES:
        return _BLANKS.get(letter) or _BLANK_CATEGORIES[category]
    if letter in _FILLERS or category in _INVISIBLE_CATEGORIES or ord(letter) in _IGNORABLE:
        return ""
    if ord(letter) in _SYLLABLES:
        return letter
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(_latin_base(part) for part in parts if unicodedata.category(part) not in _INVISIBLE_CATEGORIES)


def _latin_base(letter: str) -> str:
    if letter in _SPELLED or letter in _FILLERS:
        return _SPELLED.get(letter, "")
    found = _LATIN_NAME.fullmatch(unicodedata.name(letter, "")) if letter > "\x7f" else None
    if not found:
        return letter
    return found[1] if letter.isupper() else found[1].lower()


_FOLDS = _Folds({number: chr(number) for number in (9, 10, 13, *range(32, 127))})


def fold(text: str) -> str:
    """Folds each character. Most texts keep their length, but not all."""
    return text if _PLAIN.fullmatch(text) else text.translate(_FOLDS)


def normal(text: str) -> NormalView:
    """Folds each character and reads homoglyphs as Latin letters."""
    if _PLAIN.fullmatch(text):
        return NormalView(text)
    read = _with_latin_homoglyphs(text.translate(_FOLDS))
    if all(len(_FOLDS[ord(letter)]) == 1 for letter in set(text)):
        return NormalView(read)
    return NormalView(read, steps=lambda: ((len(_FOLDS[ord(letter)]), 1) for letter in text))


def count_invisible(text: str) -> int:
    """Counts the runs of invisible characters between letters."""
    return 0 if _PLAIN.fullmatch(text) else len(_INVISIBLE.findall(text))


def _with_latin_homoglyphs(text: str) -> str:
    if text.isascii():
        return text
    text = _MIXED_WORD.sub(_as_latin, text)
    return text if _NO_HOMOGLYPH.search(text) else _NEXT_TO_LATIN.sub(_as_latin, text)


def _as_latin(match: re.Match[str]) -> str:
    return _translate(match[0])


@functools.lru_cache(maxsize=4096)
def _translate(word: str) -> str:
    return word.translate(_TO_LATIN)


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


@frozen
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
