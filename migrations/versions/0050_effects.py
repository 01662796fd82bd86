"""The ledger of recalls (withheld memories, logged probabilities), the estimated effects, and the setting to use them.

Locks: each table for a moment, as a column with a constant default rewrites nothing; `cue_proposals` while the new
check reads its rows, of which a workspace has a few hundred.
"""

from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
breaks = "Review meets proposals about harmful memories, which it does not know"

CHANGES = "'merge', 'broaden', 'graduate', 'retire', 'stale', 'note', 'procedure', 'candidate'"
EFFECTS = """
CREATE TABLE effects (
    workspace_id bigint NOT NULL,
    outcome text NOT NULL,
    memory_id uuid NOT NULL,
    kind text NOT NULL,
    estimate float8 NOT NULL,
    deviation float8 NOT NULL,
    low float8 NOT NULL,
    high float8 NOT NULL,
    harmful float8 NOT NULL,
    basis text NOT NULL,
    runs_with integer NOT NULL,
    runs_without integer NOT NULL,
    enough boolean NOT NULL,
    flagged boolean NOT NULL,
    influence real NOT NULL,
    estimated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT effects_pk PRIMARY KEY (workspace_id, outcome, memory_id, kind),
    CONSTRAINT effects_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT effects_basis_ck CHECK (basis IN ('experimental', 'calibrated', 'observational'))
)
"""


def _allow_changes(changes: str) -> None:
    op.execute("ALTER TABLE cue_proposals DROP CONSTRAINT cue_proposals_change_ck")
    op.execute(f"ALTER TABLE cue_proposals ADD CONSTRAINT cue_proposals_change_ck CHECK (change IN ({changes}))")


def upgrade() -> None:
    op.execute("ALTER TABLE workspaces ADD COLUMN uses_effects boolean NOT NULL DEFAULT false")
    op.execute("ALTER TABLE recalls ADD COLUMN withheld jsonb NOT NULL DEFAULT '[]'")
    op.execute("ALTER TABLE recall_hits ADD COLUMN propensity real")
    op.execute(EFFECTS)
    op.execute("SELECT priors_secure('effects')")
    _allow_changes(f"{CHANGES}, 'harmful'")


def downgrade() -> None:
    op.execute("DELETE FROM cue_proposals WHERE change = 'harmful'")
    _allow_changes(CHANGES)
    op.execute("DROP TABLE effects")
    op.execute("ALTER TABLE recall_hits DROP COLUMN propensity")
    op.execute("ALTER TABLE recalls DROP COLUMN withheld")
    op.execute("ALTER TABLE workspaces DROP COLUMN uses_effects")
