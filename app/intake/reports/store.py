"""The SQL of ingestion: the chunks of files, the vectors of their texts, and the log of ingestions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from app.foundation.db.session import DECIDE, Row, Session
from app.intake.cases import store as judgements
from app.storage.index.models import StoredModel
from app.storage.index.vectors import Passages, PassageVector
from app.storage.memories import sources
from app.storage.memories import store as memories
from app.storage.memories.memory import MemoryRow, NewMemory, new_id
from app.storage.memories.sources import known_parts

_LIVE_CHUNKS = """
SELECT memory_id, title, body, language, tokens, metadata FROM memories
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s AND kind = 'chunk' AND valid_until IS NULL
"""

_DOCUMENT = """
SELECT s.uri, s.title AS path, m.memory_id, m.ordinal, m.body, m.metadata, m.occurred_at
FROM sources s JOIN memories m ON m.workspace_id = s.workspace_id AND m.source_id = s.source_id
    AND m.kind = 'chunk' AND m.valid_until IS NULL
WHERE s.workspace_id = %(workspace_id)s AND s.source_id = %(source_id)s AND s.kind = 'report' AND s.retired_at IS NULL
ORDER BY m.ordinal
"""
_LEARNT_FROM = """
SELECT DISTINCT source_id FROM cue_evidence
WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(ids)s::uuid[])
"""

_KNOWN_VECTORS = """
SELECT m.content_hash, e.embedding::text AS vector, e.starts, e.ends, e.parts
FROM (
    SELECT DISTINCT ON (content_hash) memory_id, content_hash
    FROM memories JOIN {partition} USING (workspace_id, memory_id)
    WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL AND content_hash = ANY(%(hashes)s::bytea[])
        AND NOT EXISTS (
            SELECT FROM pending_embeddings p
            WHERE p.workspace_id = %(workspace_id)s AND p.memory_id = memories.memory_id
        )
    ORDER BY content_hash, memory_id
) AS m
JOIN {partition} e ON e.workspace_id = %(workspace_id)s AND e.memory_id = m.memory_id
ORDER BY m.content_hash, e.passage
"""
"""All vectors of a memory with each of these texts; of one that lacks a part of them, none."""

LOG = """
INSERT INTO ingestions (workspace_id, ingestion_id, seconds, counts, outcomes, degraded)
VALUES (
    %(workspace_id)s, %(ingestion_id)s, %(seconds)s, %(counts)s::jsonb, %(outcomes)s::jsonb, %(degraded)s
)
"""

_FORGET = """
DELETE FROM ingestions WHERE workspace_id = %(workspace_id)s AND ingestion_id IN (
    SELECT ingestion_id FROM ingestions WHERE workspace_id = %(workspace_id)s ORDER BY ingestion_id DESC OFFSET %(kept)s
)
"""

_FORGET_FILES = """
DELETE FROM ingestions i WHERE i.workspace_id = %(workspace_id)s AND NOT EXISTS (
    SELECT FROM jsonb_array_elements(i.outcomes) AS outcome WHERE outcome ->> 'path' <> ALL(%(files)s::text[])
)
"""

_LOGGED = """
SELECT ingestion_id, finished_at, seconds, counts, outcomes, degraded FROM ingestions
WHERE workspace_id = %(workspace_id)s AND (%(before)s::uuid IS NULL OR ingestion_id < %(before)s)
    AND (NOT %(failed)s OR jsonb_exists(counts, 'failed'))
ORDER BY ingestion_id DESC LIMIT %(limit)s
"""


async def live_chunks(session: Session, source_id: UUID) -> list[MemoryRow]:
    """Returns the live chunks of a file with their texts and heading paths."""
    return [
        MemoryRow(
            memory_id=row.memory_id,
            memory=NewMemory(kind="chunk", title=row.title, body=row.body, metadata=row.metadata),
            source_id=source_id,
            language=row.language,
            tokens=row.tokens,
        )
        for row in await session.rows(_LIVE_CHUNKS, {"source_id": source_id})
    ]


async def document(session: Session, source_id: UUID) -> list[Row]:
    """Returns the live chunks of a file in their order, each with the file's path; none of a file that was deleted."""
    return await session.rows(_DOCUMENT, {"source_id": source_id})


async def read_for_decisions(session: Session, ids: Sequence[UUID], *, recording: Set[UUID] = frozenset()) -> None:
    """Asks for the decisions of these files: of those that look like `recording` one, and of those that had one."""
    learnt = set(await session.column(_LEARNT_FROM, {"ids": list(ids)}))
    for source_id in sorted(recording | learnt):
        await session.enqueue(
            DECIDE, lock=f"{DECIDE}:{source_id}", workspace_id=session.workspace_id, source_id=str(source_id)
        )


async def retire(session: Session, source_id: UUID) -> int:
    """Takes a deleted file's chunks out of retrieval; returns their number."""
    await sources.retire_file(session, source_id)
    await judgements.replace(session, {source_id: ()})
    await read_for_decisions(session, [source_id])
    chunks = await known_parts(session, [source_id], kind="chunk")
    return len(await memories.retire(session, [chunk.memory_id for chunk in chunks if chunk.live]))


async def known_vectors(session: Session, model: StoredModel, rows: Sequence[MemoryRow]) -> dict[bytes, Passages]:
    """Returns the vectors that the workspace already has for the text of these rows, by content hash."""
    statement = _KNOWN_VECTORS.format(partition=model.partition)
    given = {"hashes": list({row.content_hash for row in rows})}
    found: dict[bytes, list[PassageVector]] = defaultdict(list)
    for row in await session.rows(statement, given):
        found[bytes(row.content_hash)].append(PassageVector(row.vector, row.starts, row.ends, row.parts))
    return {**found}


async def log_ingestion(session: Session, values: Mapping[str, object], *, kept: int) -> None:
    """Stores an ingestion, given by its columns, and deletes all but the latest `kept`."""
    await session.execute(LOG, {"ingestion_id": new_id(), **values})
    await session.execute(_FORGET, {"kept": kept})


async def forget_ingestions(session: Session, files: Sequence[str]) -> None:
    """Removes the ingestions that stored nothing but these files from the log."""
    await session.execute(_FORGET_FILES, {"files": list(files)})


async def logged_ingestions(session: Session, *, before: UUID | None, failed: bool, limit: int) -> Sequence[Row]:
    """Returns the ingestions before the given one, newest first; with `failed` only those with failed files."""
    values = {"before": before, "failed": failed, "limit": limit}
    return await session.rows(_LOGGED, values)
