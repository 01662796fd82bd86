"""Since when an embedding model is no longer served: what a move has left behind is told from what it goes on with.

Locks: `embedding_models`, a table of a few rows, for the moment in which a column is added. Writers of vectors, which
hold its rows, are waited for, as long as `lock_timeout` allows.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("embedding_models", sa.Column("retiring_since", sa.DateTime(timezone=True), nullable=True))
    op.execute(
        "ALTER TABLE embedding_models ADD CONSTRAINT embedding_models_retiring_since_ck"
        " CHECK (NOT active OR retiring_since IS NULL)"
    )


def downgrade() -> None:
    op.drop_constraint("embedding_models_retiring_since_ck", "embedding_models")
    op.drop_column("embedding_models", "retiring_since")
