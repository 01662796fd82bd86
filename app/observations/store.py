"""The SQL of observations and of their compressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.identity import new_id
from app.memories.memory import Memory
from app.memories.shown import SHOWN, SHOWN_COLUMNS, memory_of
from app.memories.store import DELETED
from app.observations.observation import Outcome

NEAR_CANDIDATES = 200
"""Observations of one task that a new one is compared with, newest first."""

# What was asked of a run's observation before it was made, or was refused, may be said better. What is made stays,
# until the run sends another output or the memory was destroyed: then it is made anew.
ANEW = """(
    c.outcome = 'refused' AND c.request <> EXCLUDED.request
    OR c.outcome IN ('stored', 'joined') AND (
        c.request ->> 'output' <> EXCLUDED.request ->> 'output'
        OR NOT EXISTS (SELECT 1 FROM memories m WHERE m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id)
    )
)"""
ASK = text(f"""
INSERT INTO compressions AS c (workspace_id, observation_id, run_id, request)
VALUES (:workspace_id, :observation_id, :run_id, CAST(:request AS jsonb))
ON CONFLICT (workspace_id, run_id, md5(request ->> 'task')) WHERE run_id IS NOT NULL DO UPDATE
SET request = CASE WHEN c.outcome IS NULL OR {ANEW} THEN EXCLUDED.request ELSE c.request END,
    outcome = CASE WHEN {ANEW} THEN NULL ELSE c.outcome END,
    reason = CASE WHEN {ANEW} THEN '' ELSE c.reason END
RETURNING observation_id
""")  # noqa: S608 - constants

FIND = """
SELECT c.observation_id, c.run_id, c.request, c.outcome, c.reason, c.memory_id, m.retired_as,
    c.memory_id IS NOT NULL AND m.memory_id IS NULL AS destroyed
FROM compressions c LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE c.workspace_id = :workspace_id AND c.observation_id = :observation_id
"""

# Made of an earlier output of the run, rated by nobody, and said by no other run.
OUTDATED = text("""
SELECT memory_id FROM memories m
WHERE m.workspace_id = :workspace_id AND m.memory_id = :memory_id AND m.run_id = :run_id AND m.valid_until IS NULL
    AND NOT EXISTS (SELECT 1 FROM feedback f WHERE f.workspace_id = m.workspace_id AND f.memory_id = m.memory_id)
    AND NOT EXISTS (
        SELECT 1 FROM compressions c
        WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.memory_id AND c.observation_id <> :observation_id
    )
""")

TAKEN = text("SELECT EXISTS (SELECT 1 FROM memories WHERE workspace_id = :workspace_id AND memory_id = :memory_id)")

FINISH = text("""
UPDATE compressions SET outcome = :outcome, reason = :reason, memory_id = :memory_id, finished_at = now()
WHERE workspace_id = :workspace_id AND observation_id = :observation_id
""")

# A job that waits or is under way will do it; one that failed has left it.
FORGOTTEN = text("""
WITH jobs AS MATERIALIZED (
    SELECT j.args ->> 'observation_id' AS observation_id,
        count(*) FILTER (WHERE j.status IN ('todo', 'doing')) AS coming,
        count(*) FILTER (WHERE j.status = 'failed') AS failed
    FROM procrastinate_jobs j WHERE j.task_name = 'compress' GROUP BY 1
)
SELECT c.workspace_id, c.observation_id FROM compressions c
LEFT JOIN jobs ON jobs.observation_id = CAST(c.observation_id AS text)
WHERE c.outcome IS NULL AND coalesce(jobs.coming, 0) = 0 AND coalesce(jobs.failed, 0) < :failures
ORDER BY c.created_at LIMIT 1000
""")

ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))")

SAME_TASK = text("""
SELECT m.memory_id, m.title, m.body, m.final_score,
    EXISTS (SELECT 1 FROM feedback f WHERE f.workspace_id = m.workspace_id AND f.memory_id = m.memory_id) AS rated
FROM observations o JOIN memories m USING (workspace_id, memory_id)
WHERE o.workspace_id = :workspace_id AND md5(o.task) = md5(:task) AND o.task = :task AND m.valid_until IS NULL
ORDER BY m.created_at DESC LIMIT :limit
""")

SUPERSEDE = text("""
UPDATE observations SET superseded_by = :newer WHERE workspace_id = :workspace_id AND memory_id = :older
""")

MADE_OF_RUN = text(f"""
SELECT {SHOWN_COLUMNS}, o.facts, (
    SELECT c.request FROM compressions c
    WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.memory_id AND c.run_id = m.run_id
    ORDER BY c.created_at LIMIT 1
) AS request FROM {SHOWN}
WHERE m.workspace_id = :workspace_id AND m.run_id = :run_id AND m.valid_until IS NULL AND o.compressor <> 'given'
ORDER BY m.memory_id FOR UPDATE OF m
""")  # noqa: S608 - constants

TWIN = text("""
SELECT EXISTS (
    SELECT 1 FROM memories WHERE workspace_id = :workspace_id AND content_hash = :content_hash AND kind = 'observation'
    AND source_id IS NULL AND valid_until IS NULL
)
""")

EXTEND = text("""
WITH extended AS (
    UPDATE memories SET body = :body, tokens = :tokens, content_hash = :content_hash
    WHERE workspace_id = :workspace_id AND memory_id = :memory_id
)
UPDATE observations SET facts = CAST(:facts AS text[])
WHERE workspace_id = :workspace_id AND memory_id = :memory_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A compression that was asked for."""

    observation_id: UUID
    run_id: str | None
    request: Outcome
    outcome: str | None
    reason: str
    memory_id: UUID | None
    """The memory that holds it; while it is made anew the one that held it."""
    deleted: bool
    """Whether a person deleted that memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """A live observation of the same task."""

    memory_id: UUID
    text: str
    final_score: float | None
    rated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeOfRun:
    """A live observation that was compressed of a run."""

    memory: Memory
    facts: Sequence[str]
    request: Outcome
    """What was asked for."""


async def ask(connection: AsyncConnection, workspace_id: int, outcome: Outcome) -> UUID:
    """Keep what is to be compressed; the observation's id, for a run always the same."""
    values = {
        "workspace_id": workspace_id,
        "observation_id": new_id(),
        "run_id": outcome.run_id,
        "request": msgspec.json.encode(outcome).decode(),
    }
    return UUID(str((await connection.execute(ASK, values)).scalar_one()))


async def find(
    connection: AsyncConnection, workspace_id: int, observation_id: UUID, *, lock: bool = False
) -> Asked | None:
    """A compression; locked, so that two that make it take turns, if so asked."""
    statement = text(FIND + " FOR UPDATE OF c" if lock else FIND)
    values = {"workspace_id": workspace_id, "observation_id": observation_id}
    row = (await connection.execute(statement, values)).one_or_none()
    if row is None:
        return None
    return Asked(
        observation_id=row.observation_id,
        run_id=row.run_id,
        request=msgspec.convert(row.request, Outcome),
        outcome=row.outcome,
        reason=row.reason,
        memory_id=row.memory_id,
        deleted=row.destroyed or row.retired_as == DELETED,
    )


async def is_outdated(connection: AsyncConnection, workspace_id: int, asked: Asked) -> bool:
    """Whether the memory that held this stands for nothing but an earlier output of the run."""
    values = {
        "workspace_id": workspace_id,
        "memory_id": asked.memory_id,
        "run_id": asked.run_id,
        "observation_id": asked.observation_id,
    }
    return (await connection.execute(OUTDATED, values)).one_or_none() is not None


async def free_id(connection: AsyncConnection, workspace_id: int, wanted: UUID) -> UUID:
    """The id for a new memory: the wanted one, unless a memory has it."""
    values = {"workspace_id": workspace_id, "memory_id": wanted}
    return new_id() if (await connection.execute(TAKEN, values)).scalar_one() else wanted


async def finish(
    connection: AsyncConnection,
    workspace_id: int,
    observation_id: UUID,
    *,
    outcome: str,
    reason: str = "",
    memory_id: UUID | None = None,
) -> None:
    """Note what became of a compression."""
    values = {
        "workspace_id": workspace_id,
        "observation_id": observation_id,
        "outcome": outcome,
        "reason": reason,
        "memory_id": memory_id,
    }
    await connection.execute(FINISH, values)


async def forgotten(connection: AsyncConnection, *, failures: int) -> list[tuple[int, UUID]]:
    """Compressions that no job is left for, but fewer than so many failed: (workspace id, observation id)."""
    rows = await connection.execute(FORGOTTEN, {"failures": failures})
    return [(row.workspace_id, row.observation_id) for row in rows]


async def same_task(connection: AsyncConnection, workspace_id: int, task: str) -> list[Sibling]:
    """Live observations of a task, newest first. Until the transaction ends nobody else sees them this way."""
    await connection.execute(ONE_AT_A_TIME, {"key": f"priors.task:{workspace_id}:{task}"})
    values = {"workspace_id": workspace_id, "task": task, "limit": NEAR_CANDIDATES}
    return [
        Sibling(memory_id=row.memory_id, text=f"{row.title}\n{row.body}", final_score=row.final_score, rated=row.rated)
        for row in await connection.execute(SAME_TASK, values)
    ]


async def supersede(connection: AsyncConnection, workspace_id: int, older: UUID, newer: UUID) -> None:
    """Note which observation took another's place."""
    await connection.execute(SUPERSEDE, {"workspace_id": workspace_id, "older": older, "newer": newer})


async def made_of_run(connection: AsyncConnection, workspace_id: int, run_id: str) -> list[MadeOfRun]:
    """The live observations that were compressed of a run; locked."""
    rows = await connection.execute(MADE_OF_RUN, {"workspace_id": workspace_id, "run_id": run_id})
    return [
        MadeOfRun(
            memory=memory_of(row),
            facts=row.facts,
            request=Outcome(task="", output="") if row.request is None else msgspec.convert(row.request, Outcome),
        )
        for row in rows
    ]


async def has_twin(connection: AsyncConnection, workspace_id: int, content_hash: bytes) -> bool:
    """Whether a live observation has this text already."""
    values = {"workspace_id": workspace_id, "content_hash": content_hash}
    return bool((await connection.execute(TWIN, values)).scalar_one())


async def extend(
    connection: AsyncConnection, workspace_id: int, memory: Memory, *, content_hash: bytes, facts: Sequence[str]
) -> None:
    """Give an observation this body and these facts; it still has to be indexed."""
    values = {"body": memory.body, "tokens": memory.tokens, "content_hash": content_hash, "facts": list(facts)}
    await connection.execute(EXTEND, {**values, "workspace_id": workspace_id, "memory_id": memory.memory_id})
