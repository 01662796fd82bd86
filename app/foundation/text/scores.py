"""Reads the scores, dates and versions (`v3`, `round 3`, `third draft`) that a document states. Pure."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from app.foundation.text.dates import MONTH, periods
from app.foundation.text.words import WORD

KINDS = "version|ver|run|iteration|iter|round|attempt|revision|rev|draft|trial|experiment|exp"
VERSION = re.compile(
    rf"(?<![^\W_])(?:(?P<short>v\.?|r(?=\d{{1,2}}(?!\d)))|(?P<word>{KINDS})[\s_.-]{{0,3}})"
    r"(?P<number>\d{1,4}(?:\.\d{1,3}){0,2})(?![^\W_])(?!-[01]\d-[0-3]\d)",
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
_PERIODS = (
    "week|wk|kw|cw|day|month|quarter|sprint|phase|pilot|release|build|wave|cycle|edition|episode|season|stage|batch"
)
_IN_NAME = re.compile(
    rf"(?<![^\W_])(?P<word>[a-z](?=\d{{1,2}}(?!\d))|(?:{_PERIODS})(?=[\s_.-]?\d))[\s_.-]?(?P<number>\d{{1,3}}(?:\.\d{{1,3}}){{0,2}})(?![^\W_])",
    re.IGNORECASE,
)
"""A version in the name of a file or folder: `w11`, `memo_K1`, `pilot2`, `sprint-4`. In a text, `week 3` is a time, and
groups of a UUID are longer."""
BARE = re.compile(r"\d{1,4}(?:\.\d{1,3}){0,2}")
_RANGE = re.compile(r"\s*(?:to|through|until|[-–—…]|bis|до|à|a)\s*")
_LONGEST_RANGE, MOST_BETWEEN = 100, 1_000
"""Most versions from the first to the last of a range that are named one by one, and most of a text's ranges together:
90 kB of ranges take 0.1 s, and took 3.5 without the second limit."""
_AS_V = frozenset({"v", "v.", "version", "ver", "revision", "rev"})
_SPELLED = re.compile(rf"(?P<word>[a-z]|(?:{KINDS}|{_PERIODS})-)(?P<number>\d+(?:\.\d+){{0,2}})")
"""A version as it is stored."""


def versions_in(text: str) -> Iterator[str]:
    """Yields the versions that a text names, in its order: `v3`, `run-2`; `v2 to v4` gives all of them."""
    found, left = list(VERSION.finditer(text)), MOST_BETWEEN
    for match, following in zip_longest(found, found[1:]):
        word = match["short"] or match["word"]
        yield _spelling(word, match["number"])
        if following and _RANGE.fullmatch(text[match.end() : following.start()]):
            first, last = match["number"], following["number"]
            if first.isdigit() and last.isdigit() and int(last) - int(first) <= min(_LONGEST_RANGE, left):
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


DATE_KEYS = (
    "occurred_at", "date", "judged_at", "judged_on", "evaluated_at", "finished_at", "completed_at", "ended_at",
    "end_time", "created_at", "created", "generated_at", "measured_at", "timestamp", "updated_at", "started_at",
    "start_time",
)  # fmt: skip
"""Keys of a date, the best first; the first that can be read is taken."""
_DATE_LABEL = (
    r"(?:date|datum|fecha|дата|timestamp"
    r"|(?:dated|(?:occurr|judg|evaluat|finish|complet|end|creat|generat|measur|updat|start)ed)(?:[ _](?:at|on))?)"
)
MARKS = " \t>*_#|`+•-"
DATE_LINE = re.compile(rf"^[ \t>*_#|`+•-]*{_DATE_LABEL}[ \t*_`]*[:：|](?P<value>.*)$", re.IGNORECASE | re.MULTILINE)
"""A line that states a document's date, like `**Date:** 2026-03-23` or `| Judged on | 23 March 2026 |`."""
_DATED_CHARACTERS = 2_000
"""Beginning of a text in which such a line is its own; one further down dates something else."""
_DATE_WORD = re.compile(
    rf"{MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d+(?:st|nd|rd|th)?|t|z|utc|gmt|[ap]m", re.IGNORECASE
)
_YEAR = re.compile(r"(?:19|20)\d\d")
FINAL_SCORE = "final_score"
"""From 0 to 10 by its definition: it is taken as it stands, so that a failed run's 1.0 stays a 1."""
SCORE_KEYS = ("overall_score", "total_score", "score", "overall")
"""Keys of a score on any scale."""
_WITHIN = {
    "scores": ("overall", "overall_score", "total", "total_score", "final"),
    "score": ("overall", "total", "value"),
    **dict.fromkeys(("overall", "overall_score", "total_score"), ("score", "value")),
}
"""Keys of objects that hold the score, with its own keys in them (`scores.overall`)."""
_SCALE_KEYS = ("max_score", "score_max", "maximum", "max", "out_of", "scale")
"""Beside a score, the number that it is out of."""
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})(?:\.\s?|[/-])(?P<month>\d{1,2})(?:\.\s?|[/-])(?P<year>(?:19|20)\d\d)")
"""A date with dots has its day first, wherever it is written (Unicode CLDR, formats of dates); so has one with slashes
or hyphens outside the United States, and a month above 12 is no date."""
_SECONDS = range(10**8, 10**11)
"""Numbers that are seconds since 1970 (1973 to 5138)."""
_MILLISECONDS = range(10**11, 10**14)
_SHARE = re.compile(r"(\d+(?:[.,]\d+)?)(?:\s*(?:(?:/|out of|von|из|sur|de)\s*(\d+(?:[.,]\d+)?)|(%)))?", re.IGNORECASE)
_LARGEST = 10.0
_LARGEST_SCALE = 1_000
_PERCENT = 100.0


_TITLE = re.compile(r"\s*#[ \t]+(.{1,200})")
_ISO_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_TITLE_DATE = re.compile(
    r"[(\[]?(\d{4}-\d{2}-\d{2})\b(?!-).*"
    r"|.*(?<![\w-])(?<!since )(?<!until )(?<!before )(?<!after )(?<!from )(?<!till )(?<!to )(?<!by )[(\[]?"
    r"(\d{4}-\d{2}-\d{2})[)\]]?[ \t]*$",
    re.IGNORECASE,
)
"""A title such as `2026-03-04 review` or `Meeting (2026-03-04)`."""


class Score(NamedTuple):
    """An evaluator's score."""

    value: float
    """From 0 to 10."""
    stated: float
    """The number as it is written."""


def found_date(facts: Mapping[str, Any]) -> datetime | None:
    """Returns the date that a document states; in UTC if it names no zone."""
    found = (moment_of(facts[key]) for key in DATE_KEYS if key in facts)
    return next((moment for moment in found if moment is not None), None)


def written_date(text: str) -> datetime | None:
    """Returns the date of a line at the beginning of a text, or else of its title; in UTC if it names no zone."""
    found = (written_moment(match["value"]) for match in DATE_LINE.finditer(text[:_DATED_CHARACTERS]))
    return next((moment for moment in found if moment is not None), None) or _date_of_title(text)


def _date_of_title(text: str) -> datetime | None:
    """Returns the one date at which a first heading begins or ends, if no word before it makes it a limit."""
    title = _TITLE.match(text)
    dates = _ISO_DATE.findall(title[1]) if title else []
    at_an_end = _TITLE_DATE.match(title[1]) if title and len(dates) == 1 else None
    return moment_of(at_an_end[1] or at_an_end[2]) if at_an_end else None


def written_moment(text: str) -> datetime | None:
    """Returns the moment of a text that is a date, in ISO format or with the name of its month."""
    value = text.strip(MARKS)
    moment = moment_of(value)
    if moment is not None or not _YEAR.search(value) or not all(map(_DATE_WORD.fullmatch, WORD.findall(value))):
        return moment
    named = periods(value, datetime.now(UTC))
    return named[0].since if len(named) == 1 else None


def found_score(facts: Mapping[str, Any]) -> float | None:
    """Returns the evaluator's score on the scale from 0 to 10."""
    found = stated_score(facts)
    return None if found is None else found.value


def stated_score(facts: Mapping[str, Any]) -> Score | None:
    """Returns the evaluator's score, on the scale from 0 to 10 and as it is written.

    `final_score` is on that scale. Of others, `7.5/10` and `75%` say theirs, and so does a greatest score beside them;
    where nothing does, a fraction at most 1 (0.96) is a share of ten, and a number beyond ten a percentage.
    """
    return next((score for value, whole in _candidates(facts) if (score := _score(value, whole)) is not None), None)


def _candidates(facts: Mapping[str, Any]) -> Iterator[tuple[Any, float | None]]:
    yield facts.get(FINAL_SCORE), _LARGEST
    whole = _scale(facts)
    for key in SCORE_KEYS:
        yield facts.get(key), whole
    for name, keys in _WITHIN.items():
        if isinstance(inner := facts.get(name), Mapping):
            yield from ((inner.get(key), _scale(inner) or whole) for key in keys)


def _scale(facts: Mapping[str, Any]) -> float | None:
    return next(
        (facts[key] for key in _SCALE_KEYS if is_number(facts.get(key)) and 1 <= facts[key] <= _LARGEST_SCALE), None
    )


def moment_of(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON or YAML value
    """Returns the moment that a value states; None where it states none."""
    try:
        match value:
            case datetime():
                moment = value
            case date():
                moment = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - UTC is assumed below
            case bool():
                return None
            case int() | float():
                return _epoch(value)
            case str() if match := _DAY_FIRST.fullmatch(value.strip()):
                moment = datetime(int(match["year"]), int(match["month"]), int(match["day"]))  # noqa: DTZ001 - the same
            case str():
                moment = datetime.fromisoformat(value.strip())
            case _:
                return None
        return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _epoch(value: float) -> datetime | None:
    if not is_number(value):
        return None
    if int(value) in _SECONDS:
        return datetime.fromtimestamp(value, UTC)
    return datetime.fromtimestamp(value / 1000, UTC) if int(value) in _MILLISECONDS else None


def _score(value: Any, whole: float | None) -> Score | None:  # noqa: ANN401 - any JSON or YAML value
    if isinstance(value, str):
        return _written_score(value, whole)
    if not is_number(value):
        return None
    if whole is None:
        whole = 1 if isinstance(value, float) and value <= 1 else _PERCENT if value > _LARGEST else _LARGEST
    return Score(value * _LARGEST / whole, value) if 0 <= value <= whole else None


def is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON or YAML value
    """Returns True for a finite number; an integer is one even where it is too large for a float."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (isinstance(value, int) or math.isfinite(value))
    )


def _written_score(text: str, whole: float | None = None) -> Score | None:
    """Returns the score that a text is: `7.5/10`, `75%`, `0.96`; `whole` is its scale if it states none."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        return None
    number, out_of = match[1].replace(",", "."), match[2]
    value = float(number)
    if out_of is not None:
        whole = float(out_of.replace(",", "."))
    elif match[3]:
        whole = _PERCENT
    elif whole is None:
        whole = 1.0 if "." in number and value <= 1 else _LARGEST
    return Score(value / whole * _LARGEST, value) if whole and value <= whole else None
