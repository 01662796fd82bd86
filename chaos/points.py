"""One point: a work, a fault at a random moment of it, and the comparison afterwards."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import msgspec

from chaos.faults import FAULTS
from chaos.machine import RECOVERY_SECONDS, SERVICES, Machine
from chaos.works import WORKS, Command, Request, Step, Store, Work

BEFORE_SECONDS = (0.0, 3.0)
"""Shortest and longest time between the first step and the fault."""
AFTER_SECONDS = 1.0
"""Time for which steps go on after the fault has ended."""
REQUEST_SECONDS = 30.0
PATIENCE_SECONDS = 0.05
"""Pause after a step that was not acknowledged."""
EXPECTED = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.INSUFFICIENT_STORAGE)
"""Refusals that a service may give while it lacks its database or its disk."""
SHOWN = 5
"""Losses of one kind that a point tells by name."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of the work at one point."""

    number: int
    work: str
    fault: str
    moment: float
    """Seconds between the first step and the fault."""
    acknowledged: int
    interrupted: int
    """Steps that were refused or got no answer, and were repeated."""
    recovered: float
    """Seconds until both services were ready again."""
    losses: list[str]


class Sender:
    """Takes the steps of a work, requests at both services in turn, and notes how each step ended."""

    def __init__(self, machine: Machine, workspace: str, work: Work) -> None:
        self._machine, self._work, self._over = machine, work, threading.Event()
        self._clients = [
            httpx.Client(
                base_url=machine.url(name), headers={"x-workspace": workspace}, timeout=REQUEST_SECONDS, trust_env=False
            )
            for name in SERVICES
        ]
        self.store = Store(self._clients[0], workspace)
        self.acknowledged: list[Step] = []
        self.interrupted: list[Step] = []
        self.wrong: list[str] = []

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Takes steps for as long as the block runs."""
        thread = threading.Thread(target=self._take_all)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def repeat(self) -> None:
        """Takes each interrupted step again until it is acknowledged.

        Raises:
            TimeoutError: one was not acknowledged within `RECOVERY_SECONDS`.
        """
        deadline = time.monotonic() + RECOVERY_SECONDS
        while self.interrupted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.interrupted)} steps were not acknowledged after the recovery")
            waiting, self.interrupted = self.interrupted, []
            for number, step in enumerate(waiting):
                self._take(number, step)

    def close(self) -> None:
        """Closes the connections."""
        for client in self._clients:
            client.close()

    def _take_all(self) -> None:
        number = 0
        while not self._over.is_set():
            self._take(number, self._work.step(number))
            number += 1

    def _take(self, number: int, step: Step) -> None:
        taken = self._run(step) if isinstance(step, Command) else self._send(number, step)
        (self.acknowledged if taken else self.interrupted).append(step)
        if not taken:
            time.sleep(PATIENCE_SECONDS)

    def _run(self, command: Command) -> bool:
        return self._machine.command(*command.words).wait() == 0

    def _send(self, number: int, request: Request) -> bool:
        client = self._clients[number % len(self._clients)]
        content = request.body if isinstance(request.body, bytes) else msgspec.json.encode(request.body)
        headers = {"content-type": "application/json", **request.headers}
        try:
            answer = client.request(request.method, request.path, headers=headers, content=content)
        except httpx.TransportError:
            return False
        if not answer.is_success and answer.status_code not in EXPECTED:
            self.wrong.append(f"answered {answer.status_code}: {answer.text[:200]}")
        return bool(answer.is_success)


def tried(machine: Machine, number: int, rng: random.Random, faults: list[str]) -> Outcome:
    """Tries one point: its work, fault and moment are chosen by `rng`."""
    work = rng.choice(WORKS)()
    fault = rng.choice(faults)
    moment = rng.uniform(*BEFORE_SECONDS)
    sender = Sender(machine, f"point-{number}", work)
    try:
        work.prepare(sender.store)
        with sender.sending():
            time.sleep(moment)
            FAULTS[fault](machine, rng)
            recovered = machine.until_ready()
            time.sleep(AFTER_SECONDS)
        interrupted = len(sender.interrupted)
        losses = _losses(sender, work)
    finally:
        sender.close()
        work.end()
    return Outcome(
        number=number,
        work=work.name,
        fault=fault,
        moment=moment,
        acknowledged=len(sender.acknowledged) - interrupted,
        interrupted=interrupted,
        recovered=recovered,
        losses=losses,
    )


def _losses(sender: Sender, work: Work) -> list[str]:
    """Names everything that is not as it was acknowledged, before and after the repetition."""
    losses = differences(work.stored(sender.store), sender.acknowledged, sender.interrupted)
    sender.repeat()
    losses += differences(work.stored(sender.store), sender.acknowledged, [])
    deadline = time.monotonic() + RECOVERY_SECONDS
    while owed := work.unfinished(sender.store, sender.acknowledged):
        if time.monotonic() > deadline:
            losses += [f"never done: {name}" for name in owed[:SHOWN]]
            break
        time.sleep(0.2)
    return losses + list(dict.fromkeys(sender.wrong))


def differences(stored: Counter[str], certain: list[Step], possible: list[Step]) -> list[str]:
    """Compares what is stored with what must be there once, and what may be there once."""
    must = {name for step in certain for name in step.expected}
    may = {name for step in possible for name in step.expected}
    missing = sorted(must - stored.keys())
    twice = sorted(name for name, times in stored.items() if times > 1)
    unknown = sorted(stored.keys() - must - may)
    kinds = {"missing": missing, "stored more than once": twice, "never sent": unknown}
    return [f"{kind}: {name}" for kind, names in kinds.items() for name in names[:SHOWN]]
