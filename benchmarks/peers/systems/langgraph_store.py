"""LangGraph's PostgresStore with a vector index (HNSW, cosine)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore

from app.foundation.models.protocols import Matrix
from app.foundation.postgres.embedded import EmbeddedPostgres
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.system import DEFAULT, Memory
from benchmarks.peers.systems.local import Local

BATCH = 500
CONNECTIONS = 8
"""As many as Priors has."""


class LanggraphStore(Local):
    """Its namespace is the workspace."""

    def __init__(self, folder: Path, embedder: Embedder, url: str, store: Any) -> None:  # noqa: ANN401 - the library's own type
        super().__init__(folder, embedder, postgres=url)
        self._store = store

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """In batches, each one round of its own."""
        with self._embedder.ready([memory.text for memory in memories], vectors):
            for start in range(0, len(memories), BATCH):
                self._store.batch(
                    [
                        PutOp((workspace,), memory.key, {**memory.metadata, "text": memory.text})
                        for memory in memories[start : start + BATCH]
                    ]
                )

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """By vectors; it has no other way."""
        kept = {"tag": tag} if tag else None
        return [item.key for item in self._store.search((workspace,), query=query, filter=kept, limit=k)]


@contextmanager
def opened(folder: Path, embedder: Embedder) -> Iterator[LanggraphStore]:
    """Empty, on a Postgres of its own."""

    def embed(texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = embedder.either(texts).tolist()
        return vectors

    index = {
        "dims": embedder.dimension,
        "embed": embed,
        "fields": ["text"],
        "distance_type": "cosine",
        "ann_index_config": {"kind": "hnsw", "vector_type": "vector"},
    }
    pool = {"min_size": 1, "max_size": CONNECTIONS}
    with EmbeddedPostgres(folder) as server:
        url = server.start()
        with PostgresStore.from_conn_string(url, pool_config=pool, index=index) as store:
            store.setup()
            yield LanggraphStore(folder, embedder, url, store)
