"""The SQL of retrieval: the survey before a recall and the log after it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from app.db.session import Row, Session
from app.db.wire import Ids
from app.index.models import StoredModel
from app.memories.filters import Filters, conditions
from app.memories.store import JOINED
from app.retrieval.degradation import TOLERATED_PENDING
from app.retrieval.lexical import Term

KEPT_AT_MOST = 5_000
"""Memories that pass a filter: so many at most are found once, by the survey, and all scored by both arms, without
their indexes."""
COUNTED_EXACTLY = 2_000
"""Counting as many takes 0.2 ms; the statistics of a larger store are off by a small share at most."""
BEARABLE = round(1 / TOLERATED_PENDING)
"""Live memories for each that is pending: so many are counted while memories are pending, so that late statistics
cannot silence the vector arm. It reads 10 rows of an index for each pending memory, and none where few are."""
TAGGED = "m.memory_id = ANY(ARRAY(SELECT priors_tagged(%(tags)s::text[], NULL)))"
"""The condition of tags by their index, which row-level security keeps a condition of the column from using."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The state of a workspace that must be known before the arms are asked."""

    workspace_id: int
    model: StoredModel | None
    """The model whose vectors the database serves."""
    pending: int
    """Live memories of the workspace that have no vector of it yet."""
    live: int
    """Live memories of the workspace: exact up to COUNTED_EXACTLY, and as far as it decides whether too many are
    `pending`; beyond it as of the last statistics."""
    indexed: bool
    """True where the workspace's vectors have an HNSW index."""
    kept: Ids | None
    """The memories that pass the filters; None where they are more than KEPT_AT_MOST, or where there are no filters."""
    linked: bool
    """True where the workspace has links that pass anything on."""
    terms: tuple[Term, ...]


SURVEY = """
SELECT w.workspace_id, e.model_id, e.name AS model_name, e.dimension, pending.pending,
    EXISTS (
        SELECT 1 FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
        WHERE c.relname = 'embeddings_' || e.model_id || '_' || w.workspace_id || '_hnsw' AND i.indisvalid
    ) AS indexed,
    counted.live, {kept} AS kept, EXISTS (
        SELECT 1 FROM links l WHERE l.workspace_id = w.workspace_id AND l.relation <> 'similar'
    ) AS linked,
    (
        SELECT json_agg(json_build_array(
            t.lexeme, priors_dimension(t.lexeme), coalesce(s.document_count, 0), t.languages
        ))
        FROM (
            SELECT parsed.lexeme, array_agg(language) AS languages
            FROM unnest({languages}) AS language,
                unnest(priors_terms(CAST(language AS regconfig), %(query)s)) AS parsed
            GROUP BY parsed.lexeme
        ) AS t
        LEFT JOIN lexeme_statistics s ON s.workspace_id = w.workspace_id AND s.lexeme = t.lexeme
    ) AS terms
FROM workspaces w LEFT JOIN embedding_models e ON e.active
CROSS JOIN LATERAL (
    SELECT count(*) AS pending FROM pending_embeddings p WHERE p.workspace_id = w.workspace_id
) AS pending
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN count(*) <= {exactly} THEN count(*)
        WHEN pending.pending * {bearable} <= {exactly} THEN greatest(count(*), w.document_count)
        ELSE (
            SELECT CASE WHEN count(*) < pending.pending * {bearable} THEN count(*)
                ELSE greatest(count(*), w.document_count) END
            FROM (
                SELECT 1 FROM lexical l WHERE l.workspace_id = w.workspace_id LIMIT pending.pending * {bearable}
            ) AS more
        )
    END AS live
    FROM (SELECT 1 FROM lexical l WHERE l.workspace_id = w.workspace_id LIMIT {exactly} + 1) AS few
) AS counted
{few}
WHERE w.workspace_id = %(workspace_id)s
"""

KEPT = f"CASE WHEN few.count <= {KEPT_AT_MOST} THEN few.ids END"
FEW = """CROSS JOIN LATERAL (
    SELECT count(*), coalesce(array_agg(memory_id), ARRAY[]::uuid[]) AS ids FROM ({passing}) AS kept
) AS few"""
PASSING_TAGS = f"SELECT memory_id FROM priors_tagged(%(tags)s::text[], {KEPT_AT_MOST} + 1) AS tagged(memory_id)"  # noqa: S608 - constants
PASSING = f"""SELECT m.memory_id FROM {JOINED}
    WHERE m.workspace_id = w.workspace_id AND m.valid_until IS NULL AND {{conditions}} LIMIT {KEPT_AT_MOST} + 1"""  # noqa: S608 - constants


async def survey(session: Session, query: str, *, filters: Filters, language: str | None) -> Survey | None:
    """Returns the survey for a query; None where nothing was ever written to the workspace.

    The query is parsed by `language`, or by every language that the workspace's memories are written in.
    """
    _, values = conditions(filters)
    given = {**values, "query": query}
    languages = "w.languages"
    if language is not None:
        languages, given["language"] = "ARRAY[%(language)s::text]", language
    kept, few = (KEPT, FEW.format(passing=_passing(filters))) if filters else ("NULL::uuid[]", "")
    statement = SURVEY.format(kept=kept, few=few, languages=languages, exactly=COUNTED_EXACTLY, bearable=BEARABLE)
    row = await session.row(statement, given, binary=True)
    return None if row is None else _survey_of(row)


def indexed_conditions(filters: Filters) -> Sequence[str]:
    """Returns the filters' conditions for a search among all memories, where tags are looked up in their index."""
    if not filters.tags:
        return conditions(filters)[0]
    return [TAGGED, *conditions(replace(filters, tags=()))[0]]


def _passing(filters: Filters) -> str:
    if not replace(filters, tags=()):
        return PASSING_TAGS
    return PASSING.format(conditions=" AND ".join(indexed_conditions(filters)))


def _survey_of(row: Row) -> Survey:
    model = None
    if row.model_id is not None:
        model = StoredModel(model_id=row.model_id, name=row.model_name, dimension=row.dimension)
    return Survey(
        workspace_id=row.workspace_id,
        model=model,
        pending=row.pending,
        live=row.live,
        indexed=row.indexed,
        kept=row.kept,
        linked=row.linked,
        terms=tuple(
            Term(lexeme=lexeme, dimension=dimension, document_count=count, languages=frozenset(languages))
            for lexeme, dimension, count, languages in row.terms or ()
        ),
    )


# The log may lose the last half second to a crash of the server, so that no answer waits for a disk.
RECALL = """recall AS (
    INSERT INTO recalls (workspace_id, recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens,
        took_ms)
    SELECT %(workspace_id)s, %(recall_id)s, %(purpose)s, %(query)s, %(agent)s, %(run_id)s, %(parameters)s::jsonb,
        %(mode)s, %(degraded)s::jsonb, %(tokens)s, %(took_ms)s
    {source}
    RETURNING workspace_id, recall_id
), hit AS (
    INSERT INTO recall_hits (workspace_id, recall_id, rank, memory_id, score, explain)
    SELECT workspace_id, recall_id, rank, memory_id, score, explain
    FROM recall, jsonb_to_recordset(%(hits)s::jsonb) AS hit(rank smallint, memory_id uuid, score real, explain jsonb)
)
SELECT count(*), set_config('synchronous_commit', 'off', true) FROM recall
"""
LOG = f"WITH {RECALL.format(source='')}"

# A call that saw the run's latest section replaces it; one that saw an older one writes nothing, and looks again.
LOG_SECTION = f"""
WITH section AS (
    INSERT INTO run_sections AS s (workspace_id, run_id, recall_id, blocks)
    VALUES (%(workspace_id)s, %(run_id)s, %(recall_id)s, %(blocks)s::jsonb)
    ON CONFLICT (workspace_id, run_id) DO UPDATE
    SET recall_id = EXCLUDED.recall_id, blocks = EXCLUDED.blocks, updated_at = now()
    WHERE s.recall_id = %(continues)s
    RETURNING workspace_id
), {RECALL.format(source="FROM section")}"""  # noqa: S608 - constants

LATEST_SECTION = """
SELECT recall_id, blocks FROM run_sections WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

LOGGED_RECALL = """
SELECT recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens, took_ms, created_at
FROM recalls WHERE workspace_id = %(workspace_id)s AND recall_id = %(recall_id)s
"""

LOGGED_HITS = """
SELECT h.rank, h.memory_id, coalesce(m.title, '') AS title, h.score, h.explain
FROM recall_hits h LEFT JOIN memories m USING (workspace_id, memory_id)
WHERE h.workspace_id = %(workspace_id)s AND h.recall_id = %(recall_id)s ORDER BY h.rank
"""


async def log(session: Session, recorded: Mapping[str, Any]) -> None:
    """Keep a recall and its hits, in one statement."""
    await session.execute(LOG, recorded)


async def log_section(session: Session, recorded: Mapping[str, Any], blocks: str, *, continues: UUID | None) -> bool:
    """Keep a recall, its hits and the run's new section, in one statement; `blocks` is JSON.

    False, and nothing is kept, where the run's latest section is not the one that this `continues`.
    """
    return bool(await session.value(LOG_SECTION, {**recorded, "blocks": blocks, "continues": continues}))


async def latest_section(session: Session, run_id: str) -> Row | None:
    """Returns the run's latest stable section: its `recall_id` and `blocks`; None where the run has none yet."""
    return await session.row(LATEST_SECTION, {"run_id": run_id})


async def logged(session: Session, recall_id: UUID) -> tuple[Row, Sequence[Row]] | None:
    """Returns a recall's row and those of its hits; None where there is none."""
    given = {"recall_id": recall_id}
    recall = await session.row(LOGGED_RECALL, given)
    if recall is None:
        return None
    return recall, await session.rows(LOGGED_HITS, given)
