"""An agent: the SDK's own client of a service, in a workspace, with short ways to call tools."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

OLD, NEW = "legacy", "2026-07-28"
"""The handshake of the earlier revisions, and the revision without sessions."""
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@asynccontextmanager
async def agent(server: str, workspace: str, mode: str = NEW) -> AsyncIterator[Client]:
    """Yields a client of the service in a workspace."""
    async with (
        httpx2.AsyncClient(headers={"x-workspace": workspace}, timeout=60) as http,
        Client(streamable_http_client(f"{server}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def told(client: Client, tool: str, **given: object) -> str:
    """Returns the answer of a tool."""
    failed, text = await called(client, tool, **given)
    assert not failed, text
    return text


async def called(client: Client, tool: str, **given: object) -> tuple[bool, str]:
    """Returns True for an error, and the text of the answer."""
    answer = await client.call_tool(tool, dict(given))
    (content,) = answer.content
    assert content.type == "text"
    return bool(answer.is_error), content.text


def ids_in(text: str) -> list[str]:
    """Returns the ids that a text names, in its order."""
    return ID.findall(text)
