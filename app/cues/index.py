"""Keeps the index of each workspace's cues in memory, and brings it up to date."""

import asyncio
from collections import OrderedDict
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from app.cues import store
from app.cues.cue import FORMS
from app.cues.match import CueIndex, Known, indexed, renewed
from app.cues.taxonomy import types_of
from app.db.database import Database
from app.db.session import Row
from app.models.protocols import EmbeddingProvider
from app.workspaces.workspace import Workspace

MOST_INDEXES = 16
"""Workspaces whose cues are kept in memory: 200 MB for 50,000 cues, 1 MB for 270."""


class _Cached(NamedTuple):
    revision: int
    cues: CueIndex


_INDEXES: WeakKeyDictionary[Database, OrderedDict[tuple[int, str], _Cached]] = WeakKeyDictionary()


async def index_of(database: Database, provider: EmbeddingProvider, workspace: Workspace) -> CueIndex:
    """Returns the index of the workspace's cues, brought up to date."""
    kept = _INDEXES.setdefault(database, OrderedDict())
    key = workspace.workspace_id, provider.model_id if provider.enabled else ""
    cached = kept.get(key)
    async with database.session(workspace, transaction=False) as session:
        revision = await store.revision_of(session)
        if cached is not None and cached.revision == revision:
            kept.move_to_end(key)
            return cached.cues
        rows = await store.newer(session, 0 if cached is None else cached.revision)
    types = await types_of(database, provider, workspace=workspace)
    known = await asyncio.to_thread(lambda: [_known(row, key[1]) for row in rows])
    if cached is None or cached.cues.types.types != types.types:
        items = {**({} if cached is None else {item.cue_id: item for item in cached.cues.known})}
        items |= {item.cue_id: item for item in known}
        index = await asyncio.to_thread(indexed, items.values(), types)
    else:
        index = await asyncio.to_thread(renewed, cached.cues, known, types)
    kept[key] = _Cached(revision, index)
    while len(kept) > MOST_INDEXES:
        kept.popitem(last=False)
    return index


def _known(row: Row, model: str) -> Known:
    vectors = None
    if row.vectors is not None and row.model == model:
        vectors = np.frombuffer(row.vectors, dtype="<f2").reshape(len(FORMS), -1)
    return Known(
        cue_id=row.memory_id,
        trigger=row.title,
        lesson=row.body,
        consequence=row.consequence,
        state=row.state,
        action_types=tuple(row.action_types),
        files=tuple(row.files),
        vectors=vectors,
        valid_from=row.valid_from,
        valid_until=row.valid_until,
    )
