"""The id that a turn has in its log, by which it is found again when the log has grown or changed.

Locks: `messages` for a moment. Stored turns have no id; they get one when their log is read again.
"""

from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE messages ADD COLUMN message_id text NOT NULL DEFAULT ''")


def downgrade() -> None:
    op.execute("ALTER TABLE messages DROP COLUMN message_id")
