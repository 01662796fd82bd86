"""Serves one socket by several API processes, which uvicorn's supervisor keeps alive, and by one worker beside them."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing import parent_process
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
import uvicorn
from litestar import Litestar
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from app import tracing
from app.api.arrival import PatientProtocol
from app.api.context import SHARED_METRICS
from app.api.frame import Frame
from app.api.serving.application import create_app, framed, try_model
from app.api.serving.server import (
    OPTIONS,
    OnReady,
    address,
    announce,
    keep_what_is_loaded,
    prepare_maps,
    until_stopped,
    watch_database,
)
from app.errors import ConfigurationError
from app.settings import Settings
from app.wiring import Services

PROTOCOL = f"{PatientProtocol.__module__}:{PatientProtocol.__name__}"
LOOK_SECONDS = 0.05

logger = structlog.get_logger()


class _Supervisor(Multiprocess):
    """uvicorn's supervisor without its signal handling, because a closed terminal is to end all processes.

    It looks at the processes themselves. uvicorn asks each one and waits for the answer: it would notice the end of a
    process only after that wait, and kill a healthy one that a busy machine holds up.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        super().__init__(config, sockets)
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def keep_subprocess_alive(self) -> None:
        """Replaces each process that has ended; ends the others if one cannot start."""
        for place, ended in enumerate(self.processes):
            if ended.process.is_alive():
                continue
            # It closes the pipes of the process.
            ended.kill()
            if ended.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            logger.warning("an API process ended and is replaced", pid=ended.pid, code=ended.exitcode)
            self.processes[place] = Process(self.config, self.sockets)
            self.processes[place].start()


def process_application(settings: Settings) -> Frame:
    """Returns the application of one API process. It serves once the model is loaded, or cannot be loaded."""
    # A process serves one application, and uvicorn hands no value of a setting to its protocol.
    PatientProtocol.read_timeout = settings.read_timeout
    return framed(create_app(settings, before=[_exporting], after=[_as_a_process]))


async def serve_by_processes(
    services: Services,
    listening: socket.socket,
    application: str,
    *,
    stop: asyncio.Event,
    on_ready: OnReady,
) -> None:
    """Serves until `stop` is set or the process is asked to end; `on_ready` gets the address once all processes serve.

    `application` names the function that returns `process_application` in a new process, as `module:function`. This
    process fetches the model before the others start, and runs the worker. The caller closes the services.

    Raises:
        ConfigurationError: an API process cannot start.
    """
    await try_model(services)
    all_serve = asyncio.Event()
    with TemporaryDirectory(prefix="priors-processes-") as folder:
        os.environ[SHARED_METRICS] = folder
        supervisor = _Supervisor(_config(services.settings, application), [listening])
        serving = asyncio.create_task(asyncio.to_thread(supervisor.run))
        try:
            told = await until_stopped(
                services,
                serving,
                _wait_for_all(supervisor, Path(folder), all_serve),
                _announce_all(all_serve, address(listening), on_ready),
                prepare_maps(services.layouts, all_serve),
                stop=stop,
                end=supervisor.should_exit.set,
            )
        finally:
            supervisor.should_exit.set()
            await serving
    if not told:
        raise ConfigurationError("an API process cannot start; its log says why")


def _config(settings: Settings, application: str) -> uvicorn.Config:
    """Returns what uvicorn hands to each process.

    It has names instead of objects: a new process would import the modules of objects, which takes seconds, before it
    handles signals.
    """
    return uvicorn.Config(
        application,
        factory=True,
        workers=settings.api_workers,
        http=PROTOCOL,
        **OPTIONS,
    )


async def _wait_for_all(supervisor: _Supervisor, folder: Path, all_serve: asyncio.Event) -> None:
    """Sets the event once as many processes serve as there are to be."""

    def serving() -> int:
        return sum((folder / str(process.pid)).exists() for process in supervisor.processes)

    while serving() < supervisor.processes_num:  # noqa: ASYNC110 - nothing else tells of a file of another process
        await asyncio.sleep(LOOK_SECONDS)
    all_serve.set()


async def _announce_all(all_serve: asyncio.Event, where: str, on_ready: OnReady) -> None:
    await all_serve.wait()
    await announce(where, on_ready)


@asynccontextmanager
async def _exporting(_app: Litestar) -> AsyncIterator[None]:
    with tracing.exporting():
        yield


@asynccontextmanager
async def _as_a_process(app: Litestar) -> AsyncIterator[None]:
    """Does what the process of a service with one process does beside its requests, except for the worker."""
    _end_with_the_supervisor()
    context = app.state.context
    await context.model_tried.wait()
    keep_what_is_loaded()
    watching = asyncio.create_task(watch_database(context.opened))
    # The supervisor looks for it.
    (Path(os.environ[SHARED_METRICS]) / str(os.getpid())).touch()
    yield
    watching.cancel()


def _end_with_the_supervisor() -> None:
    """Ends this process when the supervisor has been killed: it would keep the port, and nobody else would end it."""
    supervisor = parent_process()
    assert supervisor is not None, "a supervisor starts this process"  # noqa: S101
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_reader(supervisor.sentinel)
        signal.raise_signal(signal.SIGTERM)

    loop.add_reader(supervisor.sentinel, end)
