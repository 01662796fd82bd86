"""The SQL of workspaces. Finding one by its name goes through functions that see all of them."""

from app.db.session import Row, Session
from app.workspaces.workspace import Workspace

FIND = "SELECT workspace_id, name, language, languages FROM priors_workspace(%(name)s)"
MAKE = "SELECT workspace_id, name, language, languages FROM priors_make_workspace(%(name)s, %(language)s)"
GET = "SELECT workspace_id, name, language, languages FROM workspaces WHERE workspace_id = %(workspace_id)s"
ADD_LANGUAGES = """
UPDATE workspaces SET languages = ARRAY(SELECT DISTINCT unnest(languages || %(languages)s::text[]) ORDER BY 1)
WHERE workspace_id = %(workspace_id)s AND NOT languages @> %(languages)s::text[]
"""
SET_LANGUAGE = "UPDATE workspaces SET language = %(language)s WHERE workspace_id = %(workspace_id)s"


async def find(session: Session, name: str) -> Workspace | None:
    """Returns the workspace of that name, if something was ever written to it."""
    row = await session.row(FIND, {"name": name})
    return None if row is None else _workspace_of(row)


async def make(session: Session, name: str, language: str) -> Workspace:
    """Returns the workspace of that name, made now if it does not exist."""
    return _workspace_of(await session.one(MAKE, {"name": name, "language": language}))


async def get(session: Session) -> Workspace | None:
    """Returns the session's workspace; None where it does not exist."""
    row = await session.row(GET)
    return None if row is None else _workspace_of(row)


async def add_languages(session: Session, workspace: Workspace, languages: set[str]) -> None:
    """Note that memories of these languages exist: from then on queries are parsed by them as well."""
    if not languages <= set(workspace.languages):
        await session.execute(ADD_LANGUAGES, {"languages": sorted(languages)})


async def set_language(session: Session, workspace: Workspace, language: str) -> None:
    """Change the language of memories and queries that name none. Stored memories keep theirs."""
    await session.execute(SET_LANGUAGE, {"language": language})
    await add_languages(session, workspace, {language})


def _workspace_of(row: Row) -> Workspace:
    return Workspace(
        workspace_id=row.workspace_id, name=row.name, language=row.language, languages=tuple(row.languages)
    )
