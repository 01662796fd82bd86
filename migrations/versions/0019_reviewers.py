"""The reviewer who gave a rating: each has one rating of a memory.

Locks: `feedback`, exclusively, for the time of a change in the catalogue; no row is read or written.
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE feedback ADD COLUMN IF NOT EXISTS reviewer text")


def downgrade() -> None:
    op.execute("ALTER TABLE feedback DROP COLUMN IF EXISTS reviewer")
