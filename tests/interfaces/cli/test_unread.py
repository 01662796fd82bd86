"""A hook that finds no service starts it, later ones answer, and what happened meanwhile is stored."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest
from priors_client import Client
from priors_client.models import CueInput

from app.interfaces.cli import hooks, starting, unread
from app.interfaces.cli.failures import failures
from app.interfaces.cli.projects import RECORD, Project, record_file, store_project
from tests.conftest import data_folder
from tests.interfaces.cli.test_connect import free_port
from tests.interfaces.cli.test_places import PRIORS

TURN = "Never drop a column directly: deprecate it first."


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without settings, whose home is this test's."""
    for name in [name for name in os.environ if name.startswith(("PRIORS_", "CLAUDE_", "GEMINI_"))]:
        monkeypatch.delenv(name)
    for name in ("STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return dict(os.environ)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a repository."""
    made = tmp_path / "shop"
    (made / ".git").mkdir(parents=True)
    return made


def log_in(home: Path, root: Path, session_id: str, *, seconds_ago: float) -> Path:
    """Writes a log where Claude Code has it, and returns its path."""
    folder = home / "claude" / "projects" / str(root).replace("/", "-").replace("_", "-")
    folder.mkdir(parents=True, exist_ok=True)
    message = {"role": "user", "content": TURN}
    record = {"type": "user", "uuid": f"{session_id}-1", "sessionId": session_id, "cwd": str(root), "message": message}
    path = folder / f"{session_id}.jsonl"
    path.write_text(json.dumps({**record, "timestamp": "2026-03-01T12:00:00Z"}) + "\n")
    os.utime(path, (time.time() - seconds_ago,) * 2)
    return path


def hook(root: Path, environment: Mapping[str, str], event: str, **fields: str) -> dict[str, Any]:
    """Returns what a hook prints for an event; {} if it is silent."""
    payload = {"session_id": "s-2", "hook_event_name": event, "cwd": str(root), **fields}
    done = subprocess.run(
        [PRIORS, "hook"],
        input=json.dumps(payload),
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout) if done.stdout else {}


def until(is_so: Any, seconds: float = 240.0) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.test_all("processes")
def test_a_hook_starts_the_service_and_a_later_one_answers(
    root: Path, tmp_path: Path, environment: dict[str, str], model_folder: Path
) -> None:
    data_dir, url = data_folder(tmp_path, model_folder), f"http://127.0.0.1:{free_port()}"
    starting.write_settings(data_dir, {"PRIORS_EXAMPLES": "false"})
    store_project(root, url=url, data_dir=str(data_dir), program="claude-code")
    log_in(tmp_path, root, "s-old", seconds_ago=3_600)
    log_in(tmp_path, root, "s-1", seconds_ago=-1)
    told = hook(root, environment, "SessionStart", source="startup")
    assert told["systemMessage"].startswith("Priors is started, and tells what it knows later")
    until((data_dir / RECORD).exists)
    process = psutil.Process(json.loads((data_dir / RECORD).read_bytes())["process"])
    try:
        with Client(url, workspace="shop") as priors:
            # Its hooks never came; the one before the project was connected is left to `priors connect`.
            until(lambda: priors.admin.sessions().sessions)
            assert [session.id for session in priors.admin.sessions().sessions] == ["s-1"]
            priors.admin.store_cues(
                CueInput(kind="decision", trigger="dropping a column", lesson="Deprecate it first.")
            )
        late = hook(root, environment, "UserPromptSubmit", prompt="thanks")
        assert "Deprecate it first." in late["hookSpecificOutput"]["additionalContext"]
        assert hook(root, environment, "UserPromptSubmit", prompt="thanks") == {}
        assert failures(str(data_dir)) == []
    finally:
        process.terminate()
        process.wait()


def test_a_service_that_cannot_start_is_named(
    root: Path, tmp_path: Path, environment: dict[str, str], model_folder: Path
) -> None:
    data_dir, port = data_folder(tmp_path, model_folder), free_port()
    store_project(root, url=f"http://127.0.0.1:{port}", data_dir=str(data_dir), program="claude-code")
    starting.write_settings(data_dir, {"PRIORS_API_KEY": "secret"})
    hook(root, environment, "SessionStart", source="startup")
    (found,) = failures(str(data_dir))
    assert (found.what, found.project) == ("service", str(root))
    assert "ran with PRIORS_API_KEY, not set here" in found.reason
    told = hook(root, environment, "SessionStart", source="startup")
    assert "1 service could not be started since" in told["systemMessage"]


@pytest.mark.usefixtures("environment")
async def test_only_logs_that_changed_are_read_again(
    root: Path, tmp_path: Path, server: str, workspace_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_project(root, workspace_name, url=server, program="claude-code")
    path = log_in(tmp_path, root, "s-1", seconds_ago=5)
    sent: list[str] = []
    send = hooks.store_log

    def store(place: hooks.Destination, path: str, *words: str, **options: Any) -> None:
        sent.append(path)
        send(place, path, *words, **options)

    monkeypatch.setattr(hooks, "store_log", store)
    project = Project(str(root), workspace_name, url=server)
    for _ in range(2):
        await asyncio.to_thread(unread.catch_up, project, "")
    assert sent == [str(path)]
    os.utime(path, (time.time() - 4,) * 2)
    await asyncio.to_thread(unread.catch_up, project, "")
    assert sent == [str(path)] * 2
    path.write_text('{"type": "user", broken')
    os.utime(path, (time.time() - 3,) * 2)
    for _ in range(2):
        await asyncio.to_thread(unread.catch_up, project, "")
    assert sent == [str(path)] * 4, "one that cannot be stored is tried again"
    assert [(item.name, item.project) for item in failures()] == [("s-1", str(root))]


@pytest.mark.usefixtures("environment")
async def test_a_log_that_one_workspace_or_service_has_is_unread_for_another(
    root: Path, tmp_path: Path, server: str, workspace_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(tmp_path, root, "s-1", seconds_ago=5)
    monkeypatch.chdir(root)
    data_dir = tmp_path / "data" / "own"
    data_dir.mkdir(parents=True)
    (data_dir / RECORD).write_text(json.dumps({"url": server}))
    for name in (workspace_name, f"{workspace_name}-other"):
        project = store_project(root, name, url=server, data_dir=str(data_dir), program="claude-code")
        await asyncio.to_thread(unread.catch_up, project._replace(since=1.0), "")
        with Client(server, workspace=name) as priors:
            found = await asyncio.to_thread(priors.admin.sessions)
        assert [session.id for session in found.sessions] == ["s-1"], name
    place = unread.destination_of(project, "")
    assert len(unread.read_logs(place)) == 1
    elsewhere = hooks.place_of(["--url", "http://127.0.0.1:9", "-w", project.workspace])
    assert elsewhere is not None
    assert unread.read_logs(elsewhere) == {}, "the hook names another service beside the project's data directory"
    (data_dir / RECORD).write_text(json.dumps({"url": "http://127.0.0.1:10"}))
    assert len(unread.read_logs(unread.destination_of(project, ""))) == 1, "the service has another port now"


@pytest.mark.usefixtures("environment")
def test_notes_without_a_service_are_of_logs_that_are_unread(root: Path, tmp_path: Path) -> None:
    path = log_in(tmp_path, root, "s-1", seconds_ago=5)
    place = hooks.Destination("http://127.0.0.1:9", "", "shop")
    noted = tmp_path / "state" / "priors" / "read-logs.json"
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps({str(path): [10, 20]}))
    assert unread.read_logs(place) == {}
    unread.note_read(place, {str(path): (1, 2)})
    assert unread.read_logs(place) == {str(path): [1, 2]}
    assert json.loads(noted.read_bytes()) == {"shop http://127.0.0.1:9": {str(path): [1, 2]}}


@pytest.mark.usefixtures("environment")
async def test_sessions_of_gemini_cli_and_of_sub_agents_are_read_too(
    root: Path, tmp_path: Path, server: str, workspace_name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    store_project(root, workspace_name, url=server, program="gemini-cli")
    chats = tmp_path / ".gemini" / "tmp" / "shop" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(str(root))
    shutil.copy(shared_data / "field-dev/12-gemini-session/session-2026-06-01T09-00-0d120000.json", chats)
    main = log_in(tmp_path, root, "s-1", seconds_ago=5)
    agent = main.parent / "s-1" / "subagents" / "agent-1a.jsonl"
    agent.parent.mkdir(parents=True)
    record = {**json.loads(main.read_bytes()), "isSidechain": True, "agentId": "1a", "uuid": "a-1"}
    agent.write_text(json.dumps(record) + "\n")
    for path in (*chats.iterdir(), agent):
        os.utime(path, (time.time() - 5,) * 2)
    project = Project(str(root), workspace_name, url=server)
    await asyncio.to_thread(unread.catch_up, project, "")
    assert failures() == []
    with Client(server, workspace=workspace_name) as priors:
        found = await asyncio.to_thread(lambda: priors.admin.sessions().sessions)
    assert {session.format for session in found} == {"claude-code", "gemini-cli"}
    assert set(unread.read_logs(unread.destination_of(project, ""))) == {
        str(path) for path in (*chats.iterdir(), main, agent)
    }


@pytest.mark.usefixtures("environment")
async def test_who_stores_a_log_at_last_removes_the_failure_that_a_hook_noted(
    root: Path, tmp_path: Path, server: str, workspace_name: str
) -> None:
    store_project(root, workspace_name, url=server, program="codex")
    path = log_in(tmp_path, root, "s-1", seconds_ago=5)
    # A log of Codex has another name than its session.
    path = path.rename(path.with_name("rollout-2026-11-20-s-1.jsonl"))
    away = hooks.Destination("http://127.0.0.1:9", "", workspace_name)
    await asyncio.to_thread(hooks.store_log, away, str(path), path.name, str(root), pauses=(0.0,))
    assert [item.name for item in failures()] == [path.stem]
    await asyncio.to_thread(unread.catch_up, Project(str(root), workspace_name, url=server), "")
    assert failures() == []


@pytest.mark.usefixtures("environment")
def test_a_project_whose_logs_cannot_be_looked_for_is_named(root: Path) -> None:
    project = store_project(root, url="http://127.0.0.1:9", program="claude-code")._replace(since=0.0)
    record = Path(record_file())
    stored = record.read_text()
    log_in(record.parents[2], root, "s-1", seconds_ago=5)
    record.write_text("broken")
    unread.catch_up(project, "")
    (found,) = failures()
    assert (found.what, found.name) == ("project", str(root))
    assert "cannot be read" in found.reason
    record.write_text(stored)
    unread.catch_up(project, "")
    assert [item.what for item in failures()] == ["session"]


@pytest.mark.usefixtures("environment")
async def test_a_week_is_told_once_in_seven_days(server: str, workspace_name: str, tmp_path: Path) -> None:
    place = hooks.Destination(server, "", workspace_name)
    assert await asyncio.to_thread(hooks.week_line, place) == ""
    noted = tmp_path / "state" / "priors" / "week" / workspace_name.encode().hex()
    os.utime(noted, (time.time() - 8 * 86_400,) * 2)
    told = await asyncio.to_thread(hooks.week_line, place)
    assert told == (
        "Priors this week: 0 lessons told (0 heeded, 0 ignored), 0 tokens; 0 sessions are stored in all;"
        " 0 wait for your decision (`priors status`)"
    )
    assert await asyncio.to_thread(hooks.week_line, place) == ""
