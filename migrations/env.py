"""Alembic's entry point, for `priors store migrate` and for plain `alembic` alike."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from sqlalchemy import Connection, create_engine, pool, text

from app.foundation.db.migrations import (
    IS_MIGRATED,
    IS_UNSECURED,
    LAST_BEFORE_BASELINE,
    REVISION,
    SCRIPTS,
    oldest_served,
)
from app.foundation.db.pool import sqlalchemy_url
from app.settings import from_environment

ATTEMPT_SECONDS = 0.1
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
    from app.foundation.postgres.embedded import EmbeddedPostgres  # noqa: PLC0415 - only where nothing names a database

    with EmbeddedPostgres(settings.data_dir) as server:
        yield server.start()


def _run(connection: Connection) -> None:
    # Two processes that start at once migrate one after the other; the second finds nothing to do.
    # Asked again and again: a statement that waits for the lock would be waited for by an index built CONCURRENTLY.
    while not connection.execute(text("SELECT pg_try_advisory_lock(hashtext('priors.migrations'))")).scalar_one():
        connection.commit()
        time.sleep(ATTEMPT_SECONDS)
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(IN_ORDER))
    connection.commit()
    _continue(connection)
    context.configure(
        connection=connection,
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


def _continue(connection: Connection) -> None:
    """Turns a store at the last revision of the development before 0.1.0 into one at the baseline."""
    if (
        connection.execute(text(IS_MIGRATED)).scalar_one()
        and connection.execute(text(REVISION)).scalar_one_or_none() == LAST_BEFORE_BASELINE
    ):
        connection.exec_driver_sql(_statements("from_0048.sql"))
    connection.commit()


def _secure_again(connection: Connection) -> None:
    """Repeats security.sql where a dump was restored on a server without the roles: all that named them is lost."""
    at_head = context.get_context().get_current_revision() == context.get_head_revision()
    if at_head and connection.execute(text(IS_UNSECURED)).scalar_one():
        connection.exec_driver_sql(_statements("security.sql"))
    connection.commit()


def _statements(name: str) -> str:
    return (SCRIPTS / name).read_text(encoding="utf-8").replace("%", "%%")


def _print_sql() -> None:
    context.configure(
        dialect_name="postgresql",
        dialect_opts={"paramstyle": "named"},  # the usual one doubles each %
        literal_binds=True,
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
