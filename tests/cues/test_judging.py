"""A language model judges severe cues; whatever it answers, the rules still answer."""

import re
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio

from app.cues import activate as activating
from app.cues.activate import Activation, PlanAsked, activate
from app.cues.judging import numbers_in
from app.errors import LLMUnavailable
from app.models.chat import OpenAIChat
from app.wiring import Services
from app.workspaces.resolve import resolve
from tests.cues.test_activate import DROP, OTHERS, stored
from tests.fakes.chat import Answer, Endpoint, said
from tests.fakes.pauses import Pauses

PLAN = "drop column deprecated_flag"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A local server that speaks the chat protocol."""
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest_asyncio.fixture
async def chat(endpoint: Endpoint) -> AsyncIterator[OpenAIChat]:
    """A client of that server."""
    chat = OpenAIChat(model="m", base_url=endpoint.url, api_key="", timeout=30)
    yield chat
    await chat.close()


async def asked(client: httpx.AsyncClient, services: Services, chat: OpenAIChat | None) -> Activation:
    workspace = await resolve(services.database, client.headers["X-Workspace"], language="english")
    parts = services.database, services.provider, services.counter
    return await activate(*parts, workspace=workspace, asked=PlanAsked(plan=PLAN), chat=chat)


@pytest.mark.parametrize(("reply", "added"), [("They are [1].", 3.0), ('{"applies": []}', -3.0), ('["1"]', 3.0)])
async def test_a_verdict_moves_a_severe_cue_and_is_explained(
    client: httpx.AsyncClient, services: Services, endpoint: Endpoint, chat: OpenAIChat, reply: str, added: float
) -> None:
    await stored(client, DROP, *OTHERS)
    (plain,) = (cue for cue in (await asked(client, services, None)).cues if cue.lesson == DROP["lesson"])
    endpoint.answers = [said(reply)]
    found = await asked(client, services, chat)
    (judged,) = (cue for cue in found.cues if cue.lesson == DROP["lesson"])
    assert judged.explain["judged"] == added
    assert (judged.score > plain.score) == (added > 0)
    assert found.degraded == ""
    assert PLAN in endpoint.requests[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said("I cannot say."), "no list of numbers"),
        (said("[99999, 12]"), ""),
        (said(None), "not judged"),
        ((401, b"no key"), "401"),
        ((200, b"<html>"), "not judged"),
        ((200, b""), "not judged"),
    ],
)
async def test_a_model_that_misbehaves_leaves_the_rules(
    client: httpx.AsyncClient, services: Services, endpoint: Endpoint, chat: OpenAIChat, answer: Answer, reason: str
) -> None:
    await stored(client, DROP, *OTHERS)
    endpoint.answers = [answer]
    found = await asked(client, services, chat)
    assert DROP["lesson"] in [cue.lesson for cue in found.cues]
    assert (reason in found.degraded) == bool(reason) or not reason
    if reason:
        assert all("judged" not in cue.explain for cue in found.cues)


async def test_a_slow_model_is_not_released(
    client: httpx.AsyncClient,
    services: Services,
    endpoint: Endpoint,
    chat: OpenAIChat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activating, "JUDGING_SECONDS", 0.01)
    released = threading.Event()

    def late() -> Answer:
        released.wait()
        return said("[1]")

    endpoint.answers = [late]
    await stored(client, DROP)
    try:
        found = await asked(client, services, chat)
    finally:
        released.set()
    assert "within 0.01 seconds" in found.degraded
    assert found.cues


async def test_a_model_that_is_away_is_asked_again_by_no_plan(
    client: httpx.AsyncClient, services: Services, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.models.chat.PAUSES", ())
    pauses = Pauses()
    chat = OpenAIChat(model="m", base_url=endpoint.url, api_key="", timeout=30, wait=pauses)
    await stored(client, DROP)
    endpoint.answers = [(503, b"overloaded")]
    assert "overloaded" in (await asked(client, services, chat)).degraded
    found = await asked(client, services, chat)
    assert re.search(r"not judged: the language model has been away since .* tried again .*overloaded", found.degraded)
    assert found.cues
    assert len(endpoint.requests) == 1
    with pytest.raises(LLMUnavailable, match="overloaded"):
        await chat.complete("a job's prompt")
    endpoint.answers = [said("yes"), said("[1]")]
    pauses.end()
    assert chat._breaker._trying is not None
    await chat._breaker._trying
    assert (await asked(client, services, chat)).degraded == ""
    assert len(endpoint.requests) == 4
    await chat.close()


async def test_without_a_severe_cue_no_model_is_asked(
    client: httpx.AsyncClient, services: Services, endpoint: Endpoint, chat: OpenAIChat
) -> None:
    await stored(client, {**DROP, "consequence": 0.2})
    assert (await asked(client, services, chat)).cues
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ("[1, 2]", {1, 2}),
        ("```json\n[3]\n```", {3}),
        ("Not [1] but [2]", {2}),
        ("[]", set()),
        ("1, 2", None),
        ("[", None),
    ],
)
def test_numbers_are_found_in_any_reply(reply: str, numbers: set[int] | None) -> None:
    assert numbers_in(reply) == numbers
