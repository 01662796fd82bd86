"""The SQL of observations and of their compressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.memory import Memory, new_id
from app.memories.reads import SHOWN, SHOWN_COLUMNS, memory_of
from app.memories.store import DELETED
from app.runs import store as runs
from app.runs.observations.observation import Outcome

NEAR_CANDIDATES = 200
"""Observations of one task that a new one is compared with, newest first."""

ASK = text("""
INSERT INTO compressions (workspace_id, observation_id, run_id, request)
VALUES (:workspace_id, :observation_id, :run_id, CAST(:request AS jsonb))
ON CONFLICT (workspace_id, run_id, md5(request ->> 'task')) WHERE run_id IS NOT NULL AND NOT earlier DO NOTHING
RETURNING observation_id
""")

LOCK_ASKED = text("""
SELECT observation_id FROM compressions
WHERE workspace_id = :workspace_id AND run_id = :run_id AND NOT earlier
    AND md5(request ->> 'task') = md5(CAST(:request AS jsonb) ->> 'task')
FOR UPDATE
""")

# What was asked of a run's observation before it was made, or was refused, may be said better. What is made stays,
# until the run sends another output or the memory was destroyed: then it is made anew.
STANDING = text("""
SELECT c.outcome IN ('stored', 'joined') AS made, m.memory_id IS NOT NULL AS is_there,
    c.request = CAST(:request AS jsonb) AS same,
    c.request ->> 'output' = CAST(:request AS jsonb) ->> 'output' AS same_output
FROM compressions c LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE c.workspace_id = :workspace_id AND c.observation_id = :observation_id
""")
KEEP_EARLIER = text("""
INSERT INTO compressions (workspace_id, observation_id, run_id, request, outcome, reason, memory_id, created_at,
    finished_at, moved_on, earlier)
SELECT workspace_id, :earlier_id, run_id, request, outcome, reason, memory_id, created_at, finished_at, moved_on, true
FROM compressions WHERE workspace_id = :workspace_id AND observation_id = :observation_id
""")
ASK_ANEW = text("""
UPDATE compressions SET request = CAST(:request AS jsonb), outcome = NULL, reason = '', memory_id = NULL,
    finished_at = NULL, moved_on = false
WHERE workspace_id = :workspace_id AND observation_id = :observation_id
""")

FIND = text("""
SELECT c.observation_id, c.run_id, c.request, c.outcome, c.reason, c.memory_id, c.moved_on, m.retired_as,
    c.memory_id IS NOT NULL AND m.memory_id IS NULL AS destroyed
FROM compressions c LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE c.workspace_id = :workspace_id AND c.observation_id = :observation_id
""")

LOCK = text("""
SELECT FROM compressions WHERE workspace_id = :workspace_id AND observation_id = :observation_id FOR UPDATE
""")

# Live, compressed of what runs said earlier and said by none now, also by this run no longer; and rated by nobody.
OUTDATED = text("""
SELECT DISTINCT m.memory_id FROM compressions c
JOIN compressions e ON e.workspace_id = c.workspace_id AND e.run_id = c.run_id AND e.earlier
    AND e.request ->> 'task' = c.request ->> 'task'
JOIN memories m ON m.workspace_id = e.workspace_id AND m.memory_id = e.memory_id AND m.valid_until IS NULL
JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id AND o.compressor <> 'given'
WHERE c.workspace_id = :workspace_id AND c.observation_id = :observation_id
    AND NOT EXISTS (SELECT 1 FROM feedback f WHERE f.workspace_id = m.workspace_id AND f.memory_id = m.memory_id)
    AND NOT EXISTS (
        SELECT 1 FROM compressions s WHERE s.workspace_id = m.workspace_id AND s.memory_id = m.memory_id
            AND NOT s.earlier
    )
    AND EXISTS (
        SELECT 1 FROM compressions s WHERE s.workspace_id = m.workspace_id AND s.memory_id = m.memory_id
            AND s.run_id = m.run_id
    )
ORDER BY m.memory_id
""")

TAKEN = text("SELECT EXISTS (SELECT 1 FROM memories WHERE workspace_id = :workspace_id AND memory_id = :memory_id)")

FINISH = text("""
UPDATE compressions SET outcome = :outcome, reason = :reason, memory_id = :memory_id, finished_at = now(),
    maker = NULL, made_until = NULL
WHERE workspace_id = :workspace_id AND observation_id = :observation_id
""")

TAKE_TURN = text("""
UPDATE compressions SET maker = :maker, made_until = clock_timestamp() + make_interval(secs => :seconds)
WHERE workspace_id = :workspace_id AND observation_id = :observation_id AND outcome IS NULL
    AND (maker IS NULL OR maker = :maker OR made_until < clock_timestamp())
RETURNING observation_id
""")

END_TURN = text("""
UPDATE compressions SET maker = NULL, made_until = NULL
WHERE workspace_id = :workspace_id AND observation_id = :observation_id AND maker = :maker
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

HOLDING = text("""
SELECT m.memory_id FROM memories m JOIN observations o USING (workspace_id, memory_id)
WHERE m.workspace_id = :workspace_id AND m.memory_id = ANY(CAST(:ids AS uuid[])) AND m.valid_until IS NULL
    AND o.compressor <> 'given' AND EXISTS (
        SELECT 1 FROM compressions c WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.memory_id
            AND c.outcome IN ('stored', 'joined')
    )
ORDER BY m.memory_id FOR UPDATE OF m
""")

# The issues of each run that says it: those it was asked for with, and the run's as long as they are of that output.
HELD = text(f"""
SELECT {SHOWN_COLUMNS}, o.facts, ARRAY(
    SELECT said.issue FROM (
        SELECT c.created_at, c.observation_id, i.place, i.issue FROM compressions c
        LEFT JOIN runs r ON r.workspace_id = c.workspace_id AND r.run_id = c.run_id AND NOT c.moved_on
        CROSS JOIN {runs.SAID} AS i(issue, place)
        WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.memory_id AND {runs.SPEAKS}
    ) AS said ORDER BY said.created_at, said.observation_id, said.place
) AS issues
FROM {SHOWN}
WHERE m.workspace_id = :workspace_id AND m.memory_id = ANY(CAST(:ids AS uuid[])) ORDER BY m.memory_id
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
    """The memory that holds it."""
    moved_on: bool
    """Whether the run's judgement is of another output by now: the request has the one that is of this one."""
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
class Held:
    """A live observation that was compressed of a run, or of several."""

    memory: Memory
    facts: Sequence[str]
    issues: tuple[str, ...]
    """Those of all runs that say it, each once."""


async def ask(connection: AsyncConnection, workspace_id: int, outcome: Outcome) -> UUID:
    """Keep what is to be compressed; the observation's id, for a run's task always the same.

    What the run said earlier of this task stays, with the judgement that it had.
    """
    values = {
        "workspace_id": workspace_id,
        "observation_id": new_id(),
        "run_id": outcome.run_id,
        "request": msgspec.json.encode(outcome).decode(),
    }
    asked = (await connection.execute(ASK, values)).scalar_one_or_none()
    if asked is not None:
        return UUID(str(asked))
    # The row is held before anything else is read: what is seen of it and of its memory is of one moment.
    values["observation_id"] = (await connection.execute(LOCK_ASKED, values)).scalar_one()
    await _ask_again(connection, workspace_id, values)
    return UUID(str(values["observation_id"]))


async def _ask_again(connection: AsyncConnection, workspace_id: int, values: dict[str, Any]) -> None:
    standing = (await connection.execute(STANDING, values)).one()
    stands = standing.made and standing.is_there
    if standing.same_output if stands else standing.same and not standing.made:
        return
    if stands:
        await runs.move_on(connection, workspace_id, values["observation_id"])
        await connection.execute(KEEP_EARLIER, {**values, "earlier_id": new_id()})
    await connection.execute(ASK_ANEW, values)


async def find(
    connection: AsyncConnection, workspace_id: int, observation_id: UUID, *, lock: bool = False
) -> Asked | None:
    """A compression; locked, so that two that make it take turns, if so asked."""
    values = {"workspace_id": workspace_id, "observation_id": observation_id}
    if lock:
        # A statement of its own: what is read after it is what whoever held the row has left.
        await connection.execute(LOCK, values)
    row = (await connection.execute(FIND, values)).one_or_none()
    if row is None:
        return None
    return Asked(
        observation_id=row.observation_id,
        run_id=row.run_id,
        request=msgspec.convert(row.request, Outcome),
        outcome=row.outcome,
        reason=row.reason,
        memory_id=row.memory_id,
        moved_on=row.moved_on,
        deleted=row.destroyed or row.retired_as == DELETED,
    )


async def outdated(connection: AsyncConnection, workspace_id: int, observation_id: UUID) -> list[UUID]:
    """The memories that stand for nothing but what this observation's run, and others, said earlier."""
    values = {"workspace_id": workspace_id, "observation_id": observation_id}
    return list((await connection.execute(OUTDATED, values)).scalars())


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


async def take_turn(
    connection: AsyncConnection, workspace_id: int, observation_id: UUID, maker: UUID, seconds: float
) -> bool:
    """Whether `maker` compresses it, for so many seconds from now; not where another does, or it is made."""
    values = {"workspace_id": workspace_id, "observation_id": observation_id, "maker": maker, "seconds": seconds}
    return (await connection.execute(TAKE_TURN, values)).one_or_none() is not None


async def end_turn(connection: AsyncConnection, workspace_id: int, observation_id: UUID, maker: UUID) -> None:
    """Let another compress it, if `maker` has."""
    values = {"workspace_id": workspace_id, "observation_id": observation_id, "maker": maker}
    await connection.execute(END_TURN, values)


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


async def holding(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> list[Held]:
    """Those of these memories that are live and were compressed of what was asked for; locked."""
    values = {"workspace_id": workspace_id, "ids": list(ids)}
    locked = list((await connection.execute(HOLDING, values)).scalars())
    return [
        Held(memory=memory_of(row), facts=row.facts, issues=tuple(dict.fromkeys(row.issues)))
        for row in await connection.execute(HELD, {**values, "ids": locked})
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
