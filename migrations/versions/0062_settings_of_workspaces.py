"""Action types become a setting of their workspace, as roles are, and templates of contexts go: sections have texts.

Locks: `workspaces` for a moment. Templates are lost: read them with the version before, and send them as sections.
"""

from alembic import op

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None

breaks = "it reads the tables of action types and templates, and fails"
# One statement a workspace: a table of all nodes cannot be changed by what stands in a distributed one. The server
# loops, so that `store migrate --sql` can print it.
FILL = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN
        SELECT workspace_id, jsonb_object_agg(name, to_jsonb(examples)) AS own FROM action_types GROUP BY workspace_id
    LOOP
        UPDATE workspaces SET action_types = found.own WHERE workspace_id = found.workspace_id;
    END LOOP;
END $$
"""
FILL_BACK = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN
        SELECT w.workspace_id, own.key AS name, ARRAY(SELECT jsonb_array_elements_text(own.value)) AS examples
        FROM workspaces w CROSS JOIN jsonb_each(w.action_types) AS own
    LOOP
        INSERT INTO action_types (workspace_id, name, examples)
        VALUES (found.workspace_id, found.name, found.examples);
    END LOOP;
END $$
"""
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
    op.execute(FILL)
    op.execute("DROP TABLE action_types")
    op.execute("DROP TABLE context_templates")


def downgrade() -> None:
    op.execute(ACTION_TYPES)
    op.execute(TEMPLATES)
    op.execute(FILL_BACK)
    op.execute("SELECT priors_secure('action_types')")
    op.execute("SELECT priors_secure('context_templates')")
    op.execute("ALTER TABLE workspaces DROP COLUMN action_types")
