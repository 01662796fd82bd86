"""What there is to filter memories by."""

from dataclasses import dataclass

from app.db.engine import Database
from app.memories import shown
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

Counts = tuple[tuple[str, int], ...]
MOST_VALUES = 200
"""Of each facet: more is no choice any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The values that live memories have, each with how many have it, the most frequent first."""

    kinds: Counts = ()
    task_types: Counts = ()
    verdicts: Counts = ()
    tags: Counts = ()


async def list_facets(database: Database, *, workspace: str) -> Facets:
    """What there is to filter by."""
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return Facets()
        found = await shown.facets(connection, target.workspace_id, limit=MOST_VALUES)
    return Facets(**{name: tuple(counts) for name, counts in found.items()})
