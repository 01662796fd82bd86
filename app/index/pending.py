"""The SQL of the queues: memories that are pending for a vector, and those that are pending for links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.db.session import LINK, Session

WORDS, VECTORS = "words", "vectors"
"""The steps of linking: by a memory's words at once, by its vector when that is there."""

QUEUE_FOR_VECTORS = """
INSERT INTO pending_embeddings (workspace_id, memory_id)
SELECT %(workspace_id)s, unnest(%(ids)s::uuid[]) ON CONFLICT DO NOTHING
"""
LEAVE = """
DELETE FROM pending_embeddings WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""
LEAVE_UNLESS_LIVE = """
DELETE FROM pending_embeddings p WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
    AND NOT EXISTS (
        SELECT 1 FROM lexical l WHERE l.workspace_id = p.workspace_id AND l.memory_id = p.memory_id
    )
"""
PENDING_AMONG = """
SELECT memory_id FROM pending_embeddings WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""
PENDING_TEXTS = """
SELECT workspace_id, memory_id, m.title, m.body, m.content_hash
FROM pending_embeddings p JOIN memories m USING (workspace_id, memory_id)
{clause} ORDER BY memory_id DESC LIMIT %(limit)s
"""
OF_WORKSPACE = "WHERE p.workspace_id = %(workspace_id)s"
AMONG = f"{OF_WORKSPACE} AND p.memory_id = ANY(%(ids)s::uuid[])"

QUEUE_FOR_LINKS = """
INSERT INTO pending_links AS p (workspace_id, memory_id, step)
SELECT DISTINCT %(workspace_id)s, memory_id, %(step)s FROM unnest(%(ids)s::uuid[]) AS given(memory_id) ORDER BY 2
ON CONFLICT (workspace_id, memory_id, step) DO UPDATE SET asked = p.asked + 1
"""
QUEUE_ALL_FOR_LINKS = """
INSERT INTO pending_links AS p (workspace_id, memory_id, step)
SELECT e.workspace_id, e.memory_id, %(step)s FROM embeddings e JOIN embedding_models m USING (model_id)
WHERE m.active ORDER BY e.workspace_id, e.memory_id
ON CONFLICT (workspace_id, memory_id, step) DO UPDATE SET asked = p.asked + 1
"""
LEAVE_LINKS = """
DELETE FROM pending_links p USING unnest(%(ids)s::uuid[], %(asked)s::integer[]) AS read(memory_id, asked)
WHERE p.workspace_id = %(workspace_id)s AND p.step = %(step)s AND p.memory_id = read.memory_id AND p.asked = read.asked
RETURNING p.memory_id
"""
FORGET = tuple(
    f"DELETE FROM {table} WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])"  # noqa: S608 - constants
    for table in ("pending_links", "pending_embeddings")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingText:
    """A memory that has no vector yet, and the text that is to be embedded."""

    workspace_id: int
    memory_id: UUID
    title: str
    body: str
    content_hash: bytes
    """The text's, which may have become another when its vector comes."""


async def queue_for_vectors(session: Session, ids: Sequence[UUID]) -> None:
    """Queue memories for a vector."""
    await session.execute(QUEUE_FOR_VECTORS, {"ids": list(ids)})


async def leave_queue(session: Session, ids: Sequence[UUID]) -> None:
    """Take memories that have their vector off the queue."""
    await session.execute(LEAVE, {"ids": list(ids)})


async def leave_queue_unless_live(session: Session, ids: Sequence[UUID]) -> None:
    """Take those of these memories off the queue that are retired."""
    await session.execute(LEAVE_UNLESS_LIVE, {"ids": list(ids)})


async def pending_among(session: Session, ids: Sequence[UUID]) -> set[UUID]:
    """Returns those of these memories that are pending for a vector."""
    return set(await session.column(PENDING_AMONG, {"ids": list(ids)}))


async def pending_texts(session: Session, *, limit: int, ids: Sequence[UUID] | None = None) -> list[PendingText]:
    """Returns memories of the workspace that are pending for a vector, newest first; only these ids where given."""
    if ids is None:
        return await _texts(session, OF_WORKSPACE, {"limit": limit})
    return await _texts(session, AMONG, {"limit": limit, "ids": list(ids)})


async def pending_texts_of_all(session: Session, *, limit: int) -> list[PendingText]:
    """Returns memories of all workspaces that are pending for a vector, newest first."""
    return await _texts(session, "", {"limit": limit})


async def _texts(session: Session, clause: str, given: dict[str, object]) -> list[PendingText]:
    rows = await session.rows(PENDING_TEXTS.format(clause=clause), given)
    return [PendingText(**row._asdict()) for row in rows]


async def pending_count(session: Session) -> int:
    """Returns how many memories are pending for a vector, in all workspaces."""
    return int(await session.value("SELECT count(*) FROM pending_embeddings"))


async def queued_count_of_all(session: Session, partition: str) -> int:
    """Returns how many live memories of all workspaces are queued and lack a vector in this partition."""
    statement = f"""
        SELECT count(*) FROM pending_embeddings p JOIN lexical l USING (workspace_id, memory_id) WHERE NOT EXISTS (
            SELECT 1 FROM {partition} e WHERE e.workspace_id = p.workspace_id AND e.memory_id = p.memory_id
        )
        """  # noqa: S608 - the partition's name is made of a number
    return int(await session.value(statement))


async def queue_lacking_of_all(session: Session, partition: str) -> None:
    """Queue every live memory of all workspaces that lacks a vector in this partition."""
    await session.execute(
        f"""
        INSERT INTO pending_embeddings (workspace_id, memory_id)
        SELECT workspace_id, memory_id FROM lexical l WHERE NOT EXISTS (
            SELECT 1 FROM {partition} e WHERE e.workspace_id = l.workspace_id AND e.memory_id = l.memory_id
        ) ON CONFLICT DO NOTHING
        """  # noqa: S608 - the partition's name is made of a number
    )


async def queue_for_links(session: Session, ids: Sequence[UUID], *, step: str) -> None:
    """Queue these live memories to be linked by their WORDS or VECTORS, and ask a worker, in this transaction.

    Queueing one again while it is being linked has it linked once more.
    """
    if ids:
        await session.execute(QUEUE_FOR_LINKS, {"ids": list(ids), "step": step})
        await session.enqueue(LINK)


async def queue_all_for_links(session: Session) -> None:
    """Queue all memories of all workspaces to be linked by the served model's vectors."""
    await session.execute(QUEUE_ALL_FOR_LINKS, {"step": VECTORS})
    await session.enqueue(LINK)


async def leave_links(session: Session, asked: Mapping[UUID, int], *, step: str) -> set[UUID]:
    """Take linked memories off the queue, unless they were queued again since they were read; returns those."""
    given = {"ids": list(asked), "asked": list(asked.values()), "step": step}
    return set(await session.column(LEAVE_LINKS, given))


async def forget(session: Session, ids: Sequence[UUID]) -> None:
    """Take retired memories off both queues."""
    for statement in FORGET:
        await session.execute(statement, {"ids": list(ids)})
