"""The SQL of proposals: what the rules look at, the proposals with their decisions, and what an undo needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.foundation.db.session import Row, Session
from app.recall.cues.evidence import SAME_PATH
from app.recall.cues.review.rules import Idle, Note, Proposal
from app.recall.cues.store import next_revision
from app.storage.links.relations import SIMILAR
from app.storage.memories.memory import new_id
from app.storage.memories.store import as_json

DOCUMENTS = r"(^|/)(adrs?|decisions?|rfcs?|conventions?)(/|\.|-)"

OWNERS = """
SELECT DISTINCT c.workspace_id, m.user_id FROM cues c JOIN memories m USING (workspace_id, memory_id) ORDER BY 1, 2
"""
PAIRS = """
SELECT l.from_id, l.to_id, l.weight FROM links l
WHERE l.workspace_id = %(workspace_id)s AND l.relation = %(similar)s AND EXISTS (
    SELECT FROM cues c WHERE c.workspace_id = %(workspace_id)s AND c.memory_id IN (l.from_id, l.to_id)
)
"""
NOTES = """
SELECT m.memory_id, m.title, m.body, coalesce(m.occurred_at, m.created_at) AS at
FROM memories m LEFT JOIN sources s USING (workspace_id, source_id)
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND m.valid_until IS NULL
    AND (m.kind = 'note' OR m.kind = 'chunk' AND s.uri ~* %(documents)s)
"""
CHANGED = f"""
SELECT c.memory_id, (
    SELECT count(*) FROM sessions s
    WHERE s.workspace_id = %(workspace_id)s AND s.started_at > since.moment AND s.deleted_at IS NULL
) AS sessions, ARRAY(
    SELECT DISTINCT a.path FROM unnest(c.files) AS file
    JOIN artifacts a ON a.workspace_id = %(workspace_id)s
        AND {SAME_PATH.format(here="a.path", path="file")}
    JOIN artifact_touches t USING (workspace_id, artifact_id)
    JOIN memories turn ON turn.workspace_id = t.workspace_id AND turn.memory_id = t.memory_id
    WHERE coalesce(turn.occurred_at, turn.created_at) > since.moment
) AS changed
FROM cues c JOIN memories m USING (workspace_id, memory_id)
CROSS JOIN LATERAL (SELECT coalesce(c.last_fired_at, m.created_at) AS moment) AS since
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = ANY(%(ids)s::uuid[]) AND c.files <> '{{}}'
"""  # noqa: S608 - constants
KEYS = "SELECT change, key FROM cue_proposals WHERE workspace_id = %(workspace_id)s"
DECIDED = """
SELECT unnest(cue_ids) FROM cue_proposals
WHERE workspace_id = %(workspace_id)s AND change = %(change)s AND state <> 'open'
"""
ADD = """
INSERT INTO cue_proposals (workspace_id, proposal_id, change, key, cue_ids, target_id, relation, reason)
SELECT %(workspace_id)s, proposal_id, change, key, cue_ids, target_id, relation, reason
FROM jsonb_populate_recordset(NULL::cue_proposals, %(rows)s::jsonb)
ON CONFLICT (workspace_id, change, key) DO NOTHING RETURNING proposal_id
"""
COLUMNS = "proposal_id, change, cue_ids, target_id, relation, reason, state, before, created_at, decided_at"
LISTED = f"""
SELECT {COLUMNS} FROM cue_proposals
WHERE workspace_id = %(workspace_id)s AND (%(state)s = '' OR state = %(state)s)
ORDER BY created_at DESC, proposal_id DESC LIMIT %(limit)s
"""  # noqa: S608 - constants
LOCKED = f"""
SELECT {COLUMNS} FROM cue_proposals
WHERE workspace_id = %(workspace_id)s AND proposal_id = %(proposal_id)s FOR UPDATE
"""  # noqa: S608 - constants
DECIDE = """
UPDATE cue_proposals SET state = %(state)s, before = %(before)s::jsonb -> 0,
    decided_at = {at}
WHERE workspace_id = %(workspace_id)s AND proposal_id = %(proposal_id)s
"""
FORGET = "DELETE FROM cue_proposals WHERE workspace_id = %(workspace_id)s AND proposal_id = %(proposal_id)s"
SNAPSHOT = """
SELECT c.confidence, c.consequence, c.fired, c.heeded, c.ignored, c.seen_on, c.files, (
    SELECT coalesce(max(place), 0) FROM cue_evidence e
    WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = c.memory_id
) AS last
FROM cues c WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = %(memory_id)s
"""
FORGET_EVIDENCE = """
DELETE FROM cue_evidence WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s
    AND place > %(last)s AND place <= %(last_after)s
"""
PUT_BACK = """
UPDATE cues SET confidence = %(confidence)s, consequence = %(consequence)s, seen_on = %(seen_on)s::date[],
    fired = greatest(0, fired - %(fired)s), heeded = greatest(0, heeded - %(heeded)s),
    ignored = greatest(0, ignored - %(ignored)s), revision = %(revision)s, updated_at = now()
WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s
"""
SET_VALUES = """
UPDATE cues SET trust = coalesce(%(trust)s, trust), files = coalesce(%(files)s::text[], files),
    revision = %(revision)s, updated_at = now()
WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s
"""
WITHDRAW = """
DELETE FROM cue_proposals
WHERE workspace_id = %(workspace_id)s AND target_id = ANY(%(ids)s::uuid[]) AND change = %(change)s AND state = 'open'
"""
FORGET_USER = "DELETE FROM cue_proposals WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProposal:
    """A proposal with the decision on it."""

    proposal_id: UUID
    change: str
    cue_ids: tuple[UUID, ...]
    target_id: UUID | None
    """The cue that the others become, the newer one, the broader one, or the note."""
    relation: str
    reason: str
    state: str
    before: Mapping[str, Any]
    created_at: datetime
    decided_at: datetime | None


async def owners(session: Session) -> list[tuple[int, str]]:
    """Returns the workspaces that have cues, with each user who has some. The session sees all workspaces."""
    return [(row.workspace_id, row.user_id) for row in await session.rows(OWNERS)]


async def similar_pairs(session: Session) -> Sequence[tuple[UUID, UUID, float]]:
    """Returns the links of cues with what is similar to them, and how similar it is."""
    return await session.tuples(PAIRS, {"similar": SIMILAR})


async def notes_among(session: Session, ids: Sequence[UUID]) -> dict[UUID, Note]:
    """Returns the live notes and decision documents among these memories."""
    rows = await session.rows(NOTES, {"ids": list(ids), "documents": DOCUMENTS})
    return {row.memory_id: Note(**row._asdict()) for row in rows}


async def idle_of(session: Session, ids: Sequence[UUID]) -> dict[UUID, Idle]:
    """Returns the sessions and the changed files since each of these cues fired last, of those that have files."""
    rows = await session.rows(CHANGED, {"ids": list(ids)})
    return {row.memory_id: Idle(sessions=row.sessions, changed=tuple(row.changed)) for row in rows}


async def keys(session: Session) -> set[tuple[str, str]]:
    """Returns the change and the key of every proposal, whatever was decided."""
    return {(change, key) for change, key in await session.tuples(KEYS)}


async def decided_memories(session: Session, change: str) -> set[UUID]:
    """Returns the memories about which a person has decided on a proposal of this change."""
    return set(await session.column(DECIDED, {"change": change}))


async def add(session: Session, found: Sequence[Proposal]) -> list[UUID]:
    """Stores new proposals; returns their ids."""
    names = ("change", "key", "cue_ids", "target_id", "relation", "reason")
    rows = [{"proposal_id": new_id(), **{name: getattr(item, name) for name in names}} for item in found]
    return await session.column(ADD, {"rows": as_json(rows)}) if rows else []


async def page(session: Session, state: str, limit: int) -> list[StoredProposal]:
    """Returns the proposals in this state, or in any, the newest first."""
    return [_proposal_of(row) for row in await session.rows(LISTED, {"state": state, "limit": limit})]


async def lock(session: Session, proposal_id: UUID) -> StoredProposal | None:
    """Returns a proposal, which nobody else decides on before the transaction ends."""
    row = await session.row(LOCKED, {"proposal_id": proposal_id})
    return None if row is None else _proposal_of(row)


async def decide(session: Session, proposal_id: UUID, state: str, before: Mapping[str, Any]) -> None:
    """Notes the decision on a proposal, with what an undo needs."""
    # An UPDATE on a cluster takes no now() in a CASE.
    decide = DECIDE.format(at="NULL" if state == "open" else "now()")
    await session.execute(decide, {"proposal_id": proposal_id, "state": state, "before": as_json([before])})


async def forget(session: Session, proposal_id: UUID) -> None:
    """Removes a proposal that came too late, so that it can be proposed anew."""
    await session.execute(FORGET, {"proposal_id": proposal_id})


async def snapshot(session: Session, cue_id: UUID) -> dict[str, Any]:
    """Returns the figures of a cue that a merge changes, and the place of its last evidence."""
    row = await session.one(SNAPSHOT, {"memory_id": cue_id})
    return dict(row._asdict())


async def put_back(session: Session, cue_id: UUID, before: Mapping[str, Any]) -> None:
    """Gives a cue the figures and the evidence that it had before a merge; what came since stays."""
    values = {**before, "memory_id": cue_id, "revision": await next_revision(session)}
    await session.execute(FORGET_EVIDENCE, values)
    await session.execute(PUT_BACK, values)


async def set_values(
    session: Session, cue_id: UUID, *, trust: str | None = None, files: Sequence[str] | None = None
) -> None:
    """Says who stands behind a cue, or which files it is about."""
    values = {"trust": trust, "files": None if files is None else list(files)}
    await session.execute(SET_VALUES, {"memory_id": cue_id, "revision": await next_revision(session), **values})


async def withdraw(session: Session, change: str, targets: Sequence[UUID]) -> None:
    """Removes the open proposals of these targets: what they propose is no longer so."""
    await session.execute(WITHDRAW, {"change": change, "ids": list(targets)})


def _proposal_of(row: Row) -> StoredProposal:
    return StoredProposal(**{**row._asdict(), "cue_ids": tuple(row.cue_ids)})


async def forget_user(session: Session, user: str) -> None:
    """Removes the proposals for the cues of a user."""
    await session.execute(FORGET_USER, {"user": user})
