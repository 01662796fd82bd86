"""The verb that makes a cue of a stored decision record (ADR)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from uuid import UUID

from app.cues import store
from app.cues.conflicts import supersede
from app.cues.cue import ACTIVE, DECISION, EXTRACTED, IMPORTED, Cue, Evidence, NewCue
from app.cues.edit import drop_stale, edit_cue
from app.cues.extraction import records
from app.cues.extraction.records import Record, number_of, record_in
from app.cues.keep import add_cues
from app.db.session import Row, Session
from app.errors import InvalidInput
from app.intake.reports import store as reports
from app.memories.remember import Door
from app.text.sentences import plain

FOLLOWS = ("lesson", "trigger", "details", "quote", "confidence", "files")
"""The fields that follow the record when it changes; what people set besides them stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The outcome for a file."""

    cue_id: UUID | None = None
    """The cue of its decision; None if it records none that was taken and holds."""
    retired: int = 0
    """Number of cues that no file supports any longer."""


async def extract_decision(door: Door, source_id: UUID) -> Decided:
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
    if record is None or record.standing.state not in {records.ACCEPTED, records.SUPERSEDED}:
        return await _settled(door, source_id, [])
    cue = _new(record, chunks, source_id)
    same = [item for item in known if (item.trigger, item.lesson) == (cue.trigger, cue.lesson) or item.edited]
    declined = [item for item in same if item.state != ACTIVE]
    if declined:
        return await _settled(door, source_id, [(item.cue_id, proof) for item in declined for proof in item.evidence])
    cue_id = await _kept(door, cue, [item for item in known if item.state == ACTIVE])
    if cue_id is None:
        return await _settled(door, source_id, [])
    async with door.database.session(door.workspace) as session:
        retired = len(await drop_stale(session, source_id, [(cue_id, cue.evidence[0])]))
        holds = await _replaced(session, record, cue_id, chunks[0].uri)
    return Decided(cue_id=cue_id, retired=retired) if holds else await _settled(door, source_id, [])


async def _settled(door: Door, source_id: UUID, proofs: Sequence[tuple[UUID, Evidence]]) -> Decided:
    """Retires the cues of a file but for these."""
    async with door.database.session(door.workspace) as session:
        return Decided(retired=len(await drop_stale(session, source_id, proofs)))


def _text(chunks: Sequence[Row]) -> str:
    """Returns the document that these chunks were made from, with its headings."""
    parts: list[str] = []
    above: list[str] = []
    for chunk in chunks:
        heading_path = chunk.metadata.get("trail", [])
        new = (place for place in range(len(heading_path)) if heading_path[: place + 1] != above[: place + 1])
        parts += [f"{'#' * min(place + 1, 6)} {heading_path[place]}" for place in new]
        parts.append(chunk.body)
        above = heading_path
    return "\n\n".join(parts)


def _new(record: Record, chunks: Sequence[Row], source_id: UUID) -> NewCue:
    said = plain(record.quote)
    chunk = next((item for item in chunks if said and said in plain(item.body)), chunks[0])
    details = {
        "subject": record.subject,
        "choice": record.choice,
        "alternatives": list(record.alternatives),
        "reasoning": record.reasoning,
    }
    proof = Evidence(
        source_id=source_id, memory_id=chunk.memory_id, ordinal=chunk.ordinal, quote=record.quote, at=chunk.occurred_at
    )
    return NewCue(
        kind=DECISION,
        trigger=record.subject,
        lesson=record.lesson,
        details={name: value for name, value in details.items() if value},
        confidence=record.confidence,
        quote=record.quote,
        evidence=(proof,),
        trust=IMPORTED,
        valid_from=chunk.occurred_at,
        origin=EXTRACTED,
        files=(chunks[0].path,),
    )


async def _kept(door: Door, cue: NewCue, known: Sequence[Cue]) -> UUID | None:
    """Stores the cue, in place of the known one of its file, of which what a person changed stays.

    Returns None if it cannot be stored.
    """
    if known:
        cue = replace(cue, **{name: getattr(known[0], name) for name in FOLLOWS if name in known[0].edited})
    changed = {name: getattr(cue, name) for name in FOLLOWS}
    if known and any(getattr(known[0], name) != value for name, value in changed.items()):
        # If another cue says this already, that one gets the evidence, and the known one is retired.
        with suppress(InvalidInput):
            await edit_cue(door, known[0].cue_id, changed, by_person=False)
    return (await add_cues(door, [cue])).ids[0]


async def _replaced(session: Session, record: Record, cue_id: UUID, uri: str) -> bool:
    """Lets a cue hold in place of those that its record supersedes; returns False if it is superseded itself by a
    record that is not stored, so that it holds no more.
    """
    standing = record.standing
    if standing.state != records.SUPERSEDED and not standing.supersedes:
        return True
    others = await store.recorded(session, str(PurePosixPath(uri).parent))
    by_number = {number_of(path): other for path, other in others.items() if other != cue_id}
    moment = datetime.now(UTC)
    older = [by_number[number] for number in standing.supersedes if number in by_number]
    if older and standing.state != records.SUPERSEDED:
        await supersede(session, older, cue_id, moment, await store.revised(session))
    newer = next((by_number[number] for number in standing.superseded_by if number in by_number), None)
    if standing.state == records.SUPERSEDED and newer is not None:
        await supersede(session, [cue_id], newer, moment, await store.revised(session))
    return standing.state != records.SUPERSEDED or newer is not None
