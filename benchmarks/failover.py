"""A failover while clients write: the primary is killed, its replica promoted, and what was acknowledged is counted.

`python -m benchmarks.failover --clients 4` exits with 1 if an acknowledged memory is lost or stored twice.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psutil  # type: ignore[import-untyped]  # it has no types
import psycopg

from benchmarks.stage import replica, service, stage
from tests.fakes.standby import Standby

BEFORE = 200
"""Acknowledged memories before the primary is killed."""
DETECTED, AFTER = 1.0, 10.0
"""Seconds until the replica is promoted, and of writes after the first new one."""
PAUSE_SECONDS = 0.05
PAGE = 200


@dataclass
class Written:
    """The memories that were acknowledged, each with its moment; the answers that were none."""

    bodies: dict[str, float] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


async def write(http: httpx.AsyncClient, client: int, written: Written, over: asyncio.Event) -> None:
    """Stores one memory after the other; one without an answer is sent again until it has one."""
    number = 0
    while not over.is_set():
        body = f"Lesson {number} of client {client}: verify the licence of producer {client}-{number} first."
        try:
            answer = await http.post("/api/memories", json={"kind": "note", "body": body})
        except httpx.HTTPError as error:
            written.refused[type(error).__name__] += 1
        else:
            if answer.is_success:
                written.bodies[body] = time.monotonic()
                number += 1
                continue
            written.refused[f"{answer.status_code} {answer.json().get('detail', '')[:80]}"] += 1
        await asyncio.sleep(PAUSE_SECONDS)


async def stored(http: httpx.AsyncClient) -> Counter[str]:
    """Counts the stored memories by their text."""
    found = Counter[str]()
    cursor: dict[str, str] = {}
    while True:
        page = (await http.get("/api/memories", params={"limit": PAGE, **cursor})).raise_for_status().json()
        found.update(memory["body"] for memory in page["memories"])
        if page["next"] is None:
            return found
        cursor = {"cursor": page["next"]}


async def embedded(http: httpx.AsyncClient) -> None:
    """Waits until the worker has embedded everything."""
    while True:
        with suppress(httpx.HTTPError):
            if not (await http.get("/api/status")).raise_for_status().json()["waiting"]:
                return
        await asyncio.sleep(0.5)


def kill(cluster: Path) -> float:
    """Kills the postmaster of a cluster and all its processes; returns the moment."""
    postmaster = psutil.Process(int((cluster / "postmaster.pid").read_text().splitlines()[0]))
    for process in (postmaster, *postmaster.children()):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return time.monotonic()


async def failed_over(clients: int, *, waits: bool) -> bool:
    """Fails over and prints what happened; returns False if anything was lost.

    `waits` says if commits wait for the replica.
    """
    async with stage() as services:
        url = services.settings.database_url
        with replica(services.settings) as standby:
            if waits:
                with psycopg.connect(url, autocommit=True) as superuser:
                    superuser.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                    superuser.execute("SELECT pg_reload_conf()")
            one, two = (parse_qs(urlsplit(item).query)["host"][0] for item in (url, standby.url()))
            both = f"postgresql://priors@/priors?host={one},{two}&port=5432,5432&target_session_attrs=read-write"
            settings = replace(services.settings, database_url=both)
            with service(settings) as (address, _):
                return await _tried(address, clients, settings.data_dir / "postgres", standby)


async def _tried(address: str, clients: int, cluster: Path, standby: Standby) -> bool:
    written, over = Written(), asyncio.Event()
    async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as http:
        writers = [asyncio.create_task(write(http, number, written, over)) for number in range(clients)]
        while len(written.bodies) < BEFORE:  # noqa: ASYNC110 - another process answers
            await asyncio.sleep(PAUSE_SECONDS)
        killed = await asyncio.to_thread(kill, cluster)
        before, latest = len(written.bodies), max(written.bodies.values())
        await asyncio.sleep(DETECTED)
        await asyncio.to_thread(standby.call, "pg_promote()")
        promoted = time.monotonic()
        while max(written.bodies.values(), default=0) < promoted:  # noqa: ASYNC110 - another server gets there
            await asyncio.sleep(PAUSE_SECONDS)
        resumed = min(moment for moment in written.bodies.values() if moment >= promoted)
        await asyncio.sleep(AFTER)
        over.set()
        await asyncio.gather(*writers)
        found = await stored(http)
        await embedded(http)
    lost = [body for body in written.bodies if found[body] != 1]
    print(
        f"{clients} clients: {before:,} acknowledged before the kill, {len(written.bodies):,} in all;"
        f" lost or stored twice: {len(lost)}; no write for {resumed - latest:.1f} s; the replica was promoted"
        f" {promoted - killed:.1f} s after the kill; then everything was embedded"
    )
    for reason, count in written.refused.most_common():
        print(f"  {count:,} × {reason}")
    return not lost


def main(arguments: Sequence[str] | None = None) -> int:
    """Fails over; returns 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--asynchronous", action="store_true", help="commits do not wait for the replica")
    given = parser.parse_args(arguments)
    return int(not asyncio.run(failed_over(given.clients, waits=not given.asynchronous)))


if __name__ == "__main__":
    sys.exit(main())
