"""The SQL of compressions: their requests, makers and outcomes, and which runs state and use which memories.

Implements `app.storage.memories.write.RunTraces`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import msgspec

from app.foundation.db.database import Lease
from app.foundation.db.session import COMPRESS, Session
from app.foundation.values import frozen
from app.intake.runs import store as runs
from app.intake.runs.observations.observation import Outcome
from app.intake.runs.run import Recorded
from app.storage.memories import changes
from app.storage.memories.memory import Memory, MemoryRow, ObservationDetail, new_id
from app.storage.memories.store import SHOWN, SHOWN_COLUMNS, as_json, memory_of
from app.storage.recalls.store import mark_used

_NEAR_CANDIDATES = 200
"""Observations of one task that a new one is compared with, newest first."""

_ASK = """
INSERT INTO compressions (workspace_id, observation_id, run_id, request)
VALUES (%(workspace_id)s, %(observation_id)s, %(run_id)s, %(request)s::jsonb)
ON CONFLICT (workspace_id, run_id, md5(request ->> 'task')) WHERE run_id IS NOT NULL AND NOT earlier DO NOTHING
RETURNING observation_id
"""

_LOCK_ASKED = """
SELECT observation_id FROM compressions
WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND NOT earlier
    AND md5(request ->> 'task') = md5(%(request)s::jsonb ->> 'task')
FOR UPDATE
"""

# A request that is not compressed yet, or was refused, can be replaced. A made observation stays,
# until the run sends another output or the memory is destroyed: then it is made again.
_STANDING = """
SELECT c.outcome IN ('stored', 'joined') AS made, m.memory_id IS NOT NULL AS is_there,
    c.request = %(request)s::jsonb AS same,
    c.request ->> 'output' = %(request)s::jsonb ->> 'output' AS same_output
FROM compressions c LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE c.workspace_id = %(workspace_id)s AND c.observation_id = %(observation_id)s
"""
_KEEP_EARLIER = """
INSERT INTO compressions (workspace_id, observation_id, run_id, request, outcome, reason, memory_id, created_at,
    finished_at, moved_on, earlier)
SELECT workspace_id, %(earlier_id)s, run_id, request, outcome, reason, memory_id, created_at, finished_at, moved_on,
    true
FROM compressions WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s
RETURNING 1
"""
_ASK_ANEW = """
UPDATE compressions SET request = %(request)s::jsonb, outcome = NULL, reason = '', memory_id = NULL,
    finished_at = NULL, moved_on = false
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s
"""

_FIND = f"""
SELECT {runs.RECORDED}, c.run_id, c.request, c.moved_on
FROM compressions c LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE c.workspace_id = %(workspace_id)s AND c.observation_id = %(observation_id)s
"""  # noqa: S608 - constants

_LOCK = """
SELECT FROM compressions WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s FOR UPDATE
"""

# Live, unrated memories that were compressed from earlier outputs and that no run's present output states.
_OUTDATED = """
SELECT DISTINCT m.memory_id FROM compressions c
JOIN compressions e ON e.workspace_id = c.workspace_id AND e.run_id = c.run_id AND e.earlier
    AND e.request ->> 'task' = c.request ->> 'task'
JOIN memories m ON m.workspace_id = e.workspace_id AND m.memory_id = e.memory_id AND m.valid_until IS NULL
JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id AND o.compressor <> 'given'
WHERE c.workspace_id = %(workspace_id)s AND c.observation_id = %(observation_id)s
    AND NOT EXISTS (SELECT 1 FROM feedback f WHERE f.workspace_id = %(workspace_id)s AND f.memory_id = m.memory_id)
    AND NOT EXISTS (
        SELECT 1 FROM compressions s WHERE s.workspace_id = %(workspace_id)s AND s.memory_id = m.memory_id
            AND NOT s.earlier
    )
    AND EXISTS (
        SELECT 1 FROM compressions s WHERE s.workspace_id = %(workspace_id)s AND s.memory_id = m.memory_id
            AND s.run_id = m.run_id
    )
ORDER BY m.memory_id
"""

_TAKEN = "SELECT EXISTS (SELECT 1 FROM memories WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s)"

_FINISH = """
UPDATE compressions SET outcome = %(outcome)s, reason = %(reason)s, memory_id = %(memory_id)s, finished_at = now(),
    maker = NULL, made_until = NULL
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s
"""

LEASE = Lease(
    take="""
UPDATE compressions SET maker = %(maker)s, made_until = statement_timestamp() + make_interval(secs => %(seconds)s)
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s AND outcome IS NULL
    AND (maker IS NULL OR maker = %(maker)s OR made_until < statement_timestamp())
RETURNING observation_id
""",
    end="""
UPDATE compressions SET maker = NULL, made_until = NULL
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s AND maker = %(maker)s
""",
)
"""Lets one maker alone compress an observation that is not made yet."""

# A queued or running job will do it; a failed job does not.
_FORGOTTEN = """
WITH jobs AS MATERIALIZED (
    SELECT j.args ->> 'observation_id' AS observation_id,
        count(*) FILTER (WHERE j.status IN ('todo', 'doing')) AS coming,
        count(*) FILTER (WHERE j.status = 'failed') AS failed
    FROM procrastinate_jobs j WHERE j.task_name = 'compress' GROUP BY 1
)
SELECT c.workspace_id, c.observation_id FROM compressions c
LEFT JOIN jobs ON jobs.observation_id = c.observation_id::text
WHERE c.outcome IS NULL AND coalesce(jobs.coming, 0) = 0 AND coalesce(jobs.failed, 0) < %(failures)s
ORDER BY c.created_at LIMIT 1000
"""

_SAME_TASK = """
SELECT m.memory_id, concat(m.title, E'\n', m.body) AS text, m.final_score,
    EXISTS (SELECT 1 FROM feedback f WHERE f.workspace_id = %(workspace_id)s AND f.memory_id = m.memory_id) AS rated
FROM priors_of_task(%(task)s) AS same(memory_id) JOIN memories m USING (memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL
ORDER BY m.created_at DESC LIMIT %(limit)s
"""

_HOLDING = """
SELECT m.memory_id FROM memories m JOIN observations o USING (workspace_id, memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND m.valid_until IS NULL
    AND o.compressor <> 'given' AND EXISTS (
        SELECT 1 FROM compressions c WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = m.memory_id
            AND c.outcome IN ('stored', 'joined')
    )
ORDER BY m.memory_id FOR UPDATE OF m
"""

# The issues of each run that states it: those of the request, and the run's own while it has the same output.
_HELD = f"""
SELECT {SHOWN_COLUMNS}, o.facts, ARRAY(
    SELECT said.issue FROM (
        SELECT c.created_at, c.observation_id, i.place, i.issue FROM compressions c
        LEFT JOIN runs r ON r.workspace_id = c.workspace_id AND r.run_id = c.run_id AND NOT c.moved_on
        CROSS JOIN {runs.ISSUES} AS i(issue, place)
        WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = m.memory_id AND {runs.SPEAKS}
    ) AS said ORDER BY said.created_at, said.observation_id, said.place
) AS issues
FROM {SHOWN}
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) ORDER BY m.memory_id
"""  # noqa: S608 - constants
_OWNER = """
SELECT user_id FROM compressions WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s
"""

# Each run that states the same has a row of its own for each task, the memory's first run included, as if its output
# were compressed. The row of an output that was to be compressed does not change.
_NOTE_RUNS = """
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


@frozen
class Asked:
    """A requested compression."""

    recorded: Recorded
    run_id: str | None
    request: Outcome
    moved_on: bool
    """True if the run has another output now. Then the run's judgement is of the new output, and the request has the
    judgement of the output that it was for."""


@frozen
class Sibling:
    """A live observation of the same task."""

    memory_id: UUID
    text: str
    final_score: float | None
    rated: bool


@frozen
class Held:
    """A live observation of one run or several."""

    memory: Memory
    facts: Sequence[str]
    issues: tuple[str, ...]
    """The issues of all runs that state it, each once."""


async def ask(session: Session, outcome: Outcome) -> UUID:
    """Stores a request; returns the observation's id, which is always the same for a run's task.

    The run's earlier outputs for this task stay, with their judgements.
    """
    request = as_json(outcome)
    values = {"observation_id": new_id(), "run_id": outcome.run_id, "request": request}
    asked: UUID | None = await session.value(_ASK, values)
    if asked is not None:
        return asked
    # The row is locked first, so that it and its memory are read at one moment.
    known: UUID = (await session.one(_LOCK_ASKED, values)).observation_id
    values["observation_id"] = known
    await _ask_anew(session, values)
    return known


async def _ask_anew(session: Session, values: dict[str, Any]) -> None:
    standing = await session.one(_STANDING, values)
    stands = standing.made and standing.is_there
    if standing.same_output if stands else standing.same and not standing.made:
        return
    if stands:
        await runs.move_on(session, values["observation_id"])
        await session.execute(_KEEP_EARLIER, {**values, "earlier_id": new_id()})
    await session.execute(_ASK_ANEW, values)


async def find(session: Session, observation_id: UUID, *, lock: bool = False) -> Asked | None:
    """Returns a compression; with `lock` other makers wait."""
    values = {"observation_id": observation_id}
    if lock:
        # A separate statement, so that the next one sees the changes of the earlier holder of the lock.
        await session.execute(_LOCK, values)
    row = await session.row(_FIND, values)
    if row is None:
        return None
    request = msgspec.convert(row.request, Outcome)
    return Asked(recorded=runs.recorded_of(row), run_id=row.run_id, request=request, moved_on=row.moved_on)


async def owner(session: Session, observation_id: UUID) -> str:
    """Returns the user for whom an observation was asked; "" for nobody."""
    return await session.value(_OWNER, {"observation_id": observation_id}) or ""


async def outdated_memories(session: Session, observation_id: UUID) -> list[UUID]:
    """Returns the memories that come only from earlier outputs of this observation's run or of other runs."""
    return await session.column(_OUTDATED, {"observation_id": observation_id})


async def free_id(session: Session, wanted: UUID) -> UUID:
    """Returns the id for a new memory: the wanted id, or a new one if a memory has it."""
    return new_id() if await session.value(_TAKEN, {"memory_id": wanted}) else wanted


async def finish(session: Session, recorded: Recorded) -> None:
    """Stores the outcome of a compression."""
    await session.execute(_FINISH, asdict(recorded))


async def forgotten(session: Session, *, failures: int) -> list[tuple[int, UUID]]:
    """Returns the unfinished compressions of all workspaces without a job, as (workspace id, observation id).

    It leaves out compressions of which `failures` jobs failed.
    """
    return await session.tuples(_FORGOTTEN, {"failures": failures})


async def same_task(session: Session, task: str) -> list[Sibling]:
    """Returns live observations of a task, newest first, and locks the task until the transaction ends."""
    await runs.lock(session, task, kind="task")
    values = {"task": task, "limit": _NEAR_CANDIDATES}
    return await session.rows_as(Sibling, _SAME_TASK, values)


async def holding(session: Session, ids: Sequence[UUID]) -> list[Held]:
    """Locks and returns the memories among these that are live and were made by a compression."""
    locked = await session.column(_HOLDING, {"ids": list(ids)})
    return [
        Held(memory=memory_of(row), facts=row.facts, issues=tuple(dict.fromkeys(row.issues)))
        for row in await session.rows(_HELD, {"ids": locked})
    ]


async def note_joined(session: Session, rows: Mapping[UUID, MemoryRow]) -> None:
    """Notes the runs of these rows, which repeat known memories (by id), and the judgements of these runs."""
    said = [_request_values(memory_id, row) for memory_id, row in rows.items()]
    await session.execute(_NOTE_RUNS, {"rows": as_json(said)})


def _request_values(memory_id: UUID, row: MemoryRow) -> dict[str, Any]:
    memory, detail = row.memory, row.memory.observation or ObservationDetail()
    judged = {"run_id": memory.run_id, "final_score": memory.final_score, "verdict": detail.verdict}
    request = {"task": detail.task, "task_type": detail.task_type, "output": "", **judged}
    ids = {"memory_id": memory_id, "run_id": memory.run_id, "first_id": new_id(), "other_id": new_id()}
    return {**ids, "request": request}


async def note_uses(session: Session, run_id: str, ids: Collection[UUID]) -> None:
    """Notes that a run's text repeats memories that it was given. A second call for the same run adds no use."""
    await changes.count_uses(session, await mark_used(session, run_id, ids))


async def enqueue(session: Session, observation_id: UUID) -> None:
    """Asks a worker to compress this outcome."""
    lock, workspace_id = f"{COMPRESS}:{observation_id}", session.workspace_id
    asked = str(observation_id)
    await session.enqueue(COMPRESS, lock=lock, workspace_id=workspace_id, observation_id=asked)
