"""Vector alone: every vector compared, exactly, by numpy."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from app.foundation.models.protocols import Matrix
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.system import DEFAULT, Memory
from benchmarks.peers.systems.local import Local


class VectorAlone(Local):
    """A matrix a workspace, saved after every addition."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        super().__init__(folder, embedder)
        self._stored: dict[str, tuple[list[Memory], Matrix]] = {}

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """Append the rows."""
        made = self._embedder.documents([memory.text for memory in memories]) if vectors is None else vectors
        known, matrix = self._stored.get(workspace, ([], np.zeros((0, made.shape[1]), np.float32)))
        grown = np.concatenate([matrix, made])
        self._stored[workspace] = ([*known, *memories], grown)
        np.save(self._folder / f"{workspace}.npy", grown)

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """By cosine."""
        memories, matrix = self._stored[workspace]
        similar = matrix @ self._embedder.query(query)
        if tag:
            similar = np.where([memory.tag == tag for memory in memories], similar, -1.0)
        best = np.argsort(-similar, kind="stable")[:k]
        return [memories[place].key for place in best if similar[place] > -1]


@contextmanager
def opened(folder: Path, embedder: Embedder) -> Iterator[VectorAlone]:
    """Empty."""
    yield VectorAlone(folder, embedder)
