"""Every table, with named constraints.

`workspace_id` leads every primary key, unique constraint and foreign key (docs/adr/0002). What may be retrieved is
what stands in `lexical` and `embeddings`: a retired memory keeps its row in `memories` and leaves both, so that no
arm ever has to skip it (docs/adr/0003).
"""

from typing import Any

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC, SPARSEVEC
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB, TSVECTOR
from sqlalchemy.schema import SchemaItem

from app.db.columns import (
    FALSE,
    TERM_DIMENSIONS,
    Id,
    default,
    deleted_with,
    index,
    keyed,
    moments,
    of_memory,
    of_user,
    of_workspace,
    optional,
    required,
)
from app.db.cue_tables import add_context_tables, add_cue_tables, add_item_table, add_session_tables

metadata = sa.MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "fk": "%(table_name)s_%(referred_table_name)s_fk",
        "ck": "%(table_name)s_%(constraint_name)s_ck",
        "ix": "%(table_name)s_%(column_0_N_name)s_ix",
    }
)


def _table(name: str, *items: SchemaItem, **options: Any) -> None:  # noqa: ANN401 - SQLAlchemy's
    sa.Table(name, metadata, *items, **options)


_table(
    "workspaces",
    sa.Column("workspace_id", sa.BigInteger, sa.Identity(always=True)),
    *required(name=sa.Text, language=sa.Text, languages=ARRAY(sa.Text)),
    *default("0", document_count=sa.BigInteger, mean_length=sa.REAL),
    *moments("statistics_at", nullable=True),
    *moments("created_at", now=True),
    *default("{}", roles=JSONB, ranking=JSONB),
    # True once a memory of a user was stored: from then on recalls are filtered.
    *default(FALSE, has_users=sa.Boolean),
    sa.PrimaryKeyConstraint("workspace_id"),
    sa.UniqueConstraint("name"),
)

# A key belongs to no workspace: it names those that it serves, NULL for all. Only the owner's role sees the rows.
_table(
    "api_keys",
    sa.Column("key_id", Id),
    *required(digest=sa.LargeBinary, name=sa.Text, scopes=ARRAY(sa.Text)),
    *optional(workspaces=ARRAY(sa.Text)),
    *moments("created_at", now=True),
    *moments("expires_at", "revoked_at", "last_used_at", nullable=True),
    *optional(replaces=Id, requests_per_minute=sa.BigInteger, bytes_per_minute=sa.BigInteger),
    sa.PrimaryKeyConstraint("key_id"),
    sa.UniqueConstraint("digest"),
    sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
    sa.CheckConstraint("scopes <> '{}' AND scopes <@ ARRAY['read', 'write', 'rate', 'admin']", name="scopes"),
    sa.CheckConstraint("workspaces <> '{}'", name="workspaces"),
    sa.CheckConstraint("requests_per_minute >= 0", name="requests_per_minute"),
    sa.CheckConstraint("bytes_per_minute >= 0", name="bytes_per_minute"),
)

# A limit that is NULL is that of the settings, one of 0 is none. What is used grows with each write; only a new count,
# which is taken where a limit is reached, makes it smaller.
_table(
    "quotas",
    *of_workspace(),
    *optional(memories=sa.BigInteger, bytes=sa.BigInteger, jobs=sa.BigInteger),
    *default("0", used_memories=sa.BigInteger, used_bytes=sa.BigInteger),
    *moments("counted_at", nullable=True),
    sa.CheckConstraint("least(memories, bytes, jobs) >= 0", name="limits"),
)

_table(
    "sources",
    *of_workspace(source_id=Id),
    *required(kind=sa.Text, uri=sa.Text),
    *default("", title=sa.Text),
    *optional(content_hash=sa.LargeBinary),
    *moments("created_at", "updated_at", now=True),
    *moments("retired_at", nullable=True),
    *of_user(),
    sa.CheckConstraint("kind IN ('report', 'session', 'run', 'other')", name="kind"),
    index("sources_live_uri_uq", "kind", "uri", "user_id", unique=True, where="retired_at IS NULL"),
    index("sources_session_uq", "uri", unique=True, where="kind = 'session' AND retired_at IS NULL"),
    index("sources_user_ix", "user_id", where="user_id <> ''"),
    index("sources_created_ix", "created_at", "source_id"),
)

_table(
    "memories",
    *of_workspace(memory_id=Id),
    *required(kind=sa.Text),
    *optional(source_id=Id, ordinal=sa.Integer),
    *required(title=sa.Text, body=sa.Text, language=sa.Text),
    *default("{}", tags=ARRAY(sa.Text), metadata=JSONB),
    *optional(run_id=sa.Text, final_score=sa.REAL),
    *default("0", quality=sa.SmallInteger),
    *required(tokens=sa.Integer),
    *moments("occurred_at", nullable=True),
    *moments("created_at", now=True),
    *moments("valid_until", nullable=True),
    *required(content_hash=sa.LargeBinary),
    *optional(retired_as=sa.Text, findings=JSONB),
    *default("0", uses=sa.Integer),
    *default(FALSE, released=sa.Boolean),
    *of_user(),
    sa.ForeignKeyConstraint(["workspace_id", "source_id"], ["sources.workspace_id", "sources.source_id"]),
    sa.CheckConstraint("kind IN ('observation', 'chunk', 'message', 'cue', 'note')", name="kind"),
    sa.CheckConstraint("quality BETWEEN -3 AND 3", name="quality"),
    sa.CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    sa.CheckConstraint("retired_as IN ('gone', 'deleted', 'superseded', 'quarantined')", name="retired_as"),
    index(
        "memories_live_identity_uq",
        "content_hash",
        "kind",
        "source_id",
        "ordinal",
        "user_id",
        unique=True,
        where="valid_until IS NULL",
        postgresql_nulls_not_distinct=True,
    ),
    index("memories_source_ix", "source_id", "ordinal", where="source_id IS NOT NULL"),
    index("memories_created_ix", "created_at", "memory_id"),
    index(
        "memories_moment_ix",
        # In the layout in which Postgres gives it back, so that it can be compared.
        sa.text("(\nCASE\n    WHEN occurred_at IS NULL THEN created_at\n    ELSE occurred_at\nEND)"),
        "memory_id",
        where="valid_until IS NULL",
    ),
    sa.Index("memories_tags_ix", "tags", postgresql_using="gin"),
    index("memories_kind_ix", "kind", "memory_id", where="valid_until IS NULL"),
    index("memories_retired_ix", "retired_as", "valid_until", where="retired_as IS NOT NULL"),
    index(
        "memories_suspect_ix",
        "created_at",
        where="""valid_until IS NULL AND jsonb_path_exists(findings, '$[*].severity ? (@ == "suspect")')
            AND NOT released""",
    ),
    index("memories_quality_ix", "quality", "memory_id", where="quality <> 0 AND valid_until IS NULL"),
    index("memories_score_ix", "final_score", "memory_id", where="final_score IS NOT NULL AND valid_until IS NULL"),
    index("memories_run_ix", "run_id", where="run_id IS NOT NULL"),
    index("memories_live_user_ix", "user_id", where="valid_until IS NULL"),
    index("memories_user_ix", "user_id", where="user_id <> ''"),
)

# A memory without a row is long-term, and no recall has found it. Apart from `memories`, whose rows are wide and have a
# dozen indexes: what changes with each access stands in a row of 100 bytes.
_table(
    "tiers",
    *of_memory(),
    *default("long_term", tier=sa.Text),
    *default(FALSE, pinned=sa.Boolean),
    *default("0", access_count=sa.Integer),
    *moments("accessed_at", nullable=True),
    # The number of accesses, each counted less the longer ago it was, at the moment of the last one.
    *default("0", visits=sa.REAL),
    # The run in whose working memory it is.
    *optional(run_id=sa.Text),
    # The moment from which its tier may be another.
    *moments("due_at", nullable=True),
    sa.CheckConstraint("tier IN ('working', 'short_term', 'long_term')", name="tier"),
    index("tiers_due_ix", "due_at", where="due_at IS NOT NULL"),
    index("tiers_tier_ix", "tier", "memory_id", where="tier <> 'long_term'"),
    index("tiers_run_ix", "run_id", where="tier = 'working'"),
)

_table(
    "lexical",
    *of_memory(),
    *required(terms=TSVECTOR, weights=SPARSEVEC(TERM_DIMENSIONS), length=sa.Integer),
    # Its list of pending entries is merged by whoever wrote them, so that no search has to read through it.
    sa.Index("lexical_terms_ix", "terms", postgresql_using="gin", postgresql_with={"fastupdate": "on"}),
)

_table(
    "lexeme_statistics",
    *keyed(lexeme=sa.Text),
    *required(document_count=sa.Integer),
    deleted_with("workspaces"),
)

_table(
    "embedding_models",
    sa.Column("model_id", sa.SmallInteger, sa.Identity(always=True)),
    *required(name=sa.Text, dimension=sa.SmallInteger),
    *default(FALSE, active=sa.Boolean),
    *moments("created_at", now=True),
    *moments("retiring_since", nullable=True),
    sa.PrimaryKeyConstraint("model_id"),
    sa.UniqueConstraint("name"),
    sa.CheckConstraint("NOT active OR retiring_since IS NULL", name="retiring_since"),
)

_table(
    "embeddings",
    # A text longer than the model's window has several passages; `ends` is null where the window was the end.
    *of_memory(model_id=sa.SmallInteger, passage=sa.SmallInteger),
    *default("0", starts=sa.Integer),
    *required(embedding=HALFVEC()),
    # The vectors of the passages that answers show, of a memory that has several, beside its first vector.
    *optional(ends=sa.Integer, parts=sa.LargeBinary),
    index("embeddings_passages_ix", "memory_id", where="passage > 0"),
    sa.ForeignKeyConstraint(["model_id"], ["embedding_models.model_id"]),
    postgresql_partition_by="LIST (model_id)",
)

_table(
    "pending_embeddings",
    *of_memory(),
    # True if only later passages are lacking: the memory is found by its first one meanwhile.
    *default(FALSE, partial=sa.Boolean),
    index("pending_embeddings_lacking_ix", where="NOT partial"),
)

_table(
    "recalls",
    *of_workspace(recall_id=Id),
    *required(purpose=sa.Text, query=sa.Text),
    *optional(agent=sa.Text, run_id=sa.Text),
    *required(parameters=JSONB, mode=sa.Text, degraded=JSONB),
    *optional(tokens=sa.Integer),
    *required(took_ms=sa.REAL),
    *moments("created_at", now=True),
    *default("0", hits=sa.SmallInteger),
    *of_user(),
    # Its hits are counted among the accesses of their memories.
    *default(FALSE, counted=sa.Boolean),
    index("recalls_run_ix", "run_id", where="run_id IS NOT NULL"),
    index("recalls_empty_ix", "recall_id", where="hits = 0"),
    index("recalls_uncounted_ix", "recall_id", where="NOT counted"),
    index("recalls_user_ix", "user_id", where="user_id <> ''"),
)

# There is no foreign key to memories: its check would write a row lock into every memory that a recall names.
_table(
    "recall_hits",
    *keyed(recall_id=Id, rank=sa.SmallInteger),
    *required(memory_id=Id, score=sa.REAL, explain=JSONB),
    # The run's output repeats this memory.
    *default(FALSE, used=sa.Boolean),
    deleted_with("recalls", recall_id="recall_id"),
    index("recall_hits_memory_ix", "memory_id"),
)

_table(
    "run_sections",
    *of_workspace(run_id=sa.Text),
    *required(recall_id=Id, blocks=JSONB),
    *moments("updated_at", now=True),
)

_table(
    "runs",
    *of_workspace(run_id=sa.Text),
    *default("", task=sa.Text, task_type=sa.Text),
    *optional(agent=sa.Text),
    *default("{}", queries=ARRAY(sa.Text)),
    *optional(output=sa.Text, output_path=sa.Text, lines=sa.Integer, bytes=sa.BigInteger),
    *default("{}", round_scores=ARRAY(sa.REAL)),
    *optional(final_score=sa.REAL),
    *default("", verdict=sa.Text),
    # JSONB would sort the stages by the length of their names.
    *default("{}", issues=ARRAY(sa.Text), stages=JSON, metadata=JSONB),
    *moments("started_at", "finished_at", nullable=True),
    *moments("created_at", "updated_at", now=True),
    *default(FALSE, output_replaced=sa.Boolean),
    *of_user(),
    sa.CheckConstraint("final_score BETWEEN 0 AND 10", name="final_score"),
    index("runs_created_ix", "created_at", "run_id"),
)

_table(
    "observations",
    *of_memory(),
    *required(task=sa.Text, task_type=sa.Text, narrative=sa.Text, facts=ARRAY(sa.Text)),
    *optional(output_path=sa.Text),
    *required(verdict=sa.Text, compressor=sa.Text),
    *optional(model=sa.Text, prompt=sa.Text, superseded_by=Id),
    *default("{}", queries=ARRAY(sa.Text)),
    sa.CheckConstraint("compressor IN ('llm', 'extractive', 'given')", name="compressor"),
    index("observations_task_ix", sa.text("md5(task)")),
)

# A run is compressed once for each of its tasks; its observation has an id before the work is done. Rows of earlier
# outputs stay: `earlier` if a later request replaced the row, `moved_on` if the judgement is fixed for its output.
# `maker` has the lease until `made_until`, and may renew it.
_table(
    "compressions",
    *of_workspace(observation_id=Id),
    *optional(run_id=sa.Text),
    *required(request=JSONB),
    *optional(outcome=sa.Text),
    *default("", reason=sa.Text),
    *optional(memory_id=Id),
    *moments("created_at", now=True),
    *moments("finished_at", nullable=True),
    *default(FALSE, moved_on=sa.Boolean, earlier=sa.Boolean),
    *optional(maker=Id),
    *moments("made_until", nullable=True),
    *of_user(),
    sa.CheckConstraint("outcome IN ('stored', 'joined', 'refused')", name="outcome"),
    index(
        "compressions_current_ix",
        "run_id",
        sa.text("md5(request ->> 'task')"),
        unique=True,
        where="run_id IS NOT NULL AND NOT earlier",
    ),
    index("compressions_run_ix", "run_id", where="run_id IS NOT NULL"),
    index("compressions_memory_ix", "memory_id", where="memory_id IS NOT NULL"),
    sa.Index("compressions_waiting_ix", "created_at", postgresql_where=sa.text("outcome IS NULL")),
)

# As a report or a run states it; `issues` is told by occurrences once it is `matched` with the others of its case.
_table(
    "judgements",
    *of_workspace(judgement_id=Id),
    *optional(source_id=Id, run_id=sa.Text),
    *required(pointer=sa.Text, case_name=sa.Text, case_title=sa.Text, version=sa.Text),
    *moments("judged_at", nullable=True),
    *optional(score=sa.REAL, stated=sa.Double),
    *required(verdict=sa.Text),
    *optional(passed=sa.Boolean),
    *required(grade=sa.Text, judge=sa.Text, basis=sa.Text, summary=sa.Text, lists_issues=sa.Boolean),
    *default("", advice=sa.Text),
    *default("[]", issues=JSONB),
    *default(FALSE, matched=sa.Boolean),
    *moments("created_at", now=True),
    deleted_with("sources", source_id="source_id"),
    sa.CheckConstraint("score BETWEEN 0 AND 10", name="score"),
    sa.CheckConstraint("basis IN ('judged', 'listed', 'reported')", name="basis"),
    sa.CheckConstraint("num_nonnulls(source_id, run_id) = 1", name="origin"),
    index("judgements_case_ix", "case_name"),
    index("judgements_source_ix", "source_id", where="source_id IS NOT NULL"),
    index("judgements_run_uq", "run_id", unique=True, where="run_id IS NOT NULL"),
    index("judgements_unmatched_ix", "case_name", where="NOT matched"),
)

_table(
    "issues",
    *of_workspace(issue_id=Id),
    *required(case_name=sa.Text, title=sa.Text, severity=sa.Text, status=sa.Text, versions=ARRAY(sa.Text)),
    # The version before writes the column and the status `mended`.
    *default("", mended_in=sa.Text, state=sa.Text),
    *moments("updated_at", now=True),
    sa.CheckConstraint("status IN ('open', 'reopened', 'resolved', 'unnamed', 'mended')", name="status"),
    index("issues_case_ix", "case_name"),
)

_table(
    "issue_occurrences",
    *keyed(judgement_id=Id, place=sa.SmallInteger, version=sa.Text, status=sa.Text),
    *required(issue_id=Id, severity=sa.Text),
    deleted_with("judgements", judgement_id="judgement_id"),
    deleted_with("issues", issue_id="issue_id"),
    index("issue_occurrences_issue_ix", "issue_id"),
)

add_session_tables(_table)

# Rows are only appended: an undo is a row that names the row it undoes, so that the log replays to every quality.
_table(
    "feedback",
    *keyed(feedback_id=Id),
    sa.Column("position", sa.BigInteger, sa.Identity(always=True), nullable=False),
    *required(memory_id=Id),
    *optional(rating=sa.SmallInteger, undoes=Id),
    *default("", comment=sa.Text),
    *optional(run_id=sa.Text, idempotency_key=sa.Text, reviewer=sa.Text),
    *moments("created_at", now=True),
    deleted_with("memories", memory_id="memory_id"),
    sa.CheckConstraint("(rating IN (-1, 1)) <> (undoes IS NOT NULL)", name="rating"),
    sa.UniqueConstraint("workspace_id", "undoes", name="feedback_undoes_uq"),
    sa.UniqueConstraint("workspace_id", "idempotency_key", name="feedback_idempotency_key_uq"),
    index("feedback_memory_ix", "memory_id", "position"),
)

# This log has one entry for each ingestion, which holds the outcome of each file and never changes.
_table(
    "ingestions",
    *of_workspace(ingestion_id=Id),
    *required(seconds=sa.REAL, counts=JSONB, outcomes=JSONB),
    *default("", degraded=sa.Text),
    *moments("finished_at", now=True),
)

_table(
    "refusals",
    *of_workspace(reason=sa.Text),
    *required(count=sa.BigInteger),
    *moments("last_at", now=True),
)

# Rows are only appended, and the service's role cannot change them. No foreign key to the workspace: that it was erased
# stays, under the workspace -1, as what concerns the whole store does.
_table(
    "audit",
    *keyed(entry_id=Id),
    *moments("at", now=True),
    *required(who=sa.Text, operation=sa.Text, request_id=sa.Text),
    *optional(key_id=Id),
    *required(for_user=sa.Text, action=sa.Text, object=sa.Text, count=sa.BigInteger, ids=ARRAY(sa.Text)),
    *optional(ids_hash=sa.LargeBinary, before=sa.LargeBinary, after=sa.LargeBinary),
    sa.CheckConstraint("action IN ('add', 'change', 'remove', 'export', 'erase')", name="action"),
    sa.Index("audit_at_ix", "at", postgresql_using="brin"),
)

# The newest layouts of each workspace, one for each question that was asked (all kinds: ""; how many at most).
_table(
    "graph_layouts",
    *of_workspace(kind=sa.Text, node_limit=sa.Integer),
    *required(fingerprint=sa.LargeBinary, model=sa.Text, clusters=JSONB),
    *moments("computed_at"),
    *moments("written_at", now=True),
    index("graph_layouts_fingerprint_ix", "fingerprint"),
)

# No foreign key to memories: a deleted one that comes back finds its place again.
_table(
    "graph_points",
    *keyed(kind=sa.Text, node_limit=sa.Integer, memory_id=Id),
    *required(content_hash=sa.LargeBinary, x=sa.Double, y=sa.Double, cluster=sa.SmallInteger, fitted=sa.Boolean),
    deleted_with("graph_layouts", kind="kind", node_limit="node_limit"),
)

# `next` is not stored: the ordinals in a source give it.
_table(
    "links",
    *required(workspace_id=sa.BigInteger, from_id=Id, to_id=Id, relation=sa.Text),
    *default("1", weight=sa.REAL),
    *moments("created_at", now=True),
    sa.PrimaryKeyConstraint("workspace_id", "from_id", "relation", "to_id"),
    deleted_with("memories", from_id="memory_id", key_name="links_from_fk"),
    deleted_with("memories", to_id="memory_id", key_name="links_to_fk"),
    sa.CheckConstraint("relation ~ '^[a-z][a-z0-9_]{0,39}$' AND relation <> 'next'", name="relation"),
    sa.CheckConstraint("weight > 0 AND weight <= 1", name="weight"),
    sa.CheckConstraint("from_id <> to_id", name="itself"),
    # With all that a recall reads of them, strongest first: the links of a memory lie scattered in the table.
    index("links_in_ix", "to_id", "relation", sa.text("weight DESC"), "from_id"),
    # It also tells at once whether a workspace has links that spread evidence.
    index("links_out_ix", "from_id", "relation", sa.text("weight DESC"), "to_id", where="relation <> 'similar'"),
)

# The dictionary of titles: of live memories alone, as `lexical` and `embeddings` are.
_table(
    "titles",
    *of_memory(),
    *required(key=sa.Text),
    *default(FALSE, common=sa.Boolean),
    index("titles_key_ix", "key"),
)

_table(
    "pending_links",
    *of_memory(step=sa.Text),
    # The number of times that it was queued: a text that was read before the latest time may be outdated.
    *default("1", asked=sa.Integer),
    sa.CheckConstraint("step IN ('words', 'vectors')", name="step"),
)

add_cue_tables(_table)
add_context_tables(_table)
add_item_table(_table)
