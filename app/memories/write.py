"""Memories that passed the gate are written, or joined to those that say the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import DatabaseUnavailable
from app.index import lexical as lexical_index
from app.index.indexing import came_with, complete, make_findable
from app.memories import observations as details
from app.memories import store
from app.memories.store import Identity, MemoryRow, goes_first
from app.workspaces.workspace import Workspace

ATTEMPTS = 3
"""To find or insert what others insert and retire at the same moment."""


@dataclass(slots=True)
class Counts:
    """What became of memories so far."""

    stored: int = 0
    updated: int = 0
    unchanged: int = 0

    def add(self, other: "Counts") -> None:
        """Count what became of others as well."""
        self.stored += other.stored
        self.updated += other.updated
        self.unchanged += other.unchanged


async def write(
    connection: AsyncConnection,
    target: Workspace,
    rows: Sequence[MemoryRow],
    counts: Counts,
    *,
    known_first: bool = False,
) -> list[UUID]:
    """Store memories or find those that they are already; the id of each. Counts what became of them.

    What is given twice is stored once, and then given again.
    """
    ids: dict[Identity, UUID] = {}
    parts = _each_once(rows)
    for part in parts:
        ids |= await _write(connection, target, part, counts, known_first=known_first)
    counts.unchanged += len(rows) - sum(map(len, parts))
    return [ids[row.identity] for row in rows]


def _each_once(rows: Sequence[MemoryRow]) -> list[list[MemoryRow]]:
    """The rows in parts, of which none has an identity twice; without those that say what was just said."""
    given: dict[Identity, list[MemoryRow]] = {}
    for row in rows:
        same = given.setdefault(row.identity, [])
        if not same or same[-1].memory != row.memory:
            same.append(row)
    return [[row for row in part if row is not None] for part in zip_longest(*given.values())]


async def _write(
    connection: AsyncConnection, target: Workspace, rows: Sequence[MemoryRow], counts: Counts, *, known_first: bool
) -> dict[Identity, UUID]:
    workspace_id = target.workspace_id
    known, fresh = await _found_or_inserted(connection, workspace_id, rows)
    ids = {identity: row.memory_id for identity, row in (known | fresh).items()}
    inserted = [row.memory_id for row in fresh.values()]
    again = [(known[row.identity], row) for row in rows if row.identity in known]
    await details.note_runs(connection, workspace_id, {of.memory_id: row for of, row in again})
    changed = _changed(rows, known, known_first=known_first)
    if changed:
        # Read again under their locks: another writer may have given them something in between.
        await store.lock(connection, workspace_id, [row.memory_id for row in changed])
        changed = _changed(rows, await store.find_known(connection, workspace_id, changed), known_first=known_first)
        await store.update(connection, workspace_id, changed)
        await lexical_index.index(connection, workspace_id, [row.memory_id for row in changed])
    detailed = await _detailed(connection, workspace_id, again, known_first=known_first)
    if inserted:
        await details.insert_observations(connection, workspace_id, list(fresh.values()))
        came = await came_with(connection, list(fresh.values()))
        await make_findable(connection, workspace_id, sorted(row.memory_id for row in fresh.values()), came)
    await complete(connection, workspace_id, [row for _, row in again], ids)
    counts.stored += len(inserted)
    updated = detailed | {row.memory_id for row in changed}
    counts.updated += len(updated)
    counts.unchanged += len(rows) - len(inserted) - len(updated)
    return ids


async def _detailed(
    connection: AsyncConnection, workspace_id: int, again: Sequence[tuple[Row[Any], MemoryRow]], *, known_first: bool
) -> set[UUID]:
    """The known memories whose details as observations have changed."""
    changed: set[UUID] = set()
    for first in (True, False):
        rows = {
            known.memory_id: row for known, row in again if goes_first(known, row, known_first=known_first) is first
        }
        changed |= await details.merge_observations(connection, workspace_id, rows, known_first=first)
    return changed


async def _found_or_inserted(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]
) -> tuple[dict[Identity, Row[Any]], dict[Identity, MemoryRow]]:
    """The live memories that these rows are already, and those that they have become."""
    known = await store.find_known(connection, workspace_id, rows)
    fresh: dict[Identity, MemoryRow] = {}
    for _ in range(ATTEMPTS):
        lacking = {row.identity: row for row in rows if row.identity not in known and row.identity not in fresh}
        if not lacking:
            return known, fresh
        inserted = await store.insert(connection, workspace_id, list(lacking.values()))
        fresh |= {identity: row for identity, row in lacking.items() if row.memory_id in inserted}
        # What was not inserted somebody else has inserted, and may have retired since.
        others = [row for row in lacking.values() if row.memory_id not in inserted]
        known |= await store.find_known(connection, workspace_id, others) if others else {}
    raise DatabaseUnavailable("others store and retire the same memories at this moment; try again")


def _changed(rows: Sequence[MemoryRow], known: Mapping[Identity, Row[Any]], *, known_first: bool) -> list[MemoryRow]:
    """What known memories become."""
    joined = (store.joined(row, known[row.identity], known_first=known_first) for row in rows if row.identity in known)
    return [row for row in joined if row is not None]
