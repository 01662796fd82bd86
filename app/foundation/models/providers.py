"""Builds the embedding provider that the settings name: local, remote (OpenAI's protocol, Ollama's too) or none."""

import asyncio
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import cast

import numpy as np

from app.errors import EmbeddingUnavailable
from app.foundation.models.breaker import Breaker, Wait
from app.foundation.models.folders import folder_of
from app.foundation.models.local import LocalProvider
from app.foundation.models.prefixes import prefixes_of, read_stored_name, with_prefixes
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Vector, Window
from app.foundation.models.tokenizer import well_formed
from app.settings import ProviderKind, Settings

TIMEOUT_SECONDS = 10.0
"""Longest wait for a remote provider."""
OLLAMA_URL = "http://127.0.0.1:11434/v1"
BATCH_TEXTS = 128
BATCH_CHARACTERS = 200_000
"""Characters of one request: endpoints limit its tokens as well as its texts."""
TOO_LARGE = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Answers to a request of more texts, or of a longer one, than the provider takes; each names other limits."""
LEAST_CHARACTERS = 500
"""Characters of a text that is not shortened further: about 128 tokens, fewer than any model's window."""
RETRIES = 2
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
        from openai import AsyncOpenAI  # noqa: PLC0415 - takes a second to import

        self.model_id, self.dimension = f"{kind}:{model}", dimension
        self._model, self._timeout = model, timeout
        self._breaker = Breaker("the embedding provider", lambda: self._vector(READY), wait=wait)
        default = OLLAMA_URL if kind == "ollama" else None
        self._client = AsyncOpenAI(
            base_url=base_url or default, api_key=api_key or "none", timeout=timeout, max_retries=RETRIES
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
            parts = [await self._vectors(batch) for batch in _batches(texts)]
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
        from openai import APIConnectionError, APIStatusError, OpenAIError  # noqa: PLC0415 - with the client

        try:
            # Some endpoints refuse an empty text.
            reply = await self._client.embeddings.create(
                model=self._model, input=[well_formed(text) or " " for text in texts], encoding_format="float"
            )
            return self._check_vectors([(item.index, item.embedding) for item in reply.data], len(texts))
        except APIStatusError as error:
            at_fault = error.status_code in TOO_LARGE
            halves = _halves(texts) if at_fault else ()
            if not halves:
                reason = f"{self.model_id} answers {error.status_code}: {error.message[:200]}"
                raise (EmbeddingUnavailable if at_fault else _Away)(_with_settings(reason)) from error
        except APIConnectionError as error:
            raise _Away(
                _with_settings(f"{self.model_id} cannot be reached at {self._client.base_url}: {error}")
            ) from error
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


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    batch: list[str] = []
    characters = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or characters + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


class NoopProvider:
    """Switches the vector arm off: its vectors are zeros, which nothing compares."""

    model_id = "noop"
    dimension = 384
    enabled = False

    async def start(self) -> None:
        """Does nothing."""

    async def embed_query(self, text: str) -> Vector:
        """Returns a zero vector."""
        del text
        return np.zeros(self.dimension, np.float32)

    async def window(self) -> Window | None:
        """Returns None: no text is read."""
        return None

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Returns a zero vector for each text."""
        return np.zeros((len(texts), self.dimension), np.float32)

    async def close(self) -> None:
        """Does nothing."""


def provider_named(settings: Settings, name: str, dimension: int) -> EmbeddingProvider:
    """Builds the provider of a stored model, with the prefixes that its vectors were made with.

    The stored name of a remote model begins with its provider, as in `openai:model`; a local one's is its own.
    """
    model, prefixes = read_stored_name(name)
    kind, _, remote = model.partition(":")
    if kind in {"openai", "ollama"}:
        model = remote
    else:
        kind = "local"
    base_url = settings.embedding_base_url if kind == settings.embedding_provider else ""
    named = replace(
        with_model(settings, model, dimension),
        embedding_provider=cast("ProviderKind", kind),
        embedding_base_url=base_url,
    )
    return with_prefixes(_provider(named), prefixes)


def with_model(settings: Settings, model: str, dimension: int) -> Settings:
    """Returns the settings of another model of the same provider; it does not get the configured model's folder."""
    folder = folder_of(settings.embedding_folder, model, configured=model == settings.embedding_model)
    return replace(
        settings,
        embedding_model=model,
        embedding_dimension=dimension,
        embedding_folder="" if folder is None else str(folder),
    )


def provider_from(settings: Settings) -> EmbeddingProvider:
    """Builds the configured provider, which adds the prefixes that its model wants; not started yet.

    Raises:
        ConfigurationError: the provider's own settings do not fit.
    """
    provider = _provider(settings)
    return with_prefixes(provider, prefixes_of(settings.embedding_model)) if provider.enabled else provider


def _provider(settings: Settings) -> EmbeddingProvider:
    match settings.embedding_provider:
        case "noop":
            return NoopProvider()
        case "local":
            return LocalProvider(
                settings.data_dir,
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
                given=folder_of(settings.embedding_folder, settings.embedding_model, configured=True),
            )
    return RemoteProvider(
        kind=settings.embedding_provider,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_api_key,
        timeout=TIMEOUT_SECONDS,
    )
