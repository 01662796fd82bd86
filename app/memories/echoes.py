"""What a run was given and says again: not new knowledge, but a use of the memory that it came from."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.memories.gate import ECHO, Given, echo_of
from app.memories.screening import Objection, Screened
from app.workspaces import store as workspaces

MOST_GIVEN = 500
"""Memories of one run that are looked at; a run is given a few dozen."""

GIVEN = text("""
SELECT DISTINCT r.run_id, m.memory_id, m.title, m.body
FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id) JOIN memories m USING (workspace_id, memory_id)
WHERE r.workspace_id = :workspace_id AND r.run_id = ANY(CAST(:run_ids AS text[]))
ORDER BY r.run_id, m.memory_id LIMIT :limit
""")

USED = text("""
UPDATE memories m SET uses = m.uses + given.count
FROM (
    SELECT memory_id, count FROM unnest(CAST(:ids AS uuid[]), CAST(:counts AS integer[])) AS u(memory_id, count)
    ORDER BY memory_id
) AS given
WHERE m.workspace_id = :workspace_id AND m.memory_id = given.memory_id
""")


async def given_to(connection: AsyncConnection, workspace_id: int, run_ids: Iterable[str]) -> dict[str, list[Given]]:
    """The memories that recalls gave to these runs, by run."""
    values = {"workspace_id": workspace_id, "run_ids": sorted(set(run_ids)), "limit": MOST_GIVEN}
    found: dict[str, list[Given]] = defaultdict(list)
    for row in await connection.execute(GIVEN, values):
        found[row.run_id].append(Given.of(row.memory_id, f"{row.title}\n{row.body}"))
    return found


async def count_uses(connection: AsyncConnection, workspace_id: int, uses: Mapping[UUID, int]) -> None:
    """Note that memories came back in what a run wrote."""
    if uses:
        ids = sorted(uses)
        values = {"workspace_id": workspace_id, "ids": ids, "counts": [uses[memory_id] for memory_id in ids]}
        await connection.execute(USED, values)


async def note_echoes(database: Database, workspace: str, batch: Sequence[Screened]) -> list[Screened]:
    """The batch with an objection to each memory that repeats one its run was given; those are counted as used."""
    run_ids = {item.memory.run_id for item in batch if item.memory.run_id and item.objection is None}
    if not run_ids:
        return list(batch)
    async with database.statements() as connection:
        target = await workspaces.find(connection, workspace)
        given = {} if target is None else await given_to(connection, target.workspace_id, run_ids)
    if target is None or not given:
        return list(batch)
    echoes = [
        echo_of(item.memory.body, given.get(item.memory.run_id or "", ())) if item.objection is None else None
        for item in batch
    ]
    async with database.transaction() as connection:
        await count_uses(connection, target.workspace_id, Counter(found for found in echoes if found))
    return [
        item if memory_id is None else replace(item, objection=_objection(memory_id))
        for item, memory_id in zip(batch, echoes, strict=True)
    ]


def _objection(memory_id: UUID) -> Objection:
    message = f"body: repeats memory {memory_id}, which this run was given; it counts as a use of it"
    return Objection(message=message, code=ECHO, details=({"memory_id": str(memory_id)},))
