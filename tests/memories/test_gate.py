"""What is worth keeping, and what is said again."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memories.echoes import paragraphs, without
from app.memories.gate import Given, echo_by_meaning, echo_of, near_duplicates, worthless
from app.memories.memory import NewMemory
from app.memories.screening import screened
from app.memories.wording import shingles

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
    parts = paragraphs(f"# Report\n\n{LESSON}\n\nTwelve producers were verified.")
    echoes = [echo_of(part, [known]) for part in parts]
    assert echoes == [None, known.memory_id, None]
    assert without(parts, echoes) == "# Report\n\nTwelve producers were verified."


@pytest.mark.parametrize(
    ("text", "is_echo"),
    [
        (LESSON, True),
        ("As noted earlier: " + LESSON, True),
        (LESSON.removesuffix(" of actors.") + ".", True),
        (LESSON.replace("accepts", "rejects"), False),
        (LESSON.replace("must verify", "must never verify"), False),
        (LESSON.replace("accepts the list", "accepts the Evalar list"), False),
    ],
)
def test_a_correction_of_what_was_given_is_no_echo(text: str, is_echo: bool) -> None:  # noqa: FBT001 - a parameter
    known = Given.of(uuid4(), LESSON)
    assert (echo_of(text, [known]) is not None) == is_echo


def test_another_order_is_an_echo_where_meaning_says_so() -> None:
    known = Given.of(uuid4(), LESSON)
    text = "Before the director accepts the list of actors, the scout must verify every producer in the state register."
    assert echo_by_meaning(text, known, 0.95)
    assert not echo_by_meaning(text, known, 0.9)
    assert not echo_by_meaning(text.replace("verify", "ignore"), known, 0.95)


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
