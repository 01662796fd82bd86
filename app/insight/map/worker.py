"""The process that computes layouts, seen from the service: started when needed, ended when idle."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from app.errors import GraphUnavailable
from app.insight.map.layout import CACHE, versions
from app.insight.map.messages import HEADER, Failure, Job, Layout, Message, answer_of, encoded
from app.insight.map.values import Graph

T = TypeVar("T")


class InProgress(Generic[T]):
    """Work of which no piece is done twice at once; it goes on though a caller that waits for it leaves."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    async def once(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of the work of that name: of the one in progress, or of `work`, begun now."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    def _ended(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            # Looked at, because the callers may all have left.
            task.exception()

    async def cancel(self) -> None:
        """End all of it."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


IDLE_SECONDS = 300.0
"""UMAP, loaded and compiled, holds 400 MB, and takes about 15 s to become so again."""
LONGEST_SECONDS = 300.0
"""5,000 memories take 20 s on two busy cores."""
ONE_THREAD = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

logger = structlog.get_logger()


class LayoutWorker:
    """One process for one job at a time. Nothing is started before the first job."""

    def __init__(
        self, cache: Path, *, idle_seconds: float = IDLE_SECONDS, longest_seconds: float = LONGEST_SECONDS
    ) -> None:
        self.in_progress: InProgress[Graph] = InProgress()
        self._cache, self._idle_seconds, self._longest_seconds = cache, idle_seconds, longest_seconds
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, while there is one."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    async def compute(self, job: Job) -> Layout:
        """Returns the layout of a job, computed by the process.

        Raises:
            GraphUnavailable: it took too long, could not be computed, or its process ended.
        """
        async with self._lock:
            self._wake()
            answer = await self._asked(job)
            self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._rest)
        if isinstance(answer, Failure):
            raise GraphUnavailable(f"the layout cannot be computed: {answer.reason}")
        return answer

    async def close(self) -> None:
        """End the process and the work that waits for it."""
        self._wake()
        await self.in_progress.cancel()
        async with self._lock:
            await self._end()
        if self._ending is not None:
            await self._ending

    async def _asked(self, job: Job) -> Message:
        """Returns the answer. A call that is interrupted leaves half of one behind, so the process ends."""
        try:
            async with asyncio.timeout(self._longest_seconds):
                return await _exchange(await self._started(), job)
        except TimeoutError as error:
            await self._end()
            raise GraphUnavailable(
                f"the layout took longer than {self._longest_seconds:g} s; ask for fewer memories"
            ) from error
        except (OSError, asyncio.IncompleteReadError) as error:
            code = await self._end()
            raise GraphUnavailable(
                f"the process that computes layouts ended ({code}); asking again starts another"
            ) from error
        except BaseException:
            await self._end()
            raise

    async def _started(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "app.insight.map.process"),
                stdin=PIPE,
                stdout=PIPE,
                env=self._environment(),
            )
            logger.info("the layout process started", pid=self._process.pid)
        return self._process

    def _environment(self) -> dict[str, str]:
        """Returns the process' environment: one thread, which leaves the other cores to requests, and no secrets."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
        return {**inherited, **dict.fromkeys(ONE_THREAD, "1"), **self._kept()}

    def _kept(self) -> dict[str, str]:
        """Names the folder of compiled code; numba finds one itself where the data directory is read-only."""
        folder = self._cache / versions()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            return {}
        return {CACHE: str(folder)} if os.access(folder, os.W_OK) else {}

    def _wake(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _rest(self) -> None:
        """Ends a process that was idle for long enough: its memory is given back."""
        self._ending = asyncio.create_task(self._end_if_idle())

    async def _end_if_idle(self) -> None:
        if not self._lock.locked():
            async with self._lock:
                await self._end()

    async def _end(self) -> int | None:
        """Ends the process, if there is one; returns its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.returncode is None:
            process.kill()
        code = await process.wait()
        logger.info("the layout process ended", pid=process.pid, code=code)
        return code


async def _exchange(process: Process, job: Job) -> Message:
    assert process.stdin is not None, "it was started with pipes"  # noqa: S101
    assert process.stdout is not None, "it was started with pipes"  # noqa: S101
    process.stdin.write(encoded(job))
    await process.stdin.drain()
    (size,) = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    return answer_of(await process.stdout.readexactly(size))
