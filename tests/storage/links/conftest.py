"""A workspace whose memories are linked."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.storage.index.service import Embedder
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from tests.conftest import link_pending, workspace_in


class Linked:
    """A workspace, and the ways to fill and ask it."""

    def __init__(
        self, database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
    ) -> None:
        self.database, self.provider, self.counter, self.workspace = database, provider, counter, workspace

    async def add(self, *memories: NewMemory, embed: bool = False, link: bool = True) -> list[UUID]:
        """Returns their ids, once they are linked."""
        result = await WriteGate(database=self.database, counter=self.counter).remember(self.workspace, memories)
        assert result.rejected == ()
        ids = [memory_id for memory_id in result.ids if memory_id is not None]
        if embed:
            await self.embed(ids)
        if link:
            await self.link()
        return ids

    async def embed(self, ids: Sequence[UUID]) -> None:
        """Give these memories their vectors."""
        await Embedder(database=self.database, provider=self.provider).embed_pending(self.workspace, ids=ids)

    async def link(self) -> int:
        """Link all that is pending; returns how many memories."""
        return await link_pending(self.database, self.workspace)

    async def elsewhere(self) -> "Linked":
        """Returns a second workspace."""
        workspace = await workspace_in(self.database, f"{self.workspace.name}-other")
        return Linked(self.database, self.provider, self.counter, workspace)

    async def notes(self, notes: Mapping[str, str], **options: Any) -> list[UUID]:
        """Returns the ids of notes, given by title."""
        return await self.add(
            *(NewMemory(kind="note", title=title, body=body) for title, body in notes.items()), **options
        )

    async def links(self, memory_id: UUID) -> Sequence[tuple[str, str, UUID]]:
        """Returns relation, direction and the other memory of each link."""
        found = await Memories(database=self.database).links_of(self.workspace, memory_id=memory_id)
        return [(item.relation, item.direction, item.memory_id) for item in found]


@pytest.fixture
def store(database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace) -> Linked:
    """An empty workspace."""
    return Linked(database, provider, counter, workspace)
