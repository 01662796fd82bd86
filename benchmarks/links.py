"""The cost of links for a recall: 2,000 memories with 76,000 links, in turn with recalls that ignore links."""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from app.recall.retrieval.rank.presets import DEFAULT, PRESETS, UNLINKED
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.links.relations import DERIVED_FROM, Link
from app.storage.links.service import MOST_AT_ONCE, give_links, link_pending
from app.storage.memories.service import get_memory, links_of
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.corpus import Corpus, fill, vacuum
from benchmarks.figures import Figure, percentile, report
from benchmarks.stage import stage, workspace_of

WORKSPACES = ("dense", "hub", "lonely")
K = 10
ASKED_WORDS = 8
"""Words of a memory's own text, as many as the other queries have."""


async def _filled(services: Services, corpus: Corpus, workspace: Workspace, size: int) -> list[UUID]:
    await fill(services, corpus, workspace, size)
    await link_pending(services.database, across=services.database.across)
    async with services.database.session(workspace) as session:
        return await session.column(
            "SELECT memory_id FROM memories WHERE workspace_id = %(workspace_id)s ORDER BY memory_id"
        )


async def _text(services: Services, workspace: Workspace, memory_id: UUID) -> str:
    return (await get_memory(services.database, workspace=workspace, memory_id=memory_id)).body


async def _give(services: Services, workspace: Workspace, links: Sequence[Link]) -> float:
    """Returns seconds."""
    started = time.perf_counter()
    for start in range(0, len(links), MOST_AT_ONCE):
        await give_links(services.database, workspace=workspace, links=links[start : start + MOST_AT_ONCE])
    return time.perf_counter() - started


def _dense(ids: Sequence[UUID], count: int, chance: random.Random) -> list[Link]:
    """`count` links between distinct pairs, as many from each memory."""
    each = count // len(ids)
    return [
        Link(memory_id, other, DERIVED_FROM)
        for memory_id in ids
        for other in chance.sample([other for other in ids if other != memory_id], each)
    ]


async def _took(services: Services, workspace: Workspace, query: str, preset: str) -> float:
    """Returns milliseconds of a recall, the query's embedding included."""
    started = time.perf_counter()
    await Retrieval(database=services.database, provider=services.provider).find(
        workspace, Query(text=query, k=K, preset=preset)
    )
    return (time.perf_counter() - started) * 1000


async def _figures(
    services: Services, workspace: Workspace, queries: Sequence[str], rounds: int, *, name: str = ""
) -> list[Figure]:
    """Each query is asked both ways, and each way goes first as often; every round is a figure of its own ratio."""
    ratios, medians = [], []
    with_links: list[float] = []
    without: list[float] = []
    for number in range(rounds):
        both: dict[str, list[float]] = {DEFAULT.name: [], UNLINKED_PRESET: []}
        for place, query in enumerate(queries):
            for preset in sorted(both, reverse=bool((place + number) % 2)):
                both[preset].append(await _took(services, workspace, query, preset))
        medians.append(statistics.median(both[DEFAULT.name]))
        ratios.append(medians[-1] / statistics.median(both[UNLINKED_PRESET]))
        with_links += both[DEFAULT.name]
        without += both[UNLINKED_PRESET]
    tail = percentile(with_links, 95) / percentile(without, 95)
    name = name or workspace.name
    return [
        Figure(name=f"{name}: recall ÷ without links, p50", value=statistics.median(ratios), at_most=1.2),
        Figure(name=f"{name}: the worst of {rounds} rounds", value=max(ratios)),
        Figure(name=f"{name}: recall ÷ without links, p95", value=tail),
        Figure(name=f"{name}: recall, p50", value=statistics.median(medians), unit="ms"),
    ]


UNLINKED_PRESET = "unlinked"


async def measure(size: int, links: int, queries: int, rounds: int) -> list[Figure]:
    """The dense store, one whose memories all hang on a single hub, and one without links."""
    corpus, chance = Corpus(), random.Random(7)
    asked = corpus.queries(queries)
    PRESETS[UNLINKED_PRESET] = replace(DEFAULT, name=UNLINKED_PRESET, blend=UNLINKED)
    async with stage() as services:
        dense, linked, lonely = [await workspace_of(services, name) for name in WORKSPACES]
        ids = await _filled(services, corpus, dense, size)
        seconds = await _give(services, dense, _dense(ids, links, chance))
        figures = [Figure(name=f"{links:,} links given", value=seconds, unit="s")]
        hub, *others = await _filled(services, corpus, linked, size)
        await _give(services, linked, [Link(other, hub, DERIVED_FROM) for other in others])
        await _filled(services, corpus, lonely, size)
        await vacuum(services)
        for workspace in (dense, linked, lonely):
            await _figures(services, workspace, asked[:5], 1)
            figures += await _figures(services, workspace, asked, rounds)
        # Words at random hardly ever find the hub: its own text makes it a seed each time.
        words = (await _text(services, linked, hub)).split()
        of_hub = [" ".join(chance.sample(words, min(ASKED_WORDS, len(words)))) for _ in asked]
        figures += await _figures(services, linked, of_hub, rounds, name="hub, asked for")
        started = time.perf_counter()
        await links_of(services.database, workspace=linked, memory_id=hub)
        figures.append(Figure(name="links of the hub shown", value=(time.perf_counter() - started) * 1000, unit="ms"))
    del PRESETS[UNLINKED_PRESET]
    return figures


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2_000, help="memories")
    parser.add_argument("--links", type=int, default=76_000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    figures = asyncio.run(measure(given.size, given.links, given.queries, given.rounds))
    report("links", figures)
    return figures


if __name__ == "__main__":
    main()
