"""The verb that makes cues of a stored session."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import structlog
from msgspec import structs

from app.errors import DatabaseUnavailable, LLMUnavailable
from app.foundation.db.database import hold_lease
from app.foundation.db.session import Session
from app.foundation.models.chat import Chat
from app.intake.sessions import store as sessions
from app.intake.sessions.store import StoredMessage
from app.intake.sessions.transcript import Turn
from app.recall.cues import store
from app.recall.cues.cue import PROPOSED, TAKEN_AWAY, Cue, Evidence, NewCue
from app.recall.cues.edit import drop_stale
from app.recall.cues.extraction.extract import extract
from app.recall.cues.extraction.llm import SCHEMA, prompt_of, proposals, unite
from app.recall.cues.keep import MOST_AT_ONCE, add_cues, given_of
from app.recall.cues.review import store as tending
from app.recall.cues.review.review import propose
from app.recall.cues.review.rules import CANDIDATE, Proposal
from app.storage.memories.remember import Door

RULES = 13
"""Version of the rules. It goes up when they find other cues, so that sessions are read once more."""
ATTEMPTS = 3
"""Attempts to make the cues of a session that others change at the same moment."""

PAUSE_SECONDS = 0.2

logger = structlog.get_logger()


class _SessionTurns(NamedTuple):
    """A session as it is stored."""

    source_id: UUID
    messages: Sequence[StoredMessage]
    digest: bytes
    read_last: bytes
    """The digest that it had when it was read last; empty if it never was."""
    cues: Sequence[Cue]
    """The cues with evidence in it, with those that a person took away."""


async def extract_session(door: Door, session_id: str, chat: Chat | None = None) -> list[UUID]:
    """Makes cues of a stored session, if it has changed since; cues that no turn supports any longer are retired.

    Returns the cues of its turns; one at two turns stands twice.

    Who makes cues of a session makes them alone; others wait for it, and find them made. The rules find cues, and a
    language model, if there is one, proposes more; those whose quote is in no turn are dropped.

    Raises:
        DatabaseUnavailable: the session is read again by the next job.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id)
    while known is not None:
        work = {"source_id": known.source_id}
        async with hold_lease(door.database, door.workspace, sessions.LEASE, work) as is_ours:
            if is_ours:
                return await _extract(door, session_id, chat)
        await asyncio.sleep(PAUSE_SECONDS)
    return []


async def _extract(door: Door, session_id: str, chat: Chat | None) -> list[UUID]:
    for _ in range(ATTEMPTS):
        async with door.database.session(door.workspace, transaction=False) as session:
            reading = await _read(session, session_id)
        if reading is None:
            return []
        if reading.digest == reading.read_last:
            kept = [cue for cue in reading.cues if cue.state not in TAKEN_AWAY]
            return [cue.cue_id for cue in kept for _ in cue.proofs_in(reading.source_id)]
        supported = await _store_cues(door, session_id, reading, chat)
        async with door.database.session(door.workspace) as session:
            is_finished = await _finish(session, session_id, reading, supported)
        if is_finished:
            return [cue_id for cue_id, _ in supported]
    raise DatabaseUnavailable("others change the session while cues are made of it; try again")


async def _store_cues(
    door: Door, session_id: str, reading: _SessionTurns, chat: Chat | None
) -> list[tuple[UUID, Evidence]]:
    turns: dict[int | None, StoredMessage] = {message.ordinal: message for message in reading.messages}
    found = await _cues_in(reading.messages, chat)
    cues = _as_known([_of_turn(cue, session_id, reading.source_id, turns) for cue in found], reading)
    supported: list[tuple[UUID, Evidence]] = []
    for start in range(0, len(cues), MOST_AT_ONCE):
        batch = cues[start : start + MOST_AT_ONCE]
        kept = await add_cues(door, batch)
        supported += [(key, cue.evidence[0]) for key, cue in zip(kept.ids, batch, strict=True) if key]
    await _propose(door, [cue_id for cue_id, _ in supported])
    return supported


async def _propose(door: Door, ids: Sequence[UUID]) -> None:
    async with door.database.session(door.workspace, transaction=False) as session:
        found = await store.read(session, ids)
    pending = [cue for cue in found.values() if cue.state == PROPOSED]
    reasons = [
        f"turn {cue.evidence[0].ordinal} of session {cue.evidence[0].session} may hold a lasting lesson"
        f" ({cue.confidence:.0%}): “{cue.lesson}”"
        for cue in pending
    ]
    new = zip(pending, reasons, strict=True)
    await propose(door, [Proposal(change=CANDIDATE, cue_ids=(), target_id=cue.cue_id, reason=why) for cue, why in new])


async def _finish(
    session: Session, session_id: str, reading: _SessionTurns, supported: Sequence[tuple[UUID, Evidence]]
) -> bool:
    """Retires the cues that no turn supports; returns False if the session has changed meanwhile."""
    await sessions.lock(session, reading.source_id)
    now = await _read(session, session_id)
    if now is None or now.digest != reading.digest:
        await sessions.note_extracted(session, reading.source_id, b"")
        return False
    retired = await drop_stale(session, reading.source_id, supported)
    await tending.withdraw(session, CANDIDATE, retired)
    await sessions.note_extracted(session, reading.source_id, reading.digest)
    return True


async def _read(session: Session, session_id: str) -> _SessionTurns | None:
    known = await sessions.known_session(session, session_id)
    if known is None:
        return None
    messages = [] if known.deleted else await sessions.messages(session, known.source_id)
    return _SessionTurns(
        source_id=known.source_id,
        messages=messages,
        digest=_digest(messages),
        read_last=await sessions.extracted_digest(session, known.source_id),
        cues=await store.of_source(session, known.source_id),
    )


def _as_known(cues: Sequence[NewCue], reading: _SessionTurns) -> list[NewCue]:
    """Returns cues as people edited them or merged them into others, without those that they took away."""
    by_text, by_place = defaultdict[object, list[Cue]](list), defaultdict[object, list[Cue]](list)
    for known in reading.cues:
        by_text[known.trigger, known.lesson].append(known)
        for proof in known.proofs_in(reading.source_id):
            by_place[proof.memory_id, proof.quote].append(known)
    found: list[NewCue] = []
    for cue in cues:
        same, here = by_text[cue.trigger, cue.lesson], by_place[cue.evidence[0].memory_id, cue.quote]
        if any(known.state not in TAKEN_AWAY for known in same) or not (same or here):
            found.append(cue)
        else:
            reworded = [given_of(known) for known in here if known.state not in TAKEN_AWAY]
            found += [replace(known, evidence=cue.evidence, origin=cue.origin) for known in reworded]
    return found


def _digest(messages: Sequence[StoredMessage]) -> bytes:
    said = "".join(f"{message.ordinal}\0{message.role}\0{message.text}\0" for message in messages)
    return hashlib.blake2b(f"{RULES}\0{said}".encode("utf-8", "replace"), digest_size=16).digest()


async def _cues_in(messages: Sequence[StoredMessage], chat: Chat | None) -> list[NewCue]:
    turns = [
        Turn(ordinal=item.ordinal, role=item.role, text=item.text, at=item.at, tools=item.tools) for item in messages
    ]
    found = await asyncio.to_thread(extract, turns)
    prompt = "" if chat is None else await asyncio.to_thread(prompt_of, turns)
    if chat is None or not prompt:
        return found
    try:
        return unite(found, proposals(await chat.complete(prompt, SCHEMA), turns))
    except LLMUnavailable as error:
        logger.warning("the rules alone find cues", reason=str(error))
        return found


def _of_turn(cue: NewCue, session_id: str, source_id: UUID, turns: Mapping[int | None, StoredMessage]) -> NewCue:
    (proof,) = cue.evidence
    turn = turns[proof.ordinal]
    proof = structs.replace(proof, source_id=source_id, memory_id=turn.memory_id, session=session_id, at=turn.at)
    return replace(cue, evidence=(proof,), valid_from=turn.at, tags=turn.tags)
