"""The parts of making a cue of the decision that a record (ADR) states."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from uuid import UUID

from app.foundation.db.session import Row, Session
from app.foundation.text.prose import plain
from app.intake.reports.record import number_of
from app.recall.cues import store
from app.recall.cues.conflicts import supersede
from app.recall.cues.cue import Evidence, NewCue
from app.recall.cues.extraction.sections import SUPERSEDED, Record

FOLLOWS = ("lesson", "trigger", "details", "quote", "confidence", "files")
"""The fields that follow the record when it changes; what people set besides them stays."""


def text_of(chunks: Sequence[Row]) -> str:
    """Returns the Markdown of a stored file, with its headings."""
    parts: list[str] = []
    above: list[str] = []
    for chunk in chunks:
        heading_path = chunk.metadata.get("trail", [])
        new = (place for place in range(len(heading_path)) if heading_path[: place + 1] != above[: place + 1])
        parts += [f"{'#' * min(place + 1, 6)} {heading_path[place]}" for place in new]
        parts.append(chunk.body)
        above = heading_path
    return "\n\n".join(parts)


def with_file(cue: NewCue, chunks: Sequence[Row], source_id: UUID) -> NewCue:
    """Returns the cue of a record with the chunk that states the decision as its evidence."""
    said = plain(cue.quote)
    chunk = next((item for item in chunks if said and said in plain(item.body)), chunks[0])
    proof = Evidence(
        source_id=source_id, memory_id=chunk.memory_id, ordinal=chunk.ordinal, quote=cue.quote, at=chunk.occurred_at
    )
    return replace(cue, evidence=(proof,), valid_from=chunk.occurred_at, files=(chunks[0].path,))


async def replace_others(session: Session, record: Record, cue_id: UUID, uri: str) -> bool:
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
        await supersede(session, older, cue_id, moment)
    newer = next((by_number[number] for number in record.superseded_by if number in by_number), None)
    if record.state == SUPERSEDED and newer is not None:
        await supersede(session, [cue_id], newer, moment)
    return record.state != SUPERSEDED or newer is not None
