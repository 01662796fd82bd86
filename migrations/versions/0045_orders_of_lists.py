"""Indexes for lists sorted by quality, by score and by moment. They sorted all memories: 17 s for three million.

The index of quality holds rated memories alone, and that of scores scored ones: in these lists the others follow in the
order of their ids. The index of quality replaces that of memories that were rated down, and the index of moments
replaces one that no statement used.

Locks: nothing; the indexes are built CONCURRENTLY, and those that they replace are dropped when they serve.
"""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

MOMENT, QUALITY, SCORE = "memories_moment_ix", "memories_quality_ix", "memories_score_ix"
OCCURRED, LOW = "memories_occurred_ix", "memories_low_ix"
HAPPENED = "(CASE WHEN occurred_at IS NULL THEN created_at ELSE occurred_at END)"


def _build(name: str, columns: list[str], where: str) -> None:
    # What was cut off leaves an index that nothing uses.
    _drop(name)
    expressions = [sa.text(column) for column in columns]
    op.create_index(name, "memories", expressions, postgresql_where=sa.text(where), postgresql_concurrently=True)


def _drop(name: str) -> None:
    op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def upgrade() -> None:
    with op.get_context().autocommit_block():
        _build(MOMENT, ["workspace_id", HAPPENED, "memory_id"], "valid_until IS NULL")
        _build(QUALITY, ["workspace_id", "quality", "memory_id"], "quality <> 0 AND valid_until IS NULL")
        _build(SCORE, ["workspace_id", "final_score", "memory_id"], "final_score IS NOT NULL AND valid_until IS NULL")
        _drop(OCCURRED)
        _drop(LOW)


def downgrade() -> None:
    with op.get_context().autocommit_block():
        _build(OCCURRED, ["workspace_id", "occurred_at"], "occurred_at IS NOT NULL")
        _build(LOW, ["workspace_id", "memory_id"], "quality < 0 AND valid_until IS NULL")
        for name in (MOMENT, QUALITY, SCORE):
            _drop(name)
