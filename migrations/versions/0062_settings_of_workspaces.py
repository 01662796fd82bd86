"""Action types become a setting of their workspace, as roles are, and templates of contexts go: sections have texts.

Locks: `workspaces` for a moment. Templates are lost: read them with the version before, and send them as sections.
"""

import json

from alembic import op
from sqlalchemy import text

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None

breaks = "it reads the tables of action types and templates, and fails"
# One statement a workspace: a table of all nodes cannot be changed by what stands in a distributed one.
SET = "UPDATE workspaces SET action_types = CAST(:own AS jsonb) WHERE workspace_id = :workspace_id"
OWN = """
SELECT workspace_id, jsonb_object_agg(name, to_jsonb(examples)) AS own FROM action_types GROUP BY workspace_id
"""
ADD = "INSERT INTO action_types (workspace_id, name, examples) VALUES (:workspace_id, :name, :examples)"
ACTION_TYPES = """
CREATE TABLE action_types (
    workspace_id bigint NOT NULL,
    name text NOT NULL,
    examples text[] NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT action_types_pk PRIMARY KEY (workspace_id, name),
    CONSTRAINT action_types_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
)
"""
TEMPLATES = """
CREATE TABLE context_templates (
    workspace_id bigint NOT NULL,
    name text NOT NULL,
    content text NOT NULL,
    label text NOT NULL,
    mode text NOT NULL,
    priority text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT context_templates_pk PRIMARY KEY (workspace_id, name),
    CONSTRAINT context_templates_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT context_templates_mode_ck CHECK (mode IN ('hierarchical', 'constraint')),
    CONSTRAINT context_templates_priority_ck CHECK (priority IN ('critical', 'high', 'medium', 'low'))
)
"""


def upgrade() -> None:
    op.execute("ALTER TABLE workspaces ADD COLUMN action_types jsonb NOT NULL DEFAULT '{}'")
    connection = op.get_bind()
    for row in connection.execute(text(OWN)).all():
        connection.execute(text(SET), {"workspace_id": row.workspace_id, "own": json.dumps(row.own)})
    op.execute("DROP TABLE action_types")
    op.execute("DROP TABLE context_templates")


def downgrade() -> None:
    op.execute(ACTION_TYPES)
    op.execute(TEMPLATES)
    connection = op.get_bind()
    for row in connection.execute(text("SELECT workspace_id, action_types AS own FROM workspaces")).all():
        for name, examples in row.own.items():
            connection.execute(text(ADD), {"workspace_id": row.workspace_id, "name": name, "examples": examples})
    op.execute("SELECT priors_secure('action_types')")
    op.execute("SELECT priors_secure('context_templates')")
    op.execute("ALTER TABLE workspaces DROP COLUMN action_types")
