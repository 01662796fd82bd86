"""`cue add`, `list`, `starter`, `review`, `proposals`, `decide`, `undo`, `probe`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from priors_client.models import CueInput

from app.foundation.text.data import json_lines
from app.interfaces.cli.options import (
    FilesOption,
    JsonOption,
    bytes_of,
    expand_options,
    group_in,
    print_json,
    print_list,
    without_none,
)
from app.interfaces.cli.service import PlaceOptions

if TYPE_CHECKING:
    from priors_client.models import Cue, ProposalView

commands = typer.Typer()
cues = group_in(
    commands,
    "cue",
    "Store, list and review cues: what sessions taught.\n\nChanges: the cues of the workspace, as each command says.",
)
ProposalArgument = Annotated[UUID, typer.Argument(metavar="ID", help="The proposal, as `cue proposals` names it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CueOptions:
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
    options: CueOptions,
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
    proposal_id: ProposalArgument,
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
def undo(proposal_id: ProposalArgument, *, place: PlaceOptions) -> None:
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
