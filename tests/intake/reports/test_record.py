"""The sections of a decision record are told by the headings above a passage."""

import pytest

from app.intake.reports.record import number_of, role_at, role_of

JOINED = """## Status
Accepted since May.

## Decision
We use a table.

### How it is read
With SKIP LOCKED.

## Costs
A login takes 2 ms longer."""


@pytest.mark.parametrize(
    ("said", "role"),
    [
        ("## Status", "status"),
        ("Accepted", "status"),
        ("We use", "decision"),
        ("With SKIP", "decision"),
        ("A login", "consequences"),
    ],
)
def test_the_nearest_heading_of_the_body_that_is_above_tells_the_section(said: str, role: str) -> None:
    assert role_at(["11. Queue", "Context"], JOINED, JOINED.index(said)) == role


@pytest.mark.parametrize(
    ("heading_path", "role"),
    [
        (["11. Queue", "3. Decision", "How it is read"], "decision"),
        (["11. Queue", "Entscheidung"], "decision"),
        (["11. Queue", "Статус"], "status"),
        (["Decision"], ""),
        (["11. Queue", "Throughput"], ""),
        ([], ""),
    ],
)
def test_without_a_heading_in_the_body_the_heading_path_tells_it(heading_path: list[str], role: str) -> None:
    assert role_at(heading_path, "With SKIP LOCKED.", 0) == role


def test_a_heading_may_say_more_than_its_section() -> None:
    assert role_of("Decision Outcome (May)") == "decision"
    assert role_of("Decision Outcome (May)", whole=True) == ""
    assert number_of("docs/adr/0012-queue.md") == 12
    assert number_of("docs/adr/template.md") is None
