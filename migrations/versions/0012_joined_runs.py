"""The runs whose observations a memory holds are found by the memory.

Locks: nothing for long; the index is built CONCURRENTLY.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # What was cut off leaves an index that nothing uses.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS compressions_memory_ix")
        op.create_index(
            "compressions_memory_ix",
            "compressions",
            ["workspace_id", "memory_id"],
            postgresql_where=sa.text("memory_id IS NOT NULL"),
            postgresql_concurrently=True,
        )


def downgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS compressions_memory_ix")
