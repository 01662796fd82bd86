"""A workspace whose memories are linked."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from app.db.engine import Database
from app.index.backfill import embed_waiting
from app.links.find import link_waiting
from app.links.give import links_of
from app.memories.memory import NewMemory
from app.memories.remember import remember
from app.models.protocols import EmbeddingProvider, TokenCounter


class Linked:
    """A workspace, and the ways to fill and ask it."""

    def __init__(self, database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: str) -> None:
        self.database, self.provider, self.counter, self.workspace = database, provider, counter, workspace

    async def add(self, *memories: NewMemory, embed: bool = False, link: bool = True) -> list[UUID]:
        """Their ids, once they are linked."""
        result = await remember(
            self.database, self.counter, workspace=self.workspace, language="english", memories=memories
        )
        assert result.rejected == ()
        ids = [memory_id for memory_id in result.ids if memory_id is not None]
        if embed:
            await embed_waiting(self.database, self.provider, ids=ids)
        if link:
            await link_waiting(self.database)
        return ids

    async def notes(self, notes: Mapping[str, str], **options: Any) -> list[UUID]:
        """Notes by title."""
        return await self.add(
            *(NewMemory(kind="note", title=title, body=body) for title, body in notes.items()), **options
        )

    async def links(self, memory_id: UUID) -> Sequence[tuple[str, str, UUID]]:
        """Relation, direction and the other memory."""
        found = await links_of(self.database, workspace=self.workspace, memory_id=memory_id)
        return [(item.relation, item.direction, item.memory_id) for item in found]


@pytest.fixture
def store(database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: str) -> Linked:
    """An empty workspace."""
    return Linked(database, provider, counter, workspace)
