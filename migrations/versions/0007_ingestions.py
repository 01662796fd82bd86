"""The log of ingestions, each with the outcome of its files.

Locks: nothing; it adds a table.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ingestions",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("ingestion_id", sa.UUID(), nullable=False),
        sa.Column("seconds", sa.REAL(), nullable=False),
        sa.Column("counts", postgresql.JSONB(), nullable=False),
        sa.Column("outcomes", postgresql.JSONB(), nullable=False),
        sa.Column("degraded", sa.Text(), server_default="", nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="ingestions_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "ingestion_id", name="ingestions_pk"),
    )


def downgrade() -> None:
    op.drop_table("ingestions")
