"""The SQL of what observations have beyond a memory's text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.store import MemoryRow

INSERT_GIVEN = """
INSERT INTO observations AS o (
    workspace_id, memory_id, task, task_type, narrative, facts, output_path, verdict, compressor, model, prompt
)
SELECT :workspace_id, memory_id, task, task_type, narrative, ARRAY(SELECT jsonb_array_elements_text(facts)),
    output_path, verdict, compressor, model, prompt
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, task text, task_type text, narrative text, facts jsonb, output_path text, verdict text,
    compressor text, model text, prompt text
)
"""
INSERT_OBSERVATIONS = text(f"{INSERT_GIVEN} ON CONFLICT DO NOTHING")

DETAILS = ("task", "task_type", "narrative", "output_path", "verdict")
# What is given goes before what is known, or the other way round; neither puts nothing in the place of something.
MERGED = {
    **{
        name: f"""CASE WHEN CAST(:known_first AS boolean) THEN coalesce(nullif(o.{name}, ''), EXCLUDED.{name})
            ELSE coalesce(nullif(EXCLUDED.{name}, ''), o.{name}) END"""
        for name in DETAILS
    },
    "facts": """CASE WHEN o.facts = '{}' OR NOT CAST(:known_first AS boolean) AND EXCLUDED.facts <> '{}'
            THEN EXCLUDED.facts ELSE o.facts END""",
}
MERGE_OBSERVATIONS = text(f"""
{INSERT_GIVEN}
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET {", ".join(f"{name} = {value}" for name, value in MERGED.items())}
WHERE (o.{", o.".join(MERGED)}) IS DISTINCT FROM ({", ".join(MERGED.values())})
RETURNING memory_id
""")


async def insert_observations(connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]) -> None:
    """Write what observations have beyond a memory's text."""
    given = _details({row.memory_id: row for row in rows})
    if given:
        values = {"workspace_id": workspace_id, "rows": msgspec.json.encode(given).decode()}
        await connection.execute(INSERT_OBSERVATIONS, values)


async def merge_observations(
    connection: AsyncConnection, workspace_id: int, rows: Mapping[UUID, MemoryRow], *, known_first: bool
) -> set[UUID]:
    """Give known memories, by id, what is new of what observations have beyond a text; those that have changed.

    Empty fields say nothing. What made the observation stays.
    """
    given = _details(rows)
    if not given:
        return set()
    values = {"rows": msgspec.json.encode(given).decode(), "known_first": known_first}
    return set((await connection.execute(MERGE_OBSERVATIONS, {**values, "workspace_id": workspace_id})).scalars())


def _details(rows: Mapping[UUID, MemoryRow]) -> list[dict[str, Any]]:
    """In the order of the ids: two writers of the same ones never wait for each other in a circle."""
    return [
        {"memory_id": memory_id, **asdict(row.memory.observation)}
        for memory_id, row in sorted(rows.items())
        if row.memory.observation is not None
    ]
