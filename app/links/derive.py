"""The verbs that find links: by words as soon as a memory is stored, by vectors when it has one."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.db.engine import Database, again_after_deadlock
from app.db.waiting import VECTORS, WORDS
from app.embeddings import store as vectors
from app.links import names, store
from app.links.link import MENTIONS, SAME_ENTITY, SIMILAR, Link
from app.links.store import Phrase, Text
from app.links.titles import Mention, mentioned, possible_mentions, title_key, without_brackets

BATCH = 250
"""Memories linked in one go: their possible mentions, about 100 each, are looked up together."""
RARE_TITLE = 1_000
"""Memories that may have the rarest word of a title, should earlier texts be searched for it: as many take 1 ms."""
RARE_NAME = 2 * names.BEARERS
"""The same for a name; twice what links, because statistics are of some time ago, and count the word in lower case."""
NEAREST = 5
"""Neighbours of a memory that are kept as `similar`."""
SIMILAR_FROM = 0.7
"""Cosine similarity, of the bundled model: on LoCoMo dev one link a message; 0.6 gives three, 0.8 one in six."""
VECTOR_BATCH = 100
"""Memories compared in one statement: below the vector index's size each takes up to 5 ms."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the texts of a batch say."""

    keys: Mapping[UUID, str]
    """Titles for the dictionary."""
    possible: Mapping[UUID, Sequence[Mention]]
    names: Mapping[UUID, Sequence[str]]


async def link_waiting(database: Database) -> int:
    """Link all that waits. How many memories.

    Safe to kill and to run twice at once: what is found is written whole with the end of the waiting, and only once.
    """
    done = 0
    while (workspace_id := await _waiting(database, WORDS)) is not None:
        done += await _link_by_words(database, workspace_id)
    while (workspace_id := await _waiting(database, VECTORS)) is not None:
        await _link_by_vectors(database, workspace_id)
    return done


async def _waiting(database: Database, step: str) -> int | None:
    async with database.statements() as connection:
        return await store.waiting_workspace(connection, step)


async def _link_by_words(database: Database, workspace_id: int) -> int:
    async with database.statements() as connection:
        batch = await store.waiting_texts(connection, workspace_id, BATCH)
    read = await asyncio.to_thread(_read, batch)
    if read.keys:
        # Committed before texts are searched: of two that are linked at once, one finds the other.
        await again_after_deadlock(lambda: _add_titles(database, workspace_id, read.keys))
    links = {*await _out(database, workspace_id, batch, read), *await _in(database, workspace_id, batch, read)}
    await again_after_deadlock(lambda: _written(database, workspace_id, links, [item.memory_id for item in batch]))
    return len(batch)


def _read(batch: Sequence[Text]) -> _Read:
    keys = {item.memory_id: title_key(item.title, item.kind) for item in batch}
    return _Read(
        keys={memory_id: key for memory_id, key in keys.items() if key is not None},
        possible={item.memory_id: list(possible_mentions(item.body)) for item in batch},
        names={item.memory_id: names.names(_spoken(item), item.language) for item in batch},
    )


def _spoken(item: Text) -> str:
    """What a memory says: a message's title is who says it."""
    return item.body if item.kind == "message" else f"{item.title}\n{item.body}"


async def _add_titles(database: Database, workspace_id: int, keys: Mapping[UUID, str]) -> None:
    async with database.transaction() as connection:
        await store.add_titles(connection, workspace_id, keys)


async def _out(database: Database, workspace_id: int, batch: Sequence[Text], read: _Read) -> Iterable[Link]:
    """What the texts of the batch name."""
    async with database.statements() as connection:
        if not await store.has_titles(connection, workspace_id):
            return []
        wanted = {mention.key for mentions in read.possible.values() for mention in mentions}
        known = await store.bearers_of(connection, workspace_id, wanted)
    return [
        Link(item.memory_id, other, MENTIONS)
        for item in batch
        for other in mentioned(read.possible[item.memory_id], known, own=title_key(item.title, item.kind))
        if other != item.memory_id
    ]


async def _in(database: Database, workspace_id: int, batch: Sequence[Text], read: _Read) -> Iterable[Link]:
    """Which texts, of all that are stored, name a title of the batch, and which share a rare name with it."""
    by_id = {item.memory_id: item for item in batch}
    bearers: dict[str, list[UUID]] = defaultdict(list)
    for memory_id, key in read.keys.items():
        bearers[key].append(memory_id)
    spoken = sorted({name for found in read.names.values() for name in found})
    phrases = [Phrase(without_brackets(by_id[ids[0]].title), RARE_TITLE) for ids in bearers.values()]
    async with database.statements() as connection:
        known = await store.bearers_of(connection, workspace_id, bearers)
        found = await store.having(connection, workspace_id, [*phrases, *(Phrase(name, RARE_NAME) for name in spoken)])
        texts = await store.texts(connection, workspace_id, {memory_id for ids in found for memory_id in ids})
    named = dict(zip(bearers, found[: len(phrases)], strict=True))
    shared = dict(zip(spoken, found[len(phrases) :], strict=True))
    return await asyncio.to_thread(lambda: [*_naming(named, known, texts), *_sharing(shared, texts)])


def _naming(
    named: Mapping[str, Sequence[UUID]], known: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]
) -> Iterable[Link]:
    said: dict[UUID, frozenset[str]] = {}
    for key, ids in named.items():
        for item in (texts[memory_id] for memory_id in ids if memory_id in texts):
            if item.memory_id not in said:
                said[item.memory_id] = frozenset(mention.key for mention in possible_mentions(item.body))
            if key in said[item.memory_id] and title_key(item.title, item.kind) != key:
                yield from (
                    Link(item.memory_id, bearer, MENTIONS) for bearer in known.get(key, ()) if bearer != item.memory_id
                )


def _sharing(shared: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]) -> Iterable[Link]:
    """Every pair of the few memories that have a name; the newer one, whose id is the greater, points to the older."""
    for name, ids in shared.items():
        having = sorted(
            memory_id for memory_id in ids if memory_id in texts and names.says(_spoken(texts[memory_id]), name)
        )
        if len(having) <= names.BEARERS:
            yield from (
                Link(newer, older, SAME_ENTITY) for place, newer in enumerate(having) for older in having[:place]
            )


async def _written(database: Database, workspace_id: int, links: set[Link], ids: Sequence[UUID]) -> None:
    async with database.transaction() as connection:
        await store.add(connection, workspace_id, links)
        await store.forget_famous(connection, workspace_id, {link.to_id for link in links if link.relation == MENTIONS})
        await store.done(connection, workspace_id, ids, step=WORDS)


async def _link_by_vectors(database: Database, workspace_id: int) -> None:
    """Where another model has become the served one meanwhile, its vectors put the memories on the list again."""
    async with database.statements() as connection:
        ids = await store.waiting_vectors(connection, workspace_id, VECTOR_BATCH)
        model = await vectors.active_model(connection)
        found = [] if model is None else await store.nearest(
            connection, model, workspace_id, ids, count=NEAREST, least=SIMILAR_FROM,
            indexed=workspace_id in await vectors.indexed_workspaces(connection, model),
        )  # fmt: skip
    links = {(max(pair), min(pair)): similarity for *pair, similarity in found}
    similar = {Link(newer, older, SIMILAR, min(1.0, weight)) for (newer, older), weight in links.items()}

    async def attempt() -> None:
        async with database.transaction() as connection:
            await store.add(connection, workspace_id, similar)
            await store.done(connection, workspace_id, ids, step=VECTORS)

    await again_after_deadlock(attempt)
