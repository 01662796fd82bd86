"""The log of recalls, its trends, trials, and the budget that a history needs."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from app.foundation.db.database import Database
from app.storage.memories.memory import first_id
from app.storage.recalls.store import RecallFilters, list_statement
from app.storage.tenants.workspace import Workspace


async def asked(client: httpx.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/api/history", json={"query": query, **more})
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


async def test_the_log_is_narrowed_and_goes_on(client: httpx.AsyncClient) -> None:
    note = {"kind": "note", "title": "Register", "body": "Verify producers in the register of companies."}
    await client.post("/api/memories?wait=true", json=note)
    await asked(client, "verify producers register", agent="scout", run_id="r1")
    await asked(client, "zebras and submarines", agent="judge")
    await asked(client, "producers in the register", agent="scout", preset="classic")
    listed = (await client.get("/api/recalls")).json()
    assert [recall["query"][:5] for recall in listed] == ["produ", "zebra", "verif"]
    assert [recall["hits"] for recall in listed] == [1, 0, 1]
    cases: tuple[tuple[dict[str, str], list[str]], ...] = (
        ({"agent": "scout"}, ["produ", "verif"]), ({"run_id": "r1"}, ["verif"]), ({"outcome": "empty"}, ["zebra"]),
        ({"text": "REGISTER"}, ["produ", "verif"]), ({"mode": "vector"}, ["produ"]), ({"outcome": "degraded"}, []),
        ({"before": listed[0]["recall_id"], "limit": "1"}, ["zebra"]), ({"purpose": "search"}, []),
        ({"until": "2020-01-01T00:00:00Z"}, []), ({"since": "2020-01-01T00:00:00Z", "limit": "1"}, ["produ"]),
    )  # fmt: skip
    for params, expected in cases:
        found = (await client.get("/api/recalls", params=params)).raise_for_status().json()
        assert [recall["query"][:5] for recall in found] == expected, params


async def test_a_probability_is_asked_for_and_logged(
    client: httpx.AsyncClient, database: Database, workspace: Workspace
) -> None:
    note = {"kind": "note", "title": "Register", "body": "Verify producers in the register of companies."}
    await client.post("/api/memories?wait=true", json=note)
    query = {"query": "verify producers register", "min_probability": 0.3}
    for path in ("/api/search", "/api/history"):
        found = (await client.post(path, json=query)).raise_for_status().json()
        assert found["probability"] > 0.9
        assert found["hits"][0]["explain"]["probability"] >= 0.3
        old = await client.post(path, json={"query": "producers", "semantic_threshold": 0.3})
        assert old.status_code == 400
    address = f"/api/recalls/{found['recall_id']}"
    assert (await client.get(address)).json()["parameters"]["min_probability"] == 0.3
    async with database.session(workspace) as session:
        await session.execute("""UPDATE recalls SET parameters = '{"k": 3, "semantic_threshold": 0.3}'
            WHERE workspace_id = %(workspace_id)s""")
    assert (await client.get(address)).json()["parameters"] == {"k": 3, "semantic_threshold": 0.3}


async def test_times_and_empty_recalls_are_found_by_indexes(database: Database, workspace: Workspace) -> None:
    asked = RecallFilters(since=datetime(2026, 2, 1, tzinfo=UTC), until=datetime(2026, 2, 2, tzinfo=UTC))
    values = {"since": first_id(datetime(2026, 2, 1, tzinfo=UTC)), "until": first_id(datetime(2026, 2, 2, tzinfo=UTC))}
    async with database.session(workspace) as session:
        await session.execute("SELECT set_config('enable_seqscan', 'off', true)")
        plan = await session.column("EXPLAIN " + list_statement(asked, None), {**values, "limit": 50})
        empty = await session.column("EXPLAIN " + list_statement(RecallFilters(outcome="empty"), None), {"limit": 50})
    assert any("Index Cond" in line and "recall_id >=" in line and "recall_id <" in line for line in plan)
    assert "recalls_empty_ix" in "".join(empty)


async def test_bad_conditions_are_refused(client: httpx.AsyncClient) -> None:
    for params in ({"outcome": "good"}, {"mode": "telepathy"}, {"text": "a\x00b"}, {"limit": "0"}):
        assert (await client.get("/api/recalls", params=params)).status_code == 400, params


@pytest.mark.usefixtures("workspace")
async def test_trends_count_days_without_trials(client: httpx.AsyncClient) -> None:
    await asked(client, "zebras and submarines")
    await asked(client, "zebras and submarines", trial=True)
    days = (await client.get("/api/recalls:trends", params={"days": 3})).json()
    assert len(days) == 3
    assert [day["recalls"] for day in days] == [0, 0, 1]
    assert days[-1]["empty"] == 1
    assert days[-1]["p95_ms"] > 0
    assert days[0]["p95_ms"] is None
    assert {recall["purpose"] for recall in (await client.get("/api/recalls")).json()} == {"history", "trial"}
    latencies = (await client.get("/api/status")).json()["latencies"]
    assert [item["purpose"] for item in latencies] == ["history", "trial"]


async def test_a_budget_that_is_too_small_is_told(client: httpx.AsyncClient) -> None:
    note = {"kind": "note", "title": "Register", "body": "Verify producers in the register of companies."}
    await client.post("/api/memories?wait=true", json=note)
    query = "verify producers in the register"
    too_small = await asked(client, query, budget_tokens=10)
    assert too_small["hits"] == []
    needed = too_small["needed_tokens"]
    assert needed > 10
    assert len((await asked(client, query, budget_tokens=needed))["hits"]) == 1
    assert (await asked(client, query, budget_tokens=needed))["needed_tokens"] is None
    assert (await asked(client, query, budget_tokens=needed - 1))["hits"] == []
    assert (await asked(client, "zebras and submarines"))["needed_tokens"] is None


async def test_workspaces_are_listed(client: httpx.AsyncClient, workspace_name: str) -> None:
    assert workspace_name not in {item["name"] for item in (await client.get("/api/workspaces")).json()}
    await client.post("/api/memories", json={"kind": "note", "body": "The pump wants a new seal."})
    assert workspace_name in {item["name"] for item in (await client.get("/api/workspaces")).json()}
