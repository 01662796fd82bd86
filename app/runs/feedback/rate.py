"""The verbs by which people judge memories, and take a judgement back."""

from uuid import UUID

from app.db.database import Database
from app.db.session import Session
from app.errors import InvalidInput, NotFound, check
from app.memories import changes
from app.memories.admission import NAME_LIMIT, unstorable
from app.runs.feedback import store
from app.runs.feedback.store import Rated, Rating
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
    idempotency_key: str | None = None,
    mask: bool = True,
) -> Rated:
    """Append a rating to the log and move the memory's quality with it, in one transaction.

    A second call with the same `idempotency_key` returns the first one's rating and changes nothing.

    Raises:
        InvalidInput: a rating other than 1 and -1, a comment that is too long, a key that was used for another rating.
        NotFound: the workspace has no such memory.
    """
    _check(rating, comment, run_id, idempotency_key)
    if mask:
        comment, run_id = masked_values(comment), None if run_id is None else masked_values(run_id)
    async with database.session(workspace) as session:
        if not await changes.lock_for_rating(session, memory_id):
            raise _unknown_memory(workspace, memory_id)
        if idempotency_key is not None and (
            known := await _sent_before(session, memory_id, idempotency_key, (rating, comment, run_id))
        ):
            return known
        feedback_id = await store.append(
            session,
            memory_id,
            rating=rating,
            comment=comment,
            run_id=run_id,
            idempotency_key=idempotency_key,
        )
        return await _rated(session, memory_id, feedback_id)


def _unknown_memory(workspace: Workspace, memory_id: UUID) -> NotFound:
    return NotFound(f"there is no memory {memory_id} in workspace {workspace.name}")


async def _sent_before(session: Session, memory_id: UUID, key: str, sent: tuple[int, str, str | None]) -> Rated | None:
    known = await store.by_key(session, key)
    if known is None:
        return None
    if known.memory_id != memory_id:
        raise InvalidInput("Idempotency-Key", "was used for another memory; take a new one")
    if (known.rating, known.comment, known.run_id) != sent:
        raise InvalidInput("Idempotency-Key", "was used for another rating of this memory; take a new one")
    return await _rated(session, memory_id, known.feedback_id)


async def undo_rating(database: Database, *, workspace: Workspace, feedback_id: UUID) -> Rated:
    """Take a rating back: an entry of the log says so, and the quality is what the rest replays to. Twice is once.

    Raises:
        NotFound: the workspace has no such rating.
    """
    async with database.session(workspace) as session:
        memory_id = await store.memory_of(session, feedback_id)
        if memory_id is None or not await changes.lock_for_rating(session, memory_id):
            raise NotFound(f"there is no rating {feedback_id} in workspace {workspace.name}")
        standing = {item.feedback_id: item.undone_at for item in await store.ratings_of(session, memory_id)}
        if standing.get(feedback_id) is None:
            await store.append(session, memory_id, undoes=feedback_id)
        return await _rated(session, memory_id, feedback_id)


async def list_ratings(database: Database, *, workspace: Workspace, memory_id: UUID) -> list[Rating]:
    """Returns a memory's ratings in their order, each with when it was undone.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with database.session(workspace, transaction=False) as session:
        found = await store.ratings_of(session, memory_id)
        if not found and not await changes.lock_for_rating(session, memory_id):
            raise _unknown_memory(workspace, memory_id)
    return found


async def _rated(session: Session, memory_id: UUID, feedback_id: UUID) -> Rated:
    quality = await store.set_quality(session, memory_id)
    ratings = {item.feedback_id: item for item in await store.ratings_of(session, memory_id)}
    return Rated(rating=ratings[feedback_id], quality=quality)


def _check(rating: int, comment: str, run_id: str | None, idempotency_key: str | None) -> None:
    if rating not in {-1, 1}:
        raise InvalidInput("rating", "must be 1 or -1")
    if len(comment) > COMMENT_LIMIT:
        raise InvalidInput("comment", f"has more than {COMMENT_LIMIT:,} characters")
    if idempotency_key is not None and not 1 <= len(idempotency_key) <= NAME_LIMIT:
        raise InvalidInput("Idempotency-Key", f"has 1 to {NAME_LIMIT} characters")
    named = () if run_id is None else name_reasons(run_id)
    check((*named, *unstorable({"comment": comment, "Idempotency-Key": idempotency_key or ""})))
