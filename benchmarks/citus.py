"""A Citus cluster against one Postgres: intake, recalls, a shard that moves and a node that is killed meanwhile.

The cluster must be on this machine, with no shards on its coordinator. Both stores are databases of their own there,
made and dropped by this; that of one Postgres is on the coordinator's server, so its settings are the same.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, closing
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]  # it has no types

from app.foundation.db.distribution import SHARDS, distribute
from app.foundation.db.migrations import upgrade
from app.settings import Settings
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.corpus import Corpus, with_vectors
from benchmarks.figures import Figure, percentile, report, write
from benchmarks.history import Client
from benchmarks.nodes import Place, Server, move, place_of, plain_database, workers
from benchmarks.stage import opened, service, workspace_of
from benchmarks.traffic import outages, traffic
from tests.cluster import fresh_cluster_database

WORKSPACES = 200
MEMORIES = 1_000
"""Memories of a workspace."""
HITS = 10
"""Hits of a recall. Queries and texts are generated, so the threshold of similarity is off."""
ROUNDS = 200
WARM_UP = 100
STEPS = (1, 10, 100)
"""Numbers of workspaces with which recalls are measured, besides the last."""
BLOCK = 10
"""Recalls of one service between two readings of processor time."""
STEADY_SECONDS = 5.0
"""Time of undisturbed traffic before and after each event."""
DEAD_SECONDS = 15.0
"""Time for which the killed node stays away."""
CLUSTER, PLAIN = "cluster", "one Postgres"
"""A service over a cluster, and one over one Postgres."""


class Service(NamedTuple):
    """A running service over one of the stores."""

    name: str
    address: str
    process: psutil.Process


@dataclass(kw_only=True)
class Store:
    """One of the two stores."""

    name: str
    services: Services
    intake_seconds: float = 0.0
    workspaces: list[Workspace] = field(default_factory=list)


class Block(NamedTuple):
    """The cost of some recalls of one service, one after the other."""

    milliseconds: list[float]
    api_seconds: float
    """The service's processor time."""
    postgres_seconds: float
    """The processor time of all servers."""


async def measure(
    url: str, workspaces: int, memories: int, rounds: int, shards: int
) -> AsyncGenerator[list[Figure], None]:
    """Fills both stores by turns, asks them by turns, and then disturbs the cluster; yields figures part by part."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="priors-benchmark-")))
        urls = {
            CLUSTER: stack.enter_context(fresh_cluster_database(url)),
            PLAIN: stack.enter_context(plain_database(url)),
        }
        for made in urls.values():
            await asyncio.to_thread(upgrade, made)
        started = time.perf_counter()
        await asyncio.to_thread(distribute, urls[CLUSTER], shards=shards)
        yield [Figure(name=f"priors store distribute, {shards} shards", value=time.perf_counter() - started, unit="s")]
        stores = [await _opened(stack, name, _settings(folder, made)) for name, made in urls.items()]
        running = [
            _serving(stack, CLUSTER, _settings(folder, urls[CLUSTER])),
            _serving(stack, PLAIN, _settings(folder, urls[PLAIN])),
        ]
        servers = [Server(url), *(Server(url, node) for node in workers(url))]
        corpus = Corpus()
        for step in (*(step for step in STEPS if step < workspaces), workspaces):
            await _fill(stores, corpus, step, memories)
            names = [workspace.name for workspace in stores[0].workspaces]
            yield await _recalls(running, servers, corpus, names, rounds)
        yield list(_intake(stores, memories))
        async for figures in _disturbed(urls[CLUSTER], stores[0].workspaces, running[0]):
            yield figures


def _settings(folder: Path, url: str) -> Settings:
    return Settings(data_dir=folder, database_url=url, log_level="error", embedded_worker=False)


async def _opened(stack: AsyncExitStack, name: str, settings: Settings) -> Store:
    return Store(name=name, services=await stack.enter_async_context(opened(settings)))


def _serving(stack: AsyncExitStack, name: str, settings: Settings) -> Service:
    address, pid = stack.enter_context(service(settings))
    return Service(name, address, psutil.Process(pid))


async def _fill(stores: Sequence[Store], corpus: Corpus, count: int, memories: int) -> None:
    """Adds workspaces until there are `count`: the same to both stores, each first as often."""
    model = stores[0].services.provider.model_id
    for number in range(len(stores[0].workspaces), count):
        made = with_vectors(model, list(corpus.memories(memories)), corpus.vectors(memories))
        for store in sorted(stores, key=lambda store: store.name, reverse=bool(number % 2)):
            started = time.perf_counter()
            workspace = await workspace_of(store.services, f"w{number}")
            await store.services.write_gate.remember(workspace, made)
            store.intake_seconds += time.perf_counter() - started
            store.workspaces.append(workspace)
    for store in stores:
        await store.services.statistics.refresh_all(store.services.database.across)
        await _vacuum(store.services)


async def _vacuum(services: Services) -> None:
    """Vacuums table by table, because Citus tells its nodes of named tables alone."""
    async with services.database.across(transaction=False) as session:
        for table in ("memories", "lexical", "embeddings"):
            await session.execute(f"VACUUM ANALYZE {table}")


async def _recalls(
    running: Sequence[Service], servers: Sequence[Server], corpus: Corpus, names: Sequence[str], rounds: int
) -> list[Figure]:
    """Asks all workspaces in turn, a block of queries of one service and the same ones of the others."""
    warm = -(-max(len(names), WARM_UP) // BLOCK)
    queries = list(zip(corpus.queries(warm * BLOCK + rounds), cycle(names), strict=False))
    blocks: dict[str, list[Block]] = {one.name: [] for one in running}
    for number, start in enumerate(range(0, len(queries), BLOCK)):
        first = number % len(running)
        for one in (*running[first:], *running[:first]):
            done = await asyncio.to_thread(block, one.address, one.process, servers, queries[start : start + BLOCK])
            blocks[one.name].append(done)
    return list(_costs(len(names), {name: done[warm:] for name, done in blocks.items()}))


def block(
    address: str, process: psutil.Process, servers: Sequence[Server], queries: Sequence[tuple[str, str]]
) -> Block:
    """Asks these queries, each with its workspace, one after the other. Each finds HITS, which are read and logged."""
    milliseconds = []
    api, postgres = cpu_seconds(process), sum(server.cpu_seconds() for server in servers)
    with closing(Client(address, "")) as client:
        for query, workspace in queries:
            asked = json.dumps({"query": query, "k": HITS, "min_probability": 0}).encode()
            started = time.perf_counter()
            answer = client.post("/api/search", asked, **{"x-workspace": workspace})
            milliseconds.append((time.perf_counter() - started) * 1000)
            if len(json.loads(answer)["hits"]) < HITS:
                raise RuntimeError(f"a recall in {workspace} found fewer than {HITS} memories")
    return Block(
        milliseconds,
        cpu_seconds(process) - api,
        sum(server.cpu_seconds() for server in servers) - postgres,
    )


def cpu_seconds(process: psutil.Process) -> float:
    """Returns the time of processors that a process has taken."""
    return float(sum(process.cpu_times()[:2]))


def _costs(count: int, blocks: Mapping[str, Sequence[Block]]) -> Iterator[Figure]:
    p50 = {}
    for name, done in blocks.items():
        milliseconds = [value for block in done for value in block.milliseconds]
        p50[name] = percentile(milliseconds, 50)
        of = f"{count} workspaces, {name}"
        yield Figure(name=f"{of}: recall p50", value=p50[name], unit="ms")
        yield Figure(name=f"{of}: recall p95", value=percentile(milliseconds, 95), unit="ms")
        for part, seconds in (
            ("service", sum(block.api_seconds for block in done)),
            ("Postgres", sum(block.postgres_seconds for block in done)),
        ):
            yield Figure(
                name=f"{of}: processor time of {part}", value=seconds / len(milliseconds) * 1000, unit="ms/recall"
            )
    ratio = p50[CLUSTER] / p50[PLAIN]
    yield Figure(name=f"{count} workspaces: recall p50, {CLUSTER} ÷ {PLAIN}", value=ratio, at_most=1.5)


def _intake(stores: Sequence[Store], memories: int) -> Iterator[Figure]:
    for store in stores:
        stored = memories * len(store.workspaces)
        rate = stored / store.intake_seconds
        yield Figure(name=f"{store.name}: intake of {stored:,} with ready vectors", value=rate, unit="memories/s")


async def _disturbed(url: str, workspaces: Sequence[Workspace], cluster: Service) -> AsyncGenerator[list[Figure], None]:
    """Moves the shard of the first workspace to another node, then kills that node, both while requests go on."""
    place = place_of(url, workspaces[0].workspace_id)
    (target, *_) = [node for node in workers(url) if node != place.node]
    seconds: list[float] = []

    async def moved() -> None:
        seconds.append(await asyncio.to_thread(move, url, place, target))

    groups = _by_place(url, workspaces, lambda other: other.shard == place.shard, "of the shard", "of other shards")
    figures = await _meanwhile(f"{cluster.name}: a shard moves", cluster.address, groups, moved)
    yield [Figure(name=f"{cluster.name}: a shard moves", value=seconds[0], unit="s"), *figures]

    async def away() -> None:
        server = Server(url, target)
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(DEAD_SECONDS)
        await asyncio.to_thread(server.start)

    groups = _by_place(url, workspaces, lambda other: other.node == target, "of the node", "of other nodes")
    yield await _meanwhile(f"{cluster.name}: a node is away for {DEAD_SECONDS:.0f} s", cluster.address, groups, away)


def _by_place(
    url: str, workspaces: Sequence[Workspace], chosen: Callable[[Place], bool], name: str, other: str
) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {name: [], other: []}
    for workspace in workspaces:
        groups[name if chosen(place_of(url, workspace.workspace_id)) else other].append(workspace.name)
    return {group: names for group, names in groups.items() if names}


async def _meanwhile(
    name: str, address: str, groups: Mapping[str, Sequence[str]], event: Callable[[], Awaitable[None]]
) -> list[Figure]:
    """Measures the traffic around an event; the traffic before it stands for itself."""
    async with traffic(address, groups) as answers:
        await asyncio.sleep(STEADY_SECONDS)
        before = list(answers)
        await event()
        await asyncio.sleep(STEADY_SECONDS)
    return [*outages(f"before {name}", before), *outages(name, answers[len(before) :])]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of the coordinator, as a superuser: postgresql://…")
    parser.add_argument("--workspaces", type=int, default=WORKSPACES)
    parser.add_argument("--memories", type=int, default=MEMORIES, help="of each workspace")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="recalls of each service at each step")
    parser.add_argument("--shards", type=int, default=SHARDS)
    given = parser.parse_args(arguments)
    figures = asyncio.run(_measured(given))
    report("citus", figures)
    return figures


async def _measured(given: argparse.Namespace) -> list[Figure]:
    """Returns all figures. Those of each part are written when it ends, because the whole takes its time."""
    figures: list[Figure] = []
    async with aclosing(measure(given.url, given.workspaces, given.memories, given.rounds, given.shards)) as parts:
        async for part in parts:
            figures += part
            write("citus", figures)
    return figures


if __name__ == "__main__":
    main()
