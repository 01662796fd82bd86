"""Calls a chat model at an OpenAI-compatible endpoint (Ollama has one too). It is optional: the settings name it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Protocol

import httpx

from app.errors import LLMUnavailable
from app.foundation.models.protocols import Breaker, Wait
from app.settings import Settings

_PAUSES = (0.5, 1.0)
"""Seconds before the second and the third attempt, unless the endpoint asks for others."""
_LONGEST_PAUSE = 8.0
"""Longest pause in seconds, even if the endpoint asks for a longer one."""
_LARGEST_REPLY_TOKENS = 2_000
"""Most tokens of a reply: it needs 200, and a model may write its reasoning before it."""
_LARGEST_REPLY = 1_000_000
"""Most bytes of an answer: a hundred times the size of _LARGEST_REPLY_TOKENS."""
_MESSAGE_CHARACTERS = 300
"""Characters of an error's body that are quoted."""
_READY = "Reply with the word yes."
"""The prompt that shows whether an endpoint answers."""
_TRANSIENT = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
"""Status codes below 500 after which another attempt may succeed; every code from 500 on is one too."""

_REJECTED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Status codes of an endpoint that does not know a field of the request."""


class Chat(Protocol):
    """Completes prompts."""

    model: str

    @property
    def refusal(self) -> str:
        """The reason why a request should go on without the model; empty unless the endpoint is away."""
        ...

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        """Returns the text of the reply: JSON of this schema, where the endpoint can be held to one.

        Raises:
            LLMUnavailable: the endpoint is down, slow, or answers with something else.
        """
        ...

    async def close(self) -> None:
        """Releases the connections."""
        ...


class OpenAIChat:
    """Speaks the OpenAI chat protocol. An attempt takes at most `timeout` seconds, even if its answer trickles in.

    Jobs complete their prompts whether the endpoint is away or not: what they store without it stays so.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: str,
        timeout: float,
        wait: Wait = asyncio.sleep,
    ) -> None:
        self.model = model
        self._timeout, self._wait = timeout, wait
        self._takes_schemas = True
        self._breaker = Breaker("the language model", lambda: self._attempt(_READY), wait=wait)
        headers = {"authorization": f"Bearer {api_key or 'none'}"}
        self._client = httpx.AsyncClient(base_url=base_url, headers=headers, timeout=timeout, follow_redirects=True)

    @property
    def refusal(self) -> str:
        """The reason why a request should go on without the model; empty unless the endpoint is away."""
        return self._breaker.refusal

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        """Returns the text of the reply, after up to three attempts; an endpoint that knows no schemas gets none.

        Raises:
            LLMUnavailable: the endpoint is down, slow, or answers with something else.
        """
        try:
            try:
                return await self._attempts(prompt, schema if self._takes_schemas else None)
            except _Rejected:
                if schema is None or not self._takes_schemas:
                    raise
                # Only an answer without it shows that the schema was to blame, and not the prompt.
                reply = await self._attempts(prompt, None)
                self._takes_schemas = False
                return reply
        except _TransientFailure as error:
            self._breaker.open(str(error))
            raise
        except asyncio.CancelledError:
            # The caller may wait for a shorter time than an answer takes.
            self._breaker.doubt()
            raise

    async def _attempts(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        for pause in _PAUSES:
            try:
                return await self._attempt(prompt, schema)
            except _TransientFailure as error:
                await self._wait(min(pause if error.pause is None else error.pause, _LONGEST_PAUSE))
        return await self._attempt(prompt, schema)

    async def _attempt(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        try:
            async with asyncio.timeout(self._timeout):
                body = await self._body(prompt, schema)
        except LLMUnavailable:
            raise
        except TimeoutError as error:
            raise _TransientFailure(f"the language model did not answer within {self._timeout:g} seconds") from error
        except Exception as error:
            # The client and its transport each have error classes of their own.
            raise _TransientFailure(f"the language model did not answer: {type(error).__name__}: {error}") from error
        return _reply(body)

    async def _body(self, prompt: str, schema: Mapping[str, Any] | None) -> bytes:
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": _LARGEST_REPLY_TOKENS,
            "temperature": 0,
        }
        if schema is not None:
            named = {"name": "reply", "strict": True, "schema": schema}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
        async with self._client.stream("POST", "chat/completions", json=asked) as response:
            await _check_status(response)
            return await _read_bounded(response.aiter_bytes())

    async def close(self) -> None:
        """Ends the attempts and releases the connections."""
        await self._breaker.close()
        await self._client.aclose()


class _TransientFailure(LLMUnavailable):
    """A failure after which another attempt may succeed; `pause` is in seconds, as the endpoint asks."""

    def __init__(self, message: str, pause: float | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class _Rejected(LLMUnavailable):
    """The endpoint takes no such request; it may take one without a schema."""


async def _read_bounded(parts: AsyncIterator[bytes]) -> bytes:
    found = bytearray()
    async for part in parts:
        found += part
        if len(found) > _LARGEST_REPLY:
            raise LLMUnavailable(f"the language model's answer is longer than {_LARGEST_REPLY:,} bytes")
    return bytes(found)


async def _check_status(response: httpx.Response) -> None:
    """Raises the error that a response states; its body is read up to a bound."""
    status = response.status_code
    if status < HTTPStatus.BAD_REQUEST:
        return
    body = (await _read_bounded(response.aiter_bytes())).decode(errors="replace")
    message = f"the language model's endpoint answered {status}: {body[:_MESSAGE_CHARACTERS]}"
    if status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise _TransientFailure(message, _requested_pause(response.headers))
    raise _Rejected(message) if status in _REJECTED else LLMUnavailable(message)


def _requested_pause(headers: httpx.Headers) -> float | None:
    """Returns the seconds that the endpoint asks for; a date is ignored."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "")
        if value.isascii() and value.isdecimal():
            return int(value[:9]) / unit
    return None


def _reply(body: bytes) -> str:
    try:
        text = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise LLMUnavailable(
            f"the language model's answer is no chat completion: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(text, str) or not text.strip():
        raise LLMUnavailable("the language model gave an empty answer")
    return text


def chat_from(settings: Settings) -> Chat | None:
    """Builds the chat model that the settings name; None if they name none."""
    if not settings.llm_base_url:
        return None
    return OpenAIChat(
        model=settings.compress_model,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        timeout=settings.llm_timeout,
    )
