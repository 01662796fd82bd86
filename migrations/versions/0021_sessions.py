"""Sessions, their messages, and the artifacts that they created or changed.

Locks: `workspaces`, `sources` and `memories` for the time of a change in the catalogue; no row is read or written.
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TABLES = {
    "sessions": """
CREATE TABLE sessions (
    workspace_id bigint NOT NULL, source_id uuid NOT NULL, format text NOT NULL, path text NOT NULL DEFAULT '',
    log_hash bytea, extracted bytea, started_at timestamptz, ended_at timestamptz, deleted_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT sessions_pk PRIMARY KEY (workspace_id, source_id),
    CONSTRAINT sessions_sources_fk FOREIGN KEY (workspace_id, source_id)
        REFERENCES sources (workspace_id, source_id) ON DELETE CASCADE
)
""",
    "messages": """
CREATE TABLE messages (
    workspace_id bigint NOT NULL, memory_id uuid NOT NULL, role text NOT NULL, spoken text,
    tools jsonb NOT NULL DEFAULT '[]', digest bytea NOT NULL,
    CONSTRAINT messages_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT messages_memories_fk FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memories (workspace_id, memory_id) ON DELETE CASCADE,
    CONSTRAINT messages_role_ck CHECK (role IN ('user', 'assistant', 'tool', 'system'))
)
""",
    "artifacts": """
CREATE TABLE artifacts (
    workspace_id bigint NOT NULL, artifact_id uuid NOT NULL, path text NOT NULL, symbol text NOT NULL DEFAULT '',
    CONSTRAINT artifacts_pk PRIMARY KEY (workspace_id, artifact_id),
    CONSTRAINT artifacts_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id),
    CONSTRAINT artifacts_path_uq UNIQUE (workspace_id, path, symbol)
)
""",
    "artifact_touches": """
CREATE TABLE artifact_touches (
    workspace_id bigint NOT NULL, artifact_id uuid NOT NULL, memory_id uuid NOT NULL, action text NOT NULL,
    CONSTRAINT artifact_touches_pk PRIMARY KEY (workspace_id, artifact_id, memory_id, action),
    CONSTRAINT artifact_touches_artifacts_fk FOREIGN KEY (workspace_id, artifact_id)
        REFERENCES artifacts (workspace_id, artifact_id) ON DELETE CASCADE,
    CONSTRAINT artifact_touches_memories_fk FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memories (workspace_id, memory_id) ON DELETE CASCADE,
    CONSTRAINT artifact_touches_action_ck CHECK (action IN ('created', 'changed', 'deleted'))
)
""",
}
INDEXES = (
    "CREATE INDEX sessions_path_ix ON sessions (workspace_id, path) WHERE path <> ''",
    "CREATE INDEX sessions_started_ix ON sessions (workspace_id, started_at, source_id)",
    "CREATE INDEX artifact_touches_memory_ix ON artifact_touches (workspace_id, memory_id)",
)


def upgrade() -> None:
    for statement in (*TABLES.values(), *INDEXES):
        op.execute(statement)
    for table in TABLES:
        op.execute(f"SELECT priors_secure('{table}')")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.execute(f"DROP TABLE {table}")
