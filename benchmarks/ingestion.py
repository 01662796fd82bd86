"""Ingestion of real files against the raw embedding of the same chunk texts, in one run."""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.foundation.models.tokens import BundledTokenCounter
from app.storage.index.vectors import embedded_text
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA, stage, workspace_of

EXAMPLES = Path(__file__).parents[1] / "examples" / "reports"
UNCHANGED_FILES = 1_000
LIMIT = 10_000_000


async def texts_of(services: Services, workspace: Workspace) -> list[str]:
    """Every chunk's embedded text, each once."""
    found: dict[str, None] = {}
    before = None
    while page := await Memories(database=services.database).list_live(workspace, limit=200, before=before):
        found |= dict.fromkeys(embedded_text(memory.title, memory.body) for memory in page)
        before = (page[-1].created_at, page[-1].memory_id)
    return list(found)


async def take_in(services: Services, workspace: Workspace, folder: Path) -> tuple[float, int]:
    """Seconds and chunks of an ingestion, by a token counter that remembers nothing."""
    ingestions = replace(services.ingestions, counter=BundledTokenCounter(), max_file_bytes=LIMIT)
    started = time.perf_counter()
    result = await ingestions.ingest(workspace, [folder])
    return time.perf_counter() - started, result.chunks


async def measure(folder: Path, rounds: int, unchanged: int) -> list[Figure]:
    """The figures for one folder."""
    ratios, speeds = [], []
    async with stage() as services:
        warm_up = await workspace_of(services, "warm-up")
        await take_in(services, warm_up, folder)
        texts = await texts_of(services, warm_up)
        for number in range(rounds):
            seconds, chunks = await take_in(services, await workspace_of(services, f"round-{number}"), folder)
            started = time.perf_counter()
            await services.provider.embed_documents(texts)
            raw = time.perf_counter() - started
            ratios.append((len(texts) / seconds) / (len(texts) / raw))
            speeds.append(chunks / seconds)
        again = await unchanged_seconds(services, unchanged)
    return [
        Figure(name="distinct chunk texts", value=len(texts)),
        Figure(name="ingestion ÷ raw embedding of the same texts", value=sorted(ratios)[rounds // 2], at_least=0.9),
        Figure(name="chunks ingested", value=sorted(speeds)[rounds // 2], unit="a second"),
        Figure(name=f"{unchanged:,} unchanged files", value=again, unit="s", at_most=2.0),
    ]


async def unchanged_seconds(services: Services, count: int) -> float:
    """Seconds that a second ingestion of unchanged files takes."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            (Path(folder) / f"{number}.md").write_text(f"# Report {number % 50}\n\nThe same text in many files.\n")
        workspace = await workspace_of(services, "unchanged")
        await take_in(services, workspace, Path(folder))
        return (await take_in(services, workspace, Path(folder)))[0]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    real = SHARED_DATA / "reports-scylla"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=real if real.is_dir() else EXAMPLES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unchanged", type=int, default=UNCHANGED_FILES)
    given = parser.parse_args(arguments)
    figures = asyncio.run(measure(given.folder, given.rounds, given.unchanged))
    report("ingestion", figures)
    return figures


if __name__ == "__main__":
    main()
