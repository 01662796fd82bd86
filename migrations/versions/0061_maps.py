"""One row a map, for each user: a map is drawn anew, and no longer continued from the places of an earlier one.

Locks: each table for a moment. The stored maps go; the next one that is asked for is drawn.
"""

from alembic import op

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None

breaks = "it reads the tables of earlier maps, and shows none"
MAPS = """
CREATE TABLE maps (
    workspace_id bigint NOT NULL,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    kind text NOT NULL,
    node_limit integer NOT NULL,
    clusters jsonb NOT NULL,
    memory_ids uuid[] NOT NULL,
    xs float8[] NOT NULL,
    ys float8[] NOT NULL,
    members smallint[] NOT NULL,
    computed_at timestamptz NOT NULL,
    CONSTRAINT maps_pk PRIMARY KEY (workspace_id, user_id, kind, node_limit),
    CONSTRAINT maps_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
)
"""
OWN_USER = """
CREATE POLICY own_user ON maps AS RESTRICTIVE TO priors_service USING (
    user_id = '' AND coalesce(current_setting('priors.sees', true), '') <> 'own'
    OR user_id = coalesce(current_setting('priors.user', true), '')
    OR coalesce(current_setting('priors.sees', true), '') = ''
)
"""
LAYOUTS = """
CREATE TABLE graph_layouts (
    workspace_id bigint NOT NULL,
    kind text NOT NULL,
    node_limit integer NOT NULL,
    fingerprint bytea NOT NULL,
    model text NOT NULL,
    clusters jsonb NOT NULL,
    computed_at timestamptz NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT graph_layouts_pk PRIMARY KEY (workspace_id, kind, node_limit),
    CONSTRAINT graph_layouts_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
)
"""
BY_FINGERPRINT = "CREATE INDEX graph_layouts_fingerprint_ix ON graph_layouts (workspace_id, fingerprint)"
POINTS = """
CREATE TABLE graph_points (
    workspace_id bigint NOT NULL,
    kind text NOT NULL,
    node_limit integer NOT NULL,
    memory_id uuid NOT NULL,
    content_hash bytea NOT NULL,
    x float8 NOT NULL,
    y float8 NOT NULL,
    cluster smallint NOT NULL,
    fitted boolean NOT NULL,
    CONSTRAINT graph_points_pk PRIMARY KEY (workspace_id, kind, node_limit, memory_id),
    CONSTRAINT graph_points_graph_layouts_fk FOREIGN KEY (workspace_id, kind, node_limit)
        REFERENCES graph_layouts ON DELETE CASCADE
)
"""


def upgrade() -> None:
    op.execute("DROP TABLE graph_points")
    op.execute("DROP TABLE graph_layouts")
    op.execute(MAPS)
    op.execute("SELECT priors_secure('maps')")
    op.execute(OWN_USER)


def downgrade() -> None:
    op.execute("DROP TABLE maps")
    op.execute(LAYOUTS)
    op.execute(BY_FINGERPRINT)
    op.execute(POINTS)
    for table in ("graph_layouts", "graph_points"):
        op.execute(f"SELECT priors_secure('{table}')")
