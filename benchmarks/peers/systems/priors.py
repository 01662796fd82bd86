"""Priors, through its public HTTP API; memories whose vectors are ready come in by the verb that stands behind it."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from app.embeddings.provider import Matrix
from app.memories.memory import NewMemory, SourceReference
from app.memories.upkeep import refresh_all_statistics
from benchmarks.corpus import load, vacuum
from benchmarks.history import Client
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.space import family, folder_megabytes, postmaster, resident_megabytes
from benchmarks.peers.system import DEFAULT, Footprint, Memory
from benchmarks.stage import service, stage


class Priors:
    """A store of its own; the server starts at the first call that needs it, and keeps running."""

    def __init__(self, runner: asyncio.Runner, open_services: AsyncExitStack, processes: ExitStack) -> None:
        self._runner, self._processes = runner, processes
        self._services = runner.run(open_services.enter_async_context(stage()))
        self._served: tuple[str, int] | None = None
        self._keys: dict[str, str] = {}
        self._threads = threading.local()

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """Over HTTP, which embeds; there is no route that takes vectors."""
        if vectors is None:
            ids = self._send(memories, workspace)
            # What the service's worker does within seconds, done at once: words are counted.
            self._runner.run(refresh_all_statistics(self._services.database))
        else:
            given = [_as_new(memory) for memory in memories]
            ids = [str(item) for item in self._runner.run(load(self._services, workspace, given, vectors))]
        self._keys |= {memory_id: memory.key for memory_id, memory in zip(ids, memories, strict=True)}

    def settle(self) -> None:
        """What autovacuum does within a minute."""
        self._runner.run(vacuum(self._services))

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """Over HTTP, on a connection of the thread's own."""
        asked = {"query": query, "k": k, **({"filters": {"tags": [tag]}} if tag else {})}
        answer = self._client(workspace).post("/api/search", json.dumps(asked).encode())
        return [self._keys[hit["id"]] for hit in json.loads(answer)["hits"]]

    def footprint(self) -> Footprint:
        """The server's process and its Postgres."""
        folder = self._services.settings.data_dir
        pids = [*family(self._serving()[1]), *family(postmaster(folder))]
        return Footprint(disk=folder_megabytes(folder, without="models"), resident=resident_megabytes(pids))

    def _send(self, memories: Sequence[Memory], workspace: str) -> list[str]:
        lines = "\n".join(json.dumps(_as_input(memory)) for memory in memories)
        answer = json.loads(self._client(workspace).post("/api/memories:bulk?wait=embedded", lines.encode()))
        return [str(memory_id) for memory_id in answer["ids"]]

    def _client(self, workspace: str) -> Client:
        clients: dict[str, Client] = self._threads.__dict__.setdefault("clients", {})
        if workspace not in clients:
            clients[workspace] = Client(self._serving()[0], workspace)
        return clients[workspace]

    def _serving(self) -> tuple[str, int]:
        if self._served is None:
            self._served = self._processes.enter_context(service(self._services.settings))
        return self._served


def _as_input(memory: Memory) -> dict[str, Any]:
    given = {"kind": memory.kind, "title": memory.title, "body": memory.body, "ordinal": memory.ordinal}
    source = {"kind": _source_kind(memory), "uri": memory.source} if memory.source else None
    return {**given, "source": source, "occurred_at": memory.occurred_at, "tags": [memory.tag] if memory.tag else []}


def _as_new(memory: Memory) -> NewMemory:
    return NewMemory(
        kind=memory.kind,
        title=memory.title,
        body=memory.body,
        source=SourceReference(kind=_source_kind(memory), uri=memory.source) if memory.source else None,
        ordinal=memory.ordinal,
        tags=(memory.tag,) if memory.tag else (),
    )


def _source_kind(memory: Memory) -> str:
    return {"message": "session", "chunk": "report"}.get(memory.kind, "other")


@contextmanager
def opened(folder: Path, embedder: Embedder) -> Iterator[Priors]:  # noqa: ARG001 - it has its own
    """Empty, on an embedded Postgres of its own."""
    with asyncio.Runner() as runner:
        open_services = AsyncExitStack()
        try:
            with ExitStack() as processes:
                yield Priors(runner, open_services, processes)
        finally:
            runner.run(open_services.aclose())
