"""Reads the periods of time that a query names: calendar dates, and times relative to a reference moment. Pure.

It reads English words and ISO dates, and what `foreign_dates` says in English. Measured: of the tests' 82 dates it
reads 82, and of their 67 false dates none, in 29 µs a query; dateparser 1.5 reads 28 and 47 in 718 µs; timefhuman 0.1.5
reads 12 and 9; date-wrangler 2.3 reads 64 and 23 (LoCoMo recall@5 0.743 against 0.744), and takes over 3 s for 100,000
characters.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from app.foundation.text.data import read_toml
from app.foundation.text.foreign_dates import in_english
from app.foundation.text.words import content_words

READ_CHARACTERS = 1_000
"""Characters of a query that are read. A question names its time in a sentence; a longer, pasted text has other
dates."""
_AFTERMATH = timedelta(days=7)
"""Time after a period in which its events are still reported; at least the length of the period itself."""
AFTERMATH_SHARE = 0.5
"""Closeness of a moment in the aftermath. From 0.25 to 0.75 recall moves by two points at most
(benchmarks/retrieval.md)."""


class Period(NamedTuple):
    """A stretch of time that a query names."""

    since: datetime
    until: datetime
    """The end of the period, exclusive."""
    yearly: bool = False
    """True if the query names no year, as in `in June`: the period then recurs every year."""
    open: bool = False
    """True if the query names one end only, as in `before 2023`: such a period has no aftermath."""
    relative: bool = False
    """True if it is relative to the moment of the query, as in `last week`."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of each season, in the northern hemisphere."""
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple of": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6,
           "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}  # fmt: skip
_PARTS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "beginning": 0, "start": 0, "middle": 1, "end": 2}
_DAYS = {"day": 1, "week": 7, "weekend": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}
_NEAR_DAYS = {"the day before yesterday": 2, "yesterday": 1, "last night": 1, "today": 0}
"""Words for a day, with the number of days since then."""

MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_SEASON = rf"(?P<season>{'|'.join(_SEASONS)})\b"
_DAY = r"\b(?P<day>[12][0-9]|3[01]|0?[1-9])(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>(?:19|20)[0-9][0-9])\b"
_ISO_YEAR = rf"(?<![\w-]){_YEAR[:-2]}"
_UNTIL = r"(?:-|–|to\b|until\b|till\b|through\b)"
_PREPOSITION = (
    r"\b(?P<lead>(?:in|during|of|on|since|until|till|before|after|by|from|to|between|and|through|early|late|mid)[ -])"
)
"""Required before a word with a second meaning: `in May`, but not `they may`."""
_NO_VERB = r"\b(?!(?:and|to|by)[ -](?:the )?(?:may|mar(?:ch)?|spring|fall)\b)"
"""Excludes the verbs that these words introduce: `slow and may fail`, `to march`."""
_COUNT = rf"\b(?:(?P<count>[0-9]{{1,3}}|{'|'.join(_NUMBERS)}) )"
_UNIT = rf"(?P<unit>{'|'.join(sorted(_DAYS, key=len, reverse=True))})s?\b"
_WEEKDAY = r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b"
_ACTIVITY = content_words(
    "work worked works working doing done did happen happened happening change changed changes decide decided "
    "decision decisions learn learned learnt learning discuss discussed talk talked say said tell told show list "
    "give summarise summarize summary recap news new event events note notes entry entries record records "
    "recorded session sessions log logs history activity activities progress status go went going get got "
    "anything everything something all us team project make made making finish finished complete completed "
    "achieve achieved write written wrote remember please during around about there were occurred date dates was "
    "haben wir habe ich hat gemacht getan passiert war wurde geschehen geschah gearbeitet woran daran что мы "
    "делали сделали сделано было произошло случилось работали работа чем занимались qué hicimos hizo pasó "
    "trabajamos hemos hecho se 做 了 什 么 我 们 发 生 过 事 情 有 哪 些 工 作 干 在 的 吗 日 期"
)
"""Words of questions that ask what was done or recorded, and not about what."""
_ASKS_FOR_RECORDS = re.compile(
    r"\W*(?:(?:and|so|ok|please) )*(?:(?:what|which|who|whom|how (?:many|much|far)|show|list|tell|give|"
    r"summari[sz]e|recap)\b.*\b(?:we|i|our|us|you)\b|what(?:['’]s| (?:happened|changed|was|were|ha(?:s|ve) been))\b)"
)
"""A question for what the asker's own team did, or for what was done."""
_ASKS_FOR_ADVICE = re.compile(r"\b(?:why|how to|should|shall|can|could|would|will|needs?|fails?|wrong|fix|next)\b")
"""A question for a reason or an instruction: records of any time may answer it."""
_FIRST_YEAR = 1_000
_MARK = "\x00"
_DATE = f"{_MARK}(?P<at>[0-9]+){_MARK}"
"""Replaces a calendar date in the text, by its number in the list of dates. No query contains _MARK itself."""
_TO_DATE = f"{_MARK}(?P<to>[0-9]+){_MARK}"

_MAY_HAVE_DATE = re.compile(
    r"[0-9]|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|spring|summer|autumn|fall|winter|today|yesterday|ago\b|"
    r"since|on|this|last|past|previous)"
)


def periods(query: str, now: datetime) -> list[Period]:
    """Reads the periods that a query names; `last week` and the like are relative to `now`, in its time zone."""
    return _read(query, now)[0]


def period_asked(query: str, now: datetime) -> tuple[Period, bool] | None:
    """Returns the period of which a query asks what was recorded, and True if it asks for nothing else of it.

    "What did we work on in Q2?" asks for all of a period; a question for a part of it does so only where its time is
    relative: what happened in June may be told in July, but what was done yesterday is in the records of yesterday.
    """
    found, rest = _read(query, now)
    if len(found) != 1 or _ASKS_FOR_ADVICE.search(rest):
        return None
    period = _latest_of(found[0], now)
    if not content_words(rest) - _ACTIVITY:
        return period, True
    return (period, False) if period.relative and _ASKS_FOR_RECORDS.match(rest) else None


def in_words(period: Period, now: datetime) -> str:
    """Returns a period in words: `8 to 14 June 2026`, `before 5 June 2026`."""
    first, last = period.since, period.until - timedelta(microseconds=1)
    if period.open and first.year < _FIRST_YEAR:
        return f"before {_day_in_words(period.until)}"
    if period.open and period.until >= now:
        return f"since {_day_in_words(first)}"
    if first.date() == last.date():
        return _day_in_words(first)
    same = "%Y%m" if (first.year, first.month) == (last.year, last.month) else "%Y" if first.year == last.year else ""
    begins = {"%Y%m": f"{first.day}", "%Y": f"{first.day} {first:%B}", "": _day_in_words(first)}[same]
    return f"{begins} to {_day_in_words(last)}"


def _day_in_words(moment: datetime) -> str:
    return f"{moment.day} {moment:%B} {moment.year}"


def _latest_of(period: Period, now: datetime) -> Period:
    """Returns the latest recurrence of a period that has begun; a period of one year itself."""
    if not period.yearly:
        return period
    months = 12 * (now.year - period.since.year)
    months -= 12 if _later(period.since, months) > now else 0
    return Period(_later(period.since, months), _later(period.until, months))


def _read(query: str, now: datetime) -> tuple[list[Period], str]:
    """Returns the periods that a query names, and its other words."""
    text = in_english(query[:READ_CHARACTERS])
    if not _MAY_HAVE_DATE.search(text.lower()):
        return [], text
    text = _without_false_dates(text).lower()
    text = " ".join(text.replace(_MARK, " ").replace(",", " ").split())
    reading = _DateReading(now)
    for pattern, read in _CALENDAR:
        text = pattern.sub(partial(reading.mark, read), text)
    for pattern, read in _RELATIVE:
        text = pattern.sub(partial(reading.take, read), text)
    return reading.periods, text


def closeness(moment: datetime, named: Sequence[Period]) -> float:
    """Returns how well a moment fits the named periods, 0 to 1."""
    return max((_closeness(moment, period) for period in named), default=0.0)


def _closeness(moment: datetime, period: Period) -> float:
    if period.open:
        return float(period.since <= moment < period.until)
    if not period.yearly:
        return _within(moment, period.since, period.until)
    try:
        years = moment.astimezone(period.since.tzinfo).year - period.since.year
        shifts = (12 * years, 12 * years - 12)
        recurrences = [(_later(period.since, months), _later(period.until, months)) for months in shifts]
    except (ValueError, OverflowError):
        # The first and the last year of the calendar have no year before or after.
        return 0.0
    return max(_within(moment, since, until) for since, until in recurrences)


def _within(moment: datetime, since: datetime, until: datetime) -> float:
    if since <= moment < until:
        return 1.0
    return AFTERMATH_SHARE if timedelta() <= moment - until < max(_AFTERMATH, until - since) else 0.0


_Found = re.Match[str]


class _DateReading:
    """A query that is being read: its calendar dates and periods so far, and the reference moment."""

    def __init__(self, now: datetime) -> None:
        self.now, self.today = now, now.replace(hour=0, minute=0, second=0, microsecond=0)
        self.dates: list[Period] = []
        self.periods: list[Period] = []

    def mark(self, read: "Reader", match: _Found) -> str:
        """Collects a calendar date and returns its mark; an impossible one (29 February 2023) is no date at all."""
        try:
            self.dates.append(read(match, self))
        except (ValueError, OverflowError):
            return _PLACEHOLDER
        return f"{match.groupdict().get('lead') or ''}{_MARK}{len(self.dates) - 1}{_MARK}"

    def take(self, read: "Reader", match: _Found) -> str:
        """Collects a period and removes its words."""
        try:
            self.periods.append(read(match, self))
        except (ValueError, OverflowError):
            return match.group()
        return " "

    def date(self, match: _Found, group: str = "at") -> Period:
        """Returns the calendar date that a mark stands for."""
        return self.dates[int(match.group(group))]

    def months(self, match: _Found, month: int, length: int) -> Period:
        """Returns so many months from the first of `month`, in the named year or in every year."""
        year = match.groupdict().get("year")
        since = self.today.replace(year=int(year or self.now.year), month=month, day=1)
        return Period(since, _later(since, length), yearly=year is None)


Reader = Callable[[_Found, _DateReading], Period]


def _day(match: _Found, reading: _DateReading) -> Period:
    year, month, day = match.group("year"), _month_number(match.group("month")), int(match.group("day"))
    leap_year = reading.now.year - reading.now.year % 4
    since = reading.today.replace(year=int(year or leap_year), month=month, day=day)
    return Period(since, since + timedelta(days=1), yearly=year is None)


def _month(match: _Found, reading: _DateReading) -> Period:
    return reading.months(match, _month_number(match.group("month")), 1)


def _season(match: _Found, reading: _DateReading) -> Period:
    return reading.months(match, _SEASONS[match.group("season")], 3)


def _quarter(match: _Found, reading: _DateReading) -> Period:
    return reading.months(match, 3 * int(match.group("quarter")) - 2, 3)


def _year(match: _Found, reading: _DateReading) -> Period:
    return reading.months(match, 1, 12)


def _years(match: _Found, reading: _DateReading) -> Period:
    since = _year(match, reading).since
    return _period_between(since, _later(since.replace(year=int(match.group("last"))), 12))


def _period_between(since: datetime, until: datetime, *, yearly: bool = False) -> Period:
    if since >= until:
        raise ValueError("a period that ends before it begins")
    return Period(since, until, yearly=yearly)


def _from_to(match: _Found, reading: _DateReading) -> Period:
    first, last = reading.date(match), reading.date(match, "to")
    since = first.since
    if first.yearly and not last.yearly:
        since = since.replace(year=last.since.year)
        since = since if since < last.until else _later(since, -12)
    return _period_between(since, last.until, yearly=last.yearly)


def _offset(match: _Found, reading: _DateReading) -> Period:
    """Reads `two days after` a date, `the week before` it."""
    date, unit = reading.date(match), match.group("unit")
    days = _DAYS.get(unit or "week", 7)
    sign = 1 if match.group("side") == "after" else -1
    if match.group("the"):
        edge = date.until if sign > 0 else date.since
        since, until = sorted((edge, edge + sign * timedelta(days=days)))
        return Period(since, until, yearly=date.yearly)
    middle = date.since + sign * timedelta(days=_count(match) * days)
    return Period(middle - timedelta(days=days // 7), middle + timedelta(days=1 + days // 7), yearly=date.yearly)


def _open(match: _Found, reading: _DateReading) -> Period:
    """Reads `before` or `since` a date; one without a year is the latest that has begun, and a term is itself."""
    date = reading.date(match)
    if date.yearly and match.group("side") in {"by", "until", "till"}:
        return date
    date = _latest_of(date, reading.now)
    if match.group("side") in {"since", "after"}:
        return Period(date.since, max(reading.now, date.until), open=True)
    until = date.since if match.group("side") == "before" else date.until
    return Period(datetime.min.replace(year=2, tzinfo=reading.now.tzinfo), until, open=True)


def _part(match: _Found, reading: _DateReading) -> Period:
    """Reads `the second week of` a month, `the first half of` a year, `the end of` either."""
    date, unit, place = reading.date(match), match.group("part"), _PARTS[match.group("place")]
    length = timedelta(days=7) if unit == "week" else (date.until - date.since) / (2 if unit == "half" else 3)
    since = date.since + place * length
    if since >= date.until:
        raise ValueError("no part of it")
    return Period(since, since + length, yearly=date.yearly)


def _ago(match: _Found, reading: _DateReading) -> Period:
    """Reads `three weeks ago`: that day, with half a unit before and after it."""
    days = _DAYS[match.group("unit")]
    middle = reading.today - timedelta(days=_count(match) * days)
    return Period(middle - timedelta(days=days // 2), middle + timedelta(days=1 + days // 2), relative=True)


def _last_few(match: _Found, reading: _DateReading) -> Period:
    since = reading.today - timedelta(days=_count(match) * _DAYS[match.group("unit")])
    return Period(since, reading.now, relative=True)


def _latest(match: _Found, reading: _DateReading) -> Period:
    """Reads `last week`, `this month`, `last Friday`, `last summer`, `last May`."""
    named, last, today = match.groupdict(), match.group("which") not in {"this", "current"}, reading.today
    if named["weekday"]:
        back = (today.weekday() - _WEEKDAYS.index(named["weekday"][:3])) % 7 or (7 if last else 0)
        return _days_from(today - timedelta(days=back), 1)
    if named["month"] or named["season"]:
        month, length = (_month_number(named["month"]), 1) if named["month"] else (_SEASONS[named["season"]], 3)
        since = today.replace(month=month, day=1)
        gone = _later(since, length) <= reading.now or (since <= reading.now and not last)
        since = since if gone else _later(since, -12)
        return Period(since, _later(since, length), relative=True)
    return _latest_unit(named["unit"], today, last=last)


def _latest_unit(unit: str, today: datetime, *, last: bool) -> Period:
    if unit in {"month", "quarter", "year"}:
        length = {"month": 1, "quarter": 3, "year": 12}[unit]
        since = today.replace(month=today.month - (today.month - 1) % length, day=1)
        since = _later(since, -length) if last else since
        return Period(since, _later(since, length), relative=True)
    days = _DAYS[unit]
    monday = today - timedelta(days=today.weekday() if days > 1 else 0)
    since = monday - timedelta(days=days) if last else monday
    return _days_from(since + timedelta(days=5), 2) if unit == "weekend" else _days_from(since, days)


def _near_day(match: _Found, reading: _DateReading) -> Period:
    return _days_from(reading.today - timedelta(days=_NEAR_DAYS[match.group()]), 1)


def _weekday(match: _Found, reading: _DateReading) -> Period:
    """Reads `since Monday`, `on Monday`: the latest before today."""
    back = (reading.today.weekday() - _WEEKDAYS.index(match.group("weekday")[:3])) % 7 or 7
    day = _days_from(reading.today - timedelta(days=back), 1)
    return day._replace(until=max(reading.now, day.until), open=True) if match.group("since") else day


def _day_of_month(match: _Found, reading: _DateReading) -> Period:
    """Reads `on the 12th`: the latest that has begun."""
    since = reading.today.replace(day=1)
    since = since if since.replace(day=int(match.group("day"))) <= reading.now else _later(since, -1)
    since = since.replace(day=int(match.group("day")))
    return Period(since, since + timedelta(days=1))


def _days_from(since: datetime, days: int) -> Period:
    """Returns so many days from a day that is relative to the moment of the query."""
    return Period(since, since + timedelta(days=days), relative=True)


def _count(match: _Found) -> int:
    count = match.group("count") or "one"
    return int(count) if count.isdigit() else _NUMBERS[count]


def _month_number(name: str) -> int:
    return int(name) if name.isdigit() else _MONTHS.index(name[:3]) + 1


def _later(moment: datetime, months: int) -> datetime:
    """Adds months; the day of the month stays, or becomes the month's last."""
    year, before = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = monthrange(year, before + 1)[1]
    return moment.replace(year=year, month=before + 1, day=min(moment.day, last))


def _compile_readers(*readers: tuple[str, Reader]) -> tuple[tuple[re.Pattern[str], Reader], ...]:
    return tuple((re.compile(pattern), read) for pattern, read in readers)


_CALENDAR = _compile_readers(
    (rf"{_ISO_YEAR}[-/](?P<month>[01]?[0-9])[-/](?P<day>[0-3]?[0-9])(?:t[0-9:.]+z?)?\b", _day),
    (rf"{_ISO_YEAR}[-/](?P<month>0[1-9]|1[0-2])\b(?![-/][0-9])", _month),
    (rf"\b{_YEAR} ?{_UNTIL} ?(?P<last>(?:19|20)[0-9][0-9])\b", _years),
    (rf"{_DAY} (?:of )?{MONTH}(?: (?:of )?{_YEAR})?", _day),
    (rf"\b{MONTH} {_DAY}(?: {_YEAR})?", _day),
    (rf"\b{MONTH} (?:of )?{_YEAR}", _month),
    (rf"\b{_SEASON} (?:of )?{_YEAR}", _season),
    (rf"\bq(?P<quarter>[1-4]) (?:of )?{_YEAR}", _quarter),
    (rf"{_PREPOSITION}(?:the )?q(?P<quarter>[1-4])\b", _quarter),
    (
        rf"{_PREPOSITION}the (?P<day>[12]?[0-9]|3[01])(?:st|nd|rd|th)\b(?= ?(?:[?!.;:)]|$))",
        _day_of_month,
    ),
    (rf"{_NO_VERB}{_PREPOSITION}(?:the )?{_SEASON}(?! of)", _season),
    (rf"{_NO_VERB}{_PREPOSITION}{MONTH}", _month),
    (rf"(?<={_MARK} )(?P<lead>(?:and|to) )(?:the )?{_SEASON}(?! of)", _season),
    (rf"(?<={_MARK} )(?P<lead>(?:and|to) ){MONTH}", _month),
    (rf"(?:{_PREPOSITION}(?:the year )?|\bthe year ){_YEAR}", _year),
    (rf"\b{MONTH}(?= ?(?:{_UNTIL}|and) ?{_MARK})", _month),
)
"""Calendar dates and their readers, in the order of use."""
_RELATIVE = _compile_readers(
    (rf"\b(?:between|from|since|after) {_DATE} (?:and|{_UNTIL}|before) {_TO_DATE}", _from_to),
    (rf"{_DATE} ?{_UNTIL} ?{_TO_DATE}", _from_to),
    (rf"(?:{_COUNT}|\b(?P<the>the|last|that|next) )(?:{_UNIT}|{_WEEKDAY}) (?P<side>before|after) {_DATE}", _offset),
    (rf"\b(?P<place>{'|'.join(_PARTS)})(?: (?P<part>week|half|part|third))? (?:of|in) {_DATE}", _part),
    (rf"\b(?P<side>before|until|till|by|since|after) {_DATE}", _open),
    (_DATE, lambda match, reading: reading.date(match)),
    (rf"{_COUNT}{_UNIT} (?:ago|back)\b", _ago),
    (rf"\b(?:last|past|previous) {_COUNT}{_UNIT}", _last_few),
    (rf"\b(?P<which>last|past|previous|this|current) (?:{_UNIT}|{_WEEKDAY}|{MONTH}|{_SEASON})", _latest),
    (rf"\b(?:(?P<since>since)|on) {_WEEKDAY}(?= ?(?:[?!.;:)]|$))", _weekday),
    (rf"\b(?:{'|'.join(_NEAR_DAYS)})\b", _near_day),
)
"""Periods relative to a calendar date or to the reference moment, and their readers, in the order of use."""

_PLACEHOLDER = "~"
"""Replaces a false date, so that no date is read across its place."""


@dataclass(frozen=True, slots=True)
class _FalseDates:
    """The file of words that look like a date and are none."""

    pattern: list[str]
    words: dict[str, str]


def _false_dates() -> tuple[re.Pattern[str], ...]:
    found = read_toml("app.foundation.text", "false_dates.toml", _FalseDates)
    patterns = found.pattern
    for name, words in found.words.items():
        patterns = [pattern.replace(f"{{{name}}}", words.replace("\n", "")) for pattern in patterns]
    return tuple(re.compile(pattern) for pattern in patterns)


_FALSE_DATES = _false_dates()


def _without_false_dates(text: str) -> str:
    """Replaces each false date by _PLACEHOLDER. The text must have its original case."""
    for pattern in _FALSE_DATES:
        text = pattern.sub(_PLACEHOLDER, text)
    return text
