"""What is worth keeping, and what is said again."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memories.gate import Given, echo_of, near_duplicates, shingles, without_echoes, worthless
from app.memories.memory import NewMemory
from app.memories.screening import screened

LESSON = "The scout must verify every producer in the state register before the director accepts the list of actors."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n", "empty"),
        ("*** --- ***", "punctuation"),
        ("I could not find any information.", "boilerplate"),
        ("Sorry, I was unable to access the page.", "boilerplate"),
        ("N/A", "boilerplate"),
        ("Не удалось найти информацию.", "boilerplate"),
        ("Task completed successfully.", "boilerplate"),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    run()\n', "stack_trace"),
        ("None of the actors was verified by the register.", None),
        ("I could not find any producers because the register was filtered by a category that is gone.", None),
        ("No results were found for 12 of the 40 producers.", None),
        ("Traceback (most recent call last):\n  File \"a.py\", line 3, in run\nKeyError: 'category'\n", None),
        (LESSON, None),
    ],
)
def test_the_worthless_is_told_from_the_worthwhile(text: str, reason: str | None) -> None:
    assert worthless(text) == reason


@given(st.text())
def test_any_text_can_be_judged(text: str) -> None:
    worthless(text)
    assert near_duplicates(text, text) or not shingles(text)


def test_an_echo_is_recognised_and_news_is_not() -> None:
    known = Given.of(uuid4(), LESSON)
    assert echo_of(LESSON, [known]) == known.memory_id
    assert echo_of(LESSON.replace("must verify", "should verify"), [known]) == known.memory_id
    assert echo_of("The scout verified twelve producers and the director accepted ten of them.", [known]) is None
    assert echo_of(LESSON.replace("every producer", "12 producers"), [known]) is None
    assert echo_of("", [known]) is None


def test_echoes_are_cut_out_of_an_output() -> None:
    known = Given.of(uuid4(), LESSON)
    rest, used = without_echoes(f"# Report\n\n{LESSON}\n\nTwelve producers were verified.", [known])
    assert (rest, used) == ("# Report\n\nTwelve producers were verified.", frozenset({known.memory_id}))


def test_a_changed_figure_is_news() -> None:
    text = (
        f"{LESSON} Twelve were verified, 3 of them lost their licence in 2025, and the market grew by 7 % after that."
    )
    assert near_duplicates(text, text.replace("Twelve were verified", "Twelve were accepted"))
    assert not near_duplicates(text, text.replace("7 %", "9 %"))


def test_a_turn_of_a_conversation_is_kept_as_it_was_said() -> None:
    assert screened(NewMemory(kind="message", body="😂😂"), mask=True).objection is None
    refused = screened(NewMemory(kind="note", body="😂😂"), mask=True).objection
    assert refused is not None
    assert refused.code == "punctuation"
