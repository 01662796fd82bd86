"""Which memories of a changed file stay, which are new and which retire. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.memories.memory import MemoryRow


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownChunk:
    """A memory that the file's source has, live or retired."""

    memory_id: UUID
    content_hash: bytes
    ordinal: int
    live: bool
    barred: bool = False
    """A person deleted it, or it is quarantined: its text stays out for as long as nobody brings it back."""
    released: bool = False
    """A person let it out of quarantine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """What is to be done."""

    kept: tuple[tuple[KnownChunk, MemoryRow], ...]
    """Known memories whose text stands in the file, each with what the file now says of it."""
    new: tuple[MemoryRow, ...]
    retired: tuple[UUID, ...]
    """Live memories whose text is gone."""
    barred: int = 0
    """Chunks of the file that are known and stay out."""
    replaced: tuple[tuple[UUID, UUID], ...] = ()
    """New memories with the live one that stood in their place and whose text is gone."""


def matched(rows: Sequence[MemoryRow], known: Sequence[KnownChunk]) -> Matching:
    """Match a file's chunks with its known memories by text.

    Of several with one text, the one at the same ordinal is taken first, then a live one before a retired one.
    """
    pools: dict[bytes, list[KnownChunk]] = defaultdict(list)
    for chunk in sorted(known, key=lambda chunk: (not chunk.live, not chunk.barred, chunk.memory_id)):
        pools[chunk.content_hash].append(chunk)
    partners = _by_place(rows, pools)
    new: list[MemoryRow] = []
    barred = 0
    for row in rows:
        if row.memory_id in partners:
            continue
        pool = pools[row.content_hash]
        if pool and pool[0].barred:
            pool.pop(0)
            barred += 1
        elif pool:
            partners[row.memory_id] = pool.pop(0)
        else:
            new.append(row)
    kept = tuple((partners[row.memory_id], row) for row in rows if row.memory_id in partners)
    stay = {chunk.memory_id for chunk, _ in kept}
    retired = tuple(chunk.memory_id for chunk in known if chunk.live and chunk.memory_id not in stay)
    gone = {chunk.ordinal: chunk.memory_id for chunk in known if chunk.live and chunk.memory_id not in stay}
    replaced = tuple((row.memory_id, gone[place]) for row in new if (place := row.memory.ordinal) in gone)
    return Matching(kept=kept, new=tuple(new), retired=retired, barred=barred, replaced=replaced)


def _by_place(rows: Sequence[MemoryRow], pools: dict[bytes, list[KnownChunk]]) -> dict[UUID, KnownChunk]:
    partners: dict[UUID, KnownChunk] = {}
    for row in rows:
        pool = pools[row.content_hash]
        same = next((chunk for chunk in pool if chunk.live and chunk.ordinal == row.memory.ordinal), None)
        if same is not None:
            pool.remove(same)
            partners[row.memory_id] = same
    return partners
