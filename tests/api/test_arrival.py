"""Requests that stop in the middle."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest_asyncio
from structlog.testing import capture_logs

from app.wiring import Services
from tests.conftest import serving

HEAD = b"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n"


@asynccontextmanager
async def connected(server: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    where = urlsplit(server)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    yield reader, writer
    writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def impatient(services: Services) -> AsyncIterator[str]:
    """The address of a service that waits for half a second."""
    async with serving(replace(services, settings=replace(services.settings, read_timeout=0.5))) as where:
        yield where


async def test_a_body_that_stops_is_answered_and_ended(impatient: str) -> None:
    async with connected(impatient) as (reader, writer):
        writer.write(HEAD + b'\r\n{"query": "pri')
        answer = (await reader.read()).decode()
    assert answer.startswith("HTTP/1.1 408 ")
    assert "application/problem+json" in answer
    assert "the rest of the request did not come within 0.5 s" in answer


async def test_a_head_that_stops_is_ended(impatient: str) -> None:
    for sent in (b"", b"GET /health HT", HEAD):
        async with connected(impatient) as (reader, writer):
            writer.write(sent)
            assert await reader.read() == b""


async def test_the_head_of_a_later_request_that_stops_is_ended(impatient: str) -> None:
    async with connected(impatient) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea")
        answer = (await reader.read()).decode()
    assert answer.count("HTTP/1.1 200 ") == 1


COUNTED = re.compile(r'^priors_requests_total\{method="POST",route="/api/search",status="(\d+)"\} (\S+)$', re.MULTILINE)


async def test_a_client_that_goes_away_is_no_failure(server: str) -> None:
    async def counts() -> dict[str, str]:
        async with httpx.AsyncClient(base_url=server) as client:
            return dict(COUNTED.findall((await client.get("/metrics")).text))

    before = await counts()
    with capture_logs() as logs:
        async with connected(server) as (_, writer):
            writer.write(HEAD + b'\r\n{"query": "pri')
            await writer.drain()
        while (after := await counts()) == before:  # noqa: ASYNC110 - the metrics are asked, no event tells
            await asyncio.sleep(0.02)
    assert after.get("500") == before.get("500")
    assert after["499"] != before.get("499")
    assert not [entry for entry in logs if entry["log_level"] == "error" or "exc_info" in entry]
