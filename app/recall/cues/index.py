"""Keeps the index of each workspace's cues in memory, and brings it up to date."""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider
from app.recall.cues import store, vectors
from app.recall.cues.actions import embed_types
from app.recall.cues.cue import VECTORS_VERSION
from app.recall.cues.known import CueIndex, IndexedCue, index_cues, renew
from app.storage.tenants.workspace import Workspace

_MOST_BYTES = 600_000_000
"""Memory that a process gives to the indexes of its workspaces; that of 50,000 cues takes 490 MB, that of 270 3 MB.
The workspaces that nobody has asked for longest lose theirs; the one that is asked for now stays, however large."""

_COLUMNS = [field.name for field in fields(IndexedCue)]
_Key = tuple[int, str]


class _Cached(NamedTuple):
    revision: int
    own_types: Mapping[str, tuple[str, ...]]
    cues: CueIndex


@dataclass(frozen=True)
class _Indexes:
    """The indexes of one database, and the locks under which they are brought up to date."""

    kept: OrderedDict[_Key, _Cached] = field(default_factory=OrderedDict)
    locks: defaultdict[_Key, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))


_INDEXES: WeakKeyDictionary[Database, _Indexes] = WeakKeyDictionary()


def _serves(cached: _Cached, revision: int, provider: EmbeddingProvider, workspace: Workspace) -> bool:
    """Returns True if an index is as new as this revision, and has the workspace's types, and the model's vectors."""
    has_vectors = cached.cues.types.matrix is not None or not provider.enabled
    return cached.revision >= revision and cached.own_types == workspace.action_types and has_vectors


def _forget_beyond(indexes: _Indexes, most: int) -> None:
    """Forgets the indexes that were asked for longest ago, until the others take `most` bytes; the newest stays."""
    size = sum(cached.cues.bytes for cached in indexes.kept.values())
    while size > most and len(indexes.kept) > 1:
        key, cached = indexes.kept.popitem(last=False)
        indexes.locks.pop(key, None)
        size -= cached.cues.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CueIndexes:
    """The indexes of workspaces, which a process holds in memory."""

    database: Database
    provider: EmbeddingProvider

    async def of(self, workspace: Workspace) -> CueIndex:
        """Returns the index of the workspace's cues, brought up to date: only what was written since is read.

        It holds the cues of all users. Other processes write to the store too; each write counts up the workspace's
        revision.
        """
        workspace = workspace.of_everyone()
        indexes = _INDEXES.setdefault(self.database, _Indexes())
        key = workspace.workspace_id, self.provider.model_id if self.provider.enabled else ""
        async with self.database.session(workspace, transaction=False) as session:
            revision = await store.revision_of(session)
        cached = indexes.kept.get(key)
        if cached is not None and _serves(cached, revision, self.provider, workspace):
            indexes.kept.move_to_end(key)
            return cached.cues
        async with indexes.locks[key]:
            cached = indexes.kept.get(key)
            if cached is None or not _serves(cached, revision, self.provider, workspace):
                indexes.kept[key] = cached = await self._renew(workspace, cached)
            indexes.kept.move_to_end(key)
            _forget_beyond(indexes, _MOST_BYTES)
        return cached.cues

    async def _renew(self, workspace: Workspace, cached: _Cached | None) -> _Cached:
        provider = self.provider
        model = provider.model_id if provider.enabled else ""
        dimension = provider.dimension if provider.enabled else 0
        types = await embed_types(provider, workspace)
        if cached is not None and not cached.cues.types.are_same(types):
            cached = None
        found = dict[UUID, tuple[IndexedCue, bytes | None]]()
        async with self.database.session(workspace, transaction=False) as session:
            revision = await store.revision_of(session)
            async for rows in vectors.newer(session, 0 if cached is None else cached.revision):
                for row in rows:
                    cue = IndexedCue(**{name: getattr(row, name) for name in _COLUMNS})
                    found[cue.cue_id] = cue, row.vectors if row.model == model + VECTORS_VERSION else None
        known = list(found.values())
        newer = await asyncio.to_thread(
            index_cues, [cue for cue, _ in known], [own for _, own in known], dimension, types
        )
        cues = newer if cached is None else await asyncio.to_thread(renew, cached.cues, newer)
        return _Cached(revision, workspace.action_types, cues)
