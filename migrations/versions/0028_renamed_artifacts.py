"""The path that a renamed artifact has now.

Locks: `artifact_touches` for the time of a scan, because its check is made anew.
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def _allow(actions: str) -> None:
    op.execute("ALTER TABLE artifact_touches DROP CONSTRAINT artifact_touches_action_ck")
    op.execute(f"ALTER TABLE artifact_touches ADD CONSTRAINT artifact_touches_action_ck CHECK (action IN ({actions}))")


def upgrade() -> None:
    op.execute("ALTER TABLE artifact_touches ADD COLUMN renamed_to text NOT NULL DEFAULT ''")
    op.execute(
        "CREATE INDEX artifact_touches_renamed_ix ON artifact_touches (workspace_id, renamed_to) WHERE renamed_to <> ''"
    )
    _allow("'created', 'changed', 'deleted', 'renamed'")


def downgrade() -> None:
    op.execute("DELETE FROM artifact_touches WHERE action = 'renamed'")
    _allow("'created', 'changed', 'deleted'")
    op.execute("ALTER TABLE artifact_touches DROP COLUMN renamed_to")
