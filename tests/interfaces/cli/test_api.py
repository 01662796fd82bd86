"""What `priors api` makes of an answer."""

import json

from app.interfaces.cli.api import readable

CASES = [{"case": "tea", "versions": 2, "note": None}, {"case": "coffee", "versions": 10, "note": ""}]


def shown(answer: object, width: int = 80) -> str:
    return "\n".join(readable(json.dumps(answer), width))


def test_records_are_a_table_without_its_empty_columns() -> None:
    assert shown(CASES) == "case    versions\ntea     2\ncoffee  10"


def test_records_that_are_wider_than_the_terminal_are_a_line_a_field() -> None:
    assert shown(CASES, 12) == "case      tea\nversions  2\n\ncase      coffee\nversions  10"


def test_lists_and_texts_of_a_record_stand_below_its_fields() -> None:
    answer = {"cases": CASES, "next": None, "total": 2, "tags": ["a", "b"], "markdown": "## One\n\nTwo\n"}
    lines = "total  2\ntags   a, b\n\ncases\n\ncase    versions\ntea     2\ncoffee  10\n\nmarkdown\n\n## One\n\nTwo\n"
    assert shown(answer) == lines


def test_a_cell_is_one_line() -> None:
    assert shown([{"a": "x\n y", "b": {"c": 1}, "d": True}]) == 'a    b        d\nx y  {"c":1}  true'


def test_nothing_is_said_and_a_text_stays_as_it_is() -> None:
    assert shown({"sessions": [], "next": None}) == "none"
    assert shown([]) == "none"
    assert [*readable("", 80)] == []
    assert [*readable('{"a": 1}\n{"a": 2}\n', 80)] == ['{"a": 1}\n{"a": 2}']


def test_a_list_of_records_and_others_leaves_none_out() -> None:
    assert shown([1, {"a": 1}]) == '1\n{"a":1}'
