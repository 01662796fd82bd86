"""Proposals of candidates: turns that may hold a lesson, which a person accepts or declines.

Locks: `cue_proposals` for the time of a scan, because its check is made anew; it has a row for each proposal.
"""

from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

CHANGES = "'merge', 'broaden', 'graduate', 'retire', 'stale', 'note', 'procedure'"


def _allow(changes: str) -> None:
    op.execute("ALTER TABLE cue_proposals DROP CONSTRAINT cue_proposals_change_ck")
    op.execute(f"ALTER TABLE cue_proposals ADD CONSTRAINT cue_proposals_change_ck CHECK (change IN ({changes}))")


def upgrade() -> None:
    _allow(f"{CHANGES}, 'candidate'")


def downgrade() -> None:
    op.execute("DELETE FROM cue_proposals WHERE change = 'candidate'")
    _allow(CHANGES)
