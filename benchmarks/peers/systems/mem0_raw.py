"""mem0 with `infer=False`: memories as they are, on its pgvector store, which searches by words as well."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.foundation.models.protocols import Matrix
from app.foundation.postgres.embedded import EmbeddedPostgres
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.system import DEFAULT, Memory
from benchmarks.peers.systems.local import Local

NO_KEY = {"provider": "openai", "config": {"api_key": "none"}}
"""Of a language model and an embedder that are made but never asked."""


class _Model:
    """Priors' model under the interface that the package asks of one."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, *_: object, **__: object) -> list[float]:
        return list(map(float, self._embedder.either([text])[0]))

    def embed_batch(self, texts: Sequence[str], *_: object, **__: object) -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Mem0Raw(Local):
    """Its `user_id` is the workspace."""

    def __init__(self, folder: Path, embedder: Embedder, url: str, memory: Any) -> None:  # noqa: ANN401 - the library's own type
        super().__init__(folder, embedder, postgres=url)
        self._memory = memory

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """One by one: it has no other way, so vectors are made together beforehand."""
        texts = [memory.text for memory in memories]
        with self._embedder.ready(texts, self._embedder.documents(texts) if vectors is None else vectors):
            for memory in memories:
                self._memory.add(memory.text, user_id=workspace, metadata=memory.metadata, infer=False)

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """Its own search, at its own threshold."""
        filters = {"user_id": workspace, **({"tag": tag} if tag else {})}
        return [found["metadata"]["key"] for found in self._memory.search(query, top_k=k, filters=filters)["results"]]


@contextmanager
def opened(folder: Path, embedder: Embedder) -> Iterator[Mem0Raw]:
    """Empty, telemetry off, on a Postgres of its own."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0"), "HF_HUB_OFFLINE": "1"}
    import mem0  # noqa: PLC0415 - after its environment is set

    with EmbeddedPostgres(folder) as server:
        url = server.start()
        store = {"connection_string": url, "embedding_model_dims": embedder.dimension, "hnsw": True}
        memory = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": store},
                "embedder": NO_KEY,
                "llm": NO_KEY,
                "history_db_path": str(folder / "history.db"),
            }
        )
        memory.embedding_model = _Model(embedder)
        yield Mem0Raw(folder, embedder, url, memory)
        memory.close()
