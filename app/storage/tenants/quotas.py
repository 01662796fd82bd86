"""The verbs of quotas: whether a workspace has room, and how many memories it may have."""

from app.errors import check, limit_reasons
from app.foundation.db.database import Database
from app.storage.tenants import usage
from app.storage.tenants.resolve import get_or_create
from app.storage.tenants.usage import Use
from app.storage.tenants.workspace import UNMADE, Workspace

HIGHEST = 10**15


async def check_room(database: Database, workspace: Workspace, wanted: int = 1) -> None:
    """Checks that one more memory fits, before the work of making one is begun. What is written is checked again.

    Where the `wanted` memories may not fit, what is live is counted here: a count that a refused write takes is lost.

    Raises:
        QuotaReached: the workspace is full.
    """
    if workspace.workspace_id == UNMADE:
        return
    async with database.session(workspace, transaction=False) as session:
        found = await usage.read(session)
    if found is None:
        return
    if found.lacks_a_count(wanted):
        async with database.session(workspace) as session:
            found = await usage.count(session)
    found.use.check(1)


async def set_quota(database: Database, *, workspace: Workspace, memories: int | None) -> Use | None:
    """Sets how many memories a workspace may have: None for the setting's number, 0 for no limit.

    Returns what it has of it, None for no limit. What it has beyond it stays.

    Raises:
        InvalidInput: the number is out of range.
    """
    check(limit_reasons({"memories": memories}, HIGHEST))
    workspace = await get_or_create(database, workspace)
    async with database.session(workspace) as session:
        await usage.set_quota(session, memories)
        await usage.count(session)
        return await usage.use_of_quota(session)


async def quota_of(database: Database, workspace: Workspace) -> Use | None:
    """Returns what a workspace has of its quota; None if it has none."""
    async with database.session(workspace, transaction=False) as session:
        return await usage.use_of_quota(session)
