"""Cues with their evidence, the activations that showed them, and the action types of workspaces.

Locks: nothing that readers or writers wait for; the tables are new.
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TABLES = {
    "cues": """
CREATE TABLE cues (
    workspace_id bigint NOT NULL, memory_id uuid NOT NULL, cue_kind text NOT NULL, details jsonb NOT NULL DEFAULT '{}',
    confidence real NOT NULL, consequence real NOT NULL, scope text NOT NULL, quote text NOT NULL, trust text NOT NULL,
    origin text NOT NULL, state text NOT NULL, action_types text[] NOT NULL, files text[] NOT NULL,
    seen_on date[] NOT NULL, model text NOT NULL, vectors bytea, valid_from timestamptz NOT NULL,
    valid_until timestamptz, superseded_by uuid, disputed_by uuid[] NOT NULL DEFAULT '{}',
    fired integer NOT NULL DEFAULT 0, heeded integer NOT NULL DEFAULT 0, ignored integer NOT NULL DEFAULT 0,
    last_fired_at timestamptz, revision bigint NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT cues_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT cues_memories_fk FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memories (workspace_id, memory_id) ON DELETE CASCADE,
    CONSTRAINT cues_cue_kind_ck CHECK (cue_kind IN ('correction', 'preference', 'precedent', 'procedure', 'decision',
        'discovery', 'negative_result')),
    CONSTRAINT cues_confidence_ck CHECK (confidence BETWEEN 0 AND 1),
    CONSTRAINT cues_consequence_ck CHECK (consequence BETWEEN 0 AND 1),
    CONSTRAINT cues_scope_ck CHECK (scope IN ('project', 'user')),
    CONSTRAINT cues_trust_ck CHECK (trust IN ('person', 'agent', 'imported', 'web')),
    CONSTRAINT cues_origin_ck CHECK (origin IN ('extracted', 'given', 'proposed')),
    CONSTRAINT cues_state_ck CHECK (state IN ('active', 'proposed', 'retired', 'superseded'))
)
""",
    "cue_evidence": """
CREATE TABLE cue_evidence (
    workspace_id bigint NOT NULL, memory_id uuid NOT NULL, place smallint NOT NULL, source_id uuid, turn_id uuid,
    session text NOT NULL, ordinal integer, quote text NOT NULL, at timestamptz,
    CONSTRAINT cue_evidence_pk PRIMARY KEY (workspace_id, memory_id, place),
    CONSTRAINT cue_evidence_cues_fk FOREIGN KEY (workspace_id, memory_id)
        REFERENCES cues (workspace_id, memory_id) ON DELETE CASCADE
)
""",
    "cue_revisions": """
CREATE TABLE cue_revisions (
    workspace_id bigint NOT NULL, revision bigint NOT NULL,
    CONSTRAINT cue_revisions_pk PRIMARY KEY (workspace_id),
    CONSTRAINT cue_revisions_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id)
)
""",
    "action_types": """
CREATE TABLE action_types (
    workspace_id bigint NOT NULL, name text NOT NULL, examples text[] NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT action_types_pk PRIMARY KEY (workspace_id, name),
    CONSTRAINT action_types_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id)
)
""",
    "activations": """
CREATE TABLE activations (
    workspace_id bigint NOT NULL, activation_id uuid NOT NULL, plan text NOT NULL, files text[] NOT NULL, agent text,
    run_id text, budget_tokens integer NOT NULL, tokens integer NOT NULL, degraded text NOT NULL, took_ms real NOT NULL,
    settled_at timestamptz, created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT activations_pk PRIMARY KEY (workspace_id, activation_id),
    CONSTRAINT activations_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id)
)
""",
    "activation_cues": """
CREATE TABLE activation_cues (
    workspace_id bigint NOT NULL, activation_id uuid NOT NULL, rank smallint NOT NULL, memory_id uuid NOT NULL,
    score real NOT NULL, explain jsonb NOT NULL, outcome text,
    CONSTRAINT activation_cues_pk PRIMARY KEY (workspace_id, activation_id, rank),
    CONSTRAINT activation_cues_activations_fk FOREIGN KEY (workspace_id, activation_id)
        REFERENCES activations (workspace_id, activation_id) ON DELETE CASCADE,
    CONSTRAINT activation_cues_outcome_ck CHECK (outcome IN ('heeded', 'ignored'))
)
""",
}
INDEXES = (
    "CREATE INDEX cues_revision_ix ON cues (workspace_id, revision)",
    "CREATE INDEX cue_evidence_source_ix ON cue_evidence (workspace_id, source_id) WHERE source_id IS NOT NULL",
    "CREATE INDEX activations_run_ix ON activations (workspace_id, run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX activation_cues_memory_ix ON activation_cues (workspace_id, memory_id)",
)


def upgrade() -> None:
    for statement in (*TABLES.values(), *INDEXES):
        op.execute(statement)
    for table in TABLES:
        op.execute(f"SELECT priors_secure('{table}')")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.execute(f"DROP TABLE {table}")
