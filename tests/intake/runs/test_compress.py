"""Tests of compression by a language model, against a local server that misbehaves as real ones do."""

import asyncio
import json
import time
from collections.abc import Iterator

import openai._base_client
import pytest
from msgspec import structs

from app.errors import LLMUnavailable
from app.foundation.models.chat import OpenAIChat
from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.models.providers import NoopProvider
from app.intake.runs.observations.compress import compress_outcome, compression_prompt
from app.intake.runs.observations.observation import EXTRACTIVE, LLM, Compressed, Outcome
from tests.fakes.chat import GOOD, Answer, Endpoint, Says, said

OUTCOME = Outcome(
    task="Market of supplements",
    task_type="research",
    queries=("a", "b", "c", "d", "e"),
    output="# Market\n\n" + "The market grew to 221 billion rubles in 2025. Pharmacies sell 58 % of it. " * 20,
    lines=3,
    bytes=900,
    final_score=8.2,
    issues=("SOM without a method",),
)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pauses before retries short."""
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.001)


async def compress(
    endpoint: Endpoint,
    provider: EmbeddingProvider,
    timeout: float = 10.0,  # noqa: ASYNC109 - the client's own
) -> Compressed:
    chat = OpenAIChat(model="qwen3:8b", base_url=endpoint.url, api_key="", timeout=timeout)
    try:
        return await compress_outcome(OUTCOME, provider, chat, evaluator="wiggum")
    finally:
        await chat.close()


async def test_a_good_answer_is_taken(endpoint: Endpoint, provider: EmbeddingProvider) -> None:
    result = await compress(endpoint, provider)
    assert (result.compressor, result.model) == (LLM, "qwen3:8b")
    assert result.title == "Supplements grew to 221 billion rubles"
    assert result.facts == ("221 billion", "58 % pharmacies", "17 % Evalar", "[wiggum] SOM without a method")
    (request,) = endpoint.requests
    assert (request["model"], request["messages"][0]["content"]) == ("qwen3:8b", result.prompt)


def test_the_prompt_has_what_it_needs_and_no_more() -> None:
    prompt = compression_prompt(OUTCOME)
    for part in ("Market of supplements", "research", "a; b; c; d\n", "3 lines, 900 bytes", "8.2 of 10"):
        assert part in prompt
    assert OUTCOME.output[:600] in prompt
    assert OUTCOME.output[:620] not in prompt


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>The title could be\nTitle: wrong</think>\n{GOOD}",
        f"Title: wrong\nNarrative: wrong</think>\n\n{GOOD}",
        f"```\n{GOOD}\n```",
        GOOD.replace("Title:", "**Title:**").replace("Narrative:", "**Narrative**:").replace("Facts:", "### Facts:"),
        'Facts:\n- 221 billion\n- 58 % pharmacies\n- 17 % Evalar\n\nNarrative: The market grew. Pharmacies lead.\nTitle: "Supplements grew to 221 billion rubles"',  # noqa: E501 - as a model writes it
        GOOD[: GOOD.index("[")] + "['221 billion', '58 % pharmacies', '17 % Evalar',]",
        GOOD.replace('"]', '",'),
        json.dumps({"title": "Supplements grew to 221 billion rubles", "narrative": "The market grew. Pharmacies lead.",
                    "facts": ["221 billion", "58 % pharmacies", "17 % Evalar"]}),
        f"Sure! Here is the memory.\n\n{GOOD}\n",
    ],
)  # fmt: skip
async def test_what_models_really_send_is_understood(
    endpoint: Endpoint, provider: EmbeddingProvider, reply: str
) -> None:
    endpoint.answers = [said(reply)]
    result = await compress(endpoint, provider)
    assert (result.compressor, result.title) == (LLM, "Supplements grew to 221 billion rubles")
    assert result.narrative == "The market grew. Pharmacies lead."
    assert result.facts[:3] == ("221 billion", "58 % pharmacies", "17 % Evalar")


async def test_what_a_reply_lacks_is_extracted(endpoint: Endpoint, provider: EmbeddingProvider) -> None:
    endpoint.answers = [said("Narrative: The market grew a lot.")]
    result = await compress(endpoint, provider)
    assert (result.compressor, result.narrative) == (LLM, "The market grew a lot.")
    assert result.title
    assert any("58 %" in fact for fact in result.facts)
    endpoint.answers = [said(f'Title: {"very long " * 30}\nNarrative: It grew.\nFacts: ["a", "b", "c"]')]
    assert len((await compress(endpoint, provider)).title) <= 80


@pytest.mark.parametrize(
    "answer",
    [
        (500, b"{}"),
        (200, b"not json"),
        (200, b"{}"),
        (200, b'{"choices": []}'),
        said(None),
        said("   "),
        said("I cannot help with that."),
        said([{"type": "text"}]),
        (401, b'{"error": {"message": "no key"}}'),
    ],
)
async def test_what_cannot_be_used_falls_back(endpoint: Endpoint, provider: EmbeddingProvider, answer: Answer) -> None:
    endpoint.answers = [answer]
    result = await compress(endpoint, provider)
    assert result.compressor == EXTRACTIVE
    assert result.fallback
    assert "221 billion" in result.body
    assert result.facts[-1] == "[wiggum] SOM without a method"


async def test_a_failure_is_retried_twice(endpoint: Endpoint, provider: EmbeddingProvider) -> None:
    endpoint.answers = [(500, b"{}"), (503, b"{}"), said(GOOD)]
    assert (await compress(endpoint, provider)).compressor == LLM
    assert len(endpoint.requests) == 3


async def test_a_slow_model_is_given_up(endpoint: Endpoint, provider: EmbeddingProvider) -> None:
    def slowly() -> Answer:
        time.sleep(0.5)
        return said(GOOD)

    endpoint.answers = [slowly]
    assert (await compress(endpoint, provider, timeout=0.05)).compressor == EXTRACTIVE


async def test_a_reply_that_drips_is_given_up(endpoint: Endpoint, provider: EmbeddingProvider) -> None:
    dripped = []

    def drip() -> Iterator[bytes]:
        for drop in range(100):
            time.sleep(0.05)
            dripped.append(drop)
            yield b" "

    endpoint.answers = [lambda: (200, drip())]
    assert (await compress(endpoint, provider, timeout=0.3)).compressor == EXTRACTIVE
    assert len(dripped) < 100


async def test_a_pause_of_a_day_is_not_waited_for(endpoint: Endpoint, provider: EmbeddingProvider) -> None:
    endpoint.pause = ("retry-after", "86400")
    endpoint.answers = [(429, b"{}"), said(GOOD)]
    assert (await compress(endpoint, provider)).compressor == EXTRACTIVE


async def test_what_will_not_change_is_not_tried_again(endpoint: Endpoint, provider: EmbeddingProvider) -> None:
    endpoint.answers = [(401, b"{}")]
    assert (await compress(endpoint, provider)).compressor == EXTRACTIVE
    assert len(endpoint.requests) == 1


async def test_why_a_model_was_not_taken_can_be_stored(provider: EmbeddingProvider) -> None:
    chat = Says(LLMUnavailable(f"bad \0 \x1b[31m\ud83d body\n{'long ' * 1_000}"))
    fallback = (await compress_outcome(OUTCOME, provider, chat, evaluator="wiggum")).fallback
    assert fallback.startswith("bad [31m body long")
    assert len(fallback) <= 500


async def test_an_evaluator_with_many_issues_is_kept_short(provider: EmbeddingProvider) -> None:
    many = structs.replace(
        OUTCOME, issues=(*(f"issue {number} {'long ' * 200}" for number in range(600)), "issue 0", " ")
    )
    result = await compress_outcome(many, provider, Says(GOOD), evaluator="judge")
    issues = [fact for fact in result.facts if fact.startswith("[judge]")]
    assert (len(issues), issues[-1]) == (51, "[judge] and 551 more")
    assert max(map(len, issues)) <= len("[judge] ") + 400
    assert len(result.body) < 25_000
    few = structs.replace(OUTCOME, issues=("a", "b", "a"))
    assert (await compress_outcome(few, provider, Says(GOOD), evaluator="judge")).facts[-2:] == (
        "[judge] a",
        "[judge] b",
    )


async def test_compressing_a_large_output_holds_nobody_up() -> None:
    output = "\n\n".join(
        f"Sentence {number} has {number * 7} rubles and a share of {number} %." for number in range(25_000)
    )
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    watching = asyncio.create_task(watch())
    await compress_outcome(structs.replace(OUTCOME, output=output), NoopProvider(), None, evaluator="judge")
    watching.cancel()
    assert turns > 10


async def test_a_model_that_is_down_is_left_out(provider: EmbeddingProvider) -> None:
    chat = OpenAIChat(model="m", base_url="http://127.0.0.1:9/v1", api_key="", timeout=1)
    result = await compress_outcome(OUTCOME, provider, chat, evaluator="judge")
    await chat.close()
    assert (result.compressor, result.facts[-1]) == (EXTRACTIVE, "[judge] SOM without a method")
