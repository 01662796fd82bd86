"""The audit log.

The service's role adds entries and reads those of its workspace. It can neither change nor delete one. The owner's role
deletes the expired ones.

Locks: nothing that readers or writers wait for; the table is new.
"""

from collections.abc import Iterator

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE audit (
    workspace_id bigint NOT NULL, entry_id uuid NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    who text NOT NULL, operation text NOT NULL, request_id text NOT NULL, key_id uuid, for_user text NOT NULL,
    action text NOT NULL, object text NOT NULL, count bigint NOT NULL, ids text[] NOT NULL,
    ids_hash bytea, before bytea, after bytea,
    CONSTRAINT audit_pk PRIMARY KEY (workspace_id, entry_id),
    CONSTRAINT audit_action_ck CHECK (action IN ('add', 'change', 'remove', 'export', 'erase'))
)
"""
INDEX = "CREATE INDEX audit_at_ix ON audit USING brin (at)"


def secured() -> Iterator[str]:
    """Yields the statements by which the service can only add and read; they may be repeated."""
    yield "SELECT priors_secure('audit')"
    yield "REVOKE UPDATE, DELETE, TRUNCATE ON audit FROM priors_service"


def upgrade() -> None:
    for statement in (TABLE, INDEX, *secured()):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE audit")
