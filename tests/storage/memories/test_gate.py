"""What is worth keeping, and what is said again."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.db.database import Database
from app.foundation.text.passages import FRAME, HEADING, lines, paragraphs
from app.foundation.text.passages import sentences as said_in
from app.foundation.text.prose import heading_of, sentences
from app.foundation.text.words import shingles
from app.storage.memories.echoes import Echoes, Residual, echo_by_meaning, echo_of, says_no_more, without
from app.storage.memories.gate import screen_memory, worthless
from app.storage.memories.memory import Given, NewMemory
from app.storage.tenants.workspace import Workspace

LESSON = "The scout must verify every producer in the state register before the director accepts the list of actors."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n", "empty"),
        ("*** --- ***", "punctuation"),
        ("0", "number"),
        (" -12,5 %\n", "number"),
        ("2026-03-01", None),
        ("I could not find any information.", "boilerplate"),
        ("Sorry, I was unable to access the page.", "boilerplate"),
        ("N/A", "boilerplate"),
        ("Не удалось найти информацию.", "boilerplate"),
        ("Task completed successfully.", "boilerplate"),
        ("No relevant information was found.", "boilerplate"),
        ("I’m sorry, but I can’t help with that.", "boilerplate"),
        ("I couldn’t find any relevant information.", "boilerplate"),
        ("As an AI language model, I cannot browse the web.", "boilerplate"),
        ("There were no results.", "boilerplate"),
        ("未找到相关信息。", "boilerplate"),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    run()\n', "stack_trace"),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    run()\nKeyError\n',
            "stack_trace",
        ),
        ("I could not find any public API for Scylla Cloud billing.", None),
        ("I cannot access the Jira API with the service token; use the personal one.", None),
        ("I did not complete the migration of the orders table; finish it first.", None),
        ("Sorry, the deploy key belongs to Anna, ask her for access.", None),
        ("未找到主键索引会导致全表扫描，应当先建索引再导入数据", None),
        ("Caused by: missing index on orders.user_id", None),
        (
            "The nightly import dies on an empty header row, see below.\nTraceback (most recent call last):\n"  # noqa: ISC004 - one text
            '  File "a.py", line 3, in run\n    next(rows)\n  File "b.py", line 9, in rows\nStopIteration',
            None,
        ),
        ("Caused by: clock skew between nodes.\nFix: enable NTP on every host.", None),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in run\n'  # noqa: ISC004 - one text
            "requests.exceptions.ConnectTimeout: no answer in 30 s",
            None,
        ),
        (
            'Exception in thread "main" java.lang.IllegalStateException\n\tat a.B.c(B.java:3)\n'  # noqa: ISC004 - one text
            "Caused by: java.net.SocketTimeoutException: connect timed out",
            None,
        ),
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
    assert says_no_more(text, text) or not shingles(text)


def test_an_echo_is_recognised_and_news_is_not() -> None:
    known = Given(memory_id=uuid4(), text=LESSON)
    assert echo_of(LESSON, [known]) == known.memory_id
    assert echo_of(LESSON.replace("must verify", "should verify"), [known]) == known.memory_id
    assert echo_of("The scout verified twelve producers and the director accepted ten of them.", [known]) is None
    assert echo_of(LESSON.replace("every producer", "12 producers"), [known]) is None
    assert echo_of("", [known]) is None


def test_echoes_are_cut_out_of_an_output() -> None:
    known = Given(memory_id=uuid4(), text=LESSON)
    parts = paragraphs(f"# Report\n\n{LESSON}\n\nTwelve producers were verified.")
    echoes = [echo_of(part, [known]) for part in parts]
    assert echoes == [None, known.memory_id, None]
    left = [
        Residual("" if echo else part, frozenset({echo} if echo else ()))
        for part, echo in zip(parts, echoes, strict=True)
    ]
    assert without(parts, left) == "# Report\n\nTwelve producers were verified."


def test_what_only_leads_in_goes_with_the_echoes() -> None:
    parts = [HEADING, FRAME, "```\n# A title (v6.md)", f"{LESSON}\n```", "From memory I know:", "# Findings"]
    left = [Residual(part, frozenset()) for part in parts]
    left[3] = Residual("", frozenset({uuid4()}))
    assert without(parts, left) == ""
    news = "Twelve producers were verified."
    new = Residual(news, frozenset())
    assert without([*parts, news], [*left, new]) == f"From memory I know:\n\n# Findings\n\n{news}"
    assert without([HEADING, news], [left[0], new]) == news
    assert without(["# Report"], [Residual("# Report", frozenset())]) == "# Report", "nothing was repeated"


NEWS = "Omsk has 214 licensed pharmacies, of which 31 sell supplements by post."


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"{LESSON} {NEWS}", NEWS),
        (f"{NEWS} {LESSON}", NEWS),
        (f"Known:\n- {LESSON}\n- {NEWS}", f"Known:\n- {NEWS}"),
        (f"Known:\n- {LESSON} {NEWS}", f"Known:\n- {NEWS}"),
        (f"# Known\n{LESSON}\n# New\n{NEWS}", f"# New\n{NEWS}"),
        (f"{LESSON} It cost them a day and a half of work in the end.",) * 2,
        (f"{LESSON} It cost a day.",) * 2,
        (f"{LESSON}\n{LESSON}", ""),
        (NEWS, NEWS),
    ],
)
async def test_what_is_new_stands_without_what_it_was_told_with(
    database: Database, workspace: Workspace, text: str, rest: str
) -> None:
    known = Given(memory_id=uuid4(), text=LESSON)
    (found,) = await Echoes(database=database).residuals(workspace, [known], [text])
    assert (found.text, bool(found.repeats)) == (rest, text not in (NEWS, f"{LESSON} It cost a day."))


def test_a_text_is_compared_by_its_sentences_and_items() -> None:
    text = f"# Title\nFrom memory:\n- {LESSON}\n2. It was accepted after all. Twice.\n```\ncode line\n```"
    assert lines(text) == [LESSON, "It was accepted after all. Twice.", "code line"]
    assert lines("# Title\n\nFrom memory:") == []
    assert said_in(f"{LESSON} {LESSON} Twice.") == [LESSON, f"{LESSON} Twice."]


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
    known = Given(memory_id=uuid4(), text=LESSON)
    assert (echo_of(text, [known]) is not None) == is_echo


STATED = (
    "Once the second retry is done the scout needs more memory than 500 MB, so the director gave it vitamin D studies "
    "over 5 ms and the score rose by +3.2 points where x > 10 before the judge came."
)


@pytest.mark.parametrize(
    ("said", "corrected"),
    [
        ("more memory", "less memory"), ("over 5", "under 5"), ("before the judge", "after the judge"),
        ("+3.2", "-3.2"), ("x > 10", "x < 10"), ("vitamin D", "vitamin K"), ("5 ms", "5 s"),
        ("500 MB", "500 GB"), ("second", "first"),
    ],
)  # fmt: skip
def test_one_word_that_turns_a_statement_makes_it_news(said: str, corrected: str) -> None:
    known = Given(memory_id=uuid4(), text=STATED)
    assert echo_of(STATED.replace(said, corrected), [known]) is None
    assert not says_no_more(STATED.replace(said, corrected), STATED)


def test_white_space_costs_no_more_than_other_text() -> None:
    """These took minutes where a pattern tried each blank line from each other one; the suite would not end."""
    assert worthless("x" + "\n" * 150_000 + "x") is None
    assert heading_of("# a" + " " * 15_000 + "b") == "a b"
    assert sentences("---" + "\n" * 100_000 + "The end is told.")


def test_another_order_is_an_echo_where_meaning_says_so() -> None:
    known = Given(memory_id=uuid4(), text=LESSON)
    text = "Before the director accepts the list of actors, the scout must verify every producer in the state register."
    assert echo_by_meaning(text, known, 0.95)
    assert not echo_by_meaning(text, known, 0.9)
    assert not echo_by_meaning(text.replace("verify", "ignore"), known, 0.95)


def test_a_changed_figure_is_news() -> None:
    text = (
        f"{LESSON} Twelve were verified, 3 of them lost their licence in 2025, and the market grew by 7 % after that."
    )
    assert says_no_more(text.replace("Twelve were verified", "Twelve verified"), text)
    assert not says_no_more(text.replace("7 %", "9 %"), text)
    assert not says_no_more(text.replace("Twelve were verified", "Twelve were rejected"), text)
    assert not says_no_more(text.replace("were verified", "were not verified"), text)


def test_texts_without_blanks_are_compared_sign_by_sign() -> None:
    lesson = "侦察员必须在登记册中核实每一个生产商，然后主管才能接受名单，评审员随后检查来源和日期。"
    known = Given(memory_id=uuid4(), text=lesson)
    assert echo_of(lesson, [known])
    assert echo_of(lesson.replace("接受", "拒绝"), [known]) is None
    assert echo_of("市场规模在去年增长了百分之七。", [known]) is None


def test_a_turn_of_a_conversation_is_kept_as_it_was_said() -> None:
    assert screen_memory(NewMemory(kind="message", body="😂😂"), mask=True).objection is None
    refused = screen_memory(NewMemory(kind="note", body="😂😂"), mask=True).objection
    assert refused is not None
    assert refused.code == "punctuation"
