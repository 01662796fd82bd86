"""`memory prune`, `memory quarantine`, `memory export`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
import typer

from app.errors import ConfigurationError
from app.interfaces.cli.options import JsonOption, expand_options, group_in, print_json
from app.interfaces.cli.service import PlaceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from priors_client import Client
    from priors_client.models import MemoryView

commands = typer.Typer()
memories = group_in(
    commands,
    "memory",
    "Prune memories, release what the scan holds back, export ratings.\n\nChanges: memories, as each command says.",
)
_PAGE = 200


@memories.command()
@expand_options
def prune(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list them.")] = False,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Delete the memories that people and scores speak against.

    Changes: takes them out of every answer; they can be restored for PRIORS_TRASH_DAYS.
    """
    with place.client() as client:
        found = [(item.memory, item.reason) for item in client.admin.iter_memories_prune_candidates(limit=_PAGE)]
        for start in range(0, 0 if dry_run else len(found), _PAGE):
            client.admin.delete_memories([memory.id for memory, _ in found[start : start + _PAGE]])
    _list(found, as_json=as_json)
    if not as_json:
        typer.echo(f"{len(found)} memories {'would be deleted' if dry_run else 'deleted'}")


@memories.command()
@expand_options
def quarantine(
    *,
    release: Annotated[list[UUID] | None, typer.Option("--release", metavar="ID", help="Let a memory out.")] = None,
    delete: Annotated[list[UUID] | None, typer.Option("--delete", metavar="ID", help="Delete a memory.")] = None,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """List what the injection scan keeps out of every answer, and what it suspects and keeps out of histories.

    Changes: nothing without --release and --delete.
    """
    with place.client(owner=bool(release)) as client:
        if release:
            client.admin.restore_memories(release)
        if delete:
            client.admin.delete_memories(delete)
        found = [*_held_back(client)]
    _list(found, as_json=as_json)
    if not found and not as_json:
        typer.echo("none")


def _held_back(client: "Client") -> "Iterator[tuple[MemoryView, str]]":
    """Yields the quarantined and the suspect memories, each with the rules that it breaks."""
    lists = (("", client.admin.iter_memories_quarantined()), ("suspect: ", client.admin.iter_memories_suspect()))
    for state, memories_of_state in lists:
        for memory in memories_of_state:
            yield memory, state + ", ".join(sorted({str(item["rule"]) for item in memory.findings or ()}))


def _list(found: "Sequence[tuple[MemoryView, str]]", *, as_json: bool) -> None:
    if as_json:
        print_json([{"id": memory.id, "title": memory.title, "reason": reason} for memory, reason in found])
        return
    for memory, reason in found:
        typer.echo(f"{memory.id}  {memory.title or memory.body[:60]!r}: {reason}")


@memories.command()
@expand_options
def export(
    *,
    form: Annotated[str, typer.Option("--format", help="`ratings`; `dpo` or `kto` for TRL's trainers.")] = "ratings",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; default: standard output.")] = None,
    place: PlaceOptions,
) -> None:
    """Write what people judged as JSON lines.

    Changes nothing.
    """
    wanted: Any = form
    with place.client() as client:
        rows = [*client.admin.export_feedback(format=wanted)]
    try:
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        if output is None:
            sys.stdout.buffer.write(lines)
            sys.stdout.flush()
        else:
            output.write_bytes(lines)
    except BrokenPipeError:
        raise  # the reader has closed the pipe
    except OSError as error:
        raise ConfigurationError(f"{output or 'the output'} cannot be written: {error.strerror or error}") from error
    if not rows and form == "ratings":
        typer.echo("there is nothing to export: no memory has a rating", err=True)
