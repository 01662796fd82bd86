"""The event loop of a command, its signals, and its log."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from structlog import processors

from app.settings import Settings

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

T = TypeVar("T")
_TERMINATED = 128 + signal.SIGTERM
_QUIET = ("procrastinate", "watchfiles", "httpx", "httpcore", "openai", "alembic", "fastembed", "mcp", "uvicorn.access")
"""Libraries of which only warnings and errors are logged."""
_OF_RECALLS = frozenset({"recall", "slow recall"})
"""Events of single recalls; some of them are warnings."""


class Loop:
    """An event loop that runs one coroutine after another. A SIGTERM ends it as Ctrl-C does."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=_fastest_loop())

    def close(self) -> None:
        """Closes the loop."""
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` to its end. Its resources are closed also where a SIGTERM ends it."""

        async def cancellable() -> T:
            task = asyncio.current_task()
            if task is not None:
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
            return await work

        try:
            return self._runner.run(cancellable())
        except asyncio.CancelledError:
            raise SystemExit(_TERMINATED) from None


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` as `asyncio.run` does. A SIGTERM ends it as Ctrl-C does, and its resources are closed."""
    with closing(Loop()) as loop:
        return loop.run(work)


def stopped_by_signals() -> asyncio.Event:
    """Returns an event that a SIGINT or SIGTERM sets."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not every system has it
    except ImportError:
        return None
    return uvloop.new_event_loop


def _drop_recalls(_logger: object, _method: str, line: "EventDict") -> "EventDict":
    if line.get("event") in _OF_RECALLS:
        raise structlog.DropEvent
    return line


def configure_log(settings: Settings, *, quiet: bool = False, process: bool = False) -> None:
    """Sends this process' log, that of its libraries included, to standard error in the configured form.

    It is readable on a terminal and JSON elsewhere. A terminal shows no lines of single recalls, unless those below
    warnings are asked for, too. `quiet` leaves out everything below a warning, because a command's
    answer is its output. With `process`, each line has the number of the process.
    """
    level = "warning" if quiet and settings.log_level != "error" else settings.log_level
    as_json = not sys.stderr.isatty()
    recalls = [_drop_recalls] if not as_json and level == "warning" else []
    shared: list[Processor] = [
        *recalls,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        processors.TimeStamper(fmt="iso", utc=True),
        *([processors.CallsiteParameterAdder({processors.CallsiteParameter.PROCESS})] if process else []),
        processors.format_exc_info if as_json else structlog.stdlib.PositionalArgumentsFormatter(),
    ]
    renderer = processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # It writes a line at once: those of several API processes must not mix, even with PYTHONUNBUFFERED.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
