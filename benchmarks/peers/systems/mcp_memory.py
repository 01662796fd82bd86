"""mcp-memory-service: its SQLite store (sqlite-vec and FTS5), by the hybrid search that it offers."""

import asyncio
import hashlib
import os
import sqlite3
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.foundation.models.protocols import Matrix
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.system import DEFAULT, Memory
from benchmarks.peers.systems.local import Local

BATCH = 500


class _Model:
    """Priors' model under the interface that the package asks of one."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedding_dimension = embedder.dimension
        self._embedder = embedder

    def encode(self, texts: Sequence[str], **_: object) -> Matrix:
        return self._embedder.either(texts)


class McpMemory(Local):
    """Its `store` is the workspace. It is asynchronous and has one connection, so it gets an event loop of its own."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        super().__init__(folder, embedder)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._storage = _storage_class()(str(folder / "memory.db"))
        self._storage.given_model = _Model(embedder)
        self._wait_for(self._storage.initialize())

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """In batches, each a transaction. A text that it already has it refuses."""
        from mcp_memory_service.models.memory import Memory as Theirs  # noqa: PLC0415 - after its environment is set

        with self._embedder.ready([memory.text for memory in memories], vectors):
            for start in range(0, len(memories), BATCH):
                batch = [
                    Theirs(
                        content=memory.text,
                        content_hash=hashlib.sha256(f"{workspace}\n{memory.text}".encode()).hexdigest(),
                        tags=[memory.tag] if memory.tag else [],
                        metadata=memory.metadata,
                    )
                    for memory in memories[start : start + BATCH]
                ]
                self._wait_for(self._storage.store_batch(batch, store=workspace))
        self._wait_for(self._analyse())

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """Its hybrid search takes no tag; with one, its semantic search."""
        if tag:
            asked = self._storage.retrieve(query, n_results=k, tags=[tag], store=workspace)
        else:
            asked = self._storage.retrieve_hybrid(query, n_results=k, store=workspace)
        return [found.memory.metadata["key"] for found in self._wait_for(asked)]

    async def _analyse(self) -> None:
        """Without statistics, recent versions of SQLite plan its keyword search so that it takes seconds."""
        self._storage.conn.execute("ANALYZE")
        self._storage.conn.commit()

    def _wait_for(self, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - whatever the library answers
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _storage_class() -> Any:  # noqa: ANN401 - made of the library's own class
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage  # noqa: PLC0415 - after its environment is set

    class Storage(SqliteVecMemoryStorage):  # type: ignore[misc]  # the package brings no types
        """It would download its model."""

        given_model: _Model

        async def _initialize_embedding_model(self) -> None:
            self.embedding_model = self.given_model

    return Storage


@contextmanager
def opened(folder: Path, embedder: Embedder) -> Iterator[McpMemory]:
    """Empty, its own files below that folder, its search for like texts at a write off: all memories are wanted."""
    os.environ["MCP_MEMORY_BASE_DIR"] = str(folder)
    os.environ["MCP_SEMANTIC_DEDUP_ENABLED"] = "false"
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3  # noqa: PLC0415 - only where Python's own cannot load extensions

        sys.modules["sqlite3"] = pysqlite3
    yield McpMemory(folder, embedder)
