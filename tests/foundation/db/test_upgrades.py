"""A migration does not break the version before it: what is new has a default, and what is old stays for a version.

A migration that must break it has a `breaks`, which says how, and docs/how-to/deployment.md lists it.
"""

from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from app.foundation.db import migrations
from app.foundation.db.database import Database
from app.foundation.db.migrations import configuration, head, oldest_served, state
from app.foundation.db.pool import libpq_url

DOCUMENT = Path(__file__).parents[3] / "docs" / "how-to" / "deployment.md"
SCRIPTS = ScriptDirectory.from_config(configuration())
BASELINE = SCRIPTS.get_base()
"""The revision after which the rule holds."""
REVISIONS = [script.revision for script in SCRIPTS.iterate_revisions("head", BASELINE)][::-1]
OURS = "relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v')"
OF_OURS = f"IN (SELECT oid FROM pg_class WHERE {OURS})"
COLUMNS = f"SELECT attrelid::regclass || '.' || attname, {{}} FROM pg_attribute WHERE attrelid {OF_OURS} AND attnum > 0"
QUERIES = {
    "table": f"SELECT relname, '' FROM pg_class WHERE {OURS}",
    "column": COLUMNS.format("format_type(atttypid, atttypmod)") + " AND NOT attisdropped",
    "required column": COLUMNS.format("''")
    + " AND NOT attisdropped AND attnotnull AND NOT atthasdef AND attidentity = ''",
    "key": f"""
        SELECT indrelid::regclass || regexp_replace(pg_get_indexdef(indexrelid), '.* USING', ''), '' FROM pg_index
        WHERE indisunique AND indrelid {OF_OURS}""",
    "constraint": f"""
        SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE contype IN ('c', 'f', 'u', 'x') AND conrelid {OF_OURS}""",
    "function": """
        SELECT oid::regprocedure::text, pg_get_function_result(oid) FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'priors%'""",
}
Schema = dict[str, dict[str, str]]


def schema(connection: psycopg.Connection) -> Schema:
    return {kind: dict(connection.execute(query).fetchall()) for kind, query in QUERIES.items()}


def schema_at(url: str) -> Schema:
    with psycopg.connect(libpq_url(url)) as connection:
        return schema(connection)


def breaking(before: Schema, after: Schema) -> set[str]:
    """Names what the version before may stumble over: what is gone or changed, and what is newly demanded."""
    gone = {
        f"{'gone' if name not in after[kind] else 'changed'}: {kind} {name}"
        for kind in ("table", "column", "key", "function")
        for name, detail in before[kind].items()
        if after[kind].get(name) != detail
    }
    demanded = {
        f"new: {kind} {name}"
        for kind in ("required column", "constraint")
        for name, detail in after[kind].items()
        if before[kind].get(name) != detail and name.split(".")[0] in before["table"]
    }
    return gone | demanded


@pytest.mark.test_all("migrations")
def test_no_migration_breaks_the_version_before_without_a_note(empty_database_url: str) -> None:
    config = configuration(empty_database_url)
    command.upgrade(config, str(BASELINE))
    before = schema_at(empty_database_url)
    for revision in REVISIONS:
        command.upgrade(config, revision)
        after = schema_at(empty_database_url)
        found = breaking(before, after)
        noted = getattr(SCRIPTS.get_revision(revision).module, "breaks", "")
        assert noted or not found, f"{revision} breaks the version before: mend it, or say so in `breaks`: {found}"
        assert not noted or f"| {revision} |" in DOCUMENT.read_text(), f"list {revision} in {DOCUMENT.name}"
        before = after


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("ALTER TABLE runs ADD COLUMN extra text NOT NULL DEFAULT ''", set()),
        ("CREATE TABLE extra (a int NOT NULL)", set()),
        ("ALTER TABLE runs ADD COLUMN extra text NOT NULL", {"new: required column runs.extra"}),
        ("ALTER TABLE runs ALTER COLUMN created_at DROP DEFAULT", {"new: required column runs.created_at"}),
        ("ALTER TABLE effects RENAME TO things", {"gone: table effects"}),
        ("ALTER TABLE runs RENAME COLUMN task TO job", {"gone: column runs.task"}),
        ("ALTER TABLE runs ALTER COLUMN task TYPE varchar(9)", {"changed: column runs.task"}),
        ("ALTER TABLE runs ADD CONSTRAINT short CHECK (length(task) < 9)", {"new: constraint runs.short"}),
        ("DROP FUNCTION priors_keys_exist", {"gone: function priors_keys_exist()"}),
        ("ALTER TABLE runs DROP CONSTRAINT runs_pk CASCADE", {"gone: key runs btree (workspace_id, run_id)"}),
    ],
)
def test_what_breaks_the_version_before_is_found(own_database_url: str, change: str, found: set[str]) -> None:
    with psycopg.connect(libpq_url(own_database_url)) as connection:
        before = schema(connection)
        connection.execute(change)
        named = breaking(before, schema(connection))
        connection.rollback()
    assert named >= found
    assert bool(named) == bool(found)


async def test_a_newer_schema_serves_the_versions_that_it_names(own_database_url: str) -> None:
    assert oldest_served("0049") == BASELINE
    assert oldest_served(head()) == "0068", "the newest migration that has `breaks`"
    database = Database(own_database_url, pool_size=1)
    try:
        assert await _mend(database, own_database_url, "9999", oldest=head()) == ""
        assert "upgrade Priors" in await _mend(database, own_database_url, "9999", oldest="9998")
        assert "run `priors store migrate`" in await _mend(database, own_database_url, "0048", oldest="0001")
    finally:
        await database.close()


async def _mend(database: Database, url: str, revision: str, *, oldest: str) -> str:
    with psycopg.connect(libpq_url(url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", [revision])
        connection.execute(f"COMMENT ON TABLE alembic_version IS '{oldest}'")
    return (await state(database)).mend


def test_migrating_stores_the_oldest_version_that_is_served(own_database_url: str) -> None:
    with psycopg.connect(libpq_url(own_database_url)) as connection:
        told = connection.execute("SELECT obj_description('alembic_version'::regclass)").fetchone()
    assert told == (oldest_served(head()),)


def test_a_migration_comes_with_its_note_or_not_at_all(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(revision: str) -> str:
        raise KeyboardInterrupt(revision)

    monkeypatch.setattr(migrations, "oldest_served", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command.upgrade(configuration(empty_database_url), "head")
    with psycopg.connect(libpq_url(empty_database_url)) as connection:
        assert connection.execute("SELECT to_regclass('memories'), to_regclass('alembic_version')").fetchone() in (
            (None, None),
            (None, "alembic_version"),
        )
