"""The indexes of the learning loop over `memories`, and the proof that its rows keep their new constraint.

Locks: nothing that readers or writers wait for. Each step stands by itself and can be taken again: a failure in the
middle leaves the revision before, and the next attempt goes on from there, over an index that was left half-built too.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

INDEXES = (
    ("memories_deleted_ix", ["workspace_id", "valid_until"], "retired_as IN ('deleted', 'quarantined')"),
    ("memories_low_ix", ["workspace_id", "memory_id"], "quality < 0 AND valid_until IS NULL"),
    ("memories_run_ix", ["workspace_id", "run_id"], "run_id IS NOT NULL"),
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE memories VALIDATE CONSTRAINT memories_retired_as_ck")
        for name, columns, condition in INDEXES:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.create_index(
                name, "memories", columns, postgresql_where=sa.text(condition), postgresql_concurrently=True
            )


def downgrade() -> None:
    with op.get_context().autocommit_block():
        for name, _, _ in INDEXES:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
