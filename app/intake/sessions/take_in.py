"""The verb that stores a session: what is new of it, and what has changed."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from app.errors import DatabaseUnavailable, InvalidInput, check
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Session
from app.foundation.safety.secrets import mask
from app.foundation.text.data import unstorable
from app.intake.sessions import store
from app.intake.sessions.artifacts import folder_of
from app.intake.sessions.prepare import (
    Preparation,
    PreparedTurn,
    body_of,
    date_turns,
    digest_of,
    prepare_turns,
    storable,
)
from app.intake.sessions.store import KnownSession, StoredSession
from app.intake.sessions.transcript import Transcript, Turn, title_of
from app.storage.index.indexing import enqueue_statistics, queue_for_vectors
from app.storage.memories import sources
from app.storage.memories.gate import instruction_in, too_long_uri
from app.storage.memories.memory import TITLE_LIMIT, SourceReference
from app.storage.memories.remember import Door
from app.storage.memories.sources import Matching, carry_out, known_parts, match_parts
from app.storage.tenants import store as workspaces
from app.storage.tenants.service import check_room, get_or_create
from app.storage.tenants.workspace import Workspace, check_language, configuration

NEW, CHANGED, UNCHANGED, DELETED = "new", "changed", "unchanged", "deleted"
_ATTEMPTS = 10
"""Attempts to write a session that others write at the same moment; each of them makes one attempt void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenIn:
    """The outcome for one session."""

    session_id: str
    """The id under which it is stored: the given one, without secrets."""
    source_id: UUID | None
    """None for a session that is not stored."""
    status: str
    """NEW, CHANGED, UNCHANGED, or DELETED: a person deleted it, so its log is not read again."""
    turns: int
    """Number of its turns."""
    stored: int = 0
    """Number of turns that were not known."""
    retired: int = 0
    """Number of turns that it has no longer."""
    tokens: int = 0
    """Model tokens of the stored turns."""
    flagged: int = 0
    """Number of stored turns that no history shows, until a person releases them."""
    pending: tuple[UUID, ...] = ()
    """The turns that wait for a vector."""
    other_log: str = ""
    """The other log whose session has the given id, so that this one is stored under an id of its own."""


def stored_id(session_id: str, *, masked: bool) -> str:
    """Returns the id under which a session is stored; one with a secret is masked, and a hash tells it from others.

    Raises:
        InvalidInput: no session can have this id.
    """
    check(unstorable(session_id, "id"))
    if session_id.strip() in {"", ".", ".."}:
        raise InvalidInput("id", "is empty or only dots; it names the session, in addresses too")
    clean = mask(session_id).text if masked else session_id
    if clean != session_id:
        clean = f"{clean}#{_hash(session_id)}"
    if reason := too_long_uri(clean):
        raise InvalidInput("id", reason)
    return clean


async def take_in(
    door: Door,
    transcript: Transcript,
    *,
    path: str = "",
    language: str | None = None,
    tags: tuple[str, ...] = (),
    revive: bool = False,
    user: str | None = None,
) -> TakenIn:
    """Stores a session, given with all its turns: turns that it did not have are added, changed ones replaced.

    A turn that stayed keeps its memory, with its ratings, wherever it moved. Nothing is embedded here. With `revive`
    a session that a person deleted is stored again. No turn is refused: one in which the injection scan has a finding
    is kept out of histories until a person releases it.

    Two logs of one session, each with turns that the other one lacks, do not replace each other: the second one is
    stored as a session of its own, with the hash of its path at the end of its id.

    A new session belongs to `user`, or to nobody; a known one to whom it belonged.

    Raises:
        InvalidInput: the id or the language is not valid, no turn says or does anything, or the session is another's.
        DatabaseUnavailable: nothing is stored.
        QuotaReached: nothing is stored; the workspace has no room for the turns.
    """
    check_language(language)
    if not any(body_of(turn).strip() for turn in transcript.turns):
        raise InvalidInput("messages", "none of them says or does anything; a session needs a turn with text or a tool")
    workspace = await _workspace_of_owner(door, stored_id(transcript.session_id, masked=door.mask), user)
    folder = transcript.folder or await asyncio.to_thread(folder_of, transcript.turns)
    preparation = replace(_preparation(door, workspace, language), folder=folder, tags=tags)
    for _ in range(_ATTEMPTS):
        taken = await _store_whole(door, workspace, transcript, preparation, path=path, revive=revive)
        if taken is not None:
            return taken
    raise DatabaseUnavailable("others store the same session at this moment; try again")


async def _store_whole(
    door: Door, workspace: Workspace, transcript: Transcript, preparation: Preparation, *, path: str, revive: bool
) -> TakenIn | None:
    """Makes one attempt to store a session with all its turns; returns None if another call was faster."""
    session_id, other_log = stored_id(transcript.session_id, masked=door.mask), ""
    turns, digests = await asyncio.to_thread(_digest_turns, transcript, preparation)
    async with door.database.session(workspace, transaction=False) as session:
        known = await store.known_session(session, session_id, revive=revive)
        if known is not None and path and _is_another_log(known, path, digests):
            other_log, session_id = known.path, f"{session_id}#{_hash(path)}"
            known = await store.known_session(session, session_id, revive=revive)
    if known is not None and known.deleted and not revive:
        return TakenIn(session_id=session_id, source_id=known.source_id, status=DELETED, turns=0)
    same = _same(known, digests)
    given = [turn for turn in turns if turn.ordinal not in same]
    if given:
        await check_room(door.database, workspace)
    change = _Change(
        session_id=session_id,
        transcript=replace(transcript, title=_title(transcript.title, masked=door.mask)),
        values=_values(transcript, path),
        path=path,
        known=known,
        same=frozenset(same),
        turns=await asyncio.to_thread(prepare_turns, given, preparation),
        language=preparation.language,
        revive=revive,
    )
    if known is not None and change.is_older_copy:
        count = len(transcript.turns)
        return TakenIn(session_id=session_id, source_id=known.source_id, status=UNCHANGED, turns=count)
    taken = await again_after_deadlock(partial(_write_change, door, workspace, change))
    return None if taken is None else replace(taken, other_log=other_log)


async def append(
    door: Door,
    session_id: str,
    turns: Sequence[Turn],
    *,
    format: str,  # noqa: A002 - the column's name
    language: str | None = None,
    user: str | None = None,
) -> TakenIn:
    """Adds turns at the end of a session as they happen; a session that is not known is made, in this format.

    The ordinals of the given turns do not count. A turn with an id or a time that was appended before, with all that it
    says, is not appended again: so a call may be repeated.

    Raises:
        InvalidInput: the id or the language is not valid, no turn says or does anything, or the session is another's.
        DatabaseUnavailable: nothing is stored.
        QuotaReached: nothing is stored; the workspace has no room for the turns.
    """
    check_language(language)
    if not any(body_of(turn).strip() for turn in turns):
        raise InvalidInput("messages", "none of them says or does anything")
    session_id = stored_id(session_id, masked=door.mask)
    workspace = await _workspace_of_owner(door, session_id, user)
    preparation = _preparation(door, workspace, language)
    for _ in range(_ATTEMPTS):
        taken = await _store_end(door, workspace, session_id, turns, preparation, format=format)
        if taken is not None:
            return taken
    raise DatabaseUnavailable("others append to the same session at this moment; try again")


async def _store_end(
    door: Door,
    workspace: Workspace,
    session_id: str,
    turns: Sequence[Turn],
    preparation: Preparation,
    *,
    format: str,  # noqa: A002 - as above
) -> TakenIn | None:
    """Makes one attempt to add turns at the end of a session; returns None if another call was faster."""
    async with door.database.session(workspace, transaction=False) as session:
        known = await store.known_session(session, session_id, revive=False)
        stored = await store.get(session, session_id)
    count = 0 if stored is None else stored.turns
    new = _turns_to_append(turns, {} if known is None else known.digests, preparation)
    if known is not None and not new:
        return TakenIn(session_id=session_id, source_id=known.source_id, status=UNCHANGED, turns=count)
    await check_room(door.database, workspace)
    rows = await asyncio.to_thread(prepare_turns, [turn for turn, _ in new], preparation)
    digests = {turn.ordinal: digest for turn, digest in new}
    change = replace(
        _growth(session_id, [turn for turn, _ in new], stored, format=format, masked=door.mask),
        known=known,
        same=frozenset(() if known is None else known.digests),
        turns=[replace(row, digest=digests[row.row.memory.ordinal or 0]) for row in rows],
        language=preparation.language,
    )
    taken = await again_after_deadlock(partial(_write_change, door, workspace, change))
    return None if taken is None else replace(taken, turns=count + taken.stored)


def _turns_to_append(
    turns: Sequence[Turn], known: Mapping[int, bytes], preparation: Preparation
) -> list[tuple[Turn, bytes]]:
    """Returns the turns that are not stored yet, at their places after the stored ones, each with its digest.

    Without a time a turn happens now; its digest is of the turn as it was given, so that it is the same the next time.
    """
    stored, now = set(known.values()), datetime.now(UTC)
    first, found = max(known, default=-1) + 1, list[tuple[Turn, bytes]]()
    for turn in map(storable, turns):
        digest = digest_of(turn, preparation)
        if (turn.message_id or turn.at is not None) and digest in stored:
            continue
        stored.add(digest)
        found.append((replace(turn, ordinal=first + len(found), at=turn.at or now), digest))
    return found


def _growth(
    session_id: str,
    turns: Sequence[Turn],
    stored: StoredSession | None,
    *,
    format: str,  # noqa: A002 - as above
    masked: bool,
) -> "_Change":
    """Returns the change by which a session gets these turns, and else stays as it is."""
    transcript = Transcript(
        session_id=session_id,
        title=stored.title if stored and stored.title else title_of(turns),
        started_at=None if stored is None else stored.started_at,
        format=format if stored is None else stored.format,
        turns=tuple(turns),
    )
    return _Change(
        session_id=session_id,
        transcript=replace(transcript, title=_title(transcript.title, masked=masked)),
        values=_values(transcript, "" if stored is None else stored.path),
    )


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _is_another_log(known: KnownSession, path: str, digests: Mapping[int, bytes]) -> bool:
    """Tells whether a session's log and what is stored of a session of its id each have turns that the other lacks."""
    stored, given = set(known.digests.values()), set(digests.values())
    return known.path != path and not known.deleted and not (stored <= given or given <= stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The difference between a session and what is stored of it."""

    session_id: str
    transcript: Transcript
    values: Mapping[str, object]
    """Columns of the session, apart from its title and its turns."""
    path: str = ""
    """The file that the session was read from; "" for none."""
    known: KnownSession | None = None
    """The stored session with which the turns were compared; None for a new one."""
    same: frozenset[int] = frozenset()
    """The ordinals of the turns that are stored as they are."""
    turns: Sequence[PreparedTurn] = ()
    """The others."""
    language: str = ""
    revive: bool = False

    @property
    def is_older_copy(self) -> bool:
        """True for another file than the session's own with turns that are all stored, such as a copy of its log."""
        return self.known is not None and self.known.path not in {"", self.path} and self.path != "" and not self.turns


def _values(transcript: Transcript, path: str) -> Mapping[str, object]:
    moments = [turn.at for turn in transcript.turns if turn.at is not None]
    return {
        "format": transcript.format,
        "path": path,
        "started_at": transcript.started_at or min(moments, default=None),
        "ended_at": max(moments, default=transcript.started_at),
    }


async def of_owner(database: Database, workspace: Workspace, session_id: str) -> Workspace:
    """Returns the workspace as the owner of a stored session sees it."""
    async with database.session(workspace, transaction=False) as session:
        return workspace.of(await store.owner(session, session_id))


async def _workspace_of_owner(door: Door, session_id: str, user: str | None) -> Workspace:
    """Returns the workspace as the user sees it, or the owner of the session where none is named."""
    workspace = await get_or_create(door.database, door.workspace)
    return await of_owner(door.database, workspace, session_id) if user is None else workspace.of(user)


def _preparation(door: Door, workspace: Workspace, language: str | None) -> Preparation:
    """Returns the settings for the turns of a session that touch no artifacts."""
    chosen = workspace.language if language is None else configuration(language)
    return Preparation(language=chosen, folder="", counter=door.counter, mask=door.mask)


def _digest_turns(transcript: Transcript, preparation: Preparation) -> tuple[list[Turn], dict[int, bytes]]:
    """Returns the turns of a session as a database can hold them, and the digest of each by its ordinal."""
    turns = [storable(turn) for turn in date_turns(transcript.turns, transcript.started_at)]
    return turns, {turn.ordinal: digest_of(turn, preparation) for turn in turns}


def _same(known: KnownSession | None, digests: Mapping[int, bytes]) -> set[int]:
    stored = {} if known is None else known.digests
    return {ordinal for ordinal, digest in digests.items() if stored.get(ordinal) == digest}


def _title(title: str, *, masked: bool) -> str:
    """Returns a session's title without secrets; "" for one that looks like an instruction to the reader."""
    clean = (mask(title).text if masked else title).replace("\0", "")[:TITLE_LIMIT]
    clean = clean.encode("utf-8", "replace").decode()
    return "" if instruction_in(clean) else clean


async def _write_change(door: Door, workspace: Workspace, change: _Change) -> TakenIn | None:
    """Writes the difference, all or nothing; returns None if what is stored has changed since it was made."""
    async with door.database.session(workspace) as session:
        reference = SourceReference(kind="session", uri=change.session_id, title=change.transcript.title)
        source_id = (await sources.ensure(session, [reference])).get(("session", change.session_id))
        if source_id is None:
            message = "is of another user's session, or of one that is nobody's: name its user, or choose another id"
            raise InvalidInput("id", message)
        await store.lock(session, source_id)
        known = await store.known_session(session, change.session_id, revive=change.revive)
        if known != change.known:
            return None
        matching, pending = await _carry_out(session, source_id, change)
        differs = bool(matching.kept or matching.new or matching.retired)
        unchanged = known is not None and not known.deleted and not differs
        if known is None or not unchanged or not known.path:
            await store.save(session, source_id, change.values)
        if known is None or known.title != change.transcript.title:
            await sources.entitle(session, source_id, change.transcript.title)
        if not unchanged:
            await workspaces.add_languages(session, workspace, {change.language})
            await queue_for_vectors(session, pending)
            await enqueue_statistics(session)
            await store.ask_for_cues(session, change.session_id)
    return TakenIn(
        session_id=change.session_id,
        source_id=source_id,
        status=UNCHANGED if unchanged else NEW if known is None else CHANGED,
        turns=len(change.transcript.turns),
        stored=len(matching.new),
        retired=len(matching.retired),
        tokens=sum(row.tokens for row in matching.new),
        flagged=sum(any(finding["severity"] == "suspect" for finding in row.findings) for row in matching.new),
        pending=tuple(pending),
    )


async def _carry_out(session: Session, source_id: UUID, change: _Change) -> tuple[Matching, list[UUID]]:
    """Stores turns; returns the difference, and the memories that need a vector."""
    parts = await known_parts(session, [source_id], kind="message")
    parts = [part for part in parts if not (part.ordinal in change.same and (part.live or part.barred))]
    if change.revive and change.known is not None and change.known.deleted:
        parts = [replace(part, barred=False) for part in parts]
    rows = {turn.row.memory_id: turn for turn in change.turns}
    matching = match_parts([replace(turn.row, source_id=source_id) for turn in change.turns], parts)
    pending = await carry_out(session, matching)
    kept = {part.memory_id: rows[row.memory_id] for part, row in matching.kept}
    if saved := kept | {row.memory_id: rows[row.memory_id] for row in matching.new}:
        await store.save_turns(session, saved)
    return matching, [row.memory_id for row in pending]
