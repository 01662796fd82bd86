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
        (["11. Queue", "Considered options", "Solution"], "alternatives"),
        (["11. Queue", "Alternatives", "Decision"], "decision"),
        (["11. Queue", "Decision tree accuracy"], ""),
        (["11. Queue", "Status codes"], ""),
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
    assert number_of("docs/adr/2026-03-10_033-open.md") == 33


def test_a_comment_in_a_fence_is_no_heading() -> None:
    body = "```bash\n# status\ncat queue\n```\n\nThe importer forgets."
    assert role_at(["11. Queue", "Context"], body, body.index("The importer")) == "context"
