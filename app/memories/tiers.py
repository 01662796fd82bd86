"""The SQL of tiers: how often and when memories are recalled, and the tier in which each stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.session import Session
from app.index.indexing import THESE
from app.memories.heat import LONG_TERM, Placed, moved

# Visits fade as heat does, by the factor e for each `fading` seconds; the exponent is limited where the result is 0.
# Citus takes no parameter in the DO UPDATE of an INSERT … SELECT.
FADED = "exp(greatest(-50, -extract(epoch FROM {span}) / {{fading}}::float8))"
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
    due_at = EXCLUDED.due_at
"""  # noqa: S608 - constants

ENDED = "(r.finished_at IS NOT NULL OR r.output IS NOT NULL OR r.final_score IS NOT NULL OR r.verdict <> '')"
"""The condition of a run that is over."""
RUN_OF = "r.workspace_id = %(workspace_id)s AND r.run_id = {run_id} AND " + ENDED

MOVED_AT_ONCE = 1_000
"""Memories that are looked at in one transaction; they take 44 to 88 ms (12 times, 2 cores, load 8)."""
# A memory that is to come may lie in the future: it is as warm as one of now.
DUE = f"""
SELECT now() AS now, t.memory_id, t.tier, t.pinned, t.visits, m.tokens,
    least(now(), greatest(t.accessed_at, coalesce(m.occurred_at, m.created_at))) AS since, m.created_at AS entered,
    EXISTS (SELECT FROM runs r WHERE {RUN_OF.format(run_id="t.run_id")}) AS ended
FROM tiers t JOIN memories m ON m.workspace_id = t.workspace_id AND m.memory_id = t.memory_id
WHERE t.workspace_id = %(workspace_id)s AND t.due_at <= now() ORDER BY t.due_at LIMIT %(limit)s
FOR UPDATE OF t SKIP LOCKED
"""  # noqa: S608 - constants
DUE_OF_ALL = """
SELECT workspace_id FROM workspaces w
WHERE workspace_id IN (SELECT t.workspace_id FROM tiers t WHERE t.due_at <= now()) ORDER BY 1
"""
MOVE = """
UPDATE tiers t SET tier = given.tier, due_at = given.due_at,
    run_id = CASE WHEN given.tier = 'working' THEN t.run_id END
FROM unnest(%(ids)s::uuid[], %(tiers)s::text[], %(due)s::timestamptz[]) AS given(memory_id, tier, due_at)
WHERE t.workspace_id = %(workspace_id)s AND t.memory_id = given.memory_id
"""
FORGET_PLAIN = f"DELETE FROM tiers WHERE {THESE} AND tier = 'long_term' AND access_count = 0 AND NOT pinned"  # noqa: S608 - constants
END_RUN = """
UPDATE tiers SET due_at = now() WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND tier = 'working'
"""
PIN = f"""
INSERT INTO tiers AS t (workspace_id, memory_id, tier, pinned)
SELECT %(workspace_id)s, memory_id, %(tier)s, true FROM memories WHERE {THESE} AND body <> ''
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET tier = EXCLUDED.tier, pinned = true, due_at = NULL
RETURNING memory_id
"""  # noqa: S608 - constants
UNPIN = f"""
UPDATE tiers SET pinned = false, due_at = now() WHERE {THESE} AND pinned RETURNING memory_id
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
        values = {"ids": lists[0], "counts": lists[1], "latest": latest}
        await session.execute(ADD_ACCESSES.format(fading=float(fading)), values)


async def move_due(session: Session, *, fading: float) -> int:
    """Moves the memories that are due, at most MOVED_AT_ONCE, to the tiers in which they belong now.

    Returns the number of those that were looked at. Nothing but their tier changes; a second call finds none of them.
    """
    rows = await session.rows(DUE, {"limit": MOVED_AT_ONCE})
    if not rows:
        return 0
    now, ids = rows[0].now, [row.memory_id for row in rows]
    placed = [Placed(**{name: getattr(row, name) for name in Placed.__slots__}) for row in rows]
    tiers, due = zip(*(moved(item, now=now, fading=fading) for item in placed), strict=True)
    await session.execute(MOVE, {"ids": ids, "tiers": list(tiers), "due": list(due)})
    cold = [memory_id for memory_id, tier in zip(ids, tiers, strict=True) if tier == LONG_TERM]
    await session.execute(FORGET_PLAIN, {"ids": cold})
    return len(rows)


async def due_of_all(session: Session) -> list[int]:
    """Returns the workspaces with memories that are due."""
    return await session.column(DUE_OF_ALL)


async def end_run(session: Session, run_id: str) -> None:
    """Notes that the working memories of a run are due, because it is over."""
    await session.execute(END_RUN, {"run_id": run_id})


async def pin(session: Session, memory_id: UUID, tier: str) -> bool:
    """Puts a memory into a tier in which it stays; returns False if there is no such memory."""
    return bool(await session.column(PIN, {"ids": [memory_id], "tier": tier}))


async def unpin(session: Session, memory_id: UUID) -> bool:
    """Lets heat decide about a pinned memory again; returns False if it is not pinned."""
    return bool(await session.column(UNPIN, {"ids": [memory_id]}))
