"""The SQL of accesses: how often and when memories are recalled."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.foundation.db.session import Session
from app.storage.index.indexing import THESE

# A memory that is destroyed meanwhile is left out; one that is kept cannot be destroyed before the transaction ends.
_ADD_ACCESSES = f"""
WITH kept AS MATERIALIZED (
    SELECT memory_id FROM memories WHERE {THESE} ORDER BY memory_id FOR KEY SHARE
)
INSERT INTO accesses AS a (workspace_id, memory_id, access_count, accessed_at)
SELECT %(workspace_id)s, memory_id, given.count, given.latest
FROM unnest(%(ids)s::uuid[], %(counts)s::int[], %(latest)s::timestamptz[]) AS given(memory_id, count, latest)
JOIN kept USING (memory_id) ORDER BY memory_id
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET
    access_count = a.access_count + EXCLUDED.access_count,
    accessed_at = greatest(a.accessed_at, EXCLUDED.accessed_at)
"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The recalls among some that gave a memory."""

    memory_id: UUID
    count: int
    latest: datetime
    """The moment of the last of them."""


async def add_accesses(session: Session, accesses: Sequence[Access]) -> None:
    """Adds recalls to the counts of memories; those of destroyed memories are left out.

    Rows are locked in the order of their ids.
    """
    if accesses:
        lists = ([item.memory_id for item in accesses], [item.count for item in accesses])
        latest = [item.latest for item in accesses]
        await session.execute(_ADD_ACCESSES, {"ids": lists[0], "counts": lists[1], "latest": latest})
