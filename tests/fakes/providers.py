"""Embedding providers that are slow, fail or never answer."""

import asyncio
import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import EmbeddingUnavailable
from app.foundation.models.bundled import DEFAULT_MODEL, DIMENSION
from app.foundation.models.late import TokenCodes
from app.foundation.models.protocols import (
    EmbeddingProvider,
    Matrix,
    QueryVectors,
    Vector,
    Window,
    adapted_vectors,
    embed_tokens,
    embed_words,
)
from app.foundation.models.providers import NoopProvider
from app.foundation.models.tokens import BundledTokenCounter

WORD = re.compile(r"\w+")


class Hashed:
    """Stands for the real model where no meaning is judged: texts are as near as they share words, at no cost."""

    enabled = True
    model_id, dimension = DEFAULT_MODEL, DIMENSION

    async def start(self) -> None:
        pass

    async def embed_query(self, text: str) -> Vector:
        vector: Vector = self._matrix([text])[0]
        return vector

    async def window(self) -> Window | None:
        return Window(254, BundledTokenCounter())

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._matrix(texts)

    def _matrix(self, texts: Sequence[str]) -> Matrix:
        matrix = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(matrix, texts, strict=True):
            row[0] = 0.01  # a text without words has a vector too
            for word in WORD.findall(text.casefold()):
                # Ends are cut off, as a stemmer does.
                row[zlib.crc32(word[:5].encode()) % self.dimension] += 1
        unit: Matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        return unit

    async def close(self) -> None:
        pass


class ByMark(Hashed):
    """Hashes words, and embeds by the real model in the tests that are marked `meaning`."""

    understands = False

    def __init__(self, model: EmbeddingProvider) -> None:
        self.model = model

    async def embed_query(self, text: str) -> Vector:
        return await (self.model.embed_query(text) if self.understands else super().embed_query(text))

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return await (self.model.embed_documents(texts) if self.understands else super().embed_documents(texts))

    async def embed_adapted(self, texts: Sequence[str], adapter: str, *, queries: bool) -> Matrix | None:
        return await adapted_vectors(self.model, texts, adapter, queries=queries) if self.understands else None

    async def embed_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        return await embed_tokens(self.model if self.understands else Hashed(), texts)

    async def embed_words(self, query: str) -> QueryVectors:
        return await embed_words(self.model, query) if self.understands else (await self.embed_query(query), None)

    async def close(self) -> None:
        await self.model.close()


class Turned:
    """The provider under another name, its vectors turned round: none can be compared with the original's."""

    enabled = True

    def __init__(
        self,
        provider: EmbeddingProvider,
        *,
        name: str = "turned",
        fails_after: int | None = None,
        held: bool = False,
    ) -> None:
        self._provider, self._left = provider, fails_after
        self.entered, self.let_go = asyncio.Event(), asyncio.Event()
        if not held:
            self.let_go.set()
        self.model_id, self.dimension = name, provider.dimension

    async def start(self) -> None:
        await self._provider.start()

    async def embed_query(self, text: str) -> Vector:
        return (await self._provider.embed_query(text))[::-1]

    async def window(self) -> Window | None:
        return await self._provider.window()

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise EmbeddingUnavailable("the model went away")
        await self._wait()
        return (await self._provider.embed_documents(texts))[:, ::-1]

    async def _wait(self) -> None:
        self.entered.set()
        await self.let_go.wait()

    async def close(self) -> None:
        pass


class Lent(Turned):
    """The real model, which the other tests still need when this one is done with it."""

    def __init__(self, provider: EmbeddingProvider, *, held: bool = False) -> None:
        super().__init__(provider, name=provider.model_id, held=held)

    async def embed_query(self, text: str) -> Vector:
        return await self._provider.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        matrix = await self._provider.embed_documents(texts)
        await self._wait()
        return matrix

    async def embed_adapted(self, texts: Sequence[str], adapter: str, *, queries: bool) -> Matrix | None:
        return await adapted_vectors(self._provider, texts, adapter, queries=queries)


class Wordless(Lent):
    """The real model, which gives no vectors of a request's words."""

    async def embed_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        return await embed_tokens(self._provider, texts)

    async def embed_words(self, query: str) -> QueryVectors:
        return await self.embed_query(query), None


class Closing(Lent):
    """The real model, which counts how often it was closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


class Counting(Lent):
    """The real model, which counts the texts that it embeds."""

    embedded = 0

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.embedded += len(texts)
        return await super().embed_documents(texts)


class Slow(Lent):
    """The real model, held up after the first batch."""

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        is_first = not self.entered.is_set()
        self.entered.set()
        if not is_first:
            await self.let_go.wait()
        return await self._provider.embed_documents(texts)


class Failing(Turned):
    """The real model, which does not answer the first time."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not self.asked.is_set():
            self.asked.set()
            await self.let_go.wait()
            raise EmbeddingUnavailable("the model went away")
        return await super().embed_documents(texts)


class Down(NoopProvider):
    """A provider that is configured and does not answer."""

    enabled = True
    model_id = "sentence-transformers/all-MiniLM-L6-v2"

    async def embed_query(self, text: str) -> Vector:
        raise EmbeddingUnavailable(f"no answer for {len(text)} characters")

    async def embed_documents(self, texts: Any) -> Matrix:
        raise EmbeddingUnavailable(f"no answer for {len(texts)} texts")


class Other(NoopProvider):
    """A provider of another model."""

    enabled = True
    model_id = "other-model"


class Refusing(NoopProvider):
    """A provider whose model is right and which is down."""

    enabled = True
    model_id = "sentence-transformers/all-MiniLM-L6-v2"
    dimension = 384

    async def embed_documents(self, texts: Any) -> Matrix:
        if len(texts) == 0:
            return await super().embed_documents(texts)
        raise EmbeddingUnavailable("the provider is down")


class Stuck(NoopProvider):
    """A provider whose model is right and which never answers its second call."""

    enabled = True
    model_id = "sentence-transformers/all-MiniLM-L6-v2"
    dimension = 384

    def __init__(self) -> None:
        self.asked: list[int] = []
        """How many texts each call had."""
        self.stuck, self.abandoned = asyncio.Event(), asyncio.Event()

    async def embed_documents(self, texts: Any) -> Matrix:
        self.asked.append(len(texts))
        if len(self.asked) != 2:
            return await super().embed_documents(texts)
        self.stuck.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.abandoned.set()
        raise AssertionError
