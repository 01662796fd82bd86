"""Writes memories that passed the gate, or joins them to those that say the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from app.db.session import Row, Session
from app.errors import DatabaseUnavailable
from app.index import vectors
from app.index.indexing import NewVectors, index_memories, index_words
from app.index.models import StoredModel, active_model
from app.index.pending import pending_among
from app.memories import store
from app.memories.memory import GivenVector, Identity, MemoryRow, NewMemory, in_utc
from app.models.protocols import Matrix

ATTEMPTS = 3
"""Times to find or insert what others insert and retire at the same moment."""
NUMBER = np.dtype("<f4")
"""A number of a given vector."""

T = TypeVar("T")


@dataclass(slots=True)
class Counts:
    """The numbers of memories so far, by what became of them."""

    stored: int = 0
    updated: int = 0
    unchanged: int = 0

    def add(self, other: "Counts") -> None:
        """Add the numbers of others."""
        self.stored += other.stored
        self.updated += other.updated
        self.unchanged += other.unchanged


async def write(
    session: Session, rows: Sequence[MemoryRow], counts: Counts, *, known_first: bool = False
) -> list[UUID]:
    """Store memories or find those that they are already; returns the id of each. Counts what became of them.

    What is given twice is stored once, and then given again.
    """
    ids: dict[Identity, UUID] = {}
    parts = _each_once(rows)
    for part in parts:
        ids |= await _write(session, part, counts, known_first=known_first)
    counts.unchanged += len(rows) - sum(map(len, parts))
    return [ids[row.identity] for row in rows]


def _each_once(rows: Sequence[MemoryRow]) -> list[list[MemoryRow]]:
    """Returns the rows in parts, of which none has an identity twice; without those that repeat the one before."""
    given: dict[Identity, list[MemoryRow]] = {}
    for row in rows:
        same = given.setdefault(row.identity, [])
        if not same or same[-1].memory != row.memory:
            same.append(row)
    return [[row for row in part if row is not None] for part in zip_longest(*given.values())]


async def _write(
    session: Session, rows: Sequence[MemoryRow], counts: Counts, *, known_first: bool
) -> dict[Identity, UUID]:
    known, fresh = await _found_or_inserted(session, rows)
    ids = {identity: row.memory_id for identity, row in (known | fresh).items()}
    again = [(known[row.identity], row) for row in rows if row.identity in known]
    await store.note_runs(session, {of.memory_id: row for of, row in again})
    updated = await _update(session, rows, known, known_first=known_first)
    updated |= await _merge_observations(session, again, known_first=known_first)
    if fresh:
        inserted = list(fresh.values())
        await store.insert_observations(session, inserted)
        model = await _model_of(session, inserted)
        given = None if model is None else _new_vectors(model, inserted)
        await index_memories(session, sorted(row.memory_id for row in inserted), given)
    await _complete(session, [row for _, row in again], ids)
    counts.add(Counts(len(fresh), len(updated), len(rows) - len(fresh) - len(updated)))
    return ids


async def _found_or_inserted(
    session: Session, rows: Sequence[MemoryRow]
) -> tuple[dict[Identity, Row], dict[Identity, MemoryRow]]:
    """Returns the live memories that these rows are already, and the rows that have become memories."""
    known = await store.find_known(session, rows)
    fresh: dict[Identity, MemoryRow] = {}
    for _ in range(ATTEMPTS):
        lacking = {row.identity: row for row in rows if row.identity not in known and row.identity not in fresh}
        if not lacking:
            return known, fresh
        inserted = await store.insert(session, list(lacking.values()))
        fresh |= {identity: row for identity, row in lacking.items() if row.memory_id in inserted}
        # What was not inserted somebody else has inserted, and may have retired since.
        others = [row for row in lacking.values() if row.memory_id not in inserted]
        known |= await store.find_known(session, others) if others else {}
    raise DatabaseUnavailable("others store and retire the same memories at this moment; try again")


async def _update(
    session: Session, rows: Sequence[MemoryRow], known: Mapping[Identity, Row], *, known_first: bool
) -> set[UUID]:
    """Update known memories by what is given now; returns those that have changed."""
    changed = _changed(rows, known, known_first=known_first)
    if not changed:
        return set()
    # Read again under their locks: another writer may have given them something in between.
    await store.lock(session, [row.memory_id for row in changed])
    changed = _changed(rows, await store.find_known(session, changed), known_first=known_first)
    await store.update(session, changed)
    await index_words(session, [row.memory_id for row in changed])
    return {row.memory_id for row in changed}


async def _merge_observations(
    session: Session, again: Sequence[tuple[Row, MemoryRow]], *, known_first: bool
) -> set[UUID]:
    """Merge the fields that known memories have as observations; returns those that have changed."""
    changed: set[UUID] = set()
    for first in (True, False):
        rows = {
            known.memory_id: row for known, row in again if _goes_first(known, row, known_first=known_first) is first
        }
        changed |= await store.merge_observations(session, rows, known_first=first)
    return changed


def _changed(rows: Sequence[MemoryRow], known: Mapping[Identity, Row], *, known_first: bool) -> list[MemoryRow]:
    """Returns the rows of known memories that become another by what is given now."""
    joined = (_joined(row, known[row.identity], known_first=known_first) for row in rows if row.identity in known)
    return [row for row in joined if row is not None]


def _joined(row: MemoryRow, known: Row, *, known_first: bool) -> MemoryRow | None:
    """Returns a stored memory, under its own id, as it becomes when it is given again; None where nothing changes.

    Nothing is lost: tags and metadata come together, the run that first said it stays, and what is not given now is
    kept. A score and a date are replaced by new ones, unless what is known goes first.
    """
    given = row.memory
    known_first = _goes_first(known, row, known_first=known_first)
    memory = replace(
        given,
        tags=tuple(dict.fromkeys((*known.tags, *given.tags))),
        metadata={**given.metadata, **known.metadata} if known_first else {**known.metadata, **given.metadata},
        run_id=known.run_id or given.run_id,
        final_score=_first(given.final_score, known.final_score, known_first),
        occurred_at=_first(given.occurred_at, known.occurred_at, known_first),
    )
    if _changeable(memory) == _changeable(known):
        return None
    return replace(row, memory_id=known.memory_id, memory=memory)


def _goes_first(known: Row, row: MemoryRow, *, known_first: bool) -> bool:
    """Returns whether what is known goes before what is given: where the caller says so, or another run that was not
    judged better says the same. Of several runs the best judged one speaks."""
    if known_first or not known.run_id or row.memory.run_id in {None, known.run_id}:
        return known_first
    return row.memory.final_score is None or row.memory.final_score <= (known.final_score or 0.0)


def _first(given: T | None, known: T | None, known_first: bool) -> T | None:  # noqa: FBT001 - of the caller's
    one, other = (known, given) if known_first else (given, known)
    return other if one is None else one


def _changeable(memory: "NewMemory | Row") -> tuple[Any, ...]:
    score = None if memory.final_score is None else round(memory.final_score, 4)
    moment = None if memory.occurred_at is None else in_utc(memory.occurred_at)
    return tuple(memory.tags), dict(memory.metadata), memory.run_id, score, moment


async def _complete(session: Session, rows: Sequence[MemoryRow], ids: Mapping[Identity, UUID]) -> None:
    """Gives known memories that are still pending for a vector the one that was given now."""
    model = await _model_of(session, rows)
    if model is None:
        return
    known = {ids[row.identity]: row.memory.embedding for row in rows if row.memory.embedding is not None}
    lacking = await pending_among(session, list(known))
    ready = {memory_id: vector for memory_id, vector in known.items() if memory_id in lacking}
    if ready:
        literals = vectors.as_literals(_as_matrix(list(ready.values())))
        await vectors.write(session, model, list(ready), literals)


async def _model_of(session: Session, rows: Sequence[MemoryRow]) -> StoredModel | None:
    """Returns the model of the vectors given with these memories; None where there are none, or it is not served."""
    names = {row.memory.embedding.model for row in rows if row.memory.embedding is not None}
    model = await active_model(session, held=True) if names else None
    return model if model is not None and names == {model.name} else None


def _new_vectors(model: StoredModel, rows: Sequence[MemoryRow]) -> NewVectors:
    given = {row.memory_id: row.memory.embedding for row in rows if row.memory.embedding is not None}
    return NewVectors(model, list(given), _as_matrix(list(given.values())))


def _as_matrix(given: Sequence[GivenVector]) -> Matrix:
    """Returns checked vectors as rows of unit length."""
    rows = np.stack([np.frombuffer(item.numbers, NUMBER) for item in given]).astype(np.float64)
    # Divided by the largest first, so that no square is beyond a number.
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)
