"""The verbs that store people's ratings of memories, undo them, and list them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from msgspec import structs

from app.errors import InvalidInput, NotFound, check
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.safety.secrets import masked_values
from app.foundation.text.data import check_value
from app.foundation.values import frozen
from app.intake.runs.feedback import store
from app.intake.runs.feedback.store import FeedbackEntry, Rated, Rating
from app.intake.runs.run import name_reasons
from app.storage.memories import changes
from app.storage.memories import store as memories
from app.storage.tenants.workspace import Workspace


@frozen
class Ratings:
    """The feedback log of a database."""

    database: Database
    mask_secrets: bool = True

    async def rate(self, workspace: Workspace, entry: FeedbackEntry) -> Rated:
        """Appends a rating to the log and updates the memory's quality, in one transaction.

        A `reviewer` has one rating of a memory: another one takes its place, and the same one changes nothing.
        A second call with the same `idempotency_key` returns the first one's rating and changes nothing.

        Raises:
            InvalidInput: the rating is not 1 or -1, the comment is too long, or the key was used for another rating.
            NotFound: the workspace has no such memory.
        """
        check(() if entry.run_id is None else name_reasons(entry.run_id))
        check_value(entry)
        entry = structs.replace(entry, reviewer=entry.reviewer or None)
        if self.mask_secrets:
            entry = _without_secrets(entry)
        memory_id = entry.memory_id
        async with self.database.session(workspace) as session:
            if not await memories.lock(session, [memory_id]):
                raise _unknown_memory(workspace, memory_id)
            key = entry.idempotency_key
            known = None if key is None else await store.by_key(session, key)
            if known is not None:
                _check_same(known, entry)
                return await self._stored_rating(session, memory_id, known.feedback_id)
            return await self._append(session, entry)

    async def _append(self, session: Session, entry: FeedbackEntry) -> Rated:
        """Appends a rating in place of the reviewer's earlier one, unless that says the same."""
        earlier = await _earlier(session, entry)
        if earlier is not None and _says_the_same(earlier, entry):
            return await self._stored_rating(session, entry.memory_id, earlier.feedback_id)
        if earlier is not None:
            await store.append(session, _undo_of(earlier))
        await store.append(session, entry)
        stored = await self._stored_rating(session, entry.memory_id, entry.feedback_id)
        return replace(stored, replaced=earlier)

    async def undo(self, workspace: Workspace, feedback_id: UUID) -> Rated:
        """Undoes a rating by an entry in the log, and replays the quality. A second call changes nothing.

        Raises:
            NotFound: the workspace has no such rating.
        """
        async with self.database.session(workspace) as session:
            memory_id = await store.memory_of(session, feedback_id)
            unknown = NotFound(f"there is no rating {feedback_id} in workspace {workspace.name}")
            if memory_id is None:
                raise unknown
            await memories.lock(session, [memory_id])
            ratings = {item.feedback_id: item for item in await store.ratings_of(session, memory_id)}
            if feedback_id not in ratings:
                raise unknown
            if ratings[feedback_id].undone_at is None:
                await store.append(session, _undo_of(ratings[feedback_id]))
            return await self._stored_rating(session, memory_id, feedback_id)

    async def _stored_rating(self, session: Session, memory_id: UUID, feedback_id: UUID) -> Rated:
        """Gives the memory the quality that the log leads to; returns a rating with it."""
        ratings = await store.ratings_of(session, memory_id)
        quality = store.quality_of(ratings)
        await changes.set_quality(session, memory_id, quality)
        rating = next(item for item in ratings if item.feedback_id == feedback_id)
        return Rated(rating=rating, quality=quality)

    async def of_memory(self, workspace: Workspace, memory_id: UUID) -> list[Rating]:
        """Returns a memory's ratings in their order, each with the time when it was undone.

        Raises:
            NotFound: the workspace has no such memory.
        """
        async with self.database.session(workspace, reading=True) as session:
            found = await store.ratings_of(session, memory_id)
            if not found and await memories.get(session, memory_id) is None:
                raise _unknown_memory(workspace, memory_id)
        return found

    async def of_memories(self, workspace: Workspace, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Rating]]:
        """Returns the ratings of each of these memories that stand, the latest first."""
        found: dict[UUID, list[Rating]] = {memory_id: [] for memory_id in ids}
        async with self.database.session(workspace, reading=True) as session:
            for rating in await store.standing_ratings(session, ids):
                found[rating.memory_id].append(rating)
        return found


async def _earlier(session: Session, entry: FeedbackEntry) -> Rating | None:
    """Returns the rating in force that the reviewer has given the memory already."""
    if entry.reviewer is None:
        return None
    ratings = await store.ratings_of(session, entry.memory_id)
    return next((item for item in ratings if item.undone_at is None and item.reviewer == entry.reviewer), None)


def _undo_of(rating: Rating) -> FeedbackEntry:
    return FeedbackEntry(memory_id=rating.memory_id, undoes=rating.feedback_id)


def _says_the_same(known: Rating, sent: FeedbackEntry) -> bool:
    return (known.rating, known.comment, known.run_id) == (sent.rating, sent.comment, sent.run_id)


def _unknown_memory(workspace: Workspace, memory_id: UUID) -> NotFound:
    return NotFound(f"there is no memory {memory_id} in workspace {workspace.name}")


def _check_same(known: Rating, sent: FeedbackEntry) -> None:
    """Raises InvalidInput if the key was used for a different rating before."""
    if known.memory_id != sent.memory_id:
        raise InvalidInput("Idempotency-Key", "was used for another memory; take a new one")
    if not _says_the_same(known, sent):
        raise InvalidInput("Idempotency-Key", "was used for another rating of this memory; take a new one")


def _without_secrets(entry: FeedbackEntry) -> FeedbackEntry:
    texts = {name: masked_values(getattr(entry, name)) for name in ("comment", "run_id", "reviewer")}
    return structs.replace(entry, idempotency_key=_without_secret(entry.idempotency_key), **texts)


def _without_secret(key: str | None) -> str | None:
    """Returns the key, or its hash where it may be a secret: it must still be told from others."""
    if key is None or masked_values(key) == key:
        return key
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
