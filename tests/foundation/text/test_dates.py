"""Tests of the periods that a query names, and of how well a moment fits them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.text.dates import (
    AFTERMATH_SHARE,
    READ_CHARACTERS,
    Period,
    closeness,
    in_words,
    period_asked,
    periods,
)

NOW = datetime(2024, 1, 10, 15, 30, tzinfo=UTC)
"""A Wednesday."""


def read(query: str, now: datetime = NOW) -> list[str]:
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
        ("error count from 2023-03-05", ["2023-03-05 2023-03-06"]),
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
    assert read(query) == expected


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
    assert read(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "The nightly export job is slow and may fail on retry",
        "this may be a bug",
        "This may be a race in the queue",
        "step 3 may fail",
        "Phase 2 may need a second look",
        "The 1 may fail",
        "Error on 12 may have been logged twice",
        "The job started on Monday and may fail again",
        "how do I set retries in Spring Boot?",
        "the default timeout of Spring Data repositories",
        "upgrade from Spring Security 5",
        "configure beans in spring boot",
        "what happens in fall back mode",
        "the switch on fall-back servers",
        "a case of fall through in the parser",
        "how to avoid that requests in fall through rules match",
        "the accuracy of fall detection",
        "workers that wait until fall off of the load",
        "cut it to 2024 tokens",
        "raise the batch to 2000 rows",
        "the file grew by 2048 MB",
        "shrink the context by 1024 tokens or to 2000 characters",
        "a sample of 2000 users",
        "a set of 1999 documents",
        "retry in 2000 ms",
        "increase the limit from 2000 to 2024",
        "set the timeout to 2000",
        "a total of 2024 was reached",
        "from 2000 to 2024 tokens",
        "on 29 February 2023",
        "on 31 June 2022",
        "2023-02-30 or 2023-13-01",
        "in February 30 2024",
        "clients MAY retry, servers MAY NOT",
        "a service we depend on may change its answer",
        "the log in may be broken",
        "the queue that jobs go through may drop them",
        "what comes after may surprise you",
        "the first of them may win",
        "to march the army over the hill",
        "the tests march to the end and march on",
        "the cache may 2 workers share",
        "by may it is clear",
        "add memory and spring into action",
        "the build fails to spring up again",
        "version 3 may break the API",
        "who may read this?",
        "the last may fail too",
        "May I delete the index?",
        "model 2023 with 31 layers",
        "a spread from 2000 to 1999",
        "node 7 may march out of step",
        "the price will fall by 5 percent",
        "explain how leaves fall to the ground",
        "does the server fall over under load",
        "it may also be the cache",
    ],
)
def test_a_task_in_everyday_words_names_no_time(query: str) -> None:
    assert read(query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What failed in May?", ["2024-05-01 2024-06-01 yearly"]),
        ("what failed in may?", ["2024-05-01 2024-06-01 yearly"]),
        ("what did we ship in may and june", ["2024-05-01 2024-06-01 yearly", "2024-06-01 2024-07-01 yearly"]),
        ("the outage of 3 May", ["2024-05-03 2024-05-04 yearly"]),
        ("the outage of 3 may", ["2024-05-03 2024-05-04 yearly"]),
        ("on may 5th we lost the index", ["2024-05-05 2024-05-06 yearly"]),
        ("on May 5, 2023 it broke", ["2023-05-05 2023-05-06"]),
        ("may 2023 incidents", ["2023-05-01 2023-06-01"]),
        ("what did the judge say last may", ["2023-05-01 2023-06-01"]),
        ("This May we moved", ["2023-05-01 2023-06-01"]),
        ("in March 2023", ["2023-03-01 2023-04-01"]),
        ("between March and May", ["2024-03-01 2024-06-01 yearly"]),
        ("from March to May 2023", ["2023-03-01 2023-06-01"]),
        ("in spring and fall", ["2024-03-01 2024-06-01 yearly", "2024-09-01 2024-12-01 yearly"]),
        ("in the fall of 2022", ["2022-09-01 2022-12-01"]),
        ("in the fall", ["2024-09-01 2024-12-01 yearly"]),
        ("during spring", ["2024-03-01 2024-06-01 yearly"]),
        ("in Spring 2023", ["2023-03-01 2023-06-01"]),
        ("last spring", ["2023-03-01 2023-06-01"]),
        ("this fall", ["2023-09-01 2023-12-01"]),
        ("incidents from 2020 to 2022", ["2020-01-01 2023-01-01"]),
        ("failures in 2023", ["2023-01-01 2024-01-01"]),
        ("by 2023 we had ten customers", ["0002-01-01 2024-01-01"]),
        ("the reports of 2022", ["2022-01-01 2023-01-01"]),
        ("since 2022", ["2022-01-01 2024-01-10"]),
        ("before 2023", ["0002-01-01 2023-01-01"]),
        ("until March 2022", ["0002-01-01 2022-04-01"]),
        ("on 29 February 2024", ["2024-02-29 2024-03-01"]),
        ("on 29 February", ["2024-02-29 2024-03-01 yearly"]),
        ("31 January 2023", ["2023-01-31 2023-02-01"]),
        ("In May the judge was harsh", ["2024-05-01 2024-06-01 yearly"]),
        ("early May", ["2024-05-01 2024-06-01 yearly"]),
        ("in march the index broke", ["2024-03-01 2024-04-01 yearly"]),
        ("what broke in May 2022 and may fail again?", ["2022-05-01 2022-06-01"]),
        ("two weeks after 3 May 2023", ["2023-05-16 2023-05-19"]),
        ("to June 2023", ["2023-06-01 2023-07-01"]),
        ("Did it fall in April?", ["2024-04-01 2024-05-01 yearly"]),
    ],
)
def test_words_with_two_meanings_name_a_time_where_they_stand_for_one(query: str, expected: list[str]) -> None:
    assert read(query) == expected


def test_what_came_after_an_open_period_is_no_aftermath() -> None:
    for query in ("the nightly job before 2023", "by 2022", "until December 2022"):
        fits = [closeness(datetime(year, 1, 3, tzinfo=UTC), periods(query, NOW)) for year in (2021, 2023, 2024)]
        assert fits == [1.0, 0.0, 0.0]


def test_years_told_backwards_are_none() -> None:
    assert read("the range 2023-2019") == []


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
    assert read("x " * READ_CHARACTERS + "in March 2023") == []


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


JUNE = datetime(2026, 6, 18, 10, tzinfo=UTC)
"""A Thursday."""


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What did we work on yesterday?", "17 June 2026"),
        ("what did we do last week", "8 to 14 June 2026"),
        ("work of the past 3 days", "15 to 18 June 2026"),
        ("what happened on Monday", "15 June 2026"),
        ("what's new since Monday?", "since 15 June 2026"),
        ("What was decided in Q2?", "1 April to 30 June 2026"),
        ("what happened before 5 June?", "before 5 June 2026"),
        ("What happened in July?", "1 to 31 July 2025"),
        ("what was done on the 12th?", "12 June 2026"),
        ("what was done on the 20th?", "20 May 2026"),
        ("what happened on 12/06/2026?", "12 June 2026"),
        ("what happened on 06/13/2026?", "13 June 2026"),
        ("日期：2026-09-20", "20 September 2026"),
        ("Was haben wir gestern gemacht?", "17 June 2026"),
        ("Что мы делали вчера?", "17 June 2026"),
        ("昨天做了什么", "17 June 2026"),
        ("¿Qué hicimos ayer?", "17 June 2026"),
        ("what did we do between 30 December 2025 and 3 January 2026?", "30 December 2025 to 3 January 2026"),
    ],
)
def test_a_question_without_a_subject_asks_for_all_of_a_period(query: str, words: str) -> None:
    asked = period_asked(query, JUNE)
    assert asked is not None
    assert (in_words(asked[0], JUNE), asked[1]) == (words, True)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What did we decide about the crane last week?", "8 to 14 June 2026"),
        ("What happened to the importer yesterday?", "17 June 2026"),
        ("which of our services failed last night", "17 June 2026"),
    ],
)
def test_a_question_for_what_a_team_did_asks_for_a_part_of_a_relative_period(query: str, words: str) -> None:
    asked = period_asked(query, JUNE)
    assert asked is not None
    assert (in_words(asked[0], JUNE), asked[1]) == (words, False)


@pytest.mark.parametrize(
    "query",
    [
        "Why does the importer fail since yesterday?",
        "The job started on Monday and may fail again",
        "What should we do this week?",
        "What did Joanna write yesterday that appeared on the big screen?",
        "What was the pressure of pump 3 in May 2023?",
        "stand-up on 2 June",
        "What did we do yesterday and last week?",
        "What did the judge say?",
        "",
    ],
)
def test_other_questions_may_be_answered_by_records_of_any_time(query: str) -> None:
    assert period_asked(query, JUNE) is None


def test_before_a_day_of_no_year_is_before_the_latest() -> None:
    assert read("before 1 June", JUNE) == ["0002-01-01 2026-06-01"]
    assert read("since 1 July", JUNE) == ["2025-07-01 2026-06-18"]
    assert read("by 1 October", JUNE) == ["2024-10-01 2024-10-02 yearly"]
