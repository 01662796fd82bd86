"""Tests of the sentences of Markdown and JSON outputs, in fences and without."""

import json

import pytest

from app.foundation.text.passages import sentence_pieces, sentences_left
from app.foundation.text.prose import heading_of, sentences, sentences_of
from app.intake.runs.observations.compress import extract_outcome
from app.intake.runs.observations.observation import Compressed, Outcome
from tests.growth import assert_linear

REPORT = "# Market\n\nThe market grew to 221 billion rubles. Pharmacies sell 58 % of it.\n\n- Evalar leads with 17 %.\n"
TOLD = ["The market grew to 221 billion rubles.", "Pharmacies sell 58 % of it.", "Evalar leads with 17 %."]
CODE = "```python\nsecret = 5\n```\n"


def texts(output: str) -> list[str]:
    return [sentence.text for sentence in sentences(output)]


def compressed(output: str, task: str = "Market") -> Compressed:
    return extract_outcome(Outcome(task=task, output=output), sentences(output), None, None)


@pytest.mark.parametrize("tag", ["", "markdown", "md", "text", "Markdown title=x"])
def test_a_fence_around_the_output_is_taken_away(tag: str) -> None:
    output = f"\n```{tag}\n{REPORT}```\n"
    assert texts(output) == TOLD
    assert heading_of(output) == "Market"
    assert compressed(output) == compressed(REPORT)
    assert compressed(output).narrative == " ".join(TOLD)


def test_a_fence_around_the_output_may_hold_code() -> None:
    for mark in ("```", "````", "~~~"):
        assert texts(f"{mark}markdown\n{REPORT}\n{CODE}\nIt ends here.\n{mark}") == [*TOLD, "It ends here."]
    assert texts(f"````\n{REPORT}\n```\nsecret = 5\n```\nIt ends here.\n````") == [*TOLD, "It ends here."]


def test_a_report_in_a_fence_below_an_introduction_is_read() -> None:
    assert texts(f"Here it is:\n\n```markdown\n{REPORT}```\n{CODE}Done.") == ["Here it is:", *TOLD, "Done."]


def test_a_fence_without_an_end_is_text() -> None:
    assert texts(f"Intro line here.\n```python\n{REPORT}")[-3:] == TOLD
    assert texts(f"{REPORT}```") == TOLD
    assert texts(f"~~~\n{REPORT}{CODE}")[-3:] == TOLD


def test_a_fence_ends_with_its_own_mark() -> None:
    assert texts(f"```\na\n~~~\nb\n```\n{REPORT}") == TOLD
    assert texts(f"````\na\n```\nb\n````\n{REPORT}") == TOLD
    assert texts(f"```\na\n```py\nb\n```\n{REPORT}")[-3:] == TOLD
    assert texts(f"```inline``` code is prose.\n\n{REPORT}")[-3:] == TOLD


def test_where_only_code_is_left_it_is_used() -> None:
    assert texts(f"# Script\n\n{CODE}") == ["secret = 5"]
    assert compressed("```\nrows: 17\n```\n\n```\nrows: 18\n```", task="").narrative


def test_json_becomes_its_leaves() -> None:
    given = {
        "market": "221 billion rubles",
        "share": 17.5,
        "checked": True,
        "none": None,
        "leaders": ["Evalar", "Solgar"],
        "rows": [{"name": "Evalar", "share": 17}, {"name": "Solgar", "share": 9}],
        "nested": {"deep": {"year": 2025}},
        "summary": "The market grew to 221 billion in 2025. Pharmacies lead.",
        "report": REPORT,
    }
    expected = [
        "market: 221 billion rubles", "share: 17.5", "checked: true", "leaders: Evalar", "leaders: Solgar",
        "name: Evalar; share: 17", "name: Solgar; share: 9", "year: 2025",
        "summary: The market grew to 221 billion in 2025.", "Pharmacies lead.", *TOLD,
    ]  # fmt: skip
    assert texts(json.dumps(given, indent=2)) == expected
    assert texts(json.dumps(given)) == expected
    assert texts(f"```json\n{json.dumps(given)}\n```") == expected
    assert compressed(json.dumps(given), task="").title == "market: 221 billion rubles"


@pytest.mark.parametrize(
    "output", ["[1] It grew 3 %.", "{not json} It grew.", "[" * 3000 + "]" * 3000, "{}", "[]", '"x"']
)
def test_what_only_looks_like_json_is_text(output: str) -> None:
    assert len(texts(output)) <= 2
    assert any("grew" in text for text in texts(output)) == ("grew" in output)


def test_deep_json_is_read_as_far_as_it_can_be() -> None:
    assert texts('{"a":' * 500 + "1" + "}" * 500) == ["a: 1"]
    assert texts('{"a": 1, "b": ' + "[" * 500 + "]" * 500 + "}") == ["a: 1"]


@pytest.mark.parametrize("line", ["```p\n", "```\n", "```md\n", "~~~ x\n```\n", "{\n", "````md\n```py\n"])
def test_fences_cost_what_their_lines_cost(line: str) -> None:
    assert_linear(sentences, line)


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u2028", "\u3000"])
def test_wide_white_space_after_an_initial_is_read(blank: str) -> None:
    assert sentences_of(f"It was plan B{blank}. It held.") == ["It was plan B .", "It held."]


def test_chinese_sentences_end_without_a_blank() -> None:
    text = "内存每小时增长三十兆，因为缓存没有清空。他说：“跳过第二行后问题解决，导入恢复！”真的吗？是的。"
    parts = [piece.said for piece in sentence_pieces(text)]
    assert parts == [text[: text.index("他")], text[text.index("他") :]]
    assert sentences_left(sentence_pieces(text), parts) == text
