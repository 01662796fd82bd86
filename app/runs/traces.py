"""The SQL of the traces of runs: which runs state a memory, and which runs used memories that they were given.

Implements `app.memories.write.RunTraces`.
"""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import msgspec

from app.db.session import Session
from app.memories import changes
from app.memories.memory import MemoryRow, ObservationDetail, new_id
from app.retrieval.log import mark_used

# Each run that states the same has a row of its own for each task, the memory's first run included, as if its output
# were compressed. The row of an output that was to be compressed does not change.
NOTE_RUNS = """
INSERT INTO compressions AS c (workspace_id, observation_id, run_id, request, outcome, memory_id, finished_at)
SELECT DISTINCT ON (by_run.run_id, by_run.request ->> 'task')
    %(workspace_id)s, by_run.observation_id, by_run.run_id, by_run.request, by_run.outcome, said.memory_id, now()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS said(
    memory_id uuid, run_id text, request jsonb, first_id uuid, other_id uuid
)
JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = said.memory_id AND m.run_id <> said.run_id
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
    WHERE k.workspace_id = %(workspace_id)s AND k.memory_id = m.memory_id AND k.run_id = by_run.run_id
        AND (by_run.outcome = 'stored' OR k.request ->> 'output' <> '')
)
ORDER BY by_run.run_id, by_run.request ->> 'task', said.memory_id
ON CONFLICT (workspace_id, run_id, md5(request ->> 'task')) WHERE run_id IS NOT NULL AND NOT earlier DO UPDATE
SET request = EXCLUDED.request
WHERE c.memory_id = EXCLUDED.memory_id AND c.outcome = 'joined' AND c.request ->> 'output' = ''
"""


async def note_joined(session: Session, rows: Mapping[UUID, MemoryRow]) -> None:
    """Notes the runs of these rows, which repeat known memories (by id), and the judgements of these runs."""
    said = [_said(memory_id, row) for memory_id, row in rows.items()]
    await session.execute(NOTE_RUNS, {"rows": msgspec.json.encode(said).decode()})


def _said(memory_id: UUID, row: MemoryRow) -> dict[str, Any]:
    memory, detail = row.memory, row.memory.observation or ObservationDetail()
    judged = {"run_id": memory.run_id, "final_score": memory.final_score, "verdict": detail.verdict}
    request = {"task": detail.task, "task_type": detail.task_type, "output": "", **judged}
    ids = {"memory_id": memory_id, "run_id": memory.run_id, "first_id": new_id(), "other_id": new_id()}
    return {**ids, "request": request}


async def note_uses(session: Session, run_id: str, ids: Collection[UUID]) -> None:
    """Notes that a run's text repeats memories that it was given. A second call for the same run adds no use."""
    await changes.count_uses(session, await mark_used(session, run_id, ids))
