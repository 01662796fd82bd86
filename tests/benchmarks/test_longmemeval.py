"""The benchmark of LongMemEval, on a small file of the same shape."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import longmemeval
from benchmarks.longmemeval import Asked, figures_of, read, turns_of

CHATTER = [
    ("Can you suggest a name for a cat?", "How about Miso?"),
    ("Translate good morning into French.", "Bonjour."),
    ("What is the boiling point of water?", "A hundred degrees Celsius at sea level."),
]


def turn(role: str, content: str, *, has_answer: bool | None = None) -> dict[str, Any]:
    return {"role": role, "content": content, **({} if has_answer is None else {"has_answer": has_answer})}


def instance(name: str = "q1", kind: str = "single-session-user") -> dict[str, Any]:
    """Returns a question whose answer is in the second of four sessions."""
    evidence = [
        turn("user", "I adopted a greyhound called Pixel in March.", has_answer=True),
        turn("assistant", "Congratulations on your greyhound!", has_answer=False),
    ]
    others = [[turn("user", asked), turn("assistant", told)] for asked, told in CHATTER]
    return {
        "question_id": name,
        "question_type": kind,
        "question": "What is my greyhound called?",
        "answer": "Pixel",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["chat_1", "answer_1", "chat_2", "chat_3"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21"] * 4,
        "haystack_sessions": [others[0], evidence, *others[1:]],
        "answer_session_ids": ["answer_1"],
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with two questions that have evidence, and one of abstention."""
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps([instance(), instance("q2", "multi-session"), instance("q3_abs")]))
    return path


@pytest.mark.test_all("benchmarks")
def test_a_file_of_that_shape_is_measured_by_session_and_by_turn(file: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("benchmarks.figures.RESULTS", tmp_path)
        figures = {figure.name: figure.value for figure in longmemeval.main([str(file)])}
    assert figures["all: session recall_any@5 of 2"] == 1
    assert figures["all: turn recall_all@5 of 2"] == 1
    assert figures["multi-session: session recall_any@10 of 1"] == 1
    assert (tmp_path / "longmemeval.json").exists()


def test_questions_of_abstention_are_left_out_and_others_taken_evenly(file: Path) -> None:
    assert [item["question_id"] for item in read(file)] == ["q1", "q2"]
    assert [item["question_id"] for item in read(file, 1)] == ["q1"]


def test_a_turn_without_words_is_no_memory() -> None:
    given = instance()
    given["haystack_sessions"][0].append(turn("assistant", "  "))
    assert len(list(turns_of(given))) == 8
    assert dict(turns_of(given))["answer_1", 0]["occurred_at"] == "2023-05-20T02:21:00"


@pytest.mark.parametrize(
    ("content", "said"), [("{}", "no list of questions"), ("[{}]", "lacks question_id"), ("oops", "cannot be read")]
)
def test_another_file_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(SystemExit):
        longmemeval.main([str(path)])
    assert said in capsys.readouterr().err


def test_any_and_all_of_the_evidence_differ() -> None:
    hits = tuple((f"s{number}", 0) for number in range(8))
    asked = Asked("temporal", frozenset({"s0", "s6"}), frozenset({("s0", 0), ("s6", 0)}), hits)
    figures = {figure.name: figure.value for figure in figures_of([asked])}
    assert figures["all: session recall_any@5 of 1"] == 1
    assert figures["all: session recall_all@5 of 1"] == 0
    assert figures["all: session recall_all@10 of 1"] == 1


def test_a_session_stands_at_its_best_turn() -> None:
    asked = Asked("x", frozenset({"b"}), frozenset(), (("a", 1), ("a", 2), ("b", 0), ("a", 0)))
    assert asked.found_sessions == ("a", "b")
    assert all(": turn" not in figure.name for figure in figures_of([asked])), "no turn is marked as evidence"
