"""Tests of the blocks of Markdown where its writers meant them to end."""

import pytest

from app.foundation.text.prose import blocks, without_code
from tests.growth import assert_linear


def kinds(text: str) -> list[tuple[str, int, int]]:
    return [(block.kind, block.first, block.last) for block in blocks(text)]


def test_a_fence_ends_at_a_tagged_mark_before_a_blank_line() -> None:
    text = "```python\nx = 1\n```text\n\n## Decision\n\nKeep Python.\n\n```python\ny = 2\n```text\n\n- next\n"

    assert kinds(text) == [
        ("fence", 0, 3),
        ("heading", 4, 5),
        ("paragraph", 6, 7),
        ("fence", 8, 11),
        ("list", 12, 13),
    ]


def test_code_is_left_out_up_to_the_mark_where_it_was_meant_to_end() -> None:
    text = "```python\nx = 1\n```text\n\nThe importer lost 40 rows.\n\n```\ny = 2\n```"

    assert [line for line in without_code(text.split("\n")) if line] == ["The importer lost 40 rows."]


def test_a_fence_ends_at_a_tagged_mark_on_the_last_line() -> None:
    assert kinds("```bash\nls\n```text") == [("fence", 0, 3)]


def test_a_tagged_mark_above_a_text_is_part_of_the_code() -> None:
    assert kinds("```text\na\n```python\nb\n```\n\nafter") == [("fence", 0, 5), ("paragraph", 6, 7)]


def test_a_fence_of_markdown_may_hold_a_tagged_fence_with_a_blank_line() -> None:
    assert kinds("````markdown\n```bash\n\nls\n```\n````\n\nafter") == [("fence", 0, 6), ("paragraph", 7, 8)]


@pytest.mark.parametrize("tag", ["", "text"])
def test_a_fence_ends_within_the_item_of_its_list(tag: str) -> None:
    text = f"1. x\n\n   ```py\n   a\n   ```{tag}\n\n2. y\n\n   ```py\n   b\n   ```{tag}\n\nafter"

    assert kinds(text) == [("list", 0, 12), ("paragraph", 12, 13)]


def test_a_shorter_mark_ends_no_fence() -> None:
    assert kinds("````python\nx\n```text\n\ny\n````\n\nafter") == [("fence", 0, 6), ("paragraph", 7, 8)]


@pytest.mark.parametrize("mark", ["```py\n", "```py\n\n", "~~~a\n\n"])
def test_many_marks_take_time_that_grows_like_the_text(mark: str) -> None:
    assert_linear(kinds, mark, characters=10_000)
