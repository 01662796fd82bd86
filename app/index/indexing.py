"""Indexes stored memories: by their words at once, by their meaning when they have a vector."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.db.queue import EMBED, INDEX, STATISTICS
from app.db.session import Session
from app.index import lexical as lexical_index
from app.index import vectors
from app.index.models import StoredModel, active_model
from app.index.pending import VECTORS, pending_among, queue_for_links, queue_for_vectors
from app.links import store as links
from app.memories.gate import INVALID, Objection, Screened
from app.memories.memory import GivenVector, Identity, MemoryRow
from app.models.protocols import Matrix

NUMBER = np.dtype("<f4")


def checked(batch: Sequence[Screened], model: StoredModel | None) -> list[Screened]:
    """Returns the batch, with an objection to each memory whose vector cannot be compared with those of `model`."""
    return [_checked(item, model) for item in batch]


def _checked(item: Screened, model: StoredModel | None) -> Screened:
    given = item.memory.embedding
    if given is None or item.objection is not None:
        return item
    reason = _reason(given, model)
    return item if reason is None else replace(item, objection=Objection(message=f"embedding.{reason}", code=INVALID))


def _reason(given: GivenVector, model: StoredModel | None) -> str | None:
    if model is None:
        return "model: no model's vectors are served, so none are taken; leave the embedding out"
    if given.model != model.name:
        return f"model: is not {model.name}, whose vectors are served; embed by that model, or leave the embedding out"
    if len(given.numbers) != model.dimension * NUMBER.itemsize:
        found = len(given.numbers) / NUMBER.itemsize
        return f"vector: has {found:g} numbers; {model.name} has {model.dimension}"
    numbers = np.frombuffer(given.numbers, NUMBER)
    if not np.isfinite(numbers).all() or not numbers.any():
        return "vector: has no direction: every number must be finite, and one at least not zero"
    return None


def as_matrix(given: Sequence[GivenVector]) -> Matrix:
    """Returns checked vectors as rows of unit length."""
    rows = np.stack([np.frombuffer(item.numbers, NUMBER) for item in given]).astype(np.float64)
    # Divided by the largest first, so that no square is beyond a number.
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


class Given(NamedTuple):
    """Vectors that were given with memories."""

    model: StoredModel
    """The served model, which made them."""
    vectors: dict[UUID, GivenVector]


async def index_memories(session: Session, ids: Sequence[UUID], given: Given | None = None) -> None:
    """Index new live memories by their words, and by the vectors that were given with them, if any.

    A worker is asked for the vectors of the others, and for fresh statistics.
    """
    await lexical_index.index(session, ids)
    if given is not None:
        await _write_new(session, given)
    lacking = ids if given is None else [memory_id for memory_id in ids if memory_id not in given.vectors]
    if lacking:
        await queue_for_vectors(session, lacking)
        await session.enqueue(EMBED)
    await enqueue_statistics(session)


async def _write_new(session: Session, given: Given) -> None:
    """Store the vectors of memories that this transaction has made."""
    ids, matrix = list(given.vectors), as_matrix(list(given.vectors.values()))
    await vectors.insert_new(session, given.model, ids, matrix)
    await queue_for_links(session, ids, step=VECTORS)
    await session.enqueue(INDEX)


async def complete(session: Session, rows: Sequence[MemoryRow], ids: Mapping[Identity, UUID]) -> None:
    """Give known memories that are still pending for a vector the one that was given now."""
    given = await given_with(session, rows)
    if given is None:
        return
    known = {ids[row.identity]: row.memory.embedding for row in rows if row.memory.embedding is not None}
    lacking = await pending_among(session, list(known))
    ready = {memory_id: vector for memory_id, vector in known.items() if memory_id in lacking}
    if ready:
        literals = vectors.as_literals(as_matrix(list(ready.values())))
        await vectors.write(session, given.model, list(ready), literals)


async def given_with(session: Session, rows: Sequence[MemoryRow]) -> Given | None:
    """Returns the vectors given with these memories; None where there are none, or another model is served by now."""
    given = {row.memory_id: row.memory.embedding for row in rows if row.memory.embedding is not None}
    model = await active_model(session, held=True) if given else None
    if model is None or any(item.model != model.name for item in given.values()):
        return None
    return Given(model, given)


async def reindex_memories(session: Session, ids: Sequence[UUID]) -> None:
    """Index live memories whose text has changed: no vector and no link of the earlier text stays."""
    await vectors.drop(session, ids)
    await index_memories(session, ids)
    await links.forget_found(session, ids)


async def enqueue_statistics(session: Session) -> None:
    """Ask a worker to take the workspace's lexical statistics anew, should they have become stale."""
    await session.enqueue(STATISTICS, lock=f"{STATISTICS}:{session.workspace_id}", workspace_id=session.workspace_id)
