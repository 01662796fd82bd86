"""A remote model that goes away and comes back: nobody waits for it meanwhile, and a background task tries it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import openai._base_client
import pytest

from app.errors import EmbeddingUnavailable
from app.foundation.models.protocols import LONGEST_PAUSE, Breaker
from app.foundation.models.remote import READY, RemoteProvider
from tests.fakes.embeddings import DIMENSION, Endpoint, Reply, good
from tests.fakes.pauses import Pauses

AWAY = r"away since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC and is tried again in the background: openai:m "


def failing(texts: list[str]) -> Reply:
    return (503, b"{}") if texts else good(texts)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pauses short that the client makes before its own retries."""
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.001)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
async def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def provider(endpoint: Endpoint, pauses: Pauses) -> AsyncIterator[RemoteProvider]:
    """A provider whose pauses between attempts the test ends."""
    provider = provider_at(endpoint, pauses)
    yield provider
    await provider.close()


def provider_at(endpoint: Endpoint, pauses: Pauses, seconds: float = 5.0) -> RemoteProvider:
    return RemoteProvider(
        kind="openai",
        model="m",
        dimension=DIMENSION,
        base_url=endpoint.url,
        api_key="k",
        timeout=seconds,
        wait=pauses,
    )


async def refused(provider: RemoteProvider) -> str:
    with pytest.raises(EmbeddingUnavailable, match=AWAY) as found:
        await provider.embed_query("text")
    return str(found.value)


async def tried(provider: RemoteProvider) -> None:
    assert provider._breaker._trying is not None
    await provider._breaker._trying


async def is_back(provider: RemoteProvider) -> None:
    """Waits until the background task has found the provider, and asks it."""
    await tried(provider)
    assert (await provider.embed_query("text")).shape == (DIMENSION,)


def inputs(endpoint: Endpoint) -> list[str]:
    return [request["input"][0] for request in endpoint.requests]


@pytest.mark.parametrize(
    ("reply", "reason", "requests"),
    [
        (lambda _: (500, b"Internal Server Error"), "answers 500", 3),
        (lambda _: (429, b'{"error": {"message": "slow down"}}'), "slow down", 3),
        (lambda _: (401, b'{"error": {"message": "bad key"}}'), "bad key", 1),
        (lambda _: (404, b'{"error": {"message": "no such model"}}'), "no such model", 1),
        (lambda _: (200, b"<html>Sign in to the network</html>"), "does not answer as", 1),
        (lambda _: (200, b""), "does not answer as", 1),
    ],
)
async def test_one_query_pays_and_the_next_ones_are_refused_at_once(
    endpoint: Endpoint,
    provider: RemoteProvider,
    pauses: Pauses,
    reply: Callable[[list[str]], Reply],
    reason: str,
    requests: int,
) -> None:
    endpoint.reply = reply
    since = {await refused(provider) for _ in range(5)}
    assert [reason in one for one in since] == [True]
    assert inputs(endpoint) == ["text"] * requests
    for seconds in (1.0, 2.0):
        assert await pauses.begun.get() == seconds
        pauses.end()
    assert await pauses.begun.get() == 4.0
    assert inputs(endpoint) == ["text"] * requests + [READY] * 2 * requests
    await refused(provider)
    endpoint.reply = good
    pauses.end()
    await is_back(provider)
    assert inputs(endpoint)[3 * requests :] == [READY, "text"]


async def test_a_server_that_is_started_again_is_found(endpoint: Endpoint, pauses: Pauses) -> None:
    provider = provider_at(endpoint, pauses)
    await provider.embed_query("text")
    endpoint.close()
    assert "cannot be reached at http://127.0.0.1" in await refused(provider)
    pauses.end()
    assert [await pauses.begun.get(), await pauses.begun.get()] == [1.0, 2.0]
    again = Endpoint(endpoint.server.server_port)
    pauses.end()
    await is_back(provider)
    assert inputs(again) == [READY, "text"]
    await provider.close()
    again.close()


async def test_a_server_that_hangs_is_waited_for_once(endpoint: Endpoint, pauses: Pauses) -> None:
    over = threading.Event()
    endpoint.reply = lambda texts: (over.wait(), good(texts))[1]
    provider = provider_at(endpoint, pauses, seconds=0.05)
    for _ in range(5):
        assert "within 0.05 s" in await refused(provider)
    assert set(inputs(endpoint)) == {"text"}
    over.set()
    await provider.close()


async def test_a_caller_that_waits_for_less_time_has_the_server_tried(
    endpoint: Endpoint, provider: RemoteProvider, pauses: Pauses
) -> None:
    asked, over = threading.Event(), threading.Event()

    def hanging(texts: list[str]) -> Reply:
        asked.set()
        over.wait()
        return failing(texts)

    endpoint.reply = hanging
    query = asyncio.create_task(provider.embed_query("text"))
    await asyncio.to_thread(asked.wait)
    query.cancel()
    with pytest.raises(asyncio.CancelledError):
        await query
    over.set()
    assert await pauses.begun.get() == 0.0
    pauses.end()
    assert await pauses.begun.get() == 1.0
    assert "answers 503" in await refused(provider)


async def test_documents_that_fail_do_not_silence_queries(
    endpoint: Endpoint, provider: RemoteProvider, pauses: Pauses
) -> None:
    endpoint.reply = lambda texts: failing(texts) if len(texts) > 1 else good(texts)
    for _ in range(2):
        with pytest.raises(EmbeddingUnavailable, match="503"):
            await provider.embed_documents(["one", "two"])
        assert (await provider.embed_query("text")).shape == (DIMENSION,)
    assert await pauses.begun.get() == 0.0
    pauses.end()
    await tried(provider)
    assert inputs(endpoint)[-1] == READY
    assert (await provider.embed_query("text")).shape == (DIMENSION,)
    assert pauses.begun.empty()


async def test_documents_are_sent_while_queries_are_refused(endpoint: Endpoint, provider: RemoteProvider) -> None:
    endpoint.reply = failing
    await refused(provider)
    endpoint.reply = good
    assert (await provider.embed_documents(["one", "two"])).shape == (2, DIMENSION)
    await refused(provider)


async def test_a_text_that_is_refused_says_nothing_about_the_next(
    endpoint: Endpoint, provider: RemoteProvider, pauses: Pauses
) -> None:
    endpoint.reply = lambda texts: (400, b'{"error": {"message": "filtered"}}') if "bad" in texts else good(texts)
    for embed in (provider.embed_query("bad"), provider.embed_documents(["bad"])):
        with pytest.raises(EmbeddingUnavailable, match="filtered"):
            await embed
    assert (await provider.embed_query("text")).shape == (DIMENSION,)
    assert pauses.begun.empty()


async def test_a_start_that_fails_is_tried_again_for_the_queries(
    endpoint: Endpoint, provider: RemoteProvider, pauses: Pauses
) -> None:
    endpoint.reply = failing
    with pytest.raises(EmbeddingUnavailable, match="503"):
        await provider.start()
    await refused(provider)
    assert inputs(endpoint) == [READY] * 3
    endpoint.reply = good
    pauses.end()
    await is_back(provider)


@pytest.mark.parametrize("attempts", [0, 1])
async def test_closing_ends_the_attempts(
    endpoint: Endpoint, provider: RemoteProvider, pauses: Pauses, attempts: int
) -> None:
    before = asyncio.all_tasks()
    asked, over = threading.Event(), threading.Event()
    endpoint.reply = failing
    await refused(provider)

    def hanging(texts: list[str]) -> Reply:
        asked.set()
        over.wait()
        return good(texts)

    endpoint.reply = hanging
    for _ in range(attempts):
        pauses.end()
        await asyncio.to_thread(asked.wait)
    await provider.close()
    assert asyncio.all_tasks() == before
    provider._breaker.doubt()
    assert asyncio.all_tasks() == before
    over.set()


async def test_pauses_grow_to_the_longest_whatever_goes_wrong(pauses: Pauses) -> None:
    async def attempt() -> None:
        raise RuntimeError("nobody expected it")

    breaker = Breaker("the model", attempt, wait=pauses)
    breaker.open("it has gone")
    found = []
    for _ in range(8):
        found.append(await pauses.begun.get())
        pauses.end()
    assert found == [1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert "nobody expected it" in breaker.refusal
    await breaker.close()
