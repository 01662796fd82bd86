"""Every table, with named constraints.

`workspace_id` leads every primary key, unique constraint and foreign key (docs/adr/0002). What may be retrieved is
what stands in `lexical` and `embeddings`: a retired memory keeps its row in `memories` and leaves both, so that no
arm ever has to skip it (docs/adr/0003).
"""

from typing import Any, TypeAlias

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB, TSVECTOR, UUID
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

Kind: TypeAlias = TypeEngine[Any] | type[TypeEngine[Any]]
Id, FALSE = UUID(as_uuid=True), sa.text("false")

metadata = sa.MetaData(
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
    return [sa.Column(name, kind, nullable=False) for name, kind in kinds.items()]


def _optional(**kinds: Kind) -> list[SchemaItem]:
    return [sa.Column(name, kind) for name, kind in kinds.items()]


def _default(value: str | sa.TextClause, **kinds: Kind) -> list[SchemaItem]:
    return [sa.Column(name, kind, nullable=False, server_default=value) for name, kind in kinds.items()]


def _moments(*names: str, nullable: bool = False, now: bool = False) -> list[SchemaItem]:
    default = sa.func.now() if now else None
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, server_default=default) for name in names]


def _keyed(**kinds: Kind) -> list[SchemaItem]:
    """Returns the columns of a primary key, the workspace's first, and the key."""
    return [*_required(workspace_id=sa.BigInteger, **kinds), sa.PrimaryKeyConstraint("workspace_id", *kinds)]


def _of_workspace(**kinds: Kind) -> list[SchemaItem]:
    """Returns the columns, the key, and a foreign key to the workspace: for rows that depend on nothing else."""
    return [*_keyed(**kinds), sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"])]


def _of_memory(**kinds: Kind) -> list[SchemaItem]:
    """Returns the columns and the key, with the memory as the second column, and a foreign key that deletes with it."""
    return [*_keyed(memory_id=Id, **kinds), _deleted_with("memories", memory_id="memory_id")]


def _deleted_with(table: str, *, key_name: str | None = None, **columns: str) -> sa.ForeignKeyConstraint:
    """Returns a foreign key to `table` that cascades deletes; `columns` maps a row's own columns to those there."""
    theirs = [f"{table}.{name}" for name in ("workspace_id", *columns.values())]
    return sa.ForeignKeyConstraint(["workspace_id", *columns], theirs, name=key_name, ondelete="CASCADE")


def _index(name: str, *columns: str | sa.TextClause, where: str | None = None, **options: Any) -> sa.Index:  # noqa: ANN401 - SQLAlchemy's
    """Returns an index that the workspace leads; `where` is the condition of its rows."""
    if where is not None:
        options["postgresql_where"] = sa.text(where)
    return sa.Index(name, "workspace_id", *columns, **options)


def _table(name: str, *items: SchemaItem, **options: Any) -> None:  # noqa: ANN401 - SQLAlchemy's
    sa.Table(name, metadata, *items, **options)


_table(
    "workspaces",
    sa.Column("workspace_id", sa.BigInteger, sa.Identity(always=True)),
    *_required(name=sa.Text, language=sa.Text, languages=ARRAY(sa.Text)),
    *_default("0", document_count=sa.BigInteger, mean_length=sa.REAL),
    *_moments("statistics_at", nullable=True),
    *_moments("created_at", now=True),
    *_default("{}", roles=JSONB),
    sa.PrimaryKeyConstraint("workspace_id"),
    sa.UniqueConstraint("name"),
)

_table(
    "sources",
    *_of_workspace(source_id=Id),
    *_required(kind=sa.Text, uri=sa.Text),
    *_default("", title=sa.Text),
    *_optional(content_hash=sa.LargeBinary),
    *_moments("created_at", "updated_at", now=True),
    *_moments("retired_at", nullable=True),
    sa.CheckConstraint("kind IN ('report', 'session', 'run', 'other')", name="kind"),
    _index("sources_live_uri_uq", "kind", "uri", unique=True, where="retired_at IS NULL"),
    _index("sources_created_ix", "created_at", "source_id"),
)

_table(
    "memories",
    *_of_workspace(memory_id=Id),
    *_required(kind=sa.Text),
    *_optional(source_id=Id, ordinal=sa.Integer),
    *_required(title=sa.Text, body=sa.Text, language=sa.Text),
    *_default("{}", tags=ARRAY(sa.Text), metadata=JSONB),
    *_optional(run_id=sa.Text, final_score=sa.REAL),
    *_default("0", quality=sa.SmallInteger),
    *_required(tokens=sa.Integer),
    *_moments("occurred_at", nullable=True),
    *_moments("created_at", now=True),
    *_moments("valid_until", nullable=True),
    *_required(content_hash=sa.LargeBinary),
    *_optional(retired_as=sa.Text, findings=JSONB),
    *_default("0", uses=sa.Integer),
    *_default(FALSE, released=sa.Boolean),
    sa.ForeignKeyConstraint(["workspace_id", "source_id"], ["sources.workspace_id", "sources.source_id"]),
    sa.CheckConstraint("kind IN ('observation', 'chunk', 'message', 'cue', 'note')", name="kind"),
    sa.CheckConstraint("quality BETWEEN -3 AND 3", name="quality"),
    sa.CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    sa.CheckConstraint("retired_as IN ('gone', 'deleted', 'superseded', 'quarantined')", name="retired_as"),
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
    sa.Index("memories_tags_ix", "tags", postgresql_using="gin"),
    _index("memories_kind_ix", "kind", "memory_id", where="valid_until IS NULL"),
    _index("memories_deleted_ix", "valid_until", where="retired_as IN ('deleted', 'quarantined')"),
    _index(
        "memories_suspect_ix",
        "created_at",
        where="""valid_until IS NULL AND jsonb_path_exists(findings, '$[*].severity ? (@ == "suspect")')
            AND NOT released""",
    ),
    _index("memories_low_ix", "memory_id", where="quality < 0 AND valid_until IS NULL"),
    _index("memories_run_ix", "run_id", where="run_id IS NOT NULL"),
)

_table(
    "lexical",
    *_of_memory(),
    *_required(terms=TSVECTOR, weights=SPARSEVEC(TERM_DIMENSIONS), length=sa.Integer),
    # Its list of pending entries is merged by whoever wrote them, so that no search has to read through it.
    sa.Index("lexical_terms_ix", "terms", postgresql_using="gin", postgresql_with={"fastupdate": "on"}),
)

_table(
    "lexeme_statistics",
    *_keyed(lexeme=sa.Text),
    *_required(document_count=sa.Integer),
    _deleted_with("workspaces"),
)

_table(
    "embedding_models",
    sa.Column("model_id", sa.SmallInteger, sa.Identity(always=True)),
    *_required(name=sa.Text, dimension=sa.SmallInteger),
    *_default(FALSE, active=sa.Boolean),
    *_moments("created_at", now=True),
    *_moments("retiring_since", nullable=True),
    sa.PrimaryKeyConstraint("model_id"),
    sa.UniqueConstraint("name"),
    sa.CheckConstraint("NOT active OR retiring_since IS NULL", name="retiring_since"),
)

_table(
    "embeddings",
    *_of_memory(model_id=sa.SmallInteger),
    *_required(embedding=HALFVEC()),
    sa.ForeignKeyConstraint(["model_id"], ["embedding_models.model_id"]),
    postgresql_partition_by="LIST (model_id)",
)

_table("pending_embeddings", *_of_memory())

_table(
    "recalls",
    *_of_workspace(recall_id=Id),
    *_required(purpose=sa.Text, query=sa.Text),
    *_optional(agent=sa.Text, run_id=sa.Text),
    *_required(parameters=JSONB, mode=sa.Text, degraded=JSONB),
    *_optional(tokens=sa.Integer),
    *_required(took_ms=sa.REAL),
    *_moments("created_at", now=True),
    _index("recalls_run_ix", "run_id", where="run_id IS NOT NULL"),
)

# There is no foreign key to memories: its check would write a row lock into every memory that a recall names.
_table(
    "recall_hits",
    *_keyed(recall_id=Id, rank=sa.SmallInteger),
    *_required(memory_id=Id, score=sa.REAL, explain=JSONB),
    # The run's output repeats this memory.
    *_default(FALSE, used=sa.Boolean),
    _deleted_with("recalls", recall_id="recall_id"),
    _index("recall_hits_memory_ix", "memory_id"),
)

_table(
    "run_sections",
    *_of_workspace(run_id=sa.Text),
    *_required(recall_id=Id, blocks=JSONB),
    *_moments("updated_at", now=True),
)

_table(
    "runs",
    *_of_workspace(run_id=sa.Text),
    *_default("", task=sa.Text, task_type=sa.Text),
    *_optional(agent=sa.Text),
    *_default("{}", queries=ARRAY(sa.Text)),
    *_optional(output=sa.Text, output_path=sa.Text, lines=sa.Integer, bytes=sa.BigInteger),
    *_default("{}", round_scores=ARRAY(sa.REAL)),
    *_optional(final_score=sa.REAL),
    *_default("", verdict=sa.Text),
    # JSONB would sort the stages by the length of their names.
    *_default("{}", issues=ARRAY(sa.Text), stages=JSON, metadata=JSONB),
    *_moments("started_at", "finished_at", nullable=True),
    *_moments("created_at", "updated_at", now=True),
    *_default(FALSE, output_replaced=sa.Boolean),
    sa.CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    _index("runs_created_ix", "created_at", "run_id"),
)

_table(
    "observations",
    *_of_memory(),
    *_required(task=sa.Text, task_type=sa.Text, narrative=sa.Text, facts=ARRAY(sa.Text)),
    *_optional(output_path=sa.Text),
    *_required(verdict=sa.Text, compressor=sa.Text),
    *_optional(model=sa.Text, prompt=sa.Text, superseded_by=Id),
    *_default("{}", queries=ARRAY(sa.Text)),
    sa.CheckConstraint("compressor IN ('llm', 'extractive', 'given')", name="compressor"),
    _index("observations_task_ix", sa.text("md5(task)")),
)

# A run is compressed once for each of its tasks; its observation has an id before the work is done. Rows of earlier
# outputs stay: `earlier` if a later request replaced the row, `moved_on` if the judgement is fixed for its output.
# `maker` has the lease until `made_until`, and may renew it.
_table(
    "compressions",
    *_of_workspace(observation_id=Id),
    *_optional(run_id=sa.Text),
    *_required(request=JSONB),
    *_optional(outcome=sa.Text),
    *_default("", reason=sa.Text),
    *_optional(memory_id=Id),
    *_moments("created_at", now=True),
    *_moments("finished_at", nullable=True),
    *_default(FALSE, moved_on=sa.Boolean, earlier=sa.Boolean),
    *_optional(maker=Id),
    *_moments("made_until", nullable=True),
    sa.CheckConstraint("outcome IN ('stored', 'joined', 'refused')", name="outcome"),
    _index(
        "compressions_current_ix",
        "run_id",
        sa.text("md5(request ->> 'task')"),
        unique=True,
        where="run_id IS NOT NULL AND NOT earlier",
    ),
    _index("compressions_run_ix", "run_id", where="run_id IS NOT NULL"),
    _index("compressions_memory_ix", "memory_id", where="memory_id IS NOT NULL"),
    sa.Index("compressions_waiting_ix", "created_at", postgresql_where=sa.text("outcome IS NULL")),
)

# As a report or a run states it; `issues` is told by occurrences once it is `matched` with the others of its case.
_table(
    "judgements",
    *_of_workspace(judgement_id=Id),
    *_optional(source_id=Id, run_id=sa.Text),
    *_required(pointer=sa.Text, case_name=sa.Text, case_title=sa.Text, version=sa.Text),
    *_moments("judged_at", nullable=True),
    *_optional(score=sa.REAL, stated=sa.Double),
    *_required(verdict=sa.Text),
    *_optional(passed=sa.Boolean),
    *_required(grade=sa.Text, judge=sa.Text, basis=sa.Text, summary=sa.Text, lists_issues=sa.Boolean),
    *_default("[]", issues=JSONB),
    *_default(FALSE, matched=sa.Boolean),
    *_moments("created_at", now=True),
    _deleted_with("sources", source_id="source_id"),
    sa.CheckConstraint("score BETWEEN 0 AND 10", name="score"),
    sa.CheckConstraint("basis IN ('judged', 'listed', 'reported')", name="basis"),
    sa.CheckConstraint("num_nonnulls(source_id, run_id) = 1", name="origin"),
    _index("judgements_case_ix", "case_name"),
    _index("judgements_source_ix", "source_id", where="source_id IS NOT NULL"),
    _index("judgements_run_uq", "run_id", unique=True, where="run_id IS NOT NULL"),
    _index("judgements_unmatched_ix", "case_name", where="NOT matched"),
)

_table(
    "issues",
    *_of_workspace(issue_id=Id),
    *_required(
        case_name=sa.Text, title=sa.Text, severity=sa.Text, status=sa.Text, versions=ARRAY(sa.Text), mended_in=sa.Text
    ),
    *_moments("updated_at", now=True),
    sa.CheckConstraint("status IN ('open', 'mended')", name="status"),
    _index("issues_case_ix", "case_name"),
)

_table(
    "issue_occurrences",
    *_keyed(judgement_id=Id, place=sa.SmallInteger, version=sa.Text, status=sa.Text),
    *_required(issue_id=Id, severity=sa.Text),
    _deleted_with("judgements", judgement_id="judgement_id"),
    _deleted_with("issues", issue_id="issue_id"),
    _index("issue_occurrences_issue_ix", "issue_id"),
)

# Rows are only appended: an undo is a row that names the row it undoes, so that the log replays to every quality.
_table(
    "feedback",
    *_keyed(feedback_id=Id),
    sa.Column("position", sa.BigInteger, sa.Identity(always=True), nullable=False),
    *_required(memory_id=Id),
    *_optional(rating=sa.SmallInteger, undoes=Id),
    *_default("", comment=sa.Text),
    *_optional(run_id=sa.Text, idempotency_key=sa.Text, reviewer=sa.Text),
    *_moments("created_at", now=True),
    _deleted_with("memories", memory_id="memory_id"),
    sa.CheckConstraint("(rating IN (-1, 1)) <> (undoes IS NOT NULL)", name="rating"),
    sa.UniqueConstraint("workspace_id", "undoes", name="feedback_undoes_uq"),
    sa.UniqueConstraint("workspace_id", "idempotency_key", name="feedback_idempotency_key_uq"),
    _index("feedback_memory_ix", "memory_id", "position"),
)

# This log has one entry for each ingestion, which holds the outcome of each file and never changes.
_table(
    "ingestions",
    *_of_workspace(ingestion_id=Id),
    *_required(seconds=sa.REAL, counts=JSONB, outcomes=JSONB),
    *_default("", degraded=sa.Text),
    *_moments("finished_at", now=True),
)

_table(
    "refusals",
    *_of_workspace(reason=sa.Text),
    *_required(count=sa.BigInteger),
    *_moments("last_at", now=True),
)

# The newest layouts of each workspace, one for each question that was asked (all kinds: ""; how many at most).
_table(
    "graph_layouts",
    *_of_workspace(kind=sa.Text, node_limit=sa.Integer),
    *_required(fingerprint=sa.LargeBinary, model=sa.Text, clusters=JSONB),
    *_moments("computed_at"),
    *_moments("written_at", now=True),
    _index("graph_layouts_fingerprint_ix", "fingerprint"),
)

# No foreign key to memories: a deleted one that comes back finds its place again.
_table(
    "graph_points",
    *_keyed(kind=sa.Text, node_limit=sa.Integer, memory_id=Id),
    *_required(content_hash=sa.LargeBinary, x=sa.Double, y=sa.Double, cluster=sa.SmallInteger, fitted=sa.Boolean),
    _deleted_with("graph_layouts", kind="kind", node_limit="node_limit"),
)

# `next` is not stored: the ordinals in a source give it.
_table(
    "links",
    *_required(workspace_id=sa.BigInteger, from_id=Id, to_id=Id, relation=sa.Text),
    *_default("1", weight=sa.REAL),
    *_moments("created_at", now=True),
    sa.PrimaryKeyConstraint("workspace_id", "from_id", "relation", "to_id"),
    _deleted_with("memories", from_id="memory_id", key_name="links_from_fk"),
    _deleted_with("memories", to_id="memory_id", key_name="links_to_fk"),
    sa.CheckConstraint(
        "relation IN ('mentions', 'same_entity', 'similar', 'derived_from', 'supersedes', 'same_task')", name="relation"
    ),
    sa.CheckConstraint("weight > 0 AND weight <= 1", name="weight"),
    sa.CheckConstraint("from_id <> to_id", name="itself"),
    # With all that a recall reads of them, strongest first: the links of a memory lie scattered in the table.
    _index("links_in_ix", "to_id", "relation", sa.text("weight DESC"), "from_id"),
    # It also tells at once whether a workspace has links that spread evidence.
    _index("links_out_ix", "from_id", "relation", sa.text("weight DESC"), "to_id", where="relation <> 'similar'"),
)

# The dictionary of titles: of live memories alone, as `lexical` and `embeddings` are.
_table(
    "titles",
    *_of_memory(),
    *_required(key=sa.Text),
    *_default(FALSE, common=sa.Boolean),
    _index("titles_key_ix", "key"),
)

_table(
    "pending_links",
    *_of_memory(step=sa.Text),
    # The number of times that it was queued: a text that was read before the latest time may be outdated.
    *_default("1", asked=sa.Integer),
    sa.CheckConstraint("step IN ('words', 'vectors')", name="step"),
)
