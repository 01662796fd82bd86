"""BM25 alone: bm25s with Snowball's English stemmer, its index in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer

from app.foundation.models.protocols import Matrix
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.system import DEFAULT, Memory
from benchmarks.peers.systems.local import Local


@dataclass(slots=True)
class _Index:
    memories: list[Memory]
    ranker: Any = None


class Bm25Alone(Local):
    """An index a workspace. It cannot grow: adding builds it anew."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        super().__init__(folder, embedder)
        self._stemmer = Stemmer.Stemmer("english")
        self._indexes: dict[str, _Index] = {}

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:  # noqa: ARG002 - it has no use for vectors
        """Build the index of all that the workspace has by now."""
        index = self._indexes.setdefault(workspace, _Index([]))
        index.memories += memories
        tokens = self._tokens([memory.text for memory in index.memories])
        index.ranker = bm25s.BM25()
        index.ranker.index(tokens, show_progress=False)
        index.ranker.save(self._folder / workspace)

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """Every memory scored; what has no word in common is left out."""
        index = self._indexes[workspace]
        scores = index.ranker.get_scores(self._tokens([query], ids=False)[0])
        if tag:
            scores = scores * np.array([memory.tag == tag for memory in index.memories])
        best = np.argsort(-scores, kind="stable")[:k]
        return [index.memories[place].key for place in best if scores[place] > 0]

    def _tokens(self, texts: Sequence[str], *, ids: bool = True) -> Any:  # noqa: ANN401 - the library's own type
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=self._stemmer, return_ids=ids, show_progress=False)


@contextmanager
def opened(folder: Path, embedder: Embedder) -> Iterator[Bm25Alone]:
    """Empty."""
    yield Bm25Alone(folder, embedder)
