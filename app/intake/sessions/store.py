"""The SQL of sessions: their messages, the artifacts that they touched, and of which cues are to be made."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct, structs

from app.foundation.db.database import Lease
from app.foundation.db.session import EXTRACT, Session
from app.foundation.values import frozen
from app.intake.sessions.artifacts import Touch, also_named, endings
from app.intake.sessions.merge import KnownTurn, TurnText
from app.intake.sessions.prepare import PreparedTurn
from app.intake.sessions.transcript import ToolUse
from app.storage.memories.changes import EMPTIED, FORGOTTEN
from app.storage.memories.memory import as_bytea, new_id
from app.storage.memories.store import SUSPECT, as_json

_KNOWN = """
SELECT s.source_id, s.title, x.path, x.deleted_at IS NOT NULL AS deleted
FROM sources s JOIN sessions x USING (workspace_id, source_id)
WHERE s.workspace_id = %(workspace_id)s AND s.kind = 'session' AND s.uri = %(session_id)s AND s.retired_at IS NULL
"""
_OWNER = """
SELECT user_id FROM sources
WHERE workspace_id = %(workspace_id)s AND kind = 'session' AND uri = %(session_id)s AND retired_at IS NULL
"""
_LOCK = """
SELECT source_id FROM sources
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s FOR NO KEY UPDATE
"""
# With `revive` no turn of a session that a person deleted is barred, but one that was forgotten; a row whose text the
# trash has destroyed stands for no turn.
_TURNS = f"""
SELECT m.source_id, m.memory_id, m.content_hash, m.ordinal, m.valid_until IS NULL AS live, m.released,
    coalesce(m.retired_as IN ('deleted', 'quarantined'), false) AND (NOT %(revive)s OR {FORGOTTEN}) AS barred,
    x.message_id, x.digest, m.occurred_at AS at
FROM memories m JOIN messages x USING (workspace_id, memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.source_id = %(source_id)s AND m.kind = 'message'
    AND NOT (%(revive)s AND {EMPTIED})
"""  # noqa: S608 - constants
_TEXTS = """
SELECT x.memory_id, x.role, coalesce(x.spoken, m.body) AS text, x.tools
FROM memories m JOIN messages x USING (workspace_id, memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND m.valid_until IS NULL
"""
_SAVE = """
INSERT INTO sessions AS x (workspace_id, source_id, format, path, started_at, ended_at)
VALUES (%(workspace_id)s, %(source_id)s, %(format)s, %(path)s, %(started_at)s, %(ended_at)s)
ON CONFLICT (workspace_id, source_id) DO UPDATE SET format = EXCLUDED.format, path = EXCLUDED.path,
    started_at = least(x.started_at, EXCLUDED.started_at), ended_at = greatest(x.ended_at, EXCLUDED.ended_at),
    deleted_at = NULL, updated_at = EXCLUDED.updated_at
"""
_HASHES = """
SELECT DISTINCT ON (path) path, log_hash FROM sessions
WHERE workspace_id = %(workspace_id)s AND path = ANY(%(paths)s::text[]) AND log_hash IS NOT NULL AND deleted_at IS NULL
ORDER BY path, updated_at DESC
"""
_NOTE_READ = """
UPDATE sessions SET log_hash = %(digest)s WHERE workspace_id = %(workspace_id)s AND path = %(path)s
"""
_SAVE_MESSAGES = """
INSERT INTO messages AS x (workspace_id, memory_id, role, spoken, tools, message_id, digest)
SELECT %(workspace_id)s, memory_id, role, spoken, tools, message_id, digest
FROM jsonb_populate_recordset(NULL::messages, %(rows)s::jsonb)
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET role = EXCLUDED.role, spoken = EXCLUDED.spoken,
    tools = EXCLUDED.tools, message_id = coalesce(nullif(EXCLUDED.message_id, ''), x.message_id),
    digest = EXCLUDED.digest
"""
_FORGET_TOUCHES = """
DELETE FROM artifact_touches WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""
_SAVE_ARTIFACTS = """
INSERT INTO artifacts (workspace_id, artifact_id, path, symbol)
SELECT %(workspace_id)s, artifact_id, path, symbol FROM jsonb_populate_recordset(NULL::artifacts, %(rows)s::jsonb)
ON CONFLICT (workspace_id, path, symbol) DO NOTHING
"""
_SAVE_TOUCHES = """
INSERT INTO artifact_touches (workspace_id, artifact_id, memory_id, action, renamed_to)
SELECT %(workspace_id)s, a.artifact_id, given.memory_id, given.action, given.renamed_to
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS given(path text, symbol text, action text, renamed_to text, memory_id uuid)
JOIN artifacts a ON a.workspace_id = %(workspace_id)s AND a.path = given.path AND a.symbol = given.symbol
ON CONFLICT DO NOTHING
"""
_KNOWN_PATHS = """
SELECT DISTINCT path FROM artifacts WHERE workspace_id = %(workspace_id)s AND path = ANY(%(paths)s::text[])
"""
_RENAMES = """
SELECT DISTINCT a.path, t.renamed_to FROM artifact_touches t JOIN artifacts a USING (workspace_id, artifact_id)
WHERE t.workspace_id = %(workspace_id)s AND t.renamed_to <> ''
"""
_FORGET_UNTOUCHED = """
DELETE FROM artifacts a WHERE a.workspace_id = %(workspace_id)s AND NOT EXISTS (
    SELECT FROM artifact_touches t WHERE t.workspace_id = %(workspace_id)s AND t.artifact_id = a.artifact_id
)
"""
_BLANK = """
UPDATE messages x SET spoken = NULL, tools = '[]'
FROM unnest(%(workspaces)s::bigint[], %(ids)s::uuid[]) AS gone(workspace_id, memory_id)
WHERE x.workspace_id = gone.workspace_id AND x.memory_id = gone.memory_id
"""
_FORGET_TOUCHES_OF_ALL = """
DELETE FROM artifact_touches t USING unnest(%(workspaces)s::bigint[], %(ids)s::uuid[]) AS gone(workspace_id, memory_id)
WHERE t.workspace_id = gone.workspace_id AND t.memory_id = gone.memory_id
"""
_PATHS = """
SELECT DISTINCT path FROM sessions WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(ids)s::uuid[])
    AND path <> ''
"""

_MOMENT = "coalesce(x.started_at, s.created_at)"
_LIVE_TURNS = """
SELECT count(*) FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.source_id = s.source_id
    AND m.kind = 'message' AND m.valid_until IS NULL
"""
_HAS_TURNS = _LIVE_TURNS.replace("SELECT count(*)", "SELECT", 1)
_SESSIONS = f"""
SELECT s.source_id, s.uri AS session_id, s.title, x.format, x.path, x.started_at, x.ended_at, s.created_at,
    x.updated_at, s.user_id AS "user", ({_LIVE_TURNS}) AS turns
FROM sources s JOIN sessions x USING (workspace_id, source_id)
WHERE s.workspace_id = %(workspace_id)s AND s.kind = 'session' AND EXISTS ({_HAS_TURNS})
"""  # noqa: S608 - constants
GET = f"{_SESSIONS} AND s.uri = %(session_id)s"
_CONDITIONS = {
    "format": "x.format = %(format)s",
    "since": f"{_MOMENT} >= %(since)s",
    "until": f"{_MOMENT} < %(until)s",
    "text": "(strpos(lower(s.title), lower(%(text)s)) > 0 OR strpos(lower(s.uri), lower(%(text)s)) > 0)",
    "path": """EXISTS (
        SELECT FROM artifacts a JOIN artifact_touches t USING (workspace_id, artifact_id)
        JOIN memories m USING (workspace_id, memory_id)
        WHERE a.workspace_id = %(workspace_id)s AND m.source_id = s.source_id AND m.valid_until IS NULL
            AND EXISTS (SELECT FROM unnest(%(path)s::text[]) AS given
                WHERE a.path = given OR right(a.path, length(given) + 1) = '/' || given)
    )""",
    "before": f"({_MOMENT}, s.source_id) < (%(moment)s, %(before)s)",
}
_PAGE = f"{_SESSIONS} {{conditions}} ORDER BY {_MOMENT} DESC, s.source_id DESC LIMIT %(limit)s"
_MESSAGES = f"""
SELECT m.memory_id, m.ordinal, x.role, coalesce(x.spoken, m.body) AS text, m.occurred_at AS at, x.tools,
    coalesce({SUSPECT}, false) AS suspect, m.quality, m.tags
FROM memories m JOIN messages x USING (workspace_id, memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.source_id = %(source_id)s AND m.kind = 'message' AND m.valid_until IS NULL
"""  # noqa: S608 - constants
_LATEST = f"""
{_MESSAGES} AND (%(before)s::int IS NULL OR m.ordinal < %(before)s) ORDER BY m.ordinal DESC LIMIT %(limit)s
"""
FROM = f"{_MESSAGES} AND m.ordinal >= %(start)s ORDER BY m.ordinal LIMIT %(limit)s"
_TOUCHED = """
SELECT a.artifact_id, a.path, a.symbol, array_agg(DISTINCT t.action) AS actions,
    array_agg(DISTINCT m.ordinal ORDER BY m.ordinal) AS messages
FROM artifact_touches t
JOIN artifacts a USING (workspace_id, artifact_id) JOIN memories m USING (workspace_id, memory_id)
WHERE t.workspace_id = %(workspace_id)s AND m.source_id = %(source_id)s AND m.valid_until IS NULL
GROUP BY a.artifact_id, a.path, a.symbol ORDER BY min(m.ordinal), a.path, a.symbol
"""
_LIVE = """
SELECT memory_id FROM memories
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s AND kind = 'message' AND valid_until IS NULL
"""
LEASE = Lease(
    take="""
UPDATE sessions SET maker = %(maker)s, made_until = statement_timestamp() + make_interval(secs => %(seconds)s)
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s
    AND (maker IS NULL OR maker = %(maker)s OR made_until < statement_timestamp())
""",
    end="""
UPDATE sessions SET maker = NULL, made_until = NULL
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s AND maker = %(maker)s
""",
)
"""Lets one maker alone make cues of a session."""
_EXTRACTED = """
SELECT coalesce(extracted, '') FROM sessions WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s
"""
_NOTE_EXTRACTED = """
UPDATE sessions SET extracted = %(digest)s WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s
"""
DELETE = """
UPDATE sessions SET deleted_at = now() WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s
"""


@frozen
class KnownSession:
    """A session that was taken in before, as far as it is compared."""

    source_id: UUID
    title: str
    path: str
    deleted: bool


class StoredSession(Struct, frozen=True, kw_only=True, rename={"session_id": "id"}):
    """A stored session."""

    source_id: UUID
    session_id: str
    title: str
    format: str
    path: str
    """The file that it was read from; "" for one that came over HTTP."""
    started_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime
    turns: int
    """Number of its live turns."""
    user: str = ""
    """The user whom it belongs to; "" for nobody."""


class StoredMessage(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A stored turn."""

    memory_id: UUID
    ordinal: int
    role: str
    text: str
    """The spoken text; "" for a turn that only used tools."""
    at: datetime | None
    tools: tuple[ToolUse, ...]
    suspect: bool
    """True if a finding of the injection scan keeps it out of histories, until a person releases it."""
    quality: int
    tags: tuple[str, ...]


class TouchedArtifact(Struct, frozen=True, kw_only=True, rename={"artifact_id": "id"}):
    """A file, or a function or section in it, that a session created, changed or deleted."""

    artifact_id: UUID
    path: str
    symbol: str
    """The function or section; "" for the file as a whole."""
    actions: tuple[str, ...]
    messages: tuple[int, ...]
    """The ordinals of the turns that did it."""


async def known_session(session: Session, session_id: str) -> KnownSession | None:
    """Returns a session as it is stored; None if it is not known."""
    return await session.row_as(KnownSession, _KNOWN, {"session_id": session_id})


async def known_turns(session: Session, known: KnownSession | None, *, revive: bool) -> list[KnownTurn]:
    """Returns the stored turns of a session, with those that were replaced or taken away.

    With `revive` those of a session that a person deleted may come back; those that were deleted alone, or forgotten,
    may not.
    """
    if known is None:
        return []
    asked = {"source_id": known.source_id, "revive": revive and known.deleted}
    return await session.rows_as(KnownTurn, _TURNS, asked)


async def turn_texts(session: Session, ids: Sequence[UUID]) -> dict[UUID, TurnText]:
    """Returns what these live turns say and did."""
    rows = await session.rows(_TEXTS, {"ids": list(ids)}) if ids else []
    return {row.memory_id: TurnText(row.role, row.text, row.tools) for row in rows}


async def owner(session: Session, session_id: str) -> str:
    """Returns the user whom a session belongs to; "" for nobody's, and for one that is not known."""
    return await session.value(_OWNER, {"session_id": session_id}) or ""


async def lock(session: Session, source_id: UUID) -> None:
    """Locks a session until the end of the transaction: two ingestions of it wait for each other."""
    await session.execute(_LOCK, {"source_id": source_id})


async def log_hashes(session: Session, paths: Sequence[str]) -> dict[str, bytes]:
    """Returns the hash of each of these files at the time when its sessions were read."""
    return {row.path: bytes(row.log_hash) for row in await session.rows(_HASHES, {"paths": list(paths)})}


async def note_read(session: Session, path: str, digest: bytes) -> None:
    """Notes the hash of a file all of whose sessions are stored."""
    await session.execute(_NOTE_READ, {"path": path, "digest": digest})


async def save(session: Session, source_id: UUID, values: Mapping[str, Any]) -> None:
    """Stores what a session is, apart from its title and its turns."""
    await session.execute(_SAVE, {"source_id": source_id, **values})


async def save_turns(session: Session, turns: Mapping[UUID, PreparedTurn]) -> None:
    """Stores roles, tools and artifacts of turns, by the ids of their memories."""
    rows = [
        {
            "memory_id": memory_id,
            "role": turn.role,
            "spoken": turn.spoken,
            "tools": [structs.asdict(tool) for tool in turn.tools],
            "message_id": turn.message_id,
            "digest": as_bytea(turn.digest),
        }
        for memory_id, turn in turns.items()
    ]
    await session.execute(_SAVE_MESSAGES, {"rows": as_json(rows)})
    await session.execute(_FORGET_TOUCHES, {"ids": list(turns)})
    await _save_touches(session, [(memory_id, touch) for memory_id, turn in turns.items() for touch in turn.touches])


async def _save_touches(session: Session, given: Sequence[tuple[UUID, Touch]]) -> None:
    """Stores artifacts in the order of their names, so that no two writers deadlock, and the links to their turns."""
    if not given:
        return
    known = await _known_names(session, {touch.path for _, touch in given})
    touches = [
        {**touch._asdict(), "path": known.get(touch.path, touch.path), "memory_id": memory_id}
        for memory_id, touch in given
    ]
    names = sorted({(touch["path"], touch["symbol"]) for touch in touches})
    artifacts = [{"artifact_id": new_id(), "path": path, "symbol": symbol} for path, symbol in names]
    await session.execute(_SAVE_ARTIFACTS, {"rows": as_json(artifacts)})
    await session.execute(_SAVE_TOUCHES, {"rows": as_json(touches)})


async def _known_names(session: Session, paths: Collection[str]) -> Mapping[str, str]:
    """Returns the relative names of known artifacts that these absolute paths end with, the longest of each."""
    ends = {path: list(endings(path)) for path in paths if path.startswith("/")}
    wanted = sorted({end for found in ends.values() for end in found})
    known = set(await session.column(_KNOWN_PATHS, {"paths": wanted})) if wanted else set()
    return {path: end for path, found in ends.items() if (end := next(filter(known.__contains__, found), ""))}


async def names_of(session: Session, path: str) -> list[str]:
    """Returns the names that a file has, had or got: those that renames lead to from the given one, or from its end."""
    return also_named(path, await session.tuples(_RENAMES))


async def get(session: Session, session_id: str) -> StoredSession | None:
    """Returns a session that has a live turn; None if there is none of this id."""
    return await session.row_as(StoredSession, GET, {"session_id": session_id})


async def page(session: Session, given: Mapping[str, Any], *, limit: int) -> list[StoredSession]:
    """Returns the sessions that meet the given conditions (_CONDITIONS), the latest first."""
    met = [condition for name, condition in _CONDITIONS.items() if given.get(name) is not None]
    statement = _PAGE.format(conditions="".join(f" AND {condition}" for condition in met))
    return await session.rows_as(StoredSession, statement, {**given, "limit": limit})


async def messages(
    session: Session, source_id: UUID, *, latest: int | None = None, before: int | None = None
) -> list[StoredMessage]:
    """Returns the live turns of a session in their order.

    With `latest` so many at its end, or before the place `before`.
    """
    values = {"source_id": source_id, "limit": latest, "before": before}
    return (await session.rows_as(StoredMessage, _LATEST, values))[::-1]


async def messages_from(session: Session, source_id: UUID, start: int, *, limit: int) -> list[StoredMessage]:
    """Returns at most `limit` live turns of a session in their order, from the place `start` on."""
    values = {"source_id": source_id, "start": start, "limit": limit}
    return await session.rows_as(StoredMessage, FROM, values)


async def touched_artifacts(session: Session, source_id: UUID) -> list[TouchedArtifact]:
    """Returns what a session created, changed or deleted, in the order in which it did."""
    return await session.rows_as(TouchedArtifact, _TOUCHED, {"source_id": source_id})


async def live_turns(session: Session, source_id: UUID) -> list[UUID]:
    """Returns the live turns of a session."""
    return await session.column(_LIVE, {"source_id": source_id})


async def note_deleted(session: Session, source_id: UUID) -> None:
    """Notes that a person deleted a session."""
    await session.execute(DELETE, {"source_id": source_id})


async def forget_untouched(session: Session) -> None:
    """Removes the artifacts that no stored turn touched, after turns were destroyed."""
    await session.execute(_FORGET_UNTOUCHED)


async def blank_of_all(session: Session, turns: Sequence[tuple[int, UUID]]) -> None:
    """Removes what destroyed turns said and did, where their empty row stays; they are given by workspace and id."""
    values = {"workspaces": [item[0] for item in turns], "ids": [item[1] for item in turns]}
    await session.execute(_BLANK, values)
    await session.execute(_FORGET_TOUCHES_OF_ALL, values)


async def paths_of(session: Session, source_ids: Sequence[UUID]) -> list[str]:
    """Returns the files that these sessions were read from."""
    return await session.column(_PATHS, {"ids": list(source_ids)})


async def ask_for_cues(session: Session, session_id: str) -> None:
    """Asks a worker to make cues of a session, once for all who ask before it begins."""
    lock = extraction_lock(session.workspace_id, session_id)
    await session.enqueue(EXTRACT, lock=lock, workspace_id=session.workspace_id, session_id=session_id)


def extraction_lock(workspace_id: int, session_id: str) -> str:
    """Returns the lock of a job that makes cues of a session; a job that waits for room has another one."""
    return f"{EXTRACT}:{workspace_id}:{session_id}"


async def extracted_digest(session: Session, source_id: UUID) -> bytes:
    """Returns the digest that a session had when cues were last made of it; empty if they never were."""
    return bytes(await session.value(_EXTRACTED, {"source_id": source_id}) or b"")


async def note_extracted(session: Session, source_id: UUID, digest: bytes) -> None:
    """Notes the digest of a session of which cues were made."""
    await session.execute(_NOTE_EXTRACTED, {"source_id": source_id, "digest": digest})
