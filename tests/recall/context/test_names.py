"""A history says which versions and numbered names of a query its blocks do not name."""

from typing import Any

import httpx
import pytest

from app.recall.context.names import remark_on_names
from tests.recall.context.test_blocks import hit

RELEASES = (
    ("v2.1", "Release v2.1 made the importer resume after a crash; 4 of 9 customers have it."),
    ("v2.2", "Release v2.2 made the importer mask secrets; two customers went back to v2.1."),
    ("ADR-017", "ADR-017: the importer keeps its queue in Postgres, decided on the load test."),
    ("crash", "Commit 3fa9c1e2 broke the importer: a file without an end was read for ever."),
)


async def _store(client: httpx.AsyncClient) -> None:
    for title, body in RELEASES:
        answer = await client.post("/api/memories?wait=true", json={"kind": "note", "title": title, "body": body})
        assert answer.status_code == 200, answer.text


async def _history(client: httpx.AsyncClient, query: str, **more: Any) -> Any:
    body = {"query": query, "k": 3, "budget_tokens": 300, **more}
    answer = await client.post("/api/history", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("What did the importer gain in release v2.3?", "None of these names v2.3.\n"),
        ("Does ADR-019 keep the importer's queue?", "None of these names ADR-019.\n"),
        ("Did commit 77ab90cd break the importer?", "None of these names 77ab90cd.\n"),
    ],
)
async def test_an_identifier_that_no_block_names_is_named_below_them(
    client: httpx.AsyncClient, query: str, line: str
) -> None:
    await _store(client)
    found = await _history(client, query)
    assert found["hits"]
    assert found["markdown"].endswith(f"```\n\n{line}")
    assert found["tokens"] <= 300
    stable = await _history(client, query, stable=True, run_id="a run")
    again = await _history(client, query, stable=True, run_id="a run")
    assert stable["markdown"] == again["markdown"] == found["markdown"]


@pytest.mark.parametrize(
    "query",
    [
        "What did the importer gain in release v2.2?",
        "What does ADR-17 say about the importer's queue?",
        "Did commit 3fa9c1e2 break the importer?",
        "Write v3 of the release notes of the importer, 250 words",
    ],
)
async def test_what_a_block_names_or_no_identifier_is_not_named(client: httpx.AsyncClient, query: str) -> None:
    await _store(client)
    found = await _history(client, query)
    assert found["hits"]
    assert "None of these" not in found["markdown"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What is new in v2.3?", "v2.3"),
        ("v2.2 or V2.3?", "V2.3"),
        ("Compare ADR-19, ADR-20, ADR-21 and ADR-22", "ADR-19, ADR-20, ADR-21 and 1 more"),
        ("Is ADR-017 like ADR 017 and v2.2?", ""),
        ("Did 3fa9c1e2b8d7 break it?", ""),
        ("SHA-256 of the 12.06.2026 in UTF-16, 1.200.000 rows of deadbeef and cafe2024, v6", ""),
    ],
)
def test_only_identifiers_that_are_missing_are_named(query: str, named: str) -> None:
    shown = hit("Release 2.2 keeps the queue (ADR-17). Commit 3fa9c1e.", 1.0)
    line = remark_on_names(query, [shown], shown.body)
    assert line == (f"None of these names {named}.\n" if named else "")
    assert remark_on_names(query, [], "") == ""


async def test_a_budget_without_room_for_the_line_goes_to_the_blocks(client: httpx.AsyncClient) -> None:
    await _store(client)
    query = "What did the importer gain in release v2.3?"
    whole = await _history(client, query, k=1)
    tight = await _history(client, query, k=1, budget_tokens=whole["tokens"] - 1)
    assert [hit["id"] for hit in tight["hits"]] == [hit["id"] for hit in whole["hits"]]
    assert "None of these" not in tight["markdown"]
