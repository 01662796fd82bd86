"""The Python client against bare httpx: the same requests over one kept connection, their answers read."""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx
from priors_client import AsyncClient, Client

from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, percentile, report
from benchmarks.stage import service, stage, workspace_of

SIZE, ROUNDS = 1_000, 200
"""A small store, so that the client's share is as large as it ever is."""
WARM = 20
"""First answers of each kind that are not counted."""
MOST = 1.1
"""Largest p50 through the client, as a multiple of the same by bare httpx."""
BARE, THROUGH = "httpx", "priors-client"
Ask = Callable[[str], Any]


def _ways(bare: httpx.Client, client: Client) -> Mapping[str, Mapping[str, Ask]]:
    """Returns the ways to ask, by route."""
    return {
        "history": {
            BARE: lambda query: bare.post("/api/history", json={"query": query}).raise_for_status().json(),
            THROUGH: client.history,
        },
        "search": {
            BARE: lambda query: bare.post("/api/search", json={"query": query, "k": 10}).raise_for_status().json(),
            THROUGH: lambda query: client.search(query, k=10),
        },
        "status": {
            BARE: lambda _: bare.get("/api/status").raise_for_status().json(),
            THROUGH: lambda _: client.admin.status(),
        },
    }


def _asynchronous(bare: httpx.AsyncClient, client: AsyncClient) -> Mapping[str, Callable[[str], Awaitable[object]]]:
    async def history(query: str) -> object:
        return (await bare.post("/api/history", json={"query": query})).raise_for_status().json()

    return {BARE: history, THROUGH: client.history}


def latencies(ways: Mapping[str, Ask], queries: Sequence[str]) -> dict[str, float]:
    """Returns the p50 of each way in milliseconds; they take turns, and each query is asked in each way, so that the
    machine's drift and the query's cost fall on all."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for place, query in enumerate(queries):
        for name in list(ways)[:: 1 if place % 2 else -1]:
            started = time.perf_counter()
            ways[name](query)
            found[name].append((time.perf_counter() - started) * 1000)
    return {name: percentile(taken[WARM:], 50) for name, taken in found.items()}


def _measured(address: str, workspace: str, queries: Sequence[str]) -> list[Figure]:
    headers = {"X-Workspace": workspace}
    figures: list[Figure] = []
    with httpx.Client(base_url=address, headers=headers) as bare, Client(address, workspace=workspace) as client:
        for route, ways in _ways(bare, client).items():
            figures += _figures(route, latencies(ways, queries))
    with asyncio.Runner() as runner:
        bare_, client_ = httpx.AsyncClient(base_url=address, headers=headers), AsyncClient(address, workspace=workspace)
        ways_ = _asynchronous(bare_, client_)
        called = {name: lambda query, way=way: runner.run(way(query)) for name, way in ways_.items()}
        figures += _figures("history, asynchronous", latencies(called, queries))
        runner.run(bare_.aclose())
        runner.run(client_.aclose())
    return figures


def _figures(route: str, middle: Mapping[str, float]) -> list[Figure]:
    shares = [Figure(name=f"{route}: {way}, p50", value=value, unit="ms") for way, value in middle.items()]
    ratio = middle[THROUGH] / middle[BARE]
    return [*shares, Figure(name=f"{route}: {THROUGH} ÷ {BARE}, p50", value=ratio, at_most=MOST)]


async def measure(size: int, rounds: int) -> list[Figure]:
    """Returns the figures at one size."""
    corpus = Corpus()
    async with stage() as services:
        workspace = await workspace_of(services, "benchmark")
        await fill(services, corpus, workspace, size)
        with service(replace(services.settings, embedded_worker=False)) as (address, _):
            return await asyncio.to_thread(_measured, address, workspace.name, corpus.queries(rounds + WARM))


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help="memories in the store")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    figures = asyncio.run(measure(given.size, given.rounds))
    report("client", figures)
    return figures


if __name__ == "__main__":
    main()
