"""What making a context costs and leaves: one embedding, the activation that it shows, its prefix."""

import asyncio
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from app.errors import EmbeddingUnavailable
from app.foundation.models.protocols import Vector
from app.recall.context import service as contexts
from app.recall.context.representation import CONSTRAINT
from app.recall.context.request import GivenSection
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.interfaces.http.calls import post
from tests.recall.context.test_contexts import ASKED, failures, made
from tests.recall.cues.test_activate import DROP, stored

PLAN = "drop column deprecated_flag"


@pytest.fixture
def embedded(services: Services, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of queries that the provider has embedded."""
    texts: list[str] = []
    embed_query = services.provider.embed_query

    async def counted(text: str) -> Vector:
        texts.append(text)
        return await embed_query(text)

    monkeypatch.setattr(services.provider, "embed_query", counted)
    return texts


async def test_a_context_is_embedded_once(services: Services, workspace: Workspace, embedded: list[str]) -> None:
    request = replace(ASKED, goal="Write the report.")
    assert failures(await made(services, workspace, request)) == {}
    assert embedded == ["Write the report.\nDerive the market."]


async def test_an_embedding_that_fails_is_not_tried_again_and_no_source_fails(
    client: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def away(text: str) -> Vector:
        tried.append(text)
        raise EmbeddingUnavailable("the endpoint is away")

    await stored(client, DROP)
    await post(client, "/api/memories", {"kind": "note", "body": "The column deprecated_flag is read by the import."})
    monkeypatch.setattr(services.provider, "embed_query", away)
    context = await post(client, "/api/contexts", {"observation": PLAN})
    sources = {part["source"]: part for part in context["trace"]["sources"]}
    assert [part["failure"] for part in sources.values()] == [""] * 5
    assert sources["knowledge"]["notes"] == ["vector: the query could not be embedded: the endpoint is away"]
    assert sources["cues"]["notes"] == ["the endpoint is away"]
    assert "read by the import" in context["messages"][0]["content"]
    assert tried == [PLAN]
    history = {"query": PLAN, "budget_tokens": 600, "activate": True}
    assert (await client.post("/api/history", json=history)).status_code == 200
    assert tried == [PLAN, PLAN]


async def test_an_embedding_that_hangs_costs_no_source(
    client: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hanging(_text: str) -> Vector:
        await asyncio.Event().wait()
        raise AssertionError

    await stored(client, DROP)
    await post(client, "/api/memories", {"kind": "note", "body": "The column deprecated_flag is read by the import."})
    monkeypatch.setattr(services.provider, "embed_query", hanging)
    monkeypatch.setattr(contexts, "EMBEDDING_SECONDS", 0.1)
    context = await post(client, "/api/contexts", {"observation": PLAN})
    sources = {part["source"]: part for part in context["trace"]["sources"]}
    assert [part["failure"] for part in sources.values()] == [""] * 5
    assert sources["knowledge"]["sections"] == sources["cues"]["sections"] == 1
    assert sources["cues"]["notes"] == ["the embedding took longer than 0.1 s"]


async def test_cues_that_give_way_to_the_budget_are_not_told(client: httpx.AsyncClient) -> None:
    (cue,) = await stored(client, DROP)
    rules: dict[str, Any] = {"id": "rules", "content": "Answer in German. " * 90, "mode": CONSTRAINT}
    asked = {"observation": PLAN, "sections": [rules]}
    for budget, fired in ((400, 0), (800, 1)):
        context = await post(client, "/api/contexts", asked | {"budget": {"total": budget, "reserve_ratio": 0}})
        assert ("cues" in [part["id"] for part in context["sections"]]) == bool(fired)
        assert (await client.get(f"/api/cues/{cue}")).json()["fired"] == fired
        (source,) = [part for part in context["trace"]["sources"] if part["source"] == "cues"]
        logged = await post(client, f"/api/activations/{source['activation_id']}/outcome", {})
        assert list(logged["outcomes"]) == [cue] * fired


async def test_the_prefix_is_compared_within_a_run_and_a_model(services: Services, workspace: Workspace) -> None:
    rules = (GivenSection(id="rules", content="Answer in German.", mode=CONSTRAINT),)
    judge = (GivenSection(id="rules", content="You judge.", mode=CONSTRAINT),)
    first = replace(ASKED, run_id="r", sections=rules)
    requests = {
        "the first": (first, False),
        "another agent's": (replace(first, sections=judge), False),
        "the first again": (first, True),
        "another model's": (replace(first, model="gpt-4o"), False),
        "another format": (replace(first, format="anthropic"), False),
        "another run's": (replace(first, run_id="s"), False),
        "of no run": (replace(first, run_id=None), None),
    }
    found = {
        name: (await made(services, workspace, request)).representation.meta.cache_hit
        for name, (request, _) in requests.items()
    }
    assert found == {name: hit for name, (_, hit) in requests.items()}
