"""Takes cues away and back, in a session."""

from collections.abc import Sequence
from uuid import UUID

from app.errors import InvalidInput
from app.foundation.db.session import Session
from app.recall.cues import evidence as evidence_store
from app.recall.cues import store
from app.recall.cues.cue import ACTIVE, RETIRED, Evidence
from app.recall.cues.keep import cue_in
from app.storage.index.indexing import index_memories
from app.storage.links import store as links
from app.storage.links.relations import SUPERSEDES, Link
from app.storage.memories import changes
from app.storage.memories import store as memories
from app.storage.memories.memory import GONE
from app.storage.tenants.workspace import Workspace


async def retire_in(session: Session, ids: Sequence[UUID], *, reason: str = GONE) -> None:
    """Takes cues away, in a session; without a reason, nothing supports them any longer."""
    if ids:
        await store.set_state(session, ids, RETIRED)
        await memories.retire(session, ids, reason=reason)


async def restore_in(
    session: Session, workspace: Workspace, cue_id: UUID, *, release: bool = False, state: str = ACTIVE
) -> None:
    """Makes a cue active or proposed again, as `Cues.set_state` does, in a session."""
    before = await cue_in(session, workspace, cue_id)
    memory = await memories.get(session, cue_id)
    if memory is not None and (memory.valid_until is not None or before.suspect):
        live, caught = await changes.restore(session, [cue_id], release=release)
        if cue_id not in (*live, *caught):
            raise InvalidInput("", "another cue with this trigger and lesson is active; merge the two")
        await index_memories(session, live)
    if before.superseded_by is not None:
        await links.remove(session, [Link(before.superseded_by, cue_id, SUPERSEDES)])
    await store.set_state(session, [cue_id], state)


async def drop_stale(session: Session, source_id: UUID, kept: Sequence[tuple[UUID, Evidence]]) -> list[UUID]:
    """Takes the evidence of a session from extracted cues, but for these cues and turns.

    Cues that no turn supports any longer are retired; returns them.
    """
    unsupported = await evidence_store.drop_stale(session, source_id, kept)
    await retire_in(session, unsupported)
    return unsupported
