"""The commands `import`, `export`, `prune`, `quarantine` and `reembed`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from app.cli.running import JsonOption, WorkspaceOption, in_workspace, with_services

if TYPE_CHECKING:
    from app.intake.imports.importing import Imported
    from app.memories.memory import Memory
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()

RATINGS, DPO = "ratings", "dpo"


@commands.command("import")
def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="runs.jsonl, observations.jsonl, memory.db.")],
    *,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in what an earlier harness stored: its runs, its observations, its feedback.

    Changes: stores what is new of them; running it again changes nothing. A bad line is named, left out, and makes the
    exit code 1.
    """

    async def work(services: "Services", target: "Workspace") -> list["Imported"]:
        from app.intake.imports.importing import import_file  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return [
            await import_file(
                services.database,
                services.counter,
                workspace=target,
                path=path,
                mask=services.settings.mask_secrets,
            )
            for path in files
        ]

    found = in_workspace(workspace, work)
    for item in found:
        if as_json:
            shown = {name: getattr(item, name) for name in ("path", "runs", "stored", "known", "ratings", "failed")}
            typer.echo(json.dumps(shown, ensure_ascii=False))
        else:
            typer.echo(
                f"{item.path}: {item.runs} runs, {item.stored} observations stored, {item.known} known,"
                f" {item.ratings} ratings, {len(item.failed)} left out"
            )
        for reason in item.failed:
            typer.echo(f"left out: {item.path}: {reason}", err=True)
    if any(item.failed for item in found):
        raise typer.Exit(1)


@commands.command()
def export(
    what: Annotated[str, typer.Argument(help="`feedback`.")],
    *,
    form: Annotated[str, typer.Option("--format", help=f"`{RATINGS}`, or `{DPO}` for preference pairs.")] = RATINGS,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; default: standard output.")] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Write what people judged as JSON lines.

    Changes nothing.
    """
    if what != "feedback" or form not in {RATINGS, DPO}:
        raise typer.BadParameter(f"`feedback` is what can be exported, as {RATINGS} or {DPO}")

    async def work(services: "Services", target: "Workspace") -> tuple[list[Any], str]:
        from app.insight.exports import exported_ratings, preference_pairs  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        if form == DPO:
            evaluator = services.settings.evaluator
            found = await preference_pairs(services.database, workspace=target, evaluator=evaluator)
            return [*found.pairs], found.note
        rows = [row async for row in exported_ratings(services.database, workspace=target)]
        return rows, "" if rows else "nobody has rated anything yet"

    rows, note = in_workspace(workspace, work)
    _write(rows, output)
    if note:
        typer.echo(note, err=True)


def _write(rows: list[Any], output: Path | None) -> None:
    import msgspec  # noqa: PLC0415 - see `app.cli`

    lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    try:
        if output is None:
            sys.stdout.buffer.write(lines)
            sys.stdout.flush()
        else:
            output.write_bytes(lines)
    except BrokenPipeError:
        raise  # the reader has closed the pipe
    except OSError as error:
        typer.echo(f"{output or 'the output'} cannot be written: {error.strerror or error}", err=True)
        raise typer.Exit(2) from error


@commands.command()
def prune(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list them.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the memories that people and scores speak against.

    Changes: takes them out of every answer; they can be restored for PRIORS_TRASH_DAYS.
    """

    async def work(services: "Services", target: "Workspace") -> list[tuple["Memory", str]]:
        # SQLAlchemy: see `app.cli`.
        from app.memories.lifecycle import MOST_AT_ONCE, delete_memories, prune_candidates  # noqa: PLC0415

        found = await prune_candidates(services.database, workspace=target, limit=MOST_AT_ONCE)
        if found and not dry_run:
            ids = [item.memory.memory_id for item in found]
            await delete_memories(services.database, workspace=target, ids=ids)
        return [(item.memory, item.reason) for item in found]

    found = in_workspace(workspace, work)
    _list(found, as_json=as_json)
    if not as_json:
        typer.echo(f"{len(found)} memories {'would be deleted' if dry_run else 'deleted'}")


@commands.command()
def quarantine(
    *,
    release: Annotated[list[UUID] | None, typer.Option("--release", metavar="ID", help="Let a memory out.")] = None,
    delete: Annotated[list[UUID] | None, typer.Option("--delete", metavar="ID", help="Delete a memory.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what the injection scan keeps out of every answer, and what it suspects and keeps out of histories.

    Changes: nothing without --release and --delete.
    """

    async def work(services: "Services", target: "Workspace") -> list[tuple["Memory", str]]:
        from app.memories import lifecycle  # noqa: PLC0415 - SQLAlchemy: see `app.cli`
        from app.memories.memory import QUARANTINED  # noqa: PLC0415 - as above

        if release:
            await lifecycle.restore_memories(services.database, workspace=target, ids=release)
        if delete:
            await lifecycle.delete_memories(services.database, workspace=target, ids=delete)
        held = await lifecycle.retired(services.database, workspace=target, reason=QUARANTINED)
        suspects = await lifecycle.suspects(services.database, workspace=target)
        return [(memory, _rules(memory)) for memory in held] + [
            (memory, f"suspect: {_rules(memory)}") for memory in suspects
        ]

    found = in_workspace(workspace, work)
    _list(found, as_json=as_json)
    if not found and not as_json:
        typer.echo("none")


def _rules(memory: "Memory") -> str:
    return ", ".join(sorted({str(item["rule"]) for item in memory.findings or ()}))


def _list(found: list[tuple["Memory", str]], *, as_json: bool) -> None:
    if as_json:
        rows = [{"id": str(memory.memory_id), "title": memory.title, "reason": reason} for memory, reason in found]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for memory, reason in found:
        typer.echo(f"{memory.memory_id}  {memory.title or memory.body[:60]!r}: {reason}")


@commands.command()
def reembed(
    *,
    model: Annotated[str | None, typer.Option("--model", help="Its name; default PRIORS_EMBEDDING_MODEL.")] = None,
    dimension: Annotated[int | None, typer.Option("--dimension", help="Numbers a vector; default: as set.")] = None,
) -> None:
    """Move the store to another embedding model while the old one serves.

    Changes: gives every memory a vector of the new model, switches to it, drops the old vectors. Killed half-way,
    running it again goes on.
    """

    async def work(services: "Services") -> int:
        # SQLAlchemy and numpy: see `app.cli`.
        from app.models.providers import provider_from, with_model  # noqa: PLC0415
        from app.operations import maintenance  # noqa: PLC0415

        settings = services.settings
        provider = provider_from(
            with_model(settings, model or settings.embedding_model, dimension or settings.embedding_dimension)
        )
        try:
            return await maintenance.reembed(
                services.database,
                provider,
                on_progress=lambda done, total: typer.echo(f"{done:,} of {total:,} embedded", err=True),
            )
        finally:
            await provider.close()

    done = with_services(work)
    typer.echo(f"{done:,} memories embedded; set PRIORS_EMBEDDING_MODEL to the new model")
