"""Points of the chaos harness, and that the harness names what is lost."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from chaos.__main__ import main
from chaos.points import Outcome, differences
from chaos.progress import NotRecovered, wait_for
from chaos.shim import Shim, can_be_built
from chaos.works import Request, Step


def step(*expected: str) -> Step:
    return Request("/api/memories", {}, expected)


@pytest.mark.test_all("kills")
def test_work_survives_a_kill_9_of_postgres(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--points", "1", "--seed", "3", "--fault", "Postgres is killed"]) == 0
    told = capsys.readouterr().out
    assert "whole" in told
    assert "LOST" not in told


def test_the_tables_of_recorded_points_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    point = Outcome(
        number=1,
        work="ratings",
        fault="the link drops",
        moment=0.5,
        acknowledged=7,
        interrupted=2,
        recovered=1.5,
        losses=[],
    )
    whole, failed = tmp_path / "whole", tmp_path / "failed"
    whole.write_bytes(msgspec.json.encode(point) + b"\n")
    failed.write_bytes(msgspec.json.encode(msgspec.structs.replace(point, losses=["missing: a"])) + b"\n")
    assert main(["--recorded", str(whole)]) == 0
    assert main(["--recorded", str(whole), "--recorded", str(failed)]) == 1
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if "ratings: the link drops" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["ratings: the link drops", "1", "7", "2", "0", "0", "0", "1.5"],
        ["ratings: the link drops", "2", "14", "4", "1", "0", "1", "1.5"],
    ]


def test_a_file_without_points_is_named(tmp_path: Path) -> None:
    path = tmp_path / "points"
    path.write_text("none\n")
    with pytest.raises(SystemExit, match=r"points has no recorded points"):
        main(["--recorded", str(path)])


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


def test_a_wait_goes_on_with_the_progress_and_names_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.progress.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("chaos.progress.STALL_SECONDS", 0.0)
    left = iter([["3 jobs"], ["2 jobs"], ["1 job"], []])
    wait_for(lambda: next(left), "jobs do not go on")
    with pytest.raises(NotRecovered, match="jobs do not go on, after 0 s: 1 job"):
        wait_for(lambda: ["1 job"], "jobs do not go on")


@pytest.mark.skipif(not can_be_built() or sys.platform != "linux", reason="needs a C compiler and the calls of Linux")
def test_the_shim_moves_the_clock_and_refuses_writes(tmp_path: Path) -> None:
    shim, code = Shim(tmp_path, tmp_path), "import time, sys; print(int(time.time())); open(sys.argv[1], 'w')"

    def run() -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", code, str(tmp_path / "file")]
        return subprocess.run(words, env=shim.environment, capture_output=True, text=True, check=False)

    true = run()
    shim.set(seconds=-86_400, read_only=True)
    struck = run()
    assert (true.returncode, struck.returncode) == (0, 1)
    assert -86_400 <= int(struck.stdout) - int(true.stdout) < -80_000
    assert "Read-only file system" in struck.stderr
