"""Text as a reader takes it in, whatever its characters: accents, look-alikes, invisible or wide ones. Pure."""

import bisect
import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.safety.context import Span

Step = tuple[int, int]
"""Characters of the view, and of the text that was given, that stand for each other."""
Change = tuple[int, int, str]
"""A stretch of a text, and what is read instead."""


class View:
    """A text as it is read. Where its characters stood is worked out when first asked for."""

    def __init__(self, text: str, *, steps: Callable[[], Iterable[Step]] | None = None) -> None:
        self.text = text
        self._steps = steps

    def place(self, at: int) -> int:
        """Where a character stood."""
        if self._steps is None:
            return at
        reads, stood, widths = self._places
        step = bisect.bisect_right(reads, at) - 1
        length = reads[step + 1] - reads[step] if step + 1 < len(reads) else 1
        return stood[step] + (at - reads[step]) * max(widths[step] - 1, 0) // max(length - 1, 1)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of this text stood."""
        first = self.place(start)
        return first, max(first + 1, self.place(max(end - 1, start)) + 1)

    @functools.cached_property
    def _places(self) -> tuple[list[int], list[int], list[int]]:
        steps = list(self._steps()) if self._steps is not None else []
        reads = itertools.accumulate((read for read, _ in steps), initial=0)
        stood = itertools.accumulate((width for _, width in steps), initial=0)
        return list(reads), list(stood), [*(width for _, width in steps), 1]


def rewritten(text: str, changes: Sequence[Change]) -> View:
    """The text with these changes, which are in order and do not overlap."""
    pieces: list[str] = []
    last = 0
    for start, end, instead in changes:
        pieces += (text[last:start], instead)
        last = end
    return View("".join([*pieces, text[last:]]), steps=lambda: _steps(changes, len(text)))


def _steps(changes: Sequence[Change], length: int) -> Iterable[Step]:
    last = 0
    for start, end, instead in changes:
        yield start - last, start - last
        yield len(instead), end - start
        last = end
    yield length - last, length - last


@dataclass(frozen=True, slots=True)
class Pieces:
    """The texts, one after another."""

    text: str
    starts: tuple[int, ...]
    """Of each in `text`."""
    spans: tuple[Span, ...]
    """Of each in the text that was given."""

    def span(self, at: int) -> Span:
        """Where the text stood to which this place belongs."""
        return self.spans[max(bisect.bisect_right(self.starts, at) - 1, 0)]


def pieces(found: Iterable[tuple[str, Span]]) -> Pieces | None:
    """These texts; None where there is none."""
    texts: list[str] = []
    starts: list[int] = []
    spans: list[Span] = []
    at = 0
    for text, span in found:
        texts.append(text)
        starts.append(at)
        spans.append(span)
        at += len(text) + 1
    return Pieces("\n".join(texts), tuple(starts), tuple(spans)) if texts else None


PLAIN = re.compile(r"[\t\n\r -~]*")
"""What is read as it stands."""
BLANKS = {"\x0b": " ", "\x0c": "\n", "\x1c": " ", "\x1d": " ", "\x1e": " ", "\x1f": " ", "\x85": "\n", "\u2800": " "}
FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters of Hangul that nobody sees."""
UNSEEN_CATEGORIES = frozenset({"Mn", "Me", "Cf", "Cc"})
"""Marks on letters, format and control characters: without them the letters stay."""
BLANK_CATEGORIES = {"Zs": " ", "Zl": "\n", "Zp": "\n", "Cs": "\ufffd"}
SYLLABLES = range(0xAC00, 0xD7A4)
"""Of Hangul, which would fall apart into letters."""
IGNORABLE = range(0xE0000, 0xE1000)
NAMED = re.compile(
    r"(?:LATIN (?:SMALL|CAPITAL) LETTER|LATIN LETTER|NEGATIVE (?:CIRCLED|SQUARED) LATIN) "
    r"(?:(?:SMALL CAPITAL|CAPITAL LETTER|SMALL|DOTLESS|SCRIPT|OPEN|TURNED|REVERSED|LONG|BARRED) )?([A-Z])(?: WITH .+)?"
)
"""Unicode's names of letters that are a Latin one with a stroke, a hook, small capitals and the like."""
SPELLED = {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ɑ": "a", "ɩ": "i", "ʊ": "u", "ð": "d"}
LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁԛԝһӏкмтвнгАВЕКМНОРСТУХІЈЅαοενικρτυχγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսցհզյլաՕՍՏԼᎥᎪᎬᎻᏔᎷᏢᏚᎢᎡᏀᎠᏃᏙᏟᏞᎫᏦᏴ",
    "aeopcyxijsdqwhlkmtbhrABEKMHOPCTYXIJSaoevikptuxywABEZHIKMNOPTYXonughqjlwOUSLiAEHWMPSTRGDZVCLJKB",
)
"""Letters of Cyrillic, Greek, Armenian and Cherokee that look like Latin ones. They are read so in words that have
Latin letters too; and, in a text whose foreign letters are look-alikes one and all, in words beside Latin ones."""
FOREIGN = r"\u0370-\u058f\u13a0-\u13ff"
ALIKE = "".join(map(chr, LOOK_ALIKES))
MIXED = re.compile(rf"\b(?=\w*[A-Za-z])(?=\w*[{FOREIGN}])\w+")
UNLIKE = re.compile(rf"(?![{ALIKE}])[{FOREIGN}]")
BESIDE = re.compile(rf"(?<=[A-Za-z] )[{ALIKE}]{{2,}}\b|\b[{ALIKE}]{{2,}}(?= [A-Za-z])")
LETTER = r"[A-Za-z\u00c0-\u058f]"
INVISIBLE = re.compile(
    rf"(?<={LETTER})[\x00-\x08\x0e-\x1b\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    rf"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]+(?={LETTER})"
)


class _Folds(dict[int, str]):
    """Each character's reading, worked out when it first comes up."""

    def __missing__(self, number: int) -> str:
        self[number] = found = _folded(chr(number))
        return found


def _folded(letter: str) -> str:
    category = unicodedata.category(letter)
    if letter in BLANKS or category in BLANK_CATEGORIES:
        return BLANKS.get(letter) or BLANK_CATEGORIES[category]
    if letter in FILLERS or category in UNSEEN_CATEGORIES or ord(letter) in IGNORABLE:
        return ""
    if ord(letter) in SYLLABLES:
        return letter
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(_as_ascii(part) for part in parts if unicodedata.category(part) not in UNSEEN_CATEGORIES)


def _as_ascii(letter: str) -> str:
    if letter in SPELLED or letter in FILLERS:
        return SPELLED.get(letter, "")
    name = unicodedata.name(letter, "") if letter > "\x7f" else ""
    known = NAMED.fullmatch(name)
    if not known:
        return letter
    return known[1] if letter.isupper() else known[1].lower()


FOLDS = _Folds({number: chr(number) for number in (9, 10, 13, *range(32, 127))})


def folded(text: str) -> str:
    """The text in letters without accents; of the same length for most texts, but not for all."""
    return text if PLAIN.fullmatch(text) else text.translate(FOLDS)


def normal(text: str) -> View:
    """The text as it reads."""
    if PLAIN.fullmatch(text):
        return View(text)
    read = _without_look_alikes(text.translate(FOLDS))
    if all(len(FOLDS[ord(letter)]) == 1 for letter in set(text)):
        return View(read)
    return View(read, steps=lambda: ((len(FOLDS[ord(letter)]), 1) for letter in text))


def hidden(text: str) -> int:
    """How often invisible characters stand between letters."""
    return 0 if PLAIN.fullmatch(text) else len(INVISIBLE.findall(text))


def _without_look_alikes(text: str) -> str:
    if text.isascii():
        return text
    text = MIXED.sub(_as_latin, text)
    return text if UNLIKE.search(text) else BESIDE.sub(_as_latin, text)


@functools.lru_cache(maxsize=4096)
def _translated(word: str) -> str:
    return word.translate(LOOK_ALIKES)


def _as_latin(match: re.Match[str]) -> str:
    return _translated(match[0])
