"""The SQL of retrieval: the survey before a recall, the two arms, and the log after it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import dict_row, namedtuple_row
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.context.prefix import ShownBlock
from app.db.identities import Ids, keep_ids
from app.index.vectors import StoredModel
from app.memories.filters import Filters, conditions
from app.memories.memory import Memory
from app.memories.store import COLUMNS, JOINED
from app.retrieval.candidates import KEPT_AT_MOST
from app.retrieval.degradation import TOLERATED_WAITING
from app.retrieval.lexical import Term
from app.retrieval.query import Query
from app.retrieval.recall import Recall
from app.workspaces.store import workspace_of
from app.workspaces.workspace import Workspace

COUNTED_EXACTLY = 2_000
"""Counting as many takes 0.2 ms; the statistics of a larger store are off by a small share at most."""

BEARABLE = round(1 / TOLERATED_WAITING)
"""Live memories that one may wait for: as many are counted while others wait, so that statistics that are late cannot
silence the vector arm. Reads 10 rows of an index for each that waits, and nothing where few do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What must be known before the arms are asked."""

    workspace: Workspace
    model: StoredModel | None
    """The model whose vectors the database serves."""
    waiting: int
    """Live memories of the workspace that have no vector of it yet."""
    live: int
    """Live memories of the workspace: exact up to COUNTED_EXACTLY, and as far as it decides whether too many are
    `waiting`; beyond it as of the last statistics."""
    indexed: bool
    """Whether the workspace's vectors have an HNSW index."""
    kept: Ids | None
    """What the filters keep; None where that is more than KEPT_AT_MOST, or where there are no filters."""
    linked: bool
    """Whether the workspace has links that pass anything on."""
    terms: tuple[Term, ...]


SURVEY = """
SELECT w.workspace_id, w.name, w.language, w.languages, w.document_count, w.mean_length,
    e.model_id, e.name AS model_name, e.dimension,
    pending.waiting,
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
    SELECT count(*) AS waiting FROM pending_embeddings p WHERE p.workspace_id = w.workspace_id
) AS pending
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN count(*) <= {exactly} THEN count(*)
        WHEN pending.waiting * {bearable} <= {exactly} THEN greatest(count(*), w.document_count)
        ELSE (
            SELECT CASE WHEN count(*) < pending.waiting * {bearable} THEN count(*)
                ELSE greatest(count(*), w.document_count) END
            FROM (
                SELECT 1 FROM lexical l WHERE l.workspace_id = w.workspace_id LIMIT pending.waiting * {bearable}
            ) AS more
        )
    END AS live
    FROM (SELECT 1 FROM lexical l WHERE l.workspace_id = w.workspace_id LIMIT {exactly} + 1) AS few
) AS counted
{few}
WHERE w.name = %(workspace)s
"""

KEPT = f"CASE WHEN few.count <= {KEPT_AT_MOST} THEN few.ids END"
FEW = f"""CROSS JOIN LATERAL (
    SELECT count(*), coalesce(array_agg(memory_id), ARRAY[]::uuid[]) AS ids FROM (
        SELECT m.memory_id FROM {JOINED}
        WHERE m.workspace_id = w.workspace_id AND m.valid_until IS NULL AND {{conditions}} LIMIT {KEPT_AT_MOST} + 1
    ) AS kept
) AS few"""  # noqa: S608 - constants

# The log may lose the last half second to a crash of the server, so that no answer waits for a disk.
LOG_RECALL = """recall AS (
    INSERT INTO recalls (workspace_id, recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens,
        took_ms)
    SELECT workspace_id, %(recall_id)s, %(purpose)s, %(query)s, %(agent)s, %(run_id)s, %(parameters)s::jsonb, %(mode)s,
        %(degraded)s::jsonb, %(tokens)s, %(took_ms)s
    FROM {target}
    RETURNING workspace_id, recall_id
), hit AS (
    INSERT INTO recall_hits (workspace_id, recall_id, rank, memory_id, score, explain)
    SELECT workspace_id, recall_id, rank, memory_id, score, explain
    FROM recall, jsonb_to_recordset(%(hits)s::jsonb) AS hit(rank smallint, memory_id uuid, score real, explain jsonb)
)
SELECT count(*), set_config('synchronous_commit', 'off', true) FROM recall
"""

LOG = f"WITH {LOG_RECALL.format(target='workspaces WHERE name = %(workspace)s')}"

# Whoever saw the run's latest section replaces it; who saw an older one writes nothing, and looks again.
LOG_SECTION = f"""
WITH target AS (
    INSERT INTO run_sections AS s (workspace_id, run_id, recall_id, blocks)
    SELECT workspace_id, %(run_id)s, %(recall_id)s, %(blocks)s::jsonb FROM workspaces WHERE name = %(workspace)s
    ON CONFLICT (workspace_id, run_id) DO UPDATE
    SET recall_id = EXCLUDED.recall_id, blocks = EXCLUDED.blocks, updated_at = now()
    WHERE s.recall_id = %(continues)s
    RETURNING workspace_id
), {LOG_RECALL.format(target="target")}"""  # noqa: S608 - constants

LATEST_SECTION = """
SELECT w.workspace_id, s.recall_id, s.blocks
FROM workspaces w LEFT JOIN run_sections s ON s.workspace_id = w.workspace_id AND s.run_id = %(run_id)s
WHERE w.name = %(workspace)s
"""

BODIES = f"""
SELECT {COLUMNS} FROM {JOINED}
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s) AND m.valid_until IS NULL
"""  # noqa: S608 - constants

PASSING = f"SELECT m.memory_id FROM {JOINED} WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s)"  # noqa: S608 - constants


async def survey(
    connection: psycopg.AsyncConnection, workspace: str, query: str, *, filters: Filters, language: str | None
) -> Survey | None:
    """What must be known before the arms are asked; None where nothing was ever written to the workspace.

    The query is parsed by `language`, or by every language that the workspace's memories are written in.
    """
    clauses, values = conditions(filters)
    given = {**values, "workspace": workspace, "query": query}
    kept, few, languages = "NULL::uuid[]", "", "w.languages"
    if clauses:
        kept, few = KEPT, FEW.format(conditions=" AND ".join(clauses))
    if language is not None:
        languages, given["language"] = "ARRAY[%(language)s::text]", language
    statement = SURVEY.format(kept=kept, few=few, languages=languages, exactly=COUNTED_EXACTLY, bearable=BEARABLE)
    async with connection.cursor(binary=True, row_factory=namedtuple_row) as cursor:
        keep_ids(cursor)
        row = await (await cursor.execute(statement.encode(), given)).fetchone()
    return None if row is None else _survey_of(row)


def _survey_of(row: Any) -> Survey:  # noqa: ANN401 - a named tuple made of the statement's columns
    model = None
    if row.model_id is not None:
        model = StoredModel(model_id=row.model_id, name=row.model_name, dimension=row.dimension)
    return Survey(
        workspace=workspace_of(row),
        model=model,
        waiting=row.waiting,
        live=row.live,
        indexed=row.indexed,
        kept=row.kept,
        linked=row.linked,
        terms=tuple(
            Term(lexeme=lexeme, dimension=dimension, document_count=count, languages=frozenset(languages))
            for lexeme, dimension, count, languages in row.terms or ()
        ),
    )


async def bodies(connection: psycopg.AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """The memories themselves, by id."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(BODIES.encode(), {"workspace_id": workspace_id, "ids": list(ids)})
        return {row["memory_id"]: Memory(**{**row, "tags": tuple(row["tags"])}) async for row in cursor}


def record(
    query: Query, recall: Recall, *, workspace: str, tokens: int | None, kept: Sequence[UUID] | None
) -> dict[str, Any]:
    """A recall as `log` keeps it; with what it `kept` of the run's previous section where it continues one."""
    parameters = {"k": query.k, "preset": query.preset, "language": query.language, "filters": query.filters}
    if query.weights is not None:
        parameters["weights"] = query.weights
    if query.now is not None:
        parameters["now"] = query.now
    if query.rerank is not None:
        parameters["rerank"] = query.rerank
    if kept is not None:
        parameters |= {"stable": True, "kept": kept}
    return {
        "workspace": workspace,
        "recall_id": recall.recall_id,
        "purpose": query.purpose,
        "query": query.text,
        "agent": query.agent,
        "run_id": query.run_id,
        "parameters": _json(parameters),
        "mode": recall.mode,
        "degraded": _json(recall.degraded),
        "tokens": tokens,
        "took_ms": recall.took_ms,
        "hits": _json(
            [
                {"rank": place, "memory_id": hit.memory.memory_id, "score": hit.score, "explain": hit.logged}
                for place, hit in enumerate(recall.hits, start=1)
            ]
        ),
    }


async def log(connection: psycopg.AsyncConnection, recorded: Mapping[str, Any]) -> bool:
    """Keep a recall and its hits, in one statement; False where the workspace does not exist yet."""
    row = await (await connection.execute(LOG.encode(), recorded)).fetchone()
    return row is not None and bool(row[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestSection:
    """The latest section that continues a run's earlier ones."""

    workspace_id: int
    recall_id: UUID | None
    """The recall that made it; None: the run had none yet."""
    blocks: tuple[ShownBlock, ...]


async def latest_section(connection: psycopg.AsyncConnection, workspace: str, run_id: str) -> LatestSection | None:
    """What the run's latest stable history showed; None where the workspace does not exist yet."""
    given = {"workspace": workspace, "run_id": run_id}
    row = await (await connection.execute(LATEST_SECTION.encode(), given)).fetchone()
    if row is None:
        return None
    workspace_id, recall_id, blocks = row
    shown = msgspec.convert(blocks or (), tuple[ShownBlock, ...])
    return LatestSection(workspace_id=workspace_id, recall_id=recall_id, blocks=shown)


async def standing(
    connection: psycopg.AsyncConnection, workspace_id: int, ids: Sequence[UUID], filters: Filters
) -> tuple[dict[UUID, Memory], set[UUID]]:
    """Those of these memories that are live, and the ids of those of them that pass the filters."""
    live = await bodies(connection, workspace_id, ids)
    clauses, values = conditions(filters)
    if not clauses:
        return live, set(live)
    statement = f"{PASSING} AND {' AND '.join(clauses)}"
    given = {**values, "workspace_id": workspace_id, "ids": list(ids)}
    rows = await (await connection.execute(statement.encode(), given)).fetchall()
    return live, {memory_id for (memory_id,) in rows}


async def log_section(
    connection: psycopg.AsyncConnection,
    recorded: Mapping[str, Any],
    blocks: Sequence[ShownBlock],
    *,
    continues: UUID | None,
) -> bool:
    """Keep a recall, its hits and the run's new section, in one statement.

    False, and nothing is kept, where the run's latest section is not the one that this `continues`.
    """
    given = {**recorded, "blocks": _json(blocks), "continues": continues}
    row = await (await connection.execute(LOG_SECTION.encode(), given)).fetchone()
    return row is not None and bool(row[0])


LOGGED_RECALL = text("""
SELECT recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens, took_ms, created_at
FROM recalls WHERE workspace_id = :workspace_id AND recall_id = :recall_id
""")

LOGGED_HITS = text("""
SELECT h.rank, h.memory_id, coalesce(m.title, '') AS title, h.score, h.explain
FROM recall_hits h LEFT JOIN memories m USING (workspace_id, memory_id)
WHERE h.workspace_id = :workspace_id AND h.recall_id = :recall_id ORDER BY h.rank
""")


async def logged(
    connection: AsyncConnection, workspace_id: int, recall_id: UUID
) -> tuple[Row[Any], Sequence[Row[Any]]] | None:
    """A recall's row and those of its hits; None where there is none."""
    given = {"workspace_id": workspace_id, "recall_id": recall_id}
    recall = (await connection.execute(LOGGED_RECALL, given)).one_or_none()
    if recall is None:
        return None
    return recall, (await connection.execute(LOGGED_HITS, given)).all()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
