"""Keeps the stages of a run in the order in which they were sent: `json` keeps the order of keys, `jsonb` sorts them.

Stages that are stored already stay in the order of `jsonb`.

Locks: `runs`, exclusively, while Postgres writes the table anew.
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _change("json")


def downgrade() -> None:
    _change("jsonb")


def _change(kind: str) -> None:
    op.execute("ALTER TABLE runs ALTER COLUMN stages DROP DEFAULT")
    op.execute(f"ALTER TABLE runs ALTER COLUMN stages TYPE {kind} USING stages::text::{kind}")
    op.execute("ALTER TABLE runs ALTER COLUMN stages SET DEFAULT '{}'")
