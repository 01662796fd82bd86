"""Measures Priors over HTTP against the classic stack in process, by turns in one run: other load falls on both.

`python -m benchmarks.peers.pairs` prints ratios: the median over pairs of one query, or of one intake.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.corpus import Corpus
from benchmarks.peers.catalog import PRIORS, entry
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.one import QUIET
from benchmarks.peers.speed import TAG, WARM_UP, K, corpus_memories
from benchmarks.peers.system import System

CLASSIC = "classic"


Pair = tuple[float, float]
"""Milliseconds of the classic stack, and of Priors."""


def searches(classic: System, priors: System, queries: Sequence[str], tag: str) -> list[Pair]:
    """Times each query."""

    def timed(system: System, query: str) -> float:
        return _milliseconds(lambda: system.search(query, K, tag=tag))

    return [(timed(classic, query), timed(priors, query)) for query in queries][WARM_UP:]


def intakes(classic: System, priors: System, corpus: Corpus, size: int, rounds: int) -> list[Pair]:
    """Times intakes into empty workspaces, with ready vectors."""
    memories, vectors = corpus_memories(corpus, size), corpus.vectors(size)

    def timed(system: System, number: int) -> float:
        return _milliseconds(lambda: system.add(memories, vectors, f"w-{number:03}"))

    return [(timed(classic, number), timed(priors, number)) for number in range(rounds + 1)][1:]


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def show(name: str, pairs: Sequence[Pair]) -> None:
    """Prints the medians and the median ratio, with its quartiles."""
    classic, priors = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
    ratios = statistics.quantiles([other / one for one, other in pairs], n=4)
    print(
        f"{name}: classic {classic:.2f} ms, Priors {priors:.2f} ms,"
        f" Priors ÷ classic {ratios[1]:.3f} ({ratios[0]:.3f} to {ratios[2]:.3f}), {len(pairs)} pairs"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["search", "intake"])
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=300)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        embedder = Embedder(Path(folder))
        systems = []
        for name in (CLASSIC, PRIORS):
            (room := Path(folder) / name).mkdir()
            systems.append(stack.enter_context(entry(name).open()(room, embedder)))
        classic, priors = systems
        corpus = Corpus()
        if given.work == "intake":
            show(f"intake of {given.size:,}", intakes(classic, priors, corpus, given.size, given.rounds))
            return
        memories, vectors = corpus_memories(corpus, given.size), corpus.vectors(given.size)
        for system in systems:
            system.add(memories, vectors)
            system.settle()
        for name, tag in (("unfiltered", ""), ("1 % filter", TAG)):
            show(f"{given.size:,}, {name}", searches(classic, priors, corpus.queries(given.rounds + WARM_UP), tag))


if __name__ == "__main__":
    os.environ |= QUIET
    main()
