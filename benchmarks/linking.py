"""Recalls of a large workspace while a worker finds links in it, by turns with recalls while the worker is stopped."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import psutil  # type: ignore[import-untyped]  # it has no types

from app.foundation.db.session import LINK
from app.storage.index.indexing import VECTORS, WORDS
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.citus import block, cpu_seconds
from benchmarks.corpus import Corpus
from benchmarks.figures import Figure, percentile
from benchmarks.nodes import Server
from benchmarks.stage import service, worker

WARM_UP = 20
TURN = 10
"""Recalls of one turn."""
ALONE_SECONDS = 15.0
"""Time for which the worker links without recalls beside it, to find what a memory costs."""
SETTLE_SECONDS = 1.0
"""Time in which the statement of a worker that was just stopped ends."""
QUEUE = """
INSERT INTO pending_links (workspace_id, memory_id, step)
SELECT workspace_id, memory_id, %(step)s FROM embeddings
WHERE workspace_id = %(workspace_id)s AND passage = 0 ORDER BY memory_id LIMIT %(count)s
ON CONFLICT DO NOTHING
"""
PENDING = "SELECT count(*) FROM pending_links WHERE workspace_id = %(workspace_id)s"
CLEAR = "DELETE FROM pending_links WHERE workspace_id = %(workspace_id)s"


async def linking(services: Services, workspace: Workspace, corpus: Corpus, count: int, rounds: int) -> list[Figure]:
    """Returns the figures of both steps of linking, of so many recalls each.

    The first `count` memories are linked, which must take longer than ALONE_SECONDS.
    """
    figures = []
    for step in (WORDS, VECTORS):
        async with services.database.session(workspace) as session:
            await session.execute(CLEAR)
        await _queue(services, workspace, step, count)
        queued = await _pending(services, workspace)
        with (
            service(replace(services.settings, embedded_worker=False)) as (address, api_id),
            worker(services.settings) as worker_id,
        ):
            linker = psutil.Process(worker_id)
            await until_linking(services, workspace, queued, linker)
            figures += await _cost(services, workspace, step, linker)
            asked = [(query, workspace.name) for query in corpus.queries(WARM_UP + rounds)]
            beside, quiet = list[float](), list[float]()
            for start in range(0, len(asked), TURN):
                # A worker that was stopped in a transaction holds locks that the new rows would wait for.
                linker.resume()
                await _queue(services, workspace, step, count)
                for works in (True, False) if start // TURN % 2 else (False, True):
                    (linker.resume if works else linker.suspend)()
                    await asyncio.sleep(SETTLE_SECONDS)
                    turn = asked[start : start + TURN]
                    done = await asyncio.to_thread(block, address, psutil.Process(api_id), [], turn)
                    (beside if works else quiet).extend(done.milliseconds)
        figures += _compared(step, beside[WARM_UP:], quiet[WARM_UP:])
    return figures


async def _cost(services: Services, workspace: Workspace, step: str, linker: psutil.Process) -> list[Figure]:
    """Returns what links cost that are found without recalls beside them."""
    server = Server(services.settings.database_url)
    before, used = await _pending(services, workspace), cpu_seconds(linker) + server.cpu_seconds()
    await asyncio.sleep(ALONE_SECONDS)
    left = await _pending(services, workspace)
    used = cpu_seconds(linker) + server.cpu_seconds() - used
    linked = max(1, before - left)
    return [
        Figure(name=f"links by {step}: processor time of a memory", value=used / linked * 1000, unit="ms"),
        Figure(name=f"links by {step}, without recalls", value=linked / ALONE_SECONDS, unit="memories/s"),
    ]


def _compared(step: str, beside: Sequence[float], quiet: Sequence[float]) -> list[Figure]:
    p50, p95 = (percentile(beside, share) / percentile(quiet, share) for share in (50, 95))
    return [
        Figure(name=f"search beside links by {step}, p50", value=percentile(beside, 50), unit="ms"),
        Figure(name=f"search by turns with that, p50 ({step})", value=percentile(quiet, 50), unit="ms"),
        Figure(name=f"search beside links by {step} ÷ without, p50", value=p50, at_most=1.3),
        Figure(name=f"search beside links by {step} ÷ without, p95", value=p95),
    ]


async def _queue(services: Services, workspace: Workspace, step: str, count: int) -> None:
    async with services.database.session(workspace) as session:
        await session.execute(QUEUE, {"step": step, "count": count})
        await session.enqueue(LINK)


async def until_linking(services: Services, workspace: Workspace, queued: int, linker: psutil.Process) -> None:
    """Waits until the worker links: it first waits for the end of what looks like a bulk intake.

    Raises RuntimeError if the worker ended before.
    """
    while await _pending(services, workspace) >= queued:
        if linker.status() == psutil.STATUS_ZOMBIE:
            raise RuntimeError("the worker ended before it linked")
        await asyncio.sleep(0.2)


async def _pending(services: Services, workspace: Workspace) -> int:
    async with services.database.session(workspace) as session:
        return int(await session.value(PENDING))
