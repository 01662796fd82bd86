"""`memory` and `cue`: prunes, releases and exports memories; stores, lists and reviews cues."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
import typer
from priors_client.models import CueInput

from app.errors import ConfigurationError
from app.foundation.text.data import json_lines
from app.interfaces.cli.client import (
    FilesOption,
    JsonOption,
    PlaceOptions,
    bytes_of,
    expand_options,
    group_in,
    print_json,
    print_list,
    without_none,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from priors_client import Client
    from priors_client.models import Cue, MemoryView, ProposalView

commands = typer.Typer()
memories = group_in(
    commands,
    "memory",
    "Prune memories, release what the scan holds back, export ratings.\n\nChanges: memories, as each command says.",
)
_PAGE = 200


@commands.command()
@expand_options
def forget(
    phrase: Annotated[str, typer.Argument(help="A name or some words, found in any case as whole words.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this, the places are only listed.")] = False,
    confirm: Annotated[int | None, typer.Option("--confirm", help="The number of the list, if it is over 100.")] = None,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """List everything that names a subject, and with `--yes` remove it from the workspace for good.

    Changes: destroys the memories that name it, in the trash too, and takes the phrase out of runs, recalls, contexts
    and all else, of all users. It needs a key with `admin`.
    """
    with place.client(owner=True) as client:
        found = client.admin.forget(phrase=phrase, yes=yes, **without_none(confirm=confirm))
    if as_json:
        print_json(found)
        return
    for count, name in [(count, name) for counts in (found.memories, found.rows) for name, count in counts.items()]:
        typer.echo(f"{count:>10,}  {name}")
    for file in found.files:
        typer.echo(f"            from {file}")
    if not found.total:
        typer.echo("nothing names it")
        return
    typer.echo(f"forgot {found.total:,} places" if yes else f"{found.total:,} places; --yes removes them for good")
    for reason in found.stays:
        typer.echo(f"stays: {reason}")


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


cues = group_in(
    commands,
    "cue",
    "Store, list and review cues: what sessions taught.\n\nChanges: the cues of the workspace, as each command says.",
)
_ProposalArgument = Annotated[UUID, typer.Argument(metavar="ID", help="The proposal, as `cue proposals` names it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CueOptions:
    """The options of a cue."""

    kind: Annotated[str, typer.Option("--kind", help="correction, preference, precedent, procedure, …")] = "correction"
    consequence: Annotated[str, typer.Option("--consequence", help="low, medium, high, severe, or 0 to 1.")] = "medium"
    scope: Annotated[str, typer.Option("--scope", help="project or user.")] = "project"
    quote: Annotated[str, typer.Option("--quote", help="The words that say so.")] = ""
    session: Annotated[str, typer.Option("--session", help="The session in which it was said.")] = ""
    file: FilesOption = None

    def fields(self, trigger: str, lesson: str) -> dict[str, Any]:
        """Returns a cue as the service takes it."""
        consequence: float | str = self.consequence
        with suppress(ValueError):
            consequence = float(self.consequence)
        evidence = [{"session": self.session, "quote": self.quote}] if self.session or self.quote else []
        same = {name: getattr(self, name) for name in ("kind", "scope", "quote")}
        cue = {"trigger": trigger, "lesson": lesson, "consequence": consequence, "evidence": evidence, **same}
        return {**cue, "files": self.file or []}


@cues.command()
@expand_options
def add(
    trigger: Annotated[str | None, typer.Argument(help="When the lesson applies.")] = None,
    lesson: Annotated[str | None, typer.Argument(help="What to do then.")] = None,
    *,
    options: _CueOptions,
    from_file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="JSON lines, a cue each, as the service takes it.")
    ] = None,
    place: PlaceOptions,
) -> None:
    """Store a cue, or those of a file. Known text is not stored twice.

    Changes: the cues of the workspace.
    """
    if (trigger is None or lesson is None) == (from_file is None):
        raise typer.BadParameter("give TRIGGER and LESSON, or --from FILE", param_hint="TRIGGER")
    given: Any = options.fields(trigger or "", lesson or "") if from_file is None else _read(from_file)
    with place.client() as client:
        answer = client.admin.store_cues(given)
    for item in answer.rejected:
        typer.echo(f"cue {item.index + 1}: {item.reason}", err=True)
    for cue_id in answer.ids:
        if cue_id is not None:
            typer.echo(str(cue_id))
    if answer.rejected:
        raise typer.Exit(1)


def _read(path: Path) -> list[Any]:
    """Returns the cues of a file of JSON lines."""
    found: list[Any] = []
    for number, cue in json_lines(bytes_of(path).splitlines(), CueInput):
        if isinstance(cue, str):
            raise typer.BadParameter(f"line {number} of {path} is no cue: {cue}", param_hint="--from")
        found.append(cue)
    return found


@cues.command("list")
@expand_options
def list_(
    *,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only this kind; can be given again.")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="active, proposed, retired or superseded.")] = None,
    action_type: Annotated[str, typer.Option("--action-type", help="Only of this action type, or its area.")] = "",
    session: Annotated[str, typer.Option("--session", help="Only with evidence in this session.")] = "",
    text: Annotated[str, typer.Option("--text", help="Only with this in trigger or lesson.")] = "",
    limit: Annotated[int, typer.Option("--limit", help="Cues at most.")] = 50,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the cues of the workspace, the newest first.

    Changes nothing.
    """
    conditions = without_none(kind=kind, state=state, action_type=action_type, session=session, text=text)
    with place.client() as client:
        found = client.admin.cues(**conditions, limit=limit).cues
    print_list(found, _cue_lines, nothing="no cues", as_json=as_json)


@cues.command()
@expand_options
def starter(*, place: PlaceOptions) -> None:
    """Add the first library: general cues of engineering and research, for a store that has none of its own.

    Changes: adds cues with the tag `starter`, once. Own cues on the same act take their places (`cue review`).
    """
    # numpy: see `app.interfaces.cli`.
    from app.recall.cues.cue import starter_cues  # noqa: PLC0415

    names = [name for name in CueInput.__struct_fields__ if name != "evidence"]
    with place.client() as client:
        answer = client.admin.store_cues(
            [CueInput(**without_none(**{name: getattr(cue, name) for name in names})) for cue in starter_cues()]
        )
    typer.echo(f"{answer.stored} cues added, {answer.known} known")


@cues.command()
@expand_options
def review(*, place: PlaceOptions) -> None:
    """Look through the cues of no user: merge near-duplicates, and propose what else should change.

    Changes: near-duplicate cues become one; `cue undo` takes it back. Everything else waits for `cue decide`.
    """
    with place.client() as client:
        answer = client.admin.tend_cues()
    typer.echo(f"{answer.cues} cues looked at")
    _print(answer.proposals)


@cues.command()
@expand_options
def proposals(
    *,
    state: Annotated[str, typer.Option("--state", help="open, accepted, declined or undone; empty for all.")] = "open",
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the changes that were proposed, the newest first.

    Changes nothing.
    """
    wanted: Any = state
    with place.client() as client:
        found = client.admin.proposals(state=wanted)
    if as_json:
        print_json(found)
    else:
        _print(found)


@cues.command()
@expand_options
def decide(
    proposal_id: _ProposalArgument,
    *,
    accept: Annotated[bool, typer.Option("--accept/--decline", help="Change the cues, or leave them.")],
    artifact: Annotated[str, typer.Option(help="The file that holds the convention that a cue becomes.")] = "",
    place: PlaceOptions,
) -> None:
    """Accept or decline a proposal.

    Changes: the cues that it names, with --accept; `cue undo` takes it back.
    """
    with place.client() as client:
        _print([client.admin.decide_proposal(proposal_id, accept=accept, artifact=artifact)])


@cues.command()
@expand_options
def undo(proposal_id: _ProposalArgument, *, place: PlaceOptions) -> None:
    """Take back a decision: an accepted proposal's changes are undone, a declined one is open again.

    Changes: the cues that it names become what they were.
    """
    with place.client() as client:
        _print([client.admin.undo_proposal(proposal_id)])


def _cue_lines(cue: "Cue") -> str:
    counts = f"fired {cue.fired}, heeded {cue.heeded}, ignored {cue.ignored}"
    return f"{cue.id}  {cue.kind} ({cue.state}; {counts})\n  {cue.trigger}\n  → {cue.lesson}"


def _print(found: "Sequence[ProposalView]") -> None:
    if not found:
        typer.echo("no proposals")
    for item in found:
        typer.echo(f"{item.id} {item.change} ({item.state}): {item.reason}")


@cues.command()
@expand_options
def probe(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="Cues at most.")] = 200,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Measure whether the newest cues fire for plans of their triggers, and none for plans of other trades.

    Changes nothing.
    """
    with place.client() as client:
        found = client.admin.run_probes(limit=limit)
    if as_json:
        print_json(found)
        return
    recall, precision = ("-" if value is None else f"{value:.2f}" for value in (found.recall, found.precision))
    typer.echo(f"{found.cues} cues: recall {recall}, precision {precision}, {found.stale} stale")
    typer.echo(f"{found.unrelated_fired:.0%} of {found.unrelated} unrelated plans fire a cue")
    for item in found.weak:
        typer.echo(f"{item.id} {item.trigger}: is missed: say in the trigger what is done to what")
