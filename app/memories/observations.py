"""The SQL of what observations have beyond a memory's text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.memory import NewMemory, ObservationDetail, new_id
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


# Each run that says the same leaves a row of its own, the memory's first run among them; one for a task, as where its
# output is compressed. What was asked to be compressed stays as it is.
NOTE_RUNS = text("""
INSERT INTO compressions AS c (workspace_id, observation_id, run_id, request, outcome, memory_id, finished_at)
SELECT DISTINCT ON (by_run.run_id, by_run.request ->> 'task')
    :workspace_id, by_run.observation_id, by_run.run_id, by_run.request, by_run.outcome, said.memory_id, now()
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS said(
    memory_id uuid, run_id text, request jsonb, first_id uuid, other_id uuid
)
JOIN memories m ON m.workspace_id = :workspace_id AND m.memory_id = said.memory_id AND m.run_id <> said.run_id
JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id
CROSS JOIN LATERAL (VALUES
    (said.first_id, m.run_id, 'stored', jsonb_build_object(
        'task', o.task, 'task_type', o.task_type, 'output', '', 'run_id', m.run_id, 'final_score', m.final_score,
        'verdict', o.verdict
    )),
    (said.other_id, said.run_id, 'joined', said.request)
) AS by_run(observation_id, run_id, outcome, request)
WHERE NOT EXISTS (
    SELECT 1 FROM compressions k
    WHERE k.workspace_id = m.workspace_id AND k.memory_id = m.memory_id AND k.run_id = by_run.run_id
        AND (by_run.outcome = 'stored' OR k.request ->> 'output' <> '')
)
ORDER BY by_run.run_id, by_run.request ->> 'task', said.memory_id
ON CONFLICT (workspace_id, run_id, md5(request ->> 'task')) WHERE run_id IS NOT NULL AND NOT earlier DO UPDATE
SET request = EXCLUDED.request
WHERE c.memory_id = EXCLUDED.memory_id AND c.outcome = 'joined' AND c.request ->> 'output' = ''
""")


async def note_runs(connection: AsyncConnection, workspace_id: int, rows: Mapping[UUID, MemoryRow]) -> None:
    """Keep that the runs of these rows say what known memories, by id, say already, and how they were judged."""
    said = [
        {
            "memory_id": memory_id,
            "run_id": row.memory.run_id,
            "request": _as_request(row.memory, row.memory.observation),
            "first_id": new_id(),
            "other_id": new_id(),
        }
        for memory_id, row in rows.items()
        if row.memory.run_id is not None and row.memory.observation is not None
    ]
    if said:
        values = {"workspace_id": workspace_id, "rows": msgspec.json.encode(said).decode()}
        await connection.execute(NOTE_RUNS, values)


def _as_request(memory: NewMemory, observation: ObservationDetail) -> dict[str, Any]:
    return {
        "task": observation.task,
        "task_type": observation.task_type,
        "output": "",
        "run_id": memory.run_id,
        "final_score": memory.final_score,
        "verdict": observation.verdict,
    }


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
