"""`session`."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.running import JsonOption, Moment, WorkspaceOption, in_utc, in_workspace, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.cues.cue import Cue
    from app.intake.sessions.browse import SessionDetail
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

    async def work(
        services: "Services", target: "Workspace"
    ) -> "tuple[SessionDetail, Sequence[Cue]] | Sequence[StoredSession]":
        # SQLAlchemy: see `app.cli`.
        from app.cues.keep import cues_of_source  # noqa: PLC0415
        from app.intake.sessions.browse import SessionFilters, get_session, list_sessions  # noqa: PLC0415

        if session_id is not None:
            masked = services.settings.mask_secrets
            detail = await get_session(services.database, workspace=target, session_id=session_id, masked=masked)
            of = detail.session.source_id
            return detail, await cues_of_source(services.database, workspace=target, source_id=of)
        filters = SessionFilters(text=text, path=path, since=in_utc(since), until=in_utc(until))
        return await list_sessions(services.database, workspace=target, filters=filters, limit=limit)

    from app.api.sessions import SessionDetailView, SessionView, detail_view  # noqa: PLC0415 - see `app.cli`

    found = in_workspace(workspace, work)
    if isinstance(found, tuple) and as_json:
        print_json(detail_view(*found), SessionDetailView)
    elif isinstance(found, tuple):
        typer.echo("\n".join(_told(*found)))
    elif as_json:
        print_json(found, list[SessionView])
    elif not found:
        typer.echo("no sessions")
    else:
        for item in found:
            typer.echo(f"{_moment(item)}  {item.session_id}  {item.turns} turns  {item.title}")


def _moment(item: "StoredSession") -> str:
    return (item.started_at or item.created_at).strftime("%Y-%m-%d %H:%M")


def _told(found: "SessionDetail", cues: "Sequence[Cue]") -> list[str]:
    item = found.session
    told = [item.title or item.session_id, f"{item.session_id}, {item.format}, {_moment(item)} UTC, {item.turns} turns"]
    if found.artifacts:
        told += ["", "created or changed:"]
    for artifact in found.artifacts:
        name = f"{artifact.path} › {artifact.symbol}" if artifact.symbol else artifact.path
        turns = ", ".join(f"#{ordinal}" for ordinal in artifact.messages)
        told.append(f"  {name} ({', '.join(artifact.actions)}; {turns})")
    for message in found.messages:
        learnt = [
            f"  → {cue.kind}: {cue.lesson}"
            for cue in cues
            if any(proof.ordinal == message.ordinal for proof in cue.proofs_in(item.source_id))
        ]
        told += ["", *_lines(message), *learnt]
    return told


def _lines(message: "StoredMessage") -> list[str]:
    from app.intake.sessions.prepare import act  # noqa: PLC0415 - see `app.cli`

    at = "" if message.at is None else message.at.strftime(" %H:%M")
    flagged = " [suspect: in no history]" if message.suspect else ""
    head = f"#{message.ordinal} {message.role}{at}{flagged}"
    return [head, *([message.text] if message.text else []), *(f"  · {act(tool)}" for tool in message.tools)]
