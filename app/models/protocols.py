"""The protocols of embedding providers, re-rankers and token counters."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Shape (dimension,), unit length."""
Matrix = NDArray[np.float32]
"""Shape (texts, dimension), rows of unit length."""


class TokenCounter(Protocol):
    """Counts the way the embedding model does."""

    def count(self, text: str) -> int:
        """Model tokens of `text`, without the special tokens that frame a sequence."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each text, faster than one by one."""
        ...


class EmbeddingProvider(Protocol):
    """Turns texts into vectors. Vectors of two different `model_id`s are never compared."""

    @property
    def model_id(self) -> str:
        """The name under which the vectors are stored; another computation is another id."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def enabled(self) -> bool:
        """False where there are no vectors at all (`noop`): the vector arm is then off, and says so."""
        ...

    async def start(self) -> None:
        """Prepare the model (write, load, warm up), off the event loop. May be called twice.

        Raises:
            EmbeddingUnavailable: the model cannot be prepared or does not answer.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """The vector of one query. Concurrent calls are batched.

        Raises:
            EmbeddingUnavailable: no vector can be had now.
        """
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """The vectors of many texts, in their order.

        Raises:
            EmbeddingUnavailable: no vectors can be had now.
        """
        ...

    async def close(self) -> None:
        """Release threads and connections."""
        ...


class Reranker(Protocol):
    """Scores texts for a query, each read together with it."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """A score for each text, of any scale: more is better, and 0 is as likely as not.

        Raises:
            RerankerUnavailable: no scores can be had now.
        """
        ...

    async def close(self) -> None:
        """Release threads."""
        ...
