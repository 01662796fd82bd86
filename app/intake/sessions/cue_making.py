"""The SQL of making cues of a session: who makes them, and the digest that it had when they were last made."""

from uuid import UUID

from app.foundation.db.leases import Lease
from app.foundation.db.session import EXTRACT, Session

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
