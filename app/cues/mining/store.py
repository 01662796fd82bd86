"""The SQL of the acts of sessions, and of the procedures that were mined of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from app.cues.cue import ACTIVE, CORRECTION, PREFERENCE, PROCEDURE, PROPOSED
from app.cues.mining.sequences import Names
from app.db.session import Session
from app.memories.store import as_json

FORGET = "DELETE FROM session_acts WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s"
SAVE = """
INSERT INTO session_acts (workspace_id, act, source_id, places)
SELECT %(workspace_id)s, act, %(source_id)s, places FROM jsonb_populate_recordset(NULL::session_acts, %(rows)s::jsonb)
RETURNING 1
"""
SHARING = """
SELECT source_id FROM session_acts
WHERE workspace_id = %(workspace_id)s AND act = ANY(%(acts)s::text[]) AND source_id <> %(source_id)s
GROUP BY source_id HAVING count(*) >= %(fewest)s ORDER BY count(*) DESC, source_id DESC LIMIT %(limit)s
"""
ACTS = """
SELECT source_id, act, places FROM session_acts
WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(ids)s::uuid[])
"""
MINED = """
SELECT memory_id FROM cues
WHERE workspace_id = %(workspace_id)s AND cue_kind = %(kind)s AND origin = %(origin)s ORDER BY memory_id
"""
CHOICES = """
SELECT c.memory_id FROM cues c JOIN memories m USING (workspace_id, memory_id)
WHERE c.workspace_id = %(workspace_id)s AND c.cue_kind = ANY(%(kinds)s::text[]) AND c.state = %(state)s AND EXISTS (
    SELECT FROM unnest(%(stems)s::text[]) AS stem WHERE lower(m.body || ' ' || c.details::text) ~ ('\\m' || stem)
)
ORDER BY c.memory_id DESC LIMIT %(limit)s
"""
NAMES = "SELECT source_id, uri FROM sources WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(ids)s::uuid[])"
FORGET_PROOF = """
DELETE FROM cue_evidence
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""


async def save(session: Session, source_id: UUID, acts: Names) -> None:
    """Stores the acts of a session in the place of those that were known."""
    places = defaultdict[str, list[int]](list)
    for place, act in enumerate(acts):
        places[act].append(place)
    await session.execute(FORGET, {"source_id": source_id})
    rows = [{"act": act, "places": found} for act, found in sorted(places.items())]
    await session.execute(SAVE, {"source_id": source_id, "rows": as_json(rows)})


async def sharing(session: Session, source_id: UUID, acts: Names, *, fewest: int, limit: int) -> Mapping[UUID, Names]:
    """Returns the acts of the sessions that share most kinds of acts with this one, at least `fewest`."""
    values = {"source_id": source_id, "acts": sorted(set(acts)), "fewest": fewest, "limit": limit}
    ids = await session.column(SHARING, values)
    found = defaultdict[UUID, dict[int, str]](dict)
    for other, act, places in await session.tuples(ACTS, {"ids": ids}) if ids else []:
        found[other] |= dict.fromkeys(places, act)
    return {other: tuple(act for _, act in sorted(found[other].items())) for other in ids}


async def mined(session: Session) -> list[UUID]:
    """Returns the procedures that were mined, of any state."""
    return await session.column(MINED, {"kind": PROCEDURE, "origin": PROPOSED})


async def choices(session: Session, stems: Sequence[str], limit: int) -> list[UUID]:
    """Returns the active preferences and corrections that have a word with one of these stems, the newest first."""
    values = {"kinds": [PREFERENCE, CORRECTION], "state": ACTIVE, "stems": list(stems), "limit": limit}
    return await session.column(CHOICES, values)


async def names_of(session: Session, ids: Sequence[UUID]) -> Mapping[UUID, str]:
    """Returns the ids of sessions as their writers name them."""
    return dict(await session.tuples(NAMES, {"ids": list(ids)}))


async def forget_proofs(session: Session, source_id: UUID, cue_ids: Sequence[UUID]) -> None:
    """Takes the evidence in a session from these cues."""
    await session.execute(FORGET_PROOF, {"source_id": source_id, "ids": list(cue_ids)})
