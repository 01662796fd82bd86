"""`run`, `serve` and `worker`."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Coroutine
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app import tracing
from app.errors import ConfigurationError, EmbeddingUnavailable, PriorsError
from app.foundation.db.migrations import state, upgrade
from app.interfaces.cli import failures, unread
from app.interfaces.cli.local import check_migrated, workspace_of
from app.interfaces.cli.places import check_store, remove_record, settings_here, write_record
from app.interfaces.cli.projects import known_projects
from app.interfaces.cli.running import configure_log, run_to_end, stopped_by_signals
from app.interfaces.cli.starting import keep_locked
from app.interfaces.http.admission import Frame
from app.interfaces.http.serving.application import create_app, in_frame
from app.interfaces.http.serving.server import bound_socket
from app.interfaces.http.serving.server import serve as serve_http
from app.interfaces.worker.worker import run_worker, work_off
from app.operations import examples
from app.recall.cues.activate import PlanAsked
from app.settings import Settings, check_exposure
from app.wiring import Services, open_services

commands = typer.Typer()

_EXAMPLE_PLAN = "drop a column of the accounts table"
"""A plan that the example sessions speak to, and that anybody understands."""
_ANSWER_LINES = 4
"""Most lines of the answer to it."""
LOG_LEVEL = "PRIORS_LOG_LEVEL"
_PARENT_SECONDS = 1.0

_StopWithParent = Annotated[bool, typer.Option("--stop-with-parent", help="End when the calling process ends.")]


@commands.command()
def run(*, stop_with_parent: _StopWithParent = False) -> None:
    """Bring everything up and serve in the foreground.

    Changes: starts the embedded database if none is configured, applies migrations, writes the model files, and
    stores the example reports, sessions and runs if the store is empty, unless PRIORS_EXAMPLES=false.
    """
    _serve(prepares=True, stop_with_parent=stop_with_parent)


@commands.command()
def serve(
    *,
    stop_with_parent: _StopWithParent = False,
    private: Annotated[bool, typer.Option("--private", hidden=True, help="Tell no other process of it.")] = False,
) -> None:
    """Serve HTTP in the foreground, on a database that is migrated.

    Changes: nothing but what requests ask for; runs a background worker unless PRIORS_EMBEDDED_WORKER=false.
    """
    _serve(prepares=False, stop_with_parent=stop_with_parent, private=private)


@commands.command()
def worker(
    *, once: Annotated[bool, typer.Option("--once", help="End when no job is left that could run now.")] = False
) -> None:
    """Run background jobs: embedding, cues, links, statistics, indexes.

    Changes: gives memories their vectors, makes cues of sessions, takes lexical statistics, builds vector indexes.
    """
    settings = settings_here()
    configure_log(settings)
    with tracing.exporting():
        run_to_end(_worker(settings, once=once))


def _serve(*, prepares: bool, stop_with_parent: bool, private: bool = False) -> None:
    settings = settings_here()
    if sys.stderr.isatty() and LOG_LEVEL not in os.environ:
        settings = replace(settings, log_level="warning")
    configure_log(settings)
    locked = None if private else keep_locked(settings.data_dir)
    try:
        with closing(bound_socket(settings)) as listening, tracing.exporting():
            served = _serve_on(
                settings, listening, prepares=prepares, stop_with_parent=stop_with_parent, private=private
            )
            run_to_end(served)
    except PriorsError as error:
        # Whoever started it in the background does not wait for its end. Beside a service that runs, nothing failed.
        if locked is not None:
            with suppress(OSError):
                failures.note("service", _folder_of(settings), str(error), data_dir=_folder_of(settings))
        raise
    finally:
        if locked is not None:
            locked.close()


def _folder_of(settings: Settings) -> str:
    return str(settings.data_dir.absolute())


def _read_unread(settings: Settings) -> "subprocess.Popen[bytes] | None":
    """Starts a process that stores the logs of this service's projects which nobody stored; None if it has none."""
    folder = _folder_of(settings)
    try:
        is_needed = any(project.data_dir == folder for project in known_projects().values())
    except ConfigurationError as error:
        typer.echo(f"logs of sessions are not looked for: {error}", err=True)
        return None
    if not is_needed:
        return None
    return subprocess.Popen([sys.executable, "-P", "-m", unread.__name__, folder], stdin=subprocess.DEVNULL)  # noqa: S603 - this program itself


async def _serve_on(
    settings: Settings, listening: socket.socket, *, prepares: bool, stop_with_parent: bool, private: bool
) -> None:
    parent = os.getppid()
    async with open_services(settings) as services:
        await (_bring_up if prepares else check_migrated)(services)
        # Before this, a signal interrupts the preparation.
        stop = stopped_by_signals()
        watching = asyncio.create_task(_watch_parent(parent, stop)) if stop_with_parent else None

        reading = list[subprocess.Popen[bytes]]()

        async def announce(where: str) -> None:
            if private:
                await _load_model(services)
                return
            write_record(settings, where)
            failures.clear("service", _folder_of(settings), data_dir=_folder_of(settings))
            if (process := _read_unread(settings)) is not None:
                reading.append(process)
            await _print_welcome(_welcome(services, where, prepares=prepares))

        try:
            await serve_http(services, listening, stop=stop, on_ready=announce)
        finally:
            remove_record(settings)
            for process in reading:
                process.terminate()
            if watching is not None:
                watching.cancel()


def application() -> Frame:
    """Returns the application for a server of your own, as `uvicorn --factory` calls it; it runs no worker."""
    settings = settings_here()
    check_exposure(settings)
    configure_log(settings, process=True)
    return in_frame(create_app(settings))


async def _print_welcome(welcome: Coroutine[Any, Any, None]) -> None:
    """Prints a welcome, or the reason why it is not complete: the service serves all the same."""
    try:
        await welcome
    except Exception as error:  # noqa: BLE001 - nobody else reads it
        reason = error if isinstance(error, PriorsError) else f"{type(error).__name__}: {error}"
        typer.echo(f"the welcome is not complete; the next start stores examples that are missing: {reason}", err=True)


async def _watch_parent(parent: int, stop: asyncio.Event) -> None:
    """Sets `stop` once the parent has ended. A killed parent passes no signal on, but its child gets another parent."""
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of a parent's end
        await asyncio.sleep(_PARENT_SECONDS)
    stop.set()


async def _bring_up(services: Services) -> None:
    found = await state(services.database)
    if found.mend:
        if found.revision is not None:
            typer.echo("applying migrations …")
        await asyncio.to_thread(upgrade, services.database.admin_url)


async def _load_model(services: Services) -> None:
    """Loads the model; if that fails, the service still finds memories by words."""
    try:
        await services.provider.start()
    except EmbeddingUnavailable as error:
        typer.echo(f"without embeddings for now: {error}", err=True)


async def _welcome(services: Services, where: str, *, prepares: bool) -> None:
    """Prints the address, a real answer and what to try next.

    If it `prepares` an empty store, it stores the examples first, while the service serves.
    """
    shown = examples.Examples(services=services)
    lacking = prepares and services.settings.examples and await shown.are_lacking()
    with examples.storing(services.settings.data_dir) if lacking else nullcontext():
        _say_where(services.settings, where)
        await _load_model(services)
        if lacking:
            typer.echo("It stores example reports and sessions first, which takes some seconds …")
            await shown.begin(await workspace_of(services))
        await _show_example(services)
        _say_next(where)
        if lacking:
            await shown.play(await workspace_of(services))


def _say_where(settings: Settings, where: str) -> None:
    parts = "an external database" if settings.database_url else "its own database"
    worker = ", a background worker" if settings.embedded_worker else ""
    typer.echo(f"Priors serves on {where}, with {parts}{worker} and the web panel. Ctrl-C stops it.")


async def _show_example(services: Services) -> None:
    """Prints a plan and its real answer, if the store has one. A trial is not logged: the log is the agents'."""
    asked = PlanAsked(plan=_EXAMPLE_PLAN, trial=True)
    told = await services.activations.activate(await workspace_of(services), asked)
    lines = [line for line in told.markdown.splitlines()[1:] if line]
    if lines:
        typer.echo(f"An agent that plans to “{_EXAMPLE_PLAN}” is told what earlier sessions taught:")
        typer.echo("\n".join(f"  {line}" for line in lines[:_ANSWER_LINES]))


def _say_next(where: str) -> None:
    """Prints commands to try, with the full path of the one that runs."""
    command = Path(sys.executable).with_name("priors")
    # `connect` looks for a service there by itself.
    url = "" if where == f"http://{Settings().host}:{Settings().port}" else f" --url {where}"
    typer.echo(f"\nTry next, in another terminal in {Path.cwd()}:")
    typer.echo(f'  {command} activate "{_EXAMPLE_PLAN}"')
    typer.echo(f"  {command} ingest FOLDER            (your reports and logs of sessions)")
    typer.echo("and in the folder of a project of yours:")
    typer.echo(f"  {command} connect claude-code{url}      (or codex, cursor, gemini-cli, zed)")


async def _worker(settings: Settings, *, once: bool) -> None:
    check_store(settings)
    stop = stopped_by_signals()
    async with open_services(settings) as services:
        await check_migrated(services)
        await _load_model(services)
        if once:
            await work_off(services)
            return
        typer.echo("the worker is running", err=True)
        await run_worker(services, stop)
