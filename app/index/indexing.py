"""What makes stored memories findable: by their words at once, by their meaning when they have a vector."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import numpy as np
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.queue import EMBED, INDEX, STATISTICS, enqueue
from app.index import lexical as lexical_index
from app.index import vectors
from app.index.copying import copy_new
from app.index.pending import VECTORS, wait_for_links
from app.index.vectors import StoredModel
from app.links import store as links
from app.memories.gate import INVALID, Objection, Screened
from app.memories.memory import GivenVector
from app.memories.store import Identity, MemoryRow
from app.models.protocols import Matrix

NUMBER = np.dtype("<f4")


def checked(batch: Sequence[Screened], model: StoredModel | None) -> list[Screened]:
    """The batch, with an objection to each memory whose vector cannot be compared with those of `model`."""
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
    """Checked vectors as rows of unit length."""
    rows = np.stack([np.frombuffer(item.numbers, NUMBER) for item in given]).astype(np.float64)
    # Divided by the largest first, so that no square is beyond a number.
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


class Came(NamedTuple):
    """Vectors that came with memories."""

    model: StoredModel
    """The one that is served and made them."""
    vectors: dict[UUID, GivenVector]


async def make_findable(
    connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], came: Came | None = None
) -> None:
    """Index new live memories by their words, and by the vectors that came with them, if any; ask a worker for the
    vectors of the others and for fresh statistics."""
    await lexical_index.index(connection, workspace_id, ids)
    if came is not None:
        await _write_new(connection, workspace_id, came)
    lacking = ids if came is None else [memory_id for memory_id in ids if memory_id not in came.vectors]
    if lacking:
        await vectors.wait_for_vectors(connection, workspace_id, lacking)
        await enqueue(connection, EMBED)
    await enqueue_statistics(connection, workspace_id)


async def _write_new(connection: AsyncConnection, workspace_id: int, came: Came) -> None:
    """The vectors of memories that this transaction has made."""
    ids, matrix = list(came.vectors), as_matrix(list(came.vectors.values()))
    await copy_new(connection, came.model, workspace_id, ids, matrix)
    await wait_for_links(connection, workspace_id, ids, step=VECTORS)
    await enqueue(connection, INDEX)


async def complete(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow], ids: Mapping[Identity, UUID]
) -> None:
    """Known memories that still wait for a vector get the one that came now."""
    came = await came_with(connection, rows)
    if came is None:
        return
    given = {ids[row.identity]: row.memory.embedding for row in rows if row.memory.embedding is not None}
    lacking = await vectors.lacking_among(connection, workspace_id, list(given))
    ready = {memory_id: vector for memory_id, vector in given.items() if memory_id in lacking}
    if ready:
        literals = vectors.as_literals(as_matrix(list(ready.values())))
        await vectors.write(connection, came.model, workspace_id, list(ready), literals)


async def came_with(connection: AsyncConnection, rows: Sequence[MemoryRow]) -> Came | None:
    """The vectors that came with these; None where none came, or the store has moved to another model meanwhile."""
    given = {row.memory_id: row.memory.embedding for row in rows if row.memory.embedding is not None}
    model = await vectors.active_model(connection, held=True) if given else None
    if model is None or any(item.model != model.name for item in given.values()):
        return None
    return Came(model, given)


async def make_findable_anew(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """The same for live memories whose text has changed: no vector and no link of what they said before stays."""
    await vectors.drop(connection, workspace_id, ids)
    await make_findable(connection, workspace_id, ids)
    await links.forget_found(connection, workspace_id, ids)


async def enqueue_statistics(connection: AsyncConnection, workspace_id: int) -> None:
    """Ask a worker to take the workspace's lexical statistics anew, should they have become stale."""
    await enqueue(connection, STATISTICS, lock=f"{STATISTICS}:{workspace_id}", workspace_id=workspace_id)
