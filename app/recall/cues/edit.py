"""The verbs that edit cues, merge them, and take them away and back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.errors import InvalidInput, check
from app.foundation.db.session import EMBED_CUES, Session
from app.foundation.safety.secrets import masked_values
from app.recall.cues import evidence as evidence_store
from app.recall.cues import store
from app.recall.cues.cue import ACTIVE, RETIRED, Cue, Evidence, NewCue
from app.recall.cues.keep import EDITABLE, CueVectors, cue_in, embed_texts, given_of, memory_of, objections
from app.recall.cues.store import CueRow
from app.storage.index.indexing import index_memories, reindex_memories
from app.storage.index.vectors import embedded_text
from app.storage.links import store as links
from app.storage.memories import changes
from app.storage.memories import store as memories
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import GONE, NewMemory, content_hash
from app.storage.memories.remember import Door
from app.storage.tenants.workspace import Workspace

EMBEDDED = frozenset({"trigger", "lesson"})
SCANNED = frozenset({"trigger", "lesson", "quote", "details"})


async def edit_cue(door: Door, cue_id: UUID, changed: Mapping[str, Any], *, by_person: bool = True) -> Cue:
    """Gives a cue new values of some fields; it keeps its id, its evidence and its counts.

    What a person changed is noted, so that no job changes it again.

    Raises:
        InvalidInput: a value is not valid, or the cue would say something that another memory says already.
        NotFound: the workspace has no such cue.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        seen = _with_changes(door, await cue_in(session, door.workspace, cue_id), changed)
    vectors = await embed_texts(door, [seen]) if EMBEDDED & changed.keys() else CueVectors("", [None])
    async with door.database.session(door.workspace) as session:
        # Writers of a workspace's cues wait for each other from here on.
        revision = await store.next_revision(session)
        before = await cue_in(session, door.workspace, cue_id)
        new = _with_changes(door, before, changed)
        differ = {name for name in EDITABLE if getattr(new, name) != getattr(before, name)}
        own = vectors.rows[0] if all(getattr(new, name) == getattr(seen, name) for name in EMBEDDED) else None
        row = CueRow(memory_id=cue_id, cue=new, model=vectors.model, vectors=own, now=datetime.now(UTC))
        edited = sorted(differ & changed.keys()) if by_person else []
        await store.edit(session, row, revision, edited=edited, same=not differ & EMBEDDED)
        if own is None and differ & EMBEDDED:
            await session.enqueue(EMBED_CUES)
        if differ & SCANNED:
            await _reword(session, door, cue_id, new)
        return await cue_in(session, door.workspace, cue_id)


def _with_changes(door: Door, before: Cue, changed: Mapping[str, Any]) -> NewCue:
    new = given_of(before, changed)
    new = replace(new, details={}) if new.kind != before.kind and "details" not in changed else new
    check(objections(new))
    return masked_values(new) if door.mask else new


async def _reword(session: Session, door: Door, cue_id: UUID, cue: NewCue) -> None:
    memory = await memories.get(session, cue_id)
    assert memory is not None, "a cue is deleted with its memory"  # noqa: S101
    new = NewMemory(kind="cue", title=cue.trigger, body=cue.lesson)
    passed = screen_memory(memory_of(cue), mask=door.mask)
    if passed.objection is not None:
        raise InvalidInput("lesson", passed.objection.message)
    digest = content_hash(new, memory.language)
    tokens = door.counter.count(embedded_text(new.title, new.body))
    reworded = replace(memory, title=new.title, body=new.body, tokens=tokens)
    if not await changes.reword(session, reworded, content_hash=digest, findings=passed.findings):
        raise InvalidInput("lesson", "another cue has this trigger and lesson already; merge the two")
    if memory.valid_until is None:
        await reindex_memories(session, [cue_id])
        await links.forget_found(session, [cue_id])


async def retire_in(session: Session, ids: Sequence[UUID], *, reason: str = GONE) -> None:
    """Takes cues away, in a session; without a reason, nothing supports them any longer."""
    if ids:
        await store.set_state(session, ids, RETIRED, await store.next_revision(session))
        await memories.retire(session, ids, reason=reason)


async def restore_in(session: Session, workspace: Workspace, cue_id: UUID, *, release: bool = False) -> Cue:
    """Makes a cue active again, as `Cues.restore` does, in a session."""
    before = await cue_in(session, workspace, cue_id)
    memory = await memories.get(session, cue_id)
    if memory is not None and (memory.valid_until is not None or before.suspect):
        live, caught = await changes.restore(session, [cue_id], release=release)
        if cue_id not in (*live, *caught):
            raise InvalidInput("", "another cue with this trigger and lesson is active; merge the two")
        await index_memories(session, live)
    await store.set_state(session, [cue_id], ACTIVE, await store.next_revision(session))
    return await cue_in(session, workspace, cue_id)


async def drop_stale(session: Session, source_id: UUID, kept: Sequence[tuple[UUID, Evidence]]) -> list[UUID]:
    """Takes the evidence of a session from extracted cues, but for these cues and turns.

    Cues that no turn supports any longer are retired; returns them.
    """
    unsupported = await evidence_store.drop_stale(session, source_id, kept)
    await retire_in(session, unsupported)
    return unsupported
