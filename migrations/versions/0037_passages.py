"""Passages: several vectors of one memory, where its text is longer than the embedding model's window.

Each stored vector becomes its memory's first passage. Longer texts are queued for their other passages; they are found
by the first one meanwhile.

Locks: `embeddings` with its partitions and `pending_embeddings`, exclusively, for changes in the catalogue. The indexes
are built CONCURRENTLY before that, outside of the migration's transaction, over those that were left half-built. The
queue is filled by one reading of `memories`.
"""

from alembic import context, op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

DEFAULT_MODEL, WINDOW = "sentence-transformers/all-MiniLM-L6-v2", 254
"""The default model, and the tokens that it reads of a text."""
LEAST_WINDOW = 60
"""Least tokens, as the default model counts them, of a text that may be longer than another model's window. The texts
that fit prove to be whole, and are not embedded again."""
REMOTE = "'^(openai|ollama):'"
"""Models of other providers: their windows are not known, so that their texts keep one vector."""
WITH_PASSAGES, BEFORE = "workspace_id, memory_id, model_id, passage", "workspace_id, memory_id, model_id"
PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'embeddings'::regclass"
QUEUE = f"""
INSERT INTO pending_embeddings (workspace_id, memory_id, partial)
SELECT DISTINCT m.workspace_id, m.memory_id, true
FROM memories m JOIN embeddings e USING (workspace_id, memory_id) JOIN embedding_models o USING (model_id)
WHERE m.tokens > CASE o.name WHEN '{DEFAULT_MODEL}' THEN {WINDOW} ELSE {LEAST_WINDOW} END
    AND o.name !~ {REMOTE} AND m.valid_until IS NULL ON CONFLICT DO NOTHING
"""  # noqa: S608 - constants
UNFINISHED = """
DELETE FROM embeddings e USING embedding_models o, pending_embeddings p
WHERE o.model_id = e.model_id AND NOT o.active AND p.partial AND p.workspace_id = e.workspace_id
    AND p.memory_id = e.memory_id
"""
"""Drops the vectors of long texts from a move to another model that is still to be finished: it makes them again."""


def _rekey(columns: str) -> None:
    """Gives `embeddings` another primary key, whose indexes are built while its partitions are in use."""
    partitions = [] if context.is_offline_mode() else list(op.get_bind().exec_driver_sql(PARTITIONS).scalars())
    with op.get_context().autocommit_block():
        for partition in partitions:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {partition}_new")
            op.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {partition}_new ON {partition} ({columns})")
    op.execute("ALTER TABLE embeddings DROP CONSTRAINT embeddings_pk")
    for partition in partitions:
        op.execute(f"ALTER TABLE {partition} ADD CONSTRAINT {partition}_pkey PRIMARY KEY USING INDEX {partition}_new")
    op.execute(f"ALTER TABLE embeddings ADD CONSTRAINT embeddings_pk PRIMARY KEY ({columns})")


def upgrade() -> None:
    for name, kind in (("passage", "smallint"), ("starts", "integer")):
        op.execute(f"ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS {name} {kind} NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE embeddings ADD COLUMN IF NOT EXISTS ends integer")
    op.execute("ALTER TABLE pending_embeddings ADD COLUMN IF NOT EXISTS partial boolean NOT NULL DEFAULT false")
    _rekey(WITH_PASSAGES)
    # No vector is a later passage yet, so that these two take one reading of the tables.
    op.execute("CREATE INDEX embeddings_passages_ix ON embeddings (workspace_id, memory_id) WHERE passage > 0")
    op.execute("CREATE INDEX pending_embeddings_lacking_ix ON pending_embeddings (workspace_id) WHERE NOT partial")
    op.execute(QUEUE)
    op.execute(UNFINISHED)


def downgrade() -> None:
    op.execute("DROP INDEX IF EXISTS embeddings_passages_ix")
    op.execute("DROP INDEX IF EXISTS pending_embeddings_lacking_ix")
    op.execute("DELETE FROM embeddings WHERE passage > 0")
    op.execute("DELETE FROM pending_embeddings WHERE partial")
    _rekey(BEFORE)
    for name in ("passage", "starts", "ends"):
        op.execute(f"ALTER TABLE embeddings DROP COLUMN {name}")
    op.execute("ALTER TABLE pending_embeddings DROP COLUMN partial")
