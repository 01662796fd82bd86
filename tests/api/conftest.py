"""A real server over a real socket, with the services that all tests share."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
import pytest_asyncio

from app.api.server import address, bound_socket, serve
from app.settings import Settings
from app.wiring import Services


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(services: Services, settings: Settings) -> AsyncIterator[str]:
    """The address of a running service, without a worker: other tests share the store and its waiting memories."""
    services = replace(services, settings=replace(settings, embedded_worker=False))
    stop, ready = asyncio.Event(), asyncio.Event()
    listening = bound_socket(settings)
    serving = asyncio.create_task(serve(services, listening, stop=stop, on_ready=lambda _: ready.set()))
    await ready.wait()
    yield address(listening)
    stop.set()
    await serving
    listening.close()


@pytest.fixture
def headers(workspace: str) -> dict[str, str]:
    """The header that names the test's own workspace."""
    return {"X-Workspace": workspace}


@pytest_asyncio.fixture(loop_scope="session")
async def client(server: str, headers: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client in the test's own workspace."""
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=60) as client:
        yield client
