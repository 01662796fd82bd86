"""The highest seed that samples were drawn with, after which a second request for samples goes on.

Locks: `compressions` for a moment, and its rows with samples, which are few. Up to now, a request for n samples drew
with seeds below n.
"""

from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE compressions ADD COLUMN last_seed integer NOT NULL DEFAULT 0")
    op.execute("UPDATE compressions SET last_seed = samples - 1 WHERE samples > 1")


def downgrade() -> None:
    op.execute("ALTER TABLE compressions DROP COLUMN last_seed")
