"""Tests of the remote provider against an HTTP server that speaks the protocol, and misbehaves as real ones do."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from app.errors import EmbeddingUnavailable
from app.models.providers import OPEN_SECONDS, RemoteProvider, provider_from
from app.settings import ProviderKind, Settings
from tests.fakes.embeddings import DIMENSION, Endpoint, Reply, good, vector


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[list[str]], Reply]:
    def reply(texts: list[str]) -> Reply:
        document = json.loads(good(texts)[1])
        document["data"] = change(document["data"])
        return 200, json.dumps(document).encode()

    return reply


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Starts an endpoint."""
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


def provider_at(url: str, clock: Callable[[], float] = lambda: 0.0) -> RemoteProvider:
    return RemoteProvider(
        kind="openai", model="m", dimension=DIMENSION, base_url=url, api_key="k", timeout=5, clock=clock
    )


async def test_vectors_come_in_order_and_of_unit_length(endpoint: Endpoint) -> None:
    endpoint.reply = changed(lambda items: items[::-1])
    provider = provider_at(endpoint.url)
    texts = [f"{'x' * number}" for number in range(300)]
    found = await provider.embed_documents(texts)
    expected = np.array([vector(text or " ") for text in texts], np.float32)
    assert np.allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert [len(request["input"]) for request in endpoint.requests] == [128, 128, 44]
    assert {request["key"] for request in endpoint.requests} == {"Bearer k"}
    await provider.close()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda _: (401, b'{"error": {"message": "bad key"}}'), "401"),
        (lambda _: (429, b'{"error": {"message": "slow down"}}'), "429"),
        (lambda _: (500, b"<html>oops</html>"), "500"),
        (lambda _: (200, b"<html>not json</html>"), "does not answer|cannot be reached"),
        (lambda _: (200, b'{"data": []}'), "does not answer"),
        (changed(lambda items: [{**item, "embedding": [1.0, 2.0]} for item in items]), "PRIORS_EMBEDDING_DIMENSION=2"),
        (changed(lambda items: [{**item, "embedding": [0.0] * 4} for item in items]), "zero"),
        (changed(lambda items: [{**item, "index": 7} for item in items]), "asked for 1"),
    ],
)
async def test_what_is_wrong_is_named(endpoint: Endpoint, reply: Callable[[list[str]], Reply], reason: str) -> None:
    endpoint.reply = reply
    provider = provider_at(endpoint.url)
    with pytest.raises(EmbeddingUnavailable, match=reason):
        await provider.embed_query("text")
    await provider.close()


async def test_nobody_listens() -> None:
    provider = provider_at("http://127.0.0.1:9/v1")
    with pytest.raises(EmbeddingUnavailable, match="PRIORS_EMBEDDING_BASE_URL"):
        await provider.embed_query("text")
    await provider.close()


async def test_after_a_failure_queries_do_not_wait_for_the_next(endpoint: Endpoint) -> None:
    now = [0.0]
    endpoint.reply = lambda _: (401, b"{}")
    provider = provider_at(endpoint.url, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable):
            await provider.embed_query("text")
    assert len(endpoint.requests) == 1
    now[0] = OPEN_SECONDS + 1
    endpoint.reply = good
    assert (await provider.embed_query("text")).shape == (DIMENSION,)
    await provider.close()


async def test_a_passing_fault_is_tried_again(endpoint: Endpoint) -> None:
    replies = iter([(503, b"{}"), (503, b"{}")])
    endpoint.reply = lambda texts: next(replies, None) or good(texts)
    provider = provider_at(endpoint.url)
    assert (await provider.embed_query("text")).shape == (DIMENSION,)
    assert len(endpoint.requests) == 3
    await provider.close()


@pytest.mark.parametrize(("kind", "identity"), [("openai", "openai:m"), ("ollama", "ollama:m"), ("noop", "noop")])
async def test_the_settings_name_the_provider(kind: ProviderKind, identity: str) -> None:
    provider = provider_from(Settings(embedding_provider=kind, embedding_model="m", embedding_base_url="http://x/v1"))
    assert provider.model_id == identity
    await provider.close()
