"""What `make test` leaves out is listed by `make help`, and counted by each run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import SUBJECTS, tier_of

MARKED = re.compile(r'mark\.test_all\("(\w+)"\)')
WAITS = """
import pytest

@pytest.mark.test_all("{subject}")
@pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.smoke), 2, 3])
def test_heavy(case: int) -> None:
    pass
"""


def test_what_waits_is_listed_and_marked(repository: Path) -> None:
    shown = subprocess.run(["make", "help"], cwd=repository, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in shown.splitlines() if "make test-all" in line]
    assert line.partition("also those of: ")[2].split() == sorted(SUBJECTS)
    files = (repository / "tests").rglob("test_*.py")
    assert {subject for file in files for subject in MARKED.findall(file.read_text())} == set(SUBJECTS)


def _run(repository: Path, folder: Path, *options: str, subject: str = "kills") -> str:
    (folder / "test_it.py").write_text(WAITS.format(subject=subject))
    words = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), str(folder)]
    plugins = ["-p", "tests.tiers", "-p", "xdist.plugin", "-p", "no:cacheprovider"]
    # To load the plugins of all installed packages takes each process 2 s.
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*words, *plugins, *options], cwd=repository, env=alone, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_run_says_what_it_left_out(repository: Path, tmp_path: Path, processes: str) -> None:
    told = _run(repository, tmp_path, "-n", processes)
    assert "2 tests wait for `make test-all`: kills 2\n" in told
    assert "1 passed" in told


def test_all_are_run_where_that_is_asked_for(repository: Path, tmp_path: Path) -> None:
    told = _run(repository, tmp_path, "--all")
    assert "3 passed" in told
    assert "wait for" not in told


def test_an_unknown_subject_is_named(repository: Path, tmp_path: Path) -> None:
    assert "test_all takes one of benchmarks, browser," in _run(repository, tmp_path, subject="slow")


@pytest.mark.parametrize(
    ("file", "fixtures", "tier"),
    [
        ("tests/recall/test_a.py", ["tmp_path"], "pure"),
        ("tests/recall/test_a.py", ["workspace", "database", "server_url"], "store"),
        ("tests/recall/test_a.py", ["client", "server", "server_url"], "doors"),
        ("tests/panel/test_a.py", [], "system"),
    ],
)
def test_a_tier_follows_from_what_a_test_asks_for(file: str, fixtures: list[str], tier: str) -> None:
    assert tier_of(f"{file}::test_it", fixtures) == tier
