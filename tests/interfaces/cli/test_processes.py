"""Several API processes on one store: uvicorn's own workers with the application that the command line serves."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import data_folder, store_database
from tests.interfaces.cli.test_connect import free_port

NOTE = {"kind": "note", "body": "The staging database is restored from the dump every Monday."}
UVICORN = ("uvicorn", "--factory", "app.interfaces.cli.serving:application", "--workers", "2", "--host", "127.0.0.1")


@pytest.mark.test_all("processes")
def test_uvicorn_serves_by_its_own_workers(
    tmp_path: Path, model_folder: Path, server_url: str, store_template: str
) -> None:
    port, log = free_port(), tmp_path / "log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    with store_database(server_url, store_template) as url, log.open("wb") as written:
        given = {"DATA_DIR": str(data_folder(tmp_path, model_folder)), "DATABASE_URL": url}
        process = subprocess.Popen(
            [sys.executable, "-m", *UVICORN, "--port", port],
            env=kept | {f"PRIORS_{name}": value for name, value in given.items()},
            stderr=written,
        )
        try:
            while log.read_text().count("Application startup complete.") < 2:
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            stored = answer(port, "/api/memories", NOTE)
            found = [answer(port, "/api/search", {"query": "restore of staging"}) for _ in range(8)]
            assert {hit["id"] for one in found for hit in one["hits"]} == set(stored["ids"])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    assert log.read_text().count("Application shutdown complete.") == 2


def answer(port: str, path: str, body: object) -> Any:
    """What a process answers; each request has a connection of its own."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as found:  # noqa: S310 - our own
        return json.load(found)


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
