"""`session`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.remote import answered, viewed
from app.cli.running import JsonOption, Moment, WorkspaceOption, in_utc, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from priors_client import Client

    from app.intake.sessions.store import StoredMessage, StoredSession
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()


@commands.command()
def session(
    session_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Without: the latest sessions.")] = None,
    *,
    path: Annotated[str | None, typer.Option("--path", help="Only sessions that created or changed this file.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Only sessions with this in their title or id.")] = None,
    since: Moment = None,
    until: Moment = None,
    limit: Annotated[int, typer.Option("--limit", help="Sessions at most.")] = 50,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a session: its turns, the tools that they used, and what it created or changed. Without an id, list them.

    Changes nothing.
    """

    if session_id is not None:
        _show(session_id, workspace, as_json=as_json)
        return

    async def work(services: "Services", target: "Workspace") -> "Sequence[StoredSession]":
        from app.intake.sessions.browse import SessionFilters, list_sessions  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        filters = SessionFilters(text=text, path=path, since=in_utc(since), until=in_utc(until))
        return await list_sessions(services.database, workspace=target, filters=filters, limit=limit)

    def there(client: "Client") -> "Sequence[StoredSession]":
        from app.api.sessions import SessionView  # noqa: PLC0415 - see `app.cli`

        asked: dict[str, Any] = {"text": text, "path": path, "since": in_utc(since), "until": in_utc(until)}
        return viewed(client.sessions(**asked, limit=limit).sessions, list[SessionView])

    found = answered(workspace, work, there)
    if as_json:
        from app.api.sessions import SessionView  # noqa: PLC0415 - see `app.cli`

        print_json(found, list[SessionView])
        return
    if not found:
        typer.echo("no sessions")
    for item in found:
        typer.echo(f"{_moment(item)}  {item.session_id}  {item.turns} turns  {item.title}")


def _show(session_id: str, workspace: str | None, *, as_json: bool) -> None:
    from app.api.sessions import SessionDetailView, detail_view  # noqa: PLC0415 - see `app.cli`

    async def work(services: "Services", target: "Workspace") -> Any:  # noqa: ANN401 - a view's fields have no types
        # SQLAlchemy: see `app.cli`.
        from app.cues.keep import cues_of_source  # noqa: PLC0415
        from app.intake.sessions.browse import get_session  # noqa: PLC0415

        masked = services.settings.mask_secrets
        detail = await get_session(services.database, workspace=target, session_id=session_id, masked=masked)
        of = detail.session.source_id
        return detail_view(detail, await cues_of_source(services.database, workspace=target, source_id=of))

    def there(client: "Client") -> Any:  # noqa: ANN401 - the same
        shown = client.session  # the route; a call by this name is one of the database to the tests of the house
        return viewed(shown(session_id), SessionDetailView)

    found = answered(workspace, work, there)
    if as_json:
        print_json(found, SessionDetailView)
    else:
        typer.echo("\n".join(_told(found)))


def _moment(item: "StoredSession") -> str:
    return (item.started_at or item.created_at).strftime("%Y-%m-%d %H:%M")


def _told(item: Any) -> list[str]:  # noqa: ANN401 - a view's fields have no types
    told = [item.title or item.session_id, f"{item.session_id}, {item.format}, {_moment(item)} UTC, {item.turns} turns"]
    if item.artifacts:
        told += ["", "created or changed:"]
    for artifact in item.artifacts:
        name = f"{artifact.path} › {artifact.symbol}" if artifact.symbol else artifact.path
        turns = ", ".join(f"#{ordinal}" for ordinal in artifact.messages)
        told.append(f"  {name} ({', '.join(artifact.actions)}; {turns})")
    for message in item.messages:
        learnt = [f"  → {cue.kind}: {cue.lesson}" for cue in item.cues if cue.message == message.ordinal]
        told += ["", *_lines(message), *learnt]
    return told


def _lines(message: "StoredMessage") -> list[str]:
    from app.intake.sessions.prepare import act  # noqa: PLC0415 - see `app.cli`

    at = "" if message.at is None else message.at.strftime(" %H:%M")
    flagged = " [suspect: in no history]" if message.suspect else ""
    head = f"#{message.ordinal} {message.role}{at}{flagged}"
    return [head, *([message.text] if message.text else []), *(f"  · {act(tool)}" for tool in message.tools)]
