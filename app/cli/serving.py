"""The commands `run`, `serve`, `worker` and `prepare-model`."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.running import check_migrated, configure_log, run_until_told, stopped_by_signals, workspace_of
from app.errors import EmbeddingUnavailable
from app.settings import Settings, from_environment

if TYPE_CHECKING:
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()

EXAMPLES = Path(__file__).parents[2] / "examples" / "reports"
EXAMPLE_QUERY = "scout actors results BADs Russia"
PARENT_SECONDS = 1.0

StopWithParent = Annotated[bool, typer.Option("--stop-with-parent", help="End when the calling process ends.")]


@commands.command()
def run(*, stop_with_parent: StopWithParent = False) -> None:
    """Bring everything up and serve in the foreground.

    Changes: starts the embedded database if none is configured, applies migrations, writes the model files, and
    takes in the example reports if the store is empty.
    """
    _serve(_bring_up, stop_with_parent=stop_with_parent)


@commands.command()
def serve(*, stop_with_parent: StopWithParent = False) -> None:
    """Serve HTTP in the foreground, on a database that is migrated.

    Changes: nothing but what requests ask for; runs a background worker unless PRIORS_EMBEDDED_WORKER=false.
    """
    _serve(check_migrated, stop_with_parent=stop_with_parent)


@commands.command()
def worker() -> None:
    """Run background jobs: embedding, statistics, indexes.

    Changes: gives memories their vectors, takes lexical statistics, builds vector indexes.
    """
    run_until_told(_worker())


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
    *,
    stop_with_parent: bool,
) -> None:
    from app.api.server import bound_socket  # noqa: PLC0415 - Litestar and SQLAlchemy: see `app.cli`

    settings = from_environment()
    configure_log(settings)
    listening = bound_socket(settings)
    try:
        run_until_told(_served(settings, listening, prepare, stop_with_parent=stop_with_parent))
    finally:
        listening.close()


async def _served(
    settings: Settings,
    listening: socket.socket,
    prepare: "Callable[[Services], Coroutine[Any, Any, None]]",
    *,
    stop_with_parent: bool,
) -> None:
    # Litestar and SQLAlchemy: see `app.cli`.
    from app.api.server import serve as serve_http  # noqa: PLC0415
    from app.wiring import open_services  # noqa: PLC0415

    parent = os.getppid()
    stop = asyncio.Event()
    async with open_services(settings) as services:
        await prepare(services)
        watching = asyncio.create_task(_watch_parent(parent, stop)) if stop_with_parent else None
        await serve_http(services, listening, stop=stop, on_ready=lambda where: _greet(services, where))
        if watching is not None:
            watching.cancel()


async def _watch_parent(parent: int, stop: asyncio.Event) -> None:
    """Sets `stop` once the parent has ended. A killed parent passes no signal on, but its child gets another parent."""
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of a parent's end
        await asyncio.sleep(PARENT_SECONDS)
    stop.set()


async def _bring_up(services: "Services") -> None:
    # SQLAlchemy: see `app.cli`.
    from app.db.migrations import state, upgrade  # noqa: PLC0415
    from app.memories.browse import list_memories  # noqa: PLC0415

    if (await state(services.database)).mend:
        typer.echo("applying migrations …")
        await asyncio.to_thread(upgrade, services.database.admin_url)
    workspace = await workspace_of(services)
    if EXAMPLES.is_dir() and not await list_memories(services.database, workspace=workspace, limit=1):
        await _take_in_examples(services, workspace)


async def _take_in_examples(services: "Services", workspace: "Workspace") -> None:
    from app.intake.reports.ingest import ingest  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    typer.echo("preparing the embedding model and taking in the example reports …")
    await _started(services)
    result = await ingest(services.intake(workspace), [EXAMPLES])
    typer.echo(f"{len(result.outcomes)} files, {result.chunks} chunks in {result.seconds:.1f} s")


async def _started(services: "Services") -> None:
    """Loads the model; if that fails, the service still finds memories by words."""
    try:
        await services.provider.start()
    except EmbeddingUnavailable as error:
        typer.echo(f"without embeddings for now: {error}", err=True)


async def _greet(services: "Services", where: str) -> None:
    """Prints the address, an example and its real answer."""
    # SQLAlchemy and numpy: see `app.cli`.
    from app.context.history import history  # noqa: PLC0415
    from app.retrieval.recall import Query  # noqa: PLC0415

    typer.echo(f"\nPriors serves on {where}\n")
    await _started(services)
    result = await history(
        services.database,
        services.provider,
        services.counter,
        workspace=await workspace_of(services),
        query=Query(text=EXAMPLE_QUERY, k=1, agent="director", purpose="history"),
        budget_tokens=300,
    )
    typer.echo(f'  priors history "{EXAMPLE_QUERY}" --agent director -k 1')
    typer.echo(
        f"  curl -s {where}/api/history -H 'content-type: application/json'"
        f' -d \'{{"query": "{EXAMPLE_QUERY}", "agent": "director", "k": 1}}\'\n'
    )
    typer.echo(result.markdown or "Nothing in the store is relevant to that.")


async def _worker() -> None:
    # SQLAlchemy and procrastinate: see `app.cli`.
    from app.wiring import open_services  # noqa: PLC0415
    from app.worker.worker import run_worker  # noqa: PLC0415

    settings = from_environment()
    configure_log(settings)
    stop = stopped_by_signals()
    async with open_services(settings) as services:
        await check_migrated(services)
        await _started(services)
        typer.echo("the worker is running", err=True)
        await run_worker(services, stop)
