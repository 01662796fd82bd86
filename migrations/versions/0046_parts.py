"""The vectors of the passages that answers show, beside each memory's vector.

Memories of several lines are queued for them; until a worker has embedded them, their passages are ranked by words and
by the memory's own vector.

Locks: `embeddings` with its partitions, exclusively, for a change in the catalogue. The queue is filled by one reading
of `memories`.
"""

from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

QUEUE = """
INSERT INTO pending_embeddings (workspace_id, memory_id, partial)
SELECT DISTINCT m.workspace_id, m.memory_id, true
FROM memories m JOIN embeddings e USING (workspace_id, memory_id)
WHERE m.valid_until IS NULL AND (position(E'\\n' IN btrim(m.body, E'\\n ')) > 0 OR length(m.body) > 600)
ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    op.execute("ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS parts bytea")
    # Numbers in half precision do not compress. Outside of the row, they leave a scan of the vectors as it is.
    op.execute("ALTER TABLE embeddings ALTER COLUMN parts SET STORAGE EXTERNAL")
    op.execute(QUEUE)


def downgrade() -> None:
    op.execute("ALTER TABLE embeddings DROP COLUMN IF EXISTS parts")
