"""The SQL of activations: what was told to whom, and whether it was heeded."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from app.foundation.db.session import Session
from app.storage.memories.store import as_json

_ADD = """
WITH added AS (
    INSERT INTO activations (workspace_id, activation_id, plan, files, agent, run_id, budget_tokens, tokens, degraded,
        took_ms)
    VALUES (%(workspace_id)s, %(activation_id)s, %(plan)s, %(files)s::text[], %(agent)s, %(run_id)s,
        %(budget_tokens)s, %(tokens)s, %(degraded)s, %(took_ms)s)
    ON CONFLICT (workspace_id, activation_id) DO NOTHING RETURNING activation_id
), told AS (
    INSERT INTO activation_cues (workspace_id, activation_id, rank, memory_id, score, explain)
    SELECT %(workspace_id)s, added.activation_id, given.rank, given.memory_id, given.score, given.explain
    FROM added, jsonb_populate_recordset(NULL::activation_cues, %(cues)s::jsonb) AS given
    RETURNING rank
), counted AS (
    UPDATE cues c SET fired = c.fired + 1, last_fired_at = now() FROM added
    WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = ANY(%(ids)s::uuid[])
)
SELECT EXISTS (SELECT FROM added)
"""
GET = """
SELECT a.activation_id, a.plan, a.agent, a.run_id, a.created_at, a.settled_at,
    (SELECT coalesce(json_object_agg(h.memory_id, h.outcome ORDER BY h.rank), '{{}}')
    FROM activation_cues h WHERE h.workspace_id = %(workspace_id)s AND h.activation_id = a.activation_id) AS outcomes
FROM activations a WHERE a.workspace_id = %(workspace_id)s AND {condition} ORDER BY a.created_at, a.activation_id
"""
_FORGET_RUN = "DELETE FROM activations WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s"
_SETTLE = """
WITH given AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(outcomes)s::text[]) AS given(memory_id, outcome)
), before AS MATERIALIZED (
    SELECT h.memory_id, h.outcome FROM activation_cues h
    WHERE h.workspace_id = %(workspace_id)s AND h.activation_id = %(activation_id)s FOR UPDATE
), settled AS (
    UPDATE activation_cues h SET outcome = given.outcome FROM given
    WHERE h.workspace_id = %(workspace_id)s AND h.activation_id = %(activation_id)s AND h.memory_id = given.memory_id
), closed AS (
    UPDATE activations SET settled_at = now()
    WHERE workspace_id = %(workspace_id)s AND activation_id = %(activation_id)s
)
UPDATE cues c SET
    heeded = c.heeded + (given.outcome = 'heeded')::int - coalesce(before.outcome = 'heeded', false)::int,
    ignored = c.ignored + (given.outcome = 'ignored')::int - coalesce(before.outcome = 'ignored', false)::int
FROM given JOIN before USING (memory_id)
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = given.memory_id
"""
_FORGET_USER = "DELETE FROM activations WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s"


class LoggedActivation(Struct, frozen=True, kw_only=True, rename={"activation_id": "id"}):
    """An activation as it was logged."""

    activation_id: UUID
    plan: str
    agent: str | None
    run_id: str | None
    created_at: datetime
    settled_at: datetime | None
    """The moment at which its outcome was told or inferred."""
    outcomes: Mapping[UUID, str | None]
    """The cues that were told, best first, each with `heeded`, `ignored` or None."""


async def add(session: Session, activation: Mapping[str, Any], cues: Sequence[Mapping[str, Any]]) -> bool:
    """Logs an activation, and counts that its cues fired; returns False if one of its id is logged already."""
    ids = sorted(cue["memory_id"] for cue in cues)
    return bool(await session.value(_ADD, {**activation, "cues": as_json(cues), "ids": ids}))


async def get(session: Session, activation_id: UUID) -> LoggedActivation | None:
    """Returns an activation; None if the workspace has none of this id."""
    found = await _read(session, "a.activation_id = %(activation_id)s", {"activation_id": activation_id})
    return found[0] if found else None


async def of_run(session: Session, run_id: str) -> list[LoggedActivation]:
    """Returns the activations of a run."""
    return await _read(session, "a.run_id = %(run_id)s", {"run_id": run_id})


async def forget_run(session: Session, run_id: str) -> None:
    """Removes the activations of a run."""
    await session.execute(_FORGET_RUN, {"run_id": run_id})


async def _read(session: Session, condition: str, values: Mapping[str, Any]) -> list[LoggedActivation]:
    rows = await session.rows(GET.format(condition=condition), values)
    return [
        LoggedActivation(**{**row._asdict(), "outcomes": {UUID(key): outcome for key, outcome in row.outcomes.items()}})
        for row in rows
    ]


async def settle(session: Session, activation_id: UUID, outcomes: Mapping[UUID, str]) -> None:
    """Notes which cues of an activation were heeded and which ignored; an earlier outcome is taken back."""
    ids = sorted(outcomes)
    values = {"ids": ids, "outcomes": [outcomes[cue_id] for cue_id in ids], "activation_id": activation_id}
    await session.execute(_SETTLE, values)


async def forget_user(session: Session, user: str) -> int:
    """Removes the activations that were asked for a user; returns their number."""
    return await session.execute(_FORGET_USER, {"user": user})
