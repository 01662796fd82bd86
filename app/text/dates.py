"""When a query asks about: calendar dates, and times told from a reference moment. Pure; English words, ISO dates."""

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from app.text.false_dates import NOTHING, without_look_alikes

READ_CHARACTERS = 1_000
"""A question says when in a sentence; a pasted text has dates of its own, which are not what is asked for."""
AFTERMATH = timedelta(days=7)
"""What happened is told within a week after it, or within as long again as it took,"""
AFTERMATH_SHARE = 0.5
"""and fits half as well then. From 0.25 to 0.75 recall moves by at most two points (docs/retrieval.md)."""


class Period(NamedTuple):
    """A stretch of time that a query names."""

    since: datetime
    until: datetime
    """Exclusive."""
    yearly: bool = False
    """Whether it comes every year, because the query names none: `in June`."""
    open: bool = False
    """Whether one end alone is named, `before 2023`: what comes after it is none of it, and no aftermath either."""


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month in which each begins, in the northern half."""
NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "couple of": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6,
           "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}  # fmt: skip
PARTS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "beginning": 0, "start": 0, "middle": 1, "end": 2}
DAYS = {"day": 1, "week": 7, "weekend": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}

MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
SEASON = rf"(?P<season>{'|'.join(SEASONS)})\b"
DAY = r"\b(?P<day>[12][0-9]|3[01]|0?[1-9])(?:st|nd|rd|th)?\b"
YEAR = r"(?P<year>(?:19|20)[0-9][0-9])\b"
ISO_YEAR = rf"(?<![\w-]){YEAR[:-2]}"
UNTIL = r"(?:-|–|to\b|until\b|till\b|through\b)"
LED = r"\b(?P<lead>(?:in|during|of|on|since|until|till|before|after|by|from|to|between|and|through|early|late|mid)[ -])"
"""Before a word that is also something else: `in May`, and `they may`."""
WEAK = r"\b(?!(?:and|to|by)[ -](?:the )?(?:may|mar(?:ch)?|spring|fall)\b)"
"""Before a verb these lead to nothing: `slow and may fail`, `to march`."""
COUNT = rf"\b(?:(?P<count>[0-9]{{1,3}}|{'|'.join(NUMBERS)}) )"
UNIT = rf"(?P<unit>{'|'.join(sorted(DAYS, key=len, reverse=True))})s?\b"
WEEKDAY = r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b"
MARK = "\x00"
DATE = f"{MARK}(?P<at>[0-9]+){MARK}"
"""Where a calendar date stood: a query never has the sign itself."""
TO_DATE = f"{MARK}(?P<to>[0-9]+){MARK}"

WORTH_READING = re.compile(
    r"[0-9]|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|spring|summer|autumn|fall|winter|today|yesterday|ago\b|"
    r"this|last|past|previous)"
)


def periods(query: str, now: datetime) -> list[Period]:
    """The stretches of time that a query names; `last week` and the like are told from `now`, in its zone."""
    text = query[:READ_CHARACTERS]
    if not WORTH_READING.search(text.lower()):
        return []
    text = without_look_alikes(text).lower()
    text = " ".join(text.replace(MARK, " ").replace(",", " ").split())
    dates: list[Period] = []
    found: list[Period] = []
    for pattern, read in CALENDAR:
        text = pattern.sub(partial(_marked, read=read, dates=dates, now=now), text)
    for pattern, tell in TOLD:
        text = pattern.sub(partial(_told, tell=tell, dates=dates, found=found, now=now), text)
    return found


def closeness(moment: datetime, named: Sequence[Period]) -> float:
    """How well what happened then fits what is named, 0 to 1."""
    return max((_closeness(moment, period) for period in named), default=0.0)


def _closeness(moment: datetime, period: Period) -> float:
    if period.open:
        return float(period.since <= moment < period.until)
    if not period.yearly:
        return _within(moment, period.since, period.until)
    try:
        year = moment.astimezone(period.since.tzinfo).year
        turns = [
            (_months_on(period.since, 12 * years), _months_on(period.until, 12 * years))
            for years in (year - period.since.year, year - period.since.year - 1)
        ]
    except (ValueError, OverflowError):
        # At either end of the calendar there is no year before or after.
        return 0.0
    return max(_within(moment, since, until) for since, until in turns)


def _within(moment: datetime, since: datetime, until: datetime) -> float:
    if since <= moment < until:
        return 1.0
    return AFTERMATH_SHARE if timedelta() <= moment - until < max(AFTERMATH, until - since) else 0.0


Found = re.Match[str]


def _marked(match: Found, read: Callable[[Found, datetime], Period], dates: list[Period], now: datetime) -> str:
    """The date is kept and its place marked; of what is none (29 February 2023) no part is one either."""
    try:
        dates.append(read(match, now))
    except (ValueError, OverflowError):
        return NOTHING
    return f"{match.groupdict().get('lead') or ''}{MARK}{len(dates) - 1}{MARK}"


def _told(
    match: Found,
    tell: Callable[[Found, list[Period], datetime], Period],
    dates: list[Period],
    found: list[Period],
    now: datetime,
) -> str:
    try:
        found.append(tell(match, dates, now))
    except (ValueError, OverflowError):
        return match.group()
    return " "


def _day(match: Found, now: datetime) -> Period:
    year, month, day = match.group("year"), _month_number(match.group("month")), int(match.group("day"))
    since = _midnight(now).replace(year=int(year or _leap_year(now)), month=month, day=day)
    return Period(since, since + timedelta(days=1), yearly=year is None)


def _month(match: Found, now: datetime) -> Period:
    year = match.groupdict().get("year")
    since = _midnight(now).replace(year=int(year or now.year), month=_month_number(match.group("month")), day=1)
    return Period(since, _months_on(since, 1), yearly=year is None)


def _season(match: Found, now: datetime) -> Period:
    year = match.groupdict().get("year")
    since = _midnight(now).replace(year=int(year or now.year), month=SEASONS[match.group("season")], day=1)
    return Period(since, _months_on(since, 3), yearly=year is None)


def _quarter(match: Found, now: datetime) -> Period:
    since = _midnight(now).replace(year=int(match.group("year")), month=3 * int(match.group("quarter")) - 2, day=1)
    return Period(since, _months_on(since, 3))


def _year(match: Found, now: datetime) -> Period:
    since = _midnight(now).replace(year=int(match.group("year")), month=1, day=1)
    return Period(since, _months_on(since, 12))


def _years(match: Found, now: datetime) -> Period:
    first = _year(match, now)
    until = _months_on(first.since.replace(year=int(match.group("last"))), 12)
    if until <= first.since:
        raise ValueError("a period that ends before it begins")
    return Period(first.since, until)


def _from_to(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    first, last = dates[int(match.group("at"))], dates[int(match.group("to"))]
    if first.yearly and not last.yearly:
        since = first.since.replace(year=last.since.year)
        first = Period(since if since < last.until else _months_on(since, -12), first.until)
    if first.since >= last.until:
        raise ValueError("a period that ends before it begins")
    return Period(first.since, last.until, yearly=last.yearly)


def _beside(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    """`two days after` a date, `the week before` it."""
    date, unit = dates[int(match.group("at"))], match.group("unit")
    count, days = _count(match), DAYS.get(unit or "week", 7)
    ahead = 1 if match.group("side") == "after" else -1
    if match.group("the"):
        edge = date.until if ahead > 0 else date.since
        since, until = sorted((edge, edge + ahead * timedelta(days=days)))
        return Period(since, until, yearly=date.yearly)
    middle = date.since + ahead * timedelta(days=count * days)
    return Period(middle - timedelta(days=days // 7), middle + timedelta(days=1 + days // 7), yearly=date.yearly)


def _open(match: Found, dates: list[Period], now: datetime) -> Period:
    """`before` or `since` a date; one without a year is taken for itself."""
    date = dates[int(match.group("at"))]
    if date.yearly:
        return date
    if match.group("side") in {"since", "after"}:
        return Period(date.since, max(now, date.until), open=True)
    until = date.since if match.group("side") == "before" else date.until
    return Period(datetime.min.replace(year=2, tzinfo=now.tzinfo), until, open=True)


def _part(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    """`the second week of` a month, `the first half of` a year, `the end of` either."""
    date, unit, place = dates[int(match.group("at"))], match.group("part"), PARTS[match.group("place")]
    length = timedelta(days=7) if unit == "week" else (date.until - date.since) / (2 if unit == "half" else 3)
    since = date.since + place * length
    if since >= date.until:
        raise ValueError("no part of it")
    return Period(since, since + length, yearly=date.yearly)


def _itself(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    return dates[int(match.group("at"))]


def _ago(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    """That day, week, month or year, with as much again around it as the word is vague."""
    days = DAYS[match.group("unit")]
    middle = _midnight(now) - timedelta(days=_count(match) * days)
    return Period(middle - timedelta(days=days // 2), middle + timedelta(days=1 + days // 2))


def _lately(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    return Period(_midnight(now) - timedelta(days=_count(match) * DAYS[match.group("unit")]), now)


def _latest(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    """`last week`, `this month`, `last Friday`, `last summer`, `last May`."""
    named, last, today = match.groupdict(), match.group("which") not in {"this", "current"}, _midnight(now)
    if named["weekday"]:
        back = (today.weekday() - WEEKDAYS.index(named["weekday"][:3])) % 7 or (7 if last else 0)
        return _stretch(today - timedelta(days=back), days=1)
    if named["month"] or named["season"]:
        month = _month_number(named["month"]) if named["month"] else SEASONS[named["season"]]
        length = 1 if named["month"] else 3
        since = today.replace(month=month, day=1)
        gone = _months_on(since, length) <= now or (since <= now and not last)
        since = since if gone else _months_on(since, -12)
        return Period(since, _months_on(since, length))
    return _unit_of(named["unit"], today, last=last)


def _unit_of(unit: str, today: datetime, *, last: bool) -> Period:
    if unit in {"month", "quarter", "year"}:
        length = {"month": 1, "quarter": 3, "year": 12}[unit]
        since = today.replace(month=today.month - (today.month - 1) % length, day=1)
        since = _months_on(since, -length) if last else since
        return Period(since, _months_on(since, length))
    days = DAYS[unit]
    monday = today - timedelta(days=today.weekday() if days > 1 else 0)
    since = monday - timedelta(days=days) if last else monday
    return _stretch(since + timedelta(days=5), days=2) if unit == "weekend" else _stretch(since, days=days)


def _near_day(match: Found, dates: list[Period], now: datetime) -> Period:  # noqa: ARG001 - as the others are called
    back = {"the day before yesterday": 2, "yesterday": 1, "last night": 1}.get(match.group(), 0)
    return _stretch(_midnight(now) - timedelta(days=back), days=1)


def _stretch(since: datetime, *, days: int) -> Period:
    return Period(since, since + timedelta(days=days))


def _count(match: Found) -> int:
    count = match.group("count") or "one"
    return int(count) if count.isdigit() else NUMBERS[count]


def _month_number(name: str) -> int:
    return int(name) if name.isdigit() else MONTHS.index(name[:3]) + 1


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _months_on(moment: datetime, months: int) -> datetime:
    """So many months later, on the same day of the month or its last."""
    year, before = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = monthrange(year, before + 1)[1]
    return moment.replace(year=year, month=before + 1, day=min(moment.day, last))


def _leap_year(now: datetime) -> int:
    """A year that has every day, for a date that names none."""
    return now.year - now.year % 4


CALENDAR = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"{ISO_YEAR}[-/](?P<month>[01]?[0-9])[-/](?P<day>[0-3]?[0-9])(?:t[0-9:.]+z?)?\b", _day),
        (rf"{ISO_YEAR}[-/](?P<month>0[1-9]|1[0-2])\b(?![-/][0-9])", _month),
        (rf"\b{YEAR} ?{UNTIL} ?(?P<last>(?:19|20)[0-9][0-9])\b", _years),
        (rf"{DAY} (?:of )?{MONTH}(?: (?:of )?{YEAR})?", _day),
        (rf"\b{MONTH} {DAY}(?: {YEAR})?", _day),
        (rf"\b{MONTH} (?:of )?{YEAR}", _month),
        (rf"\b{SEASON} (?:of )?{YEAR}", _season),
        (rf"\bq(?P<quarter>[1-4]) (?:of )?{YEAR}", _quarter),
        (rf"{WEAK}{LED}(?:the )?{SEASON}(?! of)", _season),
        (rf"{WEAK}{LED}{MONTH}", _month),
        (rf"(?<={MARK} )(?P<lead>(?:and|to) )(?:the )?{SEASON}(?! of)", _season),
        (rf"(?<={MARK} )(?P<lead>(?:and|to) ){MONTH}", _month),
        (rf"(?:{LED}(?:the year )?|\bthe year ){YEAR}", _year),
        (rf"\b{MONTH}(?= ?(?:{UNTIL}|and) ?{MARK})", _month),
    )
)
TOLD = tuple(
    (re.compile(pattern), tell)
    for pattern, tell in (
        (rf"\b(?:between|from|since|after) {DATE} (?:and|{UNTIL}|before) {TO_DATE}", _from_to),
        (rf"{DATE} ?{UNTIL} ?{TO_DATE}", _from_to),
        (
            rf"(?:{COUNT}|\b(?P<the>the|last|that|next) )(?:{UNIT}|{WEEKDAY}) (?P<side>before|after) {DATE}",
            _beside,
        ),
        (
            rf"\b(?P<place>{'|'.join(PARTS)})(?: (?P<part>week|half|part|third))? (?:of|in) {DATE}",
            _part,
        ),
        (rf"\b(?P<side>before|until|till|by|since|after) {DATE}", _open),
        (DATE, _itself),
        (rf"{COUNT}{UNIT} (?:ago|back)\b", _ago),
        (rf"\b(?:last|past|previous) {COUNT}{UNIT}", _lately),
        (rf"\b(?P<which>last|past|previous|this|current) (?:{UNIT}|{WEEKDAY}|{MONTH}|{SEASON})", _latest),
        (r"\bthe day before yesterday\b|\byesterday\b|\blast night\b|\btoday\b", _near_day),
    )
)
