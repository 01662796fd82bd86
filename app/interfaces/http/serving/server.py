"""Serves one socket, by one application and one worker or by several processes, and stops them cleanly."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structlog
import uvicorn
from litestar import Litestar
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess, Process

from app import tracing
from app.errors import ConfigurationError, DatabaseUnavailable, PriorsError, StorageFull
from app.insight.map.worker import LayoutWorker
from app.interfaces.http.admission import Frame
from app.interfaces.http.context import SHARED_METRICS
from app.interfaces.http.serving.application import create_app, in_frame, try_model
from app.interfaces.worker.worker import keep_working
from app.settings import Settings, check_exposure
from app.wiring import Services

_GRACE_SECONDS = 5
"""Time that requests have to finish after a stop."""
WATCH_SECONDS = 2.0
_BACKLOG = 512
OPTIONS: Mapping[str, Any] = {
    "log_config": None,
    "access_log": False,
    "server_header": False,
    "timeout_graceful_shutdown": _GRACE_SECONDS,
}
"""Options of uvicorn."""

_OnReady = Callable[[str], object]
"""Gets the address once the service is ready; it may return a coroutine."""

logger = structlog.get_logger()


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling, because a stop is a normal end here."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signal handlers unchanged."""
        yield


def bound_socket(settings: Settings) -> socket.socket:
    """Returns the bound socket to serve on, so that an occupied port is found before anything is started.

    Raises:
        ConfigurationError: the address cannot be used, or needs an API key.
    """
    check_exposure(settings)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"cannot serve on {settings.host}:{settings.port}: {error.strerror or error}; set PRIORS_PORT to another"
        ) from error
    return listening


def address(listening: socket.socket) -> str:
    """Returns the address at which the socket can be reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    services: Services,
    listening: socket.socket,
    *,
    stop: asyncio.Event,
    on_ready: _OnReady = lambda _: None,
) -> None:
    """Serves until `stop` is set; `on_ready` gets the address.

    The caller closes the services.
    """
    app = create_app(services.settings, services=services)
    model_tried, where = app.state.context.model_tried, address(listening)
    server = _Server(uvicorn.Config(in_frame(app), **OPTIONS))

    async def on_start() -> None:
        while not server.started:  # noqa: ASYNC110 - uvicorn has a flag, no event
            await asyncio.sleep(0.01)
        await model_tried.wait()
        _keep_what_is_loaded()
        await announce(where, on_ready)

    def end() -> None:
        server.should_exit = True

    serving = asyncio.create_task(server.serve(sockets=[listening]))
    maps = _prepare_maps(services.layouts, model_tried)
    try:
        await until_stopped(services, serving, on_start(), maps, stop=stop, end=end)
    finally:
        # A process that goes on, as that of the tests does, would keep whatever refers to itself.
        gc.unfreeze()


async def until_stopped(
    services: Services,
    serving: asyncio.Task[None],
    *helpers: Coroutine[Any, Any, None],
    stop: asyncio.Event,
    end: Callable[[], None],
) -> bool:
    """Runs a worker and helpers beside `serving`, until `stop` is set and `end` ends it, or until it ends by itself.

    Returns True if `stop` was set. None of them runs on, not even if `serving` fails; its exception is raised.
    """
    stopping = asyncio.create_task(stop.wait())
    working = asyncio.create_task(keep_working(services, stop))
    others = [asyncio.create_task(helper) for helper in (*helpers, watch_database(services))]
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        told = stop.is_set()
    finally:
        end()
        stop.set()
        # Neither is cancelled: requests have their time, and the worker hands its jobs back by itself.
        await asyncio.wait({serving, working})
        await _cancel(*others, stopping)
    serving.result()
    return told


async def _done_before(stop: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Does `work`, unless `stop` is set before it ends: it is cancelled then, and this returns False."""
    tasks = [asyncio.create_task(stop.wait()), asyncio.create_task(work)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancel(*tasks)
    return not stop.is_set()


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks and waits until they have ended; their results and exceptions are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def announce(where: str, on_ready: _OnReady) -> None:
    """Passes the address on."""
    result = on_ready(where)
    if asyncio.iscoroutine(result):
        await result


def _keep_what_is_loaded() -> None:
    """Leaves the objects that exist now, 180,000 of them of loaded modules, out of collections of garbage.

    A collection took 0.1 s to walk over them, and a call that brings a thousand memories causes one.
    """
    gc.collect()
    gc.freeze()


async def _prepare_maps(layouts: LayoutWorker, model_tried: asyncio.Event) -> None:
    """Compiles what maps need once the model is loaded, so that the two do not slow each other down."""
    await model_tried.wait()
    await layouts.prepare()


async def watch_database(services: Services) -> None:
    """Starts the embedded Postgres again if it dies. Priors does not manage any other database."""
    while services.revive is not None:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            # A database whose disk takes no changes answers: a new start would not help.
            with suppress(StorageFull):
                await services.database.check()
        except DatabaseUnavailable as error:
            logger.warning("the embedded database is gone and starts again", reason=str(error))
            try:
                await services.revive()
                services.database.pool.trouble = ""
            except PriorsError as failure:
                services.database.pool.trouble = str(failure)
                logger.error("the embedded database does not start", reason=str(failure))  # noqa: TRY400 - the reason is enough


_LOOK_SECONDS = 0.05


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
    on_ready: _OnReady,
) -> None:
    """Serves until `stop` is set; `on_ready` gets the address once all processes serve.

    `application` names the function that returns `process_application` in a new process, as `module:function`. This
    process fetches the model before the others start, and runs the worker. The caller closes the services.

    Raises:
        ConfigurationError: an API process cannot start.
    """
    if not await _done_before(stop, try_model(services)):
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
                _prepare_maps(services.layouts, all_serve),
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


async def _announce_all(supervisor: _Supervisor, all_serve: asyncio.Event, where: str, on_ready: _OnReady) -> None:
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
    _keep_what_is_loaded()
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
