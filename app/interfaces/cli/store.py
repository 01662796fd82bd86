"""`store migrate`, `distribute`, `doctor`, `backup`, `restore`, `backfill`, `reembed`, `prepare-model`."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from app.foundation.db.distribution import distribute as distribute_tables
from app.foundation.db.migrations import head, print_sql, state, upgrade
from app.foundation.models.providers import provider_from, with_model
from app.interfaces.cli import failures
from app.interfaces.cli.client import JsonOption, ServiceOptions, expand_options, group_in, print_json
from app.interfaces.cli.local import with_services
from app.interfaces.cli.places import check_store, settings_here
from app.interfaces.cli.running import run_to_end
from app.operations import backup as backups
from app.operations.doctor import FAIL, OK, WARN, CheckResult, diagnose
from app.storage.index.service import build_indexes
from app.wiring import Services, opened_database

commands = typer.Typer()
store = group_in(
    commands,
    "store",
    "Migrate, check, back up and maintain the store on this machine.\n\nChanges: as each command says.",
)


@store.command()
def migrate(
    *,
    check: Annotated[bool, typer.Option("--check", help="Only say; exit 1 if any are lacking.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL; needs no database.")] = False,
) -> None:
    """Bring the database's schema up to date.

    Changes: the schema. Plain `alembic upgrade head` does the same.
    """
    if sql:
        print_sql()
    elif run_to_end(_migrate(check=check)):
        raise typer.Exit(1)


async def _migrate(*, check: bool) -> bool:
    settings = settings_here()
    check_store(settings)
    async with opened_database(settings, pool_size=1) as (database, _):
        before = await state(database)
        if not before.mend:
            typer.echo(f"up to date at {before.revision}")
            return False
        if check:
            typer.echo(before.mend)
            return True
        await asyncio.to_thread(upgrade, database.admin_url)
        repaired = before.revision == head()
        typer.echo(f"secured again at {head()}" if repaired else f"from {before.revision or 'nothing'} to {head()}")
        return False


@store.command()
def distribute(
    *,
    shards: Annotated[
        int, typer.Option(min=1, help="Pieces of a table, that nodes share; fixed at the first call.")
    ] = 32,
) -> None:
    """Distribute the tables of a migrated database over the nodes of a Citus cluster, by workspace.

    Changes: where rows lie, and nothing that they say. Stop the service first; again there is nothing to do.
    """
    run_to_end(_distribute(shards))


async def _distribute(shards: int) -> None:
    settings = settings_here()
    check_store(settings)
    async with opened_database(settings, pool_size=1) as (database, _):
        done = await asyncio.to_thread(distribute_tables, database.admin_url, shards=shards)
    if not (done.by_workspace or done.everywhere):
        typer.echo("nothing to do: every table is distributed")
        return
    typer.echo(f"{len(done.by_workspace)} tables are distributed by workspace, {len(done.everywhere)} are on all nodes")


@store.command()
@expand_options
def doctor(*, service: ServiceOptions, as_json: JsonOption = False) -> None:
    """Check database, model and store, and say what to do about what is wrong; of a service elsewhere, what it says.

    Changes nothing that is stored; a first call makes the model's files.
    """
    settings = settings_here()
    if service.url or settings.url:
        findings = list(_findings_of(service))
    else:
        check_store(settings)
        findings = run_to_end(diagnose(settings))
    if unwatched := failures.summary(failures.failures(str(settings.data_dir))):
        findings.append(CheckResult(WARN, "background", unwatched))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{finding.status:4}  {finding.subject}: {finding.message}")
    if any(finding.status == FAIL for finding in findings):
        raise typer.Exit(1)


def _findings_of(service: ServiceOptions) -> Iterator[CheckResult]:
    """Yields what a service says of itself."""
    with service.connect() as client:
        route = client.admin.status  # a call by this name is one of the database to the tests of the house
        found = route()
    yield CheckResult(OK, "service", f"version {found.version}, answers by {found.mode} retrieval")
    yield CheckResult(OK, "database", f"Postgres {found.postgres}, pgvector {found.pgvector}, schema {found.revision}")
    for reason in found.reasons:
        yield CheckResult(WARN, "service", reason)


@store.command()
def backup(folder: Annotated[Path, typer.Argument(help="A new folder.")]) -> None:
    """Write a backup of the whole store into a new folder, while the service runs, and verify it.

    Changes: nothing that is stored.
    """
    settings = settings_here()
    check_store(settings)
    done = run_to_end(backups.back_up(settings, folder))
    typer.echo(f"{folder} holds a verified backup ({done.kind}, schema {done.revision})")


@store.command()
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
    if (archive is None) != (until is None):
        raise typer.BadParameter("--archive and --until go together: where the changes are, and the moment of the last")
    moment = None if until is None or until.tzinfo else until.replace(tzinfo=UTC)
    replay = None if archive is None or until is None else backups.Replay(archive=archive, until=moment or until)
    found = run_to_end(backups.restore(settings_here(), folder, replay))
    typer.echo(f"restored the backup of {found.began_at:%Y-%m-%d %H:%M:%S} UTC (schema {found.revision})")


@store.command()
def backfill() -> None:
    """Embed every memory that waits for a vector, and take statistics.

    Changes: stores vectors and lexical statistics, builds vector indexes.
    """

    async def work(services: Services) -> int:
        await services.provider.start()
        across = services.database.across
        done = await services.embedder.embed_all_pending(
            across, on_progress=lambda count: typer.echo(f"embedded {count}", err=True)
        )
        await services.statistics.refresh_all(across)
        await build_indexes(across)
        return done

    typer.echo(f"{with_services(work)} memories embedded")


@store.command()
def reembed(
    *,
    model: Annotated[str | None, typer.Option("--model", help="Its name; default PRIORS_EMBEDDING_MODEL.")] = None,
    dimension: Annotated[int | None, typer.Option("--dimension", help="Numbers a vector; default: as set.")] = None,
) -> None:
    """Move the store to another embedding model while the old one serves.

    Changes: gives every memory a vector of the new model, switches to it, drops the old vectors. Killed half-way,
    running it again goes on.
    """

    async def work(services: Services) -> int:
        settings = services.settings
        provider = provider_from(
            with_model(settings, model or settings.embedding_model, dimension or settings.embedding_dimension)
        )
        try:
            return await services.model_moves.reembed(
                services.database.across,
                provider,
                on_progress=lambda done, total: typer.echo(f"{done:,} of {total:,} embedded", err=True),
            )
        finally:
            await provider.close()

    done = with_services(work)
    typer.echo(f"{done:,} memories embedded; set PRIORS_EMBEDDING_MODEL to the new model")


@store.command("prepare-model")
def prepare_model() -> None:
    """Write and load the embedding model once.

    Changes: writes the model files into the data directory.
    """

    async def prepare() -> str:
        provider = provider_from(settings_here())
        await provider.start()
        await provider.close()
        return provider.model_id

    typer.echo(f"{run_to_end(prepare())} is ready")
