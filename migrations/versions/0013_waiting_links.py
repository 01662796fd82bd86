"""Everything that is stored waits to be linked, so that a worker links it as it links what comes later.

Locks: nothing for long; it reads `lexical` and `embeddings`, and each memory that is listed cannot be destroyed before
the list is whole.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "INSERT INTO pending_links (workspace_id, memory_id, step) SELECT workspace_id, memory_id, 'words' FROM lexical"
        " ON CONFLICT DO NOTHING"
    )
    op.execute(
        "INSERT INTO pending_links (workspace_id, memory_id, step) SELECT e.workspace_id, e.memory_id, 'vectors'"
        " FROM embeddings e JOIN embedding_models m USING (model_id) WHERE m.active ON CONFLICT DO NOTHING"
    )


def downgrade() -> None:
    """The list goes with its table."""
