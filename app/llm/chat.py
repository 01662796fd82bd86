"""A chat model behind an OpenAI-compatible endpoint, Ollama included; where none is configured there is none."""

from typing import Protocol

from app.errors import LLMUnavailable
from app.settings import Settings

RETRIES = 2
"""After the first attempt, with growing pauses."""
LARGEST_REPLY_TOKENS = 2_000
"""A reply is 200 tokens long; a model that reasons aloud before takes the rest."""


class Chat(Protocol):
    """What completes a prompt."""

    model: str

    async def complete(self, prompt: str) -> str:
        """The reply's text.

        Raises:
            LLMUnavailable: the endpoint is down, slow or answers nonsense.
        """
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


class OpenAIChat:
    """Speaks the OpenAI chat protocol."""

    def __init__(self, *, model: str, base_url: str, api_key: str, timeout: float) -> None:
        from openai import AsyncOpenAI  # noqa: PLC0415 - takes half a second to import

        self.model = model
        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key or "none", timeout=timeout, max_retries=RETRIES)

    async def complete(self, prompt: str) -> str:
        """The reply's text.

        Raises:
            LLMUnavailable: the endpoint is down, slow or answers nonsense.
        """
        from openai import OpenAIError  # noqa: PLC0415 - takes half a second to import

        try:
            answer = await self._client.chat.completions.create(
                model=self.model,
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=LARGEST_REPLY_TOKENS,
            )
            text = answer.choices[0].message.content
        except (OpenAIError, ValueError, AttributeError, IndexError, TypeError, KeyError) as error:
            # The client hands on whatever the endpoint sent: a body of another shape fails where it is read.
            raise LLMUnavailable(f"the language model did not answer: {type(error).__name__}: {error}") from error
        if not isinstance(text, str) or not text.strip():
            raise LLMUnavailable("the language model gave an empty answer")
        return text

    async def close(self) -> None:
        """Release the connections."""
        await self._client.close()


def chat_from(settings: Settings) -> Chat | None:
    """The chat model of these settings; None where none is configured."""
    if not settings.llm_base_url:
        return None
    return OpenAIChat(
        model=settings.compress_model,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        timeout=settings.llm_timeout,
    )
