"""Items, JSON values by namespace and key, go. LangGraph's store keeps its values in notes from now on.

Locks: nothing that is in use. The values are lost, and the notes of their texts stay: to keep values, read them with
the version before (`store.search(())` of the LangGraph adapter) and put them again with this one.
"""

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

breaks = "it stores and reads items, and fails"
TABLE = """
CREATE TABLE items (
    workspace_id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    value json NOT NULL,
    memory_id uuid,
    ttl_minutes float8,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT items_pk PRIMARY KEY (workspace_id, user_id, namespace, key),
    CONSTRAINT items_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
)
"""


def upgrade() -> None:
    op.execute("DROP TABLE items")


def downgrade() -> None:
    op.execute(TABLE)
    op.execute("CREATE INDEX items_created_ix ON items (workspace_id, user_id, namespace, created_at, key)")
    op.execute("CREATE INDEX items_expires_ix ON items (workspace_id, expires_at) WHERE expires_at IS NOT NULL")
    op.execute("SELECT priors_secure('items')")
