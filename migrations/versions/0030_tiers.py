"""The tiers of memories with their accesses, the recalls that are still to be counted, and links of any relation.

Locks: `recalls` and `links`, exclusively, for changes in the catalogue. The index of `recalls` is built (CONCURRENTLY,
over one that was left half-built) and the check of `links` is made outside the transaction. The recalls of before are
counted afterwards, by a worker.
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE IF NOT EXISTS tiers (
    workspace_id bigint NOT NULL, memory_id uuid NOT NULL, tier text NOT NULL DEFAULT 'long_term',
    pinned boolean NOT NULL DEFAULT false, access_count integer NOT NULL DEFAULT 0, accessed_at timestamptz,
    visits real NOT NULL DEFAULT 0, run_id text, due_at timestamptz,
    CONSTRAINT tiers_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT tiers_memories_fk FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memories (workspace_id, memory_id) ON DELETE CASCADE,
    CONSTRAINT tiers_tier_ck CHECK (tier IN ('working', 'short_term', 'long_term'))
)
"""
INDEXES = (
    "CREATE INDEX IF NOT EXISTS tiers_due_ix ON tiers (workspace_id, due_at) WHERE due_at IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS tiers_tier_ix ON tiers (workspace_id, tier, memory_id) WHERE tier <> 'long_term'",
    "CREATE INDEX IF NOT EXISTS tiers_run_ix ON tiers (workspace_id, run_id) WHERE tier = 'working'",
)
NAME = "recalls_uncounted_ix"
KNOWN = "'mentions', 'same_entity', 'similar', 'derived_from', 'supersedes', 'same_task'"


CHECK = "links_links_relation_ck_ck"


def _allow(condition: str) -> None:
    op.execute(f"ALTER TABLE links DROP CONSTRAINT IF EXISTS {CHECK}")
    op.execute(f"ALTER TABLE links ADD CONSTRAINT {CHECK} CHECK ({condition}) NOT VALID")


def upgrade() -> None:
    op.execute("ALTER TABLE recalls ADD COLUMN IF NOT EXISTS counted boolean NOT NULL DEFAULT false")
    op.execute(TABLE)
    for index in INDEXES:
        op.execute(index)
    op.execute("SELECT priors_secure('tiers')")
    _allow("relation ~ '^[a-z][a-z0-9_]{0,39}$' AND relation <> 'next'")
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
        op.create_index(
            NAME, "recalls", ["workspace_id", "recall_id"], postgresql_where=sa.text("NOT counted"),
            postgresql_concurrently=True,
        )  # fmt: skip
        op.execute(f"ALTER TABLE links VALIDATE CONSTRAINT {CHECK}")


def downgrade() -> None:
    op.execute(f"DELETE FROM links WHERE relation NOT IN ({KNOWN})")  # noqa: S608 - constants
    _allow(f"relation IN ({KNOWN})")
    op.execute(f"ALTER TABLE links VALIDATE CONSTRAINT {CHECK}")
    op.execute("DROP TABLE IF EXISTS tiers")
    op.execute("ALTER TABLE recalls DROP COLUMN IF EXISTS counted")
