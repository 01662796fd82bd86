"""The number of a recall's hits, and an index of the recalls that found nothing.

Locks: `recalls`, exclusively, for a change in the catalogue. The numbers are written and the index is built
(CONCURRENTLY, over one that was left half-built) outside its transaction, so nobody waits for them. A recall that an
older server logs meanwhile has the number 0.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

NAME = "recalls_empty_ix"
COUNT = """
UPDATE recalls r SET hits = found.hits
FROM (SELECT workspace_id, recall_id, count(*) AS hits FROM recall_hits GROUP BY 1, 2) AS found
WHERE found.workspace_id = r.workspace_id AND found.recall_id = r.recall_id
"""


def upgrade() -> None:
    op.execute("ALTER TABLE recalls ADD COLUMN IF NOT EXISTS hits smallint NOT NULL DEFAULT 0")
    with op.get_context().autocommit_block():
        op.execute(COUNT)
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
        op.create_index(
            NAME, "recalls", ["workspace_id", "recall_id"], postgresql_where=sa.text("hits = 0"),
            postgresql_concurrently=True,
        )  # fmt: skip


def downgrade() -> None:
    op.execute("ALTER TABLE recalls DROP COLUMN IF EXISTS hits")
