"""Which runs the effects of a workspace were estimated from, and when, also where they gave no effect.

Locks: none that matters, the table is new. Until the next hourly job, a workspace counts as never estimated.
"""

from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

ESTIMATES = """
CREATE TABLE effect_estimates (
    workspace_id bigint NOT NULL,
    ledger text NOT NULL,
    estimated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT effect_estimates_pk PRIMARY KEY (workspace_id),
    CONSTRAINT effect_estimates_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
)
"""


def upgrade() -> None:
    op.execute(ESTIMATES)
    op.execute("SELECT priors_secure('effect_estimates')")


def downgrade() -> None:
    op.execute("DROP TABLE effect_estimates")
