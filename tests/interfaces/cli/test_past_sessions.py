"""The earlier sessions of a project: where programs store their logs, and what `priors connect` takes in of them."""

import asyncio
import json
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from app.interfaces.cli import failures, hooks, take_in_past
from app.interfaces.cli.past_sessions import PastLog, past_logs
from app.interfaces.cli.projects import known_projects, store_project
from app.interfaces.cli.unread import destination_of, read_logs
from tests.conftest import REPOSITORY
from tests.interfaces.cli import forked
from tests.interfaces.cli.test_connect import connect
from tests.interfaces.cli.test_projects import git, repository
from tests.interfaces.http.calls import get

REAL = REPOSITORY.parent / "shared" / "data" / "real-logs-dev" / "logs"


@pytest.fixture(scope="module", autouse=True)
def one_process() -> Iterator[None]:
    """The process that runs the commands; it hardly waits for lessons, as no worker makes any here."""
    with forked.shared({"take_in_past._WHOLE_SECONDS": 1.0, "take_in_past._LESSON_SECONDS": 1.0}):
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user, in which programs have their folders."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    # As `connect` of the other tests has it.
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "home"


def claude_folder(home: Path, folder: Path) -> Path:
    """Returns the folder in which Claude Code stores the sessions of a working folder."""
    return home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(folder))


def write(path: Path, *records: object) -> Path:
    """Writes a log of records, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def claude_log(home: Path, stored_for: Path, name: str, *, cwd: Path) -> Path:
    """Writes the beginning of a log of Claude Code, whose first record names no folder."""
    queued = {"type": "queue-operation", "operation": "enqueue", "sessionId": name}
    said = {"type": "user", "cwd": str(cwd), "sessionId": name, "message": {"role": "user", "content": "hello"}}
    return write(claude_folder(home, stored_for) / f"{name}.jsonl", queued, said)


def names_of(logs: list[PastLog]) -> set[tuple[str, str]]:
    """Returns the programs and the names of logs."""
    return {(log.program, log.name) for log in logs}


def test_claude_codes_sessions_are_found_by_their_working_folder(home: Path, tmp_path: Path) -> None:
    shop = repository(tmp_path / "my.shop")
    git(shop, "worktree", "add", str(tmp_path / "my.shop-fix"))
    for folder in (shop / "src", tmp_path / "my-shop", tmp_path / "my.shop-old"):
        folder.mkdir()
    store_project(shop)
    claude_log(home, shop, "main", cwd=shop)
    claude_log(home, shop / "src", "below", cwd=shop / "src")
    claude_log(home, tmp_path / "my.shop-fix", "worktree", cwd=tmp_path / "my.shop-fix")
    claude_log(home, tmp_path / "my-shop", "same-folder-name", cwd=tmp_path / "my-shop")
    claude_log(home, tmp_path / "my.shop-old", "name-begins-alike", cwd=tmp_path / "my.shop-old")
    agent = claude_folder(home, shop) / "main" / "subagents" / "agent-1a.jsonl"
    write(agent, {"type": "user", "cwd": str(shop), "isSidechain": True, "sessionId": "main", "message": {}})
    write(agent.with_name("journal.jsonl"), {"type": "started"})
    (claude_folder(home, shop) / "empty.jsonl").touch()
    found = past_logs(shop)
    expected = {"main.jsonl", "below.jsonl", "worktree.jsonl", "main/subagents/agent-1a.jsonl"}
    assert names_of(found) == {("Claude Code", name) for name in expected}
    assert found == past_logs(tmp_path / "my.shop-fix"), "a worktree is of its repository's project"


def test_the_sessions_of_the_other_programs_are_found(home: Path, tmp_path: Path) -> None:
    shop, other = repository(tmp_path / "shop"), repository(tmp_path / "other")
    store_project(shop)
    for day, cwd in (("01", shop), ("02", other)):
        meta = {"id": day, "instructions": "be brief " * 9_000, "cwd": str(cwd), "cli_version": "0.147.0"}
        rollout = home / ".codex" / "sessions" / "2026" / "07" / day / f"rollout-2026-07-{day}T09-00-00-{day}.jsonl"
        write(rollout, {"type": "session_meta", "payload": meta})
    chats = home / ".gemini" / "tmp"
    by_hash = chats / sha256(str(shop).encode()).hexdigest() / "chats" / "session-2025-11-03T10-11-5c1f.json"
    write(by_hash, {"sessionId": "5c1f", "messages": []})
    for name, root in (("shop", shop), ("shop-1", other)):
        write(chats / name / "chats" / f"session-2026-06-01T09-00-{name}.jsonl", {"sessionId": name})
        (chats / name / ".project_root").write_text(str(root))
    write(shop / ".specstory" / "history" / "2026-01-02_plan.md", "a plan")
    write(shop / ".aider.chat.history.md", "# aider chat started at 2026-01-01 10:00:00")
    assert names_of(past_logs(shop)) == {
        ("Codex", "rollout-2026-07-01T09-00-00-01.jsonl"),
        ("Gemini CLI", "session-2025-11-03T10-11-5c1f.json"),
        ("Gemini CLI", "session-2026-06-01T09-00-shop.jsonl"),
        ("SpecStory", ".specstory/history/2026-01-02_plan.md"),
        ("aider", ".aider.chat.history.md"),
    }


def test_a_log_that_cannot_be_read_hides_no_other(home: Path, tmp_path: Path) -> None:
    store_project(tmp_path / "shop")
    day = home / ".codex" / "sessions" / "2026" / "07" / "01"
    # A folder of this name cannot be read as a log, whoever reads it.
    (day / "rollout-1.jsonl").mkdir(parents=True)
    write(day / "rollout-2.jsonl", {"type": "session_meta", "payload": {"cwd": str(tmp_path / "shop")}})
    assert names_of(past_logs(tmp_path / "shop")) == {("Codex", "rollout-2.jsonl")}


def test_only_logs_that_have_changed_since_are_found(home: Path, tmp_path: Path) -> None:
    store_project(tmp_path / "shop")
    for name, changed in (("old", 1_000), ("new", 2_000)):
        os.utime(claude_log(home, tmp_path / "shop", name, cwd=tmp_path / "shop"), (changed, changed))
    assert [log.name for log in past_logs(tmp_path / "shop")] == ["new.jsonl", "old.jsonl"]
    assert [log.name for log in past_logs(tmp_path / "shop", since=1_500.0)] == ["new.jsonl"]


@pytest.fixture
def real_logs(home: Path, tmp_path: Path) -> list[Path]:
    """Four real sessions of Claude Code, as sessions of a project of this user."""
    if not REAL.is_dir():
        pytest.skip(f"{REAL} is absent")
    shop = repository(tmp_path / "shop")
    folder = claude_folder(home, shop)
    folder.mkdir(parents=True)
    chosen = sorted((REAL / "cipher-box").glob("*.jsonl"), key=lambda path: path.stat().st_size)[:4]
    for log in chosen:
        # The log of a user who works in this folder.
        text = log.read_text().replace("/Users/dana/Code/cipher-box", str(shop))
        (folder / log.name).write_text(text)
    return chosen


async def test_connect_takes_in_the_past_and_reads_only_what_is_new_again(
    client: httpx.AsyncClient, server: str, workspace_name: str, real_logs: list[Path], home: Path, tmp_path: Path
) -> None:
    shop, place = tmp_path / "shop", ("--url", server, "--workspace", workspace_name)
    messages = [{"cwd": str(shop), "sender": ("user", "ai")[turn % 2], "text": f"turn {turn}"} for turn in range(6)]
    broken = write(claude_folder(home, shop) / "broken.jsonl", *messages)
    said = "# aider chat started at 2026-01-01 10:00:00\n\n#### Use pnpm here.\n\nSure.\n"
    (shop / ".aider.chat.history.md").write_text(said)
    code, output, errors = await connect(shop, "zed", *place, state=tmp_path)
    assert (code, errors) == (0, "")
    assert "found 6 logs of earlier sessions (aider 1, Claude Code 5); take them in by: priors" in output
    assert (await get(client, "/api/sessions"))["sessions"] == []
    code, output, errors = await connect(shop, "zed", *place, "--sessions", state=tmp_path)
    assert (code, f"failed: {broken}: " in errors) == (0, True)
    told = re.search(r"Read 5 earlier sessions of this project \(\d+ s\)\. (\d+) lessons", output)
    assert told is not None, output
    stored = await get(client, "/api/sessions")
    assert {item["id"] for item in stored["sessions"]} > {log.stem for log in real_logs}
    names = json.dumps(await get(client, "/api/ingestions")) + json.dumps(stored)
    assert claude_folder(home, shop).name not in names, "the name of the folder tells where the user works"
    code, output, errors = await connect(shop, "zed", *place, "--sessions", state=tmp_path)
    assert "Read 0 earlier sessions" in output, "the one that failed is tried again"
    assert f"failed: {broken}: " in errors
    broken.unlink()
    code, output, errors = await connect(shop, "zed", *place, "--sessions", state=tmp_path)
    assert (code, errors, "no earlier session of this project is new" in output) == (0, "", True)


async def test_what_is_read_is_not_sent_again_where_the_service_ends_meanwhile(
    server: str,
    workspace_name: str,
    real_logs: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    latest, *_ = [log.path for log in past_logs_of(tmp_path / "shop", server, workspace_name)]
    send = hooks._send_log

    def send_latest(place: hooks.Destination, path: str, name: str) -> Sequence[str] | None:
        if path != str(latest):
            raise OSError("no answer came")
        return send(place, path, name)

    monkeypatch.setattr(hooks, "_send_log", send_latest)
    for waited in ("_WHOLE_SECONDS", "_LESSON_SECONDS"):
        monkeypatch.setattr(take_in_past, waited, 0.0)
    (project,) = known_projects().values()
    await asyncio.to_thread(take_in_past.offer_past, project, "", program="zed", wanted=True)
    assert [*read_logs(destination_of(project, ""))] == [str(latest)]
    told = capsys.readouterr()
    assert told.err.count("no answer came") == len(real_logs) - 1
    assert {item.reason for item in failures.failures()} == {"no answer came"}


def test_the_failure_of_one_projects_log_stays_where_the_log_of_another_with_its_name_is_stored(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not home.exists()
    logs = [tmp_path / project / ".aider.chat.history.md" for project in ("one", "two")]
    for log in logs:
        log.parent.mkdir()
        log.write_text("# aider chat started at 2026-01-01 10:00:00\n")

    def send(_place: hooks.Destination, path: str, _name: str) -> Sequence[str] | None:
        if path == str(logs[0]):
            raise OSError("no answer came")
        return None

    monkeypatch.setattr(hooks, "_send_log", send)
    place = hooks.Destination("http://127.0.0.1:9", "", "default", data_dir=str(tmp_path))
    outcomes = [hooks.store_log(place, str(log), log.name, str(log.parent), pauses=(0.0,)) for log in logs]
    assert outcomes == ["no answer came", ""]
    assert [Path(item.project).name for item in failures.failures(place.data_dir)] == ["one"]


def past_logs_of(root: Path, server: str, workspace: str) -> list[PastLog]:
    """Stores a project of a service, and returns its logs."""
    store_project(root, workspace, url=server, program="zed")
    return past_logs(root)


async def test_the_past_is_left_alone_where_the_user_wants_that(
    client: httpx.AsyncClient, server: str, workspace_name: str, real_logs: list[Path], tmp_path: Path
) -> None:
    assert real_logs
    place = ("--url", server, "--workspace", workspace_name)
    code, output, errors = await connect(tmp_path / "shop", "zed", *place, "--no-sessions", state=tmp_path)
    assert (code, errors, "earlier session" in output) == (0, "", False)
    assert (await get(client, "/api/sessions"))["sessions"] == []


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("never run alembic downgrade on staging", True),
        ("We should NEVER be in mock mode in production.", True),
        ("Use pnpm here, not npm.", True),
        ("Everything looks correct.", False),
        ("let's commit this", False),
    ],
)
def test_the_sentence_that_is_shown_lays_down_a_rule(said: str, *, rule: bool) -> None:
    assert take_in_past.is_rule(said) == rule
