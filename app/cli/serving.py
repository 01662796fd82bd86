"""The commands `run`, `serve`, `worker` and `prepare-model`."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.running import check_migrated, configure_log, run_until_told, stopped_by_signals, workspace_of
from app.errors import EmbeddingUnavailable, PriorsError
from app.settings import MOST_API_WORKERS, Settings, from_environment

if TYPE_CHECKING:
    from app.api.frame import Frame
    from app.wiring import Services

    Greeting = Callable[[Services, str], Coroutine[Any, Any, None]]
    """Prints what a person needs once the service is ready; gets the address."""

commands = typer.Typer()

APPLICATION = f"{__name__}:application"
EXAMPLE_QUERY = "scout actors results BADs Russia"
PARENT_SECONDS = 1.0

Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=MOST_API_WORKERS, help="API processes on the port; default PRIORS_API_WORKERS."
    ),
]
StopWithParent = Annotated[bool, typer.Option("--stop-with-parent", help="End when the calling process ends.")]


@commands.command()
def run(*, workers: Workers = None, stop_with_parent: StopWithParent = False) -> None:
    """Bring everything up and serve in the foreground.

    Changes: starts the embedded database if none is configured, applies migrations, writes the model files, and
    stores the example reports, sessions and runs if the store is empty, unless PRIORS_EXAMPLES=false.
    """
    _serve(_bring_up, _welcome, workers=workers, stop_with_parent=stop_with_parent)


@commands.command()
def serve(*, workers: Workers = None, stop_with_parent: StopWithParent = False) -> None:
    """Serve HTTP in the foreground, on a database that is migrated.

    Changes: nothing but what requests ask for; runs a background worker unless PRIORS_EMBEDDED_WORKER=false.
    """
    _serve(check_migrated, _greet, workers=workers, stop_with_parent=stop_with_parent)


@commands.command()
def worker(
    *, once: Annotated[bool, typer.Option("--once", help="End when no job is left that could run now.")] = False
) -> None:
    """Run background jobs: embedding, cues, links, statistics, indexes.

    Changes: gives memories their vectors, makes cues of sessions, takes lexical statistics, builds vector indexes.
    """
    from app import tracing  # noqa: PLC0415 - structlog: see `app.cli`

    settings = from_environment()
    configure_log(settings)
    with tracing.exporting():
        run_until_told(_worker(settings, once=once))


@commands.command("prepare-model")
def prepare_model() -> None:
    """Write and load the embedding model once.

    Changes: writes the model files into the data directory.
    """
    from app.models.providers import provider_from  # noqa: PLC0415 - numpy: see `app.cli`

    async def prepare() -> str:
        provider = provider_from(from_environment())
        await provider.start()
        await provider.close()
        return provider.model_id

    typer.echo(f"{run_until_told(prepare())} is ready")


def _serve(
    prepare: "Callable[[Services], Coroutine[Any, Any, None]]",
    greet: "Greeting",
    *,
    workers: int | None,
    stop_with_parent: bool,
) -> None:
    # Litestar and SQLAlchemy: see `app.cli`.
    from app import tracing  # noqa: PLC0415
    from app.api.serving.server import bound_socket  # noqa: PLC0415

    settings = from_environment()
    if workers is not None:
        settings = replace(settings, api_workers=workers)
    configure_log(settings)
    listening = bound_socket(settings)
    try:
        with tracing.exporting():
            run_until_told(_served(settings, listening, prepare, greet, stop_with_parent=stop_with_parent))
    finally:
        listening.close()


async def _served(
    settings: Settings,
    listening: socket.socket,
    prepare: "Callable[[Services], Coroutine[Any, Any, None]]",
    greet: "Greeting",
    *,
    stop_with_parent: bool,
) -> None:
    # Litestar and SQLAlchemy: see `app.cli`.
    from app.api.serving.processes import serve_by_processes  # noqa: PLC0415
    from app.api.serving.server import serve as serve_http  # noqa: PLC0415
    from app.wiring import open_services  # noqa: PLC0415

    parent = os.getppid()
    async with open_services(settings) as services:
        await prepare(services)
        # Before this, a signal interrupts the preparation.
        stop = stopped_by_signals()
        watching = asyncio.create_task(_watch_parent(parent, stop)) if stop_with_parent else None
        serving = serve_http if settings.api_workers == 1 else partial(serve_by_processes, application=APPLICATION)
        await serving(services, listening, stop=stop, on_ready=lambda where: _told(greet(services, where)))
        if watching is not None:
            watching.cancel()


def application() -> "Frame":
    """Returns the application of one of several API processes; their supervisor calls this by its name."""
    from app.api.serving.processes import process_application  # noqa: PLC0415 - Litestar: see `app.cli`

    settings = from_environment()
    configure_log(settings, process=os.getpid())
    return process_application(settings)


async def _told(welcome: Coroutine[Any, Any, None]) -> None:
    """Prints a welcome, or the reason why it is not complete: the service serves all the same."""
    try:
        await welcome
    except Exception as error:  # noqa: BLE001 - nobody else reads it
        reason = error if isinstance(error, PriorsError) else f"{type(error).__name__}: {error}"
        typer.echo(f"the welcome is not complete; the next start stores examples that are missing: {reason}", err=True)


async def _watch_parent(parent: int, stop: asyncio.Event) -> None:
    """Sets `stop` once the parent has ended. A killed parent passes no signal on, but its child gets another parent."""
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of a parent's end
        await asyncio.sleep(PARENT_SECONDS)
    stop.set()


async def _bring_up(services: "Services") -> None:
    from app.db.migrations import state, upgrade  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    if (await state(services.database)).mend:
        typer.echo("applying migrations …")
        await asyncio.to_thread(upgrade, services.database.admin_url)


async def _started(services: "Services") -> None:
    """Loads the model; if that fails, the service still finds memories by words."""
    try:
        await services.provider.start()
    except EmbeddingUnavailable as error:
        typer.echo(f"without embeddings for now: {error}", err=True)


async def _greet(services: "Services", where: str) -> None:
    """Prints the address, an example and its real answer."""
    typer.echo(f"\nPriors serves on {where}\n")
    await _started(services)
    await _show_example(services, where)


async def _welcome(services: "Services", where: str) -> None:
    """Does as `_greet` does. In an empty store it stores the examples first, while the service serves."""
    from app.operations import examples  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    lacking = services.settings.examples and await examples.are_lacking(services.database)
    typer.echo(f"\nPriors serves on {where}\n")
    await _started(services)
    workspace = await workspace_of(services)
    if lacking:
        stored = await examples.begin(services, workspace)
        typer.echo(f"{len(stored.outcomes)} example files, {stored.chunks} memories in {stored.seconds:.1f} s\n")
    await _show_example(services, where)
    if lacking:
        played = await examples.play(services, workspace)
        typer.echo(f"\n{played} example runs; `priors examples --remove` takes the examples away")


async def _show_example(services: "Services", where: str) -> None:
    """Prints an example query and its real answer. The log of recalls is the agents' and has none of it."""
    # SQLAlchemy and numpy: see `app.cli`.
    from app.context.blocks import gathered, section_of  # noqa: PLC0415
    from app.retrieval.recall import Query  # noqa: PLC0415
    from app.retrieval.search import find  # noqa: PLC0415

    query = Query(text=EXAMPLE_QUERY, k=1, agent="director")
    workspace = await workspace_of(services)
    finding = await find(
        services.database, services.provider, workspace=workspace, query=query, suspects=False, passages=True
    )
    markdown = section_of(gathered(finding.hits, k=query.k, budget=300, counter=services.counter))
    typer.echo(f'  priors history "{EXAMPLE_QUERY}" --agent director -k 1')
    typer.echo(
        f"  curl -s {where}/api/history -H 'content-type: application/json'"
        f' -d \'{{"query": "{EXAMPLE_QUERY}", "agent": "director", "k": 1}}\'\n'
    )
    typer.echo(markdown or "Nothing in the store is relevant to that. `priors ingest PATH` stores reports.")


async def _worker(settings: Settings, *, once: bool) -> None:
    # SQLAlchemy and procrastinate: see `app.cli`.
    from app.wiring import open_services  # noqa: PLC0415
    from app.worker.worker import run_worker, work_off  # noqa: PLC0415

    stop = stopped_by_signals()
    async with open_services(settings) as services:
        await check_migrated(services)
        await _started(services)
        if once:
            await work_off(services)
            return
        typer.echo("the worker is running", err=True)
        await run_worker(services, stop)
