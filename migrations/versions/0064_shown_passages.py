"""The log of a history says which passages of a memory it showed, so that a run reads as what its agent was told.

Locks: the table of hits for a moment.
"""

from alembic import op

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE recall_hits ADD COLUMN shown integer[]")


def downgrade() -> None:
    op.execute("ALTER TABLE recall_hits DROP COLUMN shown")
