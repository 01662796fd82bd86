"""A history says which versions and numbers of a query nothing stored names."""

from typing import Any

import httpx
import pytest

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
        ("What did the importer gain in release v2.3?", "Nothing stored names v2.3: this is the nearest.\n"),
        ("Does ADR-019 keep the importer's queue?", "Nothing stored names ADR-019: this is the nearest.\n"),
        ("Did commit 77ab90cd break the importer?", "Nothing stored names 77ab90cd: this is the nearest.\n"),
    ],
)
async def test_an_identifier_that_no_memory_names_is_named_below_the_nearest(
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
        "What does adr 017 say about the importer's queue?",
        "Did commit 3fa9c1e2 break the importer?",
        "Write v3 of the release notes of the importer, 250 words",
    ],
)
async def test_what_is_stored_or_no_identifier_is_not_named(client: httpx.AsyncClient, query: str) -> None:
    await _store(client)
    found = await _history(client, query)
    assert found["hits"]
    assert "Nothing stored" not in found["markdown"]
