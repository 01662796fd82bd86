"""The weights of a workspace's own ranking.

Locks: `workspaces` for a moment, because the new column has a constant default.
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE workspaces ADD COLUMN ranking jsonb NOT NULL DEFAULT '{}'")


def downgrade() -> None:
    op.execute("ALTER TABLE workspaces DROP COLUMN ranking")
