"""The verbs that walk the chain memory → run → output → judgement → memory, in both directions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.db.engine import Database
from app.errors import InvalidInput, NotFound, check
from app.memories.admission import unstorable
from app.memories.browse import LARGEST_PAGE, with_memory
from app.runs import store
from app.runs.record import name_reasons
from app.runs.run import MemoryUses, Run, RunPoint, RunStory
from app.safety.secrets import mask
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

MOST_POINTS = 2_000
"""Of a plot: more cannot be told apart."""

Place = tuple[datetime, str]
"""Where a page ended: the creation time and id of its last run."""


async def get_run(database: Database, *, workspace: str, run_id: str) -> RunStory:
    """A run with the memories it was given and those it left; its traces where it is not stored itself.

    Raises:
        NotFound: nothing in the workspace names such a run.
    """
    unknown = NotFound(f"there is no run {run_id!r} in workspace {workspace}")
    if any(name_reasons(run_id)):
        raise unknown
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            raise unknown
        run = await store.find(connection, target.workspace_id, run_id)
        if run is None:
            # Where its name holds a secret, every trace of it is stored without.
            run_id = mask(run_id).text
            run = await store.find(connection, target.workspace_id, run_id)
        given = await store.given_to(connection, target.workspace_id, run_id)
        compression = await store.compression_of(connection, target.workspace_id, run_id)
        made = await store.made_of(connection, target.workspace_id, run_id)
    if run is None and not given and not made and compression is None:
        raise unknown
    return RunStory(run_id=run_id, run=run, given=tuple(given), compression=compression, observations=tuple(made))


async def list_runs(
    database: Database,
    *,
    workspace: str,
    task_type: str | None = None,
    verdict: str | None = None,
    agent: str | None = None,
    limit: int = 50,
    before: Place | None = None,
) -> Sequence[Run]:
    """Runs, newest first, after the place that `before` names.

    Raises:
        InvalidInput: a limit out of range.
    """
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
    given = {"task_type": task_type, "verdict": verdict, "agent": agent}
    check(unstorable({name: value or "" for name, value in given.items()}))
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    conditions = [f"{name} = :{name}" for name in values]
    if before is not None:
        conditions.append("(created_at, run_id) < (:created_at, :run_id)")
        values |= {"created_at": before[0], "run_id": before[1]}
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return []
        return await store.page(connection, target.workspace_id, conditions=conditions, values=values, limit=limit)


async def run_points(database: Database, *, workspace: str) -> Sequence[RunPoint]:
    """Judged runs as a plot over time shows them, the latest MOST_POINTS, newest first."""
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        return [] if target is None else await store.points(connection, target.workspace_id, limit=MOST_POINTS)


async def memory_uses(database: Database, *, workspace: str, memory_id: UUID) -> MemoryUses:
    """The run that made a memory, those that say the same, and those that it was given to, each with its judgement.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (connection, workspace_id, memory):
        maker = None if memory.run_id is None else await store.find(connection, workspace_id, memory.run_id)
        said_by = await store.said_by(connection, workspace_id, memory_id)
        given = await store.uses_of(connection, workspace_id, memory_id)
    return MemoryUses(
        memory_id=memory_id,
        made_by=memory.run_id,
        made_by_stored=maker is not None,
        uses=memory.uses,
        said_by=tuple(said_by),
        given_to=tuple(given),
    )
