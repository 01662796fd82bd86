"""Workspaces, sources, memories, their lexical and vector representations, and recalls.

Locks: none that matters, every table is new.
"""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# A path or a pair such as TAM/SAM would be one lexeme to the parser; its parts are what people ask for.
TERMS = """
CREATE FUNCTION priors_terms(language regconfig, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN to_tsvector(language, translate(content, '/\\', '  '))
"""

# 2**29 dimensions; the mask keeps the hash positive.
DIMENSION = """
CREATE FUNCTION priors_dimension(lexeme text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN 1 + (hashtextextended(lexeme, 0) & 536870911)::integer
"""

# The part of BM25 that depends on the document alone: a term's frequency, saturated by k1 and normalised by length.
# The query brings the idf, so that their inner product is the BM25 score. A sparsevec holds at most 16,000 terms.
WEIGHTS = """
CREATE FUNCTION priors_weights(terms tsvector, mean_length float8, k1 float8, b float8) RETURNS sparsevec
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN (
    WITH counted AS (
        SELECT priors_dimension(lexeme) AS dimension, sum(coalesce(array_length(positions, 1), 1)) AS frequency
        FROM unnest(terms) GROUP BY 1
    ), document AS (
        SELECT k1 * (1 - b + b * sum(frequency) / greatest(mean_length, 1)) AS damping FROM counted
    ), kept AS (
        SELECT dimension, frequency * (k1 + 1) / (frequency + damping) AS weight
        FROM counted, document ORDER BY frequency DESC, dimension LIMIT 16000
    )
    SELECT (
        '{' || coalesce(string_agg(dimension || ':' || weight::real, ',' ORDER BY dimension), '') || '}/536870912'
    )::sparsevec FROM kept
)
"""

LENGTH = """
CREATE FUNCTION priors_length(terms tsvector) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN (SELECT coalesce(sum(coalesce(array_length(positions, 1), 1)), 0)::integer FROM unnest(terms))
"""


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    _workspaces()
    _sources()
    _memories()
    _lexical()
    _lexeme_statistics()
    _embedding_models()
    _embeddings()
    _pending_embeddings()
    _recalls()
    _recall_hits()
    for function in (TERMS, DIMENSION, WEIGHTS, LENGTH):
        op.execute(function)


def downgrade() -> None:
    for function in ("priors_length", "priors_weights", "priors_dimension", "priors_terms"):
        op.execute(f"DROP FUNCTION {function}")
    for table in (
        "recall_hits",
        "recalls",
        "pending_embeddings",
        "embeddings",
        "embedding_models",
        "lexeme_statistics",
        "lexical",
        "memories",
        "sources",
        "workspaces",
    ):
        op.drop_table(table)


def _workspaces() -> None:
    op.create_table(
        "workspaces",
        sa.Column("workspace_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("languages", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("document_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("mean_length", sa.REAL(), server_default="0", nullable=False),
        sa.Column("statistics_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", name="workspaces_pk"),
        sa.UniqueConstraint("name", name="workspaces_name_uq"),
    )


def _sources() -> None:
    op.create_table(
        "sources",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("source_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('report', 'session', 'run', 'other')", name="sources_kind_ck"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="sources_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "source_id", name="sources_pk"),
    )
    op.create_index("sources_created_ix", "sources", ["workspace_id", "created_at", "source_id"], unique=False)
    op.create_index(
        "sources_live_uri_uq",
        "sources",
        ["workspace_id", "kind", "uri"],
        unique=True,
        postgresql_where=sa.text("retired_at IS NULL"),
    )


def _memories() -> None:
    op.create_table(
        "memories",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_id", sa.UUID(), nullable=True),
        sa.Column("ordinal", sa.Integer(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("tags", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("metadata", postgresql.JSONB(), server_default="{}", nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("final_score", sa.REAL(), nullable=True),
        sa.Column("quality", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("valid_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("kind IN ('observation', 'chunk', 'message', 'cue', 'note')", name="memories_kind_ck"),
        sa.CheckConstraint("final_score BETWEEN 0 AND 10", name="memories_final_score_ck"),
        sa.CheckConstraint("quality BETWEEN -3 AND 3", name="memories_quality_ck"),
        sa.ForeignKeyConstraint(
            ["workspace_id", "source_id"], ["sources.workspace_id", "sources.source_id"], name="memories_sources_fk"
        ),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="memories_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "memory_id", name="memories_pk"),
    )
    op.create_index("memories_created_ix", "memories", ["workspace_id", "created_at", "memory_id"], unique=False)
    op.create_index(
        "memories_live_identity_uq",
        "memories",
        ["workspace_id", "content_hash", "kind", "source_id", "ordinal"],
        unique=True,
        postgresql_where=sa.text("valid_until IS NULL"),
        postgresql_nulls_not_distinct=True,
    )
    op.create_index(
        "memories_occurred_ix",
        "memories",
        ["workspace_id", "occurred_at"],
        unique=False,
        postgresql_where=sa.text("occurred_at IS NOT NULL"),
    )
    op.create_index(
        "memories_source_ix",
        "memories",
        ["workspace_id", "source_id", "ordinal"],
        unique=False,
        postgresql_where=sa.text("source_id IS NOT NULL"),
    )
    op.create_index("memories_tags_ix", "memories", ["tags"], unique=False, postgresql_using="gin")


def _lexical() -> None:
    op.create_table(
        "lexical",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("terms", postgresql.TSVECTOR(), nullable=False),
        sa.Column("weights", SPARSEVEC(dim=536870912), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "memory_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="lexical_memories_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "memory_id", name="lexical_pk"),
    )
    op.create_index(
        "lexical_terms_ix",
        "lexical",
        ["terms"],
        unique=False,
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )


def _lexeme_statistics() -> None:
    op.create_table(
        "lexeme_statistics",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("lexeme", sa.Text(), nullable=False),
        sa.Column("document_count", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.workspace_id"], name="lexeme_statistics_workspaces_fk", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workspace_id", "lexeme", name="lexeme_statistics_pk"),
    )


def _embedding_models() -> None:
    op.create_table(
        "embedding_models",
        sa.Column("model_id", sa.SmallInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dimension", sa.SmallInteger(), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name="embedding_models_pk"),
        sa.UniqueConstraint("name", name="embedding_models_name_uq"),
    )


def _embeddings() -> None:
    op.create_table(
        "embeddings",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("model_id", sa.SmallInteger(), nullable=False),
        sa.Column("embedding", HALFVEC(), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["embedding_models.model_id"], name="embeddings_embedding_models_fk"),
        sa.ForeignKeyConstraint(
            ["workspace_id", "memory_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="embeddings_memories_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "memory_id", "model_id", name="embeddings_pk"),
        postgresql_partition_by="LIST (model_id)",
    )


def _pending_embeddings() -> None:
    op.create_table(
        "pending_embeddings",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "memory_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="pending_embeddings_memories_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "memory_id", name="pending_embeddings_pk"),
    )


def _recalls() -> None:
    op.create_table(
        "recalls",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("recall_id", sa.UUID(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("parameters", postgresql.JSONB(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("degraded", postgresql.JSONB(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=True),
        sa.Column("took_ms", sa.REAL(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="recalls_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "recall_id", name="recalls_pk"),
    )
    op.create_index(
        "recalls_run_ix",
        "recalls",
        ["workspace_id", "run_id"],
        unique=False,
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )


def _recall_hits() -> None:
    op.create_table(
        "recall_hits",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("recall_id", sa.UUID(), nullable=False),
        sa.Column("rank", sa.SmallInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("score", sa.REAL(), nullable=False),
        sa.Column("explain", postgresql.JSONB(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "recall_id"],
            ["recalls.workspace_id", "recalls.recall_id"],
            name="recall_hits_recalls_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "recall_id", "rank", name="recall_hits_pk"),
    )
    op.create_index("recall_hits_memory_ix", "recall_hits", ["workspace_id", "memory_id"], unique=False)
