"""Every workspace ranks by the same weights: fits of a workspace's own go.

Locks: `workspaces` for a moment. Weights that were fitted are lost; a workspace ranks by those of all from then on.
"""

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

breaks = "reads the weights of a workspace, and fails"


def upgrade() -> None:
    op.execute("ALTER TABLE workspaces DROP COLUMN ranking")


def downgrade() -> None:
    op.execute("ALTER TABLE workspaces ADD COLUMN ranking jsonb NOT NULL DEFAULT '{}'")
