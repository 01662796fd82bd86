"""Every table, with named constraints.

`workspace_id` leads every primary key, unique constraint and foreign key (docs/adr/0002). What may be retrieved is
what stands in `lexical` and `embeddings`: a retired memory keeps its row in `memories` and leaves both, so that no
arm ever has to skip it (docs/adr/0003).
"""

from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR, UUID

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "fk": "%(table_name)s_%(referred_table_name)s_fk",
        "ck": "%(table_name)s_%(constraint_name)s_ck",
        "ix": "%(table_name)s_%(column_0_N_name)s_ix",
    }
)

TERM_DIMENSIONS = 536_870_912
"""2**29: a lexeme's dimension in `lexical.weights`; two of 1,000 terms share one with a probability of 0.1 %."""


def _moment(name: str, *, nullable: bool = False, now: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=func.now() if now else None)


workspaces = Table(
    "workspaces",
    metadata,
    Column("workspace_id", BigInteger, Identity(always=True)),
    Column("name", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("languages", ARRAY(Text), nullable=False),
    Column("document_count", BigInteger, nullable=False, server_default="0"),
    Column("mean_length", REAL, nullable=False, server_default="0"),
    _moment("statistics_at", nullable=True),
    _moment("created_at", now=True),
    PrimaryKeyConstraint("workspace_id"),
    UniqueConstraint("name"),
)

sources = Table(
    "sources",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("source_id", UUID(as_uuid=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("uri", Text, nullable=False),
    Column("title", Text, nullable=False, server_default=""),
    Column("content_hash", LargeBinary),
    _moment("created_at", now=True),
    _moment("updated_at", now=True),
    _moment("retired_at", nullable=True),
    PrimaryKeyConstraint("workspace_id", "source_id"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
    CheckConstraint("kind IN ('report', 'session', 'run', 'other')", name="kind"),
    Index(
        "sources_live_uri_uq",
        "workspace_id",
        "kind",
        "uri",
        unique=True,
        postgresql_where=text("retired_at IS NULL"),
    ),
    Index("sources_created_ix", "workspace_id", "created_at", "source_id"),
)

memories = Table(
    "memories",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("source_id", UUID(as_uuid=True)),
    Column("ordinal", Integer),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("tags", ARRAY(Text), nullable=False, server_default="{}"),
    Column("metadata", JSONB, nullable=False, server_default="{}"),
    Column("run_id", Text),
    Column("final_score", REAL),
    Column("quality", SmallInteger, nullable=False, server_default="0"),
    Column("tokens", Integer, nullable=False),
    _moment("occurred_at", nullable=True),
    _moment("created_at", now=True),
    _moment("valid_until", nullable=True),
    Column("content_hash", LargeBinary, nullable=False),
    Column("retired_as", Text),
    Column("findings", JSONB),
    Column("uses", Integer, nullable=False, server_default="0"),
    Column("released", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("workspace_id", "memory_id"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
    ForeignKeyConstraint(["workspace_id", "source_id"], ["sources.workspace_id", "sources.source_id"]),
    CheckConstraint("kind IN ('observation', 'chunk', 'message', 'cue', 'note')", name="kind"),
    CheckConstraint("quality BETWEEN -3 AND 3", name="quality"),
    CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    CheckConstraint("retired_as IN ('gone', 'deleted', 'superseded', 'quarantined')", name="retired_as"),
    Index(
        "memories_live_identity_uq",
        "workspace_id",
        "content_hash",
        "kind",
        "source_id",
        "ordinal",
        unique=True,
        postgresql_where=text("valid_until IS NULL"),
        postgresql_nulls_not_distinct=True,
    ),
    Index("memories_source_ix", "workspace_id", "source_id", "ordinal", postgresql_where=text("source_id IS NOT NULL")),
    Index("memories_created_ix", "workspace_id", "created_at", "memory_id"),
    Index("memories_occurred_ix", "workspace_id", "occurred_at", postgresql_where=text("occurred_at IS NOT NULL")),
    Index("memories_tags_ix", "tags", postgresql_using="gin"),
    Index("memories_kind_ix", "workspace_id", "kind", "memory_id", postgresql_where=text("valid_until IS NULL")),
    Index(
        "memories_deleted_ix",
        "workspace_id",
        "valid_until",
        postgresql_where=text("retired_as IN ('deleted', 'quarantined')"),
    ),
    Index(
        "memories_low_ix",
        "workspace_id",
        "memory_id",
        postgresql_where=text("quality < 0 AND valid_until IS NULL"),
    ),
    Index("memories_run_ix", "workspace_id", "run_id", postgresql_where=text("run_id IS NOT NULL")),
)

lexical = Table(
    "lexical",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("terms", TSVECTOR, nullable=False),
    Column("weights", SPARSEVEC(TERM_DIMENSIONS), nullable=False),
    Column("length", Integer, nullable=False),
    PrimaryKeyConstraint("workspace_id", "memory_id"),
    ForeignKeyConstraint(
        ["workspace_id", "memory_id"], ["memories.workspace_id", "memories.memory_id"], ondelete="CASCADE"
    ),
    # Its list of pending entries is merged by whoever wrote them, so that no search has to read through it.
    Index("lexical_terms_ix", "terms", postgresql_using="gin", postgresql_with={"fastupdate": "on"}),
)

lexeme_statistics = Table(
    "lexeme_statistics",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("lexeme", Text, nullable=False),
    Column("document_count", Integer, nullable=False),
    PrimaryKeyConstraint("workspace_id", "lexeme"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], ondelete="CASCADE"),
)

embedding_models = Table(
    "embedding_models",
    metadata,
    Column("model_id", SmallInteger, Identity(always=True)),
    Column("name", Text, nullable=False),
    Column("dimension", SmallInteger, nullable=False),
    Column("active", Boolean, nullable=False, server_default=text("false")),
    _moment("created_at", now=True),
    _moment("retiring_since", nullable=True),
    PrimaryKeyConstraint("model_id"),
    UniqueConstraint("name"),
    CheckConstraint("NOT active OR retiring_since IS NULL", name="retiring_since"),
)

embeddings = Table(
    "embeddings",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("model_id", SmallInteger, nullable=False),
    Column("embedding", HALFVEC(), nullable=False),
    PrimaryKeyConstraint("workspace_id", "memory_id", "model_id"),
    ForeignKeyConstraint(
        ["workspace_id", "memory_id"], ["memories.workspace_id", "memories.memory_id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(["model_id"], ["embedding_models.model_id"]),
    postgresql_partition_by="LIST (model_id)",
)

pending_embeddings = Table(
    "pending_embeddings",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    PrimaryKeyConstraint("workspace_id", "memory_id"),
    ForeignKeyConstraint(
        ["workspace_id", "memory_id"], ["memories.workspace_id", "memories.memory_id"], ondelete="CASCADE"
    ),
)

recalls = Table(
    "recalls",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("recall_id", UUID(as_uuid=True), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("agent", Text),
    Column("run_id", Text),
    Column("parameters", JSONB, nullable=False),
    Column("mode", Text, nullable=False),
    Column("degraded", JSONB, nullable=False),
    Column("tokens", Integer),
    Column("took_ms", REAL, nullable=False),
    _moment("created_at", now=True),
    PrimaryKeyConstraint("workspace_id", "recall_id"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
    Index("recalls_run_ix", "workspace_id", "run_id", postgresql_where=text("run_id IS NOT NULL")),
)

# No foreign key to memories: its check would write a row lock into every memory that a recall names.
recall_hits = Table(
    "recall_hits",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("recall_id", UUID(as_uuid=True), nullable=False),
    Column("rank", SmallInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("score", REAL, nullable=False),
    Column("explain", JSONB, nullable=False),
    # What it says came back in the run's output.
    Column("used", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("workspace_id", "recall_id", "rank"),
    ForeignKeyConstraint(
        ["workspace_id", "recall_id"], ["recalls.workspace_id", "recalls.recall_id"], ondelete="CASCADE"
    ),
    Index("recall_hits_memory_ix", "workspace_id", "memory_id"),
)

run_sections = Table(
    "run_sections",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("recall_id", UUID(as_uuid=True), nullable=False),
    Column("blocks", JSONB, nullable=False),
    _moment("updated_at", now=True),
    PrimaryKeyConstraint("workspace_id", "run_id"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
)

runs = Table(
    "runs",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("task", Text, nullable=False, server_default=""),
    Column("task_type", Text, nullable=False, server_default=""),
    Column("agent", Text),
    Column("queries", ARRAY(Text), nullable=False, server_default="{}"),
    Column("output", Text),
    Column("output_path", Text),
    Column("lines", Integer),
    Column("bytes", BigInteger),
    Column("round_scores", ARRAY(REAL), nullable=False, server_default="{}"),
    Column("final_score", REAL),
    Column("verdict", Text, nullable=False, server_default=""),
    Column("issues", ARRAY(Text), nullable=False, server_default="{}"),
    Column("stages", JSONB, nullable=False, server_default="{}"),
    Column("metadata", JSONB, nullable=False, server_default="{}"),
    _moment("started_at", nullable=True),
    _moment("finished_at", nullable=True),
    _moment("created_at", now=True),
    _moment("updated_at", now=True),
    Column("output_replaced", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("workspace_id", "run_id"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
    CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    Index("runs_created_ix", "workspace_id", "created_at", "run_id"),
)

observations = Table(
    "observations",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("task", Text, nullable=False),
    Column("task_type", Text, nullable=False),
    Column("narrative", Text, nullable=False),
    Column("facts", ARRAY(Text), nullable=False),
    Column("output_path", Text),
    Column("verdict", Text, nullable=False),
    Column("compressor", Text, nullable=False),
    Column("model", Text),
    Column("prompt", Text),
    Column("superseded_by", UUID(as_uuid=True)),
    PrimaryKeyConstraint("workspace_id", "memory_id"),
    ForeignKeyConstraint(
        ["workspace_id", "memory_id"], ["memories.workspace_id", "memories.memory_id"], ondelete="CASCADE"
    ),
    CheckConstraint("compressor IN ('llm', 'extractive', 'given')", name="compressor"),
    Index("observations_task_ix", "workspace_id", text("md5(task)")),
)

# A run is compressed once for each of its tasks; its observation's id is known before the work is done. What it said
# earlier stays: `earlier` where it was asked to say something else, `moved_on` where its judgement is that of then.
# `maker` compresses it until `made_until`, unless it says so again.
compressions = Table(
    "compressions",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("observation_id", UUID(as_uuid=True), nullable=False),
    Column("run_id", Text),
    Column("request", JSONB, nullable=False),
    Column("outcome", Text),
    Column("reason", Text, nullable=False, server_default=""),
    Column("memory_id", UUID(as_uuid=True)),
    _moment("created_at", now=True),
    _moment("finished_at", nullable=True),
    Column("moved_on", Boolean, nullable=False, server_default=text("false")),
    Column("earlier", Boolean, nullable=False, server_default=text("false")),
    Column("maker", UUID(as_uuid=True)),
    _moment("made_until", nullable=True),
    PrimaryKeyConstraint("workspace_id", "observation_id"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
    CheckConstraint("outcome IN ('stored', 'joined', 'refused')", name="outcome"),
    Index(
        "compressions_current_ix",
        "workspace_id",
        "run_id",
        text("md5(request ->> 'task')"),
        unique=True,
        postgresql_where=text("run_id IS NOT NULL AND NOT earlier"),
    ),
    Index("compressions_run_ix", "workspace_id", "run_id", postgresql_where=text("run_id IS NOT NULL")),
    Index(
        "compressions_memory_ix",
        "workspace_id",
        "memory_id",
        postgresql_where=text("memory_id IS NOT NULL"),
    ),
    Index("compressions_waiting_ix", "created_at", postgresql_where=text("outcome IS NULL")),
)

# Only ever appended to: an undo is a row that names the row it undoes, so that the log replays to every quality.
feedback = Table(
    "feedback",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("feedback_id", UUID(as_uuid=True), nullable=False),
    Column("position", BigInteger, Identity(always=True), nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("rating", SmallInteger),
    Column("undoes", UUID(as_uuid=True)),
    Column("comment", Text, nullable=False, server_default=""),
    Column("run_id", Text),
    Column("idempotency_key", Text),
    _moment("created_at", now=True),
    PrimaryKeyConstraint("workspace_id", "feedback_id"),
    ForeignKeyConstraint(
        ["workspace_id", "memory_id"], ["memories.workspace_id", "memories.memory_id"], ondelete="CASCADE"
    ),
    CheckConstraint("(rating IN (-1, 1)) <> (undoes IS NOT NULL)", name="rating"),
    UniqueConstraint("workspace_id", "undoes", name="feedback_undoes_uq"),
    UniqueConstraint("workspace_id", "idempotency_key", name="feedback_idempotency_key_uq"),
    Index("feedback_memory_ix", "workspace_id", "memory_id", "position"),
)

# A log of its own: what became of each file is said once, and not changed after.
ingestions = Table(
    "ingestions",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("ingestion_id", UUID(as_uuid=True), nullable=False),
    Column("seconds", REAL, nullable=False),
    Column("counts", JSONB, nullable=False),
    Column("outcomes", JSONB, nullable=False),
    Column("degraded", Text, nullable=False, server_default=""),
    _moment("finished_at", now=True),
    PrimaryKeyConstraint("workspace_id", "ingestion_id"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
)

refusals = Table(
    "refusals",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    _moment("last_at", now=True),
    PrimaryKeyConstraint("workspace_id", "reason"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
)

# The newest layouts of each workspace, one for each question that was asked (all kinds: ""; how many at most).
graph_layouts = Table(
    "graph_layouts",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("node_limit", Integer, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("model", Text, nullable=False),
    Column("clusters", JSONB, nullable=False),
    _moment("computed_at"),
    _moment("written_at", now=True),
    PrimaryKeyConstraint("workspace_id", "kind", "node_limit"),
    ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
    Index("graph_layouts_fingerprint_ix", "workspace_id", "fingerprint"),
)

# No foreign key to memories: a deleted one that comes back finds its place again.
graph_points = Table(
    "graph_points",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("node_limit", Integer, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    Column("x", Double, nullable=False),
    Column("y", Double, nullable=False),
    Column("cluster", SmallInteger, nullable=False),
    Column("fitted", Boolean, nullable=False),
    PrimaryKeyConstraint("workspace_id", "kind", "node_limit", "memory_id"),
    ForeignKeyConstraint(
        ["workspace_id", "kind", "node_limit"],
        ["graph_layouts.workspace_id", "graph_layouts.kind", "graph_layouts.node_limit"],
        ondelete="CASCADE",
    ),
)

# `next` is not stored: the places in a source say it.
links = Table(
    "links",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("from_id", UUID(as_uuid=True), nullable=False),
    Column("to_id", UUID(as_uuid=True), nullable=False),
    Column("relation", Text, nullable=False),
    Column("weight", REAL, nullable=False, server_default="1"),
    _moment("created_at", now=True),
    PrimaryKeyConstraint("workspace_id", "from_id", "relation", "to_id"),
    ForeignKeyConstraint(
        ["workspace_id", "from_id"],
        ["memories.workspace_id", "memories.memory_id"],
        name="links_from_fk",
        ondelete="CASCADE",
    ),
    ForeignKeyConstraint(
        ["workspace_id", "to_id"],
        ["memories.workspace_id", "memories.memory_id"],
        name="links_to_fk",
        ondelete="CASCADE",
    ),
    CheckConstraint(
        "relation IN ('mentions', 'same_entity', 'similar', 'derived_from', 'supersedes')", name="relation"
    ),
    CheckConstraint("weight > 0 AND weight <= 1", name="weight"),
    CheckConstraint("from_id <> to_id", name="itself"),
    # With all that a recall reads of them, strongest first: the links of a memory lie scattered in the table.
    Index("links_in_ix", "workspace_id", "to_id", "relation", text("weight DESC"), "from_id"),
    # It also tells at once whether a workspace has links that pass anything on.
    Index(
        "links_out_ix",
        "workspace_id",
        "from_id",
        "relation",
        text("weight DESC"),
        "to_id",
        postgresql_where=text("relation <> 'similar'"),
    ),
)

# The dictionary of titles: of live memories alone, as `lexical` and `embeddings` are.
titles = Table(
    "titles",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("key", Text, nullable=False),
    Column("common", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("workspace_id", "memory_id"),
    ForeignKeyConstraint(
        ["workspace_id", "memory_id"], ["memories.workspace_id", "memories.memory_id"], ondelete="CASCADE"
    ),
    Index("titles_key_ix", "workspace_id", "key"),
)

pending_links = Table(
    "pending_links",
    metadata,
    Column("workspace_id", BigInteger, nullable=False),
    Column("memory_id", UUID(as_uuid=True), nullable=False),
    Column("step", Text, nullable=False),
    # How often it was asked for: what was read before the last time is not taken for what it says now.
    Column("asked", Integer, nullable=False, server_default="1"),
    PrimaryKeyConstraint("workspace_id", "memory_id", "step"),
    ForeignKeyConstraint(
        ["workspace_id", "memory_id"], ["memories.workspace_id", "memories.memory_id"], ondelete="CASCADE"
    ),
    CheckConstraint("step IN ('words', 'vectors')", name="step"),
)
