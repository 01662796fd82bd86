"""Requests whose client goes away in the middle."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx
from structlog.testing import capture_logs

HEAD = b"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n"


@asynccontextmanager
async def connected(server: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    where = urlsplit(server)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    yield reader, writer
    writer.close()


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
