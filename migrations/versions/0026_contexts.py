"""Contexts that agents were given, and the templates of workspaces.

Locks: nothing that readers or writers wait for; the tables are new.
"""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

TABLES = {
    "contexts": """
CREATE TABLE contexts (
    workspace_id bigint NOT NULL, context_id uuid NOT NULL, run_id text, session text, agent text, model text NOT NULL,
    format text NOT NULL, budget integer NOT NULL, tokens integer NOT NULL, prefix text NOT NULL,
    document json NOT NULL, took_ms real NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT contexts_pk PRIMARY KEY (workspace_id, context_id),
    CONSTRAINT contexts_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id)
)
""",
    "context_templates": """
CREATE TABLE context_templates (
    workspace_id bigint NOT NULL, name text NOT NULL, content text NOT NULL, label text NOT NULL, mode text NOT NULL,
    priority text NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT context_templates_pk PRIMARY KEY (workspace_id, name),
    CONSTRAINT context_templates_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id),
    CONSTRAINT context_templates_mode_ck CHECK (mode IN ('hierarchical', 'constraint')),
    CONSTRAINT context_templates_priority_ck CHECK (priority IN ('critical', 'high', 'medium', 'low'))
)
""",
}
INDEX = "CREATE INDEX contexts_run_ix ON contexts (workspace_id, run_id, context_id) WHERE run_id IS NOT NULL"


def upgrade() -> None:
    for statement in (*TABLES.values(), INDEX):
        op.execute(statement)
    for table in TABLES:
        op.execute(f"SELECT priors_secure('{table}')")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.execute(f"DROP TABLE {table}")
