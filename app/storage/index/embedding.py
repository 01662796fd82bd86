"""Cuts texts into passages, embeds them, and gives memories that lack vectors theirs."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import accumulate, chain, islice
from typing import NamedTuple, TypeAlias
from uuid import UUID

import structlog

from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Across, Session
from app.foundation.models.late import TokenCodes
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Window, embed_tokens, embed_words
from app.foundation.text.passages import overlapping, passages_of
from app.storage.index import indexing, models, vectors
from app.storage.index.indexing import BATCH, PendingText
from app.storage.index.models import StoredModel
from app.storage.index.reembed import provider_of_model
from app.storage.index.vectors import (
    Passages,
    PassageVector,
    as_literals,
    by_workspace,
    embedded_text,
    packed_parts,
    packed_tokens,
)
from app.storage.tenants import store as workspaces
from app.storage.tenants.workspace import UNMADE, Workspace

MOST_PASSAGES = 32
"""Vectors of one memory at most: about 30 kB of English. The limit bounds the size of a memory in the index."""
_OVERLAP = 40
"""Tokens that neighbouring passages share at most, so that a sentence at the cut stands whole in one of them."""
_PASSAGE_CHARACTERS = 1_000
"""Characters of an English passage."""


class PendingPassage(NamedTuple):
    """A passage that is still to be embedded."""

    text: str
    starts: int = 0
    ends: int | None = None
    parts: Sequence[tuple[int, str]] = ()
    """The first characters and the texts of the passages that answers show. Only a memory's first cut has them, and
    only if there are several: a single one has the memory's own vector."""
    title_ends: int = 0
    """Characters of the title with which the texts of a memory's first cut begin."""

    @property
    def embedded_texts(self) -> Sequence[str]:
        """Returns all texts of it that get a vector."""
        return [self.text, *(text for _, text in self.parts)]


Cuts: TypeAlias = Sequence[PendingPassage]
Text: TypeAlias = tuple[str, str]
"""The title and the body of a memory."""


async def cut(provider: EmbeddingProvider, texts: Sequence[Text]) -> list[Cuts]:
    """Returns the passages of each text: one, unless it is longer than the model's window.

    Raises:
        EmbeddingUnavailable: the model's tokenizer cannot be had.
    """
    window = await provider.window()
    return await asyncio.to_thread(
        lambda: [_with_parts(*pair) for pair in zip(cut_to(window, texts), texts, strict=True)]
    )


def _with_parts(cuts: Cuts, text: Text) -> Cuts:
    title, body = text
    first, found = cuts[0]._replace(title_ends=len(title)), passages_of(body)
    if len(found) < 2:  # noqa: PLR2004 - a single passage is the text
        return [first, *cuts[1:]]
    parts = [(part.start, embedded_text(title, part.of(body))) for part in found]
    return [first._replace(parts=parts), *cuts[1:]]


def cut_to(window: Window | None, texts: Sequence[Text]) -> list[Cuts]:
    """Returns the windows of each text, at most MOST_PASSAGES, or one if the window is not known; in this thread."""
    if window is None:
        return [[PendingPassage(embedded_text(*text))] for text in texts]
    whole = [embedded_text(*text) for text in texts]
    counts = window.counts(whole)
    return [
        [PendingPassage(read)] if count <= window.tokens else _passages(window, *text)
        for read, count, text in zip(whole, counts, texts, strict=True)
    ]


def _passages(window: Window, title: str, body: str) -> Cuts:
    """Returns the passages of a long text, each with the title above it; a title of half a window is one of its own."""
    taken = window.counter.count(title)
    first: Cuts = ()
    above, room = title, window.tokens - taken
    if taken > window.tokens // 2:
        first, above, room = [PendingPassage(title, 0, 0)], "", window.tokens
    found = overlapping(body, room, min(_OVERLAP, room // 4), window.counter)
    parts = (PendingPassage(embedded_text(above, body[at:end]), at, end) for at, end in found)
    return list(islice(chain(first, parts), MOST_PASSAGES))


def portion(batch: Sequence[PendingText], size: int) -> Sequence[PendingText]:
    """Returns the first texts that have about `size` passages together, or one text of more.

    A batch of long texts would take minutes, in which newer memories wait for their vectors.
    """
    sizes = accumulate(min(len(item.body) // _PASSAGE_CHARACTERS + 1, MOST_PASSAGES) for item in batch)
    return batch[: max(1, sum(total <= size for total in sizes))]


async def embed_passages(provider: EmbeddingProvider, texts: Sequence[Cuts]) -> list[Sequence[PassageVector]]:
    """Returns the vectors of each text's passages; equal passages are embedded once.

    Raises:
        EmbeddingUnavailable: the provider gives no vectors.
    """
    unique = list(dict.fromkeys(text for cuts in texts for cut in cuts for text in cut.embedded_texts))
    vectors, tokens = await embed_tokens(provider, unique)
    places = {text: place for place, text in enumerate(unique)}
    windows = list(dict.fromkeys(cut.text for cuts in texts for cut in cuts))
    literals = dict(zip(windows, as_literals(vectors[[places[text] for text in windows]]), strict=True))
    return [
        [
            PassageVector(
                literals[cut.text],
                cut.starts,
                cut.ends,
                _parts(cut, vectors, places),
                None if number else _tokens(cut, tokens, places),
            )
            for number, cut in enumerate(cuts)
        ]
        for cuts in texts
    ]


def _parts(cut: PendingPassage, vectors: Matrix, places: Mapping[str, int]) -> bytes | None:
    if not cut.parts:
        return None
    return packed_parts([start for start, _ in cut.parts], vectors[[places[text] for _, text in cut.parts]])


def _tokens(first: PendingPassage, tokens: Sequence[TokenCodes | None], places: Mapping[str, int]) -> bytes | None:
    """Returns the codes of the words of a memory's passages, by its first cut; None where the model gives none.

    They are empty for a title that fills the first cut alone, above a single passage.
    """
    found = [tokens[places[text]] for _, text in first.parts or [(0, first.text)]]
    known = [item for item in found if item is not None]
    if not known or len(known) < len(found):
        return None
    return b"" if first.ends == 0 and not first.parts else packed_tokens(first.title_ends, known)


def groups(texts: Sequence[Cuts], size: int) -> Iterator[slice]:
    """Yields neighbouring texts that together have at most `size` passages, or one text of more."""
    start, used = 0, 0
    for place, cuts in enumerate(texts):
        count = sum(len(cut.embedded_texts) for cut in cuts)
        if place > start and used + count > size:
            yield slice(start, place)
            start, used = place, 0
        used += count
    if start < len(texts):
        yield slice(start, len(texts))


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

logger = structlog.get_logger()


async def serving_model(database: Database, provider: EmbeddingProvider) -> StoredModel | None:
    """Returns the stored model, if the provider (`pinned`) can add to its vectors; registers one if there is none.

    None if the provider is switched off, or if the stored vectors are of another model.
    """
    if not provider.enabled:
        return None
    # Models belong to no workspace.
    async with database.session(UNMADE) as session:
        model = await models.register(session, provider.model_id, provider.dimension)
    if provider_of_model(provider, model.name) is not None:
        return model
    logger.warning("another model's vectors are stored", stored=model.name, configured=provider.model_id)
    return None


async def embed_pending(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace: Workspace,
    ids: Sequence[UUID] | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Embeds a workspace's pending memories, or only those among `ids`. Returns their number.

    It begins with the oldest, because a worker begins with the newest: of the same memories, each embeds a share.
    Safe to kill and to run twice at once: a batch is written whole, and a vector is written once.

    Raises:
        EmbeddingUnavailable: the provider does not answer; the vectors so far are stored.
    """
    opened = partial(database.session, workspace, transaction=False)
    pending = partial(indexing.pending_texts, limit=BATCH, ids=ids)
    return await _embed_batches(database, provider, opened, pending, on_progress=on_progress)


async def embed_all_pending(
    database: Database,
    provider: EmbeddingProvider,
    *,
    across: Across,
    seconds: float = math.inf,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Embeds the pending memories of all workspaces as `embed_pending` does, newest first.

    After `seconds` no further batch is begun.
    """
    of_all = partial(indexing.pending_texts, limit=BATCH, of_all=True)
    return await _embed_batches(database, provider, across, of_all, seconds=seconds, on_progress=on_progress)


async def _embed_batches(
    database: Database,
    provider: EmbeddingProvider,
    opened: Callable[[], AbstractAsyncContextManager[Session]],
    next_batch: Callable[[Session], Awaitable[list[PendingText]]],
    *,
    seconds: float = math.inf,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    done, end = 0, time.monotonic() + seconds
    while not done or time.monotonic() < end:
        async with opened() as session:
            batch = portion(await next_batch(session), BATCH)
        model = await serving_model(database, provider) if batch else None
        speaker = None if model is None else provider_of_model(provider, model.name)
        if model is None or speaker is None:
            break
        embedded = await _embed(database, speaker, model, batch)
        done += embedded
        on_progress(embedded)
    return done


async def _embed(
    database: Database, provider: EmbeddingProvider, model: StoredModel, batch: Sequence[PendingText]
) -> int:
    """Returns how many it has embedded: not those that have got their vectors from somebody else meanwhile.

    It ends early if the store has moved to another model: the rest of the batch stays pending for its vectors.
    """
    texts = await cut(provider, [(item.title, item.body) for item in batch])
    done = 0
    for part in groups(texts, GROUP):
        pending = await _still_pending(database, batch[part])
        group = [(item, parts) for item, parts in zip(batch[part], texts[part], strict=True) if _place(item) in pending]
        written = [item for item, _ in group]
        found = await embed_passages(provider, [parts for _, parts in group]) if group else []
        for workspace_id, own in by_workspace(written, found).items():
            hashes = {item.memory_id: item.content_hash for item in written if item.workspace_id == workspace_id}
            if not await again_after_deadlock(partial(_write, database, model, workspace_id, own, hashes)):
                return done
        done += len(group)
    return done


async def _still_pending(database: Database, batch: Sequence[PendingText]) -> set[_Place]:
    """Returns the places of the memories of this batch that are still pending for a vector."""
    pending: set[_Place] = set()
    for workspace_id in {item.workspace_id for item in batch}:
        ids = [item.memory_id for item in batch if item.workspace_id == workspace_id]
        async with database.session(workspace_id, transaction=False) as session:
            found = await indexing.pending_among(session, ids, partial=True)
        pending.update((workspace_id, memory_id) for memory_id in found)
    return pending


def _place(item: PendingText) -> _Place:
    return item.workspace_id, item.memory_id


async def _write(
    database: Database,
    model: StoredModel,
    workspace_id: int,
    found: Mapping[UUID, Passages],
    hashes: Mapping[UUID, bytes],
) -> bool:
    async with database.session(workspace_id) as session:
        return await vectors.write(session, model, found, hashes=hashes)


def pouring(before: int, now: int) -> bool:
    """Tells whether vectors come so fast that it is better to build an index after the last of them.

    `before` and `now` are `vector_bytes`, POURING_SECONDS apart. Built at once, 100,000 take 20 s of two cores; added
    to an index one by one, 55 s of one (docs/adr/0006).
    """
    return now - before > POURING_BYTES


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


async def queue_without_codes(across: Across, provider: EmbeddingProvider) -> None:
    """Queues the memories whose words have no codes, as after an upgrade, if the served model gives token vectors."""
    _, words = await embed_words(provider, "words")
    if words is None:
        return
    async with across() as session:
        model = await models.active_model(session)
        if model is not None and model.name == provider.model_id:
            await indexing.queue_without_codes_of_all(session, model.partition)


async def refresh_workspace_statistics(
    database: Database, workspace_id: int, *, across: Across, stale: float = indexing.STALE
) -> bool:
    """Counts a workspace's document frequencies and lengths again if they are stale; returns whether they were.

    The planner learns of tables that have grown, too.
    """
    async with across(transaction=False) as session:
        await indexing.inform_planner(session)
    async with database.session(workspace_id) as session:
        return await indexing.refresh_statistics(session, stale=stale)


async def refresh_all_statistics(database: Database, *, across: Across, stale: float = indexing.STALE) -> int:
    """Counts stale statistics again, in every workspace. Returns the number of workspaces that had any."""
    async with across() as session:
        ids = await workspaces.ids_of_all(session)
    return sum(
        [await refresh_workspace_statistics(database, workspace_id, across=across, stale=stale) for workspace_id in ids]
    )
