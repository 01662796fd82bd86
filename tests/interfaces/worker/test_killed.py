"""A worker process that is killed with SIGKILL while a language model makes it wait over two compressions."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from app.intake.runs.observations.observation import Outcome
from app.settings import Settings
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import workspace_in
from tests.fakes.chat import GOOD, Answer, Endpoint, said
from tests.interfaces.worker.working import working

pytestmark = pytest.mark.test_all("kills")

PRIORS = Path(sys.executable).with_name("priors")
TAKEN_UP_SECONDS = 20.0
"""The longest time that users are promised until another worker has made the compressions of a killed one."""


@asynccontextmanager
async def worker_process(settings: Settings, model: str) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    given = {
        "PRIORS_DATABASE_URL": settings.database_url,
        "PRIORS_DATA_DIR": str(settings.data_dir),
        "PRIORS_LLM_BASE_URL": model,
        "PRIORS_LLM_TIMEOUT": "600",
    }
    process = await asyncio.create_subprocess_exec(PRIORS, "worker", env={**environment, **given})
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def is_made(services: Services, workspace: Workspace, observation_id: UUID) -> bool:
    found = await services.observations.get(workspace, observation_id)
    return found.outcome is not None


async def test_others_take_up_the_compressions_of_a_killed_worker(own_services: Services) -> None:
    endpoint, over = Endpoint(), threading.Event()

    def silent() -> Answer:
        over.wait()
        return said(GOOD)

    endpoint.answers = [silent]
    workspace = await workspace_in(own_services.database, "w")
    outputs = [f"The scout verified {number} producers. Three lost their licence in 2025." for number in (12, 40)]
    outcomes = [Outcome(task=f"t{place}", output=output) for place, output in enumerate(outputs)]
    asked = [await own_services.observations.request(workspace, outcome) for outcome in outcomes]
    async with worker_process(own_services.settings, endpoint.url) as process:
        while len(endpoint.requests) < len(outcomes):
            assert process.returncode is None
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
    killed = time.monotonic()
    async with working(own_services):
        for observation_id in asked:
            while not await is_made(own_services, workspace, observation_id):  # noqa: ASYNC110 - the database tells it
                await asyncio.sleep(0.05)
        waited = time.monotonic() - killed
    over.set()
    endpoint.close()
    assert waited <= TAKEN_UP_SECONDS
