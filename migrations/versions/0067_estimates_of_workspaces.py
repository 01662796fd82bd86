"""The latest estimate of effects stands in the row of its workspace, and no longer in a table of its own.

Effects are estimated anew in an hour.

Locks: the workspaces for a moment.
"""

from alembic import op

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None

breaks = "its estimates of effects and its report on them fail"
TABLE = """
CREATE TABLE effect_estimates (
    workspace_id bigint NOT NULL,
    ledger text NOT NULL,
    estimated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT effect_estimates_pk PRIMARY KEY (workspace_id),
    CONSTRAINT effect_estimates_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
)
"""


def upgrade() -> None:
    op.execute("ALTER TABLE workspaces ADD COLUMN effects_ledger text, ADD COLUMN effects_at timestamptz")
    op.execute("DROP TABLE effect_estimates")


def downgrade() -> None:
    op.execute(TABLE)
    op.execute("SELECT priors_secure('effect_estimates')")
    op.execute("ALTER TABLE workspaces DROP COLUMN effects_ledger, DROP COLUMN effects_at")
