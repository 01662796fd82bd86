"""Protocols of the embedding providers, the re-ranker, the chat model and the token counter; the breaker.

Libraries of circuit breakers (aiobreaker, circuitbreaker, purgatory and pybreaker were read) let a caller try from time
to time whether the service is back, and that caller waits. None tries in the background; without their half-open state
only a flag is left of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import structlog
from numpy.typing import NDArray

from app.foundation.models.late import TokenCodes

Vector = NDArray[np.float32]
"""Shape (dimension,), unit length."""
Matrix = NDArray[np.float32]
"""Shape (texts, dimension), rows of unit length."""
QueryVectors = tuple[Vector, Matrix | None]
"""The vector of a query, and those of its words, a row each; None if the model gives none, or no word means something.
"""

_LONGEST_TOKEN = 40
"""Characters of a token, at most, on the average of a window; a text of longer ones is encoded data."""


class TokenCounter(Protocol):
    """Counts tokens as the embedding model does."""

    def count(self, text: str) -> int:
        """Counts the model tokens of `text`, without the special tokens at both ends."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text; some counters do it faster than one call per text."""
        return [self.count(text) for text in texts]


class Window(NamedTuple):
    """The part of a text that an embedding model reads: its beginning."""

    tokens: int
    """Tokens of that part, without the special ones at both ends."""
    counter: TokenCounter
    """Counts with the model's own tokenizer."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text: all if they fit into the window, else at least one more than fit."""
        return self.counter.count_many([text[: _LONGEST_TOKEN * self.tokens] for text in texts])


class EmbeddingProvider(Protocol):
    """Turns queries and documents into vectors. Vectors of two different `model_id`s are never compared."""

    @property
    def model_id(self) -> str:
        """The name under which the vectors are stored. A different computation has a different name."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def enabled(self) -> bool:
        """False if there are no vectors at all (`noop`): answers then name the vector arm as degraded."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """Embeds one query. Concurrent calls are batched.

        Raises:
            EmbeddingUnavailable: the model gives no vector now.
        """
        ...

    async def start(self) -> None:
        """Prepares the model (writes, loads, warms it up) off the event loop. May be called twice.

        Raises:
            EmbeddingUnavailable: the model cannot be prepared or does not answer.
        """
        ...

    async def window(self) -> Window | None:
        """Returns the window of the model; None if it is not known here, as a remote model's is not.

        Raises:
            EmbeddingUnavailable: the model's tokenizer cannot be had now.
        """
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Embeds many texts; the rows have the order of the texts.

        Raises:
            EmbeddingUnavailable: the model gives no vectors now.
        """
        ...

    async def close(self) -> None:
        """Releases threads and connections."""
        ...


PLANS, LESSONS = "plans", "lessons"
"""Adapters of a model. With that of plans, the vector of a plan is near those of the lessons that apply to it. With
that of lessons, a row is one number: the log-odds, but for a constant, that a sentence in its turn is a lesson."""


@runtime_checkable
class AdaptedEmbedder(Protocol):
    """A provider whose model may have adapters."""

    async def embed_adapted(self, texts: Sequence[str], adapter: str, *, queries: bool) -> Matrix | None:
        """Returns what the model with an adapter gives for texts; None if the model that embeds now has none.

        `queries` are embedded by the thread of the queries, without waiting for documents.

        Raises:
            EmbeddingUnavailable: the model gives no vectors now.
        """
        ...


async def adapted_vectors(
    provider: EmbeddingProvider, texts: Sequence[str], adapter: str = PLANS, *, queries: bool = False
) -> Matrix | None:
    """Returns what the model of a provider with an adapter gives for at least one text; None if it has none.

    Raises:
        EmbeddingUnavailable: the model gives no vectors now.
    """
    if not isinstance(provider, AdaptedEmbedder):
        return None
    return await provider.embed_adapted(texts, adapter, queries=queries)


@runtime_checkable
class TokenEmbedder(Protocol):
    """A provider whose model also gives a vector for each token."""

    async def embed_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        """Embeds documents as `embed_documents` does, and returns the codes of their tokens beside the vectors.

        Raises:
            EmbeddingUnavailable: the model gives no vectors now.
        """
        ...

    async def embed_words(self, query: str) -> QueryVectors:
        """Embeds a query as `embed_query` does, and its words.

        Raises:
            EmbeddingUnavailable: the model gives no vectors now.
        """
        ...


async def embed_tokens(provider: EmbeddingProvider, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenCodes | None]]:
    """Embeds documents, and returns the codes of their tokens beside the vectors; None where a provider has none.

    Raises:
        EmbeddingUnavailable: the model gives no vectors now.
    """
    if isinstance(provider, TokenEmbedder):
        return await provider.embed_tokens(texts)
    return await provider.embed_documents(texts), [None] * len(texts)


async def embed_words(provider: EmbeddingProvider, query: str) -> QueryVectors:
    """Embeds a query, and its words if its provider gives vectors of words.

    Raises:
        EmbeddingUnavailable: the model gives no vectors now.
    """
    if isinstance(provider, TokenEmbedder):
        return await provider.embed_words(query)
    return await provider.embed_query(query), None


class Reranker(Protocol):
    """Scores texts for a query; the model reads each text together with the query."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Returns a score for each text, on any scale: higher is better, and 0 means even odds.

        Raises:
            RerankerUnavailable: the model gives no scores now.
        """
        ...

    async def close(self) -> None:
        """Releases threads."""
        ...


class Chat(Protocol):
    """Completes prompts. It is optional: the settings name it."""

    model: str

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        """Returns the text of the reply: JSON of this schema, where the endpoint can be held to one.

        Raises:
            LLMUnavailable: the endpoint is down, slow, or answers with something else.
        """
        ...

    async def close(self) -> None:
        """Releases the connections."""
        ...


_FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before the first attempt, and the most between two; each pause is twice as long as the one before. So a
restart is noticed within seconds, and an endpoint that stays away is asked twice a minute."""

Wait = Callable[[float], Awaitable[object]]
"""Waits for so many seconds; tests have others than asyncio's."""

logger = structlog.get_logger()


class Breaker:
    """Is open while a remote model is away. Only its own attempts close it: no caller waits for one."""

    def __init__(self, name: str, attempt: Callable[[], Awaitable[object]], *, wait: Wait = asyncio.sleep) -> None:
        """`attempt` asks the model, and raises if it is away."""
        self._name, self._attempt, self._wait = name, attempt, wait
        self._since: datetime | None = None
        self._reason = ""
        self._trying: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def refusal(self) -> str:
        """The reason why nobody is to wait for the model now; empty unless it is away."""
        if self._since is None:
            return ""
        since = f"{self._since:%Y-%m-%d %H:%M:%S} UTC"
        return f"{self._name} has been away since {since} and is tried again in the background: {self._reason}"

    def open(self, reason: str) -> str:
        """Notes that a call has failed, and returns the refusal of those that follow."""
        if self._since is None:
            self._since = datetime.now(UTC)
            logger.warning("a service is away", service=self._name, reason=reason)
        self._reason = reason
        self._try_after(_FIRST_PAUSE)
        return self.refusal

    def doubt(self) -> None:
        """Has the model tried at once, after a call that says nothing about the next one, as one that was given up."""
        self._try_after(0.0)

    async def close(self) -> None:
        """Ends the attempts; later failures start no more of them."""
        self._closed = True
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)

    def _try_after(self, pause: float) -> None:
        if not self._closed and (self._trying is None or self._trying.done()):
            # The attempts belong to no request: their log lines name none.
            self._trying = asyncio.create_task(self._try(pause), context=Context())

    async def _try(self, pause: float) -> None:
        """Tries until the model answers."""
        while True:
            await self._wait(pause)
            try:
                await self._attempt()
            except Exception as error:  # noqa: BLE001 - whatever it is, callers would meet it too
                self.open(str(error))
            else:
                break
            pause = min(max(2 * pause, _FIRST_PAUSE), LONGEST_PAUSE)
        if self._since is not None:
            logger.info("a service is back", service=self._name, away_since=self._since.isoformat())
        self._since, self._reason = None, ""
