"""`context make`, `show`, `list`, `compile`, `templates`, `template`, `forget-template`, `roles`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from priors_client.models import CompileInput, ContextInput, RoleInput

from app.errors import NotFound
from app.interfaces.cli.client import (
    AgentOption,
    JsonOption,
    PlaceOptions,
    RunOption,
    UserOption,
    expand_options,
    group_in,
    print_json,
    print_list,
    text_of,
    values_of,
    without_none,
)

if TYPE_CHECKING:
    from priors_client.models import ContextSummary, ContextView, Template

commands = typer.Typer()
contexts = group_in(
    commands,
    "context",
    "Make and show contexts of agents, their templates and roles.\n\nChanges: contexts, templates and roles.",
)
_ContextArgument = Annotated[UUID, typer.Argument(metavar="ID", help="The id of a stored context.")]
_NameArgument = Annotated[str, typer.Argument(help="The template's name.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContextOptions:
    """The options of a request for a context."""

    goal: Annotated[str, typer.Option("--goal", help="What the agent is after.")] = ""
    session: Annotated[str, typer.Option("--session", help="The session whose latest turns are shown.")] = ""
    template: Annotated[
        list[str] | None, typer.Option("--template", help="A template of the workspace; can be given again.")
    ] = None
    budget: Annotated[int, typer.Option("--budget", help="Tokens at most, the answer's reserve among them.")] = 4_000
    reserve: Annotated[float, typer.Option("--reserve", help="Share that stays free for the answer.")] = 0.15
    allocation: Annotated[str, typer.Option("--allocation", help="relevance or information.")] = "relevance"
    agent: AgentOption = None
    run_id: RunOption = None
    model: Annotated[
        str, typer.Option("--model", help="Its reader, whose tokenizer counts. Default: the embedding model.")
    ] = ""
    format: Annotated[
        str | None,
        typer.Option("--format", help="openai, anthropic or markdown. Default: as the model's API takes it."),
    ] = None

    def fields(self, observation: str) -> dict[str, Any]:
        """Returns the request as the service takes it."""
        same = {name: getattr(self, name) for name in ("goal", "session", "agent", "run_id", "model", "format")}
        budget = {"total": self.budget, "reserve_ratio": self.reserve, "allocation": self.allocation}
        return {"observation": observation, "templates": self.template or [], "budget": budget, **same}


@contexts.command()
@expand_options
def make(
    observation: Annotated[str | None, typer.Argument(help="What the agent is asked, or has just seen.")] = None,
    *,
    options: _ContextOptions,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A request as JSON, as the service takes it; - reads it."),
    ] = None,
    user: UserOption = None,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print an agent's context for an observation: instructions, history, turns and cues, within a token budget.

    Changes: the stored contexts, and the logs of recalls and activations.
    """
    if (observation is None) == (from_file is None):
        raise typer.BadParameter("give OBSERVATION, or --from FILE", param_hint="OBSERVATION")
    request = options.fields(observation or "") if from_file is None else values_of(from_file, ContextInput)
    with place.client() as client:
        answer = client.build_context(**request, **without_none(user=user))
    _show(answer, as_json=as_json)


@contexts.command("compile")
@expand_options
def compile_(
    file: Annotated[Path, typer.Argument(help="A representation as JSON, as the service takes it; - reads it.")],
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print a representation that was made elsewhere, cut to its budget and compiled.

    Changes nothing.
    """
    request = values_of(file, CompileInput)
    with place.client() as client:
        answer = client.admin.compile_context(**request)
    _show(answer, as_json=as_json)


@contexts.command()
@expand_options
def show(context_id: _ContextArgument, *, place: PlaceOptions, as_json: JsonOption = False) -> None:
    """Print a stored context as it was made.

    Changes nothing.
    """
    with place.client() as client:
        answer = client.admin.context(context_id)
    _show(answer, as_json=as_json)


@contexts.command("list")
@expand_options
def list_(
    *,
    run_id: Annotated[str | None, typer.Option("--run-id", help="Only of this run.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Only for this session.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only of this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="Contexts at most.")] = 50,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the stored contexts, the latest first.

    Changes nothing.
    """
    with place.client() as client:
        found = client.admin.contexts(**without_none(run_id=run_id, session=session, agent=agent), limit=limit)
    print_list(found, _summary_line, nothing="no contexts", as_json=as_json)


@contexts.command()
@expand_options
def templates(*, place: PlaceOptions, as_json: JsonOption = False) -> None:
    """Print the templates of the workspace.

    Changes nothing.
    """
    with place.client() as client:
        found = client.admin.templates()
    print_list(found, _template_lines, nothing="no templates", as_json=as_json)


@contexts.command()
@expand_options
def template(
    name: _NameArgument,
    file: Annotated[Path, typer.Argument(help="The file with its text; - reads it.")],
    *,
    label: Annotated[str, typer.Option("--label", help="The heading above it.")] = "",
    mode: Annotated[str, typer.Option("--mode", help="hierarchical or constraint.")] = "hierarchical",
    priority: Annotated[str, typer.Option("--priority", help="critical, high, medium or low.")] = "critical",
    place: PlaceOptions,
) -> None:
    """Store a template, in place of the one of its name.

    Changes: the templates of the workspace.
    """
    options: dict[str, Any] = {"label": label, "mode": mode, "priority": priority}
    content = text_of(file)
    with place.client() as client:
        client.admin.save_template(name, content, **options)


@contexts.command("forget-template")
@expand_options
def forget_template(name: _NameArgument, *, place: PlaceOptions) -> None:
    """Remove a template.

    Changes: the templates of the workspace.
    """
    with place.client() as client:
        client.admin.delete_template(name)


@contexts.command()
@expand_options
def roles(
    name: Annotated[str | None, typer.Argument(metavar="[ROLE]", help="Only this one.")] = None,
    *,
    save: Annotated[Path | None, typer.Option("--set", metavar="FILE", help="Set it: JSON with its parts.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the workspace's own away.")] = False,
    place: PlaceOptions,
) -> None:
    """Print the roles that agents are served by, as JSON lines.

    Changes: the role, with --set or --remove.
    """
    if (save or remove) and name is None:
        raise typer.BadParameter("name the role that is to be changed", param_hint="ROLE")
    parts = values_of(save, RoleInput, ignored=("name", "own")) if save else {}
    with place.client() as client:
        if save and name:
            client.admin.save_role(name, **parts)
        elif remove and name:
            client.admin.delete_role(name)
        known = {role.name: role for role in client.admin.roles()}
    if name is not None and name not in known and not remove:
        raise NotFound(f"there is no role {name!r} (known are {', '.join(known)}); its agent is served by 'default'")
    for role in known.values():
        if name in {None, role.name}:
            print_json(role)


def _summary_line(item: "ContextSummary") -> str:
    at = item.created_at.strftime("%Y-%m-%d %H:%M")
    return f"{at}  {item.id}  {item.tokens:,} of {item.budget:,} tokens  {item.run_id or ''}"


def _template_lines(item: "Template") -> str:
    return f"{item.name} ({item.mode}, {item.priority})\n  {' '.join(item.content.split())[:200]}"


def _show(answer: "ContextView", *, as_json: bool) -> None:
    """Prints what the model reads; what was cut, and what failed, on standard error."""
    if as_json:
        print_json(answer)
        return
    texts = [answer.system, answer.markdown, *(message.content for message in answer.messages)]
    typer.echo("\n\n".join(text.rstrip("\n") for text in texts if text))
    trace = answer.trace
    notes = [f"{answer.id or 'not stored'}: {answer.meta.total_tokens:,} tokens, counted by {trace.counter}"]
    notes += [f"{item.source}: {item.failure}" for item in trace.sources if item.failure]
    notes += [f"cut {cut.label or cut.id}: {cut.before:,} → {cut.after:,} tokens; {cut.reason}" for cut in trace.cuts]
    typer.echo("\n".join(f"priors: {line}" for line in notes), err=True)
