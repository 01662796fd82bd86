"""Serves one socket by one application and one worker, and stops both cleanly."""

import asyncio
import gc
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import structlog
import uvicorn

from app.errors import ConfigurationError, DatabaseUnavailable, PriorsError, StorageFull
from app.interfaces.http.serving.application import create_app, in_frame
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
        result = on_ready(where)
        if asyncio.iscoroutine(result):
            await result

    helpers = (on_start(), watch_database(services))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    working = asyncio.create_task(keep_working(services, stop))
    others = [asyncio.create_task(helper) for helper in helpers]
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        stop.set()
        # Neither is cancelled: requests have their time, and the worker hands its jobs back by itself.
        await asyncio.wait({serving, working})
        await _cancel(*others, stopping)
        # A process that goes on, as that of the tests does, would keep whatever refers to itself.
        gc.unfreeze()
    serving.result()


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks and waits until they have ended; their results and exceptions are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _keep_what_is_loaded() -> None:
    """Leaves the objects that exist now, 180,000 of them of loaded modules, out of collections of garbage.

    A collection took 0.1 s to walk over them, and a call that brings a thousand memories causes one.
    """
    gc.collect()
    gc.freeze()


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
