"""The comparison with other systems at a small size: that each finds what it was given. Speed is not judged here."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.figures import Figure
from benchmarks.peers.catalog import CLASSIC, PRIORS, SYSTEMS
from benchmarks.peers.known_items import questions, reword_text
from benchmarks.peers.quality import Values, needed
from benchmarks.peers.results import as_figures, document
from benchmarks.peers.run import Outcome, Task, plan
from benchmarks.peers.system import Memory

PEERS = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


@pytest.fixture(scope="module")
def python() -> str:
    """A Python that has the peers' packages."""
    if find_spec("chromadb") is not None:
        return sys.executable
    if PEERS.exists():
        return str(PEERS)
    pytest.skip("chromadb is not installed; `make bench-peers` makes the virtual environment that has it")


def run(python: str, folder: Path, *options: str) -> dict[str, Values]:
    command = [python, "-m", "benchmarks.peers", "--results", str(folder), "--output", str(folder / "RESULTS.md")]
    done = subprocess.run(
        [*command, *options], cwd=PEERS.parents[2], env={"PATH": "/usr/bin:/bin", "HOME": str(folder)}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {path.stem: json.loads(path.read_text())["values"] for path in folder.glob("*.json")}


@pytest.mark.parametrize("system", [item.name for item in SYSTEMS if item.scales])
@pytest.mark.test_all("benchmarks")
def test_a_system_takes_memories_in_and_finds_them(python: str, tmp_path: Path, system: str) -> None:
    found = run(python, tmp_path, "--work", "growth", "--size", "200", "--rounds", "4", "--system", system)
    assert list(found) == [f"growth-200-{system}"]
    assert all(value > 0 for value in found[f"growth-200-{system}"].values())


@pytest.mark.test_all("benchmarks")
def test_workspaces_stand_side_by_side(python: str, tmp_path: Path) -> None:
    found = run(python, tmp_path, "--work", "tenants", "--size", "200", "--rounds", "2", "--system", CLASSIC)
    assert found[f"tenants-200-{CLASSIC}"]["one of 100 ÷ alone"] > 0


@pytest.mark.test_all("benchmarks")
def test_quality_of_the_classic_stack(python: str, tmp_path: Path) -> None:
    reports = needed("reports")
    if reports is None or not reports.exists():
        pytest.skip(f"the evaluation data is not at {reports}")
    options = ["--system", CLASSIC, "--work", "locomo", "--conversations", "1", "--questions", "10"]
    (values,) = run(python, tmp_path, *options).values()
    assert 0 < values["all @5"] <= values["all @20"] <= 1
    assert "## What is found" in (tmp_path / "RESULTS.md").read_text()


def test_a_message_is_written_as_a_dialogue() -> None:
    assert Memory(key="1", kind="message", title="Ann", body="Hello").text == "Ann: Hello"
    assert Memory(key="1", title="Ann", body="Hello").text == "Ann\nHello"


def chunk(key: str, title: str, body: str) -> Memory:
    return Memory(key=key, kind="chunk", title=title, body=body, source=key.split("#", maxsplit=1)[0])


def test_a_text_that_two_chunks_have_makes_no_question() -> None:
    reason = "reason: the solution creates exactly one file and nothing besides that"
    alone = "reason: no cache directories remain in the workspace after the second run"
    made = questions(
        [chunk("a.json#0", "A", reason), chunk("b.json#0", "B", reason), chunk("c.json#0", "C", alone)], most=10
    )
    assert [question.key for question in made] == ["c.json#0"]


def test_a_paraphrase_keeps_names_and_changes_words() -> None:
    text = "The agent created the script in run_01 of T3, and all tests passed"
    assert reword_text(text) == "t3 every checks assistant made run_01"


def test_larger_sizes_are_asked_only_of_those_that_carry_them() -> None:
    names = [item.name for item in SYSTEMS]
    assert {task.system for task in plan(["growth"], names, [100_000])} == {PRIORS, CLASSIC}
    assert {task.system for task in plan(["locomo"], names, [100_000])} == set(names)


def outcome(system: str, work: str, size: int, values: Values, failure: str = "") -> Outcome:
    task = Task(system=system, work=work, size=size)
    return Outcome(task=task, when="2026-01-01T00:00:00Z", load=0.5, values=values, failure=failure)


def test_targets_are_ratios_of_what_was_measured() -> None:
    outcomes = [
        outcome(PRIORS, "locomo", 0, {"all @5": 0.6, "all @10": 0.75}),
        outcome(CLASSIC, "locomo", 0, {"all @5": 0.4, "all @10": 0.5}),
        outcome("mem0", "locomo", 0, {}, failure="it was not there"),
    ]
    shown = {figure.name: figure for figure in as_figures(outcomes)}
    assert shown["LoCoMo @10 ÷ classic"] == Figure(name="LoCoMo @10 ÷ classic", value=1.5, at_least=1.55)
    assert shown["LoCoMo recall@10"].met is False
    written = document(outcomes)
    assert "| LoCoMo @10 ÷ classic | 1.5 | at least 1.55 | **missed** |" in written
    assert "- locomo-mem0: it was not there" in written
    assert "## On the development sets" in written
