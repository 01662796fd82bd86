"""The commands `ingest` and `backfill`."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.running import (
    JsonOption,
    LanguageOption,
    PathsArgument,
    WorkspaceOption,
    in_workspace,
    stopped_by_signals,
    with_services,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set
    from pathlib import Path

    from app.intake.reports.outcome import FileOutcome, Ingestion, Intake
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()


@commands.command()
def ingest(
    paths: PathsArgument,
    *,
    workspace: WorkspaceOption = None,
    language: LanguageOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and store nothing.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and take in every file that is saved.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take in every report (.md, .json) and every log of a session (.jsonl, and .md and .json too) below the paths.

    Changes: stores new and changed chunks and turns, retires the chunks of deleted reports. A file that cannot be
    taken in is named with its reason, stops nothing, and makes the exit code 1.
    """
    if watch and dry_run:
        raise typer.BadParameter("--watch stores what is saved; leave out --dry-run", param_hint="--dry-run")

    async def work(services: "Services", target: "Workspace") -> bool:
        intake = replace(services.intake(target, language), dry_run=dry_run)
        if watch:
            return await _follow(services, intake, paths, as_json=as_json)
        result = await _once(intake, paths, quiet=as_json)
        if not dry_run and _changed(result):
            await _build_indexes(services)
        _show(result, as_json=as_json)
        await _say_what_waits(services)
        return bool(result.failed)

    if in_workspace(workspace, work):
        raise typer.Exit(1)


async def _once(intake: "Intake", paths: "Sequence[Path]", *, quiet: bool) -> "Ingestion":
    # SQLAlchemy and rich: see `app.cli`.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    # SQLAlchemy: see `app.cli`.
    from app.intake.reports.ingest import ingest as take_in  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (
        TextColumn("taking in"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[path]}", markup=False),
    )
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as progress:
        task = progress.add_task("files", total=None, path="")

        def show(done: int, total: int, path: str) -> None:
            progress.update(task, completed=done, total=total, path=path)

        return await take_in(replace(intake, on_progress=show), paths)


async def _follow(services: "Services", intake: "Intake", paths: "Sequence[Path]", *, as_json: bool) -> bool:
    from app.intake.reports.ingest import watch as follow  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    stop = stopped_by_signals()
    said: frozenset[FileOutcome] | None = None
    async for result in follow(intake, paths, stop=stop):
        failed = frozenset(result.failed)
        changed = _changed(result)
        if changed:
            await _build_indexes(services)
        if failed != said or changed:
            _show(result, as_json=as_json, said=said or frozenset())
        said = failed
    return bool(said)


def _changed(result: "Ingestion") -> bool:
    return any(outcome.status not in {"unchanged", "failed"} for outcome in result.outcomes)


async def _build_indexes(services: "Services") -> None:
    """Builds the indexes that a worker would build later, so that the store is complete when the command ends."""
    from app.operations import maintenance  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    await maintenance.build_indexes(services.database)


async def _say_what_waits(services: "Services") -> None:
    """Says that cues are not made yet, where no worker is running that would make them."""
    from app.operations.status import job_queue  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    queue = await job_queue(services.database)
    if queue.cues and not queue.workers:
        typer.echo(
            f"no cues are made yet of {queue.cues} sessions and decision records, because no worker is running:"
            " `priors worker --once` makes them, and so does `priors run`",
            err=True,
        )


def _show(result: "Ingestion", *, as_json: bool, said: "Set[FileOutcome]" = frozenset()) -> None:
    """Prints an ingestion, without the failures in `said`, which were printed before."""
    if as_json:
        typer.echo(json.dumps(_summary(result), ensure_ascii=False))
    else:
        _table(result)
    for outcome in result.outcomes:
        if outcome.quarantined:
            typer.echo(f"quarantined: {outcome.path}: {outcome.quarantined} chunks; see `priors quarantine`", err=True)
    for kind, outcome, text in _remarks(result):
        typer.echo(f"{kind}: {outcome.path}: {text}", err=True)
    for outcome in (outcome for outcome in result.failed if outcome not in said):
        typer.echo(f"failed: {outcome.path}: {outcome.reason}", err=True)
    if result.degraded:
        typer.echo(f"{result.pending} chunks wait for their vector: {result.degraded}", err=True)


def _remarks(result: "Ingestion") -> "Iterator[tuple[str, FileOutcome, str]]":
    for outcome in result.outcomes:
        yield from (("skipped", outcome, reason) for reason in outcome.skipped)
        yield from (("note", outcome, text) for text in outcome.notes)


def _summary(result: "Ingestion") -> dict[str, Any]:
    shown = ("path", "status", "chunks", "stored", "tokens", "left_out", "quarantined", "reason", "skipped", "notes")
    return {
        **result.counts,
        "chunks": result.chunks,
        "stored": result.stored,
        "tokens": result.tokens,
        "left_out": result.left_out,
        "quarantined": result.quarantined,
        "seconds": round(result.seconds, 3),
        "dry_run": result.dry_run,
        "waiting": result.pending,
        "degraded": result.degraded,
        "files": [{name: getattr(outcome, name) for name in shown} for outcome in result.outcomes],
    }


def _table(result: "Ingestion") -> None:
    # rich: see `app.cli`.
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("would be done" if result.dry_run else "files", "", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    figures = {
        **result.counts,
        "chunks": result.chunks,
        "chunks stored": result.stored,
        "tokens stored": result.tokens,
        "chunks of machine noise left out": result.left_out,
        "chunks quarantined": result.quarantined,
        "seconds": f"{result.seconds:.1f}",
    }
    for name, value in figures.items():
        table.add_row(name, str(value))
    Console().print(table)


@commands.command()
def backfill() -> None:
    """Embed every memory that waits for a vector, and take statistics.

    Changes: stores vectors and lexical statistics, builds vector indexes.
    """

    async def work(services: "Services") -> int:
        # SQLAlchemy: see `app.cli`.
        from app.index.reembed import follow  # noqa: PLC0415
        from app.operations import maintenance  # noqa: PLC0415

        await follow(services.provider, services.database)
        return await maintenance.backfill(
            services.database, services.provider, on_progress=lambda count: typer.echo(f"embedded {count}", err=True)
        )

    typer.echo(f"{with_services(work)} memories embedded")
