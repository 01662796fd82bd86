"""The cost of a memory and of a recall in disk, memory and processor time (docs/how-to/deployment.md)."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import psutil  # type: ignore[import-untyped]  # it has no types

from app.wiring import Services
from benchmarks.citus import Block, block, cpu_seconds
from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, by_size
from benchmarks.history import resident_megabytes
from benchmarks.nodes import Server
from benchmarks.stage import service, stage, workspace_of

SIZES = (10_000,)
ROUNDS = 200
WARM_UP = 20
PARTS = {
    "texts": ("memories", "sources", "titles", "accesses"),
    "words": ("lexical", "lexeme_statistics"),
    "vectors": ("embeddings",),
    "the log of recalls": ("recalls", "recall_hits"),
}
"""The tables of each part of a store."""
BYTES = """
SELECT sum(pg_total_relation_size(name::regclass) + coalesce(
    (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(name::regclass) WHERE isleaf), 0))
FROM unnest(%(tables)s::text[]) AS name
"""


async def measure(size: int, rounds: int) -> list[Figure]:
    """Returns the figures at one size."""
    corpus = Corpus()
    async with stage() as services:
        workspace = await workspace_of(services, "costs")
        server, own = Server(services.settings.database_url), psutil.Process()
        before = (cpu_seconds(own), server.cpu_seconds())
        await fill(services, corpus, workspace, size)
        intake = [now - then for now, then in zip((cpu_seconds(own), server.cpu_seconds()), before, strict=True)]
        stored = await _bytes(services)
        with service(replace(services.settings, embedded_worker=False)) as (address, pid):
            queries = [(query, workspace.name) for query in corpus.queries(WARM_UP + rounds)]
            api = psutil.Process(pid)
            await asyncio.to_thread(block, address, api, [server], queries[:WARM_UP])
            asked = await asyncio.to_thread(block, address, api, [server], queries[WARM_UP:])
            resident = resident_megabytes(pid)
        logged = (await _bytes(services))["the log of recalls"] / len(queries)
        embedding = await _embedding(services, corpus, rounds)
    name = f"{size:,} memories"
    return [
        *_of_store(name, size, stored, intake),
        *_of_recalls(name, asked, logged),
        Figure(name=f"{name}: embedding of a memory, processor time", value=embedding, unit="ms"),
        Figure(name=f"{name}: resident memory of a service", value=resident, unit="MB"),
    ]


async def _bytes(services: Services) -> dict[str, float]:
    async with services.database.across() as session:
        return {part: float(await session.value(BYTES, {"tables": list(tables)})) for part, tables in PARTS.items()}


async def _embedding(services: Services, corpus: Corpus, rounds: int) -> float:
    """Returns milliseconds of processor time that the model takes for a memory's text."""
    texts = [memory.body for memory in corpus.memories(rounds)]
    own = psutil.Process()
    before = cpu_seconds(own)
    await services.provider.embed_documents(texts)
    return (cpu_seconds(own) - before) / rounds * 1000


def _of_store(name: str, size: int, stored: dict[str, float], intake: Sequence[float]) -> Iterator[Figure]:
    for part in ("texts", "words", "vectors"):
        yield Figure(name=f"{name}: {part}, a million", value=stored[part] / size / 1000, unit="GB")
    for part, seconds in zip(("service", "Postgres"), intake, strict=True):
        yield Figure(name=f"{name}: intake with ready vectors, {part}", value=seconds / size * 1000, unit="ms/memory")


def _of_recalls(name: str, asked: Block, logged: float) -> Iterator[Figure]:
    count = len(asked.milliseconds)
    for part, seconds in (("service", asked.api_seconds), ("Postgres", asked.postgres_seconds)):
        yield Figure(name=f"{name}: cores of {part} for 1,000 recalls a second", value=seconds / count * 1000)
    yield Figure(name=f"{name}: log of a recall", value=logged / 1000, unit="kB")


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    return by_size("costs", __doc__ or "", measure, arguments, sizes=SIZES, rounds=ROUNDS)


if __name__ == "__main__":
    main()
