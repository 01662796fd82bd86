"""`ingest` and `import`."""

import json
import os
from base64 import b64encode
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Annotated, Any

import typer

from app.errors import Unavailable
from app.intake.imports.harness import harness_bytes
from app.intake.reports.store import LEFT_OUT, FileOutcome, Ingestion, IngestionOptions
from app.interfaces.cli.client import JsonOption, LanguageOption, PlaceOptions, expand_options
from app.interfaces.cli.local import in_workspace
from app.interfaces.cli.places import settings_here
from app.interfaces.cli.progress import progress
from app.interfaces.cli.running import stopped_by_signals
from app.interfaces.cli.sending import Sending
from app.storage.index.service import build_indexes
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

commands = typer.Typer()


@commands.command()
@expand_options
def ingest(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Folders or files.")],
    *,
    place: PlaceOptions,
    language: LanguageOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and store nothing.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and take in every file that is saved.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take in every report and every log of a session below the paths: .md, .markdown, .txt, .log, .json, .jsonl.

    Changes: stores new and changed chunks and turns, retires the chunks of deleted reports. A file that cannot be
    taken in is named with its reason, stops nothing, and makes the exit code 1. Files of other suffixes are counted.
    """
    if watch:
        _check_watch(place, dry_run=dry_run)
        options = IngestionOptions(language=language)

        async def work(services: Services, target: Workspace) -> bool:
            return await _follow(services, target, paths, options, as_json=as_json)

        failed = in_workspace(place.workspace, work, makes_store=True)
    else:
        failed = bool(_send(place, paths, language, dry_run=dry_run, as_json=as_json).failed)
    raise typer.Exit(int(failed))


def _check_watch(place: PlaceOptions, *, dry_run: bool) -> None:
    """Raises BadParameter if a watch is to store nothing, or is to store by a service that is named."""
    option = "--dry-run" if dry_run else "--url" if place.url else ""
    if option:
        raise typer.BadParameter(
            f"--watch stores what is saved, in the store here; leave out {option}", param_hint=option
        )
    if url := settings_here().url:
        advice = "unset PRIORS_URL" if os.environ.get("PRIORS_URL") else "name a store by PRIORS_DATA_DIR"
        reason = f"stores what is saved, in the store here, and not by the service at {url}; {advice}"
        raise typer.BadParameter(f"--watch {reason}, or leave out --watch", param_hint="--watch")


def _send(
    place: PlaceOptions, paths: Sequence[Path], language: str | None, *, dry_run: bool, as_json: bool
) -> Ingestion:
    """Sends the files to the service, or to the application in this process; prints what came of them."""
    with place.client(makes_store=not dry_run) as client, progress("taking in", quiet=as_json) as show:
        sending = Sending(
            client=client,
            language=language,
            dry_run=dry_run,
            max_file_bytes=settings_here().max_file_bytes,
            place=place.name(),
            on_progress=show,
        )
        result, kept = sending.send(paths)
        route = client.admin.status  # a call by this name is one of the database to the tests of the house
        stored = route()
    _show(result, as_json=as_json)
    if kept:
        reason = "this machine has not sent them, or another has changed them since"
        typer.echo(f"kept {len(kept):,} stored files that are not here, such as {kept[0]}: {reason}", err=True)
    week = stored.week
    if not as_json and not dry_run:
        has = f"the workspace {stored.workspace} has now: sessions {week.sessions:,}"
        typer.echo(f"{has}; ask it by `priors history`, and see `priors status`")
    if stored.waiting or week.unread:
        pending = f"vectors of {stored.waiting:,} texts, lessons of {week.unread:,} sessions"
        typer.echo(f"still to be made: {pending}, by a worker: `priors run`, or `priors worker --once`", err=True)
    return result


async def _follow(
    services: Services, target: Workspace, paths: Sequence[Path], options: IngestionOptions, *, as_json: bool
) -> bool:
    said: frozenset[FileOutcome] | None = None
    async for result in services.ingestions.watch(target, paths, options, stop=stopped_by_signals()):
        failed = frozenset(result.failed)
        if result.has_changes:
            await _try_indexes(services)
        if failed != said or result.has_changes:
            _show(result, as_json=as_json, said=said or frozenset())
        said = failed
    return bool(said)


async def _try_indexes(services: Services) -> None:
    """Builds the indexes that a worker would build later; a watch goes on where that is not possible now."""
    try:
        await build_indexes(services.database.across)
    except Unavailable as error:
        typer.echo(f"indexes are built later: {error}", err=True)


def _show(result: Ingestion, *, as_json: bool, said: Set[FileOutcome] = frozenset()) -> None:
    """Prints an ingestion, without the failures in `said`, which were printed before."""
    typer.echo(json.dumps(_summary(result), ensure_ascii=False) if as_json else _counts(result))
    for outcome in result.outcomes:
        for kind, text in _remarks(outcome):
            typer.echo(f"{kind}: {outcome.path}: {text}", err=True)
    for outcome in result.failed:
        if outcome not in said:
            typer.echo(f"failed: {outcome.path}: {outcome.reason}", err=True)
    for path, chunks in result.sliced.items():
        typer.echo(f"{path}: {chunks:,} pieces are found by their words now, and by meaning slice by slice", err=True)
    if result.degraded:
        typer.echo(f"{result.pending} chunks wait for their vector: {result.degraded}", err=True)


def _remarks(outcome: FileOutcome) -> Iterator[tuple[str, str]]:
    if outcome.quarantined:
        yield "quarantined", f"{outcome.quarantined} chunks; see `priors api GET /api/memories state=quarantined`"
    yield from (("skipped", reason) for reason in outcome.skipped)
    yield from (("note", text) for text in outcome.notes)
    if outcome.status == LEFT_OUT and not outcome.suffix:
        yield "left out", outcome.reason


def _summary(result: Ingestion) -> dict[str, Any]:
    shown = ("path", "status", "chunks", "stored", "tokens", "noise", "quarantined", "reason", "skipped", "notes")
    figures = ("chunks", "stored", "tokens", "noise", "quarantined", "dry_run", "degraded")
    return {
        **result.counts,
        **{name: getattr(result, name) for name in figures},
        "seconds": round(result.seconds, 3),
        "waiting": result.pending,
        "files": [{name: getattr(outcome, name) for name in shown} for outcome in result.outcomes],
    }


def _counts(result: Ingestion) -> str:
    """Returns the files by their status and what came of them; what there is none of is left out."""
    counts = {status.replace("_", " "): count for status, count in result.counts.items() if count}
    files = ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "none"
    if result.suffixes:
        # It is the last status.
        files += f" ({', '.join(f'{suffix} {count:,}' for suffix, count in sorted(result.suffixes.items()))})"
    parts = {
        "chunks or turns": result.chunks,
        "of them new": result.stored,
        "tokens stored": result.tokens,
        "chunks left out as machine noise": result.noise,
        "held back by the injection scan": result.quarantined,
    }
    figures = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
    first = "would be done, files" if result.dry_run else "files"
    return "; ".join(filter(None, (f"{first}: {files}", figures, f"{result.seconds:.1f} s")))


@commands.command("import")
@expand_options
def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="runs.jsonl, observations.jsonl, memory.db.")],
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Take in what an earlier harness stored: its runs, its observations, its feedback.

    Changes: stores what is new of them; running it again changes nothing. A bad line is named, left out, and makes the
    exit code 1.
    """
    contents = [(path, b64encode(harness_bytes(path)).decode()) for path in files]
    with place.client(makes_store=True) as client:
        found = [client.admin.import_file(name=str(path), content=content) for path, content in contents]
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
