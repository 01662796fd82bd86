"""The SQL of memories: writing, finding, retiring."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.identity import content_hash, in_utc, new_id
from app.memories.memory import Memory, NewMemory, StoredObservation

COLUMNS = """
    m.memory_id, m.kind, m.title, m.body, m.language, m.source_id, s.kind AS source_kind, s.uri AS source_uri,
    s.title AS source_title, m.ordinal, m.occurred_at, m.tags, m.metadata, m.run_id, m.final_score, m.quality,
    m.tokens, m.uses, m.created_at, m.valid_until, m.retired_as, m.findings
"""
GONE, DELETED, SUPERSEDED, QUARANTINED = "gone", "deleted", "superseded", "quarantined"
"""Why a memory is retired: its text left its source, a person deleted it, a better one says the same, or the injection
scan found something in it."""
LIVE = "m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL"
JOINED = "memories m LEFT JOIN sources s USING (workspace_id, source_id)"
SHOWN = f"{JOINED} LEFT JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id"
SHOWN_COLUMNS = f"""{COLUMNS},
    CASE WHEN o.memory_id IS NOT NULL THEN jsonb_build_object(
        'task', o.task, 'task_type', o.task_type, 'narrative', o.narrative, 'facts', o.facts,
        'output_path', o.output_path, 'verdict', o.verdict, 'compressor', o.compressor, 'model', o.model,
        'superseded_by', o.superseded_by
    ) END AS observation
"""
"""What is shown of a memory: all that it has, where COLUMNS are what a recall gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A memory ready to be written: everything is computed, nothing is looked up any more."""

    memory_id: UUID
    memory: NewMemory
    source_id: UUID | None
    language: str
    tokens: int
    content_hash: bytes
    findings: tuple[Mapping[str, Any], ...] = ()
    """What the injection scan found."""
    quarantined: bool = False

    @property
    def identity(self) -> tuple[bytes, str, UUID | None, int | None]:
        """Two live memories of a workspace never share it."""
        return self.content_hash, self.memory.kind, self.source_id, self.memory.ordinal

    @property
    def changeable(self) -> tuple[Any, ...]:
        """What a writer may give anew for known text."""
        given = self.memory
        score = None if given.final_score is None else round(given.final_score, 4)
        moment = None if given.occurred_at is None else in_utc(given.occurred_at)
        return tuple(given.tags), dict(given.metadata), given.run_id, score, moment

    @property
    def json(self) -> dict[str, Any]:
        """The row as `jsonb_to_recordset` reads it."""
        given = self.memory
        return {
            "memory_id": self.memory_id,
            "kind": given.kind,
            "source_id": self.source_id,
            "ordinal": given.ordinal,
            "title": given.title,
            "body": given.body,
            "language": self.language,
            "tags": given.tags,
            "metadata": dict(given.metadata),
            "run_id": given.run_id,
            "final_score": given.final_score,
            "tokens": self.tokens,
            "occurred_at": None if given.occurred_at is None else in_utc(given.occurred_at),
            "content_hash": self.content_hash.hex(),
            "findings": self.findings or None,
            "retired_as": QUARANTINED if self.quarantined else None,
        }


def changeable_of(known: Row[Any]) -> tuple[Any, ...]:
    """`MemoryRow.changeable` of a stored row."""
    score = None if known.final_score is None else round(known.final_score, 4)
    return tuple(known.tags), known.metadata, known.run_id, score, known.occurred_at


def row_of(
    memory: NewMemory,
    *,
    source_id: UUID | None,
    language: str,
    tokens: int,
    findings: tuple[Mapping[str, Any], ...] = (),
    quarantined: bool = False,
) -> MemoryRow:
    """A new memory's row, under an id of its own."""
    return MemoryRow(
        memory_id=new_id(),
        memory=memory,
        source_id=source_id,
        language=language,
        tokens=tokens,
        content_hash=content_hash(memory, language),
        findings=findings,
        quarantined=quarantined,
    )


FIND_KNOWN = text("""
SELECT m.memory_id, m.content_hash, m.kind, m.source_id, m.ordinal, m.tags, m.metadata, m.run_id, m.final_score,
    m.occurred_at
FROM memories m
WHERE m.workspace_id = :workspace_id AND m.valid_until IS NULL
  AND m.content_hash = ANY(CAST(:hashes AS bytea[]))
""")

INSERT = text("""
INSERT INTO memories (
    workspace_id, memory_id, kind, source_id, ordinal, title, body, language, tags, metadata, run_id, final_score,
    tokens, occurred_at, content_hash, findings, retired_as, valid_until
)
SELECT :workspace_id, memory_id, kind, source_id, ordinal, title, body, language,
    ARRAY(SELECT jsonb_array_elements_text(tags)), metadata, run_id, final_score, tokens, occurred_at,
    decode(content_hash, 'hex'), findings, retired_as, CASE WHEN retired_as IS NOT NULL THEN now() END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, kind text, source_id uuid, ordinal integer, title text, body text, language text, tags jsonb,
    metadata jsonb, run_id text, final_score real, tokens integer, occurred_at timestamptz, content_hash text,
    findings jsonb, retired_as text
)
ON CONFLICT DO NOTHING
RETURNING memory_id
""")

UPDATE = text("""
UPDATE memories m
SET tags = ARRAY(SELECT jsonb_array_elements_text(given.tags)), metadata = given.metadata, run_id = given.run_id,
    final_score = given.final_score, occurred_at = given.occurred_at, ordinal = given.ordinal,
    valid_until = CASE WHEN :revive THEN NULL ELSE m.valid_until END,
    retired_as = CASE WHEN :revive THEN NULL ELSE m.retired_as END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, ordinal integer, tags jsonb, metadata jsonb, run_id text, final_score real,
    occurred_at timestamptz
)
WHERE m.workspace_id = :workspace_id AND m.memory_id = given.memory_id
""")

RETIRE = """
UPDATE memories SET valid_until = now(), retired_as = :reason
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND valid_until IS NULL
"""


async def find_known(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]
) -> dict[tuple[bytes, str, UUID | None, int | None], Row[Any]]:
    """Live memories that have the identity of one of these rows."""
    result = await connection.execute(
        FIND_KNOWN, {"workspace_id": workspace_id, "hashes": list({row.content_hash for row in rows})}
    )
    return {(bytes(row.content_hash), row.kind, row.source_id, row.ordinal): row for row in result}


async def insert(connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]) -> set[UUID]:
    """Write new memories; the ids of those that nobody else wrote meanwhile.

    In the order of their identity: two writers of the same memories wait for each other, but never in a circle.
    """
    if not rows:
        return set()
    ordered = sorted(rows, key=lambda row: [str(part) for part in row.identity])
    result = await connection.execute(INSERT, {"workspace_id": workspace_id, "rows": _as_json(ordered)})
    return set(result.scalars())


INSERT_OBSERVATIONS = text("""
INSERT INTO observations (
    workspace_id, memory_id, task, task_type, narrative, facts, output_path, verdict, compressor, model, prompt
)
SELECT :workspace_id, memory_id, task, task_type, narrative, ARRAY(SELECT jsonb_array_elements_text(facts)),
    output_path, verdict, compressor, model, prompt
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, task text, task_type text, narrative text, facts jsonb, output_path text, verdict text,
    compressor text, model text, prompt text
)
ON CONFLICT DO NOTHING
""")


async def insert_observations(connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]) -> None:
    """Write what observations have beyond a memory's text."""
    given = [
        {"memory_id": row.memory_id, **asdict(row.memory.observation)}
        for row in rows
        if row.memory.observation is not None
    ]
    if given:
        values = {"workspace_id": workspace_id, "rows": msgspec.json.encode(given).decode()}
        await connection.execute(INSERT_OBSERVATIONS, values)


async def update(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow], *, revive: bool = False
) -> None:
    """Give known memories (by `memory_id`) new tags, metadata, run, score, date and ordinal.

    `revive` makes them live again as well; they still have to be indexed.
    """
    if not rows:
        return
    await connection.execute(UPDATE, {"workspace_id": workspace_id, "rows": _as_json(rows), "revive": revive})


def _as_json(rows: Sequence[MemoryRow]) -> str:
    return msgspec.json.encode([row.json for row in rows]).decode()


async def retire(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, reason: str = GONE) -> int:
    """Take memories out of retrieval; they keep their row, ratings and provenance. How many were live."""
    if not ids:
        return 0
    given = {"workspace_id": workspace_id, "ids": list(ids)}
    retired = (await connection.execute(text(RETIRE), {**given, "reason": reason})).rowcount
    for table in ("lexical", "embeddings", "pending_embeddings"):
        await connection.execute(
            text(
                f"DELETE FROM {table} WHERE workspace_id = :workspace_id"  # noqa: S608 - names from the line above
                " AND memory_id = ANY(CAST(:ids AS uuid[]))"
            ),
            given,
        )
    return retired


async def get(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> Memory | None:
    """One memory, live or retired."""
    statement = text(f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = :workspace_id AND m.memory_id = :id")  # noqa: S608 - constants
    row = (await connection.execute(statement, {"workspace_id": workspace_id, "id": memory_id})).one_or_none()
    return None if row is None else memory_of(row)


SORT_KEYS = {
    ("created", "desc"): "m.created_at",
    ("created", "asc"): "m.created_at",
    ("occurred", "desc"): "coalesce(m.occurred_at, m.created_at)",
    ("occurred", "asc"): "coalesce(m.occurred_at, m.created_at)",
    # Unjudged memories come last either way.
    ("score", "desc"): "coalesce(m.final_score, -1)",
    ("score", "asc"): "coalesce(m.final_score, 11)",
    ("quality", "desc"): "m.quality::real",
    ("quality", "asc"): "m.quality::real",
}
SORT_TYPES = {"created": "timestamptz", "occurred": "timestamptz", "score": "real", "quality": "real"}
MOST_COUNTED = 10_001


async def page(
    connection: AsyncConnection,
    workspace_id: int,
    *,
    clauses: Sequence[str],
    values: Mapping[str, Any],
    order: tuple[str, str],
    after: tuple[Any, UUID] | None,
    limit: int,
) -> list[tuple[Memory, Any]]:
    """Live memories in an order, after the place that `after` names; each with its value in that order.

    The clauses and values are those of `filters.conditions`.
    """
    name, direction = order
    key, least = SORT_KEYS[order], ">" if direction == "asc" else "<"
    given = {**values, "workspace_id": workspace_id, "limit": limit}
    conditions = [LIVE, *clauses]
    if after is not None:
        conditions.append(f"({key}, m.memory_id) {least} (%(after)s::{SORT_TYPES[name]}, %(after_id)s)")
        given |= {"after": after[0], "after_id": after[1]}
    statement = (
        f"SELECT {SHOWN_COLUMNS}, {key} AS place FROM {SHOWN} WHERE {' AND '.join(conditions)}"  # noqa: S608 - constants
        f" ORDER BY {key} {direction}, m.memory_id {direction} LIMIT %(limit)s"
    )
    return [(memory_of(row), row.place) for row in await connection.exec_driver_sql(statement, given)]


async def count(
    connection: AsyncConnection, workspace_id: int, *, clauses: Sequence[str], values: Mapping[str, Any]
) -> int:
    """How many live memories meet the conditions, counted up to MOST_COUNTED."""
    statement = (
        f"SELECT count(*) FROM (SELECT 1 FROM {JOINED} WHERE {' AND '.join([LIVE, *clauses])}"  # noqa: S608 - constants
        " LIMIT %(limit)s) AS met"
    )
    given = {**values, "workspace_id": workspace_id, "limit": MOST_COUNTED}
    return int((await connection.exec_driver_sql(statement, given)).scalar_one())


NEIGHBOURS = text(f"""
SELECT {SHOWN_COLUMNS} FROM {SHOWN} JOIN memories c ON c.workspace_id = m.workspace_id AND c.source_id = m.source_id
WHERE c.workspace_id = :workspace_id AND c.memory_id = :memory_id AND m.memory_id <> c.memory_id
    AND m.valid_until IS NULL AND m.ordinal BETWEEN c.ordinal - :distance AND c.ordinal + :distance
ORDER BY m.ordinal, m.memory_id LIMIT :limit
""")  # noqa: S608 - constants


async def neighbours(
    connection: AsyncConnection, workspace_id: int, memory_id: UUID, *, distance: int, limit: int
) -> list[Memory]:
    """The live memories around one in its source, in their order."""
    values = {"workspace_id": workspace_id, "memory_id": memory_id, "distance": distance, "limit": limit}
    return [memory_of(row) for row in await connection.execute(NEIGHBOURS, values)]


def memory_of(row: Row[Any]) -> Memory:
    """The value of a row that has SHOWN_COLUMNS."""
    plain = {name: getattr(row, name) for name in Memory.__slots__ if name not in {"tags", "observation"}}
    observation = None
    if row.observation is not None:
        successor = row.observation["superseded_by"]
        changed = {"facts": tuple(row.observation["facts"]), "superseded_by": successor and UUID(successor)}
        observation = StoredObservation(**{**row.observation, **changed})
    return Memory(**plain, tags=tuple(row.tags), observation=observation)


FACETS = text("""
WITH live AS MATERIALIZED (
    SELECT m.workspace_id, m.memory_id, m.kind, m.tags FROM memories m
    WHERE m.workspace_id = :workspace_id AND m.valid_until IS NULL
), seen AS MATERIALIZED (
    SELECT o.task_type, o.verdict FROM observations o JOIN live USING (workspace_id, memory_id)
    WHERE o.workspace_id = :workspace_id
), counted AS (
    SELECT 'kinds' AS facet, kind AS value, count(*) AS n FROM live GROUP BY kind
    UNION ALL SELECT 'task_types', task_type, count(*) FROM seen WHERE task_type <> '' GROUP BY task_type
    UNION ALL SELECT 'verdicts', verdict, count(*) FROM seen WHERE verdict <> '' GROUP BY verdict
    UNION ALL SELECT 'tags', tag, count(*) FROM live CROSS JOIN unnest(tags) AS tag GROUP BY tag
), ranked AS (
    SELECT facet, value, n, row_number() OVER (PARTITION BY facet ORDER BY n DESC, value) AS place FROM counted
)
SELECT facet, value, n FROM ranked WHERE place <= :limit ORDER BY facet, place
""")


async def facets(connection: AsyncConnection, workspace_id: int, *, limit: int) -> dict[str, list[tuple[str, int]]]:
    """The values of each facet of live memories, with how many have them, the most frequent first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for row in await connection.execute(FACETS, {"workspace_id": workspace_id, "limit": limit}):
        found.setdefault(row.facet, []).append((row.value, row.n))
    return found


LOCK_DELETABLE = text("""
SELECT memory_id FROM memories
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
    AND (valid_until IS NULL OR retired_as IN ('quarantined', 'superseded'))
ORDER BY memory_id FOR UPDATE
""")

MARK = text("""
UPDATE memories SET retired_as = :reason, valid_until = now()
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
""")

# Of several with one identity only the first comes back: the live ones' unique index holds one.
RESTORE = text("""
WITH wanted AS (
    SELECT DISTINCT ON (content_hash, kind, source_id, ordinal) memory_id
    FROM memories
    WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
        AND retired_as IN ('deleted', 'quarantined', 'superseded')
    ORDER BY content_hash, kind, source_id, ordinal, memory_id
)
UPDATE memories m SET valid_until = NULL, retired_as = NULL, released = m.released OR m.retired_as = 'quarantined'
WHERE m.workspace_id = :workspace_id AND m.memory_id IN (SELECT memory_id FROM wanted)
    AND NOT EXISTS (
        SELECT 1 FROM memories o
        WHERE o.workspace_id = m.workspace_id AND o.valid_until IS NULL AND o.content_hash = m.content_hash
            AND o.kind = m.kind AND o.source_id IS NOT DISTINCT FROM m.source_id
            AND o.ordinal IS NOT DISTINCT FROM m.ordinal
    )
RETURNING m.memory_id
""")

EMPTY_TRASH = text("""
DELETE FROM memories WHERE retired_as = 'deleted' AND valid_until < now() - make_interval(days => :days)
""")


async def lock_deletable(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> list[UUID]:
    """Those of these memories that are live, quarantined or superseded; locked in the order of their ids."""
    values = {"workspace_id": workspace_id, "ids": list(ids)}
    return list((await connection.execute(LOCK_DELETABLE, values)).scalars())


async def mark_retired(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, reason: str) -> None:
    """These memories, whether live or not, are retired for this reason from now on."""
    await retire(connection, workspace_id, ids, reason=reason)
    if ids:
        await connection.execute(MARK, {"workspace_id": workspace_id, "ids": list(ids), "reason": reason})


async def restore(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> list[UUID]:
    """Make memories live again; which ones. They still have to be indexed."""
    return list((await connection.execute(RESTORE, {"workspace_id": workspace_id, "ids": list(ids)})).scalars())


async def retired_as(connection: AsyncConnection, workspace_id: int, reason: str, limit: int) -> list[Memory]:
    """Memories that are retired for this reason, the latest first."""
    statement = text(
        f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = :workspace_id AND m.retired_as = :reason"  # noqa: S608 - constants
        " ORDER BY m.valid_until DESC, m.memory_id LIMIT :limit"
    )
    values = {"workspace_id": workspace_id, "reason": reason, "limit": limit}
    return [memory_of(row) for row in await connection.execute(statement, values)]


async def low(
    connection: AsyncConnection, workspace_id: int, *, quality: int, final_score: float, limit: int
) -> list[Memory]:
    """Live memories of at most this quality, or below this score and rated down; the worst first."""
    statement = text(
        f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = :workspace_id AND m.valid_until IS NULL"  # noqa: S608 - constants
        " AND m.quality < 0 AND (m.quality <= :quality OR m.final_score < :final_score)"
        " ORDER BY m.quality, m.final_score NULLS LAST, m.memory_id LIMIT :limit"
    )
    values = {"workspace_id": workspace_id, "quality": quality, "final_score": final_score, "limit": limit}
    return [memory_of(row) for row in await connection.execute(statement, values)]


async def empty_trash(connection: AsyncConnection, days: int) -> int:
    """Destroy what was deleted longer ago than this. How many."""
    return (await connection.execute(EMPTY_TRASH, {"days": days})).rowcount
