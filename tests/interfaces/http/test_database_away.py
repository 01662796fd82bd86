"""While the database is away, a request that cannot be taken is still told so."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio

from app.foundation.db.database import Database
from app.interfaces.http.serving.application import create_app
from app.wiring import Services

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@pytest_asyncio.fixture(loop_scope="session")
async def cut_off(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application whose database does not answer."""
    database = Database(NOWHERE, pool_size=1)
    app = create_app(services.settings, services=replace(services, database=database))
    transport = httpx.ASGITransport(cast("Any", app), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
        yield client
    await database.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/api/history", {"query": "prices", "preset": "none"}, "preset"),
        ("POST", "/api/search", {"query": " "}, "query"),
        ("GET", "/api/memories?cursor=x", None, "cursor"),
        ("GET", "/api/memories?sort=score&cursor=x", None, "cursor"),
        ("GET", "/api/sources?cursor=x", None, "cursor"),
        ("GET", "/api/runs?cursor=x", None, "cursor"),
    ],
)
async def test_a_bad_request_is_told(cut_off: httpx.AsyncClient, method: str, path: str, body: Any, field: str) -> None:
    answer = await cut_off.request(method, path, json=body)
    assert answer.status_code == 400, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_a_good_request_is_told_that_the_database_is_away(cut_off: httpx.AsyncClient) -> None:
    answer = await cut_off.post("/api/history", json={"query": "prices"})
    assert answer.status_code == 503, answer.text
    assert "the database does not answer" in answer.json()["detail"]
