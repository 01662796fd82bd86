"""`context make`, `show`, `list`, `diff`, `impact`, `compile`, `template`, `templates`, `forget-template`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

import typer

from app.cli.remote import answered, viewed
from app.cli.running import JsonOption, UserOption, WorkspaceOption, expanded, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from priors_client import Client

    from app.api.contexts import ContextView
    from app.context.compose import Difference, Impact
    from app.context.store import ContextSummary, Template
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

T = TypeVar("T")

context_commands = typer.Typer(
    help="Make, show and compare the contexts of agents, and keep their templates.\n\nChanges: contexts and templates.",
    no_args_is_help=True,
)
ModelOption = Annotated[
    str, typer.Option("--model", help="The model that reads it: its tokenizer counts. Default: the embedding model's.")
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="openai, anthropic or markdown. Default: as the model's API takes it.")
]
ContextArgument = Annotated[UUID, typer.Argument(metavar="ID", help="The id of a stored context.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOptions:
    """The options of a request for a context."""

    goal: Annotated[str, typer.Option("--goal", help="What the agent is after.")] = ""
    session: Annotated[str, typer.Option("--session", help="The session whose latest turns are shown.")] = ""
    template: Annotated[
        list[str] | None, typer.Option("--template", help="A template of the workspace; can be given again.")
    ] = None
    budget: Annotated[int, typer.Option("--budget", help="Tokens at most, the answer's reserve among them.")] = 4_000
    reserve: Annotated[float, typer.Option("--reserve", help="Share that stays free for the answer.")] = 0.15
    allocation: Annotated[str, typer.Option("--allocation", help="relevance or information.")] = "relevance"
    agent: Annotated[str | None, typer.Option("--agent", help="Who asks.")] = None
    run_id: Annotated[str | None, typer.Option("--run-id", help="The run that it is for.")] = None
    model: ModelOption = ""
    format: FormatOption = None

    def asked(self, observation: str) -> dict[str, Any]:
        """Returns the request as `POST /api/contexts` takes it."""
        same = {name: getattr(self, name) for name in ("goal", "session", "agent", "run_id", "model", "format")}
        budget = {"total": self.budget, "reserve_ratio": self.reserve, "allocation": self.allocation}
        return {"observation": observation, "templates": self.template or [], "budget": budget, **same}


@context_commands.command("make")
@expanded
def make(
    observation: Annotated[str | None, typer.Argument(help="What the agent is asked, or has just seen.")] = None,
    *,
    options: ContextOptions,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A request as `POST /api/contexts` takes it; - reads it."),
    ] = None,
    user: UserOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print an agent's context for an observation: instructions, history, turns and cues, within a token budget.

    Changes: the stored contexts, and the logs of recalls and activations.
    """
    from app.api.context_inputs import ContextInput  # noqa: PLC0415 - see `app.cli`

    if (observation is None) == (from_file is None):
        raise typer.BadParameter("give OBSERVATION, or --from FILE", param_hint="OBSERVATION")
    asked = options.asked(observation or "")
    given = _checked(asked, ContextInput) if from_file is None else _read(from_file, ContextInput)

    async def work(services: "Services", target: "Workspace") -> "ContextView":
        from app.api.contexts import context_view  # noqa: PLC0415 - see `app.cli`
        from app.context.contexts import make_context  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        seen = target.for_reading(user or given.user)
        return context_view((await make_context(services.context_parts, workspace=seen, request=given.request()))[0])

    def there(client: "Client") -> "ContextView":
        from app.api.contexts import ContextView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.build_context(**{**_fields(given), "user": user or given.user}), ContextView)

    _show(answered(workspace, work, there), as_json=as_json)


@context_commands.command("compile")
def compile_(
    file: Annotated[
        Path, typer.Argument(help="A representation as `POST /api/contexts:compile` takes it; - reads it.")
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print a representation that was made elsewhere, cut to its budget and compiled.

    Changes nothing.
    """
    from app.api.context_inputs import CompileInput  # noqa: PLC0415 - see `app.cli`

    given = _read(file, CompileInput)

    async def work(services: "Services", _target: "Workspace") -> "ContextView":
        from app.api.contexts import context_view  # noqa: PLC0415 - see `app.cli`
        from app.context.contexts import compile_given  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return context_view(await compile_given(services.counting, **given.asked()))

    def there(client: "Client") -> "ContextView":
        from app.api.contexts import ContextView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.compile_context(**_fields(given)), ContextView)

    _show(answered(None, work, there), as_json=as_json)


@context_commands.command("show")
def show(context_id: ContextArgument, *, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Print a stored context as it was made.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "ContextView":
        from app.api.contexts import context_view  # noqa: PLC0415 - see `app.cli`
        from app.context.contexts import get_context  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return context_view(await get_context(services.database, workspace=target, context_id=context_id))

    def there(client: "Client") -> "ContextView":
        from app.api.contexts import ContextView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.context(context_id), ContextView)

    _show(answered(workspace, work, there), as_json=as_json)


@context_commands.command("list")
def list_(
    *,
    run_id: Annotated[str | None, typer.Option("--run-id", help="Only of this run.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Only for this session.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only of this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Contexts at most.")] = 50,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the stored contexts, the latest first.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "Sequence[ContextSummary]":
        from app.context.contexts import list_contexts  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        asked: dict[str, Any] = {"run_id": run_id, "session_id": session, "agent": agent}
        return await list_contexts(services.database, workspace=target, **asked, limit=limit)

    def there(client: "Client") -> "Sequence[ContextSummary]":
        from app.api.contexts import ContextSummaryView  # noqa: PLC0415 - see `app.cli`

        asked: dict[str, Any] = {"run_id": run_id, "session": session, "agent": agent}
        return viewed(client.contexts(**asked, limit=limit), list[ContextSummaryView])

    found = answered(workspace, work, there)
    if as_json:
        from app.api.contexts import ContextSummaryView  # noqa: PLC0415 - see `app.cli`

        print_json(found, list[ContextSummaryView])
        return
    if not found:
        typer.echo("no contexts")
    for item in found:
        made = item.created_at.strftime("%Y-%m-%d %H:%M")
        typer.echo(f"{made}  {item.context_id}  {item.tokens:,} of {item.budget:,} tokens  {item.run_id or ''}")


@context_commands.command("diff")
def diff(
    context_id: ContextArgument,
    other_id: Annotated[UUID, typer.Argument(metavar="OTHER", help="The id of the context to compare with.")],
    *,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what another context has more, less or in another form.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "Difference":
        from app.context.contexts import diff_contexts  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await diff_contexts(services.database, workspace=target, context_id=context_id, other_id=other_id)

    def there(client: "Client") -> "Difference":
        from app.api.contexts import DifferenceView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.context_diff(context_id, other_id), DifferenceView)

    found = answered(workspace, work, there)
    if as_json:
        from app.api.contexts import DifferenceView  # noqa: PLC0415 - see `app.cli`

        print_json(found, DifferenceView)
        return
    for item in found.changes:
        reason = f"  ({item.reason})" if item.reason else ""
        typer.echo(f"{item.kind:8} {item.before:6,} → {item.after:6,}  {item.label or item.id}{reason}")
    typer.echo(f"{found.same} parts are the same; {found.tokens:+,} tokens; similarity {found.similarity:.2f}")


@context_commands.command("impact")
def impact(context_id: ContextArgument, *, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Print what each section of a context costs, and the share of its words that no other section has.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "Sequence[Impact]":
        from app.context.contexts import context_impacts  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await context_impacts(services.database, workspace=target, context_id=context_id)

    def there(client: "Client") -> "Sequence[Impact]":
        from app.api.contexts import ImpactView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.context_impact(context_id), list[ImpactView])

    found = answered(workspace, work, there)
    if as_json:
        from app.api.contexts import ImpactView  # noqa: PLC0415 - see `app.cli`

        print_json(found, list[ImpactView])
        return
    for item in found:
        shares = f"{item.share:4.0%} of the tokens  {item.information:4.0%} of the words alone"
        typer.echo(f"{item.tokens:6,}  {shares}  worth {item.worth:.2f}  {item.label or item.id}")


@context_commands.command("templates")
def templates(*, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Print the templates of the workspace.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "Sequence[Template]":
        from app.context.contexts import list_templates  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await list_templates(services.database, workspace=target)

    def there(client: "Client") -> "Sequence[Template]":
        from app.api.contexts import TemplateView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.templates(), list[TemplateView])

    found = answered(workspace, work, there)
    if as_json:
        from app.api.contexts import TemplateView  # noqa: PLC0415 - see `app.cli`

        print_json(found, list[TemplateView])
        return
    if not found:
        typer.echo("no templates")
    for item in found:
        typer.echo(f"{item.name} ({item.mode}, {item.priority})\n  {' '.join(item.content.split())[:200]}")


@context_commands.command("template")
def template(
    name: Annotated[str, typer.Argument(help="The template's name.")],
    file: Annotated[Path, typer.Argument(help="The file with its text; - reads it.")],
    *,
    label: Annotated[str, typer.Option("--label", help="The heading above it.")] = "",
    mode: Annotated[str, typer.Option("--mode", help="hierarchical or constraint.")] = "hierarchical",
    priority: Annotated[str, typer.Option("--priority", help="critical, high, medium or low.")] = "critical",
    workspace: WorkspaceOption = None,
) -> None:
    """Store a template, in place of the one of its name.

    Changes: the templates of the workspace.
    """
    from app.api.context_inputs import TemplateInput  # noqa: PLC0415 - see `app.cli`
    from app.api.schemas import converted  # noqa: PLC0415 - the same

    given = _checked({"content": _text(file), "label": label, "mode": mode, "priority": priority}, TemplateInput)

    async def work(services: "Services", target: "Workspace") -> "Template":
        # SQLAlchemy: see `app.cli`.
        from app.context.contexts import save_template  # noqa: PLC0415
        from app.context.store import Template  # noqa: PLC0415

        kept = converted(given, Template, name=name)
        mask = services.settings.mask_secrets
        return await save_template(services.database, workspace=target, template=kept, mask=mask)

    answered(workspace, work, lambda client: client.save_template(name, **_fields(given)))


@context_commands.command("forget-template")
def forget_template(
    name: Annotated[str, typer.Argument(help="The template's name.")], *, workspace: WorkspaceOption = None
) -> None:
    """Remove a template.

    Changes: the templates of the workspace.
    """

    async def work(services: "Services", target: "Workspace") -> None:
        from app.context.contexts import remove_template  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        await remove_template(services.database, workspace=target, name=name)

    answered(workspace, work, lambda client: client.delete_template(name))


def _text(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint="FILE") from error


def _read(path: Path, kind: "type[T]") -> "T":
    """Returns the input in a file of JSON."""
    import msgspec  # noqa: PLC0415 - see `app.cli`

    try:
        return msgspec.json.decode(_text(path), type=kind)
    except msgspec.MsgspecError as error:
        raise typer.BadParameter(f"{path} cannot be taken: {error}", param_hint="FILE") from error


def _checked(given: dict[str, Any], kind: "type[T]") -> "T":
    """Returns the input that options make."""
    import msgspec  # noqa: PLC0415 - see `app.cli`

    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise typer.BadParameter(str(error)) from error


def _fields(given: object) -> dict[str, Any]:
    """Returns an input as the client's methods take it."""
    import msgspec  # noqa: PLC0415 - see `app.cli`

    fields: dict[str, Any] = msgspec.to_builtins(given)
    return fields


def _show(found: Any, *, as_json: bool) -> None:  # noqa: ANN401 - a view's fields have no types
    """Prints what the model reads; what was cut, and what failed, on standard error."""
    if as_json:
        import msgspec  # noqa: PLC0415 - see `app.cli`

        typer.echo(msgspec.json.encode(found).decode())
        return
    texts = [found.system, found.markdown, *(message.content for message in found.messages)]
    typer.echo("\n\n".join(text.rstrip("\n") for text in texts if text))
    trace = found.trace
    told = [f"{found.id or 'not stored'}: {found.meta.total_tokens:,} tokens, counted by {trace.counter}"]
    told += [f"{item.source}: {item.failure}" for item in trace.sources if item.failure]
    told += [f"cut {cut.label or cut.id}: {cut.before:,} → {cut.after:,} tokens; {cut.reason}" for cut in trace.cuts]
    typer.echo("\n".join(f"priors: {line}" for line in told), err=True)
