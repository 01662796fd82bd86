"""Which stretches of time a query names, and how well a moment fits them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.periods import AFTERMATH_SHARE, READ_CHARACTERS, Period, closeness, periods

NOW = datetime(2024, 1, 10, 15, 30, tzinfo=UTC)
"""A Wednesday."""


def told(query: str, now: datetime = NOW) -> list[str]:
    return [
        f"{period.since.date()} {period.until.date()}{' yearly' if period.yearly else ''}"
        for period in periods(query, now)
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What broke on 5 May, 2023?", ["2023-05-05 2023-05-06"]),
        ("What broke on May 5th 2023?", ["2023-05-05 2023-05-06"]),
        ("the 5th of May 2023", ["2023-05-05 2023-05-06"]),
        ("the run of 2023-05-05T10:00:00Z", ["2023-05-05 2023-05-06"]),
        ("reports of 2023-05", ["2023-05-01 2023-06-01"]),
        ("What was decided in March 2023?", ["2023-03-01 2023-04-01"]),
        ("Q3 2024 revenue", ["2024-07-01 2024-10-01"]),
        ("in summer 2022", ["2022-06-01 2022-09-01"]),
        ("in the winter of 2022", ["2022-12-01 2023-03-01"]),
        ("failures in 2023", ["2023-01-01 2024-01-01"]),
        ("When did she camp in June?", ["2024-06-01 2024-07-01 yearly"]),
        ("who came on 29 February?", ["2024-02-29 2024-03-01 yearly"]),
        ("in the second week of November", ["2024-11-08 2024-11-15 yearly"]),
        ("the first half of September 2022", ["2022-09-01 2022-09-16"]),
        ("between August 11 and August 15 2023", ["2023-08-11 2023-08-16"]),
        ("from May to July 2023", ["2023-05-01 2023-08-01"]),
        ("two days after 5 May 2023", ["2023-05-07 2023-05-08"]),
        ("the week before August 3, 2023", ["2023-07-27 2023-08-03"]),
        ("2023-03 to 2023-05", ["2023-03-01 2023-06-01"]),
        ("March-May 2023", ["2023-03-01 2023-06-01"]),
        ("November to February 2023", ["2022-11-01 2023-03-01"]),
        ("incidents 2021-2023", ["2021-01-01 2024-01-01"]),
        ("since 2023-03-01 until 2023/04/01", ["2023-03-01 2023-04-02"]),
        ("the year 2023", ["2023-01-01 2024-01-01"]),
        ("what may fail in May 2023?", ["2023-05-01 2023-06-01"]),
        ("since March 2023", ["2023-03-01 2024-01-10"]),
        ("before March 2023", ["0002-01-01 2023-03-01"]),
        ("by March 2023", ["0002-01-01 2023-04-01"]),
        ("what failed today?", ["2024-01-10 2024-01-11"]),
        ("yesterday's failure", ["2024-01-09 2024-01-10"]),
        ("the day before yesterday", ["2024-01-08 2024-01-09"]),
        ("what did we decide last week?", ["2024-01-01 2024-01-08"]),
        ("this week", ["2024-01-08 2024-01-15"]),
        ("last weekend", ["2024-01-06 2024-01-08"]),
        ("last Friday", ["2024-01-05 2024-01-06"]),
        ("last Wednesday", ["2024-01-03 2024-01-04"]),
        ("last month", ["2023-12-01 2024-01-01"]),
        ("this quarter", ["2024-01-01 2024-04-01"]),
        ("last year", ["2023-01-01 2024-01-01"]),
        ("last summer", ["2023-06-01 2023-09-01"]),
        ("last May", ["2023-05-01 2023-06-01"]),
        ("in the last three days", ["2024-01-07 2024-01-10"]),
        ("three days ago", ["2024-01-07 2024-01-08"]),
        ("said on 6 November 2023 of last month", ["2023-11-06 2023-11-07", "2023-12-01 2024-01-01"]),
    ],
)
def test_a_time_in_words_is_a_stretch_of_time(query: str, expected: list[str]) -> None:
    assert told(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "They may march on, in the fall of the house",
        "model 2023 with 31 layers",
        "the second of three runs",
        "What did the judge say?",
        "31 June",
        "2023-02-31 or 2023-13",
        "model gpt-2023-03",
        "2023",
        "May I ask?",
        "at last the week was over",
        "",
    ],
)
def test_other_words_and_numbers_are_no_time(query: str) -> None:
    assert told(query) == []


def test_a_day_is_one_of_the_caller_s_zone() -> None:
    evening = datetime(2024, 1, 10, 23, tzinfo=UTC).astimezone(timezone(timedelta(hours=3)))
    (today,) = periods("what failed today?", evening)
    assert closeness(datetime(2024, 1, 10, 22, tzinfo=UTC), [today]) == 1.0
    assert closeness(datetime(2024, 1, 10, 20, tzinfo=UTC), [today]) == 0.0


def test_within_fits_best_and_the_aftermath_less() -> None:
    march = periods("in March 2023", NOW)
    fits = [closeness(datetime(2023, month, 15, tzinfo=UTC), march) for month in (2, 3, 4, 6)]
    assert fits == [0.0, 1.0, AFTERMATH_SHARE, 0.0]


def test_a_period_of_no_year_comes_every_year() -> None:
    winter = periods("during the winter", NOW)
    fits = [closeness(datetime(year, month, 20, tzinfo=UTC), winter) for year in (1999, 2031) for month in (1, 8, 12)]
    assert fits == [1.0, 0.0, 1.0] * 2


def test_a_pasted_text_is_read_at_its_beginning_alone() -> None:
    assert told("x " * READ_CHARACTERS + "in March 2023") == []


WORDS = st.sampled_from(
    ["in", "on", "the", "last", "first", "week", "of", "year", "two", "days", "31", "12", "june", "may", "feb", "2023",
     "1999", "2024-02-30", "before", "after", "since", "between", "and", "ago", "yesterday", "summer", "q3", "friday",
     "\x00", "\x000\x00", "99"]
)  # fmt: skip
MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(st.lists(WORDS, max_size=12).map(" ".join), MOMENTS, MOMENTS)
def test_no_words_and_no_moment_break_it(query: str, now: datetime, moment: datetime) -> None:
    for period in periods(query, now):
        assert isinstance(period, Period)
        assert period.since <= period.until
        assert 0.0 <= closeness(moment, [period]) <= 1.0


@given(st.text(max_size=200))
def test_any_text_is_taken(query: str) -> None:
    assert all(period.since <= period.until for period in periods(query, NOW))
