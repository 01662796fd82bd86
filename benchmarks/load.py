"""Mixed work of many clients at once: the times of each kind, wrong answers, and memory over time.

`python -m benchmarks.load --clients 64 --minutes 10` exits with 1 if an answer was an error other than 429 and 503 with
its reason, or if a client did not find what it had just stored.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

import httpx
import msgspec
import psutil  # type: ignore[import-untyped]  # it has no types
from rich.console import Console
from rich.table import Table

from benchmarks.figures import percentile
from benchmarks.stage import service, stage, worker

WORKSPACES = 8
BATCH = 20
"""Memories of one bulk request."""
SAMPLE_SECONDS = 2.0
"""Time between two looks at the memory of the processes."""
TIMEOUT_SECONDS = 120.0
TOPICS = ("producers", "licences", "pharmacies", "retail audits", "marketplaces", "registers", "judges", "scouts")
WORK = {
    "search": 30, "history": 15, "context": 5, "remember": 20, "batch": 5, "feedback": 10, "ingest": 5, "run": 5,
    "list": 5,
}  # fmt: skip
"""The kinds of work, each with its share in percent."""
MAY_FAIL = frozenset({429, 503})


@dataclass
class Seen:
    """The answers so far."""

    times: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Milliseconds of each kind of work."""
    refused: Counter[str] = field(default_factory=Counter)
    """Answers of 429 and 503, by their reason."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Other errors, and what a client did not find."""


class Client:
    """One client in one workspace."""

    def __init__(self, http: httpx.AsyncClient, seen: Seen, rng: random.Random) -> None:
        self._http, self._seen, self._rng = http, seen, rng
        self._ids: list[str] = []

    async def work(self, end: float) -> None:
        """Works until `end`, one request at a time."""
        ways: Mapping[str, Callable[[], Awaitable[None]]] = {kind: getattr(self, f"_{kind}") for kind in WORK}
        while time.monotonic() < end:
            await ways[self._rng.choices(list(WORK), list(WORK.values()))[0]]()

    async def _search(self) -> None:
        await self._post("search", "/api/search", {"query": self._question(), "k": 10})

    async def _history(self) -> None:
        await self._post("history", "/api/history", {"query": self._question(), "agent": "scout"})

    async def _context(self) -> None:
        await self._post("context", "/api/contexts", {"observation": self._question()})

    async def _remember(self) -> None:
        stored = await self._post("remember", "/api/memories", self._memory())
        for memory_id in filter(None, (stored or {}).get("ids", ())):
            self._ids.append(memory_id)
            await self._request("read", "GET", f"/api/memories/{memory_id}")

    async def _batch(self) -> None:
        lines = b"\n".join(msgspec.json.encode(self._memory()) for _ in range(BATCH))
        headers = {"content-type": "application/x-ndjson"}
        await self._request("batch", "POST", "/api/memories:bulk", content=lines, headers=headers)

    async def _feedback(self) -> None:
        if self._ids:
            rating = {"rating": self._rng.choice((1, -1))}
            await self._post("feedback", f"/api/memories/{self._rng.choice(self._ids)}/feedback", rating)

    async def _ingest(self) -> None:
        sections = "\n\n".join(f"## Finding {part}\n\n{self._lesson()}" for part in range(4))
        report = {"path": f"runs/{uuid4().hex}.md", "content": f"# Report\n\n{sections}\n"}
        await self._post("ingest", "/api/reports", report)

    async def _run(self) -> None:
        run = {"run_id": uuid4().hex, "task": self._question(), "output": self._lesson(), "final_score": 7.5}
        await self._post("run", "/api/runs", run)

    async def _list(self) -> None:
        await self._request("list", "GET", "/api/memories?limit=50")

    def _question(self) -> str:
        return f"How does the {self._rng.choice(TOPICS)} step check {self._rng.choice(TOPICS)}?"

    def _lesson(self) -> str:
        number = self._rng.randrange(10**9)
        return f"Lesson {number}: verify {self._rng.choice(TOPICS)} of case {number} before {self._rng.choice(TOPICS)}."

    def _memory(self) -> dict[str, str]:
        return {"kind": "note", "body": self._lesson()}

    async def _post(self, kind: str, path: str, body: object) -> dict[str, list[str]] | None:
        return await self._request(kind, "POST", path, json=body)

    async def _request(self, kind: str, method: str, path: str, **sent: object) -> dict[str, list[str]] | None:
        """Returns the JSON of a good answer."""
        started = time.perf_counter()
        try:
            answer = await self._http.request(method, path, **sent)  # type: ignore[arg-type]  # a body and headers
        except httpx.HTTPError as error:
            self._seen.wrong[f"{kind}: {type(error).__name__}"] += 1
            return None
        if answer.is_success:
            self._seen.times[kind].append((time.perf_counter() - started) * 1000)
            return dict(answer.json())
        detail = answer.json().get("detail", "") if "json" in answer.headers.get("content-type", "") else ""
        if answer.status_code in MAY_FAIL and detail:
            self._seen.refused[f"{answer.status_code} {detail[:90]}"] += 1
        else:
            self._seen.wrong[f"{kind}: {answer.status_code} {detail[:90]}"] += 1
        return None


async def _sample(processes: Mapping[str, int], samples: dict[str, list[float]]) -> None:
    """Notes the memory of each process with its children, in MB, for ever; shared pages count once."""
    while True:
        for name, pid in processes.items():
            samples[name].append(await asyncio.to_thread(_megabytes, pid))
        await asyncio.sleep(SAMPLE_SECONDS)


def _megabytes(pid: int) -> float:
    total = 0
    for process in (parent := psutil.Process(pid), *parent.children(recursive=True)):
        try:
            total += process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return float(total) / 1e6


def growth(samples: Sequence[float]) -> float:
    """Returns the mean of the last third ÷ the mean of the middle third."""
    third = max(1, len(samples) // 3)
    return statistics.mean(samples[-third:]) / statistics.mean(samples[-2 * third : -third] or samples)


async def loaded(address: str, seen: Seen, *, clients: int, seconds: float) -> None:
    """Lets clients work on a service."""
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=1)
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            rng = random.Random(number)
            headers = {"X-Workspace": f"load-{number % WORKSPACES}"}
            http = httpx.AsyncClient(
                base_url=address, headers=headers, timeout=TIMEOUT_SECONDS, limits=limits, trust_env=False
            )
            group.create_task(_closed(http, Client(http, seen, rng).work(end)))


async def _closed(http: httpx.AsyncClient, work: Awaitable[None]) -> None:
    async with http:
        await work


async def measured(clients: int, seconds: float) -> tuple[Seen, dict[str, list[float]]]:
    """Runs the clients; returns their answers and the memory of the processes over time, in MB."""
    seen, samples = Seen(), defaultdict[str, list[float]](list)
    async with stage() as services:
        settings = replace(services.settings, embedded_worker=False)
        postgres = int((settings.data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0])
        with (
            service(settings) as (address, api),
            worker(settings) as jobs,
        ):
            processes = {"service": api, "worker": jobs, "postgres": postgres}
            sampling = asyncio.create_task(_sample(processes, samples))
            await loaded(address, seen, clients=clients, seconds=seconds)
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
    return seen, samples


def _show(seen: Seen, samples: Mapping[str, Sequence[float]], seconds: float) -> None:
    console, table = Console(width=110), Table("work", "answers", "a second", "p50 ms", "p95 ms", "p99 ms")
    for kind, times in sorted(seen.times.items()):
        shown = (f"{percentile(times, share):.0f}" for share in (50, 95, 99))
        table.add_row(kind, f"{len(times):,}", f"{len(times) / seconds:.1f}", *shown)
    console.print(table)
    memory = Table("memory of", "first third, MB", "middle", "last", "last ÷ middle")
    for name, found in samples.items():
        third = max(1, len(found) // 3)
        parts = (found[:third], found[-2 * third : -third] or found, found[-third:])
        memory.add_row(name, *(f"{statistics.mean(part):.0f}" for part in parts), f"{growth(found):.3f}")
    console.print(memory)
    for title, counted in (("refused with a reason", seen.refused), ("WRONG", seen.wrong)):
        for reason, count in counted.most_common():
            console.print(f"{title}: {count:,} × {reason}", markup=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs, prints, and returns 1 if any answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10.0)
    given = parser.parse_args(arguments)
    seconds = given.minutes * 60
    seen, samples = asyncio.run(measured(given.clients, seconds))
    _show(seen, samples, seconds)
    return int(bool(seen.wrong))


if __name__ == "__main__":
    sys.exit(main())
