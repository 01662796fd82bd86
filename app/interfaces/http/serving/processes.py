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
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from app import tracing
from app.errors import ConfigurationError
from app.interfaces.http.context import SHARED_METRICS
from app.interfaces.http.frame import Frame
from app.interfaces.http.serving.application import create_app, in_frame, try_model
from app.interfaces.http.serving.server import (
    OPTIONS,
    OnReady,
    address,
    announce,
    done_before,
    keep_what_is_loaded,
    prepare_maps,
    until_stopped,
    watch_database,
)
from app.settings import Settings
from app.wiring import Services

_LOOK_SECONDS = 0.05

logger = structlog.get_logger()


class _Supervisor(Multiprocess):
    """uvicorn's supervisor without its signal handling, because a closed terminal is to end all processes.

    It looks at the processes themselves. uvicorn asks each one and waits for the answer: it would notice the end of a
    process only after that wait, and kill a healthy one that a busy machine holds up.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], folder: Path) -> None:
        """`folder` is that of SHARED_METRICS, where each process that serves leaves a file."""
        self._folder = folder
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        super().__init__(config, sockets)
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def run(self) -> None:
        """Starts the processes and replaces those that end, until the service is to end; then ends all of them."""
        try:
            super().run()
        except OSError:
            # The system starts no process. Those that run would go on for ever, and this one would wait for them.
            self.terminate_all()
            raise

    def all_serve(self) -> bool:
        """Tells whether as many processes serve as there are to be."""
        return len(self.processes) == self.processes_num and all(map(self._has_served, self.processes))

    def keep_subprocess_alive(self) -> None:
        """Replaces each process that has ended; ends the others if one ended by itself before it served."""
        for place, ended in enumerate(self.processes):
            if ended.process.is_alive():
                continue
            # It closes the pipes of the process.
            ended.kill()
            # A signal has a negative exit code: whoever was killed may serve at the next start.
            if (ended.exitcode or 0) > 0 and not self._has_served(ended):
                self.should_exit.set()
                return
            logger.warning("an API process ended and is replaced", pid=ended.pid, code=ended.exitcode)
            fresh = Process(self.config, self.sockets)
            fresh.start()
            self.processes[place] = fresh

    def _has_served(self, process: Process) -> bool:
        return (self._folder / str(process.pid)).exists()


def process_application(settings: Settings) -> Frame:
    """Returns the application of one API process. It serves once the model is loaded, or cannot be loaded."""
    return in_frame(create_app(settings, before=[_exporting], after=[_as_a_process]))


async def serve_by_processes(
    services: Services,
    listening: socket.socket,
    application: str,
    *,
    stop: asyncio.Event,
    on_ready: OnReady,
) -> None:
    """Serves until `stop` is set; `on_ready` gets the address once all processes serve.

    `application` names the function that returns `process_application` in a new process, as `module:function`. This
    process fetches the model before the others start, and runs the worker. The caller closes the services.

    Raises:
        ConfigurationError: an API process cannot start.
    """
    if not await done_before(stop, try_model(services)):
        return
    all_serve = asyncio.Event()
    with TemporaryDirectory(prefix="priors-processes-") as folder:
        os.environ[SHARED_METRICS] = folder
        supervisor = _Supervisor(_config(services.settings, application), [listening], Path(folder))
        serving = asyncio.create_task(asyncio.to_thread(supervisor.run))
        try:
            told = await until_stopped(
                services,
                serving,
                _announce_all(supervisor, all_serve, address(listening), on_ready),
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
        **OPTIONS,
    )


async def _announce_all(supervisor: _Supervisor, all_serve: asyncio.Event, where: str, on_ready: OnReady) -> None:
    """Sets the event once as many processes serve as there are to be, and passes the address on."""
    while not supervisor.all_serve():  # noqa: ASYNC110 - nothing else tells of a file of another process
        await asyncio.sleep(_LOOK_SECONDS)
    all_serve.set()
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
