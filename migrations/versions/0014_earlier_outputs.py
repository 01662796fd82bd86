"""What a run said earlier, and how it was judged then, stays beside what it says now; one compresses at a time.

Locks: `compressions` and `runs` for the moment that new columns take; the indexes are built CONCURRENTLY. Going down
forgets what runs said earlier.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TASK = "md5(request ->> 'task')"
CURRENT, ALL = "compressions_current_ix", "compressions_run_ix"
NAMED = "run_id IS NOT NULL"


def _index(name: str, columns: list[str], *, unique: bool, where: str) -> None:
    # What was cut off leaves an index that nothing uses.
    op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    op.create_index(
        name,
        "compressions",
        [sa.text(column) for column in columns],
        unique=unique,
        postgresql_where=sa.text(where),
        postgresql_concurrently=True,
    )


def upgrade() -> None:
    # Committed before the index is built: what is added here must be there when that is tried again.
    for column in ("moved_on", "earlier"):
        op.execute(f"ALTER TABLE compressions ADD COLUMN IF NOT EXISTS {column} boolean NOT NULL DEFAULT false")
    op.execute("ALTER TABLE compressions ADD COLUMN IF NOT EXISTS maker uuid")
    op.execute("ALTER TABLE compressions ADD COLUMN IF NOT EXISTS made_until timestamptz")
    op.execute("ALTER TABLE runs ADD COLUMN IF NOT EXISTS output_replaced boolean NOT NULL DEFAULT false")
    with op.get_context().autocommit_block():
        _index(CURRENT, ["workspace_id", "run_id", TASK], unique=True, where=f"{NAMED} AND NOT earlier")
        _index(ALL, ["workspace_id", "run_id"], unique=False, where=NAMED)


def downgrade() -> None:
    op.execute("DELETE FROM compressions WHERE earlier")
    with op.get_context().autocommit_block():
        _index(ALL, ["workspace_id", "run_id", TASK], unique=True, where=NAMED)
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {CURRENT}")
    for column in ("made_until", "maker", "earlier", "moved_on"):
        op.execute(f"ALTER TABLE compressions DROP COLUMN IF EXISTS {column}")
    op.execute("ALTER TABLE runs DROP COLUMN IF EXISTS output_replaced")
