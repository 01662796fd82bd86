"""The verbs of quotas: whether a workspace has room, and what it may have."""

from app.db.database import Database
from app.errors import check, limit_reasons
from app.workspaces import usage
from app.workspaces.resolve import made
from app.workspaces.usage import More, OwnQuota, Use
from app.workspaces.workspace import UNMADE, Workspace

HIGHEST = 10**15
ONE = More(memories=1, size=1)


async def check_room(database: Database, workspace: Workspace, wanted: More = ONE) -> None:
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
    found.check(ONE)


async def set_quota(database: Database, *, workspace: Workspace, quota: OwnQuota) -> tuple[Use, ...]:
    """Sets the quota of a workspace; returns what it has of it. What it has beyond it stays.

    Raises:
        InvalidInput: a limit is out of range.
    """
    check(limit_reasons(quota._asdict(), HIGHEST))
    workspace = await made(database, workspace)
    async with database.session(workspace) as session:
        await usage.set_quota(session, quota)
        await usage.count(session)
        return await usage.limited_uses(session)


async def quota_of(database: Database, workspace: Workspace) -> tuple[OwnQuota, tuple[Use, ...]]:
    """Returns the limits that a workspace has of its own, and what it has of each quota."""
    async with database.session(workspace, transaction=False) as session:
        return await usage.own_quota(session), await usage.limited_uses(session)
