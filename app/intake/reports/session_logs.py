"""Takes in the files below the given paths that are logs of sessions."""

import asyncio
import hashlib
from collections.abc import Sequence

from app.intake.reports.apply import retire
from app.intake.reports.outcome import CHANGED, NEW, UNCHANGED, FileOutcome, IngestionState
from app.intake.reports.prepare import HASH_BYTES
from app.intake.reports.scan import SUFFIXES, ReportFile, UnreadableFile
from app.intake.sessions.formats import read_log
from app.intake.sessions.prepare import VERSION
from app.intake.sessions.take_in import LogFile, TakenIn, take_in
from app.intake.sessions.transcript import Log
from app.memories.remember import Door


async def took_log(state: IngestionState, file: ReportFile, content: bytes) -> bool:
    """Stores the sessions of a file, if it is a log of sessions, and notes its outcome; returns whether it is one.

    A file of JSON lines that is no such log is left alone, unless it was given by its name.

    Raises:
        UnreadableFile: it was given by its name, and is no log of a session.
    """
    suffix = file.path.suffix.lower()
    digest = _log_hash(content, state.language)
    if state.log_hashes.get(file.uri) == digest:
        state.note(FileOutcome(path=str(file.shown), status=UNCHANGED))
        return True
    log = await asyncio.to_thread(read_log, content, suffix=suffix, session_id=file.uri)
    if log is not None:
        state.note(await _stored(state, file, log, LogFile(path=file.uri, content_hash=digest)))
        return True
    if suffix not in SUFFIXES and file.path in state.named:
        raise UnreadableFile("is no log of a session: no line of it has a role and a text, or is a record of an agent")
    return suffix not in SUFFIXES


def _log_hash(content: bytes, language: str) -> bytes:
    return hashlib.blake2b(f"{VERSION}:{language}".encode() + content, digest_size=HASH_BYTES).digest()


async def _stored(state: IngestionState, file: ReportFile, log: Log, read: LogFile) -> FileOutcome:
    intake = state.intake
    status = CHANGED if file.uri in state.log_hashes else NEW
    turns = sum(len(transcript.turns) for transcript in log.transcripts)
    if intake.dry_run:
        return FileOutcome(path=str(file.shown), status=status, chunks=turns, skipped=log.skipped)
    report = state.known.get(file.uri)
    if report is not None and report.live:
        # An earlier version took the log for a report.
        await retire(state, [report])
    door = Door(intake.database, intake.counter, intake.workspace, mask=intake.mask)
    taken = [
        await take_in(door, transcript, file=read, language=intake.language)
        for transcript in log.transcripts
        if transcript.turns
    ]
    state.retitled += [memory_id for item in taken for memory_id in item.pending]
    return FileOutcome(
        path=str(file.shown),
        status=status if _changed(taken) else UNCHANGED,
        chunks=sum(item.turns for item in taken),
        stored=sum(item.stored for item in taken),
        tokens=sum(item.tokens for item in taken),
        skipped=log.skipped,
    )


def _changed(taken: Sequence[TakenIn]) -> bool:
    return any(item.status in {NEW, CHANGED} for item in taken)
