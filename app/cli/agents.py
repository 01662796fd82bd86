"""`mcp`: the door for agents over standard input and output."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.running import WorkspaceOption, configure_log, run_until_told, with_services
from app.errors import ConfigurationError
from app.settings import Settings, from_environment

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from app.wiring import Services

commands = typer.Typer()

LINE_BYTES = 64_000_000
"""The longest message: as long as the longest body of a request over HTTP."""
UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        help="Ask the service at this address, such as http://127.0.0.1:8000, with the key PRIORS_API_KEY; without it,"
        " the database is opened here.",
    ),
]


@commands.command()
def mcp(*, url: UrlOption = "", workspace: WorkspaceOption = None) -> None:
    """Serve agents over standard input and output, as MCP clients start it.

    Changes: what the agents' calls ask for; a first call makes the embedded database. Without --url, it also runs
    background jobs, unless PRIORS_EMBEDDED_WORKER=false.
    """
    if url:
        settings = from_environment()
        configure_log(settings, quiet=True)
        run_until_told(relay(url.rstrip("/"), settings, workspace))
        return

    async def work(services: "Services") -> None:
        # Litestar, SQLAlchemy and the SDK: see `app.cli`.
        from litestar.datastructures import State  # noqa: PLC0415

        # The same.
        from app.api.context import Call, Context, Metrics  # noqa: PLC0415
        from app.api.serving.application import in_the_background  # noqa: PLC0415
        from app.mcp.server import server_for  # noqa: PLC0415
        from app.worker.worker import keep_working  # noqa: PLC0415

        context = Context(services=services, metrics=Metrics())
        call = Call(State({"context": context, "settings": services.settings}), workspace, user="", shared=True)
        stop = asyncio.Event()
        async with in_the_background(context):
            working = asyncio.create_task(keep_working(services, stop))
            try:
                await _serve(server_for(lambda _: call))
            finally:
                stop.set()
                await working

    with_services(work)


async def _serve(server: "Server[Any]") -> None:
    """Serves until standard input ends. Whatever else this process prints goes to standard error meanwhile."""
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - see `app.cli`

    lines: Any = _lines() if _is_pipe() else None
    async with stdio_server(stdin=lines) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _is_pipe() -> bool:
    """Tells whether standard input can be waited for: a file or `/dev/null` can only be read."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _lines() -> AsyncIterator[str]:
    """Yields the lines of standard input. The SDK's own thread that reads it could not be stopped by a signal."""
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield line.decode(errors="replace")


async def relay(url: str, settings: Settings, workspace: str | None) -> None:
    """Serves with the answers of the service at a URL.

    Raises:
        ConfigurationError: there is no service, or it refuses the key.
    """
    # httpx2 and the SDK: see `app.cli`.
    import httpx2  # noqa: PLC0415
    from mcp.client import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    from app.mcp.relay import relay_of  # noqa: PLC0415 - the same

    headers = {"x-workspace": workspace or settings.workspace}
    if settings.api_key:
        headers["authorization"] = f"Bearer {settings.api_key}"
    async with httpx2.AsyncClient(headers=headers, timeout=settings.read_timeout) as http:
        try:
            answer = await http.get(f"{url}/api/status")
        except httpx2.HTTPError as error:
            raise ConfigurationError(f"the service at {url} cannot be asked: {error}") from error
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            raise ConfigurationError(f"the service at {url} asks for its API key: set PRIORS_API_KEY to it")
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            await _serve(relay_of(client))
