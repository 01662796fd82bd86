"""What a run's latest stable history showed, so that the next one continues it.

Locks: nothing; it adds a table.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "run_sections",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("recall_id", sa.UUID(), nullable=False),
        sa.Column("blocks", postgresql.JSONB(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="run_sections_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "run_id", name="run_sections_pk"),
    )


def downgrade() -> None:
    op.drop_table("run_sections")
