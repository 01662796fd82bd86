"""How fast a system takes memories in and answers, how that grows, and what it takes to do so."""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.corpus import Corpus
from benchmarks.figures import percentile
from benchmarks.peers.catalog import PRIORS
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.quality import Values
from benchmarks.peers.space import resident_megabytes
from benchmarks.peers.system import Memory, Opener, System

CLIENTS = (1, 8, 32)
TAG = "t7"
"""One of a hundred, so that it keeps 1 %."""
K = 10
WORKSPACES = 100
WARM_UP = 20
INTAKE = 256
"""Memories that are embedded and stored; as many before, to warm up."""

Search = Callable[[str], object]


def growth(opener: Opener, given: argparse.Namespace) -> Values:
    """One size: taking in with vectors that are ready, questions from several clients, with and without a filter."""
    corpus = Corpus()
    memories, vectors = corpus_memories(corpus, given.size), corpus.vectors(given.size)
    before = 0.0 if given.system == PRIORS else resident_megabytes([os.getpid()])
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        embedder = Embedder(Path(folder))
        system = stack.enter_context(opener(_room(folder, "store"), embedder))
        started = time.perf_counter()
        system.add(memories, vectors)
        values: Values = {"memories stored a second": given.size / (time.perf_counter() - started)}
        system.settle()
        for name, tag in (("unfiltered", ""), ("1 % filter", TAG)):
            for clients in CLIENTS:
                queries = corpus.queries(WARM_UP + given.rounds + clients)
                for query in queries[:WARM_UP]:
                    system.search(query, K, tag=tag)
                taken = latencies(_searching(system, tag), queries[WARM_UP:], clients)
                values[f"{name}, {clients} clients, p50 ms"] = percentile(taken, 50)
                values[f"{name}, {clients} clients, p95 ms"] = percentile(taken, 95)
        footprint = system.footprint()
        return {**values, "disk MB": footprint.disk, "resident MB": footprint.resident - before}


def intake(opener: Opener, given: argparse.Namespace) -> Values:  # noqa: ARG001 - it has one size
    """Taking in through the public way, the model's embedding included."""
    memories = corpus_memories(Corpus(), 2 * INTAKE)
    with tempfile.TemporaryDirectory() as folder, opener(_room(folder, "store"), Embedder(Path(folder))) as system:
        system.add(memories[:INTAKE])
        started = time.perf_counter()
        system.add(memories[INTAKE:])
        return {"memories embedded and stored a second": INTAKE / (time.perf_counter() - started)}


def tenants(opener: Opener, given: argparse.Namespace) -> Values:
    """The same questions to one of 100 workspaces and to a store of its data alone, in turn."""
    corpus = Corpus()
    memories, vectors = corpus_memories(corpus, given.size), corpus.vectors(given.size)
    share = given.size // WORKSPACES
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        embedder = Embedder(Path(folder))
        alone = stack.enter_context(opener(_room(folder, "alone"), embedder))
        alone.add(memories[:share], vectors[:share], "w-000")
        crowd = stack.enter_context(opener(_room(folder, "crowd"), embedder))
        for number, start in enumerate(range(0, share * WORKSPACES, share)):
            crowd.add(memories[start : start + share], vectors[start : start + share], f"w-{number:03}")
        alone.settle()
        crowd.settle()
        by_turns: dict[System, list[float]] = {alone: [], crowd: []}
        for query in corpus.queries(given.rounds + WARM_UP):
            for system, taken in by_turns.items():
                taken.append(_milliseconds(_searching(system, "", "w-000"), query))
    one, hundred = (percentile(taken[WARM_UP:], 50) for taken in by_turns.values())
    return {"alone, p50 ms": one, "one of 100 workspaces, p50 ms": hundred, "one of 100 ÷ alone": hundred / one}


def corpus_memories(corpus: Corpus, count: int) -> list[Memory]:
    """The seeded corpus, as every system gets it."""
    return [
        Memory(
            key=str(number),
            kind=made.kind,
            title=made.title,
            body=made.body,
            source=made.source.uri if made.source else "",
            ordinal=made.ordinal,
            tag=made.tags[0],
        )
        for number, made in enumerate(corpus.memories(count))
    ]


def latencies(search: Search, queries: Sequence[str], clients: int) -> list[float]:
    """Milliseconds of each query, so many clients asking at once, without a pause."""
    taken: list[list[float]] = [[] for _ in range(clients)]
    threads = [
        threading.Thread(target=_ask, args=(search, queries[start::clients], into)) for start, into in enumerate(taken)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [one for into in taken for one in into]
    if len(found) < len(queries) - clients:
        raise RuntimeError(f"{len(queries) - clients - len(found)} of {len(queries)} queries failed")
    return found


def _ask(search: Search, queries: Sequence[str], into: list[float]) -> None:
    """The first opens the thread's connections and is not counted."""
    search(queries[0])
    into += [_milliseconds(search, query) for query in queries[1:]]


def _milliseconds(search: Search, query: str) -> float:
    started = time.perf_counter()
    search(query)
    return (time.perf_counter() - started) * 1000


def _searching(system: System, tag: str, workspace: str = "default") -> Search:
    return lambda query: system.search(query, K, tag=tag, workspace=workspace)


def _room(folder: str, name: str) -> Path:
    made = Path(folder) / name
    made.mkdir()
    return made
