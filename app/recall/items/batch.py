"""The verbs of items: a batch of operations, and the sweep of expired items."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from msgspec import structs

from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Across, Session
from app.foundation.models.protocols import EmbeddingProvider, Reranker
from app.foundation.safety.secrets import masked_values
from app.recall.items import store
from app.recall.items.item import Batch, BatchAnswers, Item, ItemPut, ItemSearch, SearchAnswer, check_batch, path_of
from app.recall.items.store import ItemKey
from app.recall.retrieval.log import log
from app.recall.retrieval.recall import LARGEST_K, Query, Recall
from app.recall.retrieval.service import Retrieval
from app.storage.index.vectors import embedded_text
from app.storage.memories import sources
from app.storage.memories import store as memories
from app.storage.memories.filters import Filters, FiltersByIds
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import DELETED, Rejection, Screened
from app.storage.memories.remember import Door
from app.storage.memories.write import write
from app.storage.tenants import store as workspaces
from app.storage.tenants.service import check_room, get_or_create, resolve_id

_PURPOSE = "items"
"""The purpose of a recall that ranks items."""
_SWEPT_AT_ONCE = 1_000


class _Ready(NamedTuple):
    """A value that can be stored, with the memory of its text, if it has one that can be found."""

    put: ItemPut
    place: int
    """Its place among the batch's values."""
    memory: Screened | None = None

    @property
    def key(self) -> ItemKey:
        """The key of its item."""
        return ItemKey(path_of(self.put.namespace), self.put.key)


async def run_batch(
    door: Door, batch: Batch, *, provider: EmbeddingProvider, reranker: Reranker | None = None
) -> BatchAnswers:
    """Carries out operations on items: what it reads is the state before what it writes; it writes all or nothing.

    The text of an item is a memory of kind `note`, which the write gate may refuse: then the value is stored, and no
    query finds it. Secrets are masked unless `mask` of the door is off. The items are those of the workspace's user.

    Raises:
        InvalidInput: an operation cannot be carried out; nothing was done.
        DatabaseUnavailable: nothing was written.
        QuotaReached: nothing was written; the workspace has no room for the items' texts.
    """
    check_batch(batch)
    ready, refused = await asyncio.to_thread(_prepare_puts, door, batch.put) if batch.put else ({}, ())
    recalls = [await _recall_items(door, asked, provider, reranker) for asked in batch.search]
    if any(one.memory is not None for one in ready.values()):
        await check_room(door.database, door.workspace)
    if ready:
        door = door._replace(workspace=await get_or_create(door.database, door.workspace))

    async def attempt() -> BatchAnswers:
        async with door.database.session(door.workspace) as session:
            answers = await _read(session, batch, recalls)
            removed = await _write(session, door, list(ready.values()))
        return replace(answers, removed=removed, unsearchable=refused)

    return await again_after_deadlock(attempt)


def _prepare_puts(door: Door, puts: Sequence[ItemPut]) -> tuple[dict[ItemKey, _Ready], tuple[Rejection, ...]]:
    """Returns the last value of each key, at the place of its first one, and the texts that no query will find."""
    found, refused = dict[ItemKey, _Ready](), dict[ItemKey, Rejection]()
    for place, put in enumerate(puts):
        clean = structs.replace(put, value=masked_values(put.value)) if door.mask else put
        ready = _Ready(clean, place, _screen_put(door, put) if put.value is not None and put.text else None)
        found[ready.key] = ready
        refused.pop(ready.key, None)
        if ready.memory is not None and (objection := ready.memory.objection) is not None:
            found[ready.key] = ready._replace(memory=None)
            refused[ready.key] = Rejection(index=place, reason=objection.message, code=objection.code)
    return found, tuple(refused.values())


def _screen_put(door: Door, put: ItemPut) -> Screened:
    passed = screen_memory(put.memory(), mask=door.mask)
    if passed.objection is not None:
        return passed
    return replace(passed, tokens=door.counter.count(embedded_text(passed.memory.title, passed.memory.body)))


async def _recall_items(
    door: Door, asked: ItemSearch, provider: EmbeddingProvider, reranker: Reranker | None
) -> Recall | None:
    """Returns the recall of the items' texts for a search with a query, logged; None where there is nothing to rank."""
    if not asked.query.strip():
        return None
    async with door.database.session(door.workspace, transaction=False) as session:
        ids = await store.searchable(session, asked)
    if not ids:
        return None
    k = min(max(asked.offset + asked.limit, 1), LARGEST_K)
    query = Query(text=asked.query, k=k, filters=FiltersByIds(ids=tuple(ids)), purpose=_PURPOSE)
    retrieval = Retrieval(database=door.database, provider=provider, reranker=reranker, mask_secrets=door.mask)
    finding = await retrieval.find(door.workspace, query)
    finding = replace(finding, query=replace(finding.query, filters=Filters()))
    async with door.database.session(door.workspace, transaction=False) as session:
        return await log(session, finding, hits=finding.hits, tokens=None)


async def _read(session: Session, batch: Batch, recalls: Sequence[Recall | None]) -> BatchAnswers:
    gotten = await store.get(session, batch.get)
    found = [
        SearchAnswer(items=tuple(await store.search(session, asked, _scores(recall))), recall=recall)
        for asked, recall in zip(batch.search, recalls, strict=True)
    ]
    listed = [tuple(await store.namespaces(session, asked)) for asked in batch.namespaces]
    read = [(asked.refresh_ttl, item) for asked, item in zip(batch.get, gotten, strict=True)]
    read += [(asked.refresh_ttl, item) for asked, one in zip(batch.search, found, strict=True) for item in one.items]
    await store.put_off(session, sorted({_key(item) for refresh, item in read if refresh and _ends(item)}))
    return BatchAnswers(get=tuple(gotten), search=tuple(found), namespaces=tuple(listed))


def _scores(recall: Recall | None) -> Mapping[UUID, float]:
    return {} if recall is None else {hit.memory.memory_id: hit.score for hit in recall.hits}


def _key(item: Item | None) -> ItemKey:
    assert item is not None, "only an item that was found ends"  # noqa: S101
    return ItemKey(path_of(item.namespace), item.key)


def _ends(item: Item | None) -> bool:
    return item is not None and item.expires_at is not None


async def _write(session: Session, door: Door, ready: Sequence[_Ready]) -> tuple[int, ...]:
    """Removes and stores items, and gives each the memory of its present text; earlier texts go to the trash.

    Returns the places of those that removed an item.
    """
    removed = await store.remove(session, sorted(one.key for one in ready if one.put.value is None))
    before = await store.put(session, [one.put for one in ready if one.put.value is not None])
    written = await _remember_texts(session, door, [one for one in ready if one.memory is not None])
    changed = {key: written.get(key) for key, known in before.items() if written.get(key) != known}
    await store.set_memories(session, changed)
    outdated = [*removed.values(), *(before[key] for key in changed)]
    await memories.retire(session, sorted(known for known in outdated if known is not None), reason=DELETED)
    return tuple(one.place for one in ready if one.key in removed)


async def _remember_texts(session: Session, door: Door, ready: Sequence[_Ready]) -> dict[ItemKey, UUID]:
    """Stores the texts of items as memories; returns their ids."""
    if not ready:
        return {}
    found = [(one.key, one.memory, one.memory.memory.source) for one in ready if one.memory is not None]
    known = await sources.ensure(session, [source for _, _, source in found if source is not None])
    language = door.workspace.language
    await workspaces.add_languages(session, door.workspace, {language})
    rows = [
        memory.row(source_id=known[source.kind, source.uri], language=language)
        for _, memory, source in found
        if source is not None
    ]
    written = await write(session, rows)
    return dict(zip((key for key, _, _ in found), written.ids, strict=True))


async def sweep_items(database: Database, across: Across) -> int:
    """Removes expired items of all workspaces, with the memories of their texts; returns their number."""
    async with across(transaction=False) as session:
        found = await store.workspaces_with_expired(session)
    return sum([await _sweep(database, workspace_id) for workspace_id in found])


async def _sweep(database: Database, workspace_id: int) -> int:
    workspace, swept = await resolve_id(database, workspace_id), 0
    while True:
        async with database.session(workspace) as session:
            batch = await store.sweep(session, limit=_SWEPT_AT_ONCE)
            gone = sorted(memory_id for memory_id in batch if memory_id is not None)
            await memories.retire(session, gone, reason=DELETED)
        swept += len(batch)
        if len(batch) < _SWEPT_AT_ONCE:
            return swept
