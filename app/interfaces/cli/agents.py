"""`mcp` and `hook`: the door for agents over standard input and output, and the answers to their client's events."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from priors_client import PriorsError as ClientError

from app.errors import ConfigurationError
from app.interfaces.cli import hooks
from app.interfaces.cli.client import (
    AgentOption,
    PlaceOptions,
    WorkspaceOption,
    client_of,
    expand_options,
)
from app.interfaces.cli.places import (
    HEALTH_SECONDS,
    check_store,
    needed_url,
    running_url,
    settings_here,
    workspace_here,
)
from app.interfaces.cli.relay import pass_on, refusal
from app.settings import Settings

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from app.wiring import Services

commands = typer.Typer()

OPENS = (
    "priors mcp: no service runs on this data directory, so this process opens the database and the model itself, which"
    " takes some seconds; beside `priors run` it answers at once"
)
_LINE_BYTES = 64_000_000
"""The longest message: as long as the longest body of a request over HTTP."""
UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        help="Ask the service at this address, such as http://127.0.0.1:8000, with the key PRIORS_API_KEY; default"
        " PRIORS_URL, else the one that runs on the data directory; without any, the database is opened here.",
    ),
]


@commands.command()
@expand_options
def hook(
    *,
    place: PlaceOptions,
    agent: AgentOption = None,
    no_lessons: Annotated[bool, typer.Option(hooks.NO_LESSONS, help="Ask no agent that stops for lessons.")] = False,
) -> None:
    """Answer an event of the hooks of a coding program, which comes on standard input, by the running service.

    Changes: the end of a session stores its transcript, and so do a compaction and an agent's stop, which also notes
    that the session was asked for lessons; a prompt, and an act that a lesson is told about, change nothing but the
    logs. What cannot be stored is noted, and named when the next session starts. The exit code
    is 0 whatever happens, so that no work is ever held up; the reason is on standard error.
    """
    given = {"--url": place.url, "--key": place.key, "--workspace": place.workspace or "", "--agent": agent or ""}
    hooks.answer(_place(given)._replace(lessons=not no_lessons))


def _place(options: Mapping[str, str]) -> hooks.Destination:
    """Returns the place that options name; one without a value is left out."""
    found = hooks.place_of([word for pair in options.items() if pair[1] for word in pair])
    assert found is not None, "these are its options"  # noqa: S101
    return found


@commands.command()
def mcp(*, url: UrlOption = "", workspace: WorkspaceOption = None) -> None:
    """Serve agents over standard input and output, as MCP clients start it.

    Changes: what the agents' calls ask for. Where no service runs, it also runs background jobs, unless
    PRIORS_EMBEDDED_WORKER=false.
    """
    settings, workspace = settings_here(), workspace or workspace_here() or None
    if where := url or settings.url or _url_here(settings) or needed_url(settings):
        place = _place({"--url": where, "--workspace": workspace or ""})
        if reason := refusal(place):
            raise ConfigurationError(reason)
        pass_on(lambda: place)
        return
    check_store(settings)
    typer.echo(OPENS, err=True)

    async def work(services: "Services") -> None:
        # Litestar, SQLAlchemy and the SDK: see `app.interfaces.cli`.
        from litestar.datastructures import State  # noqa: PLC0415

        # The same.
        from app.interfaces.http.context import ApplicationContext, Call, Metrics  # noqa: PLC0415
        from app.interfaces.http.serving.application import in_the_background  # noqa: PLC0415
        from app.interfaces.mcp.server import server_for  # noqa: PLC0415
        from app.interfaces.worker.worker import keep_working  # noqa: PLC0415

        context = ApplicationContext(services=services, metrics=Metrics())
        call = Call(State({"context": context, "settings": services.settings}), workspace, user="", shared=True)
        stop = asyncio.Event()
        async with in_the_background(context):
            working = asyncio.create_task(keep_working(services, stop))
            try:
                await _serve(server_for(lambda _: call))
            finally:
                stop.set()
                await working

    from app.interfaces.cli.local import with_services  # noqa: PLC0415 - SQLAlchemy: see `app.interfaces.cli`

    with_services(work)


def _url_here(settings: Settings) -> str:
    """Returns the URL of the service that runs on the data directory, if it answers with this key; else ""."""
    if not (where := running_url(settings)):
        return ""
    try:
        with client_of(where, settings.api_key, "", HEALTH_SECONDS, retries=0) as client:
            return where if client.admin.status().version else ""
    except ClientError:
        return ""


async def _serve(server: "Server[Any]") -> None:
    """Serves until standard input ends. Whatever else this process prints goes to standard error meanwhile."""
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - see `app.interfaces.cli`

    lines: Any = _lines() if _is_pipe() else None
    async with stdio_server(stdin=lines) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _is_pipe() -> bool:
    """Tells whether standard input can be waited for: a file or `/dev/null` can only be read."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _lines() -> AsyncIterator[str]:
    """Yields the lines of standard input. The SDK's own thread that reads it could not be stopped by a signal."""
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield line.decode(errors="replace")
