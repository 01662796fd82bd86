"""Tests of queries that name a memory's title, and of their script."""

import pytest

from app.foundation.text.words import READ, is_latin, titles_in_query


@pytest.mark.parametrize(
    ("query", "title", "names_it"),
    [
        ("What did Caroline research?", "Caroline", True),
        ("What is Caroline's hobby?", "Caroline", True),
        ("What did Caroline research?", "Melanie", False),
        ("Who wrote The Old Man and the Sea?", "The Old Man and the Sea", True),
        ("Who wrote The Old Man?", "The Old Man and the Sea", False),
        ("What is the first of them?", "the of", False),
        ("anything", "", False),
        ("Что сказала Марина о рынке?", "Марина", True),
    ],
)
def test_every_content_word_of_the_title_is_asked_for(query: str, title: str, *, names_it: bool) -> None:
    assert titles_in_query(query, [title]) == [names_it]


def test_each_title_is_told_by_itself() -> None:
    assert titles_in_query("Ann met Bob", ["Ann", "Eve", "Ann", ""]) == [True, False, True, False]


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("2024 — 5 %", True),
        ("naïve cafés", True),
        ("отчёт TAM", False),
        ("内存 RAM", True),
        ("внимание " + "x" * READ, True),
        ("x" * READ + "ж" * READ * 2, True),
    ],
)
def test_the_script_is_that_of_most_letters_at_the_beginning(text: str, *, latin: bool) -> None:
    assert is_latin(text) is latin
