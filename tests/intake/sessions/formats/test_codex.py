"""In a rollout of Codex each message stands once, wherever its version writes it."""

from pathlib import Path
from typing import Any

import pytest

from app.intake.sessions.artifacts import touches_of
from app.intake.sessions.transcript import Transcript
from tests.intake.sessions.formats.reading import log_at, log_of_records, only, said

FOUR = [
    ("user", "Prepare the release of the freight service."),
    ("assistant", "I tag main and push it."),
    ("user", "Release only from the branch stable, never from main: last time the half-done migration went out."),
    ("assistant", "Understood. I release from stable."),
]


def _line(kind: str, **payload: object) -> dict[str, Any]:
    return {"timestamp": "2026-08-22T08:00:00Z", "type": kind, "payload": payload}


def _message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return _line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def _meta(**more: object) -> dict[str, Any]:
    return _line("session_meta", id="cx-1", cwd="/home/ada/ship", **more)


def _touched(found: Transcript) -> list[tuple[str, str]]:
    return [(touch.path, touch.action) for turn in found.turns for touch in touches_of(turn, found.folder)]


@pytest.mark.parametrize("name", ["a-items-only", "b-mirrored", "d-legacy-events"])
def test_each_message_of_newer_and_older_rollouts_stands_once(shared_data: Path, name: str) -> None:
    log = log_at(shared_data / "field-dev/11-codex-newer-rollouts" / f"{name}.jsonl")
    assert (said(only(log)), log.skipped, log.notes) == (FOUR, (), ())


def test_what_only_items_tell_of_the_work_is_told(shared_data: Path) -> None:
    found = only(log_at(shared_data / "field-dev/11-codex-newer-rollouts/b-mirrored.jsonl"))
    assert [tool.name for tool in found.turns[1].tools] == ["exec", "shell", "edit_file"]
    assert _touched(found) == [("app/release.py", "changed")]


def test_a_compaction_takes_nothing_away_and_says_nothing(shared_data: Path) -> None:
    found = only(log_at(shared_data / "field-dev/11-codex-newer-rollouts/c-compacted.jsonl"))
    assert said(found) == [
        FOUR[0],
        FOUR[2],
        ("user", "Go on with the changelog."),
        ("assistant", "The changelog lists three fixes."),
    ]


def test_the_summary_of_a_compaction_is_no_turn_and_nothing_stands_twice() -> None:
    summary = "The user wants the tax to be a setting."
    kept = [_message(role, text)["payload"] for role, text in (("user", "make the tax a setting"), ("user", summary))]
    records = [
        _meta(source="cli"),
        _message("user", "make the tax a setting"),
        _line("compacted", message=summary, replacement_history=kept),
        _message("user", "and document it"),
    ]
    assert said(only(log_of_records(records))) == [("user", "make the tax a setting"), ("user", "and document it")]


def test_what_the_user_said_is_told_from_what_the_program_inserted() -> None:
    asked = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nrename total"
    records = [
        _meta(source="vscode"),
        _message("user", "Some words of a program that nobody knows"),
        _message("user", asked),
        _line("event_msg", type="user_message", message=asked),
        _message("user", "<environment_context>\n</environment_context>"),
        _message("assistant", "Renamed."),
    ]
    found = only(log_of_records(records))
    assert said(found) == [("user", "rename total"), ("assistant", "Renamed.")]
    assert len(found.unspoken) == 2


@pytest.mark.parametrize(
    ("meta", "role"),
    [
        ({}, "user"),
        ({"source": "cli"}, "user"),
        ({"source": "vscode", "originator": "codex_vscode"}, "user"),
        ({"originator": "codex-tui"}, "user"),
        ({"source": "exec", "originator": "codex_exec"}, "caller"),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "t"}}}}, "caller"),
        ({"source": "cli", "thread_source": "subagent"}, "caller"),
        ({"source": "unknown"}, "caller"),
        ({"originator": "my-sdk"}, "caller"),
    ],
)
def test_a_person_speaks_only_where_a_person_types(meta: dict[str, Any], role: str) -> None:
    found = only(log_of_records([_meta(**meta), _message("user", "never push"), _message("assistant", "Fine.")]))
    assert said(found) == [(role, "never push"), ("assistant", "Fine.")]


def test_what_the_user_rolls_back_is_no_turn() -> None:
    records = [
        _meta(source="cli"),
        _message("user", "one"),
        _message("assistant", "first"),
        _message("user", "two"),
        _message("assistant", "second"),
        _line("event_msg", type="thread_rolled_back", num_turns=1),
        _message("user", "three"),
    ]
    assert said(only(log_of_records(records))) == [("user", "one"), ("assistant", "first"), ("user", "three")]


def test_older_events_tell_of_files_and_commands() -> None:
    changes = {
        "/home/ada/ship/a.py": {"add": {"content": "def f():\n    pass\n"}},
        "/home/ada/ship/b.py": {
            "update": {"unified_diff": "@@ -1 +1 @@\n-x\n+y\n", "move_path": "/home/ada/ship/c.py"}
        },
    }
    records = [
        _meta(source="cli"),
        _message("user", "go"),
        _line("event_msg", type="patch_apply_end", call_id="p1", success=True, changes=changes),
        _line("event_msg", type="exec_command_end", call_id="e1", command=["pytest"], exit_code=1, stdout="1 failed"),
        _line("response_item", type="lightning", text="?"),
    ]
    log = log_of_records(records)
    assert [(tool.name, tool.failed) for tool in only(log).turns[1].tools] == [
        ("create_file", False),
        ("edit_file", False),
        ("rename_file", False),
        ("shell", True),
    ]
    assert {("a.py", "created"), ("b.py", "changed"), ("b.py", "renamed")} <= set(_touched(only(log)))
    assert log.notes == ("left out 1 records of unknown types (item lightning 1)",)
