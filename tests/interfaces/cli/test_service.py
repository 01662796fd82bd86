"""The service that a command asks: each command prints the same over HTTP and in its own process."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest
import pytest_asyncio
from priors_client import AsyncClient
from priors_client.models import CueInput, MessageInput

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


class Served:
    """`priors serve` as a process, once it listens."""

    def __init__(self, folder: Path, database_url: str, **settings: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
        given = {"DATA_DIR": str(folder), "DATABASE_URL": database_url, "EMBEDDING_PROVIDER": "noop", **settings}
        self.folder = folder
        self.environment = kept | {f"PRIORS_{name}": value for name, value in given.items()}
        self.process = subprocess.Popen(
            [PRIORS, "serve"],
            env=self.environment | {"PRIORS_PORT": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "connect claude-code" in line:
                break

    def call(self, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        given = {f"PRIORS_{name}": value for name, value in settings.items()}
        return forked.run(words, self.environment | given)

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / RECORD).read_text())
        return found

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def serve(tmp_path: Path, settings: Settings) -> Iterator[Callable[..., Served]]:
    """Starts services on data directories of this test; all of them end with it."""
    services: list[Served] = []

    def start(name: str = "one", **given: str) -> Served:
        services.append(Served(tmp_path / name, settings.database_url, **given))
        return services[-1]

    yield start
    for service in services:
        service.end()


def asked_by(service: Served, call: Served) -> str:
    """Returns who has asked for a cue that `call`, beside `service`, stores."""
    name = f"w-{uuid4().hex[:8]}"
    words = ("kind=correction", f"trigger=before step {uuid4().hex}", "lesson=Look twice.", "-w", name)
    done = call.call("api", "POST", "/api/cues", *words)
    assert done.returncode == 0, done.stderr
    shown = service.call("api", "GET", "/api/audit", "limit=1", "-w", name, "--owner", "--json")
    return str(json.loads(shown.stdout)["entries"][0]["who"])


def test_a_command_asks_the_service_that_runs_on_the_data_directory(serve: Callable[..., Served]) -> None:
    service = serve()
    assert psutil.pid_exists(service.record()["process"])
    assert (service.folder / RECORD).stat().st_mode & 0o077 == 0
    assert asked_by(service, service) == "anyone"
    service.end()
    assert not (service.folder / RECORD).exists()
    assert asked_by(service, service) == "cli"


def test_the_record_of_a_killed_service_misleads_nobody(serve: Callable[..., Served]) -> None:
    service = serve()
    service.end(signal.SIGKILL)
    record = service.record()
    assert asked_by(service, service) == "cli"
    reused = {**record, "process": os.getpid()}
    (service.folder / RECORD).write_text(json.dumps(reused))
    assert asked_by(service, service) == "cli"
    for text in ("", "[]", "{}", '{"process": "x"}', "\xff"):
        (service.folder / RECORD).write_text(text)
        assert asked_by(service, service) == "cli"


def test_an_address_that_does_not_answer_as_priors_is_not_asked(serve: Callable[..., Served]) -> None:
    service = serve()
    record = service.record()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        (service.folder / RECORD).write_text(json.dumps({**record, "url": f"http://127.0.0.1:{port}"}))
        assert asked_by(service, service) == "cli"


def test_the_service_of_another_data_directory_or_database_is_not_asked(serve: Callable[..., Served]) -> None:
    one, two = serve("one"), serve("two")
    assert one.record()["url"] != two.record()["url"]
    two.end()
    assert one.record()["process"] == one.process.pid
    assert asked_by(one, one) == "anyone"
    assert asked_by(one, two) == "cli"
    other = one.call("search", "x", DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert "database does not answer" in other.stderr


def test_a_service_that_refuses_a_key_says_so_in_one_line(serve: Callable[..., Served]) -> None:
    service = serve(API_KEY="secret")
    assert asked_by(service, service) == "key PRIORS_API_KEY"
    for settings, words, reason in (
        ({"API_KEY": ""}, (), "asks for an API key; set PRIORS_API_KEY, or give --key"),
        ({}, ("--key", "wrong"), "refuses this API key: it is wrong, revoked or expired"),
    ):
        refused = service.call("history", "x", *words, **settings)
        assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (2, "", 1)
        assert reason in refused.stderr
    assert service.call("history", "x", "--key", "secret", API_KEY="").returncode == 0


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
