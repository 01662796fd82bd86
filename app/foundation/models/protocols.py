"""Protocols of the embedding providers, the re-ranker and the token counter."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Shape (dimension,), unit length."""
Matrix = NDArray[np.float32]
"""Shape (texts, dimension), rows of unit length."""


_LONGEST_TOKEN = 40
"""Characters of a token, at most, on the average of a window; a text of longer ones is encoded data."""


class TokenCounter(Protocol):
    """Counts tokens as the embedding model does."""

    def count(self, text: str) -> int:
        """Counts the model tokens of `text`, without the special tokens at both ends."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text; faster than one call per text."""
        ...


class Window(NamedTuple):
    """The part of a text that an embedding model reads: its beginning."""

    tokens: int
    """Tokens of that part, without the special ones at both ends."""
    counter: TokenCounter
    """Counts with the model's own tokenizer."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text: all if they fit into the window, else at least one more than fit."""
        return self.counter.count_many([text[: _LONGEST_TOKEN * self.tokens] for text in texts])


class QueryEmbedder(Protocol):
    """Turns queries into vectors. Vectors of two different `model_id`s are never compared."""

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


class EmbeddingProvider(QueryEmbedder, Protocol):
    """Turns queries and documents into vectors."""

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
