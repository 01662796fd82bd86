"""A chat endpoint is held to a schema, where it knows schemas."""

from collections.abc import AsyncIterator, Iterator

import pytest

from app.errors import LLMUnavailable
from app.foundation.models.chat import OpenAIChat
from app.recall.cues.extraction.llm import SCHEMA
from tests.fakes.chat import Endpoint, said


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
async def chat(endpoint: Endpoint) -> AsyncIterator[OpenAIChat]:
    chat = OpenAIChat(model="m", base_url=endpoint.url, api_key="", timeout=5)
    yield chat
    await chat.close()


async def test_a_schema_is_sent_in_the_form_of_strict_output(endpoint: Endpoint, chat: OpenAIChat) -> None:
    endpoint.answers = [said('{"lessons": []}')]
    assert await chat.complete("hello", SCHEMA) == '{"lessons": []}'
    [request] = endpoint.requests
    assert request["response_format"]["type"] == "json_schema"
    held = request["response_format"]["json_schema"]
    assert (held["strict"], held["schema"]) == (True, SCHEMA)


async def test_an_endpoint_that_rejects_a_schema_is_asked_without_from_then_on(
    endpoint: Endpoint, chat: OpenAIChat
) -> None:
    endpoint.answers = [(400, b'{"error": {"message": "unknown field response_format"}}'), said("one"), said("two")]
    assert [await chat.complete("hello", SCHEMA) for _ in range(2)] == ["one", "two"]
    assert ["response_format" in request for request in endpoint.requests] == [True, False, False]


async def test_a_bad_request_without_a_schema_is_an_error(endpoint: Endpoint, chat: OpenAIChat) -> None:
    endpoint.answers = [(400, b'{"error": {"message": "no such model"}}')]
    with pytest.raises(LLMUnavailable, match="no such model"):
        await chat.complete("hello")
    assert len(endpoint.requests) == 1


async def test_a_prompt_that_is_rejected_takes_no_schema_from_the_next_one(
    endpoint: Endpoint, chat: OpenAIChat
) -> None:
    too_long = (400, b'{"error": {"message": "the prompt is too long"}}')
    endpoint.answers = [too_long, too_long, said("{}")]
    with pytest.raises(LLMUnavailable, match="too long"):
        await chat.complete("hello", SCHEMA)
    assert await chat.complete("hello", SCHEMA) == "{}"
    assert ["response_format" in request for request in endpoint.requests] == [True, False, True]
