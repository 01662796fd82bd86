"""One compression of an output: samples go, and with them the ratings of those that are not the memory's text.

Locks: each table for a moment. Each memory keeps its text, that of its best rated sample. Ratings of other samples go,
and with each its undoing: they judge a text that is no longer stored.
"""

from alembic import op

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None

breaks = "it asks for samples with each observation and rating, and fails"
FORGET_OTHERS = """
DELETE FROM feedback f USING observations o, feedback rated
WHERE o.workspace_id = f.workspace_id AND o.memory_id = f.memory_id AND rated.workspace_id = f.workspace_id
    AND rated.feedback_id = coalesce(f.undoes, f.feedback_id) AND o.sample <> rated.sample
"""
SAMPLES = """
CREATE TABLE samples (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    sample smallint NOT NULL,
    title text NOT NULL,
    narrative text NOT NULL,
    facts text[] NOT NULL,
    compressor text NOT NULL,
    model text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT samples_pk PRIMARY KEY (workspace_id, memory_id, sample),
    CONSTRAINT samples_observations_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES observations ON DELETE CASCADE,
    CONSTRAINT samples_sample_ck CHECK (sample >= 0 AND sample <= 3)
)
"""


def upgrade() -> None:
    op.execute(FORGET_OTHERS)
    op.execute("DROP TABLE samples")
    op.execute("ALTER TABLE feedback DROP COLUMN sample")
    op.execute("ALTER TABLE observations DROP COLUMN sample")
    for column in ("samples", "sampled", "shortfall", "last_seed"):
        op.execute(f"ALTER TABLE compressions DROP COLUMN {column}")


def downgrade() -> None:
    for column in (
        "samples smallint NOT NULL DEFAULT 1",
        "sampled boolean NOT NULL DEFAULT true",
        "shortfall text NOT NULL DEFAULT ''",
        "last_seed integer NOT NULL DEFAULT 0",
    ):
        op.execute(f"ALTER TABLE compressions ADD COLUMN {column}")
    op.execute("ALTER TABLE observations ADD COLUMN sample smallint NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE feedback ADD COLUMN sample smallint NOT NULL DEFAULT 0")
    op.execute(SAMPLES)
    op.execute("SELECT priors_secure('samples')")
    op.execute("CREATE INDEX compressions_sampling_ix ON compressions (created_at) WHERE NOT sampled")
