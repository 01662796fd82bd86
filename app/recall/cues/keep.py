"""The verbs that store cues and show them."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from msgspec import structs

from app.errors import EmbeddingUnavailable, InvalidInput, NotFound, told_apart
from app.foundation.db.database import again_after_deadlock
from app.foundation.db.session import EMBED_CUES, Across, Session
from app.foundation.models.protocols import EmbeddingProvider, Matrix, adapted_vectors
from app.foundation.safety.secrets import masked_values
from app.recall.cues import evidence as evidence_store
from app.recall.cues import store
from app.recall.cues import vectors as stored_vectors
from app.recall.cues.actions import ActionTypes, embed_types
from app.recall.cues.conflicts import settle_conflicts
from app.recall.cues.cue import NO_DETAILS, TOGETHER, Cue, NewCue, cue_text, reasons
from app.recall.cues.store import CueRow
from app.recall.cues.vectors import LackingCue
from app.storage.index.following import provider_of_model
from app.storage.index.service import Embedder
from app.storage.index.vectors import embedded_text
from app.storage.memories.gate import screen_memory, unstorable
from app.storage.memories.memory import NewMemory, Rejection, Screened, content_hash
from app.storage.memories.remember import Door
from app.storage.memories.write import write
from app.storage.tenants import store as workspaces
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace, configuration

MOST_AT_ONCE = 1_000
BATCH = 100
"""Cues that are embedded between two writes: a killed worker loses at most 5 s of work."""
DoorOf = Callable[[int], Awaitable[Door]]


EDITABLE = tuple(
    name for name in NewCue.__slots__ if name not in {"evidence", "origin", "is_candidate", "language", "tags"}
)


class CueVectors(NamedTuple):
    """The vectors of cues' texts."""

    model: str
    rows: Sequence[Matrix | None]
    """The vectors of each cue, by their places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCues:
    """The outcome of a batch of cues."""

    ids: tuple[UUID | None, ...]
    """One id for each given cue, in their order; None for a rejected one."""
    stored: int
    known: int
    """Number of given cues whose text was stored already; they add their evidence."""
    rejected: tuple[Rejection, ...]


class _CheckedCue(NamedTuple):
    """A cue that passed all checks."""

    cue: NewCue
    memory: Screened
    vectors: Matrix | None = None
    is_known: bool = False
    """True if it is stored with vectors already."""


async def add_cues(door: Door, cues: Sequence[NewCue]) -> StoredCues:
    """Stores cues; known text (same trigger and lesson) is not stored twice, it unites the evidence.

    A cue is rejected with its reason if it cannot be stored; the others are stored. Secrets are masked, unless `mask`
    is off. Where the embedding model gives no vectors, cues are stored without, matched by words, and embedded later.

    Raises:
        InvalidInput: there are too many cues.
        DatabaseUnavailable: nothing was stored.
    """
    if not 1 <= len(cues) <= MOST_AT_ONCE:
        raise InvalidInput("", f"1 to {MOST_AT_ONCE:,} cues are taken at once")
    checked = await asyncio.to_thread(lambda: [_check(door, index, cue) for index, cue in enumerate(cues)])
    ready = [item for item in checked if isinstance(item, _CheckedCue)]
    model, embedded = await _embed_new(door, ready)
    types = await embed_types(door.provider, door.workspace)
    named = await asyncio.to_thread(lambda: [_with_types(item, types) for item in embedded])
    door = door._replace(workspace=await Workspaces(database=door.database).get_or_create(door.workspace))
    stored, ids = await again_after_deadlock(lambda: _store(door, named, model))
    await settle_conflicts(door, [cue_id for cue_id, item in zip(ids, named, strict=True) if not item.is_known])
    found = iter(ids)
    outcomes = [next(found) if isinstance(item, _CheckedCue) else None for item in checked]
    return StoredCues(
        ids=tuple(outcomes),
        stored=stored,
        known=len(ready) - stored,
        rejected=tuple(item for item in checked if isinstance(item, Rejection)),
    )


def _check(door: Door, index: int, cue: NewCue) -> _CheckedCue | Rejection:
    reason = next(objections(cue), None)
    if reason is not None:
        return Rejection(index=index, reason=reason)
    clean = masked_values(cue) if door.mask else cue
    passed = screen_memory(memory_of(clean), mask=door.mask)
    if passed.objection is not None:
        field, message = told_apart(passed.objection.message)
        reason = f"{'lesson' if field == 'body' else field}: {message}"
        return Rejection(index=index, reason=reason, code=passed.objection.code)
    text = embedded_text(passed.memory.title, passed.memory.body)
    plain = structs.replace(passed.memory, metadata={"cue": cue.kind})
    return _CheckedCue(clean, replace(passed, memory=plain, tokens=door.counter.count(text)))


def objections(cue: NewCue) -> Iterator[str]:
    """Yields the reasons why a cue cannot be stored, each with its field and the remedy."""
    yield from reasons(cue)
    yield from unstorable({name: getattr(cue, name) for name in EDITABLE})


def memory_of(cue: NewCue) -> NewMemory:
    """Returns the memory of a cue, with all its texts, so that the injection scan sees them."""
    evidence = [text for item in cue.evidence for text in (item.session, item.quote)]
    texts = {**cue.details, "quote": cue.quote, "evidence": evidence}
    return NewMemory(
        kind="cue", title=cue.trigger, body=cue.lesson, tags=cue.tags, metadata=texts, language=cue.language
    )


def given_of(cue: Cue, changed: Mapping[str, Any] = NO_DETAILS) -> NewCue:
    """Returns a stored cue as its writer would give it, with some fields changed."""
    known = {name: getattr(cue, name) for name in EDITABLE}
    return NewCue(**{**known, **changed}, evidence=cue.evidence, origin=cue.origin)


async def embed_texts(door: Door, cues: Sequence[NewCue]) -> CueVectors:
    """Returns the vectors of these cues' texts; none if the model gives none now."""
    none = CueVectors("", [None] * len(cues))
    if door.provider is None or not door.provider.enabled or not cues:
        return none
    # All vectors are of one model, even if the store moves to another meanwhile.
    provider = provider_of_model(door.provider, door.provider.model_id) or door.provider
    model = provider.model_id
    together = [cue_text(cue.trigger, cue.lesson) for cue in cues]
    try:
        rows = await _embed_each(provider, [*(cue.trigger for cue in cues), *together])
        adapted = await adapted_vectors(provider, together)
    except EmbeddingUnavailable:
        return none
    of_triggers, of_both = np.split(rows, 2)
    matrix = np.stack([of_triggers, of_both, np.zeros_like(of_both) if adapted is None else adapted], axis=1)
    return CueVectors(model, list(matrix))


async def _embed_each(provider: EmbeddingProvider, texts: Sequence[str]) -> Matrix:
    """Returns the vector of each text; equal texts are embedded once."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    rows = await provider.embed_documents(list(places))
    return rows[[places[text] for text in texts]]


async def _embed_new(door: Door, ready: Sequence[_CheckedCue]) -> tuple[str, Sequence[_CheckedCue]]:
    """Returns a model, and the cues with its vectors; those that are stored with vectors already get none."""
    if door.provider is None or not door.provider.enabled or not ready:
        return "", ready
    hashes = [content_hash(item.memory.memory, _language(door.workspace, item.cue)) for item in ready]
    async with door.database.session(door.workspace, transaction=False) as session:
        found = await stored_vectors.embedded_among(session, hashes, door.provider.model_id, door.provider.dimension)
    items = [item._replace(is_known=digest in found) for item, digest in zip(ready, hashes, strict=True)]
    given = await embed_texts(door, [item.cue for item in items if not item.is_known])
    rows = iter(given.rows)
    return given.model, [item if item.is_known else item._replace(vectors=next(rows)) for item in items]


def _with_types(item: _CheckedCue, types: ActionTypes) -> _CheckedCue:
    """Returns a cue with its action types: a new one without any is classified by trigger and lesson."""
    cue, vectors = item.cue, item.vectors
    if item.is_known or cue.action_types:
        return item
    names = types.names(f"{cue.trigger}\n{cue.lesson}", None if vectors is None else vectors[TOGETHER])
    return item._replace(cue=replace(cue, action_types=names))


async def _store(door: Door, ready: Sequence[_CheckedCue], model: str) -> tuple[int, list[UUID]]:
    if not ready:
        return 0, []
    now = datetime.now(UTC)
    async with door.database.session(door.workspace) as session:
        revision = await store.next_revision(session)
        rows = [item.memory.row(source_id=None, language=_language(door.workspace, item.cue)) for item in ready]
        await workspaces.add_languages(session, door.workspace, {row.language for row in rows})
        written = await write(session, rows)
        cues = await evidence_store.with_places(session, [item.cue for item in ready])
        new = [
            CueRow(memory_id=memory_id, cue=cue, model=model, vectors=item.vectors, now=now)
            for memory_id, cue, item in zip(written.ids, cues, ready, strict=True)
        ]
        await store.insert(session, new, revision)
        if not model:
            await session.enqueue(EMBED_CUES)
    return written.counts["stored"], written.ids


def _language(workspace: Workspace, cue: NewCue) -> str:
    return workspace.language if cue.language is None else configuration(cue.language)


async def embed_cues(door_of: DoorOf, *, across: Across, seconds: float = math.inf) -> int:
    """Embeds the cues of all workspaces that have no vectors of the served model; returns their number.

    Until then they are matched by words, files and action types. After `seconds` no further batch is begun. Safe to
    kill and to run twice at once: a cue that was written meanwhile is left for the next batch.

    Raises:
        EmbeddingUnavailable: the model gives no vectors now; those so far are stored.
    """
    done, end = 0, time.monotonic() + seconds
    while not done or time.monotonic() < end:
        async with across(transaction=False) as session:
            batch = await stored_vectors.lacking_of_all(session, limit=BATCH)
        for workspace_id, cues in groupby(batch, key=lambda cue: cue.workspace_id):
            await _embed_lacking(await door_of(workspace_id), list(cues))
        done += len(batch)
        if len(batch) < BATCH:
            break
    return done


async def _embed_lacking(door: Door, lacking: Sequence[LackingCue]) -> None:
    """Embeds cues of one workspace; those that never had vectors are compared with others that they may contradict."""
    if door.provider is None:
        return
    if (model := await Embedder(database=door.database, provider=door.provider).serving_model()) is None:
        raise EmbeddingUnavailable("the stored vectors are of a model that is not configured: cues are not embedded")
    door = door._replace(provider=provider_of_model(door.provider, model.name))
    async with door.database.session(door.workspace, transaction=False) as session:
        found = await store.read(session, [cue.memory_id for cue in lacking])
    cues = [cue for cue in lacking if cue.memory_id in found]
    given = await embed_texts(door, [given_of(found[cue.memory_id]) for cue in cues])
    if cues and not given.model:
        raise EmbeddingUnavailable("the embedding model gives no vectors now: cues are embedded when it does")
    rows = [
        {"memory_id": cue.memory_id, "revision": cue.revision, "vectors": store.halves(own)}
        for cue, own in zip(cues, given.rows, strict=True)
        if own is not None
    ]

    async def write() -> None:
        async with door.database.session(door.workspace) as session:
            await stored_vectors.set_vectors(session, rows, model.name, await store.next_revision(session))

    await again_after_deadlock(write)
    await settle_conflicts(door, [cue.memory_id for cue in cues if not cue.model])


async def cue_in(session: Session, workspace: Workspace, cue_id: UUID) -> Cue:
    """Returns one cue, of any state, in a session.

    Raises:
        NotFound: the workspace has no such cue.
    """
    cue = (await store.read(session, [cue_id])).get(cue_id)
    if cue is None:
        raise NotFound(f"there is no cue {cue_id} in workspace {workspace.name}")
    return cue
