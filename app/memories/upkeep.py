"""The verbs that keep statistics fresh: the lexical arm's, and the planner's."""

from sqlalchemy import text

from app.db.engine import Database
from app.memories import lexical_index


async def refresh_workspace_statistics(
    database: Database, workspace_id: int, *, force: bool = False, stale: float = lexical_index.STALE
) -> bool:
    """Take a workspace's document frequencies and lengths anew, if they have become so stale; whether they had.

    The planner learns of tables that have grown, too.
    """
    async with database.statements() as connection:
        await lexical_index.inform_planner(connection)
    async with database.transaction() as connection:
        return await lexical_index.refresh_statistics(connection, workspace_id, force=force, stale=stale)


async def refresh_all_statistics(database: Database, *, stale: float = lexical_index.STALE) -> int:
    """The same for every workspace. How many were so stale."""
    async with database.statements() as connection:
        ids = (await connection.execute(text("SELECT workspace_id FROM workspaces ORDER BY 1"))).scalars().all()
    return sum([await refresh_workspace_statistics(database, workspace_id, stale=stale) for workspace_id in ids])
