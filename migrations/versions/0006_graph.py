"""The graph: layouts of memories, and the place of each memory in them.

Locks: none that matters, both tables are new.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NOW = sa.text("now()")


def upgrade() -> None:
    _layouts()
    _points()


def downgrade() -> None:
    op.drop_table("graph_points")
    op.drop_table("graph_layouts")


def _layouts() -> None:
    op.create_table(
        "graph_layouts",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("node_limit", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("clusters", postgresql.JSONB(), nullable=False),
        sa.Column("computed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="graph_layouts_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "kind", "node_limit", name="graph_layouts_pk"),
    )
    op.create_index("graph_layouts_fingerprint_ix", "graph_layouts", ["workspace_id", "fingerprint"])


def _points() -> None:
    op.create_table(
        "graph_points",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("node_limit", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("x", sa.Double(), nullable=False),
        sa.Column("y", sa.Double(), nullable=False),
        sa.Column("cluster", sa.SmallInteger(), nullable=False),
        sa.Column("fitted", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "kind", "node_limit"],
            ["graph_layouts.workspace_id", "graph_layouts.kind", "graph_layouts.node_limit"],
            name="graph_points_graph_layouts_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "kind", "node_limit", "memory_id", name="graph_points_pk"),
    )
