"""A note that is longer than the model's window, as HTTP, the command line and MCP show it."""

import asyncio
import os

import httpx
import pytest

from tests.interfaces.cli import forked
from tests.interfaces.http.calls import get, post
from tests.interfaces.mcp.agent import agent, told
from tests.storage.index.test_passages import LONG, ON_BEES

TITLE, QUERY = "Minutes of November", "bees turn nectar into honey"


@pytest.fixture
async def noted(client: httpx.AsyncClient) -> None:
    note = {"kind": "note", "title": TITLE, "body": LONG}
    await post(client, "/api/memories?wait=true", note)


@pytest.mark.usefixtures("noted")
async def test_every_door_tells_the_nearest_passage(
    client: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    found = await post(client, "/api/search", {"query": QUERY})
    (hit,) = found["hits"]
    explain = hit["explain"]
    number, passages = int(explain["passage"]), int(explain["passages"])
    said = LONG[int(explain["passage_starts"]) : int(explain["passage_ends"])]
    assert 1 <= number <= passages
    assert "bees" in said.lower()
    (logged,) = (await get(client, f"/api/recalls/{found['recall_id']}"))["hits"]
    names = ("passage", "passages", "passage_starts", "passage_ends")
    assert [logged["explain"][name] for name in names] == [explain[name] for name in names]
    assert said not in str(logged)
    words = ["search", QUERY, "--explain", "--url", server]
    environment = {**os.environ, "COLUMNS": "140", "PRIORS_WORKSPACE": workspace_name}
    with forked.shell() as shell:
        table = (await asyncio.to_thread(shell.run, words, environment)).stdout
    assert f"passage {number} of {passages}: {said[:30]}" in table, table
    async with agent(server, workspace_name) as one:
        listed = await told(one, "recall", query=QUERY)
    assert f" · passage {number} of {passages} · {TITLE} — {said[:30]}" in listed


@pytest.mark.usefixtures("noted")
async def test_a_history_without_room_for_the_whole_text_shows_the_nearest_passage(client: httpx.AsyncClient) -> None:
    asked = {"query": QUERY, "budget_tokens": 300, "run_id": "r", "stable": True}
    cut, again = [await post(client, "/api/history", asked) for _ in range(2)]
    assert "jars" in cut["markdown"]
    assert cut["tokens"] <= 300
    assert (again["markdown"], again["reused_share"]) == (cut["markdown"], 1)
    whole = await post(client, "/api/history", {"query": QUERY, "budget_tokens": 2_000})
    assert ON_BEES.strip().split(".")[0] in whole["markdown"]
