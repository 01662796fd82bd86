"""The SQL of what cues were learnt from: turns, quotes, touched files, and the acts of sessions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, structs

from app.foundation.db.session import Session
from app.recall.cues.cue import Evidence, NewCue
from app.storage.memories.store import SUSPECT, as_json

ADD_EVIDENCE = """
INSERT INTO cue_evidence (workspace_id, memory_id, place, source_id, turn_id, session, ordinal, quote, at)
SELECT %(workspace_id)s, given.memory_id, coalesce(known.last, 0) + row_number() OVER (PARTITION BY given.memory_id),
    given.source_id, given.turn_id, given.session, given.ordinal, given.quote, given.at
FROM (
    SELECT DISTINCT memory_id, source_id, turn_id, session, ordinal, quote, at
    FROM jsonb_populate_recordset(NULL::cue_evidence, %(rows)s::jsonb)
) AS given
LEFT JOIN LATERAL (
    SELECT max(place) AS last FROM cue_evidence e
    WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = given.memory_id
) AS known ON true
WHERE NOT EXISTS (
    SELECT FROM cue_evidence e
    WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = given.memory_id AND e.session = given.session
        AND e.source_id IS NOT DISTINCT FROM given.source_id AND e.ordinal IS NOT DISTINCT FROM given.ordinal
        AND e.quote = given.quote AND coalesce(e.turn_id = given.turn_id, true)
)
RETURNING 1
"""
MOVE_EVIDENCE = """
INSERT INTO cue_evidence (workspace_id, memory_id, place, source_id, turn_id, session, ordinal, quote, at)
SELECT e.workspace_id, %(newer)s, known.last + row_number() OVER (), e.source_id, e.turn_id, e.session, e.ordinal,
    e.quote, e.at
FROM cue_evidence e, (
    SELECT coalesce(max(place), 0) AS last FROM cue_evidence
    WHERE workspace_id = %(workspace_id)s AND memory_id = %(newer)s
) AS known
WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = ANY(%(ids)s::uuid[])
RETURNING 1
"""
# What is not found in a session any longer; evidence that a person gave stays, and that of cues taken away already.
DROP_STALE = """
DELETE FROM cue_evidence e USING cues c JOIN memories m USING (workspace_id, memory_id)
WHERE e.workspace_id = %(workspace_id)s AND e.source_id = %(source_id)s AND c.workspace_id = e.workspace_id
    AND c.memory_id = e.memory_id AND c.origin = 'extracted' AND c.state <> 'superseded' AND m.valid_until IS NULL
    AND NOT EXISTS (
        SELECT FROM unnest(%(ids)s::uuid[], %(ordinals)s::int[], %(turns)s::uuid[]) AS kept(memory_id, ordinal, turn_id)
        WHERE kept.memory_id = e.memory_id AND kept.ordinal = e.ordinal AND kept.turn_id = e.turn_id
    )
RETURNING e.memory_id
"""
UNSUPPORTED = """
SELECT c.memory_id FROM cues c
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = ANY(%(ids)s::uuid[]) AND c.origin = 'extracted'
    AND NOT EXISTS (SELECT FROM cue_evidence e WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = c.memory_id)
"""
FORGET_PROOF = """
DELETE FROM cue_evidence
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""
LOCATE = """
SELECT s.uri, s.source_id, m.ordinal, m.memory_id, m.occurred_at
FROM sources s LEFT JOIN memories m ON m.workspace_id = s.workspace_id AND m.source_id = s.source_id
    AND m.kind = 'message' AND m.valid_until IS NULL AND m.ordinal = ANY(%(ordinals)s::int[])
WHERE s.workspace_id = %(workspace_id)s AND s.kind = 'session' AND s.retired_at IS NULL
    AND s.uri = ANY(%(sessions)s::text[])
"""
# A turn in which the injection scan suspects an order proves nothing: somebody may have pasted it.
TURNS_WITH = f"""
SELECT place, ordinal, role, body FROM (
    SELECT given.place, m.ordinal, m.metadata ->> 'role' AS role, m.body,
        row_number() OVER (PARTITION BY given.place, m.metadata ->> 'role' ORDER BY m.ordinal) AS number
    FROM unnest(%(sessions)s::text[], %(quotes)s::text[]) WITH ORDINALITY AS given(session, quote, place)
    JOIN sources s ON s.workspace_id = %(workspace_id)s AND s.kind = 'session' AND s.retired_at IS NULL
        AND s.uri = given.session
    JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.source_id = s.source_id AND m.kind = 'message'
        AND m.valid_until IS NULL AND NOT coalesce({SUSPECT}, false)
    WHERE position(lower(given.quote) IN lower(regexp_replace(m.body, '\\s+', ' ', 'g'))) > 0
) AS found
WHERE number <= %(most)s
ORDER BY place, (role = 'user') DESC, ordinal
"""  # noqa: S608 - constants
SAME_PATH = "({here} = {path} OR right({here}, length({path}) + 1) = '/' || {path})"
"""The condition of a path that is the asked one, or ends with it."""
OF_FILE = f"""
SELECT c.memory_id FROM cues c WHERE c.workspace_id = %(workspace_id)s AND EXISTS (
    SELECT FROM unnest(c.files) AS file, unnest(%(paths)s::text[]) AS given(path)
    WHERE {SAME_PATH.format(here="file", path="given.path")}
)
"""  # noqa: S608 - constants
TOUCHES = f"""
SELECT a.path, a.symbol, t.action, s.uri AS session, s.title, m.ordinal, coalesce(m.occurred_at, m.created_at) AS at,
    t.memory_id
FROM artifacts a
JOIN artifact_touches t USING (workspace_id, artifact_id)
JOIN memories m USING (workspace_id, memory_id)
JOIN sources s USING (workspace_id, source_id)
WHERE a.workspace_id = %(workspace_id)s AND m.valid_until IS NULL
    AND (%(paths)s::text[] = '{{}}' OR EXISTS (
        SELECT FROM unnest(%(paths)s::text[]) AS given(path)
        WHERE {SAME_PATH.format(here="a.path", path="given.path")}
    )) AND (%(symbol)s = '' OR a.symbol = %(symbol)s)
ORDER BY at DESC, m.source_id, m.ordinal DESC, a.symbol LIMIT %(limit)s
"""  # noqa: S608 - constants
NEAR_TURNS = """
SELECT DISTINCT e.memory_id FROM memories m
JOIN cue_evidence e ON e.workspace_id = m.workspace_id AND e.source_id = m.source_id
    AND e.ordinal BETWEEN m.ordinal - %(turns)s AND m.ordinal + %(turns)s
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[])
"""
TOUCHING = f"""
SELECT given.path, found.memory_id
FROM unnest(%(paths)s::text[]) AS given(path) CROSS JOIN LATERAL (
    SELECT DISTINCT e.memory_id
    FROM artifacts a
    JOIN artifact_touches t ON t.workspace_id = a.workspace_id AND t.artifact_id = a.artifact_id
    JOIN memories m ON m.workspace_id = t.workspace_id AND m.memory_id = t.memory_id AND m.valid_until IS NULL
    JOIN cue_evidence e ON e.workspace_id = m.workspace_id AND e.source_id = m.source_id
    WHERE a.workspace_id = %(workspace_id)s
        AND {SAME_PATH.format(here="a.path", path="given.path")}
    LIMIT %(limit)s
) AS found
"""  # noqa: S608 - constants
"""Cues of the sessions that touched a file: the backlinks of a plan that names it."""
FORGET_ACTS = "DELETE FROM session_acts WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s"
SAVE_ACTS = """
INSERT INTO session_acts (workspace_id, act, source_id, places)
SELECT %(workspace_id)s, act, %(source_id)s, places FROM jsonb_populate_recordset(NULL::session_acts, %(rows)s::jsonb)
RETURNING 1
"""
SHARING = """
SELECT a.source_id, a.act, a.places FROM session_acts a JOIN (
    SELECT source_id, count(*) AS acts FROM session_acts
    WHERE workspace_id = %(workspace_id)s AND act = ANY(%(acts)s::text[]) AND source_id <> %(source_id)s
    GROUP BY source_id HAVING count(*) >= %(fewest)s ORDER BY count(*) DESC, source_id DESC LIMIT %(limit)s
) AS shared USING (source_id)
WHERE a.workspace_id = %(workspace_id)s ORDER BY shared.acts DESC, source_id DESC
"""
NAMES = "SELECT source_id, uri FROM sources WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(ids)s::uuid[])"
MOST_QUOTED = 5


class QuotedTurn(NamedTuple):
    """A stored turn in which a quote stands."""

    ordinal: int
    role: str
    body: str


class FileTouch(Struct, frozen=True, kw_only=True, rename={"memory_id": "message_id"}):
    """A turn that created, changed or deleted a file, or a function or section in it."""

    path: str
    symbol: str
    """Empty for the file itself."""
    action: str
    """created, changed, deleted or renamed."""
    session: str
    title: str
    ordinal: int
    at: datetime
    memory_id: UUID


async def with_places(session: Session, cues: Sequence[NewCue]) -> list[NewCue]:
    """Returns the cues with the ids of the stored sessions and turns that their evidence names."""
    items = [item for cue in cues for item in cue.evidence if item.session]
    ordinals = {item.ordinal for item in items if item.ordinal is not None}
    values = {"sessions": sorted({item.session for item in items}), "ordinals": sorted(ordinals)}
    rows = await session.rows(LOCATE, values) if items else []
    sources = {row.uri: row.source_id for row in rows}
    turns = {(row.uri, row.ordinal): (row.memory_id, row.occurred_at) for row in rows if row.memory_id is not None}

    def place(item: Evidence) -> Evidence:
        turn_id, at = turns.get((item.session, item.ordinal), (None, None))
        source_id = item.source_id or sources.get(item.session)
        return structs.replace(item, source_id=source_id, memory_id=item.memory_id or turn_id, at=item.at or at)

    return [replace(cue, evidence=tuple(map(place, cue.evidence))) for cue in cues]


async def turns_with(session: Session, quotes: Sequence[tuple[str, str]]) -> list[list[QuotedTurn]]:
    """Returns for each session and quote the turns in which it stands, a user's before an agent's.

    The quotes have single blanks; upper and lower case are one.
    """
    values = {"sessions": [item for item, _ in quotes], "quotes": [quote for _, quote in quotes]}
    found: list[list[QuotedTurn]] = [[] for _ in quotes]
    for row in await session.rows(TURNS_WITH, {**values, "most": MOST_QUOTED}):
        found[row.place - 1].append(QuotedTurn(row.ordinal, row.role or "", row.body))
    return found


async def drop_stale(session: Session, source_id: UUID, kept: Sequence[tuple[UUID, Evidence]]) -> list[UUID]:
    """Deletes the evidence of extracted cues in a source, but for these turns; returns the cues that have none left."""
    values = {
        "source_id": source_id,
        "ids": [cue_id for cue_id, _ in kept],
        "ordinals": [proof.ordinal for _, proof in kept],
        "turns": [proof.memory_id for _, proof in kept],
    }
    touched = sorted(set(await session.column(DROP_STALE, values)))
    return await session.column(UNSUPPORTED, {"ids": touched}) if touched else []


async def forget_proofs(session: Session, source_id: UUID, cue_ids: Sequence[UUID]) -> None:
    """Takes the evidence in a session from these cues."""
    await session.execute(FORGET_PROOF, {"source_id": source_id, "ids": list(cue_ids)})


async def of_file(session: Session, paths: Sequence[str]) -> list[UUID]:
    """Returns the cues about a file, given by all its names."""
    return await session.column(OF_FILE, {"paths": list(paths)})


async def touches(session: Session, paths: Sequence[str], symbol: str, *, limit: int) -> list[FileTouch]:
    """Returns the turns that changed a file, given by all its names, or a symbol, the latest first; none is any."""
    rows = await session.rows(TOUCHES, {"paths": list(paths), "symbol": symbol, "limit": limit})
    return [FileTouch(**row._asdict()) for row in rows]


async def near_turns(session: Session, ids: Sequence[UUID], *, turns: int) -> list[UUID]:
    """Returns the cues whose evidence is at most some turns away from these turns."""
    return await session.column(NEAR_TURNS, {"ids": list(ids), "turns": turns})


async def touching_files(session: Session, paths: Sequence[str], *, limit: int) -> dict[str, set[UUID]]:
    """Returns the cues of the sessions that touched each of these files, at most `limit` of a file."""
    found = defaultdict[str, set[UUID]](set)
    for path, memory_id in await session.tuples(TOUCHING, {"paths": list(paths), "limit": limit}):
        found[path].add(memory_id)
    return found


async def save_acts(session: Session, source_id: UUID, acts: Sequence[str]) -> None:
    """Stores the acts of a session in the place of those that were known."""
    places = defaultdict[str, list[int]](list)
    for place, act in enumerate(acts):
        places[act].append(place)
    await session.execute(FORGET_ACTS, {"source_id": source_id})
    rows = [{"act": act, "places": found} for act, found in sorted(places.items())]
    await session.execute(SAVE_ACTS, {"source_id": source_id, "rows": as_json(rows)})


async def sessions_sharing(
    session: Session, source_id: UUID, acts: Sequence[str], *, fewest: int, limit: int
) -> Mapping[UUID, tuple[str, ...]]:
    """Returns the acts of the sessions that share most kinds of acts with this one, at least `fewest`."""
    values = {"source_id": source_id, "acts": sorted(set(acts)), "fewest": fewest, "limit": limit}
    found = defaultdict[UUID, dict[int, str]](dict)
    for other, act, places in await session.tuples(SHARING, values):
        found[other] |= dict.fromkeys(places, act)
    return {other: tuple(act for _, act in sorted(acts.items())) for other, acts in found.items()}


async def session_names(session: Session, ids: Sequence[UUID]) -> Mapping[UUID, str]:
    """Returns the ids of sessions as their writers name them."""
    return dict(await session.tuples(NAMES, {"ids": list(ids)}))
