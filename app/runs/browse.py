"""The verbs that walk the chain memory → run → output → judgement → memory, in both directions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.db.database import Database
from app.errors import InvalidInput, NotFound, check
from app.memories.admission import unstorable
from app.memories.browse import LARGEST_PAGE, with_memory
from app.runs import store
from app.runs.record import name_reasons
from app.runs.run import MemoryUses, Run, RunPoint, RunStory
from app.safety.secrets import mask
from app.workspaces.workspace import Workspace

MOST_POINTS = 2_000
"""Points of a plot: more cannot be told apart."""

Place = tuple[datetime, str]
"""The end of a page: the creation time and id of its last run."""


async def get_run(database: Database, *, workspace: Workspace, run_id: str) -> RunStory:
    """Returns a run with the memories it was given and those it left; its traces where it is not stored itself.

    Raises:
        NotFound: nothing in the workspace names such a run.
    """
    unknown = NotFound(f"there is no run {run_id!r} in workspace {workspace.name}")
    if any(name_reasons(run_id)):
        raise unknown
    async with database.session(workspace, transaction=False) as session:
        run = await store.find(session, run_id)
        if run is None:
            # Where its name holds a secret, every trace of it is stored without.
            run_id = mask(run_id).text
            run = await store.find(session, run_id)
        given = await store.given_to(session, run_id)
        compression = await store.compression_of(session, run_id)
        made = await store.made_of(session, run_id)
    if run is None and not given and not made and compression is None:
        raise unknown
    return RunStory(run_id=run_id, run=run, given=tuple(given), compression=compression, observations=tuple(made))


async def list_runs(
    database: Database,
    *,
    workspace: Workspace,
    task_type: str | None = None,
    verdict: str | None = None,
    agent: str | None = None,
    limit: int = 50,
    before: Place | None = None,
) -> Sequence[Run]:
    """Returns runs, newest first, after the place that `before` names.

    Raises:
        InvalidInput: a limit out of range.
    """
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
    given = {"task_type": task_type, "verdict": verdict, "agent": agent}
    check(unstorable({name: value or "" for name, value in given.items()}))
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    conditions = [f"{name} = %({name})s" for name in values]
    if before is not None:
        conditions.append("(created_at, run_id) < (%(created_at)s, %(run_id)s)")
        values |= {"created_at": before[0], "run_id": before[1]}
    async with database.session(workspace, transaction=False) as session:
        return await store.page(session, conditions=conditions, values=values, limit=limit)


async def run_points(database: Database, *, workspace: Workspace) -> Sequence[RunPoint]:
    """Returns judged runs as a plot over time shows them, the latest MOST_POINTS, newest first."""
    async with database.session(workspace, transaction=False) as session:
        return await store.points(session, limit=MOST_POINTS)


async def memory_uses(database: Database, *, workspace: Workspace, memory_id: UUID) -> MemoryUses:
    """Returns the run that made a memory, those that say the same, and those that it was given to, each judged.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (session, memory):
        maker = None if memory.run_id is None else await store.find(session, memory.run_id)
        said_by = await store.said_by(session, memory_id)
        given = await store.uses_of(session, memory_id)
    return MemoryUses(
        memory_id=memory_id,
        made_by=memory.run_id,
        made_by_stored=maker is not None,
        uses=memory.uses,
        said_by=tuple(said_by),
        given_to=tuple(given),
    )
