"""Makes a cue of the decision that a record (ADR) states, and keeps it in step with its file."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from uuid import UUID

from app.errors import InvalidInput
from app.foundation.db.session import Row, Session
from app.foundation.text.prose import plain
from app.intake.reports import store as reports
from app.intake.reports.record import number_of
from app.recall.cues import store
from app.recall.cues.conflicts import supersede
from app.recall.cues.cue import ACTIVE, EXTRACTED, Cue, Evidence, NewCue
from app.recall.cues.edit import drop_stale, edit_cue
from app.recall.cues.extraction.sections import ACCEPTED, SUPERSEDED, Record, record_in
from app.recall.cues.keep import add_cues
from app.storage.memories.remember import Door

_FOLLOWS = ("lesson", "trigger", "details", "quote", "confidence", "files")
"""The fields that follow the record when it changes; what people set besides them stays."""


async def extract_decision(door: Door, source_id: UUID) -> None:
    """Makes the cues of a file those of its present content: one for a decision that it records.

    A changed record changes its cue, which keeps its id. The cue of a record that was deleted, deprecated or never
    accepted is retired; that of a superseded one names the cue of the record that holds in its place.

    Raises:
        DatabaseUnavailable: the file is read again by the next job.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        chunks = await reports.document(session, source_id)
        known = [cue for cue in await store.of_source(session, source_id) if cue.origin == EXTRACTED]
    record = await asyncio.to_thread(record_in, _text(chunks), chunks[0].path) if chunks else None
    proofs: list[tuple[UUID, Evidence]] = []
    stored: UUID | None = None
    if record is not None and record.state in {ACCEPTED, SUPERSEDED}:
        cue = _of_file(record.cue, chunks, source_id)
        same = [item for item in known if (item.trigger, item.lesson) == (cue.trigger, cue.lesson) or item.edited]
        proofs = [(item.cue_id, proof) for item in same if item.state != ACTIVE for proof in item.evidence]
        if all(item.state == ACTIVE for item in same):
            stored = await _store_cue(door, cue, [item for item in known if item.state == ACTIVE])
            proofs = [] if stored is None else [(stored, cue.evidence[0])]
    async with door.database.session(door.workspace) as session:
        await drop_stale(session, source_id, proofs)
        if record and stored and not await _replace_others(session, record, stored, chunks[0].uri):
            await drop_stale(session, source_id, [])


def _text(chunks: Sequence[Row]) -> str:
    parts: list[str] = []
    above: list[str] = []
    for chunk in chunks:
        heading_path = chunk.metadata.get("trail", [])
        new = (place for place in range(len(heading_path)) if heading_path[: place + 1] != above[: place + 1])
        parts += [f"{'#' * min(place + 1, 6)} {heading_path[place]}" for place in new]
        parts.append(chunk.body)
        above = heading_path
    return "\n\n".join(parts)


def _of_file(cue: NewCue, chunks: Sequence[Row], source_id: UUID) -> NewCue:
    said = plain(cue.quote)
    chunk = next((item for item in chunks if said and said in plain(item.body)), chunks[0])
    proof = Evidence(
        source_id=source_id, memory_id=chunk.memory_id, ordinal=chunk.ordinal, quote=cue.quote, at=chunk.occurred_at
    )
    return replace(cue, evidence=(proof,), valid_from=chunk.occurred_at, files=(chunks[0].path,))


async def _store_cue(door: Door, cue: NewCue, known: Sequence[Cue]) -> UUID | None:
    """Stores the cue, in place of the known one of its file, of which what a person changed stays.

    Returns None if it cannot be stored.
    """
    if known:
        cue = replace(cue, **{name: getattr(known[0], name) for name in _FOLLOWS if name in known[0].edited})
    changed = {name: getattr(cue, name) for name in _FOLLOWS}
    if known and any(getattr(known[0], name) != value for name, value in changed.items()):
        # If another cue says this already, that one gets the evidence, and the known one is retired.
        with suppress(InvalidInput):
            await edit_cue(door, known[0].cue_id, changed, by_person=False)
    return (await add_cues(door, [cue])).ids[0]


async def _replace_others(session: Session, record: Record, cue_id: UUID, uri: str) -> bool:
    """Lets a cue hold in place of those that its record supersedes; returns False if it is superseded itself by a
    record that is not stored, so that it holds no more.
    """
    if record.state != SUPERSEDED and not record.supersedes:
        return True
    others = await store.records_in(session, str(PurePosixPath(uri).parent))
    by_number = {number_of(path): other for path, other in others.items() if other != cue_id}
    moment = datetime.now(UTC)
    older = [by_number[number] for number in record.supersedes if number in by_number]
    if older and record.state != SUPERSEDED:
        await supersede(session, older, cue_id, moment, await store.next_revision(session))
    newer = next((by_number[number] for number in record.superseded_by if number in by_number), None)
    if record.state == SUPERSEDED and newer is not None:
        await supersede(session, [cue_id], newer, moment, await store.next_revision(session))
    return record.state != SUPERSEDED or newer is not None
