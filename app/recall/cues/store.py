"""The SQL of cues and their evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import structs

from app.foundation.db.session import Row, Session
from app.foundation.models.protocols import Matrix
from app.recall.cues.cue import ACTIVE, PROPOSED, VECTORS_VERSION, Cue, Evidence, NewCue, days_of
from app.recall.cues.evidence import ADD_EVIDENCE, MOVE_EVIDENCE
from app.storage.memories.memory import as_bytea, in_utc
from app.storage.memories.store import SUSPECT, as_json

BUMP = """
INSERT INTO cue_revisions AS r (workspace_id, revision) VALUES (%(workspace_id)s, 1)
ON CONFLICT (workspace_id) DO UPDATE SET revision = r.revision + 1 RETURNING revision
"""
REVISION = "SELECT coalesce(max(revision), 0) FROM cue_revisions WHERE workspace_id = %(workspace_id)s"

GIVEN = """memory_id, cue_kind, details, confidence, consequence, scope, quote, trust, origin, state, action_types,
    files, seen_on, model, vectors, valid_from, valid_until"""
UNITED = """ARRAY(SELECT DISTINCT unnest(c.{name} || EXCLUDED.{name}) ORDER BY 1)"""
# A known text that is given again: its evidence is united, one of another day raises the confidence, and what a person
# decided about it stays. Its quote and details stay too: the section tells them, and the injection scan has read only
# those that were stored first.
INSERT = f"""
INSERT INTO cues AS c (workspace_id, {GIVEN}, revision)
SELECT %(workspace_id)s, {GIVEN}, %(revision)s FROM jsonb_populate_recordset(NULL::cues, %(rows)s::jsonb)
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET
    confidence = CASE WHEN c.origin <> 'proposed' AND NOT EXCLUDED.seen_on <@ c.seen_on
        THEN 1 - (1 - c.confidence) * (1 - EXCLUDED.confidence)
        ELSE greatest(c.confidence, EXCLUDED.confidence) END,
    consequence = greatest(c.consequence, EXCLUDED.consequence),
    trust = CASE WHEN EXCLUDED.trust = 'person' AND EXCLUDED.state <> 'proposed' THEN 'person' ELSE c.trust END,
    state = CASE WHEN c.state = 'proposed' THEN EXCLUDED.state ELSE c.state END,
    action_types = {UNITED.format(name="action_types")}, files = {UNITED.format(name="files")},
    seen_on = {UNITED.format(name="seen_on")}, valid_from = least(c.valid_from, EXCLUDED.valid_from),
    model = CASE WHEN EXCLUDED.vectors IS NULL THEN c.model ELSE EXCLUDED.model END,
    vectors = coalesce(EXCLUDED.vectors, c.vectors), revision = EXCLUDED.revision, updated_at = EXCLUDED.updated_at
"""  # noqa: S608 - constants

EVIDENCE = """(
    SELECT coalesce(jsonb_agg(jsonb_build_object('source_id', e.source_id, 'turn_id', e.turn_id,
        'session', coalesce(nullif(e.session, ''), CASE WHEN s.kind = 'session' THEN s.uri END, ''),
        'path', coalesce(CASE WHEN s.kind = 'report' THEN s.title END, ''), 'section', coalesce((
            SELECT string_agg(heading, ' › ' ORDER BY place)
            FROM jsonb_array_elements_text(t.metadata -> 'trail') WITH ORDINALITY AS above(heading, place)
        ), ''), 'message', e.ordinal, 'quote', e.quote, 'at', e.at)
        ORDER BY e.place), '[]')
    FROM cue_evidence e
    LEFT JOIN sources s ON s.workspace_id = %(workspace_id)s AND s.source_id = e.source_id
    LEFT JOIN memories t ON s.kind = 'report' AND t.workspace_id = %(workspace_id)s AND t.memory_id = e.turn_id
    WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = c.memory_id
)"""
DISPUTED = """CASE WHEN cardinality(c.disputed_by) = 0 THEN c.disputed_by ELSE ARRAY(
    SELECT o.memory_id FROM cues o JOIN memories n ON n.workspace_id = o.workspace_id AND n.memory_id = o.memory_id
    WHERE o.workspace_id = %(workspace_id)s AND o.memory_id = ANY(c.disputed_by) AND o.state = 'active'
        AND n.valid_until IS NULL
    ORDER BY o.memory_id
) END AS disputed_by"""
"""The active cues that dispute a cue: one that was taken away disputes nothing. Most cues have none, and Postgres joins
all cues with all memories for each where it does not know the tables' sizes yet: 17 ms a cue in a new store of 270."""
_DAY = "to_char({at} AT TIME ZONE 'UTC', 'FMDD FMMonth')"
STANDING = f"""coalesce((
    SELECT {_DAY.format(at="c.valid_from")} || ': ' || rtrim(m.body, '. ') || '. Replaces '
        || {_DAY.format(at="o.valid_from")} || ': ' || rtrim(replaced.body, '. ') || '.'
    FROM links l JOIN cues o ON o.workspace_id = l.workspace_id AND o.memory_id = l.to_id
    JOIN memories replaced ON replaced.workspace_id = l.workspace_id AND replaced.memory_id = l.to_id
    WHERE l.workspace_id = %(workspace_id)s AND l.from_id = c.memory_id AND l.relation = 'supersedes'
        AND o.superseded_by = c.memory_id AND o.valid_until = c.valid_from AND replaced.retired_as = 'superseded'
    ORDER BY o.valid_from DESC LIMIT 1
), m.body)"""  # noqa: S608 - constants
"""The lesson of a cue; if it holds in place of one that it contradicts, both, with their days. Cues that were merged
into it say what it says."""
STATE = """CASE
    WHEN c.state = 'active' AND c.superseded_by IS NOT NULL AND c.valid_until <= now() THEN 'superseded'
    WHEN c.state = 'active' AND m.valid_until IS NOT NULL THEN 'retired'
    ELSE c.state
END"""
"""The state of a cue; one whose memory is in the trash or in quarantine is retired."""
COLUMNS = f"""c.memory_id AS cue_id, c.cue_kind AS kind, m.title AS trigger, m.body AS lesson,
    {STANDING} AS standing, c.details, c.confidence,
    c.consequence, c.scope, c.quote, c.trust, c.origin, {STATE} AS state, c.action_types, c.files, m.tags,
    {EVIDENCE} AS evidence, c.seen_on, c.fired, c.heeded, c.ignored, c.last_fired_at, c.valid_from, c.valid_until,
    c.superseded_by, {DISPUTED}, m.quality, c.edited,
    coalesce({SUSPECT}, false) AS suspect, m.created_at, c.updated_at"""
JOINED = "cues c JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id"
THESE = "c.workspace_id = %(workspace_id)s AND c.memory_id = ANY(%(ids)s::uuid[])"
READ = f"SELECT {COLUMNS} FROM {JOINED} WHERE {THESE}"  # noqa: S608 - constants
OF_SOURCE = f"""
SELECT {COLUMNS} FROM {JOINED} WHERE c.workspace_id = %(workspace_id)s AND c.memory_id IN (
    SELECT memory_id FROM cue_evidence WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s
) ORDER BY m.created_at, c.memory_id
"""  # noqa: S608 - constants
CONDITIONS: Mapping[str, str] = {
    "kinds": "c.cue_kind = ANY(%(kinds)s::text[])",
    "states": f"{STATE} = ANY(%(states)s::text[])",
    "action_type": """EXISTS (
        SELECT FROM unnest(c.action_types) AS t WHERE t = %(action_type)s OR starts_with(t, %(action_type)s || ':')
    )""",
    "session": """EXISTS (
        SELECT FROM cue_evidence e LEFT JOIN sources s USING (workspace_id, source_id)
        WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = c.memory_id
            AND %(session)s IN (e.session, s.uri, e.source_id::text)
    )""",
    "text": "strpos(lower(m.title || E'\n' || m.body), lower(%(text)s)) > 0",
    "after": "(m.created_at, c.memory_id) < (%(after)s::timestamptz, %(after_id)s::uuid)",
}
PAGE = f"""
SELECT {COLUMNS} FROM {JOINED} WHERE {{where}}
ORDER BY m.created_at DESC, c.memory_id DESC LIMIT %(limit)s
"""  # noqa: S608 - constants

EDITED = ("cue_kind", "details", "confidence", "consequence", "scope", "quote", "trust", "action_types", "files",
          "valid_from", "valid_until")  # fmt: skip
EDIT = f"""
UPDATE cues c SET {", ".join(f"{name} = given.{name}" for name in EDITED)},
    edited = ARRAY(SELECT DISTINCT unnest(c.edited || %(edited)s::text[]) ORDER BY 1),
    model = CASE WHEN %(same)s THEN c.model ELSE given.model END,
    vectors = CASE WHEN %(same)s THEN c.vectors ELSE given.vectors END, revision = %(revision)s, updated_at = now()
FROM jsonb_populate_recordset(NULL::cues, %(rows)s::jsonb) AS given
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = given.memory_id
"""  # noqa: S608 - constants
# The end that a conflict sets goes with it; one that a writer gave stays. A successor that holds later leaves the cue
# active until then.
SET_STATE = f"""
UPDATE cues c SET state = %(state)s, superseded_by = %(superseded_by)s,
    valid_until = coalesce(%(valid_until)s, CASE WHEN c.superseded_by IS NULL THEN c.valid_until END),
    revision = %(revision)s, updated_at = now()
WHERE {THESE}
"""  # noqa: S608 - constants
DISPUTE = f"""
UPDATE cues c SET disputed_by = ARRAY(SELECT DISTINCT unnest(c.disputed_by || %(others)s::uuid[])), updated_at = now()
WHERE {THESE}
"""  # noqa: S608 - constants
DUE = """
SELECT memory_id, superseded_by, valid_until FROM cues
WHERE workspace_id = %(workspace_id)s AND state = 'active' AND superseded_by IS NOT NULL AND valid_until <= now()
"""
SUM_UP = f"""
UPDATE cues c SET seen_on = ARRAY(
        SELECT DISTINCT day FROM cues s, unnest(s.seen_on) AS day
        WHERE s.workspace_id = %(workspace_id)s AND s.memory_id = ANY(%(newer)s::uuid || %(ids)s::uuid[]) ORDER BY 1
    ), confidence = 1 - (1 - c.confidence) * o.doubt, consequence = greatest(c.consequence, o.consequence),
    fired = c.fired + o.fired, heeded = c.heeded + o.heeded, ignored = c.ignored + o.ignored, revision = %(revision)s,
    updated_at = now()
FROM (
    SELECT max(c.consequence) AS consequence, exp(sum(ln(greatest(1 - c.confidence, 1e-6)))) AS doubt,
        sum(c.fired) AS fired, sum(c.heeded) AS heeded, sum(c.ignored) AS ignored FROM cues c WHERE {THESE}
) AS o
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = %(newer)s
"""  # noqa: S608 - constants
RECORDED = """
SELECT DISTINCT c.memory_id, s.uri FROM cues c JOIN cue_evidence e USING (workspace_id, memory_id)
JOIN sources s USING (workspace_id, source_id)
WHERE workspace_id = %(workspace_id)s AND c.cue_kind = 'decision' AND c.origin = 'extracted' AND c.state = 'active'
    AND s.kind = 'report' AND s.retired_at IS NULL
    AND coalesce(nullif(regexp_replace(s.uri, '/?[^/]*$', ''), ''), '.') = %(folder)s
"""

# A candidate that a person or another session states as sure needs no decision any longer.
DROP_CANDIDATES = """
DELETE FROM cue_proposals p USING cues c
WHERE p.workspace_id = %(workspace_id)s AND p.target_id = ANY(%(ids)s::uuid[]) AND p.change = 'candidate'
    AND p.state = 'open' AND c.workspace_id = p.workspace_id AND c.memory_id = p.target_id AND c.state = 'active'
"""

# Trigger and lesson are found by a search; the fields of the kind are in no index.
NAMING = """
SELECT c.memory_id FROM cues c
WHERE c.workspace_id = %(workspace_id)s AND c.cue_kind IN ('decision', 'negative_result') AND (
    SELECT bool_and(lower(jsonb_path_query_array(c.details, '$.*')::text) ~ ('\\m' || stem))
    FROM unnest(%(stems)s::text[]) AS stem
)
ORDER BY c.valid_from DESC, c.memory_id LIMIT %(limit)s
"""
ABOUT = """
SELECT c.memory_id FROM cues c WHERE c.workspace_id = %(workspace_id)s AND (
    c.memory_id = ANY(%(ids)s::uuid[]) OR c.superseded_by = ANY(%(ids)s::uuid[]) OR EXISTS (
    SELECT FROM cue_evidence e WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = c.memory_id
        AND e.source_id = ANY(%(sources)s::uuid[])
))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CueFilter:
    """The conditions of a list of cues; an empty one is none."""

    kinds: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    action_type: str = ""
    """A type, or the first level of several."""
    session: str = ""
    """The id of a session, as its writer names it or as it is stored."""
    text: str = ""


def row_of(memory_id: UUID, cue: NewCue, model: str, vectors: Matrix | None) -> dict[str, Any]:
    """Returns a cue in the form that `jsonb_populate_recordset` reads."""
    said = [item.at for item in cue.evidence if item.at]
    same = ("confidence", "consequence", "scope", "quote", "trust", "origin", "action_types", "files")
    return {
        **{name: getattr(cue, name) for name in same},
        "memory_id": memory_id,
        "cue_kind": cue.kind,
        "details": dict(cue.details),
        "state": PROPOSED if cue.is_candidate or cue.origin == PROPOSED else ACTIVE,
        "seen_on": days_of(cue.evidence),
        "model": "" if vectors is None else model + VECTORS_VERSION,
        "vectors": None if vectors is None else halves(vectors),
        "valid_from": in_utc(cue.valid_from or min(said, default=datetime.now(UTC))),
        "valid_until": None if cue.valid_until is None else in_utc(cue.valid_until),
    }


def halves(rows: Matrix) -> str:
    """Returns the vectors of a cue as they are stored: 16-bit floats, little-endian."""
    return as_bytea(rows.astype("<f2").tobytes())


async def next_revision(session: Session) -> int:
    """Counts up the revision of the workspace's cues; other writers of them wait for this transaction."""
    return int(await session.value(BUMP))


async def revision_of(session: Session) -> int:
    """Returns the revision of the workspace's cues; 0 without any."""
    return int(await session.value(REVISION))


async def insert(
    session: Session, given: Sequence[tuple[UUID, NewCue, Matrix | None]], model: str, revision: int
) -> None:
    """Writes cues with their vectors beside their memories, or unites them with the known ones; adds their evidence."""
    rows = {memory_id: row_of(memory_id, cue, model, vectors) for memory_id, cue, vectors in given}
    await session.execute(INSERT, {"rows": as_json(list(rows.values())), "revision": revision})
    await session.execute(DROP_CANDIDATES, {"ids": list(rows)})
    evidence = [
        {**structs.asdict(item), "memory_id": memory_id, "turn_id": item.memory_id}
        for memory_id, cue, _ in given
        for item in cue.evidence
    ]
    if evidence:
        await session.execute(ADD_EVIDENCE, {"rows": as_json(evidence)})


async def edit(session: Session, row: Mapping[str, Any], revision: int, *, edited: Sequence[str], same: bool) -> None:
    """Gives a stored cue new values beside those of its memory; if its texts are the `same`, its vectors stay.

    `edited` names the fields that a person changed.
    """
    values = {"rows": as_json([row]), "revision": revision, "edited": list(edited), "same": same}
    await session.execute(EDIT, values)


async def read(session: Session, ids: Sequence[UUID]) -> dict[UUID, Cue]:
    """Returns these cues, of any state, by their ids."""
    return {row.cue_id: cue_of(row) for row in await session.rows(READ, {"ids": list(ids)})} if ids else {}


async def of_source(session: Session, source_id: UUID) -> list[Cue]:
    """Returns the cues that have evidence in this source, the oldest first."""
    return [cue_of(row) for row in await session.rows(OF_SOURCE, {"source_id": source_id})]


async def records_in(session: Session, folder: str) -> dict[str, UUID]:
    """Returns the active decisions of the records in a folder (`.` for none), by the records' paths."""
    return {row.uri: row.memory_id for row in await session.rows(RECORDED, {"folder": folder})}


async def page(session: Session, asked: CueFilter, *, after: tuple[datetime, UUID] | None, limit: int) -> list[Cue]:
    """Returns the cues that meet every condition, the newest first."""
    given = {name: value for name, value in asdict(asked).items() if value}
    values: dict[str, Any] = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    if after is not None:
        values |= {"after": after[0], "after_id": after[1]}
    where = " AND ".join(
        ["c.workspace_id = %(workspace_id)s", *(CONDITIONS[name] for name in values if name in CONDITIONS)]
    )
    return [cue_of(row) for row in await session.rows(PAGE.format(where=where), {**values, "limit": limit})]


async def set_state(
    session: Session,
    ids: Sequence[UUID],
    state: str,
    *,
    superseded_by: UUID | None = None,
    valid_until: datetime | None = None,
) -> int:
    """Gives cues a state; one that is superseded names its successor, and the moment until which it held."""
    values = {"ids": list(ids), "state": state, "superseded_by": superseded_by, "valid_until": valid_until}
    return await session.execute(SET_STATE, {**values, "revision": await next_revision(session)})


async def due(session: Session) -> list[Row]:
    """Returns the active cues in whose place another one has begun to hold: `superseded_by`, from `valid_until` on."""
    return await session.rows(DUE)


async def dispute(session: Session, one: UUID, other: UUID) -> None:
    """Notes that two cues contradict each other, and that it is not clear which one holds."""
    for memory_id, opposed in ((one, other), (other, one)):
        await session.execute(DISPUTE, {"ids": [memory_id], "others": [opposed]})


async def merge(session: Session, ids: Sequence[UUID], newer_id: UUID) -> None:
    """Gives a cue the evidence, the days and the confidence of others."""
    values = {"ids": list(ids), "newer": newer_id, "revision": await next_revision(session)}
    await session.execute(MOVE_EVIDENCE, values)
    await session.execute(SUM_UP, values)


async def naming(session: Session, stems: Sequence[str], *, limit: int) -> list[UUID]:
    """Returns the decisions and negative results whose fields have words with all these stems, the latest first."""
    return await session.column(NAMING, {"stems": list(stems), "limit": limit})


async def about(session: Session, ids: Sequence[UUID], sources: Sequence[UUID]) -> list[UUID]:
    """Returns these cues, those that one of them has replaced, and those that were learnt from one of these sources."""
    return await session.column(ABOUT, {"ids": list(ids), "sources": list(sources)})


def cue_of(row: Row) -> Cue:
    """Returns the cue of a row with COLUMNS."""
    values = {name: getattr(row, name) for name in Cue.__struct_fields__}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Cue(**{**values, **lists, "evidence": msgspec.convert(row.evidence, tuple[Evidence, ...])})
