"""The commands `migrate`, `distribute`, `doctor`, `stats`, `language`, `quota` and `examples`."""

import asyncio
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.running import JsonOption, WorkspaceOption, in_workspace, run_until_told, with_services
from app.settings import from_environment

if TYPE_CHECKING:
    from app.operations.status import WorkspaceStatistics
    from app.wiring import Services
    from app.workspaces.usage import Use
    from app.workspaces.workspace import Workspace

commands = typer.Typer()


@commands.command()
def migrate(
    *,
    check: Annotated[bool, typer.Option("--check", help="Only say; exit 1 if any are lacking.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL; needs no database.")] = False,
) -> None:
    """Bring the database's schema up to date.

    Changes: the schema; a first call makes the embedded database if none is configured. Plain `alembic upgrade
    head` does the same.
    """
    if sql:
        from app.db.migrations import print_sql  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        print_sql()
        return
    behind = run_until_told(_migrate(check=check))
    if behind:
        raise typer.Exit(1)


async def _migrate(*, check: bool) -> bool:
    # SQLAlchemy: see `app.cli`.
    from app.db.database import Database  # noqa: PLC0415
    from app.db.migrations import head, state, upgrade  # noqa: PLC0415
    from app.wiring import opened_database  # noqa: PLC0415

    async with opened_database(from_environment()) as address:
        database = Database(address.url, admin_url=address.admin_url, pool_size=1)
        before = await state(database)
        await database.close()
        if not before.mend:
            typer.echo(f"up to date at {before.revision}")
            return False
        if check:
            typer.echo(before.mend)
            return True
        await asyncio.to_thread(upgrade, address.admin_url)
        repaired = before.revision == head()
        typer.echo(f"secured again at {head()}" if repaired else f"from {before.revision or 'nothing'} to {head()}")
        return False


@commands.command()
def distribute(
    *,
    shards: Annotated[
        int, typer.Option(min=1, help="Pieces of a table, that nodes share; fixed at the first call.")
    ] = 32,
) -> None:
    """Distribute the tables of a migrated database over the nodes of a Citus cluster, by workspace.

    Changes: where rows lie, and nothing that they say. Stop the service first; again there is nothing to do.
    """
    run_until_told(_distribute(shards))


async def _distribute(shards: int) -> None:
    # SQLAlchemy: see `app.cli`.
    from app.db.distribution import distribute as over_nodes  # noqa: PLC0415
    from app.wiring import opened_database  # noqa: PLC0415

    async with opened_database(from_environment()) as address:
        done = await asyncio.to_thread(over_nodes, address.admin_url, shards=shards)
    if not (done.by_workspace or done.everywhere):
        typer.echo("nothing to do: every table is distributed")
        return
    typer.echo(f"{len(done.by_workspace)} tables are distributed by workspace, {len(done.everywhere)} are on all nodes")


@commands.command()
def doctor(*, as_json: JsonOption = False) -> None:
    """Check database, model and store, and say what to do about what is wrong.

    Changes nothing that is stored; a first call makes the embedded database and the model's files.
    """
    from app.operations.doctor import FAIL, diagnose  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    findings = run_until_told(diagnose(from_environment()))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            typer.echo(f"{finding.status:4}  {finding.subject}: {finding.message}")
    if any(finding.status == FAIL for finding in findings):
        raise typer.Exit(1)


@commands.command()
def backup(folder: Annotated[Path, typer.Argument(help="A new folder.")]) -> None:
    """Write a backup of the whole store into a new folder, while the service runs, and verify it.

    Changes: nothing that is stored.
    """
    from app.operations.backup import back_up  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    made = run_until_told(back_up(from_environment(), folder))
    typer.echo(f"{folder} holds a verified backup ({made.kind}, schema {made.revision})")


@commands.command()
def restore(
    folder: Annotated[Path, typer.Argument(help="The folder of a backup.")],
    *,
    archive: Annotated[
        Path | None, typer.Option(help="A folder of archived WAL, to restore later changes too.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"], help="Their end; in UTC.")
    ] = None,
) -> None:
    """Restore a backup into a data directory without a store, or into an empty database.

    Changes: makes the store; one that is there already is not touched.
    """
    from app.operations.backup import Replay  # noqa: PLC0415 - SQLAlchemy: see `app.cli`
    from app.operations.backup import restore as bring_back  # noqa: PLC0415 - the same

    if (archive is None) != (until is None):
        raise typer.BadParameter("--archive and --until go together: where the changes are, and the moment of the last")
    moment = None if until is None or until.tzinfo else until.replace(tzinfo=UTC)
    replay = None if archive is None or until is None else Replay(archive=archive, until=moment or until)
    found = run_until_told(bring_back(from_environment(), folder, replay))
    typer.echo(f"restored the backup of {found.began_at:%Y-%m-%d %H:%M:%S} UTC (schema {found.revision})")


@commands.command("language")
def set_workspace_language(
    language: Annotated[str, typer.Argument(help="A name or ISO code: russian, de, …")],
    *,
    workspace: WorkspaceOption = None,
) -> None:
    """Set the text search language of a workspace.

    Changes: the language of memories and queries that name none from now on; what is stored keeps its own.
    """

    async def work(services: "Services", target: "Workspace") -> str:
        from app.workspaces.resolve import set_language  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return (await set_language(services.database, target, language)).language

    typer.echo(in_workspace(workspace, work))


@commands.command()
def quota(
    *,
    memories: Annotated[int | None, typer.Option("--memories", help="Live memories; 0: no limit.")] = None,
    text_bytes: Annotated[
        int | None, typer.Option("--bytes", help="Bytes of titles and texts of live memories; 0: no limit.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Unfinished jobs; 0: no limit.")] = None,
    default: Annotated[bool, typer.Option("--default", help="Take those of the settings that are not named.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the quota of a workspace, or set it: what it has beyond it stays, and it takes nothing more.

    Changes: the named limits of the workspace; without an option, nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "tuple[Use, ...]":
        # SQLAlchemy: see `app.cli`.
        from app.workspaces.quotas import quota_of, set_quota  # noqa: PLC0415
        from app.workspaces.usage import OwnQuota  # noqa: PLC0415

        own, uses = await quota_of(services.database, target)
        named = {
            name: value
            for name, value in {"memories": memories, "bytes": text_bytes, "jobs": jobs}.items()
            if value is not None
        }
        if not (named or default):
            return uses
        wanted = (OwnQuota() if default else own)._replace(**named)
        return await set_quota(services.database, workspace=target, quota=wanted)

    uses = in_workspace(workspace, work)
    typer.echo("\n".join(map(_use_told, uses)) or "no limit")


def _use_told(use: "Use") -> str:
    return f"{use.quota}: {use.used:,} of {use.most:,}"


@commands.command()
def stats(*, as_json: JsonOption = False) -> None:
    """Count what is stored, by workspace.

    Changes nothing that is stored; a first call makes the embedded database.
    """

    async def work(services: "Services") -> None:
        from app.operations.status import store_statistics  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        found = await store_statistics(services.database)
        if as_json:
            typer.echo(json.dumps([asdict(item) for item in found]))
            return
        if not found:
            typer.echo("nothing is stored yet")
        for item in found:
            typer.echo(_told(item))

    with_services(work)


def _told(item: "WorkspaceStatistics") -> str:
    """Returns a workspace's figures in three lines."""
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(item.kinds.items())) or "none"
    refused = ", ".join(f"{reason} {count}" for reason, count in sorted(item.refused.items())) or "none"
    quotas = "".join(f", {_use_told(use)}" for use in item.quotas)
    return (
        f"{item.name} ({item.language}): {item.live} memories ({kinds})\n"
        f"  sources {item.sources}, runs {item.runs}, recalls {item.recalls},"
        f" pending for a vector {item.waiting}, for links {item.pending_links}\n"
        f"  retired {item.retired}, quarantined {item.quarantined}, refused: {refused}{quotas}"
    )


@commands.command()
def examples(
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Take the examples away for good.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take away the example reports, sessions and runs that the first `priors run` stored.

    Changes: destroys them with their ratings and recalls, and nothing else. Running it again changes nothing.
    """
    if not remove:
        raise typer.BadParameter("say --remove: nothing else can be done with the examples")

    async def work(services: "Services", target: "Workspace") -> str:
        from app.operations.examples import remove as take_away  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        gone = await take_away(services.database, workspace=target)
        return f"{gone.memories} memories of {gone.files} files, and {gone.runs} runs are removed"

    typer.echo(in_workspace(workspace, work))
