"""Passages: the units of a text that an answer shows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.foundation.text.passages import GROUP, LONG, MOST_PASSAGES, passages_of, says_something


def parts(text: str) -> list[str]:
    return [text[part.start : part.end] for part in passages_of(text)]


def heads(text: str) -> list[str]:
    return [part.head_of(text) for part in passages_of(text)]


def test_paragraphs_and_long_items_are_passages_of_their_own() -> None:
    item = "- " + "An item that is long enough to stand alone, because it says more. " * 2 + "End."
    text = f"One.\n\nTwo.\n\n{item}\n{item}\n"
    assert parts(text) == ["One.", "Two.", item, item]


def test_a_short_list_and_a_short_table_are_one_passage() -> None:
    for text in ("- one\n- two\n- three", "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"):
        assert parts(text) == [text]


def test_a_row_of_a_long_table_comes_with_its_header() -> None:
    header = "| version | remark |\n|---|---|\n"
    rows = [f"| v{number} | {'word ' * 20}|" for number in range(9)]
    text = header + "\n".join(rows)
    assert parts(text) == rows
    assert set(heads(text)) == {header}


def test_a_heading_introduces_all_up_to_the_next_and_a_lead_in_what_follows_it() -> None:
    text = "## A\n\nOne.\n\n**What the judge marked**\n\n- first\n- second\n\nLast.\n\n## B\n\nOther."
    assert parts(text) == ["One.", "- first\n- second", "Last.", "Other."]
    assert heads(text) == ["## A\n", "**What the judge marked**\n", "## A\n", "## B\n"]


def test_a_heading_or_lead_in_alone_is_a_passage() -> None:
    assert parts("## Nothing below") == ["## Nothing below"]
    assert parts("Judge (v1):") == ["Judge (v1):"]
    assert not passages_of("")
    assert not passages_of("---\n")


def test_a_date_alone_is_no_passage_beside_others() -> None:
    assert parts("**Date:** 2026-05-01\n\nThe limit is 22.") == ["The limit is 22."]
    assert parts("**Date:** 2026-05-01") == ["**Date:** 2026-05-01"]


def test_texts_of_a_json_object_are_split_and_short_values_stay_together() -> None:
    long = "a text of more than eight words that says what was found"
    text = f"run: r-3\nscore: 6.0\nsummary: {long}\nnext: {long}"
    assert parts(text) == ["run: r-3\nscore: 6.0\n".strip(), f"summary: {long}", f"next: {long}"]
    issue = f"severity: P1\ntext: {long}"
    assert parts(issue) == [issue]


def test_a_long_paragraph_is_split_at_sentences() -> None:
    text = " ".join(f"Sentence number {number} says something of its own." for number in range(40))
    found = parts(text)
    assert len(found) > 1
    assert all(len(part) <= GROUP + LONG and part.endswith(".") for part in found)
    assert " ".join(found) == text


@given(st.text(alphabet="ab. \n#-|*:`>1", max_size=400))
def test_passages_are_in_order_and_say_something(text: str) -> None:
    found = passages_of(text)
    assert bool(found) == says_something(text)
    assert all(says_something(text[part.start : part.end]) for part in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert len(found) <= MOST_PASSAGES
