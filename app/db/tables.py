"""Every table, with named constraints.

`workspace_id` leads every primary key, unique constraint and foreign key (docs/adr/0002). What may be retrieved is
what stands in `lexical` and `embeddings`: a retired memory keeps its row in `memories` and leaves both, so that no
arm ever has to skip it (docs/adr/0003).
"""

from typing import Any, TypeAlias

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
    TextClause,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR, UUID
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

Kind: TypeAlias = TypeEngine[Any] | type[TypeEngine[Any]]
Id, FALSE = UUID(as_uuid=True), text("false")

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


def _required(**kinds: Kind) -> list[SchemaItem]:
    return [Column(name, kind, nullable=False) for name, kind in kinds.items()]


def _optional(**kinds: Kind) -> list[SchemaItem]:
    return [Column(name, kind) for name, kind in kinds.items()]


def _default(value: str | TextClause, **kinds: Kind) -> list[SchemaItem]:
    return [Column(name, kind, nullable=False, server_default=value) for name, kind in kinds.items()]


def _moments(*names: str, nullable: bool = False, now: bool = False) -> list[SchemaItem]:
    default = func.now() if now else None
    return [Column(name, DateTime(timezone=True), nullable=nullable, server_default=default) for name in names]


def _keyed(**kinds: Kind) -> list[SchemaItem]:
    """Returns the columns of a primary key, the workspace's first, and the key."""
    return [*_required(workspace_id=BigInteger, **kinds), PrimaryKeyConstraint("workspace_id", *kinds)]


def _of_workspace(**kinds: Kind) -> list[SchemaItem]:
    """Returns the same with the foreign key of a row that belongs to nothing but its workspace."""
    return [*_keyed(**kinds), ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"])]


def _of_memory(**kinds: Kind) -> list[SchemaItem]:
    """Returns the same, a memory second, with the foreign key of a row that is deleted with its memory."""
    return [*_keyed(memory_id=Id, **kinds), _deleted_with("memories", memory_id="memory_id")]


def _deleted_with(table: str, *, key_name: str | None = None, **columns: str) -> ForeignKeyConstraint:
    """Returns a foreign key to `table` that cascades deletes; `columns` maps a row's own columns to those there."""
    theirs = [f"{table}.{name}" for name in ("workspace_id", *columns.values())]
    return ForeignKeyConstraint(["workspace_id", *columns], theirs, name=key_name, ondelete="CASCADE")


def _index(name: str, *columns: str | TextClause, where: str | None = None, **options: Any) -> Index:  # noqa: ANN401 - SQLAlchemy's
    """Returns an index that the workspace leads; `where` is the condition of its rows."""
    if where is not None:
        options["postgresql_where"] = text(where)
    return Index(name, "workspace_id", *columns, **options)


workspaces = Table(
    "workspaces",
    metadata,
    Column("workspace_id", BigInteger, Identity(always=True)),
    *_required(name=Text, language=Text, languages=ARRAY(Text)),
    *_default("0", document_count=BigInteger, mean_length=REAL),
    *_moments("statistics_at", nullable=True),
    *_moments("created_at", now=True),
    PrimaryKeyConstraint("workspace_id"),
    UniqueConstraint("name"),
)

sources = Table(
    "sources",
    metadata,
    *_of_workspace(source_id=Id),
    *_required(kind=Text, uri=Text),
    *_default("", title=Text),
    *_optional(content_hash=LargeBinary),
    *_moments("created_at", "updated_at", now=True),
    *_moments("retired_at", nullable=True),
    CheckConstraint("kind IN ('report', 'session', 'run', 'other')", name="kind"),
    _index("sources_live_uri_uq", "kind", "uri", unique=True, where="retired_at IS NULL"),
    _index("sources_created_ix", "created_at", "source_id"),
)

memories = Table(
    "memories",
    metadata,
    *_of_workspace(memory_id=Id),
    *_required(kind=Text),
    *_optional(source_id=Id, ordinal=Integer),
    *_required(title=Text, body=Text, language=Text),
    *_default("{}", tags=ARRAY(Text), metadata=JSONB),
    *_optional(run_id=Text, final_score=REAL),
    *_default("0", quality=SmallInteger),
    *_required(tokens=Integer),
    *_moments("occurred_at", nullable=True),
    *_moments("created_at", now=True),
    *_moments("valid_until", nullable=True),
    *_required(content_hash=LargeBinary),
    *_optional(retired_as=Text, findings=JSONB),
    *_default("0", uses=Integer),
    *_default(FALSE, released=Boolean),
    ForeignKeyConstraint(["workspace_id", "source_id"], ["sources.workspace_id", "sources.source_id"]),
    CheckConstraint("kind IN ('observation', 'chunk', 'message', 'cue', 'note')", name="kind"),
    CheckConstraint("quality BETWEEN -3 AND 3", name="quality"),
    CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    CheckConstraint("retired_as IN ('gone', 'deleted', 'superseded', 'quarantined')", name="retired_as"),
    _index(
        "memories_live_identity_uq",
        "content_hash",
        "kind",
        "source_id",
        "ordinal",
        unique=True,
        where="valid_until IS NULL",
        postgresql_nulls_not_distinct=True,
    ),
    _index("memories_source_ix", "source_id", "ordinal", where="source_id IS NOT NULL"),
    _index("memories_created_ix", "created_at", "memory_id"),
    _index("memories_occurred_ix", "occurred_at", where="occurred_at IS NOT NULL"),
    Index("memories_tags_ix", "tags", postgresql_using="gin"),
    _index("memories_kind_ix", "kind", "memory_id", where="valid_until IS NULL"),
    _index("memories_deleted_ix", "valid_until", where="retired_as IN ('deleted', 'quarantined')"),
    _index("memories_low_ix", "memory_id", where="quality < 0 AND valid_until IS NULL"),
    _index("memories_run_ix", "run_id", where="run_id IS NOT NULL"),
)

lexical = Table(
    "lexical",
    metadata,
    *_of_memory(),
    *_required(terms=TSVECTOR, weights=SPARSEVEC(TERM_DIMENSIONS), length=Integer),
    # Its list of pending entries is merged by whoever wrote them, so that no search has to read through it.
    Index("lexical_terms_ix", "terms", postgresql_using="gin", postgresql_with={"fastupdate": "on"}),
)

lexeme_statistics = Table(
    "lexeme_statistics",
    metadata,
    *_keyed(lexeme=Text),
    *_required(document_count=Integer),
    _deleted_with("workspaces"),
)

embedding_models = Table(
    "embedding_models",
    metadata,
    Column("model_id", SmallInteger, Identity(always=True)),
    *_required(name=Text, dimension=SmallInteger),
    *_default(FALSE, active=Boolean),
    *_moments("created_at", now=True),
    *_moments("retiring_since", nullable=True),
    PrimaryKeyConstraint("model_id"),
    UniqueConstraint("name"),
    CheckConstraint("NOT active OR retiring_since IS NULL", name="retiring_since"),
)

embeddings = Table(
    "embeddings",
    metadata,
    *_of_memory(model_id=SmallInteger),
    *_required(embedding=HALFVEC()),
    ForeignKeyConstraint(["model_id"], ["embedding_models.model_id"]),
    postgresql_partition_by="LIST (model_id)",
)

pending_embeddings = Table("pending_embeddings", metadata, *_of_memory())

recalls = Table(
    "recalls",
    metadata,
    *_of_workspace(recall_id=Id),
    *_required(purpose=Text, query=Text),
    *_optional(agent=Text, run_id=Text),
    *_required(parameters=JSONB, mode=Text, degraded=JSONB),
    *_optional(tokens=Integer),
    *_required(took_ms=REAL),
    *_moments("created_at", now=True),
    _index("recalls_run_ix", "run_id", where="run_id IS NOT NULL"),
)

# No foreign key to memories: its check would write a row lock into every memory that a recall names.
recall_hits = Table(
    "recall_hits",
    metadata,
    *_keyed(recall_id=Id, rank=SmallInteger),
    *_required(memory_id=Id, score=REAL, explain=JSONB),
    # What it says came back in the run's output.
    *_default(FALSE, used=Boolean),
    _deleted_with("recalls", recall_id="recall_id"),
    _index("recall_hits_memory_ix", "memory_id"),
)

run_sections = Table(
    "run_sections",
    metadata,
    *_of_workspace(run_id=Text),
    *_required(recall_id=Id, blocks=JSONB),
    *_moments("updated_at", now=True),
)

runs = Table(
    "runs",
    metadata,
    *_of_workspace(run_id=Text),
    *_default("", task=Text, task_type=Text),
    *_optional(agent=Text),
    *_default("{}", queries=ARRAY(Text)),
    *_optional(output=Text, output_path=Text, lines=Integer, bytes=BigInteger),
    *_default("{}", round_scores=ARRAY(REAL)),
    *_optional(final_score=REAL),
    *_default("", verdict=Text),
    *_default("{}", issues=ARRAY(Text), stages=JSONB, metadata=JSONB),
    *_moments("started_at", "finished_at", nullable=True),
    *_moments("created_at", "updated_at", now=True),
    *_default(FALSE, output_replaced=Boolean),
    CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    _index("runs_created_ix", "created_at", "run_id"),
)

observations = Table(
    "observations",
    metadata,
    *_of_memory(),
    *_required(task=Text, task_type=Text, narrative=Text, facts=ARRAY(Text)),
    *_optional(output_path=Text),
    *_required(verdict=Text, compressor=Text),
    *_optional(model=Text, prompt=Text, superseded_by=Id),
    CheckConstraint("compressor IN ('llm', 'extractive', 'given')", name="compressor"),
    _index("observations_task_ix", text("md5(task)")),
)

# A run is compressed once for each of its tasks; its observation's id is known before the work is done. What it said
# earlier stays: `earlier` where it was asked to say something else, `moved_on` where its judgement is that of then.
# `maker` compresses it until `made_until`, unless it says so again.
compressions = Table(
    "compressions",
    metadata,
    *_of_workspace(observation_id=Id),
    *_optional(run_id=Text),
    *_required(request=JSONB),
    *_optional(outcome=Text),
    *_default("", reason=Text),
    *_optional(memory_id=Id),
    *_moments("created_at", now=True),
    *_moments("finished_at", nullable=True),
    *_default(FALSE, moved_on=Boolean, earlier=Boolean),
    *_optional(maker=Id),
    *_moments("made_until", nullable=True),
    CheckConstraint("outcome IN ('stored', 'joined', 'refused')", name="outcome"),
    _index(
        "compressions_current_ix",
        "run_id",
        text("md5(request ->> 'task')"),
        unique=True,
        where="run_id IS NOT NULL AND NOT earlier",
    ),
    _index("compressions_run_ix", "run_id", where="run_id IS NOT NULL"),
    _index("compressions_memory_ix", "memory_id", where="memory_id IS NOT NULL"),
    Index("compressions_waiting_ix", "created_at", postgresql_where=text("outcome IS NULL")),
)

# Only ever appended to: an undo is a row that names the row it undoes, so that the log replays to every quality.
feedback = Table(
    "feedback",
    metadata,
    *_keyed(feedback_id=Id),
    Column("position", BigInteger, Identity(always=True), nullable=False),
    *_required(memory_id=Id),
    *_optional(rating=SmallInteger, undoes=Id),
    *_default("", comment=Text),
    *_optional(run_id=Text, idempotency_key=Text),
    *_moments("created_at", now=True),
    _deleted_with("memories", memory_id="memory_id"),
    CheckConstraint("(rating IN (-1, 1)) <> (undoes IS NOT NULL)", name="rating"),
    UniqueConstraint("workspace_id", "undoes", name="feedback_undoes_uq"),
    UniqueConstraint("workspace_id", "idempotency_key", name="feedback_idempotency_key_uq"),
    _index("feedback_memory_ix", "memory_id", "position"),
)

# A log of its own: what became of each file is said once, and not changed after.
ingestions = Table(
    "ingestions",
    metadata,
    *_of_workspace(ingestion_id=Id),
    *_required(seconds=REAL, counts=JSONB, outcomes=JSONB),
    *_default("", degraded=Text),
    *_moments("finished_at", now=True),
)

refusals = Table(
    "refusals",
    metadata,
    *_of_workspace(reason=Text),
    *_required(count=BigInteger),
    *_moments("last_at", now=True),
)

# The newest layouts of each workspace, one for each question that was asked (all kinds: ""; how many at most).
graph_layouts = Table(
    "graph_layouts",
    metadata,
    *_of_workspace(kind=Text, node_limit=Integer),
    *_required(fingerprint=LargeBinary, model=Text, clusters=JSONB),
    *_moments("computed_at"),
    *_moments("written_at", now=True),
    _index("graph_layouts_fingerprint_ix", "fingerprint"),
)

# No foreign key to memories: a deleted one that comes back finds its place again.
graph_points = Table(
    "graph_points",
    metadata,
    *_keyed(kind=Text, node_limit=Integer, memory_id=Id),
    *_required(content_hash=LargeBinary, x=Double, y=Double, cluster=SmallInteger, fitted=Boolean),
    _deleted_with("graph_layouts", kind="kind", node_limit="node_limit"),
)

# `next` is not stored: the places in a source say it.
links = Table(
    "links",
    metadata,
    *_required(workspace_id=BigInteger, from_id=Id, to_id=Id, relation=Text),
    *_default("1", weight=REAL),
    *_moments("created_at", now=True),
    PrimaryKeyConstraint("workspace_id", "from_id", "relation", "to_id"),
    _deleted_with("memories", from_id="memory_id", key_name="links_from_fk"),
    _deleted_with("memories", to_id="memory_id", key_name="links_to_fk"),
    CheckConstraint(
        "relation IN ('mentions', 'same_entity', 'similar', 'derived_from', 'supersedes')", name="relation"
    ),
    CheckConstraint("weight > 0 AND weight <= 1", name="weight"),
    CheckConstraint("from_id <> to_id", name="itself"),
    # With all that a recall reads of them, strongest first: the links of a memory lie scattered in the table.
    _index("links_in_ix", "to_id", "relation", text("weight DESC"), "from_id"),
    # It also tells at once whether a workspace has links that pass anything on.
    _index("links_out_ix", "from_id", "relation", text("weight DESC"), "to_id", where="relation <> 'similar'"),
)

# The dictionary of titles: of live memories alone, as `lexical` and `embeddings` are.
titles = Table(
    "titles",
    metadata,
    *_of_memory(),
    *_required(key=Text),
    *_default(FALSE, common=Boolean),
    _index("titles_key_ix", "key"),
)

pending_links = Table(
    "pending_links",
    metadata,
    *_of_memory(step=Text),
    # How often it was asked for: what was read before the last time is not taken for what it says now.
    *_default("1", asked=Integer),
    CheckConstraint("step IN ('words', 'vectors')", name="step"),
)
