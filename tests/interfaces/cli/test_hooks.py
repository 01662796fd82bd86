"""`priors hook`, with events that Claude Code 2.1.197 sent, on a real service."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from app.foundation.models.protocols import TokenCounter
from app.interfaces.cli import hooks
from app.settings import Settings
from tests.conftest import REPOSITORY
from tests.interfaces.http.calls import get, post

SESSION = "cff903f0-541b-48e1-add0-e455d3913fe9"
SHARED = {"session_id": SESSION, "cwd": "/home/ada/shop", "prompt_id": "d4f4cc4c-7725-4895-a361-8bc040d1221f"}
PROMPT = {
    **SHARED,
    "transcript_path": f"/home/ada/.claude/projects/-home-ada-shop/{SESSION}.jsonl",
    "permission_mode": "default",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "Drop the column accounts.deprecated_flag",
}
GEMINI = {
    "session_id": SESSION,
    "transcript_path": "/home/ada/.gemini/tmp/shop/chats/session.json",
    "cwd": "/home/ada/shop",
    "hook_event_name": "BeforeAgent",
    "timestamp": "2026-11-20T10:00:00.000Z",
    "prompt": "Drop the column accounts.deprecated_flag",
}
"""As the reference of Gemini CLI's hooks has it (docs/hooks/reference.md)."""
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
PATIENT = """
from app.interfaces.cli import hooks, main
hooks.WAIT_SECONDS = hooks.TOOL_SECONDS = 600.0
main()
"""
"""The command, with waits that a machine under load does not reach."""
NOTE = "The column accounts.deprecated_flag is still read by the billing export."


async def hooked(event: object, *words: str, **settings: str) -> tuple[int, str, str]:
    """Returns the exit code, the output and the errors of the hook for an event."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    environ = {**kept, "PYTHONPATH": str(REPOSITORY), **{f"PRIORS_{name}": value for name, value in settings.items()}}
    command = [sys.executable, "-c", PATIENT, "hook", *words]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ)
    output, errors = await process.communicate(event if isinstance(event, bytes) else json.dumps(event).encode())
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


@pytest.mark.parametrize(("event", "agent"), [(PROMPT, "codex"), (GEMINI, "gemini-cli")])
async def test_a_prompt_gets_history_and_lessons(
    event: dict[str, str], agent: str, client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    lesson = {"kind": "correction", "trigger": "dropping a column", "lesson": "Never drop a column in one release."}
    await post(client, "/api/memories", {"kind": "note", "body": NOTE})
    await post(client, "/api/cues", {**lesson, "consequence": "severe"})
    code, output, errors = await hooked(event, "--url", server, "--workspace", workspace_name, "--agent", agent)
    assert (code, errors) == (0, "")
    answer: dict[str, Any] = json.loads(output)["hookSpecificOutput"]
    assert answer["hookEventName"] == event["hook_event_name"]
    for part in ("## Relevant History", NOTE, "## Before you act", "Never drop a column in one release."):
        assert part in answer["additionalContext"]
    (recall,) = await get(client, "/api/recalls")
    assert (recall["run_id"], recall["agent"]) == (SESSION, agent)


START = {**SHARED, "hook_event_name": "SessionStart", "source": "startup", "model": "claude-sonnet-4-6"}
CURSOR = {
    "conversation_id": SESSION,
    "session_id": SESSION,
    "hook_event_name": "sessionStart",
    "is_background_agent": False,
    "composer_mode": "agent",
    "workspace_roots": ["/home/ada/shop"],
    "cursor_version": "2.6.0",
}
TOOL = {
    **SHARED,
    "permission_mode": "default",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "psql -c 'ALTER TABLE accounts DROP COLUMN flag'", "description": "Drop a column"},
    "tool_use_id": "toolu_01ABC123",
}
EDIT = {
    **TOOL,
    "tool_name": "Edit",
    "tool_input": {
        "file_path": "/home/ada/shop/migrations/0094.py",
        "old_string": "pass",
        "new_string": 'op.drop_column("accounts", "flag")',
    },
}
CODEX = {
    "session_id": SESSION,
    "turn_id": "1",
    "transcript_path": None,
    "cwd": "/home/ada/shop",
    "hook_event_name": "PreToolUse",
    "model": "gpt-5-codex",
    "permission_mode": "default",
    "tool_name": "apply_patch",
    "tool_input": {
        "command": "*** Begin Patch\n*** Add File: migrations/0094.py\n"
        "+op.drop_column('accounts', 'flag')\n*** End Patch"
    },
    "tool_use_id": "call_1",
}
"""As its generated schema has it (codex-rs/hooks/schema)."""
LESSON = {"kind": "correction", "trigger": "dropping a column", "lesson": "Never drop a column in one release."}


async def test_a_new_project_starts_in_silence(server: str, workspace_name: str) -> None:
    assert await hooked(START, "--url", server, "--workspace", workspace_name) == (0, "", "")


async def test_a_session_starts_with_standing_decisions_and_preferences(
    client: httpx.AsyncClient, server: str, workspace_name: str, counter: TokenCounter
) -> None:
    wish = {"kind": "preference", "trigger": "writing a commit", "lesson": "Prefer commits of one change."}
    await post(client, "/api/cues", wish)
    await post(client, "/api/cues", {**wish, "lesson": "An agent's own idea.", "trust": "agent"})
    decided = [
        {**wish, "kind": "decision", "lesson": f"Кэш {number} живёт в Redis, 決定 {number}."} for number in range(40)
    ]
    await post(client, "/api/cues", decided)
    await post(client, "/api/cues", {**LESSON, "lesson": "Not at the start: it waits for an act."})
    place = ("--url", server, "--workspace", workspace_name)
    code, output, errors = await hooked(START, *place)
    assert (code, errors) == (0, "")
    told = json.loads(output)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert "Redis" in told["additionalContext"]
    assert counter.count(told["additionalContext"]) <= 200
    for absent in ("own idea", "Not at the start"):
        assert absent not in told["additionalContext"]
    assert await hooked({**START, "source": "resume"}, *place) == (0, "", "")
    code, output, errors = await hooked(CURSOR, *place)
    assert (code, errors, json.loads(output)) == (0, "", {"additional_context": told["additionalContext"]})


@pytest.mark.parametrize("event", [TOOL, EDIT, CODEX], ids=["Bash", "Edit", "Codex"])
async def test_an_act_is_told_a_lesson_once_in_a_session(
    event: dict[str, Any],
    client: httpx.AsyncClient,
    server: str,
    workspace_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    await post(client, "/api/cues", {**LESSON, "consequence": "severe"})
    place = ("--url", server, "--workspace", workspace_name)
    code, output, errors = await hooked(event, *place)
    assert (code, errors) == (0, "")
    answer = json.loads(output)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PreToolUse"
    assert LESSON["lesson"] in answer["additionalContext"]
    assert "permissionDecision" not in answer, "the person decides"
    assert await hooked(event, *place) == (0, "", ""), "the session knows it"
    other = {**event, "session_id": "another"}
    assert LESSON["lesson"] in (await hooked(other, *place))[1]
    while (fired := (await get(client, "/api/cues"))["cues"][0]["fired"]) < 2:  # noqa: ASYNC110 - another process logs it
        await asyncio.sleep(0.05)
    assert fired == 2, "what the session knew does not count"


@pytest.mark.parametrize("command", ["ls -la src", "git status", "npm test", "grep -rn flag app/"])
async def test_an_ordinary_act_is_told_nothing_and_leaves_no_trace(
    command: str, client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    await post(client, "/api/cues", {**LESSON, "consequence": "severe"})
    event = {**TOOL, "tool_input": {"command": command}}
    assert await hooked(event, "--url", server, "--workspace", workspace_name) == (0, "", "")
    assert (await get(client, "/api/cues"))["cues"][0]["fired"] == 0


@pytest.mark.parametrize("prompt", ["ok", "thanks, looks good!", "yes, go on", "/clear", "hi there"])
async def test_small_talk_is_told_nothing(
    prompt: str, client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    for note in (NOTE, "Go 1.22 builds the agent."):
        await post(client, "/api/memories", {"kind": "note", "body": note})
    await post(client, "/api/cues", LESSON)
    assert await hooked({**PROMPT, "prompt": prompt}, "--url", server, "--workspace", workspace_name) == (0, "", "")


def test_the_hook_imports_nothing_that_is_installed() -> None:
    code = "import sys; before = {*sys.modules}; import app.interfaces.cli; print(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert tops - sys.stdlib_module_names == {"app"}
    assert not tops & {"ssl", "http", "dataclasses", "hashlib"}, "they take longer than all the others"


def test_a_hook_that_is_called_wrongly_blocks_nothing() -> None:
    for words, code in ((["hook", "--bogus"], 1), (["history", "--bogus"], 2)):
        done = subprocess.run(
            [sys.executable, "-c", "from app.interfaces.cli import main; main()", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=REPOSITORY,
        )
        assert (done.returncode, "No such option" in done.stderr) == (code, True)


def test_the_hook_knows_the_settings_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PRIORS_")]:
        monkeypatch.delenv(name)
    known = {name: str(getattr(Settings(), name.lower())) for name in hooks.DEFAULTS}
    assert known == hooks.DEFAULTS


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
        (PROMPT, {"PORT": "9"}, "no answer came from http://127.0.0.1:9: Connection refused"),
        (PROMPT, {"PORT": "many"}, "'many'"),
        ({**END, "transcript_path": "/nowhere/at/all.jsonl"}, {}, "No such file"),
        ({"hook_event_name": "Notification"}, {}, "and not Notification"),
        ({"hook_event_name": "Stop"}, {}, "has no 'session_id'"),
        ({"hook_event_name": "UserPromptSubmit"}, {}, "has no 'prompt'"),
        ({**PROMPT, "prompt": None}, {}, "NoneType"),
        ({**TOOL, "tool_input": None}, {}, "NoneType"),
        ([], {}, "list indices"),
        (b"not JSON", {}, "Expecting value"),
    ],
)
async def test_nothing_holds_a_prompt_up(event: object, settings: dict[str, str], reason: str) -> None:
    code, output, errors = await hooked(event, **settings)
    assert (code, output) == (0, "")
    assert reason in errors


def test_a_service_that_sends_piece_after_piece_is_not_waited_for() -> None:
    stopped = Event()

    def trickle(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            while not stopped.wait(0.02):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=trickle, args=(listener,))
        thread.start()
        place = hooks.Destination(f"http://127.0.0.1:{listener.getsockname()[1]}", "", "w")
        with pytest.raises(TimeoutError):
            place.ask("/api/cues", until=time.monotonic() + 0.3)
        stopped.set()
        thread.join()
