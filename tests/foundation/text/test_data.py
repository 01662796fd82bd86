"""Lines of JSON as values, or as the reasons why they have none."""

from app.foundation.text.data import json_lines


def test_each_line_is_a_value_or_a_reason() -> None:
    lines = [b'\xef\xbb\xbf{"a": 1}', b" \n", b"[1]", b"{", b'{"b": "' + b"x" * 30 + b'"}', b"\xff"]
    found = dict(json_lines(lines, dict[str, int], longest=30))
    assert found[1] == {"a": 1}
    assert 2 not in found
    reasons = {number: str(reason).partition(":")[0] for number, reason in found.items() if number > 1}
    assert reasons == {
        3: "Expected `object`, got `array`",
        4: "is not JSON",
        5: "is longer than 30 bytes",
        6: "is not JSON",
    }
