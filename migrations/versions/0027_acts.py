"""The acts of sessions, of which procedures are mined, and proposals of procedures.

Locks: `cue_proposals` for the time of a scan, because its check is made anew; it has a row for each proposal.
"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE session_acts (
    workspace_id bigint NOT NULL, act text NOT NULL, source_id uuid NOT NULL, places integer[] NOT NULL,
    CONSTRAINT session_acts_pk PRIMARY KEY (workspace_id, act, source_id),
    CONSTRAINT session_acts_sources_fk FOREIGN KEY (workspace_id, source_id)
        REFERENCES sources (workspace_id, source_id) ON DELETE CASCADE
)
"""
CHANGES = "'merge', 'broaden', 'graduate', 'retire', 'stale', 'note'"


def _allow(changes: str) -> None:
    op.execute("ALTER TABLE cue_proposals DROP CONSTRAINT cue_proposals_change_ck")
    op.execute(f"ALTER TABLE cue_proposals ADD CONSTRAINT cue_proposals_change_ck CHECK (change IN ({changes}))")


def upgrade() -> None:
    op.execute(TABLE)
    op.execute("CREATE INDEX session_acts_source_ix ON session_acts (workspace_id, source_id)")
    op.execute("CREATE INDEX cues_mined_ix ON cues (workspace_id, cue_kind) WHERE origin = 'proposed'")
    op.execute("SELECT priors_secure('session_acts')")
    _allow(f"{CHANGES}, 'procedure'")


def downgrade() -> None:
    op.execute("DELETE FROM cue_proposals WHERE change = 'procedure'")
    _allow(CHANGES)
    op.execute("DROP INDEX cues_mined_ix")
    op.execute("DROP TABLE session_acts")
