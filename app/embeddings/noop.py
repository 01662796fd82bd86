"""No embeddings at all: the vector arm is off, and says so."""

from collections.abc import Sequence

import numpy as np

from app.embeddings.provider import Matrix, Vector


class NoopProvider:
    """Gives zeros; nothing is compared with them."""

    model_id = "noop"
    dimension = 384
    enabled = False

    async def start(self) -> None:
        """Nothing to prepare."""

    async def embed_query(self, text: str) -> Vector:
        """A zero vector."""
        del text
        return np.zeros(self.dimension, np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """A zero vector for each text."""
        return np.zeros((len(texts), self.dimension), np.float32)

    async def close(self) -> None:
        """Nothing to release."""
