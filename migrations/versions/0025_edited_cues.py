"""The fields of a cue that people changed, and the lease of whoever makes cues of a session.

Locks: `cues` and `sessions` for the time of a change in the catalogue; no row is read or written.
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE cues ADD COLUMN edited text[] NOT NULL DEFAULT '{}'")
    op.execute("ALTER TABLE sessions ADD COLUMN maker uuid, ADD COLUMN made_until timestamptz")


def downgrade() -> None:
    op.execute("ALTER TABLE sessions DROP COLUMN maker, DROP COLUMN made_until")
    op.execute("ALTER TABLE cues DROP COLUMN edited")
