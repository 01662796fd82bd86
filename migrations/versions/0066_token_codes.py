"""A vector keeps codes of the words of its text, with which those of a request are compared.

The codes of stored memories are made in the background: the next start queues them. Until then an answer estimates how
well their passages speak of a request's words. A version before it takes these from the queue without making codes; the
start after that queues them again.

Locks: the vectors for a moment.
"""

from alembic import op

revision = "0066"
down_revision = "0065"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE embeddings ADD COLUMN tokens bytea STORAGE EXTERNAL")


def downgrade() -> None:
    op.execute("ALTER TABLE embeddings DROP COLUMN tokens")
