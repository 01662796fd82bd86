"""The verbs that walk the chain memory → run → output → judgement → memory, in both directions."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.db.engine import Database
from app.errors import InvalidInput, NotFound
from app.memories.admission import unstorable
from app.memories.browse import LARGEST_PAGE, get_memory
from app.runs import store
from app.runs.record import name_reasons
from app.runs.run import MemoryUses, Run, RunStory
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

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
        given = await store.given_to(connection, target.workspace_id, run_id)
        compression = await store.compression_of(connection, target.workspace_id, run_id)
        made = await store.made_of(
            connection, target.workspace_id, run_id, compression.memory_id if compression else None
        )
    if run is None and not given and not made and compression is None:
        raise unknown
    return RunStory(run_id=run_id, run=run, given=tuple(given), compression=compression, observations=tuple(made))


async def list_runs(
    database: Database,
    *,
    workspace: str,
    task_type: str | None = None,
    limit: int = 50,
    before: Place | None = None,
) -> Sequence[Run]:
    """Runs, newest first, after the place that `before` names.

    Raises:
        InvalidInput: a limit out of range.
    """
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
    for reason in unstorable({"task_type": task_type or ""}):
        raise InvalidInput("task_type", reason.partition(": ")[2])
    conditions = ["task_type = :task_type"] * (task_type is not None)
    conditions += ["(created_at, run_id) < (:created_at, :run_id)"] * (before is not None)
    values = {"task_type": task_type} if task_type is not None else {}
    if before is not None:
        values |= {"created_at": before[0], "run_id": before[1]}  # type: ignore[dict-item] # one mapping of any values
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return []
        return await store.page(connection, target.workspace_id, conditions=conditions, values=values, limit=limit)


async def memory_uses(database: Database, *, workspace: str, memory_id: UUID) -> MemoryUses:
    """The run that made a memory, and those that it was given to, each with how it was judged.

    Raises:
        NotFound: the workspace has no such memory.
    """
    memory = await get_memory(database, workspace=workspace, memory_id=memory_id)
    async with database.statements() as connection:
        target = await workspaces.find(connection, workspace)
        assert target is not None, "the memory is in it"  # noqa: S101
        maker = None if memory.run_id is None else await store.find(connection, target.workspace_id, memory.run_id)
        given = await store.uses_of(connection, target.workspace_id, memory_id)
    return MemoryUses(
        memory_id=memory_id,
        made_by=memory.run_id,
        made_by_stored=maker is not None,
        uses=memory.uses,
        given_to=tuple(given),
    )
