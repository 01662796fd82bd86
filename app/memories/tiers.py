"""The SQL of tiers: how often and when memories are recalled."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.session import Session
from app.index.indexing import THESE

# Visits fade as heat does, by the factor e for each `fading` seconds; the exponent is limited where the result is 0.
FADED = "exp(greatest(-50, -extract(epoch FROM {span}) / %(fading)s))"
# A memory that is destroyed meanwhile is left out; one that is kept cannot be destroyed before the transaction ends.
ADD_ACCESSES = f"""
WITH kept AS MATERIALIZED (
    SELECT memory_id FROM memories WHERE {THESE} ORDER BY memory_id FOR KEY SHARE
)
INSERT INTO tiers AS t (workspace_id, memory_id, access_count, accessed_at, visits, due_at)
SELECT %(workspace_id)s, memory_id, given.count, given.latest, given.count, now()
FROM unnest(%(ids)s::uuid[], %(counts)s::int[], %(latest)s::timestamptz[]) AS given(memory_id, count, latest)
JOIN kept USING (memory_id) ORDER BY memory_id
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET
    access_count = t.access_count + EXCLUDED.access_count,
    accessed_at = greatest(t.accessed_at, EXCLUDED.accessed_at),
    visits = t.visits * coalesce({FADED.format(span="greatest(EXCLUDED.accessed_at - t.accessed_at, interval '0')")}, 0)
        + EXCLUDED.visits
        * coalesce({FADED.format(span="greatest(t.accessed_at - EXCLUDED.accessed_at, interval '0')")}, 1),
    due_at = now()
"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The recalls among some that gave a memory."""

    memory_id: UUID
    count: int
    latest: datetime
    """The moment of the last of them."""


async def add_accesses(session: Session, accesses: Sequence[Access], *, fading: float) -> None:
    """Adds recalls to the counts of memories; those of destroyed memories are left out.

    An earlier visit counts e times less for each `fading` seconds that it is older. Rows are locked in the order of
    their ids.
    """
    if accesses:
        lists = ([item.memory_id for item in accesses], [item.count for item in accesses])
        latest = [item.latest for item in accesses]
        values = {"ids": lists[0], "counts": lists[1], "latest": latest, "fading": fading}
        await session.execute(ADD_ACCESSES, values)
