"""The verbs that find links: by words as soon as a memory is stored, by vectors when it has one."""

import asyncio
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from app.db.engine import Database, again_after_deadlock
from app.index import vectors
from app.index.pending import VECTORS, WORDS
from app.links import store
from app.links.link import MENTIONS, SAME_ENTITY, SIMILAR, Link
from app.links.store import Phrase, Text
from app.links.titles import Mention, mentioned, possible_mentions, title_key, without_brackets
from app.text import names

BATCH, BATCH_CHARACTERS = 250, 250_000
"""Memories linked in one go, and characters that are read of them: their possible mentions, about 100 each, are looked
up together. A text of nothing but capitals has 1.6 a character, of 150 bytes each."""
RARE_TITLE = 1_000
"""Memories that may have the rarest word of a title, should earlier texts be searched for it: as many take 1 ms."""
RARE_NAME = 2 * names.BEARERS
"""The same for a name; twice what links, because statistics are of some time ago, and count the word in lower case."""
NEAREST = 5
"""Neighbours of a memory that are kept as `similar`."""
SIMILAR_FROM = 0.7
"""Cosine similarity, of the bundled model: on LoCoMo dev one link a message; 0.6 gives three, 0.8 one in six."""
MANY = 2_000
"""Steps that wait: about 10 s of work."""
VECTOR_BATCH = 100
"""Memories compared in one statement: below the vector index's size each takes up to 5 ms."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the texts of a batch say."""

    keys: Mapping[UUID, str | None]
    """Titles for the dictionary; None where one names nothing."""
    possible: Mapping[UUID, Sequence[Mention]]
    names: Mapping[UUID, Sequence[str]]


class _Naming(NamedTuple):
    """A text that may name titles."""

    own: str | None
    """Its memory's own title, as the dictionary has it."""
    possible: Sequence[Mention]


class _Others(NamedTuple):
    """What other texts have to do with a batch."""

    naming: Mapping[UUID, _Naming]
    sharing: Collection[Link]
    worn: Collection[Link]
    """Pairs whose name has become common."""


class _Found(NamedTuple):
    """What a batch is linked with."""

    asked: Mapping[UUID, int]
    """How often each of its memories had been asked for when it was read."""
    mentions: Mapping[UUID, Sequence[UUID]]
    others: _Others


class LinkedTurn(NamedTuple):
    """What one turn of linking came to."""

    memories: int
    """Those that were linked, by words."""
    over: bool
    """Whether all that can be linked is."""


async def link_waiting(database: Database) -> int:
    """Link all that waits, by vectors where the workspace is small or has its index. How many memories, by words.

    Safe to kill and to run twice at once: what is found is written whole with the end of the waiting, and only once.
    """
    return (await link_turn(database, seconds=math.inf)).memories


async def link_turn(database: Database, *, seconds: float) -> LinkedTurn:
    """The same for about so many seconds: no batch is begun after them, but one of each step is done in any case."""
    done, end = 0, time.monotonic() + seconds
    while (workspace_id := await _waiting(database, WORDS)) is not None:
        if done and time.monotonic() >= end:
            return LinkedTurn(done, over=False)
        done += await _link_by_words(database, workspace_id)
    if await _waiting(database, VECTORS) is None:
        return LinkedTurn(done, over=True)
    unindexed = await _unindexed(database)
    compared = False
    while (workspace_id := await _waiting(database, VECTORS, without=unindexed)) is not None:
        if compared and time.monotonic() >= end:
            return LinkedTurn(done, over=False)
        await _link_by_vectors(database, workspace_id)
        compared = True
    return LinkedTurn(done, over=True)


async def many_wait(database: Database, count: int = MANY) -> bool:
    """Whether more than so many steps wait that can be done now: linking MANY takes so long that it is better done once
    no more come."""
    async with database.statements() as connection:
        if not await store.more_wait(connection, count):
            return False
    # Asked for only where it can matter, for it counts all vectors.
    unindexed = await _unindexed(database)
    async with database.statements() as connection:
        return not unindexed or await store.more_wait(connection, count, without=unindexed)


async def _waiting(database: Database, step: str, *, without: Collection[int] = ()) -> int | None:
    async with database.statements() as connection:
        return await store.waiting_workspace(connection, step, without=without)


async def _unindexed(database: Database) -> Collection[int]:
    """Large workspaces whose vectors have no index yet: comparing each memory with all others would take hours."""
    async with database.statements() as connection:
        model = await vectors.active_model(connection)
        return [] if model is None else await vectors.crowded_workspaces(connection, model)


async def _link_by_words(database: Database, workspace_id: int) -> int:
    async with database.statements() as connection:
        batch = _together(await store.waiting_texts(connection, workspace_id, BATCH))
    read = await asyncio.to_thread(_read, batch)
    # Committed before texts are searched: of two that are linked at once, one finds the other.
    await again_after_deadlock(lambda: _write_titles(database, workspace_id, read.keys))
    others = await _others(database, workspace_id, batch, read)
    found = _Found(
        asked={item.memory_id: item.asked for item in batch},
        mentions=await _mentions(database, workspace_id, read, others.naming),
        others=others,
    )
    await again_after_deadlock(lambda: _write(database, workspace_id, found))
    return len(batch)


def _together(waiting: Sequence[Text]) -> Sequence[Text]:
    """The first of them, of at most BATCH_CHARACTERS; one at least."""
    ends = accumulate(len(item.body) for item in waiting)
    return waiting[: max(1, sum(end <= BATCH_CHARACTERS for end in ends))]


def _read(batch: Sequence[Text]) -> _Read:
    return _Read(
        keys={item.memory_id: title_key(item.title, item.kind) for item in batch},
        possible={item.memory_id: list(possible_mentions(item.body)) for item in batch},
        names={item.memory_id: names.names(_spoken(item), item.language) for item in batch},
    )


def _spoken(item: Text) -> str:
    """What a memory says: a message's title is who says it."""
    return item.body if item.kind == "message" else f"{item.title}\n{item.body}"


async def _write_titles(database: Database, workspace_id: int, keys: Mapping[UUID, str | None]) -> None:
    async with database.transaction() as connection:
        await store.write_titles(connection, workspace_id, keys)


async def _others(database: Database, workspace_id: int, batch: Sequence[Text], read: _Read) -> _Others:
    """Which texts, of all that are stored, name a title of the batch, and which share a rare name with it."""
    titled = {key: item for item in batch if (key := read.keys[item.memory_id]) is not None}
    spoken = sorted({name for found in read.names.values() for name in found})
    phrases = [Phrase(without_brackets(item.title), RARE_TITLE) for item in titled.values()]
    async with database.statements() as connection:
        found = await store.having(connection, workspace_id, [*phrases, *(Phrase(name, RARE_NAME) for name in spoken)])
        texts = await store.texts(connection, workspace_id, {memory_id for ids in found for memory_id in ids})
    named = dict(zip(titled, found[: len(phrases)], strict=True))
    shared = dict(zip(spoken, found[len(phrases) :], strict=True))
    return await asyncio.to_thread(_compared, named, shared, texts)


def _compared(
    named: Mapping[str, Sequence[UUID]], shared: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]
) -> _Others:
    having = _having(shared, texts)
    rare = {link for ids in having.values() if len(ids) <= names.BEARERS for link in _pairs(ids)}
    return _Others(naming=_naming(named, texts), sharing=rare, worn=set(_worn(having, rare, texts)))


def _naming(named: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]) -> Mapping[UUID, _Naming]:
    """The texts that may name one of these titles: the words were found, but not how they are written."""
    found: dict[UUID, _Naming] = {}
    for key, ids in named.items():
        for item in (texts[memory_id] for memory_id in ids if memory_id in texts and memory_id not in found):
            possible = list(possible_mentions(item.body))
            if any(mention.key == key for mention in possible):
                found[item.memory_id] = _Naming(own=title_key(item.title, item.kind), possible=possible)
    return found


async def _mentions(
    database: Database, workspace_id: int, read: _Read, naming: Mapping[UUID, _Naming]
) -> Mapping[UUID, Sequence[UUID]]:
    """What the texts of the batch and those that name its titles mention: all of it, whichever was stored first."""
    texts = {**naming, **{ident: _Naming(read.keys[ident], possible) for ident, possible in read.possible.items()}}
    wanted = {mention.key for item in texts.values() for mention in item.possible}
    async with database.statements() as connection:
        any_titles = await store.has_titles(connection, workspace_id)
        known = await store.bearers_of(connection, workspace_id, wanted) if any_titles else {}
    return {
        memory_id: [other for other in mentioned(item.possible, known, own=item.own) if other != memory_id]
        for memory_id, item in texts.items()
    }


def _having(shared: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]) -> Mapping[str, Sequence[UUID]]:
    """For each name the memories that have it as it is written, oldest first."""
    return {
        name: sorted(ident for ident in ids if ident in texts and names.says(_spoken(texts[ident]), name))
        for name, ids in shared.items()
    }


def _pairs(ids: Sequence[UUID]) -> Iterable[Link]:
    """Every two of them; the newer one, whose id is the greater, points to the older."""
    return (Link(newer, older, SAME_ENTITY) for place, newer in enumerate(ids) for older in ids[:place])


def _worn(having: Mapping[str, Sequence[UUID]], rare: Collection[Link], texts: Mapping[UUID, Text]) -> Iterable[Link]:
    """Pairs that a name has linked before so many had it, where they have no other name in common."""
    for name, ids in having.items():
        if len(ids) > names.BEARERS:
            yield from (link for link in _pairs(ids) if link not in rare and not _share_another(link, name, texts))


def _share_another(link: Link, name: str, texts: Mapping[UUID, Text]) -> bool:
    one, other = texts[link.from_id], texts[link.to_id]
    others = (found for found in names.names(_spoken(one), one.language) if found != name)
    return any(names.says(_spoken(other), found) for found in others)


async def _write(database: Database, workspace_id: int, found: _Found) -> None:
    """What was read of a text that has changed meanwhile is left to the next time."""
    async with database.transaction() as connection:
        current = await store.done(connection, workspace_id, found.asked, step=WORDS)
        changed = found.asked.keys() - current
        mentions = {memory_id: others for memory_id, others in found.mentions.items() if memory_id not in changed}
        links = [Link(memory_id, other, MENTIONS) for memory_id, others in mentions.items() for other in others]
        await store.write_mentions(connection, workspace_id, mentions, links)
        await store.remove(connection, workspace_id, found.others.worn)
        await store.add(
            connection, workspace_id, [link for link in found.others.sharing if changed.isdisjoint(link[:2])]
        )


async def _link_by_vectors(database: Database, workspace_id: int) -> None:
    """Where another model has become the served one meanwhile, its vectors put the memories on the list again."""
    async with database.statements() as connection:
        asked = await store.waiting_vectors(connection, workspace_id, VECTOR_BATCH)
        model = await vectors.active_model(connection)
        found = [] if model is None else await store.nearest(
            connection, model, workspace_id, list(asked), count=NEAREST, least=SIMILAR_FROM,
            indexed=workspace_id in await vectors.indexed_workspaces(connection, model),
        )  # fmt: skip
    links = {(max(pair), min(pair)): similarity for *pair, similarity in found}
    similar = [Link(newer, older, SIMILAR, min(1.0, weight)) for (newer, older), weight in links.items()]

    async def attempt() -> None:
        async with database.transaction() as connection:
            changed = asked.keys() - await store.done(connection, workspace_id, asked, step=VECTORS)
            await store.add(connection, workspace_id, [link for link in similar if changed.isdisjoint(link[:2])])

    await again_after_deadlock(attempt)
