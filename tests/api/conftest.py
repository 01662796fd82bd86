"""Clients of a real server."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio


@pytest.fixture
def headers(workspace_name: str) -> dict[str, str]:
    """The header that names the test's own workspace."""
    return {"X-Workspace": workspace_name}


@pytest_asyncio.fixture(loop_scope="session")
async def client(server: str, headers: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client in the test's own workspace."""
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=60) as client:
        yield client
