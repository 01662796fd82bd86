"""Requests that go on while something happens to a service: what failed of them, why, and for how long."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count, groupby
from typing import NamedTuple

import httpx

from benchmarks.figures import Figure, percentile

PAUSE_SECONDS = 0.05
"""Between two requests of one client."""
PATIENCE_SECONDS = 120.0
"""Longest wait for an answer."""
RECALL, WRITE = "recalls", "writes"
REASON_CHARACTERS = 90


class Answer(NamedTuple):
    """The answer to a request, or its lack."""

    group: str
    """The group of the request's workspace."""
    work: str
    at: float
    """The moment of the request, in seconds."""
    seconds: float
    status: int
    """0: there was none."""
    reason: str
    """Why it failed; "" if all is well."""

    @property
    def ended(self) -> float:
        """The moment of the answer, in seconds."""
        return self.at + self.seconds


@asynccontextmanager
async def traffic(address: str, groups: Mapping[str, Sequence[str]]) -> AsyncIterator[list[Answer]]:
    """Keeps one client reading and one writing in the workspaces of each group; yields the answers so far."""
    answers: list[Answer] = []
    over = asyncio.Event()
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE_SECONDS) as client, asyncio.TaskGroup() as tasks:
        for group, workspaces in groups.items():
            for work in (RECALL, WRITE):
                tasks.create_task(_go_on(client, group, workspaces, work, answers, over))
        try:
            yield answers
        finally:
            over.set()


async def _go_on(
    client: httpx.AsyncClient,
    group: str,
    workspaces: Sequence[str],
    work: str,
    answers: list[Answer],
    over: asyncio.Event,
) -> None:
    for number in count():
        if over.is_set():
            return
        at = time.perf_counter()
        status, reason = await _answer(client, workspaces[number % len(workspaces)], work, number)
        answers.append(Answer(group, work, at, time.perf_counter() - at, status, reason))
        await asyncio.sleep(PAUSE_SECONDS)


async def _answer(client: httpx.AsyncClient, workspace: str, work: str, number: int) -> tuple[int, str]:
    path, body = (
        ("/api/search", {"query": f"what is known of finding {number}"})
        if work == RECALL
        else ("/api/memories", {"kind": "note", "body": f"Finding {number}, of {time.time_ns()}, is kept meanwhile."})
    )
    try:
        answer = await client.post(path, json=body, headers={"x-workspace": workspace})
    except httpx.HTTPError as error:
        return 0, type(error).__name__
    return answer.status_code, answer.json()["detail"][:REASON_CHARACTERS] if answer.is_error else ""


def outages(name: str, answers: Sequence[Answer]) -> Iterator[Figure]:
    """Yields for each group and work: answers, p95, the longest wait, and each kind of failure with its time."""
    in_order = sorted(answers, key=lambda answer: (answer.group, answer.work, answer.ended))
    for (group, work), of_work in groupby(in_order, key=lambda answer: (answer.group, answer.work)):
        yield from _outages(f"{name}: {work}, {group}", list(of_work))


def _outages(name: str, answers: Sequence[Answer]) -> Iterator[Figure]:
    seconds = [answer.seconds for answer in answers]
    failed = [answer for answer in answers if answer.reason]
    yield Figure(name=name, value=len(answers), unit="answers")
    yield Figure(name=f"{name}: p95", value=percentile(seconds, 95) * 1000, unit="ms")
    yield Figure(name=f"{name}: longest", value=max(seconds), unit="s")
    yield Figure(name=f"{name}: failed", value=len(failed), unit="answers")
    if failed:
        first = failed[0].at
        well = [answer.ended for answer in answers if not answer.reason and answer.ended > failed[-1].ended]
        yield Figure(
            name=f"{name}: from the first failure to well again",
            value=min(well, default=float("inf")) - first,
            unit="s",
        )
    for (status, reason), same in _by_kind(failed):
        yield Figure(name=f"{name}: {status} {reason}", value=len(same), unit="answers")


def _by_kind(failed: Sequence[Answer]) -> Iterator[tuple[tuple[int, str], list[Answer]]]:
    in_order = sorted(failed, key=lambda answer: (answer.status, answer.reason))
    for kind, same in groupby(in_order, key=lambda answer: (answer.status, answer.reason)):
        yield kind, list(same)
