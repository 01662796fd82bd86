"""The SQL of sources; matches their present parts with the stored ones, and stores the differences."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import structs

from app.foundation.db.session import Session
from app.foundation.values import frozen
from app.storage.index.indexing import OWN, THESE, index_words
from app.storage.links import store as links
from app.storage.links.relations import SUPERSEDES, Link
from app.storage.memories import store
from app.storage.memories.memory import GONE, QUARANTINED, MemoryRow, Source, SourceReference, as_bytea, new_id
from app.storage.memories.store import as_json

_LIVE = """
SELECT source_id, kind, uri FROM sources
WHERE workspace_id = %(workspace_id)s AND retired_at IS NULL AND uri = ANY(%(uris)s::text[])
"""

_INSERT = """
INSERT INTO sources (workspace_id, source_id, kind, uri, title)
SELECT %(workspace_id)s, source_id, kind, uri, title
FROM jsonb_populate_recordset(NULL::sources, %(rows)s::jsonb) ON CONFLICT DO NOTHING
"""

_OF_KIND = "AND s.kind = %(kind)s"
_BEFORE = "AND (s.created_at, s.source_id) < (%(created_at)s, %(source_id)s)"
_PAGE = """
SELECT s.source_id, s.kind, s.uri, s.title, s.created_at, s.updated_at, s.retired_at, (
    SELECT count(*) FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.source_id = s.source_id
    AND m.valid_until IS NULL
) AS memories
FROM sources s WHERE s.workspace_id = %(workspace_id)s {kind} {before}
ORDER BY s.created_at DESC, s.source_id DESC LIMIT %(limit)s
"""

_SELECT = "SELECT source_id, uri, title, coalesce(content_hash, ''), retired_at IS NULL FROM sources"

_KNOWN = f"""
{_SELECT} WHERE workspace_id = %(workspace_id)s AND kind = 'report' AND content_hash IS NOT NULL
    AND (%(uri)s::text IS NULL OR uri = %(uri)s) ORDER BY retired_at NULLS LAST
"""

# Locked in the order of the paths, so that two ingestions of the same files wait for each other without a deadlock.
_LOCK = f"""
{_SELECT} WHERE workspace_id = %(workspace_id)s AND kind = 'report' AND uri = ANY(%(uris)s::text[])
ORDER BY uri, retired_at DESC NULLS FIRST, created_at FOR NO KEY UPDATE
"""

_KEEP = """
UPDATE sources s SET content_hash = given.content_hash, title = given.title, updated_at = now(), retired_at = NULL
FROM jsonb_populate_recordset(NULL::sources, %(rows)s::jsonb) AS given
WHERE s.workspace_id = %(workspace_id)s AND s.source_id = given.source_id
"""

_THIS = f"{OWN} AND source_id = %(source_id)s"
_MOVE = f"""
UPDATE sources SET uri = %(uri)s, title = %(title)s, updated_at = now()
WHERE {_THIS} AND uri = %(old_uri)s AND retired_at IS NULL
"""  # noqa: S608 - constants
_ENTITLE = f"UPDATE sources SET title = %(title)s, updated_at = now() WHERE {_THIS}"  # noqa: S608 - constants
_RETIRE = f"UPDATE sources SET retired_at = now() WHERE {_THIS} AND retired_at IS NULL"  # noqa: S608 - constants

_FORGET_EMPTY = """
DELETE FROM sources s WHERE s.workspace_id = %(workspace_id)s AND s.source_id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (
    SELECT FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.source_id = s.source_id
) RETURNING title
"""

_RETAG = f"UPDATE memories SET tags = %(tags)s::text[] WHERE {_THIS} AND kind = 'chunk'"  # noqa: S608 - constants

_RETITLE = """
UPDATE memories m SET title = given.title, tokens = given.tokens, content_hash = given.content_hash,
    metadata = m.metadata || given.metadata
FROM jsonb_populate_recordset(NULL::memories, %(rows)s::jsonb) AS given
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = given.memory_id AND m.valid_until IS NULL
"""

_TITLES_OF = """
SELECT DISTINCT coalesce(nullif(s.title, ''), s.uri) FROM memories m JOIN sources s USING (workspace_id, source_id)
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) ORDER BY 1
"""
_PARK = f"UPDATE memories SET valid_until = now() WHERE {THESE} AND valid_until IS NULL"  # noqa: S608 - constants
# A memory that was only parked becomes live again; one that is retired stays so.
_PLACE = """
UPDATE memories m SET ordinal = given.ordinal,
    valid_until = CASE WHEN m.retired_as IS NULL THEN NULL ELSE m.valid_until END
FROM unnest(%(ids)s::uuid[], %(ordinals)s::int[]) AS given(memory_id, ordinal)
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = given.memory_id
"""
_FORGET_USER = "DELETE FROM sources WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s RETURNING kind"


class KnownFile(NamedTuple):
    """A report file that was ingested before."""

    source_id: UUID
    uri: str
    title: str
    """The path that people see."""
    content_hash: bytes
    """Hash of the stored content; empty until the first content is stored."""
    live: bool
    """False if the file no longer exists."""


async def ensure(session: Session, references: Iterable[SourceReference]) -> dict[tuple[str, str], UUID]:
    """Returns the live source of each reference, by (kind, uri); makes the missing sources."""
    wanted = {(reference.kind, reference.uri): reference for reference in references}
    found = await _live(session, wanted)
    missing = [wanted[key] for key in sorted(wanted.keys() - found.keys())]
    if not missing:
        return found
    await _insert(session, missing)
    return await _live(session, wanted)


async def _insert(session: Session, references: Sequence[SourceReference]) -> None:
    """Inserts sources; the caller gives them in the order of their URIs, so that no two writers deadlock."""
    rows = [{"source_id": new_id(), **structs.asdict(reference)} for reference in references]
    await session.execute(_INSERT, {"rows": as_json(rows)})


async def _live(session: Session, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], UUID]:
    keys = set(wanted)
    if not keys:
        return {}
    rows = await session.rows(_LIVE, {"uris": sorted({uri for _, uri in keys})})
    return {(row.kind, row.uri): row.source_id for row in rows if (row.kind, row.uri) in keys}


async def page(
    session: Session, *, kind: str | None, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[Source]:
    """Returns sources, retired ones included, newest first, after the place that `before` names."""
    created_at, source_id = before or (None, None)
    values = {"kind": kind, "limit": limit, "created_at": created_at, "source_id": source_id}
    rows = await session.rows(_PAGE.format(kind=_OF_KIND if kind else "", before=_BEFORE if before else ""), values)
    return [Source(**row._asdict()) for row in rows]


async def known_files(session: Session, uri: str | None = None) -> list[KnownFile]:
    """Returns all report files that were ever ingested, or those of this path, the retired ones first."""
    return [KnownFile(*row) for row in await session.tuples(_KNOWN, {"uri": uri})]


async def locked_files(session: Session, titles: Mapping[str, str]) -> dict[str, KnownFile]:
    """Locks the sources of these files, and makes the missing ones; returns them by path.

    `titles` are the files' titles by path. Two ingestions of a file wait for each other.
    """
    found = _by_path(await session.tuples(_LOCK, {"uris": titles}))
    missing = sorted(titles.keys() - found.keys())
    if not missing:
        return found
    await _insert(session, [SourceReference(kind="report", uri=uri, title=titles[uri]) for uri in missing])
    return found | _by_path(await session.tuples(_LOCK, {"uris": missing}))


def _by_path(rows: Iterable[Sequence[Any]]) -> dict[str, KnownFile]:
    """Returns, for each path, its live source, or else the source that was retired last."""
    files: dict[str, KnownFile] = {}
    for file in map(KnownFile._make, rows):
        files.setdefault(file.uri, file)
    return files


async def keep_files(session: Session, files: Sequence[KnownFile]) -> None:
    """Notes that these sources are live, hold this content and have these titles."""
    rows = [file._asdict() | {"content_hash": as_bytea(file.content_hash)} for file in files]
    await session.execute(_KEEP, {"rows": as_json(rows)})


async def move_file(session: Session, file: KnownFile, *, uri: str, title: str, tags: Sequence[str]) -> None:
    """Gives a file that was moved its new path, title and tags."""
    given = {"source_id": file.source_id}
    await session.execute(_MOVE, {**given, "uri": uri, "old_uri": file.uri, "title": title})
    await session.execute(_RETAG, {**given, "tags": tags})


async def entitle(session: Session, source_id: UUID, title: str) -> None:
    """Gives a source a title, and notes that it has changed."""
    await session.execute(_ENTITLE, {"source_id": source_id, "title": title})


async def retitle_chunks(session: Session, chunks: Sequence[MemoryRow]) -> None:
    """Gives known chunks (by `memory_id`) these titles and adds metadata; the caller has them indexed and embedded."""
    await session.execute(_RETITLE, {"rows": as_json([chunk.json for chunk in chunks])})


async def retire_file(session: Session, source_id: UUID) -> None:
    """Notes that a file no longer exists; the caller retires its chunks."""
    await session.execute(_RETIRE, {"source_id": source_id})


async def forget_empty(session: Session, ids: Sequence[UUID]) -> list[str]:
    """Removes those of these sources that have no memory, not even a retired one; returns their titles."""
    return await session.column(_FORGET_EMPTY, {"ids": ids})


async def _park_chunks(session: Session, ids: Sequence[UUID]) -> None:
    """Takes memories out of the unique index of live memories until they are updated, so that they can swap places."""
    if ids:
        await session.execute(_PARK, {"ids": ids})


async def titles_of(session: Session, ids: Sequence[UUID]) -> list[str]:
    """Returns the titles of the sources of these memories."""
    return await session.column(_TITLES_OF, {"ids": ids})


async def place(session: Session, ordinals: Mapping[UUID, int]) -> None:
    """Gives memories of a source these places, which may be each other's."""
    ids = sorted(ordinals)
    if ids:
        await store.lock(session, ids)
        await _park_chunks(session, ids)
        await session.execute(_PLACE, {"ids": ids, "ordinals": [ordinals[key] for key in ids]})


async def forget_user(session: Session, user: str) -> list[str]:
    """Removes all sources of a user, after their memories; returns their kinds."""
    return await session.column(_FORGET_USER, {"user": user})


_WRITTEN_AT_ONCE = 2_000
"""Most parts of a statement: the rows are sent as one document, and memory holds several copies of it."""

_PARTS = """
SELECT source_id, memory_id, content_hash, ordinal, valid_until IS NULL AS live, released,
    coalesce(retired_as IN ('deleted', 'quarantined'), false) AS barred
FROM memories
WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(source_ids)s::uuid[]) AND kind = %(kind)s
ORDER BY source_id, ordinal, memory_id
"""


@frozen
class KnownPart:
    """A memory of a source, live or retired."""

    source_id: UUID
    memory_id: UUID
    content_hash: bytes
    ordinal: int
    live: bool
    barred: bool = False
    """True if a person deleted it or it is quarantined: its text is not stored again until a person restores it."""
    released: bool = False
    """True if a person released it from quarantine."""


class Matching(NamedTuple):
    """The changes after which the stored parts are the present ones."""

    kept: tuple[tuple[KnownPart, MemoryRow], ...]
    """Pairs of a known memory whose text is still in its source, and the row of that text."""
    new: tuple[MemoryRow, ...]
    retired: tuple[UUID, ...]
    """Live memories whose text is no longer in their source."""
    replaced: tuple[tuple[UUID, UUID], ...] = ()
    """Pairs of a new memory and the live one that it replaces at the same place."""


def match_parts(rows: Sequence[MemoryRow], known: Sequence[KnownPart]) -> Matching:
    """Matches the parts of sources with the known memories of the same sources by text.

    If several known memories have one text, the one at the same ordinal matches first; live ones precede retired ones.
    """
    partners, new = _partners(rows, known)
    stay = {chunk.memory_id for chunk in partners.values()}
    gone = [chunk for chunk in known if chunk.live and chunk.memory_id not in stay]
    emptied = {(chunk.source_id, chunk.ordinal): chunk.memory_id for chunk in gone}
    return Matching(
        kept=tuple((partners[row.memory_id], row) for row in rows if row.memory_id in partners),
        new=tuple(new),
        retired=tuple(chunk.memory_id for chunk in gone),
        replaced=tuple(
            (row.memory_id, emptied[place]) for row in new if (place := (row.source_id, row.memory.ordinal)) in emptied
        ),
    )


def _partners(rows: Sequence[MemoryRow], known: Sequence[KnownPart]) -> tuple[dict[UUID, KnownPart], list[MemoryRow]]:
    """Returns the known memory of each row that has one, and the new rows; leaves out rows whose memory is barred."""
    pools: dict[tuple[UUID | None, bytes], list[KnownPart]] = defaultdict(list)
    for chunk in sorted(known, key=lambda chunk: (not chunk.live, not chunk.barred, chunk.memory_id)):
        pools[chunk.source_id, chunk.content_hash].append(chunk)
    partners = _by_place(rows, pools)
    new: list[MemoryRow] = []
    for row in rows:
        pool = pools[row.source_id, row.content_hash]
        if row.memory_id in partners:
            continue
        if not pool:
            new.append(row)
        elif not (chunk := pool.pop(0)).barred:
            partners[row.memory_id] = chunk
    return partners, new


def _by_place(
    rows: Sequence[MemoryRow], pools: Mapping[tuple[UUID | None, bytes], list[KnownPart]]
) -> dict[UUID, KnownPart]:
    partners: dict[UUID, KnownPart] = {}
    for row in rows:
        pool = pools[row.source_id, row.content_hash]
        same = next((chunk for chunk in pool if chunk.live and chunk.ordinal == row.memory.ordinal), None)
        if same is not None:
            pool.remove(same)
            partners[row.memory_id] = same
    return partners


async def known_parts(session: Session, source_ids: Sequence[UUID], *, kind: str) -> list[KnownPart]:
    """Returns the memories of this kind in these sources, the retired ones included."""
    return await session.rows_as(KnownPart, _PARTS, {"source_ids": source_ids, "kind": kind})


async def carry_out(session: Session, matching: Matching) -> list[MemoryRow]:
    """Stores the differences; returns the rows of the memories that became live, which need a vector."""
    await store.retire(session, matching.retired)
    caught = [part.memory_id for part, row in matching.kept if row.quarantined and not part.released]
    await store.retire(session, caught, reason=QUARANTINED, over=(GONE,))
    pairs = [(part, row) for part, row in matching.kept if part.released or not row.quarantined]
    kept = [replace(row, memory_id=part.memory_id) for part, row in pairs]
    revived = [row for (part, _), row in zip(pairs, kept, strict=True) if not part.live]
    moving = [part.memory_id for part, row in pairs if part.ordinal != row.memory.ordinal]
    await _park_chunks(session, moving)
    for some in _batches(kept):
        await store.update(session, some, revive=True)
    for some in _batches(matching.new):
        await store.insert(session, some)
    live = [row for row in matching.new if not row.quarantined]
    for some in _batches([*kept, *live]):
        await index_words(session, [row.memory_id for row in some])
    await links.add(session, [Link(newer, older, SUPERSEDES) for newer, older in matching.replaced])
    return [*revived, *live]


def _batches(rows: Sequence[MemoryRow]) -> list[Sequence[MemoryRow]]:
    return [rows[start : start + _WRITTEN_AT_ONCE] for start in range(0, len(rows), _WRITTEN_AT_ONCE)]
