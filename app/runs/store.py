"""The SQL of runs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.memory import Memory, in_utc
from app.memories.reads import SHOWN, SHOWN_COLUMNS, memory_of
from app.memories.store import DELETED
from app.runs.run import DELETED_SINCE, Compression, GivenMemory, MemoryTeller, MemoryUse, NewRun, Run, RunPoint

NAMES = tuple(Run.__slots__)
COLUMNS = ", ".join(NAMES)
MERGED = (
    "task", "task_type", "agent", "queries", "output", "output_path", "lines", "bytes", "round_scores", "final_score",
    "verdict", "issues", "stages", "started_at", "finished_at",
)  # fmt: skip
"""What a second message about a run replaces, as far as it says something; metadata is merged by key."""
MOST_SHOWN = 1_000

# A column that may not be NULL has its default where nothing was said of it.
SAVE = text(f"""
INSERT INTO runs AS r (workspace_id, run_id, task, task_type, agent, queries, output, output_path, lines, bytes,
    round_scores, final_score, verdict, issues, stages, metadata, started_at, finished_at)
VALUES (:workspace_id, :run_id, coalesce(:task, ''), coalesce(:task_type, ''), :agent,
    coalesce(CAST(:queries AS text[]), '{{}}'), :output, :output_path, :lines, :bytes,
    coalesce(CAST(:round_scores AS real[]), '{{}}'), :final_score, coalesce(:verdict, ''),
    coalesce(CAST(:issues AS text[]), '{{}}'), coalesce(CAST(:stages AS jsonb), '{{}}'),
    coalesce(CAST(:metadata AS jsonb), '{{}}'), :started_at, :finished_at)
ON CONFLICT (workspace_id, run_id) DO UPDATE SET
    {
    ", ".join(
        f"{name} = CASE WHEN CAST(:has_{name} AS boolean) THEN EXCLUDED.{name} ELSE r.{name} END" for name in MERGED
    )
},
    metadata = r.metadata || EXCLUDED.metadata, updated_at = now(),
    output_replaced = r.output_replaced OR coalesce(r.output <> EXCLUDED.output, false)
RETURNING {COLUMNS}, (xmax = 0) AS is_new
""")  # noqa: S608 - constants

FIND = text(f"SELECT {COLUMNS} FROM runs WHERE workspace_id = :workspace_id AND run_id = :run_id")  # noqa: S608 - constants

SAID = "unnest(ARRAY(SELECT jsonb_array_elements_text(c.request -> 'issues')) || r.issues) WITH ORDINALITY"
"""The issues that an observation `c` was asked for with, then those of its run `r`, each with its place."""

# What was asked for of an output that its run replaces keeps the judgement that it has; the run's next one is of the
# next output. The run may come back to it.
MOVE_ON = f"""
UPDATE compressions c SET moved_on = true, request = c.request || coalesce((
    SELECT jsonb_build_object(
        'final_score', coalesce(to_jsonb(r.final_score), c.request -> 'final_score'),
        'verdict', coalesce(nullif(r.verdict, ''), c.request ->> 'verdict', ''),
        'issues', coalesce((
            SELECT jsonb_agg(issue ORDER BY place) FROM (
                SELECT issue, min(place) AS place
                FROM {SAID} AS said(issue, place)
                GROUP BY issue
            ) AS once
        ), '[]')
    ) FROM runs r WHERE r.workspace_id = c.workspace_id AND r.run_id = c.run_id
), '{{{{}}}}')
WHERE c.workspace_id = :workspace_id AND NOT c.moved_on AND {{condition}}
"""  # noqa: S608 - constants
REPLACED = text(
    MOVE_ON.format(
        condition="""
    c.run_id = :run_id AND c.request ->> 'output' <> :output AND c.request ->> 'output' = (
        SELECT output FROM runs r WHERE r.workspace_id = c.workspace_id AND r.run_id = c.run_id
    )
"""
    )
)
ASKED_ANEW = text(MOVE_ON.format(condition="c.observation_id = :observation_id"))
COME_BACK = text("""
UPDATE compressions SET moved_on = false
WHERE workspace_id = :workspace_id AND run_id = :run_id AND moved_on AND NOT earlier AND request ->> 'output' = :output
""")

HELD_BY = text("""
SELECT memory_id FROM memories WHERE workspace_id = :workspace_id AND run_id = :run_id AND kind = 'observation'
UNION
SELECT memory_id FROM compressions WHERE workspace_id = :workspace_id AND run_id = :run_id AND memory_id IS NOT NULL
""")

# A run that came back to what it had said earlier says it once, as it does now.
SPEAKS = """c.outcome IN ('stored', 'joined') AND NOT (c.earlier AND EXISTS (
    SELECT 1 FROM compressions l WHERE l.workspace_id = c.workspace_id AND l.memory_id = c.memory_id
        AND l.run_id = c.run_id AND l.outcome IN ('stored', 'joined') AND l.finished_at > c.finished_at
        AND l.request ->> 'task' = c.request ->> 'task'
))"""

# What each run says of itself goes before what its observation was asked for with, as long as it is of that output. A
# memory whose maker is not judged by either speaks for itself, as does one whose maker's output is not known.
SAYING = f"""
SELECT c.memory_id, c.run_id, r.run_id IS NOT NULL AS stored, c.outcome,
    coalesce(nullif(r.task, ''), c.request ->> 'task') AS task,
    CASE WHEN c.moved_on THEN CAST(c.request ->> 'final_score' AS real)
        ELSE coalesce(r.final_score, CAST(c.request ->> 'final_score' AS real)) END AS final_score,
    coalesce(CASE WHEN NOT c.moved_on THEN nullif(r.verdict, '') END, c.request ->> 'verdict', '') AS verdict,
    c.created_at AS said_at
FROM compressions c LEFT JOIN runs r ON r.workspace_id = c.workspace_id AND r.run_id = c.run_id
WHERE c.workspace_id = :workspace_id AND c.memory_id = ANY(CAST(:ids AS uuid[])) AND {SPEAKS}
UNION ALL
SELECT m.memory_id, m.run_id, r.run_id IS NOT NULL, 'stored', coalesce(nullif(r.task, ''), o.task),
    CASE WHEN o.compressor = 'given' THEN coalesce(r.final_score, m.final_score) ELSE m.final_score END,
    coalesce(CASE WHEN o.compressor = 'given' THEN nullif(r.verdict, '') END, o.verdict, ''), m.created_at
FROM memories m JOIN observations o USING (workspace_id, memory_id)
LEFT JOIN runs r ON r.workspace_id = m.workspace_id AND r.run_id = m.run_id
WHERE m.workspace_id = :workspace_id AND m.memory_id = ANY(CAST(:ids AS uuid[])) AND m.kind = 'observation'
    AND NOT EXISTS (
        SELECT 1 FROM compressions c WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.memory_id
            AND (c.observation_id = m.memory_id OR c.run_id = m.run_id)
    )
"""  # noqa: S608 - constants

# Of several runs that say the same the best judged one speaks; of those judged alike the first. Where none has a score,
# the first that has a verdict.
JUDGE = text(f"""
WITH saying AS MATERIALIZED ({SAYING}), judged AS MATERIALIZED (
    SELECT DISTINCT ON (memory_id) memory_id, final_score, verdict FROM saying
    WHERE final_score IS NOT NULL OR verdict <> ''
    ORDER BY memory_id, final_score DESC NULLS LAST, said_at
), scored AS (
    UPDATE memories m SET final_score = j.final_score FROM judged j
    WHERE m.workspace_id = :workspace_id AND m.memory_id = j.memory_id
        AND j.final_score IS NOT NULL AND m.final_score IS DISTINCT FROM j.final_score
        AND NOT (:known_first AND m.final_score IS NOT NULL)
)
UPDATE observations o SET verdict = j.verdict FROM judged j
WHERE o.workspace_id = :workspace_id AND o.memory_id = j.memory_id AND o.verdict <> j.verdict
    AND NOT (:known_first AND o.verdict <> '')
""")  # noqa: S608 - constants

SAID_BY = text(f"""
SELECT run_id, stored, outcome, task, final_score, verdict, said_at
FROM ({SAYING}) AS saying
ORDER BY final_score DESC NULLS LAST, said_at LIMIT :limit
""")  # noqa: S608 - constants

TAKE_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))")

PAGE = """
SELECT {columns} FROM runs
WHERE workspace_id = :workspace_id AND {conditions} ORDER BY created_at DESC, run_id DESC LIMIT :limit
"""

POINTS = text("""
SELECT run_id, task_type, verdict, final_score, coalesce(finished_at, started_at, created_at) AS happened_at
FROM runs WHERE workspace_id = :workspace_id AND final_score IS NOT NULL
ORDER BY created_at DESC, run_id DESC LIMIT :limit
""")

GIVEN = text("""
SELECT r.recall_id, h.rank, h.score, h.memory_id, m.title, r.agent, r.created_at AS given_at, r.query, h.explain,
    h.used
FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
LEFT JOIN memories m ON m.workspace_id = h.workspace_id AND m.memory_id = h.memory_id
WHERE r.workspace_id = :workspace_id AND r.run_id = :run_id ORDER BY r.created_at, r.recall_id, h.rank LIMIT :limit
""")

COMPRESSION = text("""
SELECT c.observation_id, c.outcome, c.reason, c.memory_id,
    c.outcome IS NOT NULL AND c.memory_id IS NOT NULL AND (m.memory_id IS NULL OR m.retired_as = 'deleted') AS deleted
FROM compressions c LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE c.workspace_id = :workspace_id AND c.run_id = :run_id AND NOT c.earlier
ORDER BY c.created_at, c.observation_id LIMIT 1
""")

MADE = text(f"""
SELECT {SHOWN_COLUMNS} FROM {SHOWN}
WHERE m.workspace_id = :workspace_id AND (m.run_id = :run_id OR m.memory_id IN (
    SELECT memory_id FROM compressions WHERE workspace_id = :workspace_id AND run_id = :run_id
))
ORDER BY m.created_at, m.memory_id LIMIT :limit
""")  # noqa: S608 - constants

USES = text("""
SELECT r.run_id, n.run_id IS NOT NULL AS stored, r.recall_id, h.rank, h.score, h.used, r.created_at AS given_at, n.task,
    r.agent, n.final_score, n.verdict
FROM recall_hits h JOIN recalls r USING (workspace_id, recall_id)
LEFT JOIN runs n ON n.workspace_id = r.workspace_id AND n.run_id = r.run_id
WHERE h.workspace_id = :workspace_id AND h.memory_id = :memory_id AND r.run_id IS NOT NULL
ORDER BY r.created_at DESC, r.recall_id LIMIT :limit
""")


async def save(connection: AsyncConnection, workspace_id: int, run: NewRun) -> tuple[Run, bool]:
    """Store a run, or what is new of it; whether it was not known."""
    given = {name: getattr(run, name) for name in NewRun.__slots__}
    flags = {f"has_{name}": given[name] is not None for name in MERGED}
    values = {
        **given,
        **flags,
        "workspace_id": workspace_id,
        "queries": _array(run.queries),
        "round_scores": _array(run.round_scores),
        "issues": _array(run.issues),
        "stages": _json(run.stages),
        "metadata": _json(run.metadata),
        "started_at": None if run.started_at is None else in_utc(run.started_at),
        "finished_at": None if run.finished_at is None else in_utc(run.finished_at),
    }
    if run.output is not None:
        said = {"workspace_id": workspace_id, "run_id": run.run_id, "output": run.output}
        await connection.execute(REPLACED, said)
        await connection.execute(COME_BACK, said)
    row = (await connection.execute(SAVE, values)).one()
    return run_of(row), row.is_new


async def move_on(connection: AsyncConnection, workspace_id: int, observation_id: UUID) -> None:
    """The run's judgement from now on is not of what this observation was asked for with: it keeps the one it has."""
    values = {"workspace_id": workspace_id, "observation_id": observation_id}
    await connection.execute(ASKED_ANEW, values)


async def take_turn(connection: AsyncConnection, workspace_id: int, run_id: str) -> None:
    """Until the transaction ends nobody else judges this run, or makes its observation, whether it is stored or not."""
    await connection.execute(TAKE_TURN, {"key": f"priors.run:{workspace_id}:{run_id}"})


async def find(connection: AsyncConnection, workspace_id: int, run_id: str) -> Run | None:
    """One run."""
    row = (await connection.execute(FIND, {"workspace_id": workspace_id, "run_id": run_id})).one_or_none()
    return None if row is None else run_of(row)


async def held_by(connection: AsyncConnection, workspace_id: int, run_id: str) -> list[UUID]:
    """The memories that hold the run's observations: those made of it, and those that its observations joined."""
    rows = await connection.execute(HELD_BY, {"workspace_id": workspace_id, "run_id": run_id})
    return sorted(rows.scalars())


async def judge(
    connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, known_first: bool = False
) -> None:
    """Give these observations the score and the verdict of the best judged run that says them.

    With `known_first` only those that have none.

    Who judges holds them (`app.memories.store.lock`), so that of two runs judged at once both are heard.
    """
    if ids:
        values = {"workspace_id": workspace_id, "ids": list(ids), "known_first": known_first}
        await connection.execute(JUDGE, values)


async def said_by(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> list[MemoryTeller]:
    """The runs whose observation a memory holds, the best judged first."""
    values = {"workspace_id": workspace_id, "ids": [memory_id], "limit": MOST_SHOWN}
    return [
        MemoryTeller(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name for it
        for row in await connection.execute(SAID_BY, values)
    ]


async def page(
    connection: AsyncConnection, workspace_id: int, *, conditions: list[str], values: dict[str, Any], limit: int
) -> list[Run]:
    """Runs, newest first, without their outputs."""
    columns = ", ".join("NULL AS output" if name == "output" else name for name in NAMES)
    statement = PAGE.format(columns=columns, conditions=" AND ".join(["true", *conditions]))
    rows = await connection.execute(text(statement), {**values, "workspace_id": workspace_id, "limit": limit})
    return [run_of(row) for row in rows]


async def points(connection: AsyncConnection, workspace_id: int, *, limit: int) -> list[RunPoint]:
    """Judged runs, newest first."""
    rows = await connection.execute(POINTS, {"workspace_id": workspace_id, "limit": limit})
    return [RunPoint(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's documented name for it


async def given_to(connection: AsyncConnection, workspace_id: int, run_id: str) -> list[GivenMemory]:
    """The memories that recalls gave to a run, in the order in which they came."""
    values = {"workspace_id": workspace_id, "run_id": run_id, "limit": MOST_SHOWN}
    return [
        GivenMemory(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name for it
        for row in await connection.execute(GIVEN, values)
    ]


async def compression_of(connection: AsyncConnection, workspace_id: int, run_id: str) -> Compression | None:
    """What became of the run's observation; of several, each of a task of its own, of the first."""
    values = {"workspace_id": workspace_id, "run_id": run_id}
    row = (await connection.execute(COMPRESSION, values)).one_or_none()
    if row is None:
        return None
    return Compression(
        observation_id=row.observation_id,
        outcome=DELETED if row.deleted else row.outcome,
        reason=DELETED_SINCE if row.deleted else row.reason,
        memory_id=row.memory_id,
    )


async def made_of(connection: AsyncConnection, workspace_id: int, run_id: str) -> list[Memory]:
    """The memories that were made of a run, and those that its observations joined."""
    values = {"workspace_id": workspace_id, "run_id": run_id, "limit": MOST_SHOWN}
    return [memory_of(row) for row in await connection.execute(MADE, values)]


async def uses_of(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> list[MemoryUse]:
    """The runs that a memory was given to, newest first."""
    values = {"workspace_id": workspace_id, "memory_id": memory_id, "limit": MOST_SHOWN}
    return [
        MemoryUse(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name for it
        for row in await connection.execute(USES, values)
    ]


def run_of(row: Row[Any]) -> Run:
    """The value of a row that has COLUMNS."""
    shared = {name: getattr(row, name) for name in NAMES}
    lists = {name: tuple(shared[name]) for name in ("queries", "round_scores", "issues")}
    return Run(**{**shared, **lists})


def _array(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _json(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    return None if value is None else msgspec.json.encode(dict(value)).decode()
