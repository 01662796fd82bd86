"""Effects of memories are estimated on the final score alone: nothing read those on cost, tokens, time and rounds.

Effects are estimated anew within an hour, so none is kept: an earlier key allowed several rows of one memory.

Locks: the effects for a moment.
"""

from alembic import op

revision = "0068"
down_revision = "0067"
branch_labels = None
depends_on = None

breaks = "it stores and reads effects on other outcomes, and fails"


def upgrade() -> None:
    op.execute("DELETE FROM effects")
    op.execute("UPDATE workspaces SET effects_ledger = NULL WHERE effects_ledger IS NOT NULL")
    op.execute("ALTER TABLE effects DROP CONSTRAINT effects_pk, DROP COLUMN outcome")
    op.execute("ALTER TABLE effects ADD CONSTRAINT effects_pk PRIMARY KEY (workspace_id, memory_id)")


def downgrade() -> None:
    op.execute("ALTER TABLE effects DROP CONSTRAINT effects_pk, ADD COLUMN outcome text NOT NULL DEFAULT 'final_score'")
    op.execute("ALTER TABLE effects ALTER COLUMN outcome DROP DEFAULT")
    op.execute("ALTER TABLE effects ADD CONSTRAINT effects_pk PRIMARY KEY (workspace_id, outcome, memory_id, kind)")
