"""The parts of a source: matches the present ones with the stored ones, and stores the differences."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.foundation.db.session import Session
from app.storage.index.indexing import index_words
from app.storage.links import store as links
from app.storage.links.relations import SUPERSEDES, Link
from app.storage.memories import sources, store
from app.storage.memories.memory import GONE, QUARANTINED, MemoryRow
from app.storage.tenants import usage

_WRITTEN_AT_ONCE = 2_000
"""Most parts of a statement: the rows are sent as one document, and memory holds several copies of it."""

_PARTS = """
SELECT source_id, memory_id, content_hash, ordinal, valid_until IS NULL AS live, released,
    coalesce(retired_as IN ('deleted', 'quarantined'), false) AS barred
FROM memories
WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(source_ids)s::uuid[]) AND kind = %(kind)s
ORDER BY source_id, ordinal, memory_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
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
    rows = await session.rows(_PARTS, {"source_ids": list(source_ids), "kind": kind})
    return [KnownPart(**row._asdict()) for row in rows]


async def carry_out(session: Session, matching: Matching) -> list[MemoryRow]:
    """Stores the differences; returns the rows of the memories that became live, which need a vector."""
    await store.retire(session, matching.retired)
    caught = [part.memory_id for part, row in matching.kept if row.quarantined and not part.released]
    await store.retire(session, caught, reason=QUARANTINED, over=(GONE,))
    pairs = [(part, row) for part, row in matching.kept if part.released or not row.quarantined]
    kept = [replace(row, memory_id=part.memory_id) for part, row in pairs]
    revived = [row for (part, _), row in zip(pairs, kept, strict=True) if not part.live]
    await usage.take(session, len(revived))
    moving = [part.memory_id for part, row in pairs if part.ordinal != row.memory.ordinal]
    await sources.park_chunks(session, moving)
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
