"""The SQL of the queues: memories that are pending for a vector, and those that are pending for links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.db.session import EMBED, LINK, Session

WORDS, VECTORS = "words", "vectors"
"""The steps of linking: by a memory's words at once, by its vector when that is there."""

BATCH = 256
"""Texts embedded between two writes: 5 s of work at most is lost when a worker is killed."""

OWN = "workspace_id = %(workspace_id)s"
THESE = f"{OWN} AND memory_id = ANY(%(ids)s::uuid[])"
"""The condition of given memories of the session's workspace."""
LACKING = """lexical l {joined} WHERE NOT EXISTS (
    SELECT 1 FROM {partition} e WHERE e.workspace_id = l.workspace_id AND e.memory_id = l.memory_id
)"""
"""Live memories of all workspaces that have no vector in a partition."""

QUEUE_FOR_VECTORS = """
INSERT INTO pending_embeddings (workspace_id, memory_id)
SELECT %(workspace_id)s, unnest(%(ids)s::uuid[]) ON CONFLICT DO NOTHING
"""
QUEUE_LACKING = """
INSERT INTO pending_embeddings (workspace_id, memory_id)
SELECT workspace_id, memory_id FROM {lacking} ON CONFLICT DO NOTHING
"""
LEAVE = f"DELETE FROM pending_embeddings WHERE {THESE}"  # noqa: S608 - constants
LEAVE_UNLESS_LIVE = f"{LEAVE} AND memory_id NOT IN (SELECT memory_id FROM lexical WHERE {THESE})"  # noqa: S608 - constants
PENDING_AMONG = f"SELECT memory_id FROM pending_embeddings WHERE {THESE}"  # noqa: S608 - constants
PENDING_TEXTS = """
SELECT workspace_id, memory_id, m.title, m.body, m.content_hash
FROM pending_embeddings p JOIN memories m USING (workspace_id, memory_id)
WHERE {condition} ORDER BY memory_id DESC LIMIT %(limit)s
"""

QUEUE_FOR_LINKS = """
INSERT INTO pending_links AS p (workspace_id, memory_id, step) SELECT DISTINCT {queued} ORDER BY 1, 2
ON CONFLICT (workspace_id, memory_id, step) DO UPDATE SET asked = p.asked + 1
"""
THESE_FOR_LINKS = "%(workspace_id)s::bigint, unnest(%(ids)s::uuid[]), %(step)s"
ALL_FOR_LINKS = "workspace_id, memory_id, %(step)s FROM embeddings JOIN embedding_models USING (model_id) WHERE active"
LEAVE_LINKS = """
DELETE FROM pending_links p USING unnest(%(ids)s::uuid[], %(asked)s::integer[]) AS read(memory_id, asked)
WHERE p.workspace_id = %(workspace_id)s AND p.step = %(step)s AND p.memory_id = read.memory_id AND p.asked = read.asked
RETURNING p.memory_id
"""


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
    """Queue memories for a vector, and ask a worker, in this transaction."""
    if ids:
        await session.execute(QUEUE_FOR_VECTORS, {"ids": list(ids)})
        await session.enqueue(EMBED)


async def leave_queue(session: Session, ids: Sequence[UUID]) -> None:
    """Take memories that have their vector off the queue."""
    await session.execute(LEAVE, {"ids": list(ids)})


async def leave_queue_unless_live(session: Session, ids: Sequence[UUID]) -> None:
    """Take those of these memories off the queue that are retired."""
    await session.execute(LEAVE_UNLESS_LIVE, {"ids": list(ids)})


async def pending_among(session: Session, ids: Sequence[UUID]) -> set[UUID]:
    """Returns those of these memories that are pending for a vector."""
    return set(await session.column(PENDING_AMONG, {"ids": list(ids)}))


async def pending_texts(
    session: Session, *, limit: int, ids: Sequence[UUID] | None = None, of_all: bool = False
) -> list[PendingText]:
    """Returns memories that are pending for a vector, newest first: the workspace's, these of them, or those of all."""
    condition = "true" if of_all else OWN if ids is None else THESE
    rows = await session.rows(PENDING_TEXTS.format(condition=condition), {"limit": limit, "ids": list(ids or ())})
    return [PendingText(**row._asdict()) for row in rows]


async def pending_count(session: Session) -> int:
    """Returns how many memories are pending for a vector, in all workspaces."""
    return int(await session.value("SELECT count(*) FROM pending_embeddings"))


async def queued_count_of_all(session: Session, partition: str) -> int:
    """Returns how many live memories of all workspaces are queued and lack a vector in this partition."""
    lacking = LACKING.format(joined="JOIN pending_embeddings USING (workspace_id, memory_id)", partition=partition)
    return int(await session.value(f"SELECT count(*) FROM {lacking}"))  # noqa: S608 - made of a number


async def queue_lacking_of_all(session: Session, partition: str) -> None:
    """Queue every live memory of all workspaces that lacks a vector in this partition, and ask a worker."""
    await session.execute(QUEUE_LACKING.format(lacking=LACKING.format(joined="", partition=partition)))
    await session.enqueue(EMBED)


async def queue_for_links(session: Session, ids: Sequence[UUID], *, step: str) -> None:
    """Queue these live memories to be linked by their WORDS or VECTORS, and ask a worker, in this transaction.

    Queueing one again while it is being linked has it linked once more.
    """
    if ids:
        await session.execute(QUEUE_FOR_LINKS.format(queued=THESE_FOR_LINKS), {"ids": list(ids), "step": step})
        await session.enqueue(LINK)


async def queue_all_for_links(session: Session) -> None:
    """Queue all memories of all workspaces to be linked by the served model's vectors."""
    await session.execute(QUEUE_FOR_LINKS.format(queued=ALL_FOR_LINKS), {"step": VECTORS})
    await session.enqueue(LINK)


async def leave_links(session: Session, asked: Mapping[UUID, int], *, step: str) -> set[UUID]:
    """Take linked memories off the queue, unless they were queued again since they were read; returns those."""
    given = {"ids": list(asked), "asked": list(asked.values()), "step": step}
    return set(await session.column(LEAVE_LINKS, given))
