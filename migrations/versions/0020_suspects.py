"""The index of the memories that the injection scan suspects.

Locks: nothing that readers or writers wait for; the index is built CONCURRENTLY, over one that was left half-built too.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

NAME = "memories_suspect_ix"
CONDITION = """
valid_until IS NULL AND jsonb_path_exists(findings, '$[*].severity ? (@ == "suspect")') AND NOT released
"""


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
        op.create_index(
            NAME,
            "memories",
            ["workspace_id", "created_at"],
            postgresql_where=sa.text(CONDITION),
            postgresql_concurrently=True,
        )


def downgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
