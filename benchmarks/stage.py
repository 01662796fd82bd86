"""The stage of a benchmark: an embedded Postgres of its own, services, and a real server process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.foundation.db.database import Database
from app.foundation.db.migrations import upgrade
from app.foundation.models.providers import provider_from
from app.foundation.models.tokens import BundledTokenCounter
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.interfaces.http.serving.server import bound_socket
from app.settings import Settings
from app.storage.index.service import Embedder
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.fakes.standby import Standby

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def rows_of(path: Path) -> list[Mapping[str, Any]]:
    """Reads the objects of a file of JSON lines; blank lines are no rows."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@asynccontextmanager
async def stage(kept: Path | None = None, settings: Settings | None = None) -> AsyncIterator[Services]:
    """Opens services over a migrated store, the model loaded: the one that is `kept`, or an empty, temporary one.

    `settings` say which embedding model; without them it is the bundled one.
    """
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="priors-benchmark-") as folder:
        data = Path(folder)
        with EmbeddedPostgres(data) as server:
            settings = replace(settings or Settings(), data_dir=data, database_url=server.start(), log_level="error")
            await asyncio.to_thread(upgrade, settings.database_url)
            async with opened(settings) as services:
                yield services


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Services]:
    """Opens services over a migrated store, with the model loaded."""
    provider = provider_from(settings)
    await provider.start()
    database = Database(settings.database_url, pool_size=8)
    await Embedder(database=database, provider=provider).serving_model()
    yield Services(settings=settings, database=database, provider=provider, counter=BundledTokenCounter())
    await provider.close()
    await database.close()


async def workspace_of(services: Services, name: str) -> Workspace:
    """Returns the workspace of that name, made now if it does not exist yet."""
    return await services.workspaces.get_or_create(await services.workspaces.resolve(name))


@contextmanager
def service(settings: Settings) -> Iterator[tuple[str, int]]:
    """Runs a server process on that store; yields its address and process id."""
    listening = bound_socket(Settings(port=0))
    port = listening.getsockname()[1]
    listening.close()
    address = f"http://127.0.0.1:{port}"
    with _process("serve", settings, PRIORS_PORT=str(port)) as process:
        _await_ready(address, process)
        yield address, process.pid


@contextmanager
def worker(settings: Settings) -> Iterator[int]:
    """Runs a worker process on that store; yields its process id."""
    with _process("worker", settings) as process:
        yield process.pid


@contextmanager
def replica(settings: Settings) -> Iterator[Standby]:
    """Runs a streaming replica of that store."""
    with (
        tempfile.TemporaryDirectory(prefix="priors-replica-") as folder,
        Standby(settings.data_dir / "postgres", settings.database_url, Path(folder) / "postgres") as standby,
    ):
        yield standby


@contextmanager
def _process(command: str, settings: Settings, **more: str) -> Iterator["subprocess.Popen[str]"]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")},
        "PRIORS_DATABASE_URL": settings.database_url,
        "PRIORS_DATA_DIR": str(settings.data_dir),
        "PRIORS_LOG_LEVEL": "error",
        "PRIORS_EMBEDDED_WORKER": str(settings.embedded_worker).lower(),
        **more,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", "from app.interfaces.cli import main; main()", command],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        # A stopped process gets the signal once it goes on.
        process.send_signal(signal.SIGCONT)
        process.communicate()


def _await_ready(address: str, process: "subprocess.Popen[str]") -> None:
    # The greeting comes once all API processes serve, and any of them answers.
    for line in process.stdout or ():
        if address in line:
            break
    while process.poll() is None:
        if _is_ready(address):
            return
        time.sleep(0.05)
    raise RuntimeError("the service ended before it was ready")


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/ready") as answer:  # noqa: S310 - our own address
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
