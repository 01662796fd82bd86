"""Alembic's entry point, for `priors migrate` and for plain `alembic` alike."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from sqlalchemy import Connection, create_engine, pool, text

from app.db.migrations import IS_UNSECURED, oldest_served
from app.db.pool import sqlalchemy_url
from app.db.tables import metadata
from app.settings import from_environment

ATTEMPT_SECONDS = 0.1
SECURITY, USERS, KEYS, AUDIT, LIMITS = "0016", "0029", "0032", "0038", "0044"
"""The revisions that make the roles with their objects, policies and grants, and those that narrow them."""
LOCK_TIMEOUT = "10s"
"""A migration that waits longer for a lock gives up: what queues behind it would wait too."""
IN_ORDER = "SET citus.multi_shard_modify_mode = 'sequential'"
"""Lets a migration change tables of workspaces and those that all nodes have. One Postgres ignores the setting."""


@contextmanager
def _database_url() -> Iterator[str]:
    given = context.config.attributes.get("url")
    settings = from_environment()
    if given or settings.database_url:
        yield given or settings.database_url
        return
    from app.postgres.embedded import EmbeddedPostgres  # noqa: PLC0415 - only where nothing names a database

    with EmbeddedPostgres(settings.data_dir) as server:
        yield server.start()


def _ours(_object: object, name: str | None, kind: str, *_: object) -> bool:
    """Partitions are made as models come, and the job tables are procrastinate's: neither is compared."""
    return not (kind == "table" and name is not None and name.startswith(("procrastinate_", "embeddings_")))


def _run(connection: Connection) -> None:
    # Two processes that start at once migrate one after the other; the second finds nothing to do.
    # Asked again and again: a statement that waits for the lock would be waited for by an index built CONCURRENTLY.
    while not connection.execute(text("SELECT pg_try_advisory_lock(hashtext('priors.migrations'))")).scalar_one():
        connection.commit()
        time.sleep(ATTEMPT_SECONDS)
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(IN_ORDER))
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_object=_ours,
        transaction_per_migration=True,
        on_version_apply=_tell_oldest_served,
    )
    with context.begin_transaction():
        context.run_migrations()
    if context.get_context().opts.get("destination_rev") is not None:
        _secure_again(connection)


def _tell_oldest_served(
    ctx: MigrationContext,
    step: MigrationInfo,  # noqa: ARG001 - Alembic names it
    heads: Collection[str],
    run_args: Mapping[str, object],  # noqa: ARG001 - the same
) -> None:
    """Stores the oldest revision whose version can use the schema, for services that do not know this revision.

    It is stored with the migration, in one transaction: no service sees one without the other.
    """
    for revision in heads:
        ctx.execute(f"COMMENT ON TABLE alembic_version IS '{oldest_served(revision)}'")


def _secure_again(connection: Connection) -> None:
    """Repeats what these revisions did, where a dump was restored on a server without the roles.

    All that named them is lost.
    """
    script = context.script.get_revision(SECURITY)
    at_head = context.get_context().get_current_revision() == context.get_head_revision()
    if script is not None and at_head and connection.execute(text(IS_UNSECURED)).scalar_one():
        later = [context.script.get_revision(revision) for revision in (KEYS, AUDIT, LIMITS)]
        users = context.script.get_revision(USERS)
        assert users is not None, "it stands before the head"  # noqa: S101
        of_users = [name for name, table in metadata.tables.items() if "user_id" in table.columns]
        for statement in (
            *script.module.repeated([*metadata.tables, "alembic_version"]),
            *users.module.secured(of_users),
            *(statement for each in later if each is not None for statement in each.module.secured()),
        ):
            connection.execute(text(statement))
    connection.commit()


def _print_sql() -> None:
    context.configure(
        dialect_name="postgresql",
        literal_binds=True,
        target_metadata=metadata,
        on_version_apply=_tell_oldest_served,
    )
    with context.begin_transaction():
        context.run_migrations()


def _online() -> None:
    with _database_url() as url:
        engine = create_engine(sqlalchemy_url(url), poolclass=pool.NullPool)
        with engine.connect() as connection:
            _run(connection)


if context.is_offline_mode():
    _print_sql()
else:
    _online()
