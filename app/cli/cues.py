"""`cue add`, `cue list`, `activate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.remote import answered, viewed
from app.cli.running import JsonOption, Moment, UserOption, WorkspaceOption, expanded, in_utc, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from priors_client import Client

    from app.cues.activate import Activation
    from app.cues.cue import Cue, NewCue
    from app.cues.keep import Kept
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

FilesOption = Annotated[
    list[str] | None, typer.Option("--file", help="A file that it touches or is about; can be given again.")
]

commands = typer.Typer()
cue_commands = typer.Typer(
    help="Store and list cues: what sessions taught.\n\nChanges: the cues of the workspace, with `add`.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CueOptions:
    """The options of a cue."""

    kind: Annotated[str, typer.Option("--kind", help="correction, preference, precedent, procedure, …")] = "correction"
    consequence: Annotated[str, typer.Option("--consequence", help="low, medium, high, severe, or 0 to 1.")] = "medium"
    scope: Annotated[str, typer.Option("--scope", help="project or user.")] = "project"
    quote: Annotated[str, typer.Option("--quote", help="The words that say so.")] = ""
    session: Annotated[str, typer.Option("--session", help="The session in which it was said.")] = ""
    file: Annotated[list[str] | None, typer.Option("--file", help="A file that it is about; can be given again.")] = (
        None
    )


@cue_commands.command("add")
@expanded
def add(
    trigger: Annotated[str | None, typer.Argument(help="When the lesson applies.")] = None,
    lesson: Annotated[str | None, typer.Argument(help="What to do then.")] = None,
    *,
    options: CueOptions,
    from_file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="JSON lines, each as `POST /api/cues` takes it.")
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Store a cue, or those of a file. Known text is not stored twice.

    Changes: the cues of the workspace.
    """
    if (trigger is None or lesson is None) == (from_file is None):
        raise typer.BadParameter("give TRIGGER and LESSON, or --from FILE", param_hint="TRIGGER")
    cues = _one(trigger or "", lesson or "", options) if from_file is None else _read(from_file)

    async def work(services: "Services", target: "Workspace") -> "Kept":
        # SQLAlchemy: see `app.cli`.
        from app.cues.keep import add_cues  # noqa: PLC0415
        from app.memories.remember import Door  # noqa: PLC0415

        mask = services.settings.mask_secrets
        return await add_cues(Door(services.database, services.counter, target, mask, services.provider), cues)

    def there(client: "Client") -> "Kept":
        from app.api.cues import KeptView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.store_cues(_inputs(cues)), KeptView)

    kept = answered(workspace, work, there)
    for item in kept.rejected:
        typer.echo(f"cue {item.index + 1}: {item.reason}", err=True)
    for cue_id in kept.ids:
        if cue_id is not None:
            typer.echo(str(cue_id))
    if kept.rejected:
        raise typer.Exit(1)


def _one(trigger: str, lesson: str, options: CueOptions) -> "Sequence[NewCue]":
    from app.cues.cue import CONSEQUENCES, Evidence, NewCue  # noqa: PLC0415 - see `app.cli`

    try:
        consequence = CONSEQUENCES.get(options.consequence)
        consequence = float(options.consequence) if consequence is None else consequence
    except ValueError:
        raise typer.BadParameter("is low, medium, high, severe, or 0 to 1", param_hint="--consequence") from None
    evidence = (Evidence(session=options.session, quote=options.quote),) if options.session or options.quote else ()
    return [
        NewCue(
            kind=options.kind,
            trigger=trigger,
            lesson=lesson,
            consequence=consequence,
            scope=options.scope,
            quote=options.quote,
            evidence=evidence,
            files=tuple(options.file or ()),
        )
    ]


SENT = (
    "kind", "trigger", "lesson", "consequence", "confidence", "scope", "quote", "trust", "action_types",
    "files", "tags", "valid_from", "valid_until", "language",
)  # fmt: skip
"""The fields of a cue that `POST /api/cues` takes, beside its evidence."""


def _inputs(cues: "Sequence[NewCue]") -> list[Any]:
    """Returns cues as `POST /api/cues` takes them."""
    return [
        {
            **{name: value for name in SENT if (value := getattr(cue, name)) is not None},
            "details": dict(cue.details),
            "evidence": [
                {"session": item.session, "message": item.ordinal, "quote": item.quote, "at": item.at}
                for item in cue.evidence
            ],
        }
        for cue in cues
    ]


def _read(path: Path) -> "Sequence[NewCue]":
    import msgspec  # noqa: PLC0415 - see `app.cli`

    from app.api.cues import CueInput  # noqa: PLC0415 - the same

    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint="--from") from error
    cues = []
    for number, line in enumerate(lines, start=1):
        try:
            cues += [msgspec.json.decode(line, type=CueInput).cue()] if line.strip() else []
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise typer.BadParameter(f"line {number} of {path} is no cue: {error}", param_hint="--from") from error
    return cues


@cue_commands.command("list")
def list_(
    *,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only this kind; can be given again.")] = None,
    state: Annotated[list[str] | None, typer.Option("--state", help="active, proposed, retired or superseded.")] = None,
    action_type: Annotated[str, typer.Option("--action-type", help="Only of this action type, or its area.")] = "",
    session: Annotated[str, typer.Option("--session", help="Only with evidence in this session.")] = "",
    text: Annotated[str, typer.Option("--text", help="Only with this in trigger or lesson.")] = "",
    limit: Annotated[int, typer.Option("--limit", help="Cues at most.")] = 50,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cues of the workspace, the newest first.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "Sequence[Cue]":
        # SQLAlchemy: see `app.cli`.
        from app.cues.keep import list_cues  # noqa: PLC0415
        from app.cues.store import Asked  # noqa: PLC0415

        asked = Asked(
            kinds=tuple(kind or ()), states=tuple(state or ()), action_type=action_type, session=session, text=text
        )
        return await list_cues(services.database, workspace=target, asked=asked, limit=limit)

    def there(client: "Client") -> "Sequence[Cue]":
        from app.api.cues import CueView  # noqa: PLC0415 - see `app.cli`

        asked: dict[str, Any] = {"kind": kind, "state": state, "action_type": action_type, "session": session}
        return viewed(client.cues(**asked, text=text, limit=limit).cues, list[CueView])

    found = answered(workspace, work, there)
    if as_json:
        from app.api.cues import CueView  # noqa: PLC0415 - see `app.cli`

        print_json(found, list[CueView])
        return
    if not found:
        typer.echo("no cues")
    for cue in found:
        counts = f"fired {cue.fired}, heeded {cue.heeded}, ignored {cue.ignored}"
        typer.echo(f"{cue.cue_id}  {cue.kind} ({cue.state}; {counts})\n  {cue.trigger}\n  → {cue.lesson}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of a plan."""

    file: Annotated[list[str] | None, typer.Option("--file", help="A file that it touches; can be given again.")] = None
    agent: Annotated[str | None, typer.Option("--agent", help="Who asks.")] = None
    run_id: Annotated[str | None, typer.Option("--run-id", help="The run that it is for.")] = None
    budget: Annotated[int, typer.Option("--budget", help="Model tokens at most.")] = 400
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="Least probability, 0 to 1; else the consequence decides.")
    ] = None
    as_of: Moment = None


@commands.command()
@expanded
def activate(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="What you are about to do.")],
    *,
    options: PlanOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Print each component of each cue's score.")] = False,
    user: UserOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the `## Before you act` section for a plan: what was learnt about it.

    Changes: nothing but the log of activations and the counts of fired cues.
    """

    asked: dict[str, Any] = {name: getattr(options, name) for name in ("agent", "run_id", "min_score")}
    asked |= {"as_of": in_utc(options.as_of), "budget_tokens": options.budget, "files": tuple(options.file or ())}

    async def work(services: "Services", target: "Workspace") -> "Activation":
        # SQLAlchemy and numpy: see `app.cli`.
        from app.cues.activate import PlanAsked, activate  # noqa: PLC0415

        return await activate(
            services.database,
            services.provider,
            services.counter,
            workspace=target.for_reading(user),
            asked=PlanAsked(plan=plan, **asked),
            mask=services.settings.mask_secrets,
        )

    def there(client: "Client") -> "Activation":
        from app.api.cues import ActivationView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.activate(plan=plan, user=user or "", **asked), ActivationView)

    found = answered(workspace, work, there)
    if as_json:
        from app.api.cues import ActivationView  # noqa: PLC0415 - see `app.cli`

        print_json(found, ActivationView)
        return
    typer.echo(found.markdown or "nothing that was learnt applies", nl=not found.markdown)
    if explain:
        for cue in found.cues:
            parts = ", ".join(f"{name} {value:+.2f}" for name, value in cue.explain.items())
            typer.echo(f"\n{cue.score:.3f}  {cue.lesson}\n       {parts}")
    if found.degraded:
        typer.echo(f"priors: by words alone: {found.degraded}", err=True)
