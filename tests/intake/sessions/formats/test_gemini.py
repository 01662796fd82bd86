"""Sessions of Gemini CLI are read in both forms, as the program itself replays them."""

from pathlib import Path
from typing import Any

import pytest

from app.intake.sessions.artifacts import touches_of
from tests.intake.sessions.formats.reading import log_at, log_of_records, only, said

FIRST = {"sessionId": "g-1", "projectHash": "ab", "startTime": "2026-06-01T09:00:00.000Z", "kind": "main"}


def _message(name: str, kind: str, text: object, **more: object) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-06-01T09:00:05.000Z", "type": kind, "content": text, **more}


@pytest.mark.parametrize("name", ["0d120000.json", "0d120001.jsonl"])
def test_both_forms_give_the_turns_and_the_files(shared_data: Path, name: str) -> None:
    log = log_at(shared_data / "field-dev/12-gemini-session" / f"session-2026-06-01T09-00-{name}")
    found = only(log)
    assert (found.format, found.session_id[:8], log.skipped, log.notes) == ("gemini-cli", name[:8], (), ())
    assert said(found) == [
        ("user", "Resize the product images on upload."),
        ("assistant", "I resize them with the library in the request."),
        ("user", "No: never resize in the request, it blocks the worker. Always put it on the queue images."),
        ("assistant", "I moved it to the queue images."),
    ]
    touched = [touch.path for turn in found.turns for touch in touches_of(turn)]
    assert touched == ["/home/dev/shop/upload.py"]


def test_a_message_that_stands_again_replaces_itself_and_a_rewind_takes_back() -> None:
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": "pytest"}, "status": "executing"}
    answer = {"functionResponse": {"id": "c1", "response": {"error": "1 failed"}}}
    done = {**call, "status": "error", "result": [answer]}
    records = [
        FIRST,
        _message("a", "user", [{"text": "test it"}]),
        _message("b", "gemini", "", toolCalls=[call]),
        _message("b", "gemini", [{"text": "It ", "thought": True}, {"text": "fails."}], toolCalls=[done]),
        _message("c", "user", "delete the test"),
        _message("d", "gemini", "Deleted."),
        {"$rewindTo": "c"},
        {"$set": {"summary": "Mends a test"}},
        _message("e", "user", "repair the code", displayContent="repair @code"),
    ]
    found = only(log_of_records(records))
    assert said(found) == [("user", "test it"), ("assistant", "fails."), ("user", "repair @code")]
    assert [(tool.name, tool.result, tool.failed) for tool in found.turns[1].tools] == [
        ("run_shell_command", "1 failed", True)
    ]
    assert found.title == "Mends a test"


def test_a_compression_takes_nothing_away() -> None:
    kept = [
        _message("s", "user", "<state_snapshot>The user never wants mocks.</state_snapshot>"),
        _message("x", "user", "never mock the database"),
    ]
    records = [
        FIRST,
        _message("a", "user", "write tests"),
        _message("b", "user", "never mock the database"),
        {"$set": {"messages": kept}},
        _message("c", "user", [{"text": "<session_context>\nfiles\n</session_context>"}]),
        _message("d", "user", "go on"),
    ]
    found = only(log_of_records(records))
    assert said(found) == [("user", "write tests"), ("user", "never mock the database"), ("user", "go on")]


def test_a_subagents_session_is_a_callers_and_unknown_types_are_counted() -> None:
    records = [
        {**FIRST, "kind": "subagent"},
        _message("a", "user", "always answer briefly"),
        _message("b", "aurora", "?"),
    ]
    log = log_of_records(records)
    assert said(only(log)) == [("caller", "always answer briefly")]
    assert log.notes == ("left out 1 records of unknown types (aurora 1)",)
