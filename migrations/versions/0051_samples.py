"""Several compressions of one output (`samples`), what asks for them, and which of them a rating is of.

Building the index CONCURRENTLY commits what precedes it. An attempt that breaks there runs again from the beginning, so
each statement passes over what is there already, and a broken index is dropped first.

Locks: each table for a moment, as a column with a constant default rewrites nothing. The index is empty, as no row asks
for samples yet. Down, ratings of samples that are not the memory's text go, and with each its undoing: they judge a
text that is no longer stored.
"""

from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None

SAMPLES = """
CREATE TABLE IF NOT EXISTS samples (
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
PENDING = "CREATE INDEX CONCURRENTLY compressions_sampling_ix ON compressions (created_at) WHERE NOT sampled"
FORGET_OTHERS = """
DELETE FROM feedback f USING observations o, feedback rated
WHERE o.workspace_id = f.workspace_id AND o.memory_id = f.memory_id AND rated.workspace_id = f.workspace_id
    AND rated.feedback_id = coalesce(f.undoes, f.feedback_id) AND o.sample <> rated.sample
"""


def upgrade() -> None:
    for column in (
        "samples smallint NOT NULL DEFAULT 1",
        "sampled boolean NOT NULL DEFAULT true",
        "shortfall text NOT NULL DEFAULT ''",
    ):
        op.execute(f"ALTER TABLE compressions ADD COLUMN IF NOT EXISTS {column}")
    op.execute("ALTER TABLE observations ADD COLUMN IF NOT EXISTS sample smallint NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE feedback ADD COLUMN IF NOT EXISTS sample smallint NOT NULL DEFAULT 0")
    op.execute(SAMPLES)
    op.execute("SELECT priors_secure('samples')")
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS compressions_sampling_ix")
        op.execute(PENDING)


def downgrade() -> None:
    op.execute(FORGET_OTHERS)
    op.execute("DROP TABLE samples")
    op.execute("DROP INDEX compressions_sampling_ix")
    op.execute("ALTER TABLE feedback DROP COLUMN sample")
    op.execute("ALTER TABLE observations DROP COLUMN sample")
    for column in ("samples", "sampled", "shortfall"):
        op.execute(f"ALTER TABLE compressions DROP COLUMN {column}")
