"""The service that a command asks: each command prints the same over HTTP and in its own process."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from priors_client import AsyncClient
from priors_client.models import CueInput, MessageInput

from app.interfaces.cli import places
from app.interfaces.cli.projects import RECORD
from app.settings import Settings
from tests.interfaces.cli import forked

UNLIKE = re.compile(
    r'[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|"(?:(?:\w+_)?(?:ms|at)|score)":[^,}]+|^(?:\w+_)?(?:ms|at) +.+$',
    re.MULTILINE,
)
"""Ids, durations, times and scores that fade with time: they differ from one call to the next."""
PRIORS = Path(sys.executable).with_name("priors")
UNKNOWN = "00000000-0000-0000-0000-000000000000"
TURNS = [
    "Let's decide on API versioning: we use the URL path, because proxies can route it.",
    "Decided: versions stand in the URL path. I rejected headers, as caches ignore them.",
    "Never drop a column directly: deprecate it first.",
]
CONTEXT = {"sections": [{"id": "rules", "label": "Rules", "content": "Answer in one line.", "mode": "constraint"}]}

COMMAND_LINES: list[list[str]] = [
    ["history", "How are versions told apart?"],
    ["search", "versions", "--kind", "message"],
    ["activate", "drop the column deprecated_flag", "--file", "app/db.py", "--explain"],
    ["activate", "call the customer", "--user", "ann"],
    ["why", "API versioning", "--json"],
    ["api", "GET", "/api/sessions", "text=logs/s-1"],
    ["api", "GET", "/api/sessions/logs%2Fs-1"],
    ["api", "GET", "/api/cases", "--json"],
    ["api", "POST", "/api/activate", "plan=drop the column deprecated_flag", "budget_tokens:=200"],
    ["api", "GET", "/api/cues", "kind=correction", "kind=decision"],
    ["api", "POST", "/api/cues:tend"],
    ["api", "PATCH", f"/api/proposals/{UNKNOWN}", "state=accepted"],
    ["api", "PATCH", "/api/settings", "--from", "{folder}/settings.json"],
    ["api", "POST", "/api/contexts", "observation=How are versions told apart?"],
    ["api", "POST", "/api/contexts:compile", "--from", "{folder}/context.json"],
    ["api", "GET", "/api/contexts/{one}", "--json"],
    ["api", "GET", "/api/memories", "state=quarantined"],
    ["api", "GET", "/api/audit", "limit=two", "--owner"],
]
SMOKE = ("history", "activate", "cue")
"""Commands that answer with text, a table and a change."""
HEAVY = ("sqlalchemy", "litestar", "numpy", "onnxruntime", "procrastinate", "rich", "structlog")


@pytest.fixture(scope="module", autouse=True)
def one_process() -> Iterator[None]:
    """The process that runs the commands beside the services."""
    with forked.shared():
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def store(server: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Any]]:
    """A workspace that holds a session, cues and two contexts, and a folder of files."""
    folder, name = tmp_path_factory.mktemp("remote"), f"remote-{uuid4().hex[:12]}"
    (folder / "settings.json").write_text('{"action_types": {"beam:alignment": ["align the beam of the laser"]}}')
    (folder / "context.json").write_text(json.dumps(CONTEXT))
    async with AsyncClient(server, workspace=name) as priors:
        messages = [MessageInput(role="user", text=text) for text in TURNS]
        await priors.store_session(id="logs/s-1", messages=messages, title="Versions", wait=True)
        await priors.admin.store_cues(
            CueInput(kind="correction", trigger="dropping a column", lesson="Deprecate it first.")
        )
        await priors.admin.store_cues(
            CueInput(kind="correction", trigger="calling a customer", lesson="Ask Ann"), user="ann"
        )
        one = (await priors.build_context("versions")).id
    yield {"folder": folder, "name": name, "one": one}


@pytest.fixture(scope="module")
def shells() -> Iterator[tuple[forked.Shell, forked.Shell]]:
    """A process on the machine of the store, and one elsewhere."""
    with forked.shell() as here, forked.shell() as there:
        yield here, there


@pytest.fixture(scope="module")
def environment(settings: Settings, store: dict[str, Any]) -> dict[str, str]:
    """The environment of a command on the machine of the store."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_") and name != "COLUMNS"}
    own = {"DATABASE_URL": settings.database_url, "DATA_DIR": str(settings.data_dir), "WORKSPACE": store["name"]}
    return {**kept, **{f"PRIORS_{name}": value for name, value in own.items()}}


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Returns what a command said, without what differs from call to call, and without the log."""
    errors = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("{"))
    return done.returncode, UNLIKE.sub("…", done.stdout), UNLIKE.sub("…", errors)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, id=" ".join(words), marks=[pytest.mark.smoke] if words[0] in SMOKE else [])
        for words in COMMAND_LINES
    ],
)
@pytest.mark.test_all("processes")
async def test_a_service_answers_as_the_process_itself(
    words: list[str],
    store: dict[str, Any],
    environment: dict[str, str],
    server: str,
    shells: tuple[forked.Shell, forked.Shell],
) -> None:
    given = [word.format(**store) for word in words]
    elsewhere = {name: value for name, value in environment.items() if name != "PRIORS_DATABASE_URL"}
    here, there = shells
    expected = await asyncio.to_thread(here.run, given, environment)
    answered = await asyncio.to_thread(there.run, [*given, "--url", server], elsewhere)
    assert told(answered) == told(expected)


async def test_a_command_beside_a_service_imports_nothing_heavy(server: str, environment: dict[str, str]) -> None:
    code = f"""
import sys
from app.interfaces.cli import main
sys.argv = ["priors", "history", "versions"]
try:
    main()
finally:
    print([name for name in {HEAVY!r} if name in sys.modules])
"""
    words = [sys.executable, "-c", code]
    given = environment | {"PRIORS_URL": server}
    done = await asyncio.to_thread(subprocess.run, words, env=given, capture_output=True, text=True, check=False)
    assert "## Relevant History" in done.stdout, done.stderr
    assert done.stdout.endswith("[]\n")


@pytest.fixture
def recorded(server: str, settings: Settings, tmp_path: Path) -> Settings:
    """The settings of a data directory whose record names this process and the service that it runs."""
    here = replace(settings, data_dir=tmp_path / "data")
    places.write_record(here, server)
    return here


async def found_by(settings: Settings, record: str | dict[str, Any] | None = None) -> str:
    """Returns the URL of the service that a command with these settings asks, once the record is this one."""
    if record is not None:
        text = record if isinstance(record, str) else json.dumps(record)
        (settings.data_dir / RECORD).write_text(text)
    return await asyncio.to_thread(places.running_url, settings)


def ended_process() -> int:
    """Returns the number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


async def test_a_record_that_names_no_running_service_misleads_nobody(
    recorded: Settings, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "HEALTH_SECONDS", 240.0)
    assert (recorded.data_dir / RECORD).stat().st_mode & 0o077 == 0
    assert await found_by(recorded) == server
    record = json.loads((recorded.data_dir / RECORD).read_text())
    for stale in ({"process": ended_process()}, {"started": record["started"] - 1}):
        assert await found_by(recorded, record | stale) == "", stale
    for text in ("", "[]", "{}", '{"process": "x"}', "\xff"):
        assert await found_by(recorded, text) == "", text
    assert await found_by(recorded, record) == server
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(places, "HEALTH_SECONDS", 0.1)
        assert await found_by(recorded, record | {"url": f"http://127.0.0.1:{silent.getsockname()[1]}"}) == ""
    assert await found_by(replace(recorded, database_url="postgresql://nobody@127.0.0.1:1/none")) == ""


def test_a_service_takes_back_its_own_record_alone(recorded: Settings) -> None:
    path = recorded.data_dir / RECORD
    own = path.read_text()
    path.write_text(json.dumps(json.loads(own) | {"started": 0}))
    places.remove_record(recorded)
    assert path.exists()
    path.write_text(own)
    places.remove_record(recorded)
    assert not path.exists()


def test_a_command_asks_the_service_that_runs_on_the_data_directory(settings: Settings, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    own = {"DATA_DIR": str(tmp_path), "DATABASE_URL": settings.database_url, "EMBEDDING_PROVIDER": "noop"}
    environment = kept | {f"PRIORS_{name}": value for name, value in own.items()} | {"PRIORS_API_KEY": "secret"}

    def call(*words: str, **given: str) -> subprocess.CompletedProcess[str]:
        return forked.run(words, environment | given)

    def asked_by() -> str:
        """Returns who has asked for a cue that a command stores."""
        name = f"w-{uuid4().hex[:8]}"
        words = ("kind=correction", f"trigger=before step {uuid4().hex}", "lesson=Look twice.", "-w", name)
        done = call("api", "POST", "/api/cues", *words)
        assert done.returncode == 0, done.stderr
        shown = call("api", "GET", "/api/audit", "limit=1", "-w", name, "--owner", "--json")
        return str(json.loads(shown.stdout)["entries"][0]["who"])

    serving = environment | {"PRIORS_PORT": "0"}
    with subprocess.Popen(
        [PRIORS, "serve"], env=serving, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert any("connect claude-code" in line for line in process.stdout)
            assert json.loads((tmp_path / RECORD).read_text())["process"] == process.pid
            assert asked_by() == "key PRIORS_API_KEY"
            for given, words, reason in (
                ({"PRIORS_API_KEY": ""}, (), "asks for an API key; set PRIORS_API_KEY, or give --key"),
                ({}, ("--key", "wrong"), "refuses this API key: it is wrong, revoked or expired"),
            ):
                refused = call("history", "x", *words, **given)
                assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (2, "", 1)
                assert reason in refused.stderr
            assert call("history", "x", "--key", "secret", PRIORS_API_KEY="").returncode == 0
        finally:
            process.terminate()
    assert not (tmp_path / RECORD).exists()
    assert asked_by() == "cli"


def test_a_command_in_a_folder_without_a_store_makes_none(tmp_path: Path) -> None:
    place = tmp_path / "project" / "app"
    place.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    kept |= {"XDG_DATA_HOME": str(tmp_path / "share"), "XDG_STATE_HOME": str(tmp_path / "state")}
    for words in (
        ["history", "x"],
        ["workspace", "list"],
        ["store", "doctor"],
        ["store", "migrate"],
        ["worker"],
        ["mcp"],
    ):
        done = forked.run(words, kept, within=place)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
        assert done.stderr.startswith(f"priors: there is no store in {tmp_path / 'share' / 'priors'}; ")
    # What would make a store makes none where a service is named whose store is meant.
    named = {**kept, "PRIORS_URL": "http://127.0.0.1:9"}
    done = forked.run(["ingest", str(place)], named, within=place)
    assert (done.returncode, "http://127.0.0.1:9" in done.stderr) == (2, True), done
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "environ", "reason"),
    [
        (["--key", "any"], {}, "--key is for a service, and none runs here"),
        (["--url", "http://127.0.0.1:8OOO"], {}, "http://127.0.0.1:8OOO: "),
        (["--url", "http://priors.invalid"], {"ALL_PROXY": "socks5://127.0.0.1:1"}, "http://priors.invalid: "),
    ],
    ids=["a key without a service", "no port", "a proxy that needs a package"],
)
def test_what_names_no_service_is_refused_in_one_line(
    words: list[str], environ: dict[str, str], reason: str, tmp_path: Path
) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    command = [str(PRIORS), "search", "x", *words]
    done = subprocess.run(command, cwd=tmp_path, env={**kept, **environ}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    assert done.stderr.startswith(f"priors: {reason}")
