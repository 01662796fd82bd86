"""The door for programs that run the service's parts in their own process: a memory backend without HTTP."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from priors_client.async_backend import AsyncNotes
from priors_client.entries import Entry, NotAccepted, checked, checked_k, checked_query, checked_tags, entry_of

from app.recall.retrieval.recall import Query
from app.storage.memories.filters import Filters
from app.storage.memories.memory import NewMemory
from app.storage.memories.service import NEWEST
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

Place: TypeAlias = tuple[datetime | float, UUID]
"""The creation time and the id of the last note of a page."""


class ServiceBackend(AsyncNotes[Place]):
    """The notes of a workspace that belong to no user. Vectors, links and access counts are a worker's work."""

    def __init__(self, services: Services, workspace: str = "") -> None:
        """`services` are open for as long as this is used; without a workspace, the configured default holds."""
        self._services, self._name = services, workspace or services.settings.workspace

    async def store(self, content: str, *, context: str = "", tags: Iterable[str] = ()) -> UUID:
        """Stores a note; its context stands in the metadata, and secrets in it are masked.

        Raises:
            NotAccepted: it cannot be stored, or is not worth or safe to keep.
        """
        given = checked(content, context, tags)
        note = NewMemory(kind="note", body=given.content, metadata=given.metadata, tags=given.tags)
        result = await self._services.write_gate.remember_batch(await self._workspace(), [note])
        (entry_id,) = result.ids
        if entry_id is None:
            raise NotAccepted(result.rejected[0].reason)
        return entry_id

    async def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        """Returns at most `k` notes that matter for a query and have all these tags, best first.

        Raises:
            NotAccepted: the query is empty, or an argument out of range.
        """
        filters = Filters(kinds=("note",), tags=checked_tags(tags))
        found = await self._services.retrieval.search(
            await self._workspace(), Query(text=checked_query(query), k=checked_k(k), filters=filters)
        )
        return [entry_of(hit.memory.memory_id, hit.memory) for hit in found.hits]

    async def _page(
        self, tags: Sequence[str], limit: int, *, oldest: bool = False, after: Place | None = None
    ) -> tuple[list[Entry], Place | None]:
        page = await self._services.memories.page(
            await self._workspace(),
            filters=Filters(kinds=("note",), tags=tuple(tags)),
            order=("created", "asc") if oldest else NEWEST,
            limit=limit,
            after=after,
            counted=False,
        )
        return [entry_of(memory.memory_id, memory) for memory in page.memories], page.end

    async def _delete(self, ids: Sequence[UUID]) -> Sequence[UUID]:
        return (await self._services.memories.delete(await self._workspace(), ids=ids)).changed

    async def _workspace(self) -> Workspace:
        """Returns the workspace with what belongs to no user."""
        found = await self._services.workspaces.resolve(self._name)
        return found.of(None)
