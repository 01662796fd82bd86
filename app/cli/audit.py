"""The command `audit`."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.running import JsonOption, Moment, WorkspaceOption, in_utc, print_json, with_services, workspace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.operations.audit import AuditEntry
    from app.wiring import Services

commands = typer.Typer()


@commands.command()
def audit(
    *,
    since: Moment = None,
    until: Moment = None,
    who: Annotated[str, typer.Option("--who", help="cli, worker, panel, anyone, `key NAME` or `token SUBJECT`.")] = "",
    action: Annotated[str, typer.Option("--action", help="add, change, remove, export or erase.")] = "",
    of: Annotated[str, typer.Option("--object", help="memory, source, run, rating, key, …")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Entries.")] = 50,
    store: Annotated[bool, typer.Option("--store", help="What concerns the whole store, as API keys do.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who changed what in a workspace and who exported it, the newest first.

    Changes nothing.
    """
    span = in_utc(since), in_utc(until)

    async def work(services: "Services") -> "Sequence[AuditEntry]":
        from app.operations.audit import AuditQuestion, list_entries  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        first, end = span
        asked = AuditQuestion(since=first, until=end, who=who, action=action, object=of, limit=limit)
        place = None if store else await workspace_of(services, workspace)
        return await list_entries(services.database, workspace=place, asked=asked)

    found = with_services(work)
    if as_json:
        from app.api.audit import AuditEntryView  # noqa: PLC0415 - Litestar: see `app.cli`

        print_json(found, list[AuditEntryView])
        return
    for entry in found:
        typer.echo(_line(entry))
    if not found:
        typer.echo("No entry fits.", err=True)


def _line(entry: "AuditEntry") -> str:
    told = [
        _shown(entry.at),
        entry.who,
        entry.operation,
        f"{entry.action} {entry.count:,} {entry.object}",
        " ".join(entry.ids),
        f"request {entry.request_id}" if entry.request_id else "",
    ]
    return "  ".join(filter(None, told))


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
