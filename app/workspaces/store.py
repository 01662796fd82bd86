"""The SQL of workspaces."""

from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.workspaces.workspace import Workspace

COLUMNS = "workspace_id, name, language, languages, document_count, mean_length"


async def find(connection: AsyncConnection, name: str) -> Workspace | None:
    """The workspace of that name, if something was ever written to it."""
    statement = text(f"SELECT {COLUMNS} FROM workspaces WHERE name = :name")  # noqa: S608 - a constant
    row = (await connection.execute(statement, {"name": name})).one_or_none()
    return None if row is None else workspace_of(row)


async def get(connection: AsyncConnection, workspace_id: int) -> Workspace | None:
    """The workspace of that id."""
    statement = text(f"SELECT {COLUMNS} FROM workspaces WHERE workspace_id = :workspace_id")  # noqa: S608 - a constant
    row = (await connection.execute(statement, {"workspace_id": workspace_id})).one_or_none()
    return None if row is None else workspace_of(row)


async def ensure(connection: AsyncConnection, name: str, language: str) -> Workspace:
    """The workspace of that name, made now if need be."""
    found = await find(connection, name)
    if found is not None:
        return found
    statement = text(
        "INSERT INTO workspaces (name, language, languages) VALUES (:name, :language, ARRAY[CAST(:language AS text)])"
        " ON CONFLICT (name) DO NOTHING"
    )
    await connection.execute(statement, {"name": name, "language": language})
    made = await find(connection, name)
    assert made is not None, "the row was inserted above, by this transaction or by the one it waited for"  # noqa: S101
    return made


async def add_languages(connection: AsyncConnection, workspace: Workspace, languages: set[str]) -> None:
    """Note that memories of these languages exist: from then on queries are parsed by them too."""
    if languages <= set(workspace.languages):
        return
    statement = text(
        "UPDATE workspaces SET languages = ARRAY(SELECT DISTINCT unnest(languages || CAST(:languages AS text[]))"
        " ORDER BY 1) WHERE workspace_id = :workspace_id"
    )
    await connection.execute(statement, {"workspace_id": workspace.workspace_id, "languages": sorted(languages)})


async def set_language(connection: AsyncConnection, workspace: Workspace, language: str) -> None:
    """Change the language of memories and queries that name none; what is stored keeps its own."""
    statement = text("UPDATE workspaces SET language = :language WHERE workspace_id = :workspace_id")
    await connection.execute(statement, {"workspace_id": workspace.workspace_id, "language": language})
    await add_languages(connection, workspace, {language})


def workspace_of(row: Row[Any]) -> Workspace:
    """The value of a row that begins with COLUMNS."""
    return Workspace(
        workspace_id=row.workspace_id,
        name=row.name,
        language=row.language,
        languages=tuple(row.languages),
        document_count=row.document_count,
        mean_length=row.mean_length,
    )
