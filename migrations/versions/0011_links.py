"""Links between memories, the dictionary of titles they are found by, and the list of what waits to be linked.

Locks: `memories` against writers for the moment in which foreign keys to it are added to empty tables. The list is
filled by the revision after the next, when that lock is gone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NOW = sa.text("now()")


def upgrade() -> None:
    _links()
    _titles()
    _pending_links()


def downgrade() -> None:
    for table in ("pending_links", "titles", "links"):
        op.drop_table(table)


def _links() -> None:
    op.create_table(
        "links",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("from_id", sa.UUID(), nullable=False),
        sa.Column("to_id", sa.UUID(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("weight", sa.REAL(), server_default="1", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.CheckConstraint(
            "relation IN ('mentions', 'same_entity', 'similar', 'derived_from', 'supersedes')", name="links_relation_ck"
        ),
        sa.CheckConstraint("weight > 0 AND weight <= 1", name="links_weight_ck"),
        sa.CheckConstraint("from_id <> to_id", name="links_itself_ck"),
        sa.ForeignKeyConstraint(
            ["workspace_id", "from_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="links_from_fk",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "to_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="links_to_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "from_id", "relation", "to_id", name="links_pk"),
    )
    op.create_index(
        "links_to_ix", "links", ["workspace_id", "to_id", "relation", "from_id"], postgresql_include=["weight"]
    )


def _titles() -> None:
    op.create_table(
        "titles",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("common", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "memory_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="titles_memories_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "memory_id", name="titles_pk"),
    )
    op.create_index("titles_key_ix", "titles", ["workspace_id", "key"])


def _pending_links() -> None:
    op.create_table(
        "pending_links",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("asked", sa.Integer(), server_default="1", nullable=False),
        sa.CheckConstraint("step IN ('words', 'vectors')", name="pending_links_step_ck"),
        sa.ForeignKeyConstraint(
            ["workspace_id", "memory_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="pending_links_memories_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "memory_id", "step", name="pending_links_pk"),
    )
