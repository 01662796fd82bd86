"""`priors hook`, with events that Claude Code 2.1.197 sent, on a real service."""

import asyncio
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import msgspec
import pytest

from app.foundation.models.protocols import TokenCounter
from app.foundation.text import prose
from app.intake.sessions.formats.detect import read_log
from app.interfaces.cli import failures, hooks
from app.interfaces.cli.projects import write_whole
from app.interfaces.cli.unread import read_logs
from app.interfaces.http.cues import ActivateInput
from app.interfaces.http.retrieval import HistoryInput
from app.settings import Settings
from tests.conftest import REPOSITORY
from tests.interfaces.http.calls import get, post

SESSION = "cff903f0-541b-48e1-add0-e455d3913fe9"
SHARED: dict[str, Any] = {
    "session_id": SESSION,
    "cwd": "/home/ada/shop",
    "prompt_id": "d4f4cc4c-7725-4895-a361-8bc040d1221f",
}
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
TURN: dict[str, Any] = {"sessionId": SESSION, "cwd": "/home/ada/shop", "isSidechain": False, "version": "2.1.197"}
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


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This user's state, in which no other test notes anything."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "priors"


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
    await post(client, "/api/cues", {**LESSON, "kind": "procedure", "lesson": "Not at the start: it waits for an act."})
    place = ("--url", server, "--workspace", workspace_name)
    code, output, errors = await hooked(START, *place)
    assert (code, errors) == (0, "")
    told = json.loads(output)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert "Redis" in told["additionalContext"]
    assert told["additionalContext"].startswith("## Standing decisions, preferences and corrections of this project\n")
    assert counter.count(told["additionalContext"]) <= 200
    for absent in ("own idea", "Not at the start"):
        assert absent not in told["additionalContext"]
    assert await hooked({**START, "source": "resume"}, *place) == (0, "", "")
    code, output, errors = await hooked(CURSOR, *place)
    assert (code, errors, json.loads(output)) == (0, "", {"additional_context": told["additionalContext"]})


def test_a_lesson_is_told_again_to_an_act_to_which_it_surely_applies() -> None:
    def told(*scores: float) -> list[bool]:
        event = {"session_id": str(scores)}
        return [hooks._note_told(event, [{"id": "a", "score": score}]) for score in scores]

    assert told(0.9, 0.95) == [True, False]
    assert told(0.4, 0.5, 0.9, 0.9) == [True, False, True, False]
    assert not hooks._note_told({"session_id": "x"}, [])


def test_a_note_of_the_earlier_format_which_had_no_score_is_read() -> None:
    event = {"session_id": "older"}
    write_whole(hooks._note("told", "older"), "a\nb 0.9")
    assert [hooks._note_told(event, [{"id": name, "score": 0.5}]) for name in "abc"] == [False, False, True]
    assert hooks._note_told(event, [{"id": "a", "score": 0.9}])


async def test_a_session_starts_with_what_is_worth_most_and_not_with_the_newest(
    client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    days = [{"session": f"s{day}", "at": f"2026-05-0{day}T09:00:00Z"} for day in (1, 2, 3)]
    first = {"kind": "preference", "trigger": "answering", "lesson": "Keep answers short.", "evidence": days}
    await post(client, "/api/cues", first)
    decided = [
        {
            "kind": "decision",
            "trigger": f"part {number}",
            "lesson": f"Part {number} is kept in the archive of the team.",
        }
        for number in range(20)
    ]
    await post(client, "/api/cues", decided)
    retries = {"kind": "decision", "trigger": "calling the payment provider", "consequence": "severe"}
    await post(
        client, "/api/cues", {**retries, "lesson": "Three retries.", "evidence": [{"at": "2026-06-30T09:00:00Z"}]}
    )
    later = {**retries, "lesson": "Backoff instead.", "evidence": [{"at": "2026-08-11T09:00:00Z"}]}
    await post(client, "/api/cues", later)
    _, output, _ = await hooked(START, "--url", server, "--workspace", workspace_name)
    lines = json.loads(output)["hookSpecificOutput"]["additionalContext"].splitlines()
    assert lines[2:4] == [
        "- Keep answers short.",
        "- 11 August: Backoff instead. Replaces 30 June: Three retries.",
    ]
    assert "- Three retries." not in lines


@pytest.mark.parametrize("event", [TOOL, EDIT, CODEX], ids=["Bash", "Edit", "Codex"])
async def test_an_act_is_told_a_lesson_once_in_a_session(
    event: dict[str, Any],
    client: httpx.AsyncClient,
    server: str,
    workspace_name: str,
) -> None:
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


SILENT = (
    *("ok", "thanks, looks good!", "yes, go on", "hi there", "1", "y", "谢谢"),
    *("thanks, looks good to me!", "makes sense, let's do it", "try the second one"),
    *("/clear", "/compact keep the plan", "/model opus", "/deploy"),
    "<task-notification>\n<task-id>b1</task-id> The build has ended.\n</task-notification>",
    "<system-reminder>Go 1.22 is old.</system-reminder>",
)


@pytest.mark.parametrize("prompt", SILENT)
async def test_small_talk_a_command_and_a_notice_are_told_nothing(
    prompt: str, client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    for note in (NOTE, "Go 1.22 builds the agent."):
        await post(client, "/api/memories", {"kind": "note", "body": note})
    await post(client, "/api/cues", LESSON)
    assert await hooked({**PROMPT, "prompt": prompt}, "--url", server, "--workspace", workspace_name) == (0, "", "")


NOTES = (
    *("The ETL job must run before 6 am, or the mart is empty.", "CI is red since the tox pin; use tox 4."),
    *("/etc/hosts on db1 is written by Ansible: edit the role, not the file.", "The API v2 key is per org."),
    *("p99 on gpu 3 is high because of the fan curve.", "S3 sync needs --size-only on the NAS."),
    *("登录页面的修复必须先改会话密钥。", "The VAT of IE is 23.", "DB url of QA is in env.qa."),
    "src/app.py must not import the ORM.",
)
SHORT = (
    *("Run the ETL job now", "/etc/hosts has the wrong ip for db1, fix it", "fix the p99 on gpu 3", "why is CI red?"),
    *("S3 sync to the NAS", "修复登录", "VAT of IE?", "set the DB url of QA", "API v2 key", "ETL", "gpu 3", "p99?"),
    *("/src/app.py: add an ORM call", "use tox 4 or 3?"),
)


async def test_a_short_prompt_and_one_with_a_path_are_told_what_history_answers(
    client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    for note in NOTES:
        await post(client, "/api/memories?wait=true", {"kind": "note", "body": note})
    silent = []
    for prompt in SHORT:
        answer = await post(client, "/api/history", {"query": prompt})
        code, output, errors = await hooked({**PROMPT, "prompt": prompt}, "--url", server, "-w", workspace_name)
        assert (code, errors) == (0, "")
        assert bool(output) == bool(answer["markdown"]), prompt
        silent += [] if output else [prompt]
    assert silent == []


@pytest.mark.parametrize("characters", [60_000, 2_000_000])
async def test_a_prompt_of_any_length_is_answered(
    characters: int, client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    await post(client, "/api/memories?wait=true", {"kind": "note", "body": NOTE})
    pasted = "\n".join(f"2026-06-18T03:00:{number % 60:02}Z GET /healthz 200 id={number}" for number in range(50_000))
    prompt = f"{PROMPT['prompt']}?\n\n{pasted[:characters]}"
    code, output, errors = await hooked({**PROMPT, "prompt": prompt}, "--url", server, "-w", workspace_name)
    assert (code, errors) == (0, "")
    assert NOTE in json.loads(output)["hookSpecificOutput"]["additionalContext"]


def test_the_hook_imports_nothing_that_is_installed() -> None:
    code = "import sys; before = {*sys.modules}; import app.interfaces.cli; print(*{*sys.modules} - before)"
    # An editable installation imports some of them at Python's start.
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert tops - sys.stdlib_module_names == {"app"}
    slow = {"ssl", "http", "dataclasses", "hashlib", "typing", "pathlib", "socket", "urllib", "contextlib"}
    assert not tops & slow, "they take longer than all the others"


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


BODIES: dict[str, type[msgspec.Struct]] = {"/api/activate": ActivateInput, "/api/history": HistoryInput}


class Checking(hooks.Destination):
    """A service that takes what the real one's values allow, and knows nothing."""

    def ask(self, path: str, body: Mapping[str, Any] | None = None, *, until: float | None = None) -> Any:  # noqa: ARG002 - the real one's
        """Checks a request."""
        if body is not None:
            msgspec.convert(body, BODIES[path])
        return {"cues": [], "markdown": ""}


def test_no_event_makes_a_request_that_the_service_refuses() -> None:
    place, long = Checking("http://h", "", "w", "a" * 999), "x" * 99_999
    shared = {"session_id": long, "cwd": "/w"}
    patch = "".join(f"*** Update File: {long}{number}\n+{long}\n" for number in range(300))
    for given in ({"command": long}, {"command": patch}, {"file_path": long, "content": [long]}, {"prompt": long}):
        for tool in (long, "Task"):
            tried = {**shared, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given}
            hooks._before_tool(place, tried)
    hooks._prompt(place, {**shared, "hook_event_name": "UserPromptSubmit", "prompt": f"{long} {long} {long} {long}"})
    hooks._agent_start(place, {**shared, "hook_event_name": "SubagentStart", "agent_type": "", "agent_id": long})


def test_the_hook_knows_the_tags_of_programs() -> None:
    assert tuple(hooks.INSERTED.split()) == prose._INSERTED


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


async def until_found(find: Callable[[], Any]) -> Any:
    """Waits until another process has done its work; returns what it did."""
    while not (found := find()):  # noqa: ASYNC110 - another process does it
        await asyncio.sleep(0.05)
    return found


async def stored_sessions(client: httpx.AsyncClient, count: int = 1) -> dict[str, int]:
    """Waits until so many sessions are stored; returns the number of turns of each."""
    while len(found := (await get(client, "/api/sessions"))["sessions"]) < count:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.05)
    return {item["id"]: item["turns"] for item in found}


MORE: dict[str, dict[str, Any]] = {
    "SessionEnd": {"reason": "exit"},
    "Stop": {"stop_hook_active": False},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
}


@pytest.mark.parametrize("name", list(MORE))
async def test_each_real_log_is_stored_with_its_tools_by_each_event(
    name: str, client: httpx.AsyncClient, server: str, workspace_name: str, shared_data: Path, tmp_path: Path
) -> None:
    folder = shared_data / "real-logs-dev" / "logs" / "cipher-box"
    expected, asked = {}, list[bool]()
    # A project's folder of Claude Code. One log is enough for the event that only stores, as the end of a session does.
    logs = sorted(folder.glob("*.jsonl"))[: 1 if name == "PreCompact" else None]
    for log in logs:
        path = tmp_path / "projects" / "-home-ada-shop" / log.name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, path)
        read = read_log(log.read_bytes(), suffix=".jsonl", session_id=log.name)
        assert read is not None
        (transcript,) = read.transcripts
        assert any(turn.tools for turn in transcript.turns)
        expected[transcript.session_id] = len(transcript.turns)
        event = {**SHARED, **MORE[name], "hook_event_name": name, "session_id": log.stem, "transcript_path": str(path)}
        code, output, errors = await hooked(event, "--url", server, "--workspace", workspace_name)
        assert (code, errors) == (0, "")
        asked += ["decision" in output]
    # One of the logs has a single prompt, and commands of the program.
    assert sum(asked) == (8 if name == "Stop" else 0)
    assert await stored_sessions(client, len(logs)) == expected
    for session in expected:
        shown = await get(client, f"/api/sessions/{session}")
        assert any(turn["tools"] for turn in shown["messages"])
        assert "-home-ada-shop" not in shown["path"]


OTHERS = (
    *("11-codex-newer-rollouts/a-items-only.jsonl", "11-codex-newer-rollouts/d-legacy-events.jsonl"),
    *("12-gemini-session/session-2026-06-01T09-00-0d120000.json", "09-queued-mid-turn-message/session.jsonl"),
)
"""Logs of Codex, of Gemini CLI and of Claude Code in forms that the logs above do not have."""


@pytest.mark.parametrize("log", OTHERS)
async def test_a_log_of_another_form_is_stored_at_each_stop(
    log: str, client: httpx.AsyncClient, server: str, workspace_name: str, shared_data: Path
) -> None:
    path = shared_data / "field-dev" / log
    read = read_log(path.read_bytes(), suffix=path.suffix, session_id=path.name)
    assert read is not None
    (transcript,) = read.transcripts
    event = {**SHARED, **MORE["Stop"], "hook_event_name": "Stop", "transcript_path": str(path)}
    code, _, errors = await hooked(event, "--url", server, "--workspace", workspace_name, "--no-lessons")
    assert (code, errors) == (0, "")
    assert await stored_sessions(client) == {transcript.session_id: len(transcript.turns)}
    assert failures.failures() == []


async def test_a_session_that_is_sent_twice_at_once_is_stored_once(
    client: httpx.AsyncClient, server: str, workspace_name: str, tmp_path: Path
) -> None:
    log = tmp_path / f"{SESSION}.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in [*LOG, turn("user", "no, keep it for a release")]))
    stop = {**SHARED, "hook_event_name": "Stop", "stop_hook_active": True, "transcript_path": str(log)}
    end = {**END, "transcript_path": str(log)}
    place = ("--url", server, "--workspace", workspace_name)
    answers = await asyncio.gather(*(hooked(event, *place) for event in (stop, end) * 4))
    assert {answer[::2] for answer in answers} == {(0, "")}
    assert await stored_sessions(client) == {SESSION: 3}
    assert failures.failures() == []


async def test_a_session_that_cannot_be_stored_is_named_until_it_can(
    client: httpx.AsyncClient, server: str, workspace_name: str, tmp_path: Path
) -> None:
    log = tmp_path / f"{SESSION}.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in LOG))
    place = ("--url", server, "--workspace", workspace_name)
    assert await hooked({**END, "transcript_path": str(log)}, "--url", "http://127.0.0.1:9") == (0, "", "")
    (failed,) = await until_found(failures.failures)
    assert (failed.what, failed.name, failed.project) == ("session", SESSION, "/home/ada/shop")
    code, output, errors = await hooked({**START, "session_id": "next"}, *place)
    assert (code, errors) == (0, "")
    told = json.loads(output)
    expected = "Priors: 1 session could not be stored since"
    assert told["systemMessage"].startswith(expected)
    assert "no answer came from http://127.0.0.1:9" in told["systemMessage"]
    assert told["hookSpecificOutput"]["additionalContext"] == told["systemMessage"]
    assert "\n" not in told["systemMessage"]
    assert await hooked({**END, "transcript_path": str(log)}, *place) == (0, "", "")
    assert await stored_sessions(client) == {SESSION: 2}
    await until_found(lambda: not failures.failures())
    assert await hooked({**START, "session_id": "next"}, *place) == (0, "", "")


async def test_a_session_that_the_service_refuses_within_its_answer_is_named(
    server: str, workspace_name: str, tmp_path: Path
) -> None:
    log = tmp_path / f"{SESSION}.jsonl"
    log.write_text("".join(json.dumps({**line, "sessionId": "x" * 3_000}) + "\n" for line in LOG))
    place = hooks.Destination(server, "", workspace_name)
    await asyncio.to_thread(hooks.store_log, place, str(log), log.name, "", pauses=(0.0,))
    (failed,) = failures.failures()
    assert (failed.what, failed.name) == ("session", SESSION)
    assert "1 of 1 session could not be stored" in failed.reason
    assert read_logs(place) == {}


async def test_what_of_a_log_could_not_be_read_is_told_once(
    client: httpx.AsyncClient, server: str, workspace_name: str, tmp_path: Path
) -> None:
    log, place = tmp_path / f"{SESSION}.jsonl", hooks.Destination(server, "", workspace_name)
    words = ("--url", server, "--workspace", workspace_name)
    whole = [json.dumps(line) for line in LOG]
    log.write_text("\n".join([*whole, '{"type": "user", broken', ""]))
    for _ in range(2):
        # The log is known the second time, and its answer names nothing.
        await asyncio.to_thread(hooks.store_log, place, str(log), log.name, "/home/ada/shop", pauses=(0.0,))
        (noted,) = failures.failures()
        assert (noted.what, noted.name, noted.project) == ("session log", SESSION, "/home/ada/shop")
        assert noted.reason.startswith("line 3: ")
    assert await stored_sessions(client) == {SESSION: 2}
    _, output, _ = await hooked({**START, "session_id": "next"}, *words)
    assert json.loads(output)["systemMessage"].startswith("Priors: 1 session log could not be read whole since")
    log.write_text("\n".join([*whole, '{"type": "user", broken', json.dumps({**LOG[0], "uuid": "u2"}), ""]))
    await asyncio.to_thread(hooks.store_log, place, str(log), log.name, "", pauses=(0.0,))
    assert await hooked({**START, "session_id": "later"}, *words) == (0, "", "")


async def test_a_line_that_could_not_be_read_is_no_failure_once_it_can(
    server: str, workspace_name: str, tmp_path: Path
) -> None:
    log, place = tmp_path / f"{SESSION}.jsonl", hooks.Destination(server, "", workspace_name)
    first, second = (json.dumps(line) for line in LOG)
    log.write_text(f"{first[:-40]}\n{second}\n{first.replace('u1', 'u3')}\n")
    await asyncio.to_thread(hooks.store_log, place, str(log), log.name, "", pauses=(0.0,))
    assert [item.what for item in failures.failures()] == ["session log"]
    log.write_text(f"{first}\n{second}\n")
    await asyncio.to_thread(hooks.store_log, place, str(log), log.name, "", pauses=(0.0,))
    assert failures.failures() == []


async def test_a_remark_on_a_log_is_no_failure(
    client: httpx.AsyncClient, server: str, workspace_name: str, tmp_path: Path
) -> None:
    log, place = tmp_path / f"{SESSION}.jsonl", hooks.Destination(server, "", workspace_name)
    for lines in (LOG, LOG[:1]):
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        await asyncio.to_thread(hooks.store_log, place, str(log), log.name, "", pauses=(0.0,))
    outcome = await post(client, "/api/reports", {"path": "again.jsonl", "content": log.read_text()})
    assert outcome["notes"], "the shorter copy is remarked on"
    assert failures.failures() == []


async def test_a_session_in_which_nobody_spoke_is_no_failure(server: str, workspace_name: str, tmp_path: Path) -> None:
    log = tmp_path / f"{SESSION}.jsonl"
    log.write_text('{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n')
    place = hooks.Destination(server, "", workspace_name)
    await asyncio.to_thread(hooks.store_log, place, str(log), log.name, "")
    assert failures.failures() == []


async def test_a_session_starts_with_a_word_on_a_service_that_is_away() -> None:
    code, output, errors = await hooked(START, "--url", "http://127.0.0.1:9")
    assert code == 0
    assert "no answer came from http://127.0.0.1:9: Connection refused" in json.loads(output)["systemMessage"]
    assert "Connection refused" in errors


@pytest.mark.parametrize("source", ["compact", "clear"])
async def test_a_new_context_is_told_again(
    source: str, client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    wish = {"kind": "preference", "trigger": "writing a commit", "lesson": "Prefer commits of one change."}
    await post(client, "/api/cues", [wish, {**LESSON, "consequence": "severe"}])
    place = ("--url", server, "--workspace", workspace_name)
    assert wish["lesson"] in (await hooked(START, *place))[1]
    assert LESSON["lesson"] in (await hooked(TOOL, *place))[1]
    assert await hooked(TOOL, *place) == (0, "", "")
    assert await hooked({**START, "source": "resume"}, *place) == (0, "", "")
    assert await hooked(TOOL, *place) == (0, "", ""), "a resumed session knows what it was told"
    precompact = {**SHARED, "hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": ""}
    assert await hooked(precompact, *place) == (0, "", "")
    assert wish["lesson"] in (await hooked({**START, "source": source}, *place))[1]
    assert LESSON["lesson"] in (await hooked(TOOL, *place))[1]
    assert await hooked(TOOL, *place) == (0, "", "")


AGENT = {
    **SHARED,
    "hook_event_name": "SubagentStart",
    "agent_id": "agent-abc123",
    "agent_type": "general-purpose",
}


async def test_a_sub_agent_is_told_what_its_prompt_calls_for(
    client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    wish = {"kind": "preference", "trigger": "writing a commit", "lesson": "Prefer commits of one change."}
    await post(client, "/api/cues", [wish, {**LESSON, "kind": "procedure", "consequence": "severe"}])
    place = ("--url", server, "--workspace", workspace_name)
    asked = {
        "description": "Drop it",
        "prompt": "Drop the column flag of accounts.",
        "subagent_type": "general-purpose",
    }
    call = {**TOOL, "tool_name": "Task", "tool_input": asked}
    assert LESSON["lesson"] in (await hooked(call, *place))[1], "who calls it is told"
    other = {**AGENT, "agent_type": "Explore", "agent_id": "agent-2"}
    _, output, _ = await hooked(other, *place)
    assert wish["lesson"] in output
    assert LESSON["lesson"] not in output, "it was called for something else"
    code, output, errors = await hooked(AGENT, *place)
    assert (code, errors) == (0, "")
    told = json.loads(output)["hookSpecificOutput"]
    assert told["hookEventName"] == "SubagentStart"
    assert wish["lesson"] in told["additionalContext"]
    assert LESSON["lesson"] in told["additionalContext"]
    assert LESSON["lesson"] not in (await hooked(AGENT, *place))[1], "each call starts one agent"
    assert LESSON["lesson"] in (await hooked({**TOOL, "agent_id": "agent-abc123"}, *place))[1], "its context is its own"


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
) -> None:
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
    assert await hooked(stop, *place, "--no-lessons") == (0, "", "")
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
    while (await stored_sessions(client)) != {SESSION: 3}:  # noqa: ASYNC110 - another process stores it
        await asyncio.sleep(0.05)
    quoted = {**lesson, "quote": "never drop a column in the release", "session": SESSION}
    assert (await post(client, "/api/cues:learn", quoted))["trust"] == "person"
    assert await hooked(stop, *place) == (0, "", "")
    assert list((tmp_path / "state").rglob(f"*{SESSION}*")) == [], "a name from outside makes no path"


@pytest.mark.parametrize(
    ("event", "settings", "reason"),
    [
        (PROMPT, {"PORT": "9"}, "no answer came from http://127.0.0.1:9: Connection refused"),
        (PROMPT, {"PORT": "many"}, "http://127.0.0.1:many is no URL of a service"),
        ({**END, "transcript_path": "/nowhere/at/all.jsonl"}, {}, "No such file"),
        ({"hook_event_name": "Notification"}, {}, "and not Notification"),
        ({"hook_event_name": "Stop"}, {}, "has no 'transcript_path'"),
        ({**END, "transcript_path": None}, {}, "NoneType"),
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


def test_a_hook_in_a_folder_that_is_gone_blocks_nothing(tmp_path: Path, state: Path) -> None:
    state.mkdir(parents=True)
    (state / "projects.json").write_text('{"/nowhere/at/all": "shop"}')
    gone = tmp_path / "gone"
    gone.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.endswith("PROJECT_DIR")}
    done = subprocess.run(
        ["sh", "-c", f'rmdir "{gone}"; exec "{sys.executable}" -c "{PATIENT}" hook --url http://127.0.0.1:9'],
        input=json.dumps(PROMPT),
        env={**kept, "PYTHONPATH": str(REPOSITORY)},
        cwd=gone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr


def test_what_was_missed_holds_no_act_up_longer_than_an_act_may_wait(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hooks, "TOOL_SECONDS", 0.3)
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 3_600.0)
    hooks._note_late(START)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # It takes connections and answers none.
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(TOOL).encode())))
        hooks.answer(hooks.Destination(f"http://127.0.0.1:{listener.getsockname()[1]}", "", "w"))
    told = capsys.readouterr()
    assert told.out == ""
    assert "priors hook: no answer came" in told.err


async def test_gemini_cli_is_told_late_what_a_service_that_was_away_did_not_tell(
    client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    begun = {name: value for name, value in GEMINI.items() if name != "prompt"}
    start = {**begun, "hook_event_name": "SessionStart", "source": "startup"}
    await hooked(start, "--url", "http://127.0.0.1:9")
    decision = {"kind": "decision", "trigger": "dropping a column", "lesson": "Deprecate it first."}
    await post(client, "/api/cues", decision)
    thanks = {**GEMINI, "prompt": "thanks"}
    code, output, errors = await hooked(thanks, "--url", server, "--workspace", workspace_name)
    assert (code, errors) == (0, "")
    assert "Deprecate it first." in json.loads(output)["hookSpecificOutput"]["additionalContext"]


def test_nobody_reads_half_a_note() -> None:
    path, texts = hooks._note("late", SESSION), {"a" * 300_000, "b" * 300_000}
    write_whole(path, "a" * 300_000)
    seen, written = set[bool](), Event()

    def look() -> None:
        while not written.is_set():
            seen.add(hooks._read(path) in texts)

    thread = Thread(target=look)
    thread.start()
    for _ in range(100):
        for text in texts:
            write_whole(path, text)
    written.set()
    thread.join()
    assert seen == {True}
    assert Path(path).stat().st_mode & 0o777 == 0o600


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
            place._replace(until=time.monotonic() + 0.3).ask("/api/cues")
        # All questions of an event share its time.
        shared = place._replace(until=time.monotonic() + 0.3)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                shared.ask("/api/cues")
        assert time.monotonic() < shared.until + hooks.WAIT_SECONDS
        stopped.set()
        thread.join()
