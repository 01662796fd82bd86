"""The options, the log, the services and the workspace that commands share."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from app.errors import ConfigurationError, InvalidInput
from app.settings import Settings, from_environment

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

    from app.cli.remote import Remote
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

T = TypeVar("T")
ELSEWHERE: "ContextVar[Remote | None]" = ContextVar("ELSEWHERE", default=None)
"""The service that a command is to ask; None if it works on this machine's store."""
TERMINATED = 128 + signal.SIGTERM

QUIET = ("procrastinate", "watchfiles", "httpx", "httpcore", "openai", "alembic", "fastembed", "mcp", "uvicorn.access")
"""Libraries of which only warnings and errors are logged."""

UserOption = Annotated[
    str | None,
    typer.Option("--user", help="The user whom it is for: this user's memories and nobody's are seen."),
]
WorkspaceOption = Annotated[str | None, typer.Option("--workspace", "-w", help="Workspace; default PRIORS_WORKSPACE.")]
LanguageOption = Annotated[
    str | None, typer.Option("--language", help="Text search language: russian, de, …; default: the workspace's.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH…", help="Folders or files.")]
Moment = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="In UTC.")]


def in_utc(moment: datetime | None) -> datetime | None:
    """Returns a moment from the command line, which has no time zone, as UTC."""
    return None if moment is None else moment.replace(tzinfo=UTC)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the fields of a dataclass as options, in place of the parameter that takes the dataclass."""
    groups: dict[str, Any] = {name: kind for name, kind in get_type_hints(command).items() if is_dataclass(kind)}

    @wraps(command)
    def called(**given: object) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{item.name: given.pop(item.name) for item in fields(kind)})
        command(**given)

    options: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        options += signature(groups[name]).parameters.values() if name in groups else [parameter]
    called.__signature__ = Signature([item.replace(kind=Parameter.KEYWORD_ONLY) for item in options])  # type: ignore[attr-defined]  # typer reads it
    called.__annotations__ = {item.name: item.annotation for item in options}
    return called


def print_json(found: object, view: type) -> None:
    """Prints what was found as JSON, as the HTTP interface answers it by this view."""
    import msgspec  # noqa: PLC0415 - see `app.cli`

    from app.api.schemas import converted  # noqa: PLC0415 - the same

    typer.echo(msgspec.json.encode(converted(found, view)).decode())


def run_until_told(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` as `asyncio.run` does. A SIGTERM ends it as Ctrl-C does, and its resources are closed."""

    async def cancellable() -> T:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        try:
            return runner.run(cancellable())
        except asyncio.CancelledError:
            raise SystemExit(TERMINATED) from None


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


def with_services(work: "Callable[[Services], Awaitable[T]]") -> T:
    """Runs `work` with the services of this environment, on a database that is migrated.

    Raises:
        PriorsError: a setting, the database or the work itself.
    """
    if ELSEWHERE.get() is not None:
        raise InvalidInput("--url", "is not for this command, which works on this machine's store")
    settings = from_environment()
    configure_log(settings, quiet=True)

    async def opened() -> T:
        # SQLAlchemy: see `app.cli`.
        from app.db.migrations import current, upgrade  # noqa: PLC0415
        from app.wiring import open_services  # noqa: PLC0415

        async with open_services(settings) as services:
            if not settings.database_url and await current(services.database) is None:
                await asyncio.to_thread(upgrade, services.database.admin_url)
            await check_migrated(services)
            return await work(services)

    return run_until_told(opened())


def in_workspace(name: str | None, work: "Callable[[Services, Workspace], Awaitable[T]]") -> T:
    """Runs `work` as `with_services` does, in the workspace of this name, or else in the configured default.

    It embeds by the model of the stored vectors, as the service does.
    """

    async def resolved(services: "Services") -> T:
        from app.index.reembed import follow  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        await follow(services.provider, services.database)
        return await work(services, await workspace_of(services, name))

    return with_services(resolved)


async def workspace_of(services: "Services", name: str | None = None) -> "Workspace":
    """Returns the workspace of this name, or the configured default if the name is None.

    Raises:
        InvalidInput: a workspace may not have this name.
    """
    from app.workspaces.resolve import resolve  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    settings = services.settings
    return await resolve(services.database, name or settings.workspace, language=settings.language)


async def check_migrated(services: "Services") -> None:
    """Raises ConfigurationError if the database does not have the schema of this version."""
    from app.db.migrations import state  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    if mend := (await state(services.database)).mend:
        raise ConfigurationError(mend)


def _naming(process: int) -> "Processor":
    """Returns what adds the number of the process to each line of the log."""

    def named(_logger: object, _method: str, line: "EventDict") -> "EventDict":
        line["process"] = process
        return line

    return named


def configure_log(settings: Settings, *, quiet: bool = False, process: int | None = None) -> None:
    """Sends this process' log, that of its libraries included, to standard error in the configured form.

    It is readable on a terminal and JSON elsewhere. `quiet` leaves out everything below a warning, because a command's
    answer is its output. Each line has the number of the process, if one is given.
    """
    import structlog  # noqa: PLC0415 - it brings rich: see `app.cli`

    level = "warning" if quiet and settings.log_level != "error" else settings.log_level
    as_json = settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([_naming(process)] if process else []),
        structlog.processors.format_exc_info if as_json else structlog.stdlib.PositionalArgumentsFormatter(),
    ]
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
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
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
