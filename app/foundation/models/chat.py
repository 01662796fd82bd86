"""Calls a chat model at an endpoint that speaks OpenAI's protocol, as Ollama does, too."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from openai import APIStatusError, AsyncOpenAI

from app.errors import LLMUnavailable

_RETRIES = 2
_LARGEST_REPLY_TOKENS = 2_000
"""Most tokens of a reply: it needs 200, and a model may write its reasoning before it."""
_MESSAGE_CHARACTERS = 300
"""Characters of an error's message that are quoted."""
_REJECTED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Status codes of an endpoint that does not know a field of the request."""


class OpenAIChat:
    """Speaks the OpenAI chat protocol."""

    def __init__(self, *, model: str, base_url: str, api_key: str, timeout: float) -> None:
        self.model = model
        self._timeout = timeout
        self._takes_schemas = True
        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key or "none", timeout=timeout, max_retries=_RETRIES)

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        """Returns the text of the reply, after up to three attempts; an endpoint that knows no schemas gets none.

        Raises:
            LLMUnavailable: the endpoint is down, slow, or answers with something else.
        """
        try:
            return await self._ask(prompt, schema if self._takes_schemas else None)
        except _Rejected:
            if schema is None or not self._takes_schemas:
                raise
            # Only an answer without it shows that the schema was to blame, and not the prompt.
            reply = await self._ask(prompt, None)
            self._takes_schemas = False
            return reply

    async def _ask(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": _LARGEST_REPLY_TOKENS,
            "temperature": 0,
        }
        if schema is not None:
            named = {"name": "reply", "strict": True, "schema": schema}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
        try:
            # A reply may also trickle in, which ends no attempt.
            async with asyncio.timeout((1 + _RETRIES) * self._timeout):
                reply = await self._client.chat.completions.create(**asked)
            text = reply.choices[0].message.content
        except APIStatusError as error:
            message = (
                f"the language model's endpoint answered {error.status_code}: {error.message[:_MESSAGE_CHARACTERS]}"
            )
            raise (_Rejected if error.status_code in _REJECTED else LLMUnavailable)(message) from error
        except Exception as error:
            # The client and its transport each have error classes of their own.
            raise LLMUnavailable(f"the language model did not answer: {type(error).__name__}: {error}") from error
        if not isinstance(text, str) or not text.strip():
            raise LLMUnavailable("the language model gave an empty answer")
        return text

    async def close(self) -> None:
        """Releases the connections."""
        await self._client.close()


class _Rejected(LLMUnavailable):
    """The endpoint takes no such request; it may take one without a schema."""
