"""The verb that sets a workspace's language."""

from app.db.engine import Database
from app.workspaces import store
from app.workspaces.language import check_language, configuration
from app.workspaces.workspace import checked_name


async def set_language(database: Database, *, workspace: str, language: str) -> str:
    """Set the language of memories and queries that name none; what is stored keeps its own.

    The workspace is made if need be. The text search configuration that was set: `simple` for a code that
    Postgres has none for.

    Raises:
        InvalidInput: the workspace may not be called that, or there is no such language.
    """
    check_language(language)
    chosen = configuration(language)
    async with database.transaction() as connection:
        target = await store.ensure(connection, checked_name(workspace), chosen)
        await store.set_language(connection, target, chosen)
    return chosen
