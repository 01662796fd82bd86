"""`priors hook`, with events that Claude Code 2.1.197 sent, on a real service."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.calls import get, post
from tests.conftest import REPOSITORY

SESSION = "cff903f0-541b-48e1-add0-e455d3913fe9"
SHARED = {"session_id": SESSION, "cwd": "/home/ada/shop", "prompt_id": "d4f4cc4c-7725-4895-a361-8bc040d1221f"}
PROMPT = {
    **SHARED,
    "transcript_path": f"/home/ada/.claude/projects/-home-ada-shop/{SESSION}.jsonl",
    "permission_mode": "default",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "Drop the column accounts.deprecated_flag",
}
END = {**SHARED, "hook_event_name": "SessionEnd", "reason": "other"}
TURN = {"sessionId": SESSION, "cwd": "/home/ada/shop", "isSidechain": False, "version": "2.1.197"}
LOG = [
    {
        **TURN,
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "timestamp": "2026-11-20T10:00:00.000Z",
        "message": {"role": "user", "content": "Drop the column accounts.deprecated_flag"},
    },
    {
        **TURN,
        "type": "assistant",
        "uuid": "a1",
        "parentUuid": "u1",
        "timestamp": "2026-11-20T10:00:05.000Z",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "The old pods still select it."}]},
    },
]
NOTE = "The column accounts.deprecated_flag is still read by the billing export."


async def hooked(event: object, *words: str, **settings: str) -> tuple[int, str, str]:
    """Returns the exit code, the output and the errors of the hook for an event."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    environ = {**kept, "PYTHONPATH": str(REPOSITORY), **{f"PRIORS_{name}": value for name, value in settings.items()}}
    command = [sys.executable, "-c", "from app.cli import main; main()", "hook", *words]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ)
    output, errors = await process.communicate(event if isinstance(event, bytes) else json.dumps(event).encode())
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def test_a_prompt_gets_history_and_lessons(client: httpx.AsyncClient, server: str, workspace_name: str) -> None:
    lesson = {"kind": "correction", "trigger": "dropping a column", "lesson": "Never drop a column in one release."}
    await post(client, "/api/memories", {"kind": "note", "body": NOTE})
    await post(client, "/api/cues", {**lesson, "consequence": "severe"})
    code, output, errors = await hooked(PROMPT, "--url", server, "--workspace", workspace_name)
    assert (code, errors) == (0, "")
    answer: dict[str, Any] = json.loads(output)["hookSpecificOutput"]
    assert answer["hookEventName"] == "UserPromptSubmit"
    for part in ("## Relevant History", NOTE, "## Before you act", "Never drop a column in one release."):
        assert part in answer["additionalContext"]
    (recall,) = await get(client, "/api/recalls")
    assert (recall["run_id"], recall["agent"]) == (SESSION, "claude-code")


async def test_the_end_of_a_session_stores_its_transcript(
    client: httpx.AsyncClient, server: str, workspace_name: str, tmp_path: Path
) -> None:
    log = tmp_path / f"{SESSION}.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in LOG))
    event = {**END, "transcript_path": str(log)}
    assert await hooked(event, "--url", server, "--workspace", workspace_name) == (0, "", "")
    while not (stored := await get(client, "/api/sessions"))["sessions"]:  # noqa: ASYNC110 - another process stores it
        await asyncio.sleep(0.05)
    assert [(item["id"], item["turns"]) for item in stored["sessions"]] == [(SESSION, 2)]


def turn(role: str, text: str) -> dict[str, Any]:
    """Returns a record of a log."""
    return {
        **LOG[0],
        "type": role,
        "uuid": text,
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
    }


async def test_an_agent_is_asked_for_lessons_once_in_a_session(
    client: httpx.AsyncClient,
    server: str,
    workspace_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    log = tmp_path / f"{SESSION}.jsonl"
    stop = {**SHARED, "hook_event_name": "Stop", "stop_hook_active": False, "transcript_path": str(log)}
    place = ("--url", server, "--workspace", workspace_name)
    log.write_text("".join(json.dumps(line) + "\n" for line in LOG))
    assert await hooked(stop, *place) == (0, "", ""), "nobody has corrected anything yet"
    correction = turn("user", "no, never drop a column in the release that stops using it")
    log.write_text("".join(json.dumps(line) + "\n" for line in [*LOG, correction]))
    code, output, errors = await hooked(stop, "--url", "http://127.0.0.1:9")
    assert (code, output) == (0, "")
    assert "Connection refused" in errors
    assert await hooked({**stop, "stop_hook_active": True}, *place) == (0, "", "")
    code, output, errors = await hooked(stop, *place)
    assert (code, errors) == (0, "")
    answer = json.loads(output)
    assert answer["decision"] == "block"
    assert f"session {SESSION}" in answer["reason"]
    lesson = {
        "kind": "correction",
        "when": "dropping a column",
        "lesson": "Drop it a release later.",
        "severity": "high",
    }
    quoted = {**lesson, "quote": "never drop a column in the release", "session": SESSION}
    assert (await post(client, "/api/cues:learn", quoted))["trust"] == "person", "its turns are stored before"
    assert await hooked(stop, *place) == (0, "", "")
    assert list((tmp_path / "state").rglob(f"*{SESSION}*")) == [], "a name from outside makes no path"


@pytest.mark.parametrize(
    ("event", "settings", "reason"),
    [
        (PROMPT, {"PORT": "9"}, "Connection refused"),
        (PROMPT, {"PORT": "many"}, "PRIORS_PORT"),
        ({**END, "transcript_path": "/nowhere/at/all.jsonl"}, {}, "No such file"),
        ({"hook_event_name": "Notification"}, {}, "and not Notification"),
        ({"hook_event_name": "Stop"}, {}, "has no 'session_id'"),
        ({"hook_event_name": "UserPromptSubmit"}, {}, "has no 'prompt'"),
        ([], {}, "list indices"),
        (b"not JSON", {}, "Expecting value"),
    ],
)
async def test_nothing_holds_a_prompt_up(event: object, settings: dict[str, str], reason: str) -> None:
    code, output, errors = await hooked(event, **settings)
    assert (code, output) == (0, "")
    assert reason in errors
