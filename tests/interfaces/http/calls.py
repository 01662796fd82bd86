"""Calls of the API, and the report of a run that tests remember."""

from typing import Any

import httpx

from app.wiring import Services

OUTPUT = """# Market of food supplements in Russia

The market of food supplements in Russia reached 221 billion rubles in 2025, after 198 billion in 2024. Pharmacies sell
58 % of it, marketplaces 31 %. Evalar leads with a share of 17 %, followed by Otcpharm and Solgar.

## Actors

The scout verified twelve producers in the state register. Three of them lost their licence in March 2025. The director
accepted the list after the second round.

## Method

The total addressable market was derived from retail audits, not from producers' statements. The judge had asked for
this in each of the versions before.
"""
NAMES_OF_BRANCHES = (
    "Name the branch after its task.",
    "Give each branch the name of the task that it is for.",
    "The branch must say which task it is for.",
)
"""Corrections of one kind, in other words each."""


async def post(client: httpx.AsyncClient, path: str, body: Any, **headers: str) -> dict[str, Any]:
    answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code in {200, 202}, answer.text
    return dict(answer.json())


async def patch(client: httpx.AsyncClient, path: str, body: Any, **headers: str) -> dict[str, Any]:
    answer = await client.patch(path, json=body, headers=headers)
    assert answer.status_code < 300, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


async def listed(client: httpx.AsyncClient, state: str) -> list[dict[str, Any]]:
    """Returns the memories of a state."""
    memories: list[dict[str, Any]] = (await get(client, f"/api/memories?state={state}"))["memories"]
    return memories


async def get(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def embed(client: httpx.AsyncClient, services: Services) -> None:
    """Embeds what is pending in the client's workspace; other tests leave their memories pending."""
    workspace = await services.workspaces.resolve(client.headers["X-Workspace"])
    await services.embedder.embed_pending(workspace)
