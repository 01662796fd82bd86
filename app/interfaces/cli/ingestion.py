"""`ingest` and `import`."""

import asyncio
import json
import os
import re
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from priors_client.models import Imported as SentImport

from app.errors import EmbeddingUnavailable, Unavailable
from app.intake.imports.harness import harness_bytes
from app.intake.imports.service import Imported
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.store import LEFT_OUT, FileOutcome, Ingestion, IngestionOptions
from app.interfaces.cli.client import JsonOption, LanguageOption, PlaceOptions, expand_options
from app.interfaces.cli.local import in_workspace, workspace_of
from app.interfaces.cli.places import settings_here
from app.interfaces.cli.progress import Shown
from app.interfaces.cli.running import stopped_by_signals
from app.interfaces.cli.sending import Sending
from app.operations.status import Holdings, Overview
from app.recall.retrieval.recall import Query
from app.settings import Settings
from app.storage.index.service import build_indexes
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

commands = typer.Typer()

LEAST_WORDS, MOST_WORDS = 2, 12
"""Words of a subject that is proposed as a question."""
_MOST_SUBJECTS = 6
"""Most subjects that are asked until one is answered: each takes some 20 ms."""


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
    if not watch and place.is_served():
        raise typer.Exit(int(bool(_send(place, paths, language, dry_run=dry_run, as_json=as_json).failed)))

    async def work(services: Services, target: Workspace) -> bool:
        options = IngestionOptions(language=language, dry_run=dry_run)
        if watch:
            return await _follow(services, target, paths, options, as_json=as_json)
        with Shown("taking in", quiet=as_json) as shown:
            shown_options = replace(options, on_progress=shown.show)
            result = await services.ingestions.ingest(target, paths, shown_options)
        _show(result, as_json=as_json)
        await _embed_slices(services, target, result, quiet=as_json)
        if not dry_run and result.has_changes:
            await build_indexes(services.database.across)
        if not as_json and not dry_run:
            # It may have been made just now.
            filled = await workspace_of(services, target.name)
            held = await Overview(database=services.database).holdings(filled)
            _say_what_is_known(held, await _question(services, filled, held.subjects), target.name)
        await _say_what_waits(services)
        return bool(result.failed)

    if in_workspace(place.workspace, work, makes_store=not dry_run):
        raise typer.Exit(1)


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
    """Sends the files to a service, whose worker embeds the rest and builds the indexes."""
    settings = settings_here()
    with place.client() as client, Shown("sending", quiet=as_json) as shown:
        sending = Sending(
            client=client,
            language=language,
            dry_run=dry_run,
            max_file_bytes=settings.max_file_bytes,
            place=place.name(),
            on_progress=shown.show,
        )
        result, kept = sending.send(paths)
        route = client.admin.status  # a call by this name is one of the database to the tests of the house
        stored = route()
    _show(result, as_json=as_json)
    if kept:
        reason = "this machine has not sent them, or another has changed them since"
        typer.echo(f"kept {len(kept):,} stored files that are not here, such as {kept[0]}: {reason}", err=True)
    if not as_json and not dry_run:
        typer.echo(f"the workspace {stored.workspace} has now: sessions {stored.week.sessions:,}; `priors status`")
    return result


async def _embed_slices(services: Services, target: Workspace, result: Ingestion, *, quiet: bool) -> None:
    """Makes the vectors of large files, slice by slice, unless a worker is running, which does that too."""
    for path, chunks in result.sliced.items() if not quiet else ():
        typer.echo(f"{path}: {chunks:,} pieces are found by their words now, and by meaning slice by slice", err=True)
    if not result.sliced or (await Overview(database=services.database).jobs()).workers:
        return
    total, done, started = sum(result.sliced.values()), 0, time.monotonic()
    with Shown("embedding", quiet=quiet) as shown:

        def show(embedded: int) -> None:
            nonlocal done
            is_first, done = not done, done + embedded
            minutes = (time.monotonic() - started) * (total / done - 1) / 60 if done else 0
            left = f"about {max(1, round(minutes))} min left"
            shown.show(done, max(total, done), left)
            if is_first and not quiet and minutes >= 1:
                typer.echo(f"{', '.join(result.sliced)}: {left}", err=True)

        try:
            workspace = await workspace_of(services, target.name)
            await services.embedder.embed_pending(workspace, on_progress=show)
        except EmbeddingUnavailable as error:
            typer.echo(f"{total - done:,} pieces wait for their vector: {error}", err=True)


async def _follow(
    services: Services, target: Workspace, paths: Sequence[Path], options: IngestionOptions, *, as_json: bool
) -> bool:
    stop = stopped_by_signals()
    said: frozenset[FileOutcome] | None = None
    slices: asyncio.Task[None] | None = None
    async for result in services.ingestions.watch(target, paths, options, stop=stop):
        failed = frozenset(result.failed)
        if result.has_changes:
            await _try_indexes(services)
        if failed != said or result.has_changes:
            _show(result, as_json=as_json, said=said or frozenset())
        said = failed
        if result.sliced and (slices is None or slices.done()):
            # Files that are saved meanwhile do not wait for it.
            slices = asyncio.create_task(_embed_slices(services, target, result, quiet=as_json))
    if slices is not None:
        # What is left stays queued for a worker, or for the next ingestion.
        slices.cancel()
        await asyncio.wait([slices])
    return bool(said)


async def _try_indexes(services: Services) -> None:
    """Builds the indexes that a worker would build later; a watch goes on where that is not possible now."""
    try:
        await build_indexes(services.database.across)
    except Unavailable as error:
        typer.echo(f"indexes are built later: {error}", err=True)


async def _question(services: Services, workspace: Workspace, subjects: Iterable[str]) -> str:
    """Returns the first of the subjects whose history is not empty; "" if there is none among the latest.

    It asks without a trace in the log, because nobody has asked.
    """
    named = dict.fromkeys(" ".join(subject.rpartition(HEADING_SEPARATOR)[2].split()) for subject in subjects)
    for subject in islice(filter(_is_subject, named), _MOST_SUBJECTS):
        found = await services.retrieval.find(workspace, Query(text=subject, k=3), suspects=False, passages=True)
        if any(hit.memory.kind != "cue" for hit in found.hits):
            return subject
    return ""


def _is_subject(text: str) -> bool:
    """Tells whether a text reads as a question: a few words, and no path or code. Pure."""
    return LEAST_WORDS <= len(text.split()) <= MOST_WORDS and not re.search(r'[/\\"`$!=<>{}]', text)


def _say_what_is_known(held: Holdings, question: str, workspace: str) -> None:
    """Prints what the workspace has now, and what to ask it."""
    typer.echo(
        f"the workspace {workspace} has now: sessions {held.sessions}, judged cases {held.cases},"
        f" lessons {held.lessons}"
    )
    place = "" if workspace == Settings().workspace else f" -w {workspace}"
    asked = [f'priors history "{question}"{place}'] if question else []
    asked += [f'priors activate "what you are about to do"{place}'] if held.lessons else []
    asked += [f"priors api GET /api/cases{place}"] if held.cases else []
    for number, command in enumerate(asked):
        typer.echo(f"{'         ' if number else 'ask now: '}{command}")


async def _say_what_waits(services: Services) -> None:
    """Says that cues are not made yet, where no worker is running that would make them."""
    queue = await Overview(database=services.database).jobs()
    if queue.cues and not queue.workers:
        typer.echo(
            f"no cues are made yet of {queue.cues} sessions and decision records, because no worker is running:"
            " `priors worker --once` makes them, and so does `priors run`",
            err=True,
        )


def _show(result: Ingestion, *, as_json: bool, said: Set[FileOutcome] = frozenset()) -> None:
    """Prints an ingestion, without the failures in `said`, which were printed before."""
    if as_json:
        typer.echo(json.dumps(_summary(result), ensure_ascii=False))
    else:
        _say_counts(result)
    for outcome in result.outcomes:
        if outcome.quarantined:
            held = f"{outcome.quarantined} chunks; see `priors api GET /api/memories state=quarantined`"
            typer.echo(f"quarantined: {outcome.path}: {held}", err=True)
    for kind, outcome, text in _remarks(result):
        typer.echo(f"{kind}: {outcome.path}: {text}", err=True)
    for outcome in (outcome for outcome in result.failed if outcome not in said):
        typer.echo(f"failed: {outcome.path}: {outcome.reason}", err=True)
    if result.degraded:
        typer.echo(f"{result.pending} chunks wait for their vector: {result.degraded}", err=True)


def _remarks(result: Ingestion) -> Iterator[tuple[str, FileOutcome, str]]:
    for outcome in result.outcomes:
        yield from (("skipped", outcome, reason) for reason in outcome.skipped)
        yield from (("note", outcome, text) for text in outcome.notes)
        if outcome.status == LEFT_OUT and not outcome.suffix:
            yield "left out", outcome, outcome.reason


def _summary(result: Ingestion) -> dict[str, Any]:
    shown = ("path", "status", "chunks", "stored", "tokens", "noise", "quarantined", "reason", "skipped", "notes")
    return {
        **result.counts,
        "chunks": result.chunks,
        "stored": result.stored,
        "tokens": result.tokens,
        "noise": result.noise,
        "quarantined": result.quarantined,
        "seconds": round(result.seconds, 3),
        "dry_run": result.dry_run,
        "waiting": result.pending,
        "degraded": result.degraded,
        "files": [{name: getattr(outcome, name) for name in shown} for outcome in result.outcomes],
    }


def _say_counts(result: Ingestion) -> None:
    """Prints the files by their status and what came of them; what there is none of is left out."""
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
    typer.echo("; ".join(filter(None, (f"{first}: {files}", figures, f"{result.seconds:.1f} s"))))


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

    async def work(services: Services, target: Workspace) -> list[Imported]:
        return [await services.imports.import_file(target, path) for path in files]

    served = place.is_served()
    found = _send_harness(place, files) if served else in_workspace(place.workspace, work, makes_store=True)
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


def _send_harness(place: PlaceOptions, files: Sequence[Path]) -> list[SentImport]:
    """Sends the files of a harness to a service. All of them are read before the first is sent."""
    contents = [(path, b64encode(harness_bytes(path)).decode()) for path in files]
    with place.client() as client:
        return [client.admin.import_file(name=str(path), content=content) for path, content in contents]
