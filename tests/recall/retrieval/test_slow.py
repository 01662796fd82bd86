"""A slow recall is logged with its steps and the plans of its statements, after its answer, without its text."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from app.interfaces.http import context
from app.wiring import Services
from tests.cluster import is_cluster
from tests.conftest import serving
from tests.interfaces.http.calls import embed, post

QUERY = "Which valve was replaced at the pumphouse"
STEPS = {"recall.embed", "recall.survey", "recall.lexical", "recall.candidates", "recall.rank"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def slow(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service to which every recall is slow."""
    headers = {"X-Workspace": "test-slow"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "SLOW_RECALL_MS", 0.001)
        async with (
            serving(services) as where,
            httpx.AsyncClient(base_url=where, headers=headers, timeout=60) as client,
        ):
            note = {"kind": "note", "body": "The gate valve of the pumphouse was replaced.", "tags": ["pumps"]}
            await post(client, "/api/memories", note)
            await post(client, "/api/memories", {"kind": "note", "body": "The valve of Ada leaks.", "user": "ada"})
            await embed(client, services)
            yield client


async def logged(client: httpx.AsyncClient, asked: dict[str, Any], **headers: str) -> tuple[str, dict[str, Any]]:
    """Returns the mode of a recall, and the line that the log has of it."""
    with capture_logs() as lines:
        found = await post(client, "/api/search", {"query": QUERY, **asked}, **headers)
        while True:
            for line in lines:
                if line["event"] == "slow recall" and line["recall_id"] == found["recall_id"]:
                    return found["mode"], dict(line)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"filters": {"tags": ["pumps"], "kinds": ["note"]}},
        {"filters": {"since": "2020-01-01T00:00:00Z"}, "language": "russian", "preset": "classic"},
        {"user": "ada"},
        {"query": "1 ? !"},
        {"query": "the and of"},
    ],
    ids=str,
)
async def test_a_slow_recall_has_its_steps_and_plans(
    slow: httpx.AsyncClient, asked: dict[str, Any], server_url: str
) -> None:
    mode, line = await logged(slow, asked)
    assert "recall.embed" in line["steps"]
    assert "pump" not in str(line).lower()
    if is_cluster(server_url):
        assert line["without_plans"] == "NotSupportedError: Citus has no generic plans of distributed tables"
        return
    assert line.get("without_plans") is None
    assert "workspaces" in line["plans"]["survey"]
    if mode == "hybrid":
        assert set(line["steps"]) >= STEPS
        assert "embeddings_" in line["plans"]["candidates"]
        assert "workspace_id = $" in "".join(line["plans"].values())
        assert set(line["plans"]) == {"survey", "lexical", "candidates"}


async def test_an_empty_workspace_has_no_plan(slow: httpx.AsyncClient) -> None:
    _, line = await logged(slow, {}, **{"X-Workspace": "test-slow-empty"})
    assert line["plans"] == {}


async def test_a_quick_recall_is_not_slow(client: httpx.AsyncClient) -> None:
    with capture_logs() as lines:
        await post(client, "/api/search", {"query": QUERY})
    assert not [line for line in lines if line["event"] == "slow recall" and line["took_ms"] < 1000]
