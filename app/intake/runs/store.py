"""The SQL of runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.foundation.db.session import Row, Session, as_kind
from app.intake.cases.extract import case_of_run
from app.intake.runs.run import (
    DELETED_SINCE,
    SUPERSEDED_SINCE,
    GivenCue,
    GivenMemory,
    MemoryTeller,
    MemoryUse,
    NewRun,
    Recorded,
    Run,
)
from app.storage.index.indexing import NAME
from app.storage.memories import changes
from app.storage.memories.changes import MemoryJudgement
from app.storage.memories.memory import DELETED, SUPERSEDED, Memory, in_utc
from app.storage.memories.store import SHOWN, SHOWN_COLUMNS, as_json, memory_of
from app.storage.memories.wording import is_long, plain
from app.storage.recalls.parts import parts_of

_NAMES = [name for name in Run.__struct_fields__ if name not in {"tokens", "cost"}]
_COLUMNS = ", ".join(_NAMES)
_MERGED = {
    "task": "text", "task_type": "text", "agent": "text", "queries": "text[]", "output": "text", "output_path": "text",
    "lines": "integer", "bytes": "bigint", "round_scores": "real[]", "final_score": "real", "verdict": "text",
    "issues": "text[]", "stages": "json", "started_at": "timestamptz", "finished_at": "timestamptz",
}  # fmt: skip
"""Fields that a later message about a run replaces if it gives them, with their types; metadata is merged by key."""
_NEVER_NULL = {
    "task": "''", "task_type": "''", "verdict": "''", "queries": "'{}'", "round_scores": "'{}'", "issues": "'{}'",
    "stages": "'{}'", "metadata": "'{}'",
}  # fmt: skip
"""The values of these columns if no message has given them."""
_PARAMETERS = {name: f"%({name})s::{kind}" for name, kind in {"run_id": "text", **_MERGED, "metadata": "jsonb"}.items()}
_INSERTED = {name: f"coalesce({value}, {_NEVER_NULL.get(name, 'NULL')})" for name, value in _PARAMETERS.items()}
_MOST_SHOWN = 1_000

_SAVE = f"""
INSERT INTO runs AS r (workspace_id, {", ".join(_INSERTED)}) VALUES (%(workspace_id)s, {", ".join(_INSERTED.values())})
ON CONFLICT (workspace_id, run_id) DO UPDATE SET
    {", ".join(f"{name} = coalesce({_PARAMETERS[name]}, r.{name})" for name in _MERGED)},
    metadata = r.metadata || EXCLUDED.metadata, updated_at = EXCLUDED.updated_at,
    output_replaced = r.output_replaced OR coalesce(r.output <> EXCLUDED.output, false)
RETURNING {_COLUMNS}, (xmax = 0) AS is_new
"""  # noqa: S608 - constants

_FIND = f"SELECT {_COLUMNS} FROM runs WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s"  # noqa: S608 - constants

_NAMING = "SELECT task, metadata FROM runs WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s"

ISSUES = "unnest(ARRAY(SELECT jsonb_array_elements_text(c.request -> 'issues')) || r.issues) WITH ORDINALITY"
"""The issues in the request for an observation `c`, then those of its run `r`, each with its place."""

# An observation that was requested for an output keeps its judgement when the run replaces that output: the run's next
# judgement is of the next output. The run may return to the earlier output.
_MOVE_ON = f"""
WITH judged AS MATERIALIZED (
    SELECT c.observation_id, CASE WHEN r.run_id IS NULL THEN '{{{{}}}}' ELSE jsonb_build_object(
        'final_score', coalesce(to_jsonb(r.final_score), c.request -> 'final_score'),
        'verdict', coalesce(nullif(r.verdict, ''), c.request ->> 'verdict', ''),
        'issues', coalesce((
            SELECT jsonb_agg(issue ORDER BY place) FROM (
                SELECT issue, min(place) AS place
                FROM {ISSUES} AS said(issue, place)
                GROUP BY issue
            ) AS once
        ), '[]')
    ) END AS fields
    FROM compressions c LEFT JOIN runs r ON r.workspace_id = c.workspace_id AND r.run_id = c.run_id
    WHERE c.workspace_id = %(workspace_id)s AND NOT c.moved_on AND {{condition}}
)
UPDATE compressions c SET moved_on = true, request = c.request || judged.fields
FROM judged WHERE c.workspace_id = %(workspace_id)s AND c.observation_id = judged.observation_id
"""  # noqa: S608 - constants
_REPLACED = _MOVE_ON.format(
    condition="c.run_id = %(run_id)s AND c.request ->> 'output' <> %(output)s AND c.request ->> 'output' = r.output"
)
_ASKED_ANEW = _MOVE_ON.format(condition="c.observation_id = %(observation_id)s")
_COME_BACK = """
UPDATE compressions SET moved_on = false
WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND moved_on AND NOT earlier
    AND request ->> 'output' = %(output)s
"""

_HELD_BY = """
SELECT memory_id FROM memories WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND kind = 'observation'
UNION
SELECT memory_id FROM compressions
WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND memory_id IS NOT NULL
"""

# A run that returned to an earlier output counts once, with its present judgement.
SPEAKS = """c.outcome IN ('stored', 'joined') AND NOT (c.earlier AND EXISTS (
    SELECT 1 FROM compressions l WHERE l.workspace_id = %(workspace_id)s AND l.memory_id = c.memory_id
        AND l.run_id = c.run_id AND l.outcome IN ('stored', 'joined') AND l.finished_at > c.finished_at
        AND l.request ->> 'task' = c.request ->> 'task'
))"""

# A run's own task, score and verdict take precedence over those in the request for its observation; score and verdict
# only while the run still has the output that was compressed. The fields of the memory itself count if neither
# judges the run that made it, or if that run's output is unknown.
_SAYING = f"""
SELECT c.memory_id, c.run_id, r.run_id IS NOT NULL AS stored, c.outcome,
    coalesce(nullif(r.task, ''), c.request ->> 'task') AS task,
    CASE WHEN c.moved_on THEN (c.request ->> 'final_score')::real
        ELSE coalesce(r.final_score, (c.request ->> 'final_score')::real) END AS final_score,
    coalesce(CASE WHEN NOT c.moved_on THEN nullif(r.verdict, '') END, c.request ->> 'verdict', '') AS verdict,
    c.created_at AS said_at
FROM compressions c LEFT JOIN runs r ON r.workspace_id = c.workspace_id AND r.run_id = c.run_id
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = ANY(%(ids)s::uuid[]) AND {SPEAKS}
UNION ALL
SELECT m.memory_id, m.run_id, r.run_id IS NOT NULL, 'stored', coalesce(nullif(r.task, ''), o.task),
    CASE WHEN o.compressor = 'given' THEN coalesce(r.final_score, m.final_score) ELSE m.final_score END,
    coalesce(CASE WHEN o.compressor = 'given' THEN nullif(r.verdict, '') END, o.verdict, ''), m.created_at
FROM memories m JOIN observations o USING (workspace_id, memory_id)
LEFT JOIN runs r ON r.workspace_id = m.workspace_id AND r.run_id = m.run_id
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND m.kind = 'observation'
    AND NOT EXISTS (
        SELECT 1 FROM compressions c WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = m.memory_id
            AND (c.observation_id = m.memory_id OR c.run_id = m.run_id)
    )
"""  # noqa: S608 - constants

# If several runs say the same, the best judged one counts, and the first among equals. If none has a score, the first
# one that has a verdict counts.
_JUDGED = f"""
SELECT DISTINCT ON (memory_id) memory_id, final_score, verdict FROM ({_SAYING}) AS saying
WHERE final_score IS NOT NULL OR verdict <> ''
ORDER BY memory_id, final_score DESC NULLS LAST, said_at
"""  # noqa: S608 - constants

_SAID_BY = f"""
SELECT run_id, stored, outcome, task, final_score, verdict, said_at
FROM ({_SAYING}) AS saying
ORDER BY final_score DESC NULLS LAST, said_at LIMIT %(limit)s
"""  # noqa: S608 - constants

_UNJUDGED_OF_ALL = """
SELECT workspace_id, run_id FROM runs r
WHERE user_id = '' AND (final_score IS NOT NULL OR verdict <> '' OR issues <> '{}') AND NOT EXISTS (
    SELECT 1 FROM judgements j WHERE j.workspace_id = r.workspace_id AND j.run_id = r.run_id
) LIMIT %(limit)s
"""
_MARKED = """
SELECT run_id FROM runs WHERE workspace_id = %(workspace_id)s AND jsonb_exists(metadata, %(mark)s)
UNION SELECT name FROM unnest(%(names)s::text[]) AS known(name) WHERE NOT EXISTS (
    SELECT FROM runs WHERE workspace_id = %(workspace_id)s AND run_id = name
) ORDER BY 1
"""
_FORGET = """
WITH requests AS (
    DELETE FROM compressions WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s::text[])
)
DELETE FROM runs WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s::text[])
"""

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))"

_PAGE = f"""
SELECT {", ".join("NULL AS output" if name == "output" else name for name in _NAMES)} FROM runs
WHERE workspace_id = %(workspace_id)s AND {{conditions}} ORDER BY created_at DESC, run_id DESC LIMIT %(limit)s
"""  # noqa: S608 - constants

# The first number is the length of the text then: if it has another now, it was edited, and the passages are not known.
_SHOWN = """CASE WHEN h.shown[1] = length(m.body) THEN (
    SELECT string_agg(substr(m.body, h.shown[2 * place] + 1, h.shown[2 * place + 1] - h.shown[2 * place]),
        E'\\n\\n…\\n\\n' ORDER BY place)
    FROM generate_series(1, cardinality(h.shown) / 2) AS place
) END"""
# Only the outputs of runs that were compressed are compared by meaning; a text that stands in an output is used anyway.
_GIVEN = f"""
WITH said AS MATERIALIZED (
    SELECT {plain("output")} AS text FROM runs
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
)
SELECT r.recall_id, h.rank, h.score, h.memory_id, {NAME} AS title, {_SHOWN} AS shown, r.agent,
    r.created_at AS given_at, r.query, h.explain,
    r.parameters -> 'weights' ->> 'quality' AS quality_weight,
    CASE
        WHEN h.used THEN 'used'
        WHEN {is_long("plain.body")} AND strpos(said.text, plain.body) > 0 THEN 'used'
        WHEN EXISTS (
            SELECT FROM compressions c WHERE c.workspace_id = r.workspace_id AND c.run_id = r.run_id
                AND c.outcome IS NOT NULL
        ) THEN 'not used'
        ELSE 'not known'
    END AS used
FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
LEFT JOIN memories m ON m.workspace_id = h.workspace_id AND m.memory_id = h.memory_id
LEFT JOIN said ON true
CROSS JOIN LATERAL (SELECT {plain("m.body")} AS body) AS plain
WHERE r.workspace_id = %(workspace_id)s AND r.run_id = %(run_id)s
ORDER BY r.created_at, r.recall_id, h.rank LIMIT %(limit)s
"""  # noqa: S608 - constants

RECORDED = """c.observation_id, c.outcome, c.reason, c.memory_id,
    c.outcome IS NOT NULL AND c.memory_id IS NOT NULL AND (m.memory_id IS NULL OR m.retired_as = 'deleted') AS deleted,
    m.retired_as IS NOT DISTINCT FROM 'superseded' AS superseded, (
        SELECT o.superseded_by FROM observations o WHERE o.workspace_id = %(workspace_id)s AND o.memory_id = m.memory_id
    ) AS superseded_by
"""
"""Columns of a compression `c` and its memory `m`."""

_COMPRESSION = f"""
SELECT {RECORDED}
FROM compressions c LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE c.workspace_id = %(workspace_id)s AND c.run_id = %(run_id)s AND NOT c.earlier
ORDER BY c.created_at, c.observation_id LIMIT 1
"""  # noqa: S608 - constants

_MADE = f"""
SELECT {SHOWN_COLUMNS} FROM {SHOWN}
WHERE m.workspace_id = %(workspace_id)s AND (m.run_id = %(run_id)s OR m.memory_id IN (
    SELECT memory_id FROM compressions WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
))
ORDER BY m.created_at, m.memory_id LIMIT %(limit)s
"""  # noqa: S608 - constants

_USES = """
SELECT r.run_id, n.run_id IS NOT NULL AS stored, r.recall_id, h.rank, h.score, h.used, r.created_at AS given_at, n.task,
    r.agent, n.final_score, n.verdict
FROM recall_hits h JOIN recalls r USING (workspace_id, recall_id)
LEFT JOIN runs n ON n.workspace_id = r.workspace_id AND n.run_id = r.run_id
WHERE h.workspace_id = %(workspace_id)s AND h.memory_id = %(memory_id)s AND r.run_id IS NOT NULL
ORDER BY r.created_at DESC, r.recall_id LIMIT %(limit)s
"""
_FORGET_USER = """
WITH runs_of AS (DELETE FROM runs WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s RETURNING run_id),
requests AS (DELETE FROM compressions WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s)
SELECT count(*) FROM runs_of
"""


async def save(session: Session, run: NewRun) -> tuple[Run, bool]:
    """Stores a run or its new fields; returns it, and whether it is new."""
    if run.output is not None:
        said = {"run_id": run.run_id, "output": run.output}
        await session.execute(_REPLACED, said)
        await session.execute(_COME_BACK, said)
    row = await session.one(_SAVE, {name: _column_value(getattr(run, name)) for name in NewRun.__struct_fields__})
    return as_kind(row, Run), row.is_new


def _column_value(value: Any) -> Any:  # noqa: ANN401 - any field of a run
    """Returns a field's value in the form that its column takes."""
    match value:
        case tuple():
            return list(value)
        case Mapping():
            return as_json(dict(value))
        case datetime():
            return in_utc(value)
    return value


async def move_on(session: Session, observation_id: UUID) -> None:
    """Fixes an observation's judgement, because its run's next judgement is of another output."""
    await session.execute(_ASKED_ANEW, {"observation_id": observation_id})


async def lock(session: Session, name: str, *, kind: str = "run") -> None:
    """Locks a run, stored or not, or a task, until the transaction ends.

    Meanwhile no other transaction judges the run, makes its observation, or stores an observation of the task.
    """
    await session.execute(_LOCK, {"key": f"priors.{kind}:{session.workspace_id}:{name}"})


async def find(session: Session, run_id: str) -> Run | None:
    """Returns a run, if it is stored."""
    return await session.row_as(Run, _FIND, {"run_id": run_id})


async def case_of(session: Session, run_id: str) -> tuple[str, str]:
    """Returns the case and the version of a run, each empty where nothing names it; the run may be unknown."""
    row = await session.row(_NAMING, {"run_id": run_id})
    return case_of_run(run_id, "", {}) if row is None else case_of_run(run_id, row.task, row.metadata)


async def unjudged_of_all(session: Session, *, limit: int) -> list[Row]:
    """Returns the `workspace_id` and `run_id` of judged runs whose judgement is not among the judgements."""
    return await session.rows(_UNJUDGED_OF_ALL, {"limit": limit})


async def runs_with_key(session: Session, mark: str, names: Sequence[str]) -> list[str]:
    """Returns the names of the runs whose metadata has this key, and those of `names` that no stored run has."""
    return await session.column(_MARKED, {"mark": mark, "names": list(names)})


async def forget(session: Session, run_ids: Sequence[str]) -> int:
    """Removes these runs and their requests for observations; returns the number of runs that were stored.

    Whoever records one of them meanwhile waits. The memories that were made of them stay.
    """
    for run_id in sorted(run_ids):
        await lock(session, run_id)
    return await session.execute(_FORGET, {"run_ids": list(run_ids)})


async def held_by(session: Session, run_id: str) -> list[UUID]:
    """Returns the memories that hold the run's observations: those made of it, and those that they joined."""
    return sorted(await session.column(_HELD_BY, {"run_id": run_id}))


async def judge(session: Session, ids: Sequence[UUID], *, known_first: bool = False) -> None:
    """Gives these observations the score and the verdict of the best judged run that states them.

    With `known_first` it changes only unjudged ones. The caller locks them (`app.storage.memories.store.lock`), so that
    concurrent judgements of two runs both count.
    """
    if not ids:
        return
    found = [MemoryJudgement(*row) for row in await session.tuples(_JUDGED, {"ids": list(ids)})]
    await changes.judge(session, found, known_first=known_first)


async def said_by(session: Session, memory_id: UUID) -> list[MemoryTeller]:
    """Returns the runs whose observation a memory holds, the best judged first."""
    return await session.rows_as(MemoryTeller, _SAID_BY, {"ids": [memory_id], "limit": _MOST_SHOWN})


async def page(session: Session, *, conditions: list[str], values: dict[str, Any], limit: int) -> list[Run]:
    """Returns runs, newest first, without their outputs."""
    statement = _PAGE.format(conditions=" AND ".join(["true", *conditions]))
    return await session.rows_as(Run, statement, {**values, "limit": limit})


_WARNED = """
SELECT a.activation_id, c.memory_id, m.body AS lesson, a.plan, a.created_at AS given_at, c.outcome
FROM activations a JOIN activation_cues c USING (workspace_id, activation_id)
LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
WHERE a.workspace_id = %(workspace_id)s AND a.run_id = %(run_id)s
ORDER BY a.created_at, a.activation_id, c.rank LIMIT %(limit)s
"""


async def warned_by(session: Session, run_id: str) -> list[GivenCue]:
    """Returns the cues that a run was warned by, in the order of its plans."""
    return await session.rows_as(GivenCue, _WARNED, {"run_id": run_id, "limit": _MOST_SHOWN})


async def given_to(session: Session, run_id: str) -> list[GivenMemory]:
    """Returns the memories that recalls gave to a run, in the order of the recalls."""
    rows = await session.rows(_GIVEN, {"run_id": run_id, "limit": _MOST_SHOWN})
    return [_given_memory(row) for row in rows]


def _given_memory(row: Row) -> GivenMemory:
    values = row._asdict()
    weight = values.pop("quality_weight")
    parts = parts_of(row.score, row.explain, None if weight is None else float(weight))
    return GivenMemory(**values, parts=parts)


async def compression_of(session: Session, run_id: str) -> Recorded | None:
    """Returns the state of the run's observation, or of the first one if the run had several tasks."""
    row = await session.row(_COMPRESSION, {"run_id": run_id})
    return None if row is None else recorded_of(row)


def recorded_of(row: Row) -> Recorded:
    """Returns the state of an observation from a row with RECORDED."""
    outcome, reason = row.outcome, row.reason
    if row.deleted:
        outcome, reason = DELETED, DELETED_SINCE
    elif row.superseded:
        outcome = SUPERSEDED
        reason = SUPERSEDED_SINCE + (f": {row.superseded_by}" if row.superseded_by else "")
    return Recorded(observation_id=row.observation_id, outcome=outcome, reason=reason, memory_id=row.memory_id)


async def made_of(session: Session, run_id: str) -> list[Memory]:
    """Returns the memories that were made of a run, and those that its observations joined."""
    values = {"run_id": run_id, "limit": _MOST_SHOWN}
    return [memory_of(row) for row in await session.rows(_MADE, values)]


async def uses_of(session: Session, memory_id: UUID) -> list[MemoryUse]:
    """Returns the runs that a memory was given to, newest first."""
    return await session.rows_as(MemoryUse, _USES, {"memory_id": memory_id, "limit": _MOST_SHOWN})


async def forget_user(session: Session, user: str) -> int:
    """Removes the runs of a user, and their requests for observations; returns the number of runs."""
    return int(await session.value(_FORGET_USER, {"user": user}))
