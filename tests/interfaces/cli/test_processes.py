"""Several API processes of one service: `priors serve --workers 2`, with real processes on a real store."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest
from typer.testing import CliRunner

from app.interfaces.cli.commands import app
from tests.conftest import data_folder, store_database
from tests.interfaces.mcp.agent import NEW, OLD, agent, told

PRIORS = "from app.interfaces.cli import main; main()"
COUNT = 2
NOTE = {"kind": "note", "body": "The staging database is restored from the dump every Monday."}
ADMIN_KEY, API_KEY = "the admin's", "everybody's"


class Service:
    """`priors serve --workers 2` in a process group of its own, once all of its processes serve."""

    def __init__(self, folder: Path, database_url: str, *options: str, **settings: str) -> None:
        self.log = folder / f"log-{time.monotonic_ns()}"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PRIORS, "serve", "--workers", str(COUNT), *options],
                env=environment(folder, database_url, **settings),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.greeting = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.greeting += line
            if "connect claude-code" in line:
                break
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.greeting)
        assert found, self.log.read_text()
        self.address, self.port = found[0], int(found[1])

    def pids(self) -> set[int]:
        """The API processes that serve: each has a line in the log once its application has started."""
        # The last line may be half written.
        written = self.log.read_text().rpartition("\n")[0].splitlines()
        lines = [json.loads(line) for line in written if line.startswith("{")]
        started = {line["process"] for line in lines if line["event"] == "Application startup complete."}
        return {pid for pid in started if psutil.pid_exists(pid) and self._serves(pid)}

    def _serves(self, pid: int) -> bool:
        try:
            process = psutil.Process(pid)
            return bool(process.ppid() == self.process.pid and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def await_pids(self, reached: Callable[[set[int]], bool]) -> set[int]:
        while not reached(found := self.pids()):
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        return found

    @contextmanager
    def one_each(self) -> Iterator[dict[int, "Caller"]]:
        """A kept connection to each process."""
        callers: list[Caller] = []
        found: dict[int, Caller] = {}
        try:
            while len(found) < COUNT:
                callers.append(Caller(self))
                found.setdefault(callers[-1].pid(), callers[-1])
                # uvicorn closes a connection that is idle for five seconds.
                for caller in found.values():
                    caller.call("GET", "/health")
            yield found
        finally:
            for caller in callers:
                caller.close()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """The exit code; returns once no process holds the output any more."""
        assert self.process.stdout is not None
        self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait()


class Caller:
    """A kept connection to one process of a service."""

    def __init__(self, service: Service) -> None:
        self._connection = HTTPConnection("127.0.0.1", service.port)
        self._connection.connect()
        self._service = service

    def call(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        sent = {"authorization": f"Bearer {ADMIN_KEY}", "content-type": "application/json", **headers}
        self._connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = self._connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if "json" in answer.headers.get("content-type", "") else text.decode()

    def close(self) -> None:
        self._connection.close()

    def pid(self) -> int:
        """The process that has taken the connection."""
        self.call("GET", "/health")
        return holder(self._service, self._connection.sock)[0]


def holder(service: Service, connection: socket.socket) -> list[int]:
    """The process that has taken a connection, if any has."""
    local = connection.getsockname()[1]
    return [
        pid
        for pid in service.pids()
        for one in psutil.Process(pid).net_connections(kind="tcp")
        if one.raddr and one.raddr.port == local
    ]


def environment(folder: Path, database_url: str, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    given = {"DATA_DIR": str(folder), "DATABASE_URL": database_url, "PORT": "0"}
    keys = {"API_KEY": API_KEY, "ADMIN_KEY": ADMIN_KEY}
    return kept | {f"PRIORS_{name}": value for name, value in (given | keys | settings).items()}


def refused(folder: Path, database_url: str, *words: str, **settings: str) -> str:
    """What a start says that ends with exit code 2."""
    result = subprocess.run(
        [sys.executable, "-c", PRIORS, *words],
        env=environment(folder, database_url, **settings),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2, result.stderr
    return result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Path:
    return data_folder(tmp_path_factory.mktemp("processes"), model_folder)


@pytest.fixture(scope="module")
def store_url(server_url: str, store_template: str) -> Iterator[str]:
    with store_database(server_url, store_template) as url:
        yield url


@pytest.fixture(scope="module")
def service(folder: Path, store_url: str) -> Iterator[Service]:
    """A service that tests share."""
    service = Service(folder, store_url)
    yield service
    assert service.end() == 0


def test_all_processes_answer_before_the_start_is_announced_once(service: Service) -> None:
    assert service.greeting.count("Priors serves on") == 1
    assert len(service.pids()) == COUNT
    with service.one_each() as callers:
        for pid, caller in callers.items():
            status, ready = caller.call("GET", "/ready", **{"x-request-id": f"of-{pid}"})
            assert (status, ready["model"]) == (200, True)
        # A line of the log is written after the answer.
        for pid in callers:
            while not (lines := [line for line in service.log.read_text().splitlines() if f'"of-{pid}"' in line]):
                time.sleep(0.01)
            assert f'"process": {pid}' in lines[0]


def test_what_one_process_writes_the_others_see_at_once(service: Service) -> None:
    with service.one_each() as callers:
        one, other = callers.values()
        ids = one.call("POST", "/api/memories", NOTE)[1]["ids"]
        assert other.call("GET", f"/api/memories/{ids[0]}")[0] == 200
        found = other.call("POST", "/api/search", {"query": "restore of staging"})[1]
        assert [hit["id"] for hit in found["hits"]] == ids


def test_a_revoked_key_is_refused_by_every_process(service: Service) -> None:
    with service.one_each() as callers:
        one, other = callers.values()
        made = one.call("POST", "/api/keys", {"name": "scout", "scopes": ["read"]})[1]
        bearer = {"authorization": f"Bearer {made['secret']}"}
        assert [caller.call("GET", "/api/status", **bearer)[0] for caller in (one, other)] == [200, 200]
        assert one.call("DELETE", f"/api/keys/{made['key']['id']}")[0] == 200
        assert one.call("GET", "/api/status", **bearer)[0] == 401
        while (status := other.call("GET", "/api/status", **bearer)[0]) != 401:
            assert status == 200
            time.sleep(0.1)


def test_counters_are_those_of_all_processes(service: Service) -> None:
    def counted(caller: Caller) -> float:
        shown = caller.call("GET", "/metrics")[1]
        found = re.search(r'priors_requests_total\{method="GET",route="/api/workspaces",status="200"\} (\S+)', shown)
        assert "pid=" not in shown
        assert "Warning" not in service.log.read_text()
        assert len(re.findall("^priors_workers ", shown, re.MULTILINE)) == 1
        return float(found[1]) if found else 0.0

    with service.one_each() as callers:
        before = counted(next(iter(callers.values())))
        for caller in callers.values():
            caller.call("GET", "/api/workspaces")
        assert {counted(caller) for caller in callers.values()} == {before + COUNT}


def test_sessions_of_agents_go_on_when_every_process_has_been_replaced(folder: Path, store_url: str) -> None:
    service = Service(folder, store_url, API_KEY="", ADMIN_KEY="")

    async def talk() -> list[str]:
        async with agent(service.address, "new", NEW) as new, agent(service.address, "old", OLD) as old:
            for client in (new, old):
                await told(client, "remember", body=NOTE["body"])
            first = service.pids()
            for pid in first:
                os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(service.await_pids, lambda now: len(now) == COUNT and not now & first)
            return [await told(client, "recall", query="restore of staging") for client in (new, old)]

    assert all("staging database" in answer for answer in asyncio.run(talk()))
    assert service.end() == 0


class Asking:
    """Clients that ask one question after another, each on a connection of its own."""

    def __init__(self, service: Service, clients: int) -> None:
        self.answers: list[int] = []
        self.broken = 0
        self._service, self._stop = service, threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def __enter__(self) -> "Asking":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def await_more(self, answers: int) -> None:
        reached = len(self.answers) + answers
        while len(self.answers) < reached:
            time.sleep(0.01)

    def _ask(self) -> None:
        while not self._stop.is_set():
            with suppress(OSError, HTTPException), closing(Caller(self._service)) as caller:
                while not self._stop.is_set():
                    self.answers.append(caller.call("POST", "/api/search", {"query": "restore of staging"})[0])
                continue
            self.broken += 1


def test_a_killed_process_takes_only_its_own_requests_with_it(service: Service) -> None:
    first = service.pids()
    with Asking(service, clients=6) as asking:
        asking.await_more(50)
        os.kill(min(first), signal.SIGKILL)
        service.await_pids(lambda now: len(now) == COUNT and min(first) not in now)
        asking.await_more(50)
    assert set(asking.answers) == {200}
    assert asking.broken <= 6
    assert max(first) in service.pids()


def test_a_stop_lets_a_request_finish(folder: Path, store_url: str) -> None:
    service = Service(folder, store_url)
    body = json.dumps(NOTE).encode()
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        head = (
            f"POST /api/memories HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {API_KEY}\r\ncontent-length: {len(body)}"
        )
        connection.sendall(f"{head}\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\r\n".encode())
        # It says so once the application waits for the body.
        assert b" 100 " in connection.recv(1_000)
        service.process.send_signal(signal.SIGTERM)
        while service.log.read_text().count("Shutting down") < COUNT:
            time.sleep(0.01)
        connection.sendall(body)
        assert b" 200 " in connection.recv(1_000).splitlines()[0]
    assert service.ended() == 0


def test_ctrl_c_ends_all(folder: Path, store_url: str) -> None:
    service = Service(folder, store_url)
    # A terminal interrupts all processes of its foreground group.
    os.killpg(service.process.pid, signal.SIGINT)
    assert service.ended() == 0
    assert service.log.read_text().count("Application shutdown complete.") == COUNT


def test_a_stop_while_the_model_is_fetched_is_a_normal_end(folder: Path, store_url: str) -> None:
    fetching = """
import asyncio
from app.interfaces.http.serving import server
from app.interfaces.cli import main

async def fetch(_services):
    print("it is fetched", flush=True)
    await asyncio.sleep(600)

server.try_model = fetch
main()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", fetching, "serve", "--workers", "2"],
        env=environment(folder, store_url),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "it is fetched\n"
    process.terminate()
    assert process.communicate()[0] == ""
    assert process.returncode == 0


@pytest.fixture
def default_hangup() -> Iterator[None]:
    """A process that starts now ends at SIGHUP, even if the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("default_hangup")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_when_the_supervisor_is_killed_the_others_end(folder: Path, store_url: str, number: signal.Signals) -> None:
    service = Service(folder, store_url)
    assert service.end(number) == -number
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", service.port))


def test_what_keeps_one_process_from_starting_keeps_several(folder: Path, store_url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for count in ("1", "2"):
            said = refused(folder, store_url, "serve", "--workers", count, PORT=port)
            assert said.startswith(f"priors: cannot serve on 127.0.0.1:{port}: Address already in use")
    away = "postgresql://nobody@127.0.0.1:9/priors"
    one, two = (refused(folder, away, "serve", "--workers", count) for count in ("1", "2"))
    assert one == two
    assert one.startswith("priors: ")


PIECES = """
import sys

class Pieces:
    written = []
    def write(self, text):
        self.written.append(text)
    def flush(self):
        pass
    def isatty(self):
        return False

sys.stderr = Pieces()
from app.interfaces.cli.running import configure_log
from app.settings import Settings
configure_log(Settings(log_level="info"))
import logging, structlog
structlog.get_logger().info("one", number=1)
logging.getLogger("library").warning("two")
print([piece.count("\\n") for piece in Pieces.written])
"""
"""Prints how many line ends each write to standard error has."""


def test_a_line_of_the_log_is_one_write_so_that_processes_do_not_mix_theirs() -> None:
    done = subprocess.run([sys.executable, "-c", PIECES], capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 1]\n"


@pytest.mark.parametrize("count", ["0", "-1", "65", "two"])
def test_a_number_of_processes_that_cannot_be(count: str) -> None:
    said = CliRunner().invoke(app, ["serve", "--workers", count])
    assert said.exit_code == 2
    assert "--workers" in said.stderr


@pytest.mark.parametrize("name", ["application", "unmade"])
def test_processes_that_cannot_start_are_not_started_for_ever(folder: Path, store_url: str, name: str) -> None:
    application = f"tests.interfaces.cli.failing:{name}"
    failing = f"from app.interfaces.cli import main, serving; serving._APPLICATION = {application!r}; main()"
    result = subprocess.run(
        [sys.executable, "-c", failing, "serve", "--workers", "2"],
        env=environment(folder, store_url),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == "priors: an API process cannot start; its log says why"
    assert "nothing works here" in result.stderr
