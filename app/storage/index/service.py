"""The verbs that give memories their vectors, and those that keep the index of all workspaces."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeAlias
from uuid import UUID

import structlog

from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Across, Session
from app.foundation.models.protocols import EmbeddingProvider, embed_words
from app.foundation.values import frozen
from app.storage.index import indexing, models, vectors
from app.storage.index.embedding import cut, embed_passages, groups, portion
from app.storage.index.following import FollowingProvider, provider_of_model
from app.storage.index.indexing import BATCH, PendingText
from app.storage.index.models import StoredModel
from app.storage.index.vectors import by_workspace
from app.storage.tenants import store as workspaces
from app.storage.tenants.workspace import UNMADE, Workspace

GROUP = 64
"""Passages between two writes: at most these are embedded twice if a request and a worker embed the same memories, and
are lost if one of them is killed. Groups of 256 took 2 % less time."""
POURING_SECONDS = 10.0
POURING_BYTES = 1_000_000
"""Bytes of vectors within POURING_SECONDS that delay the building of an index. An index takes in fewer vectors than
this (120 a second of 384 dimensions) one by one, in a twentieth of a core's time. On a busy machine the batches of a
stream come seconds apart."""

_Place: TypeAlias = tuple[int, UUID]
"""The ids of a workspace and of a memory in it."""

FOLLOW_SECONDS = 2.0
"""Time between two reads of the stored models; a move to another model waits for more than two before it switches."""

logger = structlog.get_logger()


async def vector_bytes(across: Across) -> int:
    """Returns the bytes that the served model's vectors take, in all workspaces."""
    async with across() as session:
        return await vectors.vector_bytes(session)


async def build_indexes(across: Across) -> int:
    """Builds the vector index of every workspace that is too large for the exact scan. Returns their number."""
    built = 0
    with vectors.unless_dropped():
        async with across(transaction=False) as session:
            if (model := await models.active_model(session)) is not None:
                built = await vectors.build_indexes(session, model)
    return built


async def lacks_an_index(across: Across) -> bool:
    """Tells whether a workspace is too large for the exact scan and has no vector index yet."""
    crowded: list[int] = []
    with vectors.unless_dropped():
        async with across() as session:
            if (model := await models.active_model(session)) is not None:
                crowded = await vectors.crowded_workspaces(session, model)
    return bool(crowded)


async def pending_counts(across: Across) -> tuple[int, int]:
    """Returns how many memories are pending for a vector, and for links, in all workspaces."""
    async with across() as session:
        return await indexing.pending_count(session), await indexing.pending_links_count(session)


async def queue_lacking(across: Across) -> bool:
    """Queues the memories that lack a vector and are not queued, as after a restored backup. Finds them by counting.

    Returns whether there was any.
    """
    async with across() as session:
        model = await models.active_model(session)
        if model is None or not await models.is_served(session, model):
            return False
        done, total = await models.progress_of_all(session, model)
        if done + await indexing.queued_count_of_all(session, model.partition) >= total:
            return False
        await indexing.queue_lacking_of_all(session, model.partition)
    return True


@frozen
class Statistics:
    """Counts words for the lexical arm."""

    database: Database

    async def refresh(self, across: Across, workspace_id: int, *, stale: float = indexing.STALE) -> bool:
        """Counts a workspace's document frequencies and lengths again if they are stale; returns whether they were.

        The planner learns of tables that have grown, too.
        """
        async with across(transaction=False) as session:
            await indexing.inform_planner(session)
        async with self.database.session(workspace_id) as session:
            return await indexing.refresh_statistics(session, stale=stale)

    async def refresh_all(self, across: Across, *, stale: float = indexing.STALE) -> int:
        """Counts stale statistics again, in every workspace. Returns the number of workspaces that had any."""
        async with across() as session:
            ids = await workspaces.ids_of_all(session)
        return sum([await self.refresh(across, workspace_id, stale=stale) for workspace_id in ids])


@frozen
class Embedder:
    """Gives stored memories their vectors by the model that the store serves."""

    database: Database
    provider: EmbeddingProvider

    async def prepare(self, across: Across) -> None:
        """Loads the model, registers it if there is none, and queues memories that lack a vector or codes of words.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded.
        """
        await self.provider.start()
        # Services that start at once lock the list of models in turn, on each node of a cluster.
        await again_after_deadlock(self.serving_model)
        await again_after_deadlock(lambda: queue_lacking(across))
        await again_after_deadlock(lambda: self.queue_without_codes(across))

    async def follow(self) -> None:
        """Reads the stored models, and has the provider embed by the served one, if it is a provider that follows."""
        if isinstance(self.provider, FollowingProvider) and self.provider.enabled:
            async with self.database.session(UNMADE, transaction=False) as session:
                known = await models.models(session)
            await self.provider.follow(known)

    async def follow_for_ever(self) -> None:
        """Follows until cancelled; after any failure it asks again later.

        It runs beside the requests of a process: an error that it raised would end the process.
        """
        while isinstance(self.provider, FollowingProvider):
            try:
                await self.follow()
            except Exception as error:  # noqa: BLE001 - whatever it was, the requests go on
                logger.warning("the stored models are not known for now", reason=str(error) or repr(error))
            await asyncio.sleep(FOLLOW_SECONDS)

    async def serving_model(self) -> StoredModel | None:
        """Returns the stored model, if the provider (`pinned`) can add to its vectors; registers one if there is none.

        None if the provider is switched off, or if the stored vectors are of another model.
        """
        provider = self.provider
        if not provider.enabled:
            return None
        # Models belong to no workspace.
        async with self.database.session(UNMADE) as session:
            model = await models.register(session, provider.model_id, provider.dimension)
        if provider_of_model(provider, model.name) is not None:
            return model
        logger.warning("another model's vectors are stored", stored=model.name, configured=provider.model_id)
        return None

    async def embed_pending(
        self,
        workspace: Workspace,
        *,
        ids: Sequence[UUID] | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Embeds a workspace's pending memories, or only those among `ids`. Returns their number.

        It begins with the oldest, because a worker begins with the newest: of the same memories, each embeds a share.
        Safe to kill and to run twice at once: a batch is written whole, and a vector is written once.

        Raises:
            EmbeddingUnavailable: the provider does not answer; the vectors so far are stored.
        """
        opened = partial(self.database.session, workspace, transaction=False)
        return await self._embed_batches(
            opened, partial(indexing.pending_texts, limit=BATCH, ids=ids), on_progress=on_progress
        )

    async def embed_all_pending(
        self, across: Across, *, seconds: float = math.inf, on_progress: Callable[[int], None] = lambda _: None
    ) -> int:
        """Embeds the pending memories of all workspaces as `embed_pending` does, newest first.

        After `seconds` no further batch is begun.
        """
        of_all = partial(indexing.pending_texts, limit=BATCH, of_all=True)
        return await self._embed_batches(across, of_all, seconds=seconds, on_progress=on_progress)

    async def queue_without_codes(self, across: Across) -> None:
        """Queues memories whose words have no codes, as after an upgrade, if the served model gives token vectors."""
        _, words = await embed_words(self.provider, "words")
        if words is None:
            return
        async with across() as session:
            model = await models.active_model(session)
            if model is not None and model.name == self.provider.model_id:
                await indexing.queue_without_codes_of_all(session, model.partition)

    async def _embed_batches(
        self,
        opened: Callable[[], AbstractAsyncContextManager[Session]],
        next_batch: Callable[[Session], Awaitable[list[PendingText]]],
        *,
        seconds: float = math.inf,
        on_progress: Callable[[int], None],
    ) -> int:
        done, end = 0, time.monotonic() + seconds
        while not done or time.monotonic() < end:
            async with opened() as session:
                batch = portion(await next_batch(session), BATCH)
            model = await self.serving_model() if batch else None
            speaker = None if model is None else provider_of_model(self.provider, model.name)
            if model is None or speaker is None:
                break
            embedded = await self._embed(speaker, model, batch)
            done += embedded
            on_progress(embedded)
        return done

    async def _embed(self, speaker: EmbeddingProvider, model: StoredModel, batch: Sequence[PendingText]) -> int:
        """Returns how many it has embedded: not those that have got their vectors from somebody else meanwhile.

        It ends early if the store has moved to another model: the rest of the batch stays pending for its vectors.
        """
        texts = await cut(speaker, [(item.title, item.body) for item in batch])
        done = 0
        for part in groups(texts, GROUP):
            places = await self._still_pending(batch[part])
            group = [
                (item, parts) for item, parts in zip(batch[part], texts[part], strict=True) if _place(item) in places
            ]
            written = [item for item, _ in group]
            found = await embed_passages(speaker, [parts for _, parts in group]) if group else []
            for workspace_id, own in by_workspace(written, found).items():
                hashes = {item.memory_id: item.content_hash for item in written if item.workspace_id == workspace_id}
                write = partial(vectors.write, model=model, found=own, hashes=hashes)
                if not await self.database.transact(workspace_id, write):
                    return done
            done += len(group)
        return done

    async def _still_pending(self, batch: Sequence[PendingText]) -> set[_Place]:
        """Returns the places of the memories of this batch that are still pending for a vector."""
        places: set[_Place] = set()
        for workspace_id in {item.workspace_id for item in batch}:
            ids = [item.memory_id for item in batch if item.workspace_id == workspace_id]
            async with self.database.session(workspace_id, transaction=False) as session:
                found = await indexing.pending_among(session, ids, partial=True)
            places.update((workspace_id, memory_id) for memory_id in found)
        return places


def _place(item: PendingText) -> _Place:
    return item.workspace_id, item.memory_id


def pouring(before: int, now: int) -> bool:
    """Tells whether vectors come so fast that it is better to build an index after the last of them.

    `before` and `now` are `vector_bytes`, POURING_SECONDS apart. Built at once, 100,000 take 20 s of two cores; added
    to an index one by one, 55 s of one (docs/adr/0006).
    """
    return now - before > POURING_BYTES
