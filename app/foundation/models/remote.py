"""Calls an embedding model at an endpoint that speaks OpenAI's protocol, as Ollama does, too."""

import asyncio
from base64 import b64decode
from collections.abc import Sequence
from http import HTTPStatus

import numpy as np
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError

from app.errors import EmbeddingUnavailable
from app.foundation.models.protocols import Breaker, Matrix, Vector, Wait, Window
from app.foundation.models.tokens import well_formed
from app.foundation.text.passages import groups_within

_OLLAMA_URL = "http://127.0.0.1:11434/v1"
_BATCH_TEXTS = 128
BATCH_CHARACTERS = 200_000
"""Characters of one request: endpoints limit its tokens as well as its texts."""
_TOO_LARGE = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Answers to a request of more texts, or of a longer one, than the provider takes; each names other limits."""
LEAST_CHARACTERS = 500
"""Characters of a text that is not shortened further: about 128 tokens, fewer than any model's window."""
_RETRIES = 2
READY = "ready?"
"""The text that is embedded to see whether a provider answers."""


class _Away(EmbeddingUnavailable):
    """A failure that the next request would meet too, whatever its text."""


class RemoteProvider:
    """Speaks the OpenAI embeddings protocol.

    While the provider is away, queries are refused at once. Documents are sent all the same: their jobs have retries of
    their own, and a run that is compressed without vectors stays so.
    """

    enabled = True

    def __init__(
        self,
        *,
        kind: str,
        model: str,
        dimension: int,
        base_url: str,
        api_key: str,
        timeout: float,
        wait: Wait = asyncio.sleep,
    ) -> None:
        self.model_id, self.dimension = f"{kind}:{model}", dimension
        self._model, self._timeout = model, timeout
        self._breaker = Breaker("the embedding provider", lambda: self._vector(READY), wait=wait)
        default = _OLLAMA_URL if kind == "ollama" else None
        self._client = AsyncOpenAI(
            base_url=base_url or default, api_key=api_key or "none", timeout=timeout, max_retries=_RETRIES
        )

    async def start(self) -> None:
        """Embeds one text, so that a wrong setting shows at once.

        Raises:
            EmbeddingUnavailable: the provider does not answer, or not as an embeddings endpoint does.
        """
        try:
            await self._vectors([READY])
        except _Away as error:
            self._breaker.open(str(error))
            raise

    async def embed_query(self, text: str) -> Vector:
        """Embeds one query. All attempts together take no longer than the timeout, whatever the provider asks for.

        Raises:
            EmbeddingUnavailable: the provider gives no vector, or is away, which is said at once.
        """
        if self._breaker.refusal:
            raise EmbeddingUnavailable(self._breaker.refusal)
        try:
            return await self._vector(text)
        except _Away as error:
            raise EmbeddingUnavailable(self._breaker.open(str(error))) from error
        except asyncio.CancelledError:
            # The caller may wait for a shorter time than this provider does.
            self._breaker.doubt()
            raise

    async def window(self) -> Window | None:
        """Returns None: only the provider knows what its model reads."""
        return None

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Embeds many texts, in several requests if need be.

        Raises:
            EmbeddingUnavailable: the provider gives no vectors.
        """
        try:
            batches = groups_within(map(len, texts), BATCH_CHARACTERS, count=_BATCH_TEXTS)
            parts = [await self._vectors(texts[batch]) for batch in batches]
        except _Away:
            # A large batch may take too long where a query does not.
            self._breaker.doubt()
            raise
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), np.float32)

    async def close(self) -> None:
        """Ends the attempts and closes the connections."""
        await self._breaker.close()
        await self._client.close()

    async def _vector(self, text: str) -> Vector:
        try:
            async with asyncio.timeout(self._timeout):
                vector: Vector = (await self._vectors([text]))[0]
        except TimeoutError as error:
            raise _Away(_with_settings(f"{self.model_id} gave no vector within {self._timeout:g} s")) from error
        return vector

    async def _vectors(self, texts: Sequence[str]) -> Matrix:
        """Embeds texts in one request, or in halves where the provider refuses it as too large."""
        try:
            # Some endpoints refuse an empty text.
            reply = await self._client.embeddings.create(
                model=self._model, input=[well_formed(text) or " " for text in texts], encoding_format="float"
            )
            return self._check_vectors([(item.index, item.embedding) for item in reply.data], len(texts))
        except APIStatusError as error:
            at_fault = error.status_code in _TOO_LARGE
            halves = _halves(texts) if at_fault else ()
            if not halves:
                reason = f"{self.model_id} answers {error.status_code}: {error.message[:200]}"
                raise (EmbeddingUnavailable if at_fault else _Away)(_with_settings(reason)) from error
        except APIConnectionError as error:
            reason = f"{self.model_id} cannot be reached at {self._client.base_url}: {error}"
            raise _Away(_with_settings(reason)) from error
        except (OpenAIError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            reason = f"{self.model_id} does not answer as an embeddings endpoint does: {error}"
            raise _Away(_with_settings(reason)) from error
        return np.concatenate([await self._vectors(half) for half in halves])

    def _check_vectors(self, items: Sequence[tuple[int, object]], expected: int) -> Matrix:
        """Returns the vectors in the order of the texts, at unit length.

        Raises:
            ValueError: a vector is missing, has another length, is zero or is not finite.
        """
        given = {index: _numbers(vector) for index, vector in items}
        if len(items) != expected or given.keys() != set(range(expected)):
            raise ValueError(f"asked for {expected} vectors, {len(items)} came")
        wrong = next((len(vector) for vector in given.values() if len(vector) != self.dimension), None)
        if wrong is not None:
            raise ValueError(f"a vector has {wrong} numbers: set PRIORS_EMBEDDING_DIMENSION={wrong}")
        matrix = np.array([given[index] for index in range(expected)], np.float64)
        largest = np.abs(matrix).max(axis=1, keepdims=True)
        if not np.isfinite(matrix).all() or not largest.all():
            raise ValueError("a vector is zero or holds no numbers")
        # Divided by the largest number first, so that no square overflows.
        matrix /= largest
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix.astype(np.float32)


def _with_settings(reason: str) -> str:
    """Returns the reason of a failure with the settings that may mend it."""
    return f"{reason}; check PRIORS_EMBEDDING_BASE_URL, PRIORS_EMBEDDING_MODEL and PRIORS_EMBEDDING_API_KEY"


def _numbers(vector: object) -> Sequence[float]:
    """Returns the numbers of a vector; some endpoints give 32-bit floats in base64 whatever they are asked for."""
    if isinstance(vector, str):
        decoded: list[float] = np.frombuffer(b64decode(vector, validate=True), "<f4").tolist()
        return decoded
    if not isinstance(vector, list):
        raise TypeError("a vector is no list of numbers")
    return vector


def _halves(texts: Sequence[str]) -> Sequence[Sequence[str]]:
    """Returns both halves of several texts, or the beginning of a single one; nothing if it is short already."""
    if len(texts) > 1:
        return texts[: len(texts) // 2], texts[len(texts) // 2 :]
    return ([texts[0][: len(texts[0]) // 2]],) if len(texts[0]) > LEAST_CHARACTERS else ()
