"""How long a context takes beyond retrieval: composed, cut to its budget, compiled, counted on the final bytes."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from app.foundation.models.protocols import TokenCounter
from app.foundation.models.tokens import BundledTokenCounter, Estimate
from app.recall.context.compile import compile_representation, compose, compress, count_section
from app.recall.context.representation import MODES, Budget, Representation, Section
from app.recall.context.request import ContextRequest
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import Door, remember
from app.wiring import Services
from benchmarks.figures import Figure, report
from benchmarks.stage import stage, workspace_of

SECTIONS = 1_000
WORDS = (
    "market", "licence", "producers", "supplements", "grew", "billion", "rubles", "the", "audit", "retail", "judge",
    "score", "issue", "method", "derived", "from", "registry", "lost", "in", "March", "2025", "221", "percent", "of",
)  # fmt: skip
TOTAL = 8_000
"""Tokens of the budget; all sections together have some 90,000."""
ROUNDS = 30


def sections(count: int, counter: TokenCounter) -> tuple[Section, ...]:
    """Returns sections of about 90 tokens, counted."""
    chance = Random(7)
    return tuple(
        count_section(
            Section(
                id=str(number),
                content=". ".join(" ".join(chance.choices(WORDS, k=14)) for _ in range(6)),
                label=f"### Note {number}",
                source=chance.choice(("given", "knowledge", "semantic", "temporal")),
                priority=chance.choice(("high", "medium", "low")),
                relevance=chance.random(),
                recency=chance.random(),
                mode=chance.choice(MODES[2:]),
                reference=True,
            ),
            counter,
        )
        for number in range(count)
    )


def timed(work: Callable[[], object], rounds: int) -> float:
    """Returns the median time of a core that a piece of work takes, in milliseconds: it waits for nothing."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append((time.process_time() - started) * 1_000)
    return statistics.median(taken)


def of_parts(count: int, counter: TokenCounter, name: str, rounds: int) -> list[Figure]:
    """Returns the times of the operations on sections that are counted already, as hydration leaves them."""
    budget, made = Budget(total=TOTAL, reserve_ratio=0), sections(count, counter)
    half = count // 2

    def whole(allocation: str) -> object:
        both = compose(Representation(sections=made[:half]), Representation(sections=made[half:]))
        fitting = compress(both, budget.usable - 100, counter, allocation=allocation)
        return compile_representation(fitting, "openai", counter)

    return [
        Figure(
            name=f"{count:,} sections, {name}: composed, cut to {TOTAL:,} tokens, compiled, p50",
            value=timed(partial(whole, "relevance"), rounds),
            unit="ms",
            at_most=20,
        ),
        Figure(
            name=f"{count:,} sections, {name}: the same, allocated by information, p50",
            value=timed(partial(whole, "information"), rounds),
            unit="ms",
        ),
    ]


async def raw(services: Services, count: int, rounds: int) -> Figure:
    """Returns the time of the raw path, in which every section is counted anew."""
    made = Representation(sections=sections(count, services.counter))
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        await services.contexts.compile(representation=made, budget=Budget(total=TOTAL), model="", form="openai")
        taken.append((time.perf_counter() - started) * 1_000)
    return Figure(name=f"{count:,} sections: the raw path, all counted, p50", value=statistics.median(taken), unit="ms")


async def requested(services: Services, rounds: int) -> list[Figure]:
    """Returns the times of whole requests over a store of notes: of the sources, and beyond them."""
    workspace = await workspace_of(services, "contexts")
    chance = Random(7)
    bodies = {" ".join(chance.choices(WORDS, k=60)) for _ in range(300)}
    door = Door(services.database, services.counter, workspace)
    await remember(door, [NewMemory(kind="note", title=body[:40], body=body) for body in sorted(bodies)])
    hydrate, beyond = list[float](), list[float]()
    for number in range(rounds):
        request = ContextRequest(observation=f"Derive the market of producers in the retail audit {number}.")
        context, _ = await services.contexts.make(workspace, request)
        hydrate.append(context.trace.hydrate_ms)
        beyond.append(context.trace.compile_ms)
    return [
        Figure(name="a request: its sources, side by side, p50", value=statistics.median(hydrate), unit="ms"),
        Figure(name="a request: composed and compiled, p50", value=statistics.median(beyond), unit="ms"),
    ]


async def measured(count: int, rounds: int) -> list[Figure]:
    """Returns all figures."""
    figures = of_parts(count, BundledTokenCounter(), "embedding model's tokens", rounds)
    figures += of_parts(count, Estimate(), "estimated tokens", rounds)
    async with stage() as services:
        figures.append(await raw(services, count, rounds))
        figures += await requested(services, rounds)
    return figures


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", type=int, default=SECTIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    figures = asyncio.run(measured(options.sections, options.rounds))
    report("context", figures)
    return figures


if __name__ == "__main__":
    main()
