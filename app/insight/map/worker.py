"""Starts the process that computes layouts when it is needed, and ends it when it is idle.

Measured: with ProcessPoolExecutor or loky the worker process stays behind when the service is killed with -9, and gets
the API key in its environment.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine, Hashable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec
import numpy as np
import structlog

from app.errors import GraphUnavailable
from app.insight.map.drawing import Graph
from app.insight.map.process import (
    CACHE,
    HEADER,
    LEAST_FOR_UMAP,
    Failure,
    Job,
    Layout,
    Message,
    answer_of,
    encode_message,
)
from app.settings import child_environment

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Runs each piece of work at most once at a time. Work goes on when a caller that awaits it is cancelled."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    async def once(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Awaits the work in progress under a key, or else starts `work`."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(lambda done: self._forget_task(key, done))
        return await asyncio.shield(task)

    def _forget_task(self, key: Hashable, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            # All callers may be gone, and asyncio logs an exception that nobody reads.
            task.exception()

    async def cancel(self) -> None:
        """Cancels all work in progress."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_IDLE_SECONDS = 300.0
"""Seconds after the last job when the process ends. Loaded UMAP holds 400 MB, and loading it takes about 15 s."""
_LONGEST_SECONDS = 300.0
"""Seconds that a job may take; 5,000 memories take 20 s on two busy cores."""
Stage = Literal["", "compiling", "starting", "computing"]
"""The work of the process: none, or the first job of a new installation, of a new process, or another job."""
COMPILED = "compiled"
"""File in the folder for compiled code: all that a map needs has been compiled."""
_DIMENSION = 8
"""Dimension of the made-up vectors of a rehearsal."""
_PARTS = ("umap-learn", "pynndescent", "numba")
_LACKING = "the map of memories is an extra: pip install 'priors[map]', and start the service again"

logger = structlog.get_logger()


def _can_draw() -> bool:
    """Tells if UMAP is installed, without importing it."""
    return find_spec("umap") is not None


def versions() -> str:
    """Names the versions that compiled code depends on: numba notices a change in a function, not in what it calls."""
    return "-".join(version(part) for part in _PARTS) if _can_draw() else "none"


def _rehearsals() -> Iterator[Job]:
    """Yields a fit and a projection of made-up memories, which compile the code of all others."""
    vectors = np.random.default_rng(0).normal(size=(2 * LEAST_FOR_UMAP, _DIMENSION)).astype(np.float32)
    sent = np.zeros((len(vectors), _DIMENSION + 2), dtype=">f2")
    sent[:, 2:] = vectors
    for placed in (0, LEAST_FOR_UMAP):
        coordinates = np.full((len(vectors), 2), np.nan, dtype=np.float32)
        coordinates[:placed] = vectors[:placed, :2]
        yield Job(
            shown=len(vectors),
            dimension=_DIMENSION,
            vectors=sent.tobytes(),
            texts=msgspec.json.encode([("english", "")] * len(vectors)),
            coordinates=coordinates.tobytes(),
            fitted=(np.arange(len(vectors)) < placed).tobytes(),
            clusters=[-1] * len(vectors),
        )


class LayoutWorker:
    """A process that computes one job at a time. It starts with the first job."""

    def __init__(
        self, cache: Path, *, idle_seconds: float = _IDLE_SECONDS, longest_seconds: float = _LONGEST_SECONDS
    ) -> None:
        """`cache` is the folder for compiled machine code."""
        self.in_progress: SingleFlight[Graph] = SingleFlight()
        self._cache, self._idle_seconds, self._longest_seconds = cache, idle_seconds, longest_seconds
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._answered = False
        """True if the process has answered a job: UMAP is loaded."""
        self._ending: asyncio.Task[None] | None = None
        """The task that ends the idle process."""

    @property
    def pid(self) -> int | None:
        """The pid of the process; None if there is none."""
        if self._process is None or self._process.returncode is not None:
            return None
        return self._process.pid

    @property
    def stage(self) -> Stage:
        """The work in progress."""
        if not self._lock.locked():
            return ""
        if not self._compiled.exists() and self._keeps_code():
            return "compiling"
        return "computing" if self._answered else "starting"

    async def prepare(self) -> None:
        """Compiles the code that maps need, unless that has been done: the first map then takes seconds.

        If the code cannot be kept, the process of the first map compiles what it needs.
        """
        if self._compiled.exists() or not _can_draw():
            return
        if not self._keeps_code():
            logger.warning(
                "the folder for compiled code is read-only: each map process compiles", folder=str(self._folder)
            )
            return
        try:
            for job in _rehearsals():
                await self.compute(job)
            self._compiled.touch()
        except (GraphUnavailable, OSError) as error:
            logger.warning("the code that computes maps is not compiled ahead", reason=str(error))

    async def compute(self, job: Job) -> Layout:
        """Computes a layout in the process.

        Raises:
            GraphUnavailable: UMAP is not installed, or it took too long, or failed, or the process ended.
        """
        if not _can_draw():
            raise GraphUnavailable(_LACKING)
        async with self._lock:
            self._keep()
            answer = await self._answer(job)
            self._ending = asyncio.create_task(self._end_when_idle())
        if isinstance(answer, Failure):
            raise GraphUnavailable(f"the layout cannot be computed: {answer.reason}")
        return answer

    async def close(self) -> None:
        """Cancels the work in progress and ends the process."""
        await self.in_progress.cancel()
        async with self._lock:
            self._keep()
            await self._end()

    async def _answer(self, job: Job) -> Message:
        """Sends a job and reads the answer; ends the process after an interruption, which may leave half an answer."""
        try:
            async with asyncio.timeout(self._longest_seconds):
                answer = await _exchange(await self._start_process(), job)
                self._answered = True
                return answer
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

    async def _start_process(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._answered = False
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "app.insight.map.process"),
                stdin=PIPE,
                stdout=PIPE,
                env={**child_environment(), **self._cache_environment()},
            )
            logger.info("the layout process started", pid=self._process.pid)
        return self._process

    @property
    def _folder(self) -> Path:
        """The folder for compiled code: numba's own variable names another one."""
        return Path(os.environ.get(CACHE) or self._cache / versions())

    @property
    def _compiled(self) -> Path:
        return self._folder / COMPILED

    def _cache_environment(self) -> dict[str, str]:
        """Returns the variable of the folder for compiled code; if that is read-only, numba chooses its own."""
        return {CACHE: str(self._folder)} if self._keeps_code() else {}

    def _keeps_code(self) -> bool:
        """Makes the folder for compiled code; returns whether code can be kept in it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            return False
        return os.access(self._folder, os.W_OK)

    def _keep(self) -> None:
        """Cancels the planned end of the process. The caller holds the lock, so that no end is in progress."""
        if self._ending is not None:
            self._ending.cancel()

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(self._idle_seconds)
        async with self._lock:
            await self._end()

    async def _end(self) -> int | None:
        """Ends the process if there is one, and returns its exit code."""
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
    process.stdin.write(encode_message(job))
    await process.stdin.drain()
    (size,) = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    return answer_of(await process.stdout.readexactly(size))
