"""Judgements, issues and their occurrences; the queries of observations; roles of workspaces; links of one task.

Locks: `workspaces`, `observations` and `links` exclusively for a change in the catalogue; the check of `links` is read
against its rows while they can be read and written.
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TABLES = (
    """
CREATE TABLE judgements (
    workspace_id bigint NOT NULL, judgement_id uuid NOT NULL, source_id uuid, run_id text, pointer text NOT NULL,
    case_name text NOT NULL, case_title text NOT NULL, version text NOT NULL, judged_at timestamptz, score real,
    stated double precision, verdict text NOT NULL, passed boolean, grade text NOT NULL, judge text NOT NULL,
    basis text NOT NULL, summary text NOT NULL, lists_issues boolean NOT NULL, issues jsonb NOT NULL DEFAULT '[]',
    matched boolean NOT NULL DEFAULT false, created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT judgements_pk PRIMARY KEY (workspace_id, judgement_id),
    CONSTRAINT judgements_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id),
    CONSTRAINT judgements_sources_fk FOREIGN KEY (workspace_id, source_id)
        REFERENCES sources (workspace_id, source_id) ON DELETE CASCADE,
    CONSTRAINT judgements_score_ck CHECK (score BETWEEN 0 AND 10),
    CONSTRAINT judgements_basis_ck CHECK (basis IN ('judged', 'listed', 'reported')),
    CONSTRAINT judgements_origin_ck CHECK (num_nonnulls(source_id, run_id) = 1)
)
""",
    """
CREATE TABLE issues (
    workspace_id bigint NOT NULL, issue_id uuid NOT NULL, case_name text NOT NULL, title text NOT NULL,
    severity text NOT NULL, status text NOT NULL, versions text[] NOT NULL, mended_in text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT issues_pk PRIMARY KEY (workspace_id, issue_id),
    CONSTRAINT issues_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id),
    CONSTRAINT issues_status_ck CHECK (status IN ('open', 'mended'))
)
""",
    """
CREATE TABLE issue_occurrences (
    workspace_id bigint NOT NULL, judgement_id uuid NOT NULL, place smallint NOT NULL, version text NOT NULL,
    status text NOT NULL, issue_id uuid NOT NULL, severity text NOT NULL,
    CONSTRAINT issue_occurrences_pk PRIMARY KEY (workspace_id, judgement_id, place, version, status),
    CONSTRAINT issue_occurrences_judgements_fk FOREIGN KEY (workspace_id, judgement_id)
        REFERENCES judgements (workspace_id, judgement_id) ON DELETE CASCADE,
    CONSTRAINT issue_occurrences_issues_fk FOREIGN KEY (workspace_id, issue_id)
        REFERENCES issues (workspace_id, issue_id) ON DELETE CASCADE
)
""",
)
INDEXES = (
    "CREATE INDEX judgements_case_ix ON judgements (workspace_id, case_name)",
    "CREATE INDEX judgements_source_ix ON judgements (workspace_id, source_id) WHERE source_id IS NOT NULL",
    "CREATE UNIQUE INDEX judgements_run_uq ON judgements (workspace_id, run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX judgements_unmatched_ix ON judgements (workspace_id, case_name) WHERE NOT matched",
    "CREATE INDEX issues_case_ix ON issues (workspace_id, case_name)",
    "CREATE INDEX issue_occurrences_issue_ix ON issue_occurrences (workspace_id, issue_id)",
)
QUERIES = """
UPDATE observations o SET queries = ARRAY(SELECT jsonb_array_elements_text(c.request -> 'queries'))
FROM compressions c WHERE c.workspace_id = o.workspace_id AND c.memory_id = o.memory_id
    AND c.observation_id = o.memory_id AND jsonb_typeof(c.request -> 'queries') = 'array'
"""
# Observations are found by task, queries and tags from now on, and linked with others of their task.
INDEX_OBSERVATIONS = """
WITH parsed AS MATERIALIZED (
    SELECT m.workspace_id, m.memory_id, priors_terms(CAST(m.language AS regconfig), concat_ws(E'\n',
        m.title, to_char(m.occurred_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'), m.body, o.task,
        array_to_string(o.queries, E'\n'), array_to_string(m.tags, E'\n'))) AS terms
    FROM memories m JOIN observations o USING (workspace_id, memory_id) WHERE m.valid_until IS NULL
)
UPDATE lexical l SET terms = p.terms || array_to_tsvector(ARRAY['workspace:' || l.workspace_id::text]),
    weights = priors_weights(p.terms, w.mean_length, 1.2, 0.4), length = priors_length(p.terms)
FROM parsed p JOIN workspaces w USING (workspace_id)
WHERE l.workspace_id = p.workspace_id AND l.memory_id = p.memory_id
"""
LINK_OBSERVATIONS = """
INSERT INTO pending_links (workspace_id, memory_id, step)
SELECT l.workspace_id, l.memory_id, 'words' FROM lexical l JOIN observations o USING (workspace_id, memory_id)
ON CONFLICT DO NOTHING
"""
# A report is read again by the next ingestion after the next upgrade, as if it had changed.
READ_AGAIN = """
UPDATE sources s SET content_hash = 'judged' FROM judgements j
WHERE j.workspace_id = s.workspace_id AND j.source_id = s.source_id
"""
EARLIER = "'mentions', 'same_entity', 'similar', 'derived_from', 'supersedes'"
RELATIONS = "ALTER TABLE links ADD CONSTRAINT links_links_relation_ck_ck CHECK (relation IN ({relations})) NOT VALID"


def upgrade() -> None:
    for statement in (*TABLES, *INDEXES):
        op.execute(statement)
    for table in ("judgements", "issues", "issue_occurrences"):
        op.execute(f"SELECT priors_secure('{table}')")
    op.execute("ALTER TABLE observations ADD COLUMN queries text[] NOT NULL DEFAULT '{}'")
    for statement in (QUERIES, INDEX_OBSERVATIONS, LINK_OBSERVATIONS):
        op.execute(statement)
    op.execute("ALTER TABLE workspaces ADD COLUMN roles jsonb NOT NULL DEFAULT '{}'")
    _relations(f"{EARLIER}, 'same_task'")


def downgrade() -> None:
    op.execute("DELETE FROM links WHERE relation = 'same_task'")
    _relations(EARLIER)
    op.execute("ALTER TABLE workspaces DROP COLUMN roles")
    op.execute("ALTER TABLE observations DROP COLUMN queries")
    op.execute(READ_AGAIN)
    for table in ("issue_occurrences", "issues", "judgements"):
        op.execute(f"DROP TABLE {table}")


def _relations(relations: str) -> None:
    op.execute("ALTER TABLE links DROP CONSTRAINT links_links_relation_ck_ck")
    op.execute(RELATIONS.format(relations=relations))
    op.execute("ALTER TABLE links VALIDATE CONSTRAINT links_links_relation_ck_ck")
