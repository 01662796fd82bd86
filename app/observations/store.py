"""The SQL of observations and of their compressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.identity import new_id
from app.observations.observation import Outcome

NEAR_CANDIDATES = 200
"""Observations of one task that a new one is compared with, newest first."""

# What was asked of a run's observation before it was made may be said better; what is made stays.
ASK = text("""
INSERT INTO compressions AS c (workspace_id, observation_id, run_id, request)
VALUES (:workspace_id, :observation_id, :run_id, CAST(:request AS jsonb))
ON CONFLICT (workspace_id, run_id) WHERE run_id IS NOT NULL DO UPDATE
SET request = CASE WHEN c.outcome IS NULL THEN EXCLUDED.request ELSE c.request END
RETURNING observation_id
""")

FIND = """
SELECT observation_id, run_id, request, outcome, reason, memory_id FROM compressions
WHERE workspace_id = :workspace_id AND observation_id = :observation_id
"""

FINISH = text("""
UPDATE compressions SET outcome = :outcome, reason = :reason, memory_id = :memory_id, finished_at = now()
WHERE workspace_id = :workspace_id AND observation_id = :observation_id
""")

WAITING = text(
    "SELECT workspace_id, observation_id FROM compressions WHERE outcome IS NULL ORDER BY created_at LIMIT 1000"
)

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

DETAIL = text("""
SELECT task, task_type, narrative, facts, output_path, verdict, compressor, model, superseded_by
FROM observations WHERE workspace_id = :workspace_id AND memory_id = :memory_id
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """A live observation of the same task."""

    memory_id: UUID
    text: str
    final_score: float | None
    rated: bool


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
    statement = text(FIND + " FOR UPDATE" if lock else FIND)
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
    )


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


async def waiting(connection: AsyncConnection) -> list[tuple[int, UUID]]:
    """Compressions that nobody has finished, oldest first: (workspace id, observation id)."""
    return [(row.workspace_id, row.observation_id) for row in await connection.execute(WAITING)]


async def same_task(connection: AsyncConnection, workspace_id: int, task: str) -> list[Sibling]:
    """Live observations of a task, newest first."""
    values = {"workspace_id": workspace_id, "task": task, "limit": NEAR_CANDIDATES}
    return [
        Sibling(memory_id=row.memory_id, text=f"{row.title}\n{row.body}", final_score=row.final_score, rated=row.rated)
        for row in await connection.execute(SAME_TASK, values)
    ]


async def supersede(connection: AsyncConnection, workspace_id: int, older: UUID, newer: UUID) -> None:
    """Note which observation took another's place."""
    await connection.execute(SUPERSEDE, {"workspace_id": workspace_id, "older": older, "newer": newer})


async def detail(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> Mapping[str, Any] | None:
    """What an observation has beyond a memory's text; None for other kinds."""
    row = (await connection.execute(DETAIL, {"workspace_id": workspace_id, "memory_id": memory_id})).one_or_none()
    return None if row is None else dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name for it
