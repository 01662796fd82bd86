"""Tests of every embedding provider: one contract for all, and an HTTP server that misbehaves as real ones do."""

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import openai._base_client
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.errors import EmbeddingUnavailable
from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.models.providers import provider_from
from app.foundation.models.remote import BATCH_CHARACTERS, LEAST_CHARACTERS, RemoteProvider
from app.settings import ProviderKind, Settings
from tests.fakes.embeddings import DIMENSION, Endpoint, Reply, good, vector

TEXTS = ["", " ", "a", "ab\0c", "half \ud800 here", "молоко 東京 🦊", "x" * 40, "two\nlines", "word " * 3_000]
"""Each of another length."""
BAD_KEY = (401, b'{"error": {"message": "bad key"}}')

Change = Callable[[list[dict[str, Any]]], object]


class Subject(NamedTuple):
    """A provider under test."""

    provider: EmbeddingProvider
    identity: str
    dimension: int = DIMENSION
    length: float = 1.0
    """Of its vectors."""


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    """An endpoint that answers as it should, for the providers that a module shares."""
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint of one test: a request that an earlier test gave up may still arrive at a shared one."""
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pauses before retries short."""
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.001)


def settings_at(url: str, kind: ProviderKind = "openai") -> Settings:
    return Settings(
        embedding_provider=kind,
        embedding_model="m",
        embedding_base_url=url,
        embedding_dimension=DIMENSION,
        embedding_api_key="k",
    )


@pytest.fixture(scope="module", params=["local", "openai", "ollama", "prefixed", "noop"])
async def subject(
    request: pytest.FixtureRequest, server: Endpoint, provider: EmbeddingProvider
) -> AsyncIterator[Subject]:
    """Each provider in turn."""
    kind = request.param
    if kind == "local":
        yield Subject(provider, "sentence-transformers/all-MiniLM-L6-v2", 384)
        return
    settings = settings_at(server.url, "openai" if kind == "prefixed" else kind)
    if kind == "prefixed":
        settings = replace(settings, embedding_model="e5-instruct")
    made = provider_from(settings)
    found = {
        "noop": Subject(made, "noop", 384, 0.0),
        "prefixed": Subject(made, 'openai:e5-instruct ["Instruct'),
    }
    yield found.get(kind, Subject(made, f"{kind}:m"))
    await made.close()


# The contract.


async def test_a_provider_has_a_name_and_a_dimension(subject: Subject) -> None:
    await subject.provider.start()
    await subject.provider.start()
    assert subject.provider.model_id.startswith(subject.identity)
    assert subject.provider.dimension == subject.dimension
    assert subject.provider.enabled is (subject.length > 0)


async def test_each_text_has_its_vector_in_order(subject: Subject) -> None:
    together = await subject.provider.embed_documents(TEXTS)
    assert together.shape == (len(TEXTS), subject.dimension)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), subject.length, atol=1e-5)
    backwards = await subject.provider.embed_documents(TEXTS[::-1])
    assert np.allclose(together, backwards[::-1], atol=1e-5)
    for place in (0, 4, 5):
        alone = await subject.provider.embed_documents([TEXTS[place]])
        assert np.allclose(alone[0], together[place], atol=1e-5)


async def test_no_texts_no_vectors(subject: Subject, server: Endpoint) -> None:
    server.requests.clear()
    assert (await subject.provider.embed_documents([])).shape == (0, subject.dimension)
    assert server.requests == []


async def test_queries_and_documents_at_once_each_get_their_own(subject: Subject) -> None:
    texts = ["x" * number for number in range(1, 30)]
    expected = [await subject.provider.embed_query(text) for text in texts]
    documents = await subject.provider.embed_documents(texts)
    found = await asyncio.gather(*map(subject.provider.embed_query, texts), subject.provider.embed_documents(texts))
    for one, other in zip(found[:-1], expected, strict=True):
        assert one.dtype == np.float32
        assert np.allclose(one, other, atol=1e-5)
    assert np.allclose(found[-1], documents, atol=1e-5)


async def test_a_huge_text_has_a_vector(subject: Subject) -> None:
    found = await subject.provider.embed_documents(["short", "huge text " * 30_000])
    assert np.allclose(np.linalg.norm(found, axis=1), subject.length, atol=1e-5)


# What a server does.


def changed(change: Change) -> Callable[[list[str]], Reply]:
    """Returns a reply whose list of vectors is changed."""

    def reply(texts: list[str]) -> Reply:
        document = json.loads(good(texts)[1])
        document["data"] = change(document["data"])
        return 200, json.dumps(document).encode()

    return reply


def of_numbers(*numbers: object) -> Callable[[list[str]], Reply]:
    """Returns a reply each of whose vectors has these numbers."""
    return changed(lambda items: [{**item, "embedding": list(numbers)} for item in items])


def in_base64(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**item, "embedding": base64.b64encode(np.array(item["embedding"], "<f4").tobytes()).decode()} for item in items
    ]


def provider_at(url: str, timeout: float = 5) -> RemoteProvider:
    return RemoteProvider(kind="openai", model="m", dimension=DIMENSION, base_url=url, api_key="k", timeout=timeout)


@pytest.fixture(params=["openai", "ollama"])
async def remote(request: pytest.FixtureRequest, endpoint: Endpoint) -> AsyncIterator[EmbeddingProvider]:
    """Each provider that speaks the protocol."""
    provider = provider_from(settings_at(endpoint.url, request.param))
    yield provider
    await provider.close()


async def test_many_texts_go_in_several_requests(endpoint: Endpoint, remote: EmbeddingProvider) -> None:
    endpoint.reply = changed(lambda items: items[::-1])
    texts = [f"{'x' * number}" for number in range(300)]
    found = await remote.embed_documents(texts)
    expected = np.array([vector(text or " ") for text in texts], np.float32)
    assert np.allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert [len(request["input"]) for request in endpoint.requests] == [128, 128, 44]
    assert {request["key"] for request in endpoint.requests} == {"Bearer k"}
    assert {request["path"] for request in endpoint.requests} == {"/v1/embeddings"}
    endpoint.requests.clear()
    await remote.embed_documents(["x" * (BATCH_CHARACTERS // 2)] * 3)
    assert [len(request["input"]) for request in endpoint.requests] == [2, 1]


@pytest.mark.parametrize(
    "reply",
    [
        changed(in_base64),
        of_numbers(1, 2, 3, 4),
        of_numbers(1e30, 2e30, -1e30, 0),
        of_numbers(1e300, 2e300, -1e300, 0),
        of_numbers(1e-30, 0, 0, 1e-31),
    ],
    ids=["base64", "whole", "large", "very large", "small"],
)
async def test_numbers_of_any_size_and_form_are_read(
    endpoint: Endpoint, remote: EmbeddingProvider, reply: Callable[[list[str]], Reply]
) -> None:
    endpoint.reply = reply
    for found in (await remote.embed_query("text"), *(await remote.embed_documents(["text", "more"]))):
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)
        assert np.abs(found).max() < 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda _: BAD_KEY, "401: .*bad key"),
        (lambda _: (429, b'{"error": {"message": "slow down"}}'), "429"),
        (lambda _: (400, b'{"error": {"message": "no such option"}}'), "400: .*no such option"),
        (lambda _: (500, b"<html>oops</html>"), "500"),
        (lambda _: (301, b""), "301"),
        (lambda _: (200, b"<html>not json</html>"), "does not answer|cannot be reached"),
        (lambda _: (200, b""), "does not answer|cannot be reached"),
        (lambda _: (200, b"\xff\xfe"), "does not answer|cannot be reached"),
        (lambda _: (200, b"[" * 100_000), "does not answer|cannot be reached"),
        (lambda _: (200, b"null"), "does not answer"),
        (lambda _: (200, b'["data"]'), "does not answer"),
        (lambda _: (200, b'{"error": "no such model"}'), "does not answer"),
        (lambda _: (200, b'{"data": []}'), "does not answer"),
        (lambda _: (200, b'{"data": [null]}'), "does not answer"),
        (changed(lambda items: items[1:]), "does not answer|asked for 1"),
        (changed(lambda items: items * 2), "asked for 1 vectors, 2 came"),
        (changed(lambda items: [{**item, "index": 7} for item in items]), "asked for 1"),
        (changed(lambda items: [{**item, "index": None} for item in items]), "asked for 1"),
        (changed(lambda items: [{**item, "embedding": None} for item in items]), "no list of numbers"),
        (changed(lambda items: [{**item, "embedding": {"0": 1}} for item in items]), "no list of numbers"),
        (changed(lambda items: [{**item, "embedding": "no base64!"} for item in items]), "does not answer"),
        (of_numbers(1.0, 2.0), "PRIORS_EMBEDDING_DIMENSION=2"),
        (of_numbers(0.0, 0.0, 0.0, 0.0), "zero"),
        (of_numbers(1, None, 2, 3), "no numbers"),
        (of_numbers(1, float("nan"), 2, 3), "no numbers"),
        (of_numbers(1, float("inf"), 2, 3), "no numbers"),
        (of_numbers(1, 10**400, 2, 3), "does not answer"),
        (of_numbers(1, "much", 2, 3), "does not answer"),
        (of_numbers(1, [2], 2, 3), "does not answer"),
    ],
)
async def test_what_is_wrong_is_named(
    endpoint: Endpoint, remote: EmbeddingProvider, reply: Callable[[list[str]], Reply], reason: str
) -> None:
    endpoint.reply = reply
    with pytest.raises(EmbeddingUnavailable, match=reason):
        await remote.embed_query("text")
    with pytest.raises(EmbeddingUnavailable, match="PRIORS_EMBEDDING_BASE_URL"):
        await remote.embed_documents(["text"])
    endpoint.reply = good
    assert (await remote.embed_documents(["text"])).shape == (1, DIMENSION)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(("index", "embedding")), inner),
    max_leaves=8,
)
items = st.fixed_dictionaries({"index": st.just(0) | json_values, "embedding": json_values})


@hypothesis_settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.lists(items, max_size=2) | json_values)
async def test_any_answer_gives_a_vector_or_a_reason(
    endpoint: Endpoint, remote: EmbeddingProvider, data: object
) -> None:
    endpoint.reply = lambda _: (200, json.dumps({"data": data}).encode())
    try:
        found = await remote.embed_documents(["text"])
    except EmbeddingUnavailable as error:
        assert "PRIORS_EMBEDDING_MODEL" in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)


async def test_nobody_listens() -> None:
    provider = provider_at("http://127.0.0.1:9/v1")
    with pytest.raises(EmbeddingUnavailable, match=r"127\.0\.0\.1:9.*PRIORS_EMBEDDING_BASE_URL"):
        await provider.embed_query("text")
    await provider.close()


async def test_a_connection_that_breaks_off_is_tried_again(endpoint: Endpoint, remote: EmbeddingProvider) -> None:
    endpoint.withheld = 10
    with pytest.raises(EmbeddingUnavailable, match="cannot be reached"):
        await remote.embed_documents(["text"])
    assert len(endpoint.requests) == 3

    def whole(texts: list[str]) -> Reply:
        endpoint.withheld = 0
        return good(texts)

    endpoint.reply = whole
    assert (await remote.embed_documents(["text"])).shape == (1, DIMENSION)


async def test_a_query_does_not_wait_for_a_server_that_hangs(endpoint: Endpoint) -> None:
    over = threading.Event()

    def never(texts: list[str]) -> Reply:
        over.wait()
        return good(texts)

    endpoint.reply = never
    provider = provider_at(endpoint.url, timeout=0.05)
    try:
        with pytest.raises(EmbeddingUnavailable, match=r"within 0.05 s|timed out"):
            await provider.embed_query("text")
        with pytest.raises(EmbeddingUnavailable, match="timed out"):
            await provider.embed_documents(["text"])
    finally:
        over.set()
    await provider.close()


async def test_a_query_does_not_wait_as_long_as_a_server_asks_for(endpoint: Endpoint) -> None:
    endpoint.reply = lambda _: (429, b"{}")
    endpoint.headers = {"retry-after": "100"}
    provider = provider_at(endpoint.url, timeout=0.5)
    with pytest.raises(EmbeddingUnavailable, match=r"within 0.5 s"):
        await provider.embed_query("text")
    assert len(endpoint.requests) == 1
    await provider.close()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_passing_fault_is_tried_again(endpoint: Endpoint, remote: EmbeddingProvider, status: int) -> None:
    replies = iter([(status, b"{}"), (status, b"{}")])
    endpoint.reply = lambda texts: next(replies, None) or good(texts)
    assert (await remote.embed_query("text")).shape == (DIMENSION,)
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_a_server_finds_too_large_is_divided(
    endpoint: Endpoint, remote: EmbeddingProvider, status: int
) -> None:
    def limited(texts: list[str]) -> Reply:
        too_large = len(texts) > 8 or max(map(len, texts)) > 2_000
        return (status, b'{"error": {"message": "too large"}}') if too_large else good(texts)

    endpoint.reply = limited
    texts = ["x" * number for number in range(1, 40)]
    texts[20] = "y" * 6_000
    found = await remote.embed_documents(texts)
    expected = np.array([vector(text[:1_500]) for text in texts], np.float32)
    assert np.allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert (await remote.embed_query("z" * 6_000)).shape == (DIMENSION,)


async def test_what_is_not_too_large_is_not_divided_for_ever(endpoint: Endpoint, remote: EmbeddingProvider) -> None:
    endpoint.reply = lambda _: (400, b'{"error": {"message": "no such option"}}')
    with pytest.raises(EmbeddingUnavailable, match="no such option"):
        await remote.embed_documents(["x" * 4 * LEAST_CHARACTERS] * 64)
    assert len(endpoint.requests) == 9


@pytest.mark.parametrize(("kind", "identity"), [("openai", "openai:m"), ("ollama", "ollama:m"), ("noop", "noop")])
async def test_the_settings_name_the_provider(kind: ProviderKind, identity: str) -> None:
    provider = provider_from(Settings(embedding_provider=kind, embedding_model="m", embedding_base_url="http://x/v1"))
    assert provider.model_id == identity
    await provider.close()
