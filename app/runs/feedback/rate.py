"""The verbs that store people's ratings of memories, undo them, and list them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from app.db.database import Database
from app.db.session import Session
from app.errors import InvalidInput, NotFound, check
from app.memories import store as memories
from app.memories.gate import NAME_LIMIT, unstorable
from app.runs.feedback import store
from app.runs.feedback.store import Entry, Rated, Rating
from app.runs.record import name_reasons
from app.safety.secrets import masked_values
from app.workspaces.workspace import Workspace

COMMENT_LIMIT = 10_000


async def rate(
    database: Database,
    *,
    workspace: Workspace,
    memory_id: UUID,
    rating: int,
    comment: str = "",
    run_id: str | None = None,
    reviewer: str | None = None,
    idempotency_key: str | None = None,
    mask: bool = True,
) -> Rated:
    """Appends a rating to the log and updates the memory's quality, in one transaction.

    A `reviewer` has one rating of each memory: another one takes its place, and the same one changes nothing.
    A second call with the same `idempotency_key` returns the first one's rating and changes nothing.

    Raises:
        InvalidInput: the rating is not 1 or -1, the comment is too long, or the key was used for another rating.
        NotFound: the workspace has no such memory.
    """
    entry = Entry(
        memory_id=memory_id,
        rating=rating,
        comment=comment,
        run_id=run_id,
        reviewer=reviewer or None,
        idempotency_key=idempotency_key,
    )
    check(_reasons(entry))
    if mask:
        idempotency_key = _without_secret(idempotency_key)
        texts = {name: masked_values(getattr(entry, name)) for name in ("comment", "run_id", "reviewer")}
        entry = replace(entry, idempotency_key=idempotency_key, **texts)
    async with database.session(workspace) as session:
        if not await memories.lock(session, [memory_id]):
            raise _unknown_memory(workspace, memory_id)
        known = None if idempotency_key is None else await store.by_key(session, idempotency_key)
        if known is not None:
            _check_same(known, entry)
            return await _rated(session, memory_id, known.feedback_id)
        earlier = await _earlier(session, entry)
        if earlier is not None and _says_the_same(earlier, entry):
            return await _rated(session, memory_id, earlier.feedback_id)
        if earlier is not None:
            await store.append(session, Entry(memory_id=memory_id, undoes=earlier.feedback_id))
        await store.append(session, entry)
        return replace(await _rated(session, memory_id, entry.feedback_id), replaced=earlier)


async def _earlier(session: Session, entry: Entry) -> Rating | None:
    """Returns the rating in force that the reviewer has given the memory already."""
    if entry.reviewer is None:
        return None
    ratings = await store.ratings_of(session, entry.memory_id)
    return next((item for item in ratings if item.undone_at is None and item.reviewer == entry.reviewer), None)


def _says_the_same(known: Rating, sent: Entry) -> bool:
    return (known.rating, known.comment, known.run_id) == (sent.rating, sent.comment, sent.run_id)


def _unknown_memory(workspace: Workspace, memory_id: UUID) -> NotFound:
    return NotFound(f"there is no memory {memory_id} in workspace {workspace.name}")


def _check_same(known: Rating, sent: Entry) -> None:
    """Raises InvalidInput if the key was used for a different rating before."""
    if known.memory_id != sent.memory_id:
        raise InvalidInput("Idempotency-Key", "was used for another memory; take a new one")
    if not _says_the_same(known, sent):
        raise InvalidInput("Idempotency-Key", "was used for another rating of this memory; take a new one")


async def undo_rating(database: Database, *, workspace: Workspace, feedback_id: UUID) -> Rated:
    """Undoes a rating by an entry in the log, and replays the quality. A second call changes nothing.

    Raises:
        NotFound: the workspace has no such rating.
    """
    async with database.session(workspace) as session:
        memory_id = await store.memory_of(session, feedback_id)
        if memory_id is None or not await memories.lock(session, [memory_id]):
            raise NotFound(f"there is no rating {feedback_id} in workspace {workspace.name}")
        standing = {item.feedback_id: item.undone_at for item in await store.ratings_of(session, memory_id)}
        if standing.get(feedback_id) is None:
            await store.append(session, Entry(memory_id=memory_id, undoes=feedback_id))
        return await _rated(session, memory_id, feedback_id)


async def list_ratings(database: Database, *, workspace: Workspace, memory_id: UUID) -> list[Rating]:
    """Returns a memory's ratings in their order, each with the time when it was undone.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with database.session(workspace, reading=True) as session:
        found = await store.ratings_of(session, memory_id)
        if not found and await memories.get(session, memory_id) is None:
            raise _unknown_memory(workspace, memory_id)
    return found


async def list_comments(
    database: Database, *, workspace: Workspace, ids: Sequence[UUID]
) -> Mapping[UUID, Sequence[Rating]]:
    """Returns the ratings of each of these memories that stand and have a comment, the latest first."""
    found: dict[UUID, list[Rating]] = {memory_id: [] for memory_id in ids}
    async with database.session(workspace, reading=True) as session:
        for rating in await store.commented(session, ids):
            found[rating.memory_id].append(rating)
    return found


async def _rated(session: Session, memory_id: UUID, feedback_id: UUID) -> Rated:
    quality, ratings = await store.set_quality(session, memory_id)
    rating = next(item for item in ratings if item.feedback_id == feedback_id)
    return Rated(rating=rating, quality=quality)


def _without_secret(key: str | None) -> str | None:
    """Returns the key, or its hash where it may be a secret: it must still be told from others."""
    if key is None or masked_values(key) == key:
        return key
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def _reasons(entry: Entry) -> Iterator[str]:
    if entry.rating not in {-1, 1}:
        yield "rating: must be 1 or -1"
    if len(entry.comment) > COMMENT_LIMIT:
        yield f"comment: has more than {COMMENT_LIMIT:,} characters"
    key = entry.idempotency_key
    if key is not None and not 1 <= len(key) <= NAME_LIMIT:
        yield f"Idempotency-Key: has 1 to {NAME_LIMIT} characters"
    if entry.run_id is not None:
        yield from name_reasons(entry.run_id)
    if len(entry.reviewer or "") > NAME_LIMIT:
        yield f"reviewer: has more than {NAME_LIMIT} characters"
    yield from unstorable({"comment": entry.comment, "Idempotency-Key": key or "", "reviewer": entry.reviewer or ""})
