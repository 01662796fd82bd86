"""Priors, through its public HTTP API alone."""

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from app.foundation.models.protocols import Matrix
from app.storage.index.service import Statistics
from benchmarks.corpus import until_indexed, until_linked, vacuum
from benchmarks.history import Client
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.space import family, folder_megabytes, postmaster, resident_megabytes
from benchmarks.peers.system import DEFAULT, Footprint, Memory
from benchmarks.stage import service, stage

LINES = 200
"""Of a bulk call's body that are made at once."""


class Priors:
    """A store of its own, and a server that runs for as long as it is open."""

    def __init__(self, runner: asyncio.Runner, open_services: AsyncExitStack, processes: ExitStack) -> None:
        self._runner = runner
        self._services = runner.run(open_services.enter_async_context(stage()))
        self._address, self._pid = processes.enter_context(service(self._services.settings))
        self._keys: dict[str, str] = {}
        self._threads = threading.local()

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """In one request; without vectors it embeds as well."""
        ids = self._send(memories, vectors, workspace)
        # A service's worker does this within seconds: words are counted, vectors indexed.
        database = self._services.database
        self._runner.run(Statistics(database=database).refresh_all(database.across))
        self._runner.run(until_indexed(self._services.database))
        self._keys |= {memory_id: memory.key for memory_id, memory in zip(ids, memories, strict=True)}

    def settle(self) -> None:
        """What autovacuum does within a minute; and links are found first, so that no answer is timed beside that."""
        self._runner.run(until_linked(self._services.database))
        self._runner.run(vacuum(self._services))

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """Over HTTP, on a connection of the thread's own."""
        asked = {"query": query, "k": k, **({"filters": {"tags": [tag]}} if tag else {})}
        answer = self._client(workspace).post("/api/search", json.dumps(asked).encode())
        return [self._keys[hit["id"]] for hit in json.loads(answer)["hits"]]

    def footprint(self) -> Footprint:
        """The server's process and its Postgres."""
        folder = self._services.settings.data_dir
        pids = [*family(self._pid), *family(postmaster(folder))]
        return Footprint(disk=folder_megabytes(folder, without="models"), resident=resident_megabytes(pids))

    def _send(self, memories: Sequence[Memory], vectors: Matrix | None, workspace: str) -> list[str]:
        wait = "?wait=true" if vectors is None else ""
        lines = _lines(memories, vectors, self._services.provider.model_id)
        answer = json.loads(self._client(workspace).post(f"/api/memories:bulk{wait}", lines))
        return [str(memory_id) for memory_id in answer["ids"]]

    def _client(self, workspace: str) -> Client:
        clients: dict[str, Client] = self._threads.__dict__.setdefault("clients", {})
        if workspace not in clients:
            clients[workspace] = Client(self._address, workspace)
        return clients[workspace]


def _lines(memories: Sequence[Memory], vectors: Matrix | None, model: str) -> Iterator[bytes]:
    """The body of a bulk call, a few hundred lines at a time."""
    for start in range(0, len(memories), LINES):
        chosen = memories[start : start + LINES]
        given = [_as_input(memory) for memory in chosen]
        if vectors is not None:
            for item, vector in zip(given, vectors[start : start + LINES].astype("<f4"), strict=True):
                item["embedding"] = {"model": model, "vector": b64encode(vector.tobytes()).decode()}
        yield b"".join(msgspec.json.encode(item) + b"\n" for item in given)


def _as_input(memory: Memory) -> dict[str, Any]:
    given = {"kind": memory.kind, "title": memory.title, "body": memory.body, "ordinal": memory.ordinal}
    source = {"kind": _source_kind(memory), "uri": memory.source} if memory.source else None
    return {**given, "source": source, "occurred_at": memory.occurred_at, "tags": [memory.tag] if memory.tag else []}


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
