"""Items: JSON values under a namespace and a key.

Locks: nothing that readers or writers wait for; the table is new.
"""

from alembic import context, op

revision = "0034"
down_revision = "0032"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE items (
    workspace_id bigint NOT NULL, namespace text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
    value json NOT NULL, memory_id uuid, ttl_minutes double precision,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    user_id text NOT NULL DEFAULT COALESCE(current_setting('priors.user'::text, true), ''::text),
    CONSTRAINT items_pk PRIMARY KEY (workspace_id, user_id, namespace, key),
    CONSTRAINT items_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id)
)
"""
INDEXES = (
    "CREATE INDEX items_created_ix ON items (workspace_id, user_id, namespace, created_at, key)",
    "CREATE INDEX items_expires_ix ON items (workspace_id, expires_at) WHERE expires_at IS NOT NULL",
)


def upgrade() -> None:
    for statement in (TABLE, *INDEXES):
        op.execute(statement)
    op.execute("SELECT priors_secure('items')")
    users = context.script.get_revision("0029")
    assert users is not None, "it stands before"  # noqa: S101
    for statement in users.module.secured(["items"]):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE items")
