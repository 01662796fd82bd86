"""Tests of how cues of logs in public repositories are compared with what readers said of their turns."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.recall.cues.signs import ALONE, READ, spoken_turns
from benchmarks import cues, public_logs

RULE = "never push to main without a green build"
LOG = f"""# aider chat started at 2026-01-05 10:00:00

#### {RULE}

I will open a pull request for each change.

#### add a button to the page

Done.
"""


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A folder with the clone of one repository that holds a chat history."""
    clone = tmp_path / "owner" / "name"
    clone.mkdir(parents=True)
    (clone / "history.md").write_text(LOG, encoding="utf-8")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=clone, check=True)
    return tmp_path


@pytest.fixture(autouse=True)
def _signs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the signs alone find the lessons: these tests judge no meaning."""
    for module in (cues, public_logs):
        monkeypatch.setattr(module, "read_spoken", spoken_turns)


def row(**more: Any) -> dict[str, Any]:
    read = {"session": 0, "read": [0, 2], "useful": {"0": [public_logs.digest(RULE)]}, "harmless": []}
    return {"repository": "owner/name", "commit": "HEAD", "path": "history.md", **read, **more}


def test_each_turn_that_was_read_has_what_the_rules_make_of_it_and_its_verdict(clones: Path) -> None:
    turns = public_logs.turns_of(row(), clones)

    found = list(public_logs.judged(row(), turns))

    assert found == [("active cues", "useful"), ("turns without a cue", "junk")]


def test_the_figures_count_what_is_shown_and_what_is_missed() -> None:
    found = [
        (public_logs.ACTIVE, "useful"),
        (public_logs.ACTIVE, "junk"),
        (public_logs.SILENT, "useful"),
        (public_logs.SILENT, "harmless"),
    ]

    figures = [(figure.name, figure.value) for figure in public_logs.figures(found)]

    assert figures[:5] == [
        ("turns that were read", 4),
        ("… that are useful", 2),
        ("active cues", 2),
        ("… useful", 0.5),
        ("… of the useful turns", 0.5),
    ]


def test_a_clone_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="owner/name belongs into"):
        public_logs.turns_of(row(), tmp_path)


def test_the_sentences_that_a_reader_named_are_examples_of_lessons(clones: Path) -> None:
    found = cues.public_examples([(row(), public_logs.turns_of(row(), clones))], is_trained=False)

    assert [(example.holds, sorted(example.forms)) for example in found] == [(True, [ALONE, READ]), (False, [])]


@pytest.mark.parametrize("path", [public_logs.TURNS, public_logs.HELD_OUT])
def test_every_verdict_is_on_a_turn_that_was_read(path: Path) -> None:
    rows = public_logs.read(path)

    assert all({*map(int, one["useful"]), *one["harmless"]} <= set(one["read"]) for one in rows)
    assert len({(one["repository"], one["path"], one["session"]) for one in rows}) == len(rows)


def test_no_repository_is_both_fitted_to_and_held_out() -> None:
    fitted, held_out = (
        {row["repository"] for row in public_logs.read(path)} for path in (public_logs.TURNS, public_logs.HELD_OUT)
    )

    assert fitted
    assert held_out
    assert not fitted & held_out
