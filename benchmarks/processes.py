"""Throughput of a service with several API processes ÷ one with one process, asked by turns over one store.

Clients, Postgres and the services share the machine: with as many cores as processes, none are left for the others.
"""

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import replace

from app.wiring import Services
from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, report
from benchmarks.history import CLIENTS, HISTORY, throughput
from benchmarks.stage import service, stage, workspace_of

SIZE = 10_000
TURNS = 5
ROUNDS = 400
"""Questions of a turn."""
PATHS = (HISTORY, "/api/search")


async def measure(size: int, workers: int, turns: int, rounds: int) -> list[Figure]:
    """Returns answers a second of both services and their ratio, for each path."""
    async with stage() as services:
        workspace = await workspace_of(services, "benchmark")
        await fill(services, Corpus(), workspace, size)
        return await asyncio.to_thread(_compared, services, workspace.name, workers, turns, rounds)


def _compared(services: Services, workspace: str, workers: int, turns: int, rounds: int) -> list[Figure]:
    settings = replace(services.settings, embedded_worker=False)
    queries = Corpus().queries(rounds)
    with service(settings) as (one, _), service(replace(settings, api_workers=workers)) as (several, _):
        for address in (one, several):
            throughput(address, workspace, queries, CLIENTS)
        figures: list[Figure] = []
        for path in PATHS:
            found: list[tuple[float, float]] = []
            for turn in range(turns):
                order = (several, one) if turn % 2 else (one, several)
                answers = {address: throughput(address, workspace, queries, CLIENTS, path) for address in order}
                found.append((answers[one], answers[several]))
            figures += _figures(path, workers, found)
    return figures


def _figures(path: str, workers: int, found: Sequence[tuple[float, float]]) -> list[Figure]:
    name = f"{path}, {CLIENTS} clients"
    ratios = [several / one for one, several in found]
    return [
        Figure(name=f"{name}: one process", value=statistics.median(one for one, _ in found), unit="answers/s"),
        Figure(name=f"{name}: {workers} processes", value=statistics.median(two for _, two in found), unit="answers/s"),
        Figure(
            name=f"{name}: {workers} processes ÷ one, median of {len(found)} turns", value=statistics.median(ratios)
        ),
        Figure(name=f"{name}: the lowest ratio", value=min(ratios)),
        Figure(name=f"{name}: the highest ratio", value=max(ratios)),
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help="memories in the store")
    parser.add_argument("--workers", type=int, default=2, help="API processes of the second service")
    parser.add_argument("--turns", type=int, default=TURNS, help="comparisons on each path")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="questions of a turn")
    given = parser.parse_args(arguments)
    figures = asyncio.run(measure(given.size, given.workers, given.turns, given.rounds))
    report("processes", figures)
    return figures


if __name__ == "__main__":
    main()
