"""Which of the memories that a run was given came back in what it wrote, so that none is counted twice.

Locks: `recall_hits` for a moment; the default is kept in the catalogue, so no row is written.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("recall_hits", sa.Column("used", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    op.drop_column("recall_hits", "used")
