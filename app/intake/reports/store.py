"""The SQL of ingestion: report files as sources, their chunks as memories."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.index.vectors import StoredModel
from app.intake.reports.matching import KnownChunk
from app.intake.reports.outcome import FileOutcome, Ingestion
from app.memories import store as memories
from app.memories.memory import new_id
from app.memories.store import MemoryRow


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFile:
    """A report file that was ingested before."""

    source_id: UUID
    uri: str
    title: str
    """Its path as people know it."""
    content_hash: bytes
    live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChunk:
    """What a chunk's title is made of."""

    memory_id: UUID
    body: str
    language: str
    trail: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retitled:
    """A chunk under its new title."""

    memory_id: UUID
    title: str
    trail: tuple[str, ...]
    content_hash: bytes
    tokens: int


FILES = text("""
SELECT source_id, uri, title, content_hash, retired_at IS NULL AS live FROM sources
WHERE workspace_id = :workspace_id AND kind = 'report' AND content_hash IS NOT NULL
ORDER BY retired_at NULLS LAST
""")

CHUNKS = text("""
SELECT source_id, memory_id, content_hash, ordinal, valid_until IS NULL AS live, released,
    coalesce(retired_as IN ('deleted', 'quarantined'), false) AS barred
FROM memories
WHERE workspace_id = :workspace_id AND source_id = ANY(CAST(:source_ids AS uuid[])) AND kind = 'chunk'
ORDER BY source_id, ordinal, memory_id
""")

MAKE = text("""
INSERT INTO sources (workspace_id, source_id, kind, uri, title)
SELECT :workspace_id, source_id, 'report', uri, title
FROM unnest(CAST(:source_ids AS uuid[]), CAST(:uris AS text[]), CAST(:titles AS text[])) AS given(source_id, uri, title)
ORDER BY uri
ON CONFLICT DO NOTHING
""")

# Locked in the order of the paths: two ingestions of the same files wait for each other, but never in a circle.
LOCK = text("""
SELECT source_id, uri, title, content_hash, retired_at IS NULL AS live FROM sources
WHERE workspace_id = :workspace_id AND kind = 'report' AND uri = ANY(CAST(:uris AS text[]))
ORDER BY uri, retired_at DESC NULLS FIRST, created_at FOR NO KEY UPDATE
""")

KEEP = text("""
UPDATE sources s SET content_hash = decode(given.content_hash, 'hex'), title = given.title, updated_at = now(),
    retired_at = NULL
FROM unnest(CAST(:source_ids AS uuid[]), CAST(:hashes AS text[]), CAST(:titles AS text[]))
    AS given(source_id, content_hash, title)
WHERE s.workspace_id = :workspace_id AND s.source_id = given.source_id
""")

MOVE = text("""
UPDATE sources SET uri = :uri, title = :title, updated_at = now()
WHERE workspace_id = :workspace_id AND source_id = :source_id AND uri = :old_uri AND retired_at IS NULL
""")

RETAG = text("""
UPDATE memories SET tags = CAST(:tags AS text[])
WHERE workspace_id = :workspace_id AND source_id = :source_id AND kind = 'chunk'
""")

LIVE_CHUNKS = text("""
SELECT memory_id, body, language, metadata FROM memories
WHERE workspace_id = :workspace_id AND source_id = :source_id AND kind = 'chunk' AND valid_until IS NULL
""")

RETITLE = text("""
UPDATE memories m SET title = given.title, tokens = given.tokens, content_hash = decode(given.content_hash, 'hex'),
    metadata = jsonb_set(m.metadata, '{trail}', given.trail)
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, title text, trail jsonb, content_hash text, tokens integer
)
WHERE m.workspace_id = :workspace_id AND m.memory_id = given.memory_id AND m.valid_until IS NULL
""")

RETIRE = text("""
UPDATE sources SET retired_at = now()
WHERE workspace_id = :workspace_id AND source_id = :source_id AND retired_at IS NULL
""")

PARK = text("""
UPDATE memories SET valid_until = now()
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND valid_until IS NULL
""")


async def known_files(connection: AsyncConnection, workspace_id: int) -> list[KnownFile]:
    """Every report file ever ingested, the retired ones first and the live ones last."""
    rows = await connection.execute(FILES, {"workspace_id": workspace_id})
    return [
        KnownFile(
            source_id=row.source_id,
            uri=row.uri,
            title=row.title,
            content_hash=bytes(row.content_hash),
            live=row.live,
        )
        for row in rows
    ]


async def known_chunks(
    connection: AsyncConnection, workspace_id: int, source_ids: Sequence[UUID]
) -> dict[UUID, list[KnownChunk]]:
    """The chunks of these files by source, the retired ones included."""
    chunks: dict[UUID, list[KnownChunk]] = {source_id: [] for source_id in source_ids}
    for row in await connection.execute(CHUNKS, {"workspace_id": workspace_id, "source_ids": list(source_ids)}):
        chunks[row.source_id].append(
            KnownChunk(
                memory_id=row.memory_id,
                content_hash=bytes(row.content_hash),
                ordinal=row.ordinal,
                live=row.live,
                barred=row.barred,
                released=row.released,
            )
        )
    return chunks


async def locked_files(
    connection: AsyncConnection, workspace_id: int, titles: Mapping[str, str]
) -> dict[str, KnownFile]:
    """The sources of these files by path, made or found, and locked: two ingestions of a file take turns.

    `titles` are the files' titles by path.
    """
    given = {"workspace_id": workspace_id, "uris": list(titles)}
    found = _by_path(await connection.execute(LOCK, given))
    missing = [uri for uri in titles if uri not in found]
    if not missing:
        return found
    await connection.execute(
        MAKE,
        {
            "workspace_id": workspace_id,
            "source_ids": [new_id() for _ in missing],
            "uris": missing,
            "titles": [titles[uri] for uri in missing],
        },
    )
    return found | _by_path(await connection.execute(LOCK, {**given, "uris": missing}))


def _by_path(rows: Iterable[Row[Any]]) -> dict[str, KnownFile]:
    """A path's live source, or else the one retired last."""
    files: dict[str, KnownFile] = {}
    for row in rows:
        known = KnownFile(
            source_id=row.source_id,
            uri=row.uri,
            title=row.title,
            content_hash=bytes(row.content_hash or b""),
            live=row.live,
        )
        files.setdefault(row.uri, known)
    return files


async def keep(
    connection: AsyncConnection, workspace_id: int, files: Sequence[KnownFile], titles: Sequence[str]
) -> None:
    """These sources are live, hold this content and have these titles."""
    given = {
        "workspace_id": workspace_id,
        "source_ids": [file.source_id for file in files],
        "hashes": [file.content_hash.hex() for file in files],
        "titles": list(titles),
    }
    await connection.execute(KEEP, given)


async def move(
    connection: AsyncConnection, workspace_id: int, file: KnownFile, *, uri: str, title: str, tags: Sequence[str]
) -> None:
    """The same content stands at another path now."""
    given = {"workspace_id": workspace_id, "source_id": file.source_id}
    await connection.execute(MOVE, {**given, "uri": uri, "old_uri": file.uri, "title": title})
    await connection.execute(RETAG, {**given, "tags": list(tags)})


async def live_chunks(connection: AsyncConnection, workspace_id: int, source_id: UUID) -> list[LiveChunk]:
    """The live chunks of a file, as they are called."""
    rows = await connection.execute(LIVE_CHUNKS, {"workspace_id": workspace_id, "source_id": source_id})
    return [
        LiveChunk(
            memory_id=row.memory_id, body=row.body, language=row.language, trail=tuple(row.metadata.get("trail", ()))
        )
        for row in rows
    ]


async def retitle(connection: AsyncConnection, workspace_id: int, chunks: Sequence[Retitled]) -> None:
    """Give chunks their new titles; they still have to be indexed and embedded."""
    rows = [
        {
            "memory_id": chunk.memory_id,
            "title": chunk.title,
            "trail": chunk.trail,
            "content_hash": chunk.content_hash.hex(),
            "tokens": chunk.tokens,
        }
        for chunk in chunks
    ]
    await connection.execute(RETITLE, {"workspace_id": workspace_id, "rows": msgspec.json.encode(rows).decode()})


async def retire(connection: AsyncConnection, workspace_id: int, source_id: UUID) -> int:
    """Take a deleted file's chunks out of retrieval. How many there were."""
    given = {"workspace_id": workspace_id, "source_id": source_id}
    await connection.execute(RETIRE, given)
    chunks = await known_chunks(connection, workspace_id, [source_id])
    live = [chunk.memory_id for chunk in chunks[source_id] if chunk.live]
    return await memories.retire(connection, workspace_id, live)


async def park(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Take memories out of the live ones' unique index until they are updated, so that they may swap their places."""
    if ids:
        await connection.execute(PARK, {"workspace_id": workspace_id, "ids": list(ids)})


async def known_vectors(
    connection: AsyncConnection, model: StoredModel, workspace_id: int, rows: Sequence[MemoryRow]
) -> dict[bytes, str]:
    """Vectors that the workspace already has for the text of these rows, by content hash."""
    statement = text(f"""
        SELECT DISTINCT ON (m.content_hash) m.content_hash, CAST(e.embedding AS text) AS vector
        FROM memories m JOIN {model.partition} e USING (workspace_id, memory_id)
        WHERE m.workspace_id = :workspace_id AND m.valid_until IS NULL
        AND m.content_hash = ANY(CAST(:hashes AS bytea[]))
        ORDER BY m.content_hash, m.memory_id
        """)  # noqa: S608 - the partition's name is made of a number
    given = {"workspace_id": workspace_id, "hashes": list({row.content_hash for row in rows})}
    return {bytes(row.content_hash): row.vector for row in await connection.execute(statement, given)}


LOG = text("""
INSERT INTO ingestions (workspace_id, ingestion_id, seconds, counts, outcomes, degraded)
VALUES (:workspace_id, :ingestion_id, :seconds, CAST(:counts AS jsonb), CAST(:outcomes AS jsonb), :degraded)
""")

FORGET = text("""
DELETE FROM ingestions WHERE workspace_id = :workspace_id AND ingestion_id IN (
    SELECT ingestion_id FROM ingestions WHERE workspace_id = :workspace_id ORDER BY ingestion_id DESC OFFSET :kept
)
""")

LOGGED = text("""
SELECT ingestion_id, finished_at, seconds, counts, outcomes, degraded FROM ingestions
WHERE workspace_id = :workspace_id AND (CAST(:before AS uuid) IS NULL OR ingestion_id < :before)
    AND (NOT :failed OR jsonb_exists(counts, 'failed'))
ORDER BY ingestion_id DESC LIMIT :limit
""")


async def log_ingestion(
    connection: AsyncConnection, workspace_id: int, ingestion: Ingestion, told: Sequence[FileOutcome], *, kept: int
) -> None:
    """Keep an ingestion with these of its outcomes, and forget all but the latest `kept`."""
    values = {
        "workspace_id": workspace_id,
        "ingestion_id": new_id(),
        "seconds": ingestion.seconds,
        "counts": msgspec.json.encode({status: n for status, n in ingestion.counts.items() if n}).decode(),
        "outcomes": msgspec.json.encode(told).decode(),
        "degraded": ingestion.degraded,
    }
    await connection.execute(LOG, values)
    await connection.execute(FORGET, {"workspace_id": workspace_id, "kept": kept})


async def logged_ingestions(
    connection: AsyncConnection, workspace_id: int, *, before: UUID | None, failed: bool, limit: int
) -> Sequence[Row[Any]]:
    """Past ingestions, newest first: those before one, and only those with files that failed."""
    values = {"workspace_id": workspace_id, "before": before, "failed": failed, "limit": limit}
    return (await connection.execute(LOGGED, values)).all()
