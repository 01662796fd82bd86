"""The verbs that give, take back and find links."""

import asyncio
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from app.errors import InvalidInput, NotFound, check
from app.foundation.db.database import Database
from app.foundation.db.session import Across, Session
from app.foundation.text.passages import groups_within
from app.foundation.values import frozen
from app.storage.index import models, vectors
from app.storage.index.indexing import VECTORS, WORDS, leave_links
from app.storage.links import lookup, store
from app.storage.links.lookup import Phrase
from app.storage.links.relations import (
    LEAST_WEIGHT,
    NAME_BEARERS,
    SIMILAR,
    Link,
    LinkText,
    Mentions,
    Others,
    compare_batch,
    impossible_relation,
    impossible_to_give,
    mentioned_titles,
    of_one_task,
    read,
    without_brackets,
)
from app.storage.tenants.workspace import Workspace

BATCH, _BATCH_CHARACTERS = 250, 250_000
"""Memories linked in one batch, and characters that are read of them. Their possible mentions, about 100 each, are
looked up together. A text in capitals has 1.6 mentions a character, of 150 bytes each."""
_RARE_TITLE = 1_000
"""Earlier texts are searched for a title if at most this many memories have its rarest word: a search of so many
takes 1 ms."""
_RARE_NAME = 2 * NAME_BEARERS
"""The same limit for a name: twice NAME_BEARERS, because statistics are a little old and count the word in lower
case."""
_NEAREST = 5
"""Nearest memories that are linked as `similar`."""
_SIMILAR_FROM = 0.7
"""Least cosine similarity, of the bundled model: on LoCoMo dev 0.7 gives one link a message, 0.6 three, 0.8 one in
six."""
MANY = 2_000
"""Number of memories that take about 10 s."""
VECTOR_BATCH = 100
"""Memories compared in one statement; each takes up to 5 ms in a workspace without a vector index."""
MOST_AT_ONCE = 10_000
"""Most links in one call."""


class LinkedSlice(NamedTuple):
    """The outcome of one slice of linking."""

    memories: int
    """Number of memories that were linked by words."""
    over: bool
    """True if no pending memory can be linked now."""


async def many_pending(across: Across) -> bool:
    """Tells whether linking by words takes so long that it is better to wait until no more memories arrive."""
    async with across() as session:
        return await lookup.more_pending(session, MANY)


async def _pending(across: Across, step: str, *, without: Collection[int] = ()) -> int | None:
    async with across() as session:
        return await lookup.pending_workspace(session, step, without=without)


@frozen
class LinksGiven:
    """The outcome of given links, each of which is in one of the first three counts, or of a link taken back."""

    created: int
    updated: int
    """Number of known links whose weight changed."""
    unchanged: int
    removed: int = 0
    """0 if the link to take back was not stored."""


def _reasons(links: Sequence[Link]) -> Iterator[str]:
    """Yields the reasons why these links cannot be given."""
    for place, link in enumerate(links):
        if reason := impossible_to_give(link.relation):
            yield f"links[{place}].relation: {reason}"
        if link.from_id == link.to_id:
            yield f"links[{place}].to_id: is the memory itself; link two different ones"
        if not LEAST_WEIGHT <= link.weight <= 1:
            yield f"links[{place}].weight: must be from {LEAST_WEIGHT} to 1"


async def _write_links(
    session: Session, batch: Sequence[LinkText], mentions: Mapping[UUID, Sequence[UUID]], others: Others
) -> None:
    """Writes the links, except those of texts that have changed meanwhile and are queued again."""
    asked = {item.memory_id: item.asked for item in batch}
    changed = asked.keys() - await leave_links(session, asked, step=WORDS)
    current = {memory_id: named for memory_id, named in mentions.items() if memory_id not in changed}
    await store.write_mentions(session, current)
    await store.remove(session, others.common)
    await store.add(session, [link for link in (*others.sharing, *others.tasks) if changed.isdisjoint(link[:2])])


@frozen
class Links:
    """Gives, takes back and finds links."""

    database: Database

    async def link_pending(self, across: Across, *, seconds: float = math.inf) -> LinkedSlice:
        """Links pending memories for about `seconds`, by vectors if the workspace is small or has its index.

        It begins no batch after that time, but always does one of each step. Safe to kill and to run twice at once:
        links are written whole as their memories leave the queue, and only once.
        """
        done, end = 0, time.monotonic() + seconds
        while (workspace_id := await _pending(across, WORDS)) is not None:
            if done and time.monotonic() >= end:
                return LinkedSlice(done, over=False)
            done += await self._link_by_words(workspace_id)
        if await _pending(across, VECTORS) is None:
            return LinkedSlice(done, over=True)
        async with across() as session:
            model = await models.active_model(session)
            # To compare all memories of a large workspace without an index would take hours.
            unindexed = [] if model is None else await vectors.crowded_workspaces(session, model)
        compared = False
        while (workspace_id := await _pending(across, VECTORS, without=unindexed)) is not None:
            if compared and time.monotonic() >= end:
                return LinkedSlice(done, over=False)
            await self._link_by_vectors(workspace_id)
            compared = True
        return LinkedSlice(done, over=True)

    async def _link_by_words(self, workspace_id: int) -> int:
        async with self.database.session(workspace_id, transaction=False) as session:
            pending = await lookup.pending_texts(session, BATCH)
        batch = pending[next(groups_within((len(item.body) for item in pending), _BATCH_CHARACTERS), slice(0))]
        readings = await asyncio.to_thread(read, batch)
        # Titles are committed before texts are searched: of two concurrent calls, at least one sees the other's titles.
        titles = {memory_id: reading.own for memory_id, reading in readings.items()}
        await self.database.transact(workspace_id, partial(store.write_titles, keys=titles))
        others = await self._others(workspace_id, batch, readings)
        mentions = await self._mentions(workspace_id, {**others.naming, **readings})
        write = partial(_write_links, batch=batch, mentions=mentions, others=others)
        await self.database.transact(workspace_id, write)
        return len(batch)

    async def _others(self, workspace_id: int, batch: Sequence[LinkText], readings: Mapping[UUID, Mentions]) -> Others:
        """Returns the stored texts that name a title of the batch, or share a rare name with it."""
        titled = {key: item for item in batch if (key := readings[item.memory_id].own) is not None}
        spoken = sorted({name for reading in readings.values() for name in reading.names})
        phrases = [Phrase(without_brackets(item.title), _RARE_TITLE) for item in titled.values()]
        async with self.database.session(workspace_id, transaction=False) as session:
            found = await lookup.having(session, [*phrases, *(Phrase(name, _RARE_NAME) for name in spoken)])
            texts = await lookup.texts(session, {memory_id for ids in found for memory_id in ids})
            observed = {item.memory_id for item in batch if item.kind == "observation"}
            tasks = await lookup.tasks(session, observed) if observed else []
        named = dict(zip(titled, found[: len(phrases)], strict=True))
        shared = dict(zip(spoken, found[len(phrases) :], strict=True))
        others = await asyncio.to_thread(compare_batch, named, shared, texts)
        return others._replace(tasks=await asyncio.to_thread(of_one_task, observed, tasks))

    async def _mentions(self, workspace_id: int, texts: Mapping[UUID, Mentions]) -> Mapping[UUID, Sequence[UUID]]:
        """Returns the memories that each text mentions, of the batch and of the texts that name a title of it."""
        wanted = {mention.key for item in texts.values() for mention in item.possible}
        async with self.database.session(workspace_id, transaction=False) as session:
            any_titles = await store.has_titles(session)
            known = await store.bearers_of(session, wanted) if any_titles else {}
        return {
            memory_id: [other for other in mentioned_titles(item.possible, known, own=item.own) if other != memory_id]
            for memory_id, item in texts.items()
        }

    async def _link_by_vectors(self, workspace_id: int) -> None:
        """Links a batch by its vectors. If another model is served by then, its vectors queue the memories again."""
        async with self.database.session(workspace_id) as session:
            asked = await lookup.pending_vectors(session, VECTOR_BATCH)
            model = await models.active_model(session)
            found = [] if model is None else await lookup.nearest(
                session, model, list(asked), count=_NEAREST, least=_SIMILAR_FROM,
                indexed=workspace_id in await vectors.indexed_workspaces(session, model),
            )  # fmt: skip
        links = {(max(pair), min(pair)): similarity for *pair, similarity in found}
        similar = [Link(newer, older, SIMILAR, min(1.0, weight)) for (newer, older), weight in links.items()]

        async def write(session: Session) -> None:
            changed = asked.keys() - await leave_links(session, asked, step=VECTORS)
            await store.add(session, [link for link in similar if changed.isdisjoint(link[:2])])

        await self.database.transact(workspace_id, write)

    async def give(self, workspace: Workspace, links: Sequence[Link]) -> LinksGiven:
        """Links memories, all in one transaction; a known link takes the new weight, so a call may be repeated.

        If a link is given twice, the last one counts.

        Raises:
            InvalidInput: callers cannot set the relation, a memory is linked with itself, or a weight is out of range.
            NotFound: one of the memories is not in the workspace, or it is deleted or in quarantine; nothing is linked.
        """
        if not 1 <= len(links) <= MOST_AT_ONCE:
            raise InvalidInput("links", f"1 to {MOST_AT_ONCE:,} are taken at once")
        check(_reasons(links))
        wanted = {link[:3]: link for link in links}

        async def write(session: Session) -> LinksGiven:
            ids = {memory_id for link in links for memory_id in link[:2]}
            if missing := ids - await store.linkable_memories(session, ids):
                raise NotFound(f"there is no memory {min(missing)} in workspace {workspace.name}, so nothing is linked")
            created, updated = await store.add(session, list(wanted.values()))
            return LinksGiven(created=created, updated=updated, unchanged=len(links) - created - updated)

        return await self.database.transact(workspace, write)

    async def take_back(self, workspace: Workspace, link: Link) -> int:
        """Removes a link, and returns how many were stored: 1 or 0.

        One that was found, not given, returns when one of its memories is stored again.

        Raises:
            InvalidInput: no link of this relation is stored.
        """
        if reason := impossible_relation(link.relation):
            raise InvalidInput("relation", reason)
        async with self.database.session(workspace) as session:
            return await store.remove(session, [link])
