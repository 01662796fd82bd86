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
from chaos.machine import SERVICES, Machine
from chaos.progress import NotRecovered, wait_for
from chaos.works import Command, Request, Step, Store, Work

BEFORE_SECONDS = (0.0, 3.0)
"""Shortest and longest time between the first step and the fault."""
AFTER_SECONDS = 1.0
"""Time for which steps go on after the fault has ended."""
REQUEST_SECONDS = 30.0
PATIENCE_SECONDS = 0.05
"""Pause after a step that was not acknowledged."""
EXPECTED = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.INSUFFICIENT_STORAGE)
"""Refusals that a service may give while it lacks its database or its disk."""
MISSING, TWICE = "missing", "stored more than once"


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
    """Seconds from the end of the fault until both services were ready again."""
    losses: list[str]

    @property
    def lost(self) -> int:
        """The acknowledged things that were not there."""
        return sum(loss.startswith(MISSING) for loss in self.losses)

    @property
    def doubled(self) -> int:
        """The things that were there more than once."""
        return sum(loss.startswith(TWICE) for loss in self.losses)


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
        self.refusal = ""
        """The last reason why a step was not acknowledged."""

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
            NotRecovered: no more of them are acknowledged.
        """
        wait_for(self._taken_again, "steps are not acknowledged")

    def _taken_again(self) -> list[str]:
        waiting, self.interrupted = self.interrupted, []
        for number, step in enumerate(waiting):
            self._take(number, step)
        return [f"{len(self.interrupted)} steps: {self.refusal}"] if self.interrupted else []

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
        code = self._machine.command(*command.words).wait()
        self.refusal = f"{' '.join(command.words)} ended with {code}"
        return code == 0

    def _send(self, number: int, request: Request) -> bool:
        client = self._clients[number % len(self._clients)]
        content = request.body if isinstance(request.body, bytes) else msgspec.json.encode(request.body)
        headers = {"content-type": "application/json", **request.headers}
        try:
            answer = client.request(request.method, request.path, headers=headers, content=content)
        except httpx.TransportError as error:
            self.refusal = str(error) or type(error).__name__
            return False
        if not answer.is_success:
            self.refusal = f"answered {answer.status_code}: {answer.text[:200]}"
            if answer.status_code not in EXPECTED:
                self.wrong.append(self.refusal)
        return bool(answer.is_success)


def tried(machine: Machine, number: int, rng: random.Random, work: Work, fault: str) -> Outcome:
    """Tries one point: the fault strikes the work at a moment that is chosen by `rng`."""
    moment = rng.uniform(*BEFORE_SECONDS)
    sender = Sender(machine, f"point-{number}", work)
    recovered, losses = 0.0, []
    try:
        work.prepare(sender.store)
        with sender.sending():
            time.sleep(moment)
            FAULTS[fault].strike(machine, rng)
            recovered = machine.until_ready()
            time.sleep(AFTER_SECONDS)
        interrupted = len(sender.interrupted)
        losses = _losses(sender, work)
    except NotRecovered as failure:
        interrupted = len(sender.interrupted)
        losses = [f"not recovered: {failure}", *machine.told()]
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
    """Names everything that is not as it was acknowledged, before and after the repetition.

    Raises:
        NotRecovered: steps or jobs do not go on.
    """
    losses = differences(_stored(sender, work), sender.acknowledged, sender.interrupted)
    sender.repeat()
    losses += differences(_stored(sender, work), sender.acknowledged, [])
    wait_for(lambda: _owed(sender, work), "jobs do not go on")
    return losses + list(dict.fromkeys(sender.wrong))


def _owed(sender: Sender, work: Work) -> list[str]:
    try:
        return work.unfinished(sender.store, sender.acknowledged)
    except httpx.HTTPError as error:
        return [_reason(error)]


def _stored(sender: Sender, work: Work) -> Counter[str]:
    """Reads what is stored; a refusal that a service may give is waited for."""
    found: list[Counter[str]] = []

    def read() -> list[str]:
        try:
            found.append(work.stored(sender.store))
        except httpx.HTTPError as error:
            return [_reason(error)]
        return []

    wait_for(read, "what is stored cannot be read")
    return found[-1]


def _reason(error: httpx.HTTPError) -> str:
    return error.response.text[:300] if isinstance(error, httpx.HTTPStatusError) else repr(error)


def differences(stored: Counter[str], certain: list[Step], possible: list[Step]) -> list[str]:
    """Compares what is stored with what must be there once, and what may be there once."""
    must = {name for step in certain for name in step.expected}
    may = {name for step in possible for name in step.expected}
    missing = sorted(must - stored.keys())
    twice = sorted(name for name, times in stored.items() if times > 1)
    unknown = sorted(stored.keys() - must - may)
    kinds = {MISSING: missing, TWICE: twice, "never sent": unknown}
    return [f"{kind}: {name}" for kind, names in kinds.items() for name in names]
