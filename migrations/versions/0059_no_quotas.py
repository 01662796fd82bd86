"""Quotas of workspaces go.

Locks: nothing that is in use. The limits are lost; no memory is.
"""

from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

breaks = "it asks for quotas at each write, and fails"
TABLE = """
CREATE TABLE quotas (
    workspace_id bigint NOT NULL,
    memories bigint,
    used_memories bigint NOT NULL DEFAULT 0,
    counted_at timestamptz,
    CONSTRAINT quotas_pk PRIMARY KEY (workspace_id),
    CONSTRAINT quotas_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT quotas_limits_ck CHECK (memories >= 0)
)
"""


def upgrade() -> None:
    op.execute("DROP TABLE quotas")


def downgrade() -> None:
    op.execute(TABLE)
    op.execute("SELECT priors_secure('quotas')")
