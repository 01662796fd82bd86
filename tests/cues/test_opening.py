"""Openings of imperatives are sentences, however a person wrote the trigger."""

import pytest

from app.cues.opening import continued, opening


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        ("dropping a column", "BEFORE dropping a column"),
        ("Drop columns in production.", "BEFORE you drop columns in production"),
        ("can you remove the deprecated column?", "BEFORE you remove the deprecated column"),
        ("I'll deploy on Friday", "BEFORE you deploy on Friday"),
        ("We need to estimate the market", "BEFORE you estimate the market"),
        ("about to answer with advice", "BEFORE you answer with advice"),
        ("setting up a database", "BEFORE setting up a database"),
        ("building screens for daily staff", "BEFORE building screens for daily staff"),
        ("test the parser", "BEFORE you test the parser"),
        ("once it is gone", "ONCE it is gone"),
        ("when the tests fail", "WHEN the tests fail"),
        ("after a merge", "AFTER a merge"),
        ("two sources contradict each other", "WHEN two sources contradict each other"),
        ("a command rejects a bad argument", "WHEN a command rejects a bad argument"),
        ("a new regression test passes after the fix", "WHEN a new regression test passes after the fix"),
        ("warning appears in the log", "WHEN warning appears in the log"),
        ("asked to create a task", "WHEN asked to create a task"),
        ("what is the status?", "WHEN asked “what is the status?”"),
        ("it takes milliseconds to load", "WHEN “it takes milliseconds to load” is the situation"),
        ("database migration that removes a column", "FOR any database migration that removes a column"),
        ("commit messages", "FOR any commit messages"),
        ("the hover state of a card", "FOR the hover state of a card"),
        ("HTTP client without time-out", "FOR any HTTP client without time-out"),
        ("why didnt you run the tests", "WHEN asked “why didnt you run the tests”"),
        ("continue working on the parser", "BEFORE you continue working on the parser"),
        ("@no-errors.mdc", "FOR @no-errors.mdc"),
        ("писать отчёт", "WHEN писать отчёт"),
    ],
)
def test_an_opening_is_grammatical(trigger: str, told: str) -> None:
    assert opening(trigger) == told


@pytest.mark.parametrize(
    ("lesson", "told"),
    [
        ("Never drop columns directly.", "never drop columns directly."),
        ("Alembic writes the migration.", "Alembic writes the migration."),
        ("ORM models come first.", "ORM models come first."),
    ],
)
def test_a_lesson_goes_on_after_a_colon(lesson: str, told: str) -> None:
    assert continued(lesson) == told
