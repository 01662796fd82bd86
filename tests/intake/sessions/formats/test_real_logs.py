"""Real logs of coding programs: every person's sentence is a person's turn, and no program's text is."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.intake.sessions.artifacts import touches_of
from app.intake.sessions.transcript import Transcript, Turn
from tests.intake.sessions.formats.reading import log_at

PROJECTS = {"aider": "aider", "chef-chopsky": "specstory", "cipher-box": "claude-code"}
PROGRAMS = re.compile(
    r"<(?:task-|local-command|system-|command-|objective>|tool-use|think)|\[Request interrupted|\{\"task_id\"|Caveat:|"
    r"# Fix any errors below|This session is being continued|Base directory for"
)
"""Beginnings of what programs write."""
HARNESS = ("harness text", "text of a slash command", "report of a sub-agent", "background task notice",
           "output of the lint hook, fed back as a turn")  # fmt: skip
"""Why a labelled text is no lesson: a program wrote it."""


@pytest.fixture(scope="session")
def real_logs(shared_data: Path) -> Path:
    """The folder of the real logs with their labels."""
    folder = shared_data / "real-logs-dev"
    if not folder.is_dir():
        pytest.skip(f"the real logs are not at {folder}")
    return folder


@cache
def _sessions(folder: Path) -> Mapping[str, tuple[Transcript, ...]]:
    paths = [path for path in sorted(folder.iterdir()) if not path.name.startswith("LICENSE")]
    return {path.name: log_at(path).transcripts for path in paths}


def _turns(real_logs: Path, project: str, log: str) -> list[Turn]:
    found = _sessions(real_logs / "logs" / project)
    return [turn for name in found if log in name for session in found[name] for turn in session.turns]


def _labels(real_logs: Path, name: str) -> Iterator[dict[str, Any]]:
    for line in (real_logs / name).read_text().splitlines():
        label = json.loads(line)
        if label["project"] in PROJECTS:
            yield label


def _roles_of(quote: str, turns: list[Turn]) -> set[str]:
    return {turn.role for turn in turns if " ".join(quote.split()) in " ".join(turn.text.split())}


@pytest.mark.parametrize("project", PROJECTS)
def test_every_log_is_read_whole_and_no_turn_of_a_person_is_a_programs(real_logs: Path, project: str) -> None:
    found = _sessions(real_logs / "logs" / project)
    sessions = [session for log in found.values() for session in log]
    turns = [turn for session in sessions for turn in session.turns]
    logs, most = {"aider": (15, 456), "chef-chopsky": (15, 269), "cipher-box": (9, 256)}[project]
    assert {session.format for session in sessions} == {PROJECTS[project]}
    assert (len(found), {name for name, log in found.items() if not any(item.turns for item in log)}) == (logs, set())
    assert len(turns) == most
    assert {turn.role for turn in turns} == {"user", "assistant"}
    assert [turn.text for turn in turns if turn.role == "user" and PROGRAMS.match(turn.text)] == []
    assert [turn for turn in turns if not turn.text and not turn.tools] == []
    assert any(touches_of(turn, session.folder) for session in sessions for turn in session.turns)


def test_each_labelled_sentence_stands_in_a_turn_of_who_said_it(real_logs: Path) -> None:
    role = {"person": "user", "agent": "assistant"}
    missed = [
        label["quote"]
        for label in _labels(real_logs, "lessons.jsonl")
        if role[label["who"]] not in _roles_of(label["quote"], _turns(real_logs, label["project"], label["log"]))
    ]
    assert missed == []


def test_no_text_of_a_program_is_a_turn(real_logs: Path) -> None:
    labels = [label for label in _labels(real_logs, "junk.jsonl") if label["why"] in HARNESS]
    taken = [
        label["quote"]
        for label in labels
        if _roles_of(label["quote"], _turns(real_logs, label["project"], label["log"]))
    ]
    assert (len(labels), taken) == (6, [])


def test_what_was_typed_while_the_agent_worked_is_there_once(real_logs: Path) -> None:
    turns = _turns(real_logs, "cipher-box", "2095544c") + _turns(real_logs, "cipher-box", "6af70815")
    count = Counter(turn.text for turn in turns if turn.role == "user")
    assert count["docker is running on your host."] == 1
    assert count["how many instances of this shit are running?"] == 1
    assert count["commit, push and pr it"] == 1
