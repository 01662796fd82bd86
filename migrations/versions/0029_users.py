"""Users of a workspace: whose a memory, a source, a run, a recall, an activation, a context and a proposal is.

Rows that stand in the tables belong to nobody. Uniqueness counts for each user: two users may say the same. The id of
a session alone stays unique in the workspace. The policy `own_user` leaves a session of the service the rows of the
users that it names (docs/adr/0029).

Locks: seven tables, exclusively, for a change in the catalogue. The indexes are built CONCURRENTLY, outside of its
transaction, over those that were left half-built; the ones they replace are dropped when they serve.
"""

from collections.abc import Iterable, Iterator

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

TABLES = ("memories", "sources", "runs", "compressions", "recalls", "activations", "contexts", "cue_proposals")
OWN_USER = "COALESCE(current_setting('priors.user'::text, true), ''::text)"
"""The user for whom the session writes; empty for nobody."""
SEES = "coalesce(current_setting('priors.sees', true), '')"
"""Whose rows the session sees: `own` those of its user, `shared` also nobody's; empty for all."""
SEEN = f"user_id = '' AND {SEES} <> 'own' OR user_id = {OWN_USER} OR {SEES} = ''"

LIVE = {"memories": "valid_until IS NULL", "sources": "retired_at IS NULL"}
IDENTITY = {
    "memories_live_identity_uq": ("memories", ["content_hash", "kind", "source_id", "ordinal"]),
    "sources_live_uri_uq": ("sources", ["kind", "uri"]),
}
USERS = ("memories", "sources", "recalls", "activations", "contexts")
"""Tables whose rows are listed or deleted by their user."""

TAGGED = """
CREATE OR REPLACE FUNCTION priors_tagged(wanted text[], most integer)
RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 200 AS $$
DECLARE own constant bigint := nullif(current_setting('priors.workspace_id', true), '')::bigint;
BEGIN
    RETURN QUERY SELECT m.memory_id FROM memories m
        WHERE m.workspace_id = own AND m.valid_until IS NULL AND m.tags @> wanted {seen} LIMIT most;
END $$
"""


def secured(tables: Iterable[str] = TABLES) -> Iterator[str]:
    """Yields the statements that leave the service the rows of a session's users; they may be repeated."""
    for table in tables:
        yield f"DROP POLICY IF EXISTS own_user ON {table}"
        yield f"CREATE POLICY own_user ON {table} AS RESTRICTIVE TO priors_service USING ({SEEN})"


def _rebuild(name: str, *, of_users: bool) -> None:
    """Builds a unique index anew under another name, and gives it its name when it serves."""
    table, columns = IDENTITY[name]
    users = ["user_id"] if of_users else []
    op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}_new")
    op.create_index(
        f"{name}_new",
        table,
        ["workspace_id", *columns, *users],
        unique=True,
        postgresql_where=sa.text(LIVE[table]),
        postgresql_nulls_not_distinct=table == "memories",
        postgresql_concurrently=True,
    )
    op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    op.execute(f"ALTER INDEX {name}_new RENAME TO {name}")


def _add_index(name: str, table: str, columns: list[str], condition: str, *, unique: bool = False) -> None:
    op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    op.create_index(
        name,
        table,
        ["workspace_id", *columns],
        unique=unique,
        postgresql_where=sa.text(condition),
        postgresql_concurrently=True,
    )


def upgrade() -> None:
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS user_id text NOT NULL DEFAULT ''")
        op.execute(f"ALTER TABLE {table} ALTER COLUMN user_id SET DEFAULT {OWN_USER}")
    op.execute("ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS has_users boolean NOT NULL DEFAULT false")
    for statement in secured():
        op.execute(statement)
    op.execute(TAGGED.format(seen=f"AND ({SEEN})"))
    with op.get_context().autocommit_block():
        for name in IDENTITY:
            _rebuild(name, of_users=True)
        _add_index("sources_session_uq", "sources", ["uri"], "kind = 'session' AND retired_at IS NULL", unique=True)
        _add_index("memories_live_user_ix", "memories", ["user_id"], LIVE["memories"])
        for table in USERS:
            _add_index(f"{table}_user_ix", table, ["user_id"], "user_id <> ''")


def downgrade() -> None:
    """Fails where users hold the same text or source: delete one of them first, or the users."""
    with op.get_context().autocommit_block():
        for name in IDENTITY:
            _rebuild(name, of_users=False)
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS sources_session_uq")
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS memories_live_user_ix")
    op.execute(TAGGED.format(seen=""))
    for table in TABLES:
        op.execute(f"DROP POLICY IF EXISTS own_user ON {table}")
        op.execute(f"ALTER TABLE {table} DROP COLUMN IF EXISTS user_id")
    op.execute("ALTER TABLE workspaces DROP COLUMN IF EXISTS has_users")
