"""Writes memories that passed the gate: inserts and indexes new ones, and updates known ones of the same identity."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import numpy as np
from msgspec import structs

from app.errors import DatabaseUnavailable
from app.foundation.db.session import Row, Session
from app.foundation.models.protocols import Matrix
from app.storage.index import vectors
from app.storage.index.indexing import index_memories, index_words, pending_among
from app.storage.index.models import StoredModel, active_model
from app.storage.index.vectors import PassageVector
from app.storage.memories import store
from app.storage.memories.memory import GivenVector, Identity, MemoryRow, NewMemory, in_utc

_ATTEMPTS = 3
"""Attempts to find or insert memories that other writers insert and retire at the same moment."""
NUMBER = np.dtype("<f4")
"""Type of a number in a given vector."""


class RunTraces(Protocol):
    """Notes which runs state and use memories, in the transaction that changes the memories.

    `intake.runs.observations.store` does.
    """

    async def note_joined(self, session: Session, rows: Mapping[UUID, MemoryRow]) -> None:
        """Notes the runs of these rows, which repeat known memories (by id), before these memories change."""

    async def note_uses(self, session: Session, run_id: str, ids: Collection[UUID]) -> None:
        """Notes that a run's text repeats these memories, which the run was given."""


class Written(NamedTuple):
    """The outcome of a batch that was written."""

    ids: list[UUID]
    """One id for each given memory, in their order."""
    counts: Counter[str]
    """The numbers of memories that are `stored`, `updated` and `unchanged`."""


def traces_of(runs: RunTraces | None) -> RunTraces:
    """Returns `runs`; raises an error if it is None, because memories that name runs need it."""
    if runs is None:
        raise TypeError("memories that name runs are stored with `runs`, which notes them")
    return runs


async def write(
    session: Session, rows: Sequence[MemoryRow], *, runs: RunTraces | None = None, known_first: bool = False
) -> Written:
    """Stores memories, or update the known ones of the same identity.

    A memory that is given twice is stored once, and updated by the differences of the second one. `runs` is needed if
    observations name runs.
    """
    ids: dict[Identity, UUID] = {}
    parts, counts = _each_once(rows), Counter[str]()
    for part in parts:
        ids |= await _write(session, part, counts, runs=runs, known_first=known_first)
    counts["unchanged"] += len(rows) - sum(map(len, parts))
    return Written([ids[row.identity] for row in rows], counts)


def _each_once(rows: Sequence[MemoryRow]) -> list[list[MemoryRow]]:
    """Returns the rows in parts, each without a repeated identity; leaves out rows equal to the one before."""
    given: dict[Identity, list[MemoryRow]] = {}
    for row in rows:
        same = given.setdefault(row.identity, [])
        if not same or same[-1].memory != row.memory:
            same.append(row)
    return [[row for row in part if row is not None] for part in zip_longest(*given.values())]


async def _write(
    session: Session, rows: Sequence[MemoryRow], counts: Counter[str], *, runs: RunTraces | None, known_first: bool
) -> dict[Identity, UUID]:
    known, fresh = await _found_or_inserted(session, rows)
    again = [(known[row.identity], row) for row in rows if row.identity in known]
    of_runs = {of.memory_id: row for of, row in again if None not in (row.memory.run_id, row.memory.observation)}
    if of_runs:
        await traces_of(runs).note_joined(session, of_runs)
    updated = await _update(session, rows, known, known_first=known_first)
    merged = await _merge_observations(session, again, known_first=known_first)
    await index_words(session, sorted(merged))
    updated |= merged
    model = await _served_model(session, rows)
    if fresh:
        inserted = sorted(fresh.values(), key=lambda row: row.memory_id)
        await store.merge_observations(session, {row.memory_id: row for row in inserted}, known_first=known_first)
        given = {} if model is None else _vectors_of((row.memory_id, row) for row in inserted)
        await index_memories(session, [row.memory_id for row in inserted], embedded=given)
        if model is not None and given:
            await vectors.insert_new(session, model, list(given), _as_matrix(given.values()))
    await _add_missing_vectors(session, model, again)
    counts.update(stored=len(fresh), updated=len(updated), unchanged=len(rows) - len(fresh) - len(updated))
    return {identity: row.memory_id for identity, row in (known | fresh).items()}


async def _found_or_inserted(
    session: Session, rows: Sequence[MemoryRow]
) -> tuple[dict[Identity, Row], dict[Identity, MemoryRow]]:
    """Returns the known live memories of these identities, and the rows that were inserted."""
    known = await store.find_known(session, rows)
    fresh: dict[Identity, MemoryRow] = {}
    for _ in range(_ATTEMPTS):
        lacking = {row.identity: row for row in rows if row.identity not in known and row.identity not in fresh}
        if not lacking:
            return known, fresh
        inserted = await store.insert(session, list(lacking.values()))
        fresh |= {identity: row for identity, row in lacking.items() if row.memory_id in inserted}
        # Another writer has inserted the others, and may have retired them since.
        others = [row for row in lacking.values() if row.memory_id not in inserted]
        known |= await store.find_known(session, others) if others else {}
    raise DatabaseUnavailable("others store and retire the same memories at this moment; try again")


async def _update(
    session: Session, rows: Sequence[MemoryRow], known: Mapping[Identity, Row], *, known_first: bool
) -> set[UUID]:
    """Updates known memories; returns the changed ones."""
    changed = _changed_rows(rows, known, known_first=known_first)
    if not changed:
        return set()
    # Read again under their locks: another writer may have changed them in between.
    await store.lock(session, [row.memory_id for row in changed])
    changed = _changed_rows(rows, await store.find_known(session, changed), known_first=known_first)
    await store.update(session, changed)
    await index_words(session, [row.memory_id for row in changed])
    return {row.memory_id for row in changed}


async def _merge_observations(
    session: Session, again: Sequence[tuple[Row, MemoryRow]], *, known_first: bool
) -> set[UUID]:
    """Merges the given observation fields into known memories; returns the changed ones."""
    changed: set[UUID] = set()
    for first in (True, False):
        rows = {
            known.memory_id: row for known, row in again if _goes_first(known, row, known_first=known_first) is first
        }
        changed |= await store.merge_observations(session, rows, known_first=first)
    return changed


def _changed_rows(rows: Sequence[MemoryRow], known: Mapping[Identity, Row], *, known_first: bool) -> list[MemoryRow]:
    """Returns the rows that change known memories."""
    joined = (_joined_row(row, known[row.identity], known_first=known_first) for row in rows if row.identity in known)
    return [row for row in joined if row is not None]


def _joined_row(row: MemoryRow, known: Row, *, known_first: bool) -> MemoryRow | None:
    """Returns the row that updates a known memory, with its id; None if the memory does not change.

    Nothing is lost: tags and metadata are united, the first run stays, and a field that is not given keeps its value. A
    given score or date replaces the known one, unless the known values are kept.
    """
    given = row.memory
    first, other = (known, given) if _goes_first(known, row, known_first=known_first) else (given, known)
    memory = structs.replace(
        given,
        tags=tuple(dict.fromkeys((*known.tags, *given.tags))),
        metadata={**other.metadata, **first.metadata},
        run_id=known.run_id or given.run_id,
        final_score=other.final_score if first.final_score is None else first.final_score,
        occurred_at=other.occurred_at if first.occurred_at is None else first.occurred_at,
    )
    # What is found in the given tags, metadata and details adds to what was found before.
    findings = tuple(known.findings or ())
    findings += tuple(finding for finding in row.findings if finding not in findings)
    if _changeable(memory) == _changeable(known) and len(findings) == len(known.findings or ()):
        return None
    return replace(row, memory_id=known.memory_id, memory=memory, findings=findings)


def _goes_first(known: Row, row: MemoryRow, *, known_first: bool) -> bool:
    """Returns whether the known values are kept: with `known_first`, or if another run gives the same text without a
    better score."""
    if known_first or not known.run_id or row.memory.run_id in {None, known.run_id}:
        return known_first
    return row.memory.final_score is None or row.memory.final_score <= (known.final_score or 0.0)


def _changeable(memory: "NewMemory | Row") -> tuple[Any, ...]:
    score = None if memory.final_score is None else round(memory.final_score, 4)
    moment = None if memory.occurred_at is None else in_utc(memory.occurred_at)
    return tuple(memory.tags), dict(memory.metadata), memory.run_id, score, moment


async def _served_model(session: Session, rows: Sequence[MemoryRow]) -> StoredModel | None:
    """Returns the model of the vectors given with these memories; None if there are none, or it is not served."""
    names = {row.memory.embedding.model for row in rows if row.memory.embedding is not None}
    model = await active_model(session, held=True) if names else None
    return model if model is not None and names == {model.name} else None


def _vectors_of(rows: Iterable[tuple[UUID, MemoryRow]]) -> dict[UUID, GivenVector]:
    return {memory_id: row.memory.embedding for memory_id, row in rows if row.memory.embedding is not None}


async def _add_missing_vectors(
    session: Session, model: StoredModel | None, again: Sequence[tuple[Row, MemoryRow]]
) -> None:
    """Stores the given vectors of known memories that are still pending for one."""
    given = {} if model is None else _vectors_of((known.memory_id, row) for known, row in again)
    lacking = await pending_among(session, list(given)) if given else ()
    if model is not None and lacking:
        literals = vectors.as_literals(_as_matrix([given[memory_id] for memory_id in lacking]))
        found = {memory_id: [PassageVector(literal)] for memory_id, literal in zip(lacking, literals, strict=True)}
        await vectors.write(session, model, found)


def _as_matrix(given: Iterable[GivenVector]) -> Matrix:
    """Returns checked vectors as rows of unit length."""
    rows = np.stack([np.frombuffer(item.numbers, NUMBER) for item in given]).astype(np.float64)
    # Divided by the largest number first, so that no square overflows.
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)
