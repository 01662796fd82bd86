"""The graph over HTTP: drawn and stored, and what other requests notice of it."""

import asyncio
import json
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, by_size, percentile
from benchmarks.stage import service, stage, workspace_of

SIZES = (600, 2_500)
ROUNDS = 30
WORKSPACE = "benchmark"


class Client:
    """Asks one service."""

    def __init__(self, address: str) -> None:
        self._address = address

    def _asked(self, request: urllib.request.Request) -> tuple[float, dict[str, Any]]:
        request.add_header("x-workspace", WORKSPACE)
        started = time.perf_counter()
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - our own address
            body = answer.read()
        return time.perf_counter() - started, json.loads(body)

    def graph(self, size: int, *, refresh: bool = False) -> float:
        """Seconds of a graph."""
        asked = urllib.parse.urlencode({"limit": size, "refresh": str(refresh).lower()})
        return self._asked(urllib.request.Request(f"{self._address}/api/graph?{asked}"))[0]  # noqa: S310 - our own

    def search(self, query: str) -> float:
        """Seconds of a search."""
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(f"{self._address}/api/search", body, {"content-type": "application/json"})  # noqa: S310 - our own
        return self._asked(request)[0]


async def beside(client: Client, queries: Sequence[str], size: int) -> list[float]:
    """Seconds of searches while a map is drawn again and again."""
    times: list[float] = []
    asking = iter(queries)
    while len(times) < len(queries):
        computing = asyncio.create_task(asyncio.to_thread(client.graph, size, refresh=True))
        while not computing.done() and len(times) < len(queries):
            times.append(await asyncio.to_thread(client.search, next(asking)))
        await computing
    return times


async def measure(size: int, rounds: int) -> list[Figure]:
    """The figures at one size."""
    corpus = Corpus()
    async with stage() as services:
        workspace = await workspace_of(services, WORKSPACE)
        await fill(services, corpus, workspace, size)
        queries = corpus.queries(8 * rounds)
        # A worker would embed what this benchmark gives vectors itself.
        settings = replace(services.settings, embedded_worker=False)
        with service(settings) as (address, _):
            client = Client(address)
            cold = await asyncio.to_thread(client.graph, size)
            warm = await asyncio.to_thread(client.graph, size, refresh=True)
            stored = [await asyncio.to_thread(client.graph, size) for _ in range(rounds)]
            alone = [await asyncio.to_thread(client.search, query) for query in queries]
            together = await beside(client, queries, size)
    name = f"{size:,} memories"
    return [
        Figure(name=f"{name}: cold, nothing compiled yet", value=cold, unit="s"),
        Figure(name=f"{name}: drawn again", value=warm, unit="s"),
        _stored(name, size, percentile(stored, 50) * 1000),
        Figure(name=f"{name}: search, p95", value=percentile(alone, 95) * 1000, unit="ms"),
        Figure(name=f"{name}: search while it computes, p95", value=percentile(together, 95) * 1000, unit="ms"),
        Figure(name=f"{name}: the latter ÷ the former", value=percentile(together, 95) / percentile(alone, 95)),
    ]


def _stored(name: str, size: int, milliseconds: float) -> Figure:
    most = 50.0 if size <= SIZES[0] else None
    return Figure(name=f"{name}: stored, p50", value=milliseconds, unit="ms", at_most=most)


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    return by_size("graph", __doc__ or "", measure, arguments, sizes=SIZES, rounds=ROUNDS)


if __name__ == "__main__":
    main()
