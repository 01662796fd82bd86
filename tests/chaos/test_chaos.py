"""One point of the chaos harness, and that the harness names what is lost."""

from collections import Counter

import pytest

from chaos.__main__ import main
from chaos.points import differences
from chaos.works import Request, Step


def step(*expected: str) -> Step:
    return Request("/api/memories", {}, expected)


def test_work_survives_a_kill_9_of_postgres(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--points", "1", "--seed", "3", "--fault", "Postgres is killed"]) == 0
    told = capsys.readouterr().out
    assert "whole" in told
    assert "LOST" not in told


@pytest.mark.parametrize(
    ("stored", "losses"),
    [
        ({"a": 1, "b": 1}, []),
        ({"a": 1, "b": 1, "c": 1}, []),
        ({"a": 1, "c": 1}, ["missing: b"]),
        ({"a": 1, "b": 2, "c": 2}, ["stored more than once: b", "stored more than once: c"]),
        ({"a": 1, "b": 1, "x": 1}, ["never sent: x"]),
    ],
)
def test_a_loss_is_named(stored: dict[str, int], losses: list[str]) -> None:
    assert differences(Counter(stored), [step("a", "b")], [step("c")]) == losses
