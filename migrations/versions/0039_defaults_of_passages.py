"""Defaults for a vector's passage and its start, so that a service of the version before 0037 can store vectors.

Locks: `embeddings` with its partitions, exclusively, for a change in the catalogue.
"""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in ("passage", "starts"):
        op.execute(f"ALTER TABLE embeddings ALTER COLUMN {column} SET DEFAULT 0")


def downgrade() -> None:
    for column in ("passage", "starts"):
        op.execute(f"ALTER TABLE embeddings ALTER COLUMN {column} DROP DEFAULT")
