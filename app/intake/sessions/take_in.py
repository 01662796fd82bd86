"""The verb that stores a session: what is new of it, and what has changed."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from app.errors import DatabaseUnavailable, InvalidInput, check
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Session
from app.foundation.models.protocols import TokenCounter
from app.foundation.safety.secrets import mask
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.intake.sessions import store
from app.intake.sessions.artifacts import folder_of
from app.intake.sessions.merge import GivenTurn, KnownTurn, Merge, SessionComparison, Stale
from app.intake.sessions.prepare import (
    Preparation,
    PreparedTurn,
    body_of,
    date_turns,
    digest_of,
    prepare_turns,
    storable,
)
from app.intake.sessions.store import KnownSession
from app.intake.sessions.transcript import Transcript, Turn, title_of
from app.storage.index.indexing import enqueue_statistics, queue_for_vectors
from app.storage.memories import sources
from app.storage.memories import store as memories
from app.storage.memories.changes import drop_emptied_turns
from app.storage.memories.gate import instruction_in, too_long_uri
from app.storage.memories.memory import TITLE_LIMIT, SourceReference, in_utc
from app.storage.memories.sources import Matching, carry_out
from app.storage.tenants import store as workspaces
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace, check_language, configuration

NEW, CHANGED, UNCHANGED, DELETED = "new", "changed", "unchanged", "deleted"
_ATTEMPTS = 10
"""Attempts to write a session of which others change what was stored at the same moment."""


@frozen
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
    """Number of turns that were not known, or said something else."""
    retired: int = 0
    """Number of stored turns that others replaced, or that nobody said."""
    missing: int = 0
    """Number of turns that stay though the given session no longer has them."""
    tokens: int = 0
    """Model tokens of the stored turns."""
    flagged: int = 0
    """Number of stored turns that no history shows, until a person releases them."""
    pending: tuple[UUID, ...] = ()
    """The turns that wait for a vector."""


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


def _storable(transcript: Transcript) -> Transcript:
    """Returns a session as a database can hold it."""
    turns, unspoken = (tuple(map(storable, given)) for given in (transcript.turns, transcript.unspoken))
    return replace(transcript, turns=turns, unspoken=unspoken)


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


@frozen
class _Work:
    """A session as it was given."""

    session_id: str
    transcript: Transcript
    path: str = ""
    """The file that it was read from; "" for none."""
    at_end: bool = False
    """True for turns that are added at the end, and are not the whole session."""
    revive: bool = False

    @property
    def dated_turns(self) -> Sequence[Turn]:
        """The turns, each with a time where the session has one."""
        return self.transcript.turns if self.at_end else date_turns(self.transcript.turns, self.transcript.started_at)

    def skips(self, known: KnownSession) -> bool:
        """Tells whether a person deleted the session, so that it is not stored again."""
        return known.deleted and not (self.revive or self.at_end)


def _prepare(
    work: _Work, known: Sequence[KnownTurn], preparation: Preparation
) -> tuple[list[GivenTurn], list[GivenTurn]]:
    """Returns the turns, with rows where they are not stored as they are, and the texts that nobody said, where a
    stored turn may be one of them."""
    given = _given_turns(work, preparation)
    comparison = SessionComparison(known, given)
    comparison.compare_identities()
    settled = comparison.stored_as_they_are()
    rows = _rows(work, [place for place in range(len(given)) if place not in settled], preparation)
    found = [replace(turn, prepared=rows.get(place)) for place, turn in enumerate(given)]
    found = [turn for place, turn in enumerate(found) if place in settled or turn.prepared is not None]
    if work.at_end or not comparison.is_lacking():
        return found, []
    left_out = replace(work, transcript=replace(work.transcript, turns=work.transcript.unspoken))
    given = _given_turns(left_out, preparation)
    rows = _rows(left_out, range(len(given)), preparation)
    return found, [replace(turn, prepared=rows[place]) for place, turn in enumerate(given) if place in rows]


def _given_turns(work: _Work, preparation: Preparation) -> list[GivenTurn]:
    """Returns the turns without rows. One that is added without an id or a time is another one each time."""
    dated = zip(work.transcript.turns, work.dated_turns, strict=True)
    return [
        GivenTurn(
            message_id=own.message_id,
            digest=b"" if work.at_end and not (own.message_id or own.at) else digest_of(turn, preparation),
            at=None if turn.at is None else in_utc(turn.at),
            is_dated=own.at is not None,
            prepared=None,
        )
        for own, turn in dated
    ]


def _rows(work: _Work, places: Sequence[int], preparation: Preparation) -> dict[int, PreparedTurn]:
    """Returns the rows of the turns at these places that say or do something.

    Without a time an added turn happens now; its digest is of the turn as it was given, so that it is the same the next
    time.
    """
    turns, now = work.dated_turns, datetime.now(UTC) if work.at_end else None
    chosen = [replace(turns[place], ordinal=place, at=turns[place].at or now) for place in places]
    rows = {row.row.memory.ordinal or 0: row for row in prepare_turns(chosen, preparation)}
    return {place: replace(row, digest=digest_of(turns[place], preparation)) for place, row in rows.items()}


def _retitles(work: _Work, known: KnownSession | None, merge: Merge) -> bool:
    """Tells whether a session gets the given title: not from its last turns alone."""
    if known is None or known.title == work.transcript.title or not work.transcript.title:
        return False
    return not known.title or (merge.leads and not work.at_end)


async def _merge(session: Session, comparison: SessionComparison, *, at_end: bool) -> Merge:
    comparison.compare_identities()
    if not at_end:
        comparison.compare_texts()
    comparison.texts = await store.turn_texts(session, comparison.compared_by_text())
    if not at_end:
        comparison.compare_changes()
    return comparison.merge(at_end=at_end)


async def _carry_out(session: Session, source_id: UUID, merge: Merge) -> list[UUID]:
    """Stores the changes; returns the memories that need a vector."""
    await memories.retire(session, merge.retired)
    await sources.place(session, merge.moved)
    new = {turn.row.memory_id: turn for turn in merge.new}
    matching = Matching(
        kept=tuple((part, turn.row) for part, turn in merge.kept),
        new=tuple(replace(turn.row, source_id=source_id) for turn in merge.new),
        retired=(),
        replaced=tuple(merge.replaced),
    )
    pending = await carry_out(session, matching)
    if saved := new | {part.memory_id: turn for part, turn in merge.kept}:
        await store.save_turns(session, saved)
    return [row.memory_id for row in pending]


def _is_suspect(turn: PreparedTurn) -> bool:
    return any(finding["severity"] == "suspect" for finding in turn.row.findings)


def _values(transcript: Transcript, merge: Merge, path: str) -> Mapping[str, object]:
    stated = [turn.at for turn in transcript.turns] + [turn.row.memory.occurred_at for turn in merge.new]
    moments = [in_utc(moment) for moment in stated if moment is not None]
    return {
        "format": transcript.format,
        "path": path,
        "started_at": transcript.started_at or min(moments, default=None),
        "ended_at": max(moments, default=transcript.started_at),
    }


def _title(title: str, *, masked: bool) -> str:
    """Returns a session's title without secrets; "" for one that looks like an instruction to the reader."""
    clean = (mask(title).text if masked else title).replace("\0", "")[:TITLE_LIMIT]
    clean = clean.encode("utf-8", "replace").decode()
    return "" if instruction_in(clean) else clean


@frozen
class SessionIntake:
    """Stores sessions."""

    database: Database
    counter: TokenCounter
    mask: bool = True
    """Masks secrets in what it stores."""

    async def take_in(
        self,
        workspace: Workspace,
        transcript: Transcript,
        *,
        path: str = "",
        language: str | None = None,
        tags: tuple[str, ...] = (),
        revive: bool = False,
        user: str | None = None,
        at_end: bool = False,
    ) -> TakenIn:
        """Stores a session, given with all its turns: those that it did not have are added, changed ones replaced.

        No turn is taken away because the session is given without it: a log may have been compacted, emptied or cut
        off, or a shorter copy may come late. A stored turn goes if another replaces it, or if the session names it as a
        text that nobody said. A turn that stayed keeps its memory, with its ratings, wherever it moved.

        With `at_end` its turns are added at the end, as `append` does.

        Nothing is embedded here. With `revive` a session that a person deleted is stored again. No turn is refused: one
        in which the injection scan has a finding is kept out of histories until a person releases it.

        A new session belongs to `user`, or to nobody; a known one to whom it belonged.

        Raises:
            InvalidInput: the id or the language is not valid, no turn says or does anything, or the session is
                another's.
            DatabaseUnavailable: nothing is stored.
        """
        check_language(language)
        if not any(body_of(turn).strip() for turn in transcript.turns):
            raise InvalidInput(
                "messages", "none of them says or does anything; a session needs a turn with text or a tool"
            )
        session_id = stored_id(transcript.session_id, masked=self.mask)
        workspace = await self._workspace_of_owner(workspace, session_id, user)
        # Added turns touch no artifacts.
        folder = "" if at_end else transcript.folder or await asyncio.to_thread(folder_of, transcript.turns)
        chosen = workspace.language if language is None else configuration(language)
        preparation = Preparation(language=chosen, folder=folder, counter=self.counter, mask=self.mask, tags=tags)
        title = _title(transcript.title, masked=self.mask)
        clean = await asyncio.to_thread(_storable, replace(transcript, title=title))
        work = _Work(session_id=session_id, transcript=clean, path=path, at_end=at_end, revive=revive)
        return await self._store(workspace, work, preparation)

    async def append(
        self,
        workspace: Workspace,
        session_id: str,
        turns: Sequence[Turn],
        *,
        format: str,  # noqa: A002 - the column's name
        language: str | None = None,
        user: str | None = None,
    ) -> TakenIn:
        """Adds turns at the end of a session as they happen; a session that is not known is made, in this format.

        The ordinals of the given turns do not count. A turn with an id or a time that was appended before, with all
        that it says, is not appended again: so a call may be repeated.

        Raises:
            InvalidInput: the id or the language is not valid, no turn says or does anything, or the session is
                another's.
            DatabaseUnavailable: nothing is stored.
        """
        transcript = Transcript(session_id=session_id, title=title_of(turns), format=format, turns=tuple(turns))
        return await self.take_in(workspace, transcript, language=language, user=user, at_end=True)

    async def of_owner(self, workspace: Workspace, session_id: str) -> Workspace:
        """Returns the workspace as the owner of a stored session sees it."""
        async with self.database.session(workspace, transaction=False) as session:
            return workspace.of(await store.owner(session, session_id))

    async def _store(self, workspace: Workspace, work: _Work, preparation: Preparation) -> TakenIn:
        """Prepares and writes the turns that are not stored as they are; again, if others changed them meanwhile."""
        for _ in range(_ATTEMPTS):
            async with self.database.session(workspace, transaction=False) as session:
                known = await store.known_session(session, work.session_id)
                turns = await store.known_turns(session, known, revive=work.revive)
            if known is not None and work.skips(known):
                return TakenIn(session_id=work.session_id, source_id=known.source_id, status=DELETED, turns=0)
            given, unspoken = await asyncio.to_thread(_prepare, work, turns, preparation)
            try:
                return await again_after_deadlock(partial(self._write, workspace, work, given, unspoken, preparation))
            except Stale:
                continue
        raise DatabaseUnavailable("others change the same session at this moment; try again")

    async def _write(
        self,
        workspace: Workspace,
        work: _Work,
        given: Sequence[GivenTurn],
        unspoken: Sequence[GivenTurn],
        preparation: Preparation,
    ) -> TakenIn:
        """Writes the difference, all or nothing.

        Raises:
            Stale: others have changed a turn that is not prepared.
        """
        async with self.database.session(workspace) as session:
            reference = SourceReference(kind="session", uri=work.session_id, title=work.transcript.title)
            source_id = (await sources.ensure(session, [reference])).get(("session", work.session_id))
            if source_id is None:
                message = (
                    "is of another user's session, or of one that is nobody's: name its user, or choose another id"
                )
                raise InvalidInput("id", message)
            await store.lock(session, source_id)
            known = await store.known_session(session, work.session_id)
            if known is not None and work.skips(known):
                raise Stale
            if known is not None and known.deleted and work.revive:
                await drop_emptied_turns(session, source_id)
            comparison = SessionComparison(await store.known_turns(session, known, revive=work.revive), given, unspoken)
            merge = await _merge(session, comparison, at_end=work.at_end)
            pending = await _carry_out(session, source_id, merge)
            unchanged = known is not None and not known.deleted and not merge.changes
            if not unchanged or known is None or not known.path:
                path = work.path or ("" if known is None else known.path)
                await store.save(session, source_id, _values(work.transcript, merge, path))
            if _retitles(work, known, merge):
                await sources.entitle(session, source_id, work.transcript.title)
            if not unchanged:
                await workspaces.add_languages(session, workspace, {preparation.language})
                await queue_for_vectors(session, pending)
                await enqueue_statistics(session)
                await store.ask_for_cues(session, work.session_id)
        return TakenIn(
            session_id=work.session_id,
            source_id=source_id,
            status=UNCHANGED if unchanged else NEW if known is None else CHANGED,
            turns=merge.live,
            stored=len(merge.new),
            retired=len(merge.retired),
            missing=merge.missing,
            tokens=sum(turn.row.tokens for turn in merge.new),
            flagged=sum(_is_suspect(turn) for turn in merge.new),
            pending=tuple(pending),
        )

    async def _workspace_of_owner(self, workspace: Workspace, session_id: str, user: str | None) -> Workspace:
        """Returns the workspace as the user sees it, or the owner of the session where none is named."""
        workspace = await Workspaces(database=self.database).get_or_create(workspace)
        return await self.of_owner(workspace, session_id) if user is None else workspace.of(user)
