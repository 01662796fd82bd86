"""`case`, `roles`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.running import JsonOption, WorkspaceOption, in_workspace
from app.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.retrieval.rank.roles import Role
    from app.runs.judgements.cases import CaseHistory
    from app.runs.judgements.store import CaseSummary
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()


@commands.command()
def case(
    name: Annotated[
        str | None, typer.Argument(metavar="[CASE]", help="Its name, in any spelling; without: all.")
    ] = None,
    *,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the history of a judged test case: versions, scores, verdicts, and its issues over them.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "CaseHistory | Sequence[CaseSummary]":
        from app.runs.judgements.match import get_case, list_cases  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        if name is None:
            return await list_cases(services.database, workspace=target)
        return await get_case(services.database, services.provider, workspace=target, case=name)

    import msgspec  # noqa: PLC0415 - see `app.cli`

    from app.runs.judgements.cases import CaseHistory  # noqa: PLC0415 - the same
    from app.runs.judgements.told import issue_line, score_lines  # noqa: PLC0415 - the same

    found = in_workspace(workspace, work)
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
    elif isinstance(found, CaseHistory):
        issues = [issue_line(issue) for issue in found.issues]
        typer.echo("\n".join([found.title, "", *score_lines(found), "", *(issues or ["no issues"])]))
    elif not found:
        typer.echo("no cases")
    else:
        for item in found:
            told = f"{item.versions} versions, {item.open_issues} open issues, {item.recurring_issues} recurring"
            typer.echo(f"{item.case_name}: {told}")


@commands.command()
def roles(
    name: Annotated[str | None, typer.Argument(metavar="[ROLE]", help="Only this one.")] = None,
    *,
    save: Annotated[Path | None, typer.Option("--set", metavar="FILE", help="Set it: JSON with its parts.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the workspace's own away.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print the roles that agents are served by, as JSON lines.

    Changes: the role, with --set or --remove.
    """
    if (save or remove) and name is None:
        raise typer.BadParameter("name the role that is to be changed", param_hint="ROLE")

    async def work(services: "Services", target: "Workspace") -> "Sequence[Role]":
        # SQLAlchemy: see `app.cli`.
        from app.cli.running import workspace_of  # noqa: PLC0415
        from app.retrieval.roles import remove_role, roles_of, save_role  # noqa: PLC0415

        if save is not None and name is not None:
            mask = services.settings.mask_secrets
            await save_role(services.database, workspace=target, role=_read(save, name), mask=mask)
        elif remove and name is not None:
            await remove_role(services.database, workspace=target, name=name)
        known = roles_of(await workspace_of(services, workspace))
        if name is not None and name not in known and not remove:
            raise NotFound(
                f"there is no role {name!r} (known are {', '.join(known)}); its agent is served by 'default'"
            )
        return [role for role in known.values() if name in {None, role.name}]

    for role in in_workspace(workspace, work):
        parts = [{field: getattr(part, field) for field in part.__slots__} for part in role.parts]
        typer.echo(json.dumps({"name": role.name, "parts": parts}, ensure_ascii=False))


def _read(path: Path, name: str) -> "Role":
    """Reads a role as `PUT /api/roles/{name}` takes it, or as this command prints it."""
    import msgspec  # noqa: PLC0415 - see `app.cli`

    from app.api.cases import RoleInput  # noqa: PLC0415 - the same
    from app.api.schemas import converted  # noqa: PLC0415 - the same
    from app.retrieval.rank.roles import Role  # noqa: PLC0415 - the same

    try:
        given = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
        given.pop("name", None)
        return converted(msgspec.convert(given, RoleInput), Role, name=name)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path} is no role: {error}", param_hint="--set") from error
