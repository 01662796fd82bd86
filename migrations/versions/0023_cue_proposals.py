"""Changes to cues that were proposed, with a person's decision on each.

Locks: nothing that readers or writers wait for; the table is new.
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE cue_proposals (
    workspace_id bigint NOT NULL, proposal_id uuid NOT NULL, change text NOT NULL, key text NOT NULL,
    cue_ids uuid[] NOT NULL, target_id uuid, relation text NOT NULL, reason text NOT NULL,
    state text NOT NULL DEFAULT 'open', before jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(), decided_at timestamptz,
    CONSTRAINT cue_proposals_pk PRIMARY KEY (workspace_id, proposal_id),
    CONSTRAINT cue_proposals_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id),
    CONSTRAINT cue_proposals_key_uq UNIQUE (workspace_id, change, key),
    CONSTRAINT cue_proposals_change_ck CHECK (change IN ('merge', 'broaden', 'graduate', 'retire', 'stale', 'note')),
    CONSTRAINT cue_proposals_state_ck CHECK (state IN ('open', 'accepted', 'declined', 'undone'))
)
"""


def upgrade() -> None:
    op.execute(TABLE)
    op.execute("SELECT priors_secure('cue_proposals')")


def downgrade() -> None:
    op.execute("DROP TABLE cue_proposals")
