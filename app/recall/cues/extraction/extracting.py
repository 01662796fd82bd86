"""The verbs that make cues of stored sessions, and of decision records (ADR)."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

import numpy as np
import structlog
from msgspec import structs

from app.errors import DatabaseUnavailable, EmbeddingUnavailable, InvalidInput, LLMUnavailable
from app.foundation.db.database import Database, hold_lease
from app.foundation.db.session import Session
from app.foundation.models.protocols import LESSONS, Chat, adapted_vectors
from app.intake.reports import store as reports
from app.intake.sessions import store as sessions
from app.intake.sessions.store import StoredMessage
from app.intake.sessions.transcript import Turn
from app.recall.cues import store
from app.recall.cues.cue import ACTIVE, EXTRACTED, PROPOSED, TAKEN_AWAY, Cue, Evidence, NewCue
from app.recall.cues.edit import drop_stale
from app.recall.cues.extraction.extract import extract
from app.recall.cues.extraction.llm import SCHEMA, prompt_of, proposals, unite
from app.recall.cues.extraction.records import FOLLOWS, replace_others, text_of, with_file
from app.recall.cues.extraction.sections import ACCEPTED, SUPERSEDED, record_in
from app.recall.cues.keep import MOST_AT_ONCE, given_of
from app.recall.cues.review import store as tending
from app.recall.cues.review.review import Reviews
from app.recall.cues.review.rules import CANDIDATE, Proposal
from app.recall.cues.service import Cues
from app.recall.cues.signs import SpokenTurn, spoken_turns, texts_to_read, with_odds
from app.storage.tenants.workspace import Workspace

RULES = 14
"""Version of the rules. It goes up when they find other cues, so that a session is read once more when it changes."""
ATTEMPTS = 3
"""Attempts to make the cues of a session that others change at the same moment."""

PAUSE_SECONDS = 0.2
MOST_ODDS = 20_000
"""Sentences whose odds are kept in memory: 700 bytes each."""

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


async def _finish(
    session: Session, session_id: str, reading: _SessionTurns, supported: Sequence[tuple[UUID, Evidence]], noted: bytes
) -> bool:
    """Retires the cues that no turn supports; returns False if the session has changed meanwhile.

    `noted` is the digest by which the session counts as read; empty if it is to be read again.
    """
    await sessions.lock(session, reading.source_id)
    now = await _read(session, session_id)
    if now is None or now.digest != reading.digest:
        await sessions.note_extracted(session, reading.source_id, b"")
        return False
    retired = await drop_stale(session, reading.source_id, supported)
    await tending.withdraw(session, CANDIDATE, retired)
    await sessions.note_extracted(session, reading.source_id, noted)
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


def _of_turn(cue: NewCue, session_id: str, source_id: UUID, turns: Mapping[int | None, StoredMessage]) -> NewCue:
    (proof,) = cue.evidence
    turn = turns[proof.ordinal]
    proof = structs.replace(proof, source_id=source_id, memory_id=turn.memory_id, session=session_id, at=turn.at)
    return replace(cue, evidence=(proof,), valid_from=turn.at, tags=turn.tags)


def _turn(item: StoredMessage) -> Turn:
    return Turn(ordinal=item.ordinal, role=item.role, text=item.text, at=item.at, tools=item.tools)


def _candidate(cue: Cue) -> Proposal:
    proof = cue.evidence[0]
    turn = f"turn {proof.ordinal} of session {proof.session}"
    reason = f"{turn} may hold a lasting lesson ({cue.confidence:.0%}): “{cue.lesson}”"
    return Proposal(change=CANDIDATE, cue_ids=(), target_id=cue.cue_id, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Makes cues of stored sessions and of decision records, and keeps them in step with these."""

    database: Database
    cues: Cues
    reviews: Reviews
    chat: Chat | None = None
    """Proposes more cues than the rules find."""
    odds: dict[str, float] = field(default_factory=dict)
    """Odds of the sentences that the embedding model read lately, so that a session that grows is not read anew."""

    async def extract_session(self, workspace: Workspace, session_id: str) -> list[UUID]:
        """Makes cues of a stored session, if it has changed since; cues that no turn supports any longer are retired.

        Returns the cues of its turns; one at two turns stands twice.

        Who makes cues of a session makes them alone; others wait for it, and find them made. The rules find cues, and a
        language model, if there is one, proposes more; those whose quote is in no turn are dropped.

        Raises:
            DatabaseUnavailable: the session is read again by the next job.
        """
        async with self.database.session(workspace, transaction=False) as session:
            known = await sessions.known_session(session, session_id)
        while known is not None:
            work = {"source_id": known.source_id}
            async with hold_lease(self.database, workspace, sessions.LEASE, work) as is_ours:
                if is_ours:
                    return await self._extract(workspace, session_id)
            await asyncio.sleep(PAUSE_SECONDS)
        return []

    async def _extract(self, workspace: Workspace, session_id: str) -> list[UUID]:
        for _ in range(ATTEMPTS):
            async with self.database.session(workspace, transaction=False) as session:
                reading = await _read(session, session_id)
            if reading is None:
                return []
            if reading.digest == reading.read_last:
                kept = [cue for cue in reading.cues if cue.state not in TAKEN_AWAY]
                return [cue.cue_id for cue in kept for _ in cue.proofs_in(reading.source_id)]
            spoken, is_read = await self._read_spoken(reading.messages)
            supported = await self._store_cues(workspace, session_id, reading, spoken)
            async with self.database.session(workspace) as session:
                noted = reading.digest if is_read else b""
                is_finished = await _finish(session, session_id, reading, supported, noted)
            if is_finished:
                return [cue_id for cue_id, _ in supported]
        raise DatabaseUnavailable("others change the session while cues are made of it; try again")

    async def _store_cues(
        self, workspace: Workspace, session_id: str, reading: _SessionTurns, spoken: Sequence[SpokenTurn]
    ) -> list[tuple[UUID, Evidence]]:
        turns: dict[int | None, StoredMessage] = {message.ordinal: message for message in reading.messages}
        found = await self._cues_in(reading.messages, spoken)
        cues = _as_known([_of_turn(cue, session_id, reading.source_id, turns) for cue in found], reading)
        supported: list[tuple[UUID, Evidence]] = []
        for start in range(0, len(cues), MOST_AT_ONCE):
            batch = cues[start : start + MOST_AT_ONCE]
            kept = await self.cues.add(workspace, batch)
            supported += [(key, cue.evidence[0]) for key, cue in zip(kept.ids, batch, strict=True) if key]
        await self._propose(workspace, [cue_id for cue_id, _ in supported])
        return supported

    async def _propose(self, workspace: Workspace, ids: Sequence[UUID]) -> None:
        async with self.database.session(workspace, transaction=False) as session:
            found = await store.read(session, ids)
        await self.reviews.propose(workspace, [_candidate(cue) for cue in found.values() if cue.state == PROPOSED])

    async def _cues_in(self, messages: Sequence[StoredMessage], spoken: Sequence[SpokenTurn]) -> list[NewCue]:
        found = await asyncio.to_thread(extract, spoken)
        if self.chat is None:
            return found
        turns = list(map(_turn, messages))
        prompt = await asyncio.to_thread(prompt_of, turns, spoken)
        if not prompt:
            return found
        try:
            return unite(found, proposals(await self.chat.complete(prompt, SCHEMA), turns))
        except LLMUnavailable as error:
            logger.warning("the rules alone find cues", reason=str(error))
            return found

    async def _read_spoken(self, messages: Sequence[StoredMessage]) -> tuple[Sequence[SpokenTurn], bool]:
        """Returns what is said in a session as the embedding model reads it, and False if that is away now.

        Without a model that reads sentences it is as it is.
        """
        spoken = await asyncio.to_thread(spoken_turns, list(map(_turn, messages)))
        texts = await asyncio.to_thread(texts_to_read, spoken)
        # Another session's reading may clear the odds while this one waits for the model.
        known = {text: self.odds[text] for text in texts if text in self.odds}
        unread = [text for text in dict.fromkeys(texts) if text not in known]
        try:
            found = await adapted_vectors(self.cues.provider, unread, LESSONS) if unread else np.zeros((0, 1))
        except EmbeddingUnavailable as error:
            logger.warning("the signs of speech alone find cues", reason=str(error))
            return spoken, False
        if found is None:
            return spoken, True
        known |= zip(unread, found[:, 0].tolist(), strict=True)
        if len(self.odds) > MOST_ODDS:
            self.odds.clear()
        self.odds.update(known)
        return with_odds(spoken, [known[text] for text in texts]), True

    async def extract_decision(self, workspace: Workspace, source_id: UUID) -> None:
        """Makes the cues of a file those of its present content: one for a decision that it records.

        A changed record changes its cue, which keeps its id. The cue of a record that was deleted, deprecated or never
        accepted is retired; that of a superseded one names the cue of the record that holds in its place.

        Raises:
            DatabaseUnavailable: the file is read again by the next job.
        """
        async with self.database.session(workspace, transaction=False) as session:
            chunks = await reports.document(session, source_id)
            known = [cue for cue in await store.of_source(session, source_id) if cue.origin == EXTRACTED]
        record = await asyncio.to_thread(record_in, text_of(chunks), chunks[0].path) if chunks else None
        proofs: list[tuple[UUID, Evidence]] = []
        stored: UUID | None = None
        if record is not None and record.state in {ACCEPTED, SUPERSEDED}:
            cue = with_file(record.cue, chunks, source_id)
            same = [item for item in known if (item.trigger, item.lesson) == (cue.trigger, cue.lesson) or item.edited]
            proofs = [(item.cue_id, proof) for item in same if item.state != ACTIVE for proof in item.evidence]
            if all(item.state == ACTIVE for item in same):
                stored = await self._store_decision(workspace, cue, [item for item in known if item.state == ACTIVE])
                proofs = [] if stored is None else [(stored, cue.evidence[0])]
        async with self.database.session(workspace) as session:
            await drop_stale(session, source_id, proofs)
            if record and stored and not await replace_others(session, record, stored, chunks[0].uri):
                await drop_stale(session, source_id, [])

    async def _store_decision(self, workspace: Workspace, cue: NewCue, known: Sequence[Cue]) -> UUID | None:
        """Stores the cue, in place of the known one of its file, of which what a person changed stays.

        Returns None if it cannot be stored.
        """
        if known:
            cue = replace(cue, **{name: getattr(known[0], name) for name in FOLLOWS if name in known[0].edited})
        changed = {name: getattr(cue, name) for name in FOLLOWS}
        if known and any(getattr(known[0], name) != value for name, value in changed.items()):
            # If another cue says this already, that one gets the evidence, and the known one is retired.
            with suppress(InvalidInput):
                await self.cues.edit(workspace, known[0].cue_id, changed, by_person=False)
        return (await self.cues.add(workspace, [cue])).ids[0]
