"""The verbs that find links: by words as soon as a memory is stored, by vectors when it has one."""

import asyncio
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from app.db.database import Database, again_after_deadlock
from app.db.session import Across
from app.index import models, vectors
from app.index.pending import VECTORS, WORDS, leave_links
from app.links import lookup, store
from app.links.link import MENTIONS, SAME_ENTITY, SIMILAR, Link
from app.links.lookup import Phrase, Text
from app.links.titles import Mention, mentioned, possible_mentions, title_key, without_brackets
from app.text import words

BATCH, BATCH_CHARACTERS = 250, 250_000
"""Memories linked in one go, and characters that are read of them: their possible mentions, about 100 each, are looked
up together. A text of nothing but capitals has 1.6 a character, of 150 bytes each."""
RARE_TITLE = 1_000
"""Memories that may have the rarest word of a title which earlier texts are searched for: as many take 1 ms."""
RARE_NAME = 2 * words.BEARERS
"""The same for a name; twice what links, because statistics are a little old, and count the word in lower case."""
NEAREST = 5
"""Neighbours of a memory that are kept as `similar`."""
SIMILAR_FROM = 0.7
"""Cosine similarity, of the bundled model: on LoCoMo dev one link a message; 0.6 gives three, 0.8 one in six."""
MANY = 2_000
"""Pending steps: about 10 s of work."""
VECTOR_BATCH = 100
"""Memories compared in one statement: below the vector index's size each takes up to 5 ms."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The titles, possible mentions and names in the texts of a batch."""

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
    """Other texts' relations to a batch."""

    naming: Mapping[UUID, _Naming]
    sharing: Collection[Link]
    common: Collection[Link]
    """Pairs whose name has become common."""


class _Found(NamedTuple):
    """The links of a batch."""

    asked: Mapping[UUID, int]
    """The times that each of its memories had been queued when it was read."""
    mentions: Mapping[UUID, Sequence[UUID]]
    others: _Others


class LinkedSlice(NamedTuple):
    """The outcome of one slice of linking."""

    memories: int
    """Memories that were linked, by words."""
    over: bool
    """True where nothing is left that can be linked."""


async def link_pending(database: Database, *, across: Across) -> int:
    """Link all that is pending, by vectors where the workspace is small or has its index.

    Safe to kill and to run twice at once: links are written whole as their memories leave the queue, and only once.
    Returns how many memories were linked, by words.
    """
    return (await link_slice(database, across=across, seconds=math.inf)).memories


async def link_slice(database: Database, *, across: Across, seconds: float) -> LinkedSlice:
    """Link as `link_pending` does for about so many seconds.

    No batch is begun after them, but one of each step is done in any case.
    """
    done, end = 0, time.monotonic() + seconds
    while (workspace_id := await _pending(across, WORDS)) is not None:
        if done and time.monotonic() >= end:
            return LinkedSlice(done, over=False)
        done += await _link_by_words(database, workspace_id)
    if await _pending(across, VECTORS) is None:
        return LinkedSlice(done, over=True)
    unindexed = await _unindexed(across)
    compared = False
    while (workspace_id := await _pending(across, VECTORS, without=unindexed)) is not None:
        if compared and time.monotonic() >= end:
            return LinkedSlice(done, over=False)
        await _link_by_vectors(database, workspace_id)
        compared = True
    return LinkedSlice(done, over=True)


async def many_pending(across: Across, count: int = MANY) -> bool:
    """Tells whether more than so many steps are pending that can be done now.

    Linking MANY takes so long that it is better done once no more come.
    """
    async with across() as session:
        if not await lookup.more_pending(session, count):
            return False
    # Asked for only where it can matter, for it counts all vectors.
    unindexed = await _unindexed(across)
    async with across() as session:
        return not unindexed or await lookup.more_pending(session, count, without=unindexed)


async def _pending(across: Across, step: str, *, without: Collection[int] = ()) -> int | None:
    async with across() as session:
        return await lookup.pending_workspace(session, step, without=without)


async def _unindexed(across: Across) -> Collection[int]:
    """Returns large workspaces whose vectors have no index: comparing each memory with all others would take hours."""
    async with across() as session:
        model = await models.active_model(session)
        return [] if model is None else await vectors.crowded_workspaces(session, model)


async def _link_by_words(database: Database, workspace_id: int) -> int:
    async with database.session(workspace_id, transaction=False) as session:
        batch = _together(await lookup.pending_texts(session, BATCH))
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


def _together(pending: Sequence[Text]) -> Sequence[Text]:
    """Returns the first of them, of at most BATCH_CHARACTERS; one at least."""
    ends = accumulate(len(item.body) for item in pending)
    return pending[: max(1, sum(end <= BATCH_CHARACTERS for end in ends))]


def _read(batch: Sequence[Text]) -> _Read:
    return _Read(
        keys={item.memory_id: title_key(item.title, item.kind) for item in batch},
        possible={item.memory_id: list(possible_mentions(item.body)) for item in batch},
        names={item.memory_id: words.names(_spoken(item), item.language) for item in batch},
    )


def _spoken(item: Text) -> str:
    """Returns the text of a memory that may have names; a message's title, its speaker, is none of it."""
    return item.body if item.kind == "message" else f"{item.title}\n{item.body}"


async def _write_titles(database: Database, workspace_id: int, keys: Mapping[UUID, str | None]) -> None:
    async with database.session(workspace_id) as session:
        await store.write_titles(session, keys)


async def _others(database: Database, workspace_id: int, batch: Sequence[Text], read: _Read) -> _Others:
    """Returns which texts, of all that are stored, name a title of the batch, and which share a rare name with it."""
    titled = {key: item for item in batch if (key := read.keys[item.memory_id]) is not None}
    spoken = sorted({name for found in read.names.values() for name in found})
    phrases = [Phrase(without_brackets(item.title), RARE_TITLE) for item in titled.values()]
    async with database.session(workspace_id, transaction=False) as session:
        found = await lookup.having(session, [*phrases, *(Phrase(name, RARE_NAME) for name in spoken)])
        texts = await lookup.texts(session, {memory_id for ids in found for memory_id in ids})
    named = dict(zip(titled, found[: len(phrases)], strict=True))
    shared = dict(zip(spoken, found[len(phrases) :], strict=True))
    return await asyncio.to_thread(_compared, named, shared, texts)


def _compared(
    named: Mapping[str, Sequence[UUID]], shared: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]
) -> _Others:
    having = _having(shared, texts)
    rare = {link for ids in having.values() if len(ids) <= words.BEARERS for link in _pairs(ids)}
    return _Others(naming=_naming(named, texts), sharing=rare, common=set(_common(having, rare, texts)))


def _naming(named: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]) -> Mapping[UUID, _Naming]:
    """Returns the texts that may name one of these titles: the search has found their words in any spelling."""
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
    """Returns what the texts of the batch, and those that name its titles, mention, whichever was stored first."""
    texts = {**naming, **{ident: _Naming(read.keys[ident], possible) for ident, possible in read.possible.items()}}
    wanted = {mention.key for item in texts.values() for mention in item.possible}
    async with database.session(workspace_id, transaction=False) as session:
        any_titles = await store.has_titles(session)
        known = await store.bearers_of(session, wanted) if any_titles else {}
    return {
        memory_id: [other for other in mentioned(item.possible, known, own=item.own) if other != memory_id]
        for memory_id, item in texts.items()
    }


def _having(shared: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, Text]) -> Mapping[str, Sequence[UUID]]:
    """Returns for each name the memories that have it in this spelling, oldest first."""
    return {
        name: sorted(ident for ident in ids if ident in texts and words.says(_spoken(texts[ident]), name))
        for name, ids in shared.items()
    }


def _pairs(ids: Sequence[UUID]) -> Iterable[Link]:
    """Returns a link for every two of them; the newer one, whose id is the greater, points to the older."""
    return (Link(newer, older, SAME_ENTITY) for place, newer in enumerate(ids) for older in ids[:place])


def _common(having: Mapping[str, Sequence[UUID]], rare: Collection[Link], texts: Mapping[UUID, Text]) -> Iterable[Link]:
    """Yields pairs that a name has linked before so many had it, where they share no other name."""
    for name, ids in having.items():
        if len(ids) > words.BEARERS:
            yield from (link for link in _pairs(ids) if link not in rare and not _share_another(link, name, texts))


def _share_another(link: Link, name: str, texts: Mapping[UUID, Text]) -> bool:
    one, other = texts[link.from_id], texts[link.to_id]
    others = (found for found in words.names(_spoken(one), one.language) if found != name)
    return any(words.says(_spoken(other), found) for found in others)


async def _write(database: Database, workspace_id: int, found: _Found) -> None:
    """Write the links, but those of a text that has changed meanwhile, which is queued again."""
    async with database.session(workspace_id) as session:
        current = await leave_links(session, found.asked, step=WORDS)
        changed = found.asked.keys() - current
        mentions = {memory_id: others for memory_id, others in found.mentions.items() if memory_id not in changed}
        links = [Link(memory_id, other, MENTIONS) for memory_id, others in mentions.items() for other in others]
        await store.write_mentions(session, mentions, links)
        await store.remove(session, found.others.common)
        await store.add(session, [link for link in found.others.sharing if changed.isdisjoint(link[:2])])


async def _link_by_vectors(database: Database, workspace_id: int) -> None:
    """Link a batch by its vectors. Where another model is served by then, its vectors queue the memories again."""
    async with database.session(workspace_id, transaction=False) as session:
        asked = await lookup.pending_vectors(session, VECTOR_BATCH)
        model = await models.active_model(session)
        found = [] if model is None else await lookup.nearest(
            session, model, list(asked), count=NEAREST, least=SIMILAR_FROM,
            indexed=workspace_id in await vectors.indexed_workspaces(session, model),
        )  # fmt: skip
    links = {(max(pair), min(pair)): similarity for *pair, similarity in found}
    similar = [Link(newer, older, SIMILAR, min(1.0, weight)) for (newer, older), weight in links.items()]

    async def attempt() -> None:
        async with database.session(workspace_id) as session:
            changed = asked.keys() - await leave_links(session, asked, step=VECTORS)
            await store.add(session, [link for link in similar if changed.isdisjoint(link[:2])])

    await again_after_deadlock(attempt)
