"""Builds the embedding provider that the settings name: local, remote (OpenAI's protocol, Ollama's too) or none."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn, cast

import numpy as np
import structlog

from app.errors import EmbeddingUnavailable
from app.models.folders import folder_of
from app.models.local import LocalProvider
from app.models.prefixes import prefixed, prefixes_of, read_stored_name
from app.models.protocols import EmbeddingProvider, Matrix, Vector
from app.settings import ProviderKind, Settings

OLLAMA_URL = "http://127.0.0.1:11434/v1"
BATCH_TEXTS = 128
BATCH_CHARACTERS = 200_000
"""Characters of one request: endpoints limit its tokens as well as its texts."""
RETRIES = 2
OPEN_SECONDS = 5.0
"""Time after a failure in which queries are refused at once, so that no recall waits for a provider that is down (a
circuit breaker)."""

logger = structlog.get_logger()


class RemoteProvider:
    """Speaks the OpenAI embeddings protocol."""

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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from openai import AsyncOpenAI  # noqa: PLC0415 - takes a second to import

        self.model_id, self.dimension = f"{kind}:{model}", dimension
        self._model, self._clock = model, clock
        self._open_until, self._reason = 0.0, ""
        default = OLLAMA_URL if kind == "ollama" else None
        self._client = AsyncOpenAI(
            base_url=base_url or default, api_key=api_key or "none", timeout=timeout, max_retries=RETRIES
        )

    async def start(self) -> None:
        """Embeds one text, so that a wrong setting shows at once.

        Raises:
            EmbeddingUnavailable: the provider does not answer, or not as an embeddings endpoint does.
        """
        await self._vectors(["ready?"])

    async def embed_query(self, text: str) -> Vector:
        """Embeds one query.

        Raises:
            EmbeddingUnavailable: the provider gives no vector, or failed less than OPEN_SECONDS ago.
        """
        if self._clock() < self._open_until:
            raise EmbeddingUnavailable(self._reason)
        vector: Vector = (await self._vectors([text]))[0]
        return vector

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Embeds many texts, in several requests if need be.

        Raises:
            EmbeddingUnavailable: the provider gives no vectors.
        """
        parts = [await self._vectors(batch) for batch in _batches(texts)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), np.float32)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def _vectors(self, texts: Sequence[str]) -> Matrix:
        from openai import APIConnectionError, APIStatusError, OpenAIError  # noqa: PLC0415 - with the client

        try:
            # Some endpoints refuse an empty text.
            reply = await self._client.embeddings.create(
                model=self._model, input=[text or " " for text in texts], encoding_format="float"
            )
            return self._checked([(item.index, item.embedding) for item in reply.data], len(texts))
        except APIStatusError as error:
            self._refuse(f"{self.model_id} answers {error.status_code}: {error.message[:200]}", error)
        except APIConnectionError as error:
            self._refuse(f"{self.model_id} cannot be reached at {self._client.base_url}: {error}", error)
        except (OpenAIError, ValueError, TypeError, AttributeError) as error:
            self._refuse(f"{self.model_id} does not answer as an embeddings endpoint does: {error}", error)

    def _refuse(self, reason: str, error: Exception) -> NoReturn:
        self._open_until, self._reason = self._clock() + OPEN_SECONDS, reason
        logger.warning("the embedding provider failed", reason=reason)
        raise EmbeddingUnavailable(
            f"{reason}; check PRIORS_EMBEDDING_BASE_URL, PRIORS_EMBEDDING_MODEL and PRIORS_EMBEDDING_API_KEY"
        ) from error

    def _checked(self, items: Sequence[tuple[int, Sequence[float]]], expected: int) -> Matrix:
        """Returns the vectors in the order of the texts, at unit length.

        Raises:
            ValueError: a vector is missing, has another length, is zero or is not finite.
        """
        if sorted(index for index, _ in items) != list(range(expected)):
            raise ValueError(f"asked for {expected} vectors, {len(items)} came")
        wrong = next((len(vector) for _, vector in items if len(vector) != self.dimension), None)
        if wrong is not None:
            raise ValueError(f"a vector has {wrong} numbers: set PRIORS_EMBEDDING_DIMENSION={wrong}")
        matrix = np.array([vector for _, vector in sorted(items)], np.float32)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.isfinite(matrix).all() or not norms.all():
            raise ValueError("a vector is zero or holds no numbers")
        matrix /= norms
        return matrix


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
    return prefixed(_provider(named), prefixes)


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
    return prefixed(provider, prefixes_of(settings.embedding_model)) if provider.enabled else provider


def _provider(settings: Settings) -> EmbeddingProvider:
    match settings.embedding_provider:
        case "noop":
            return NoopProvider()
        case "local":
            return LocalProvider(
                settings.data_dir,
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
                threads=settings.embedding_threads,
                given=folder_of(settings.embedding_folder, settings.embedding_model, configured=True),
            )
    return RemoteProvider(
        kind=settings.embedding_provider,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_api_key,
        timeout=settings.embedding_timeout,
    )
