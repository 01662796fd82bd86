"""The verbs that store cues and show them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.cues import store
from app.cues.actions import ActionTypes
from app.cues.conflicts import settle_conflicts
from app.cues.cue import FORMS, TAKEN_AWAY, Cue, NewCue, reasons
from app.cues.store import Asked, CueRow
from app.cues.taxonomy import types_of
from app.db.database import Database, again_after_deadlock
from app.db.session import Session
from app.errors import EmbeddingUnavailable, InvalidInput, NotFound, told_apart
from app.index.vectors import embedded_text
from app.intake.sessions import store as sessions
from app.memories.browse import LARGEST_PAGE
from app.memories.gate import screened
from app.memories.memory import NewMemory, Rejection, Screened
from app.memories.remember import Door
from app.memories.write import write
from app.models.protocols import Matrix
from app.safety.secrets import masked_values
from app.workspaces import store as workspaces
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace, configuration

MOST_AT_ONCE = 1_000


EVERY_CUE = Asked()


class Vectors(NamedTuple):
    """The vectors of cues' texts."""

    model: str
    """Empty if there are none."""
    matrix: Matrix | None
    """Shape (cues, FORMS, dimension)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The outcome of a batch of cues."""

    ids: tuple[UUID | None, ...]
    """One id for each given cue, in their order; None for a rejected one."""
    stored: int
    known: int
    """Number of given cues whose text was stored already; they add their evidence."""
    rejected: tuple[Rejection, ...]


class _Ready(NamedTuple):
    """A cue that passed all checks."""

    cue: NewCue
    memory: Screened


async def add_cues(door: Door, cues: Sequence[NewCue]) -> Kept:
    """Stores cues; known text (same trigger and lesson) is not stored twice, it unites the evidence.

    A cue is rejected with its reason if it cannot be stored; the others are stored. Secrets are masked, unless `mask`
    is off. Without an embedding model, cues are stored without vectors and matched by words; an edit embeds them.

    Raises:
        InvalidInput: there are too many cues.
        DatabaseUnavailable: nothing was stored.
    """
    if not 1 <= len(cues) <= MOST_AT_ONCE:
        raise InvalidInput("", f"1 to {MOST_AT_ONCE:,} cues are taken at once")
    checked = await asyncio.to_thread(_checked, door, cues)
    ready = [item for item in checked if isinstance(item, _Ready)]
    vectors = await embedded(door, [item.cue for item in ready])
    types = await types_of(door.database, door.provider, workspace=door.workspace)
    named = await asyncio.to_thread(_typed, ready, vectors, types)
    door = door._replace(workspace=await made(door.database, door.workspace))
    stored, ids = await again_after_deadlock(lambda: _store(door, named, vectors))
    await settle_conflicts(door, ids)
    found = iter(ids)
    outcomes = [next(found) if isinstance(item, _Ready) else None for item in checked]
    return Kept(
        ids=tuple(outcomes),
        stored=stored,
        known=len(ready) - stored,
        rejected=tuple(item for item in checked if isinstance(item, Rejection)),
    )


def _checked(door: Door, cues: Sequence[NewCue]) -> list[_Ready | Rejection]:
    return [_check(door, index, cue) for index, cue in enumerate(cues)]


def _check(door: Door, index: int, cue: NewCue) -> _Ready | Rejection:
    reason = next(reasons(cue), None)
    if reason is not None:
        return Rejection(index=index, reason=reason)
    clean = masked_values(cue) if door.mask else cue
    passed = screened(memory_of(clean), mask=door.mask)
    if passed.objection is not None:
        field, message = told_apart(passed.objection.message)
        reason = f"{'lesson' if field == 'body' else field}: {message}"
        return Rejection(index=index, reason=reason, code=passed.objection.code)
    text = embedded_text(passed.memory.title, passed.memory.body)
    plain = replace(passed.memory, metadata={"cue": cue.kind})
    return _Ready(clean, replace(passed, memory=plain, tokens=door.counter.count(text)))


def memory_of(cue: NewCue) -> NewMemory:
    """Returns the memory of a cue, with all its texts, so that the injection scan sees them."""
    evidence = [text for item in cue.evidence for text in (item.session, item.quote)]
    texts = {**cue.details, "quote": cue.quote, "evidence": evidence}
    return NewMemory(
        kind="cue", title=cue.trigger, body=cue.lesson, tags=cue.tags, metadata=texts, language=cue.language
    )


async def embedded(door: Door, cues: Sequence[NewCue]) -> Vectors:
    """Returns the vectors of these cues' texts; none if the model gives none now."""
    provider = door.provider
    if provider is None or not provider.enabled or not cues:
        return Vectors("", None)
    turns = [_turn(cue) for cue in cues]
    async with door.database.session(door.workspace, transaction=False) as session:
        stored = await sessions.scenes(session, {turn for turn in turns if turn is not None})
    scenes = ["" if turn is None else stored.get(turn, "") for turn in turns]
    texts = [text for cue, scene in zip(cues, scenes, strict=True) for text in _texts(cue, scene)]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    try:
        rows = await provider.embed_documents(list(places))
    except EmbeddingUnavailable:
        return Vectors("", None)
    matrix = rows[[places[text] for text in texts]].reshape(len(cues), len(FORMS), -1)
    bare = [place for place, scene in enumerate(scenes) if not scene]
    others = matrix[bare, :-1].sum(axis=1)
    matrix[bare, -1] = others / np.linalg.norm(others, axis=-1, keepdims=True)
    return Vectors(provider.model_id, matrix)


def _turn(cue: NewCue) -> tuple[str, int] | None:
    """Returns the session and the ordinal of the first turn that is its evidence."""
    turns = ((item.session, item.ordinal) for item in cue.evidence if item.session and item.ordinal is not None)
    return next(turns, None)


def _texts(cue: NewCue, scene: str) -> tuple[str, ...]:
    """Returns the texts of FORMS; without a quote, the lesson stands for it."""
    return cue.trigger, f"{cue.trigger}\n{cue.lesson}", cue.quote or cue.lesson, scene or cue.trigger


def _typed(ready: Sequence[_Ready], vectors: Vectors, types: ActionTypes) -> list[_Ready]:
    """Returns the cues with their action types, those without any classified by trigger and lesson."""
    return [
        item
        if item.cue.action_types
        else item._replace(
            cue=replace(
                item.cue,
                action_types=types.names(
                    f"{item.cue.trigger}\n{item.cue.lesson}",
                    None if vectors.matrix is None else vectors.matrix[place, 0],
                ),
            )
        )
        for place, item in enumerate(ready)
    ]


def as_bytes(rows: Matrix) -> bytes:
    """Returns the vectors of a cue as they are stored: 16-bit floats, little-endian."""
    return rows.astype("<f2").tobytes()


async def _store(door: Door, ready: Sequence[_Ready], vectors: Vectors) -> tuple[int, list[UUID]]:
    if not ready:
        return 0, []
    now = datetime.now(UTC)
    async with door.database.session(door.workspace) as session:
        revision = await store.revised(session)
        rows = [item.memory.row(source_id=None, language=_language(door.workspace, item.cue)) for item in ready]
        await workspaces.add_languages(session, door.workspace, {row.language for row in rows})
        written = await write(session, rows)
        known = await store.located(session, [item.cue for item in ready])
        await store.insert(
            session,
            [
                CueRow(
                    memory_id=memory_id,
                    cue=replace(item.cue, evidence=known.of(item.cue)),
                    model=vectors.model,
                    vectors=None if vectors.matrix is None else as_bytes(vectors.matrix[place]),
                    now=now,
                )
                for place, (memory_id, item) in enumerate(zip(written.ids, ready, strict=True))
            ],
            revision,
        )
    return written.counts["stored"], written.ids


def _language(workspace: Workspace, cue: NewCue) -> str:
    return workspace.language if cue.language is None else configuration(cue.language)


async def get_cue(database: Database, *, workspace: Workspace, cue_id: UUID) -> Cue:
    """Returns one cue, of any state.

    Raises:
        NotFound: the workspace has no such cue.
    """
    async with database.session(workspace, transaction=False) as session:
        return await found(session, workspace, cue_id)


async def found(session: Session, workspace: Workspace, cue_id: UUID) -> Cue:
    """Returns one cue, of any state, in a session.

    Raises:
        NotFound: the workspace has no such cue.
    """
    cue = (await store.read(session, [cue_id])).get(cue_id)
    if cue is None:
        raise NotFound(f"there is no cue {cue_id} in workspace {workspace.name}")
    return cue


async def list_cues(
    database: Database,
    *,
    workspace: Workspace,
    asked: Asked = EVERY_CUE,
    after: tuple[datetime, UUID] | None = None,
    limit: int = 50,
) -> Sequence[Cue]:
    """Returns the cues that meet every condition, the newest first; `after` is the last one of the page before."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
    async with database.session(workspace, transaction=False) as session:
        return await store.page(session, asked, after=after, limit=limit)


async def cues_of_source(database: Database, *, workspace: Workspace, source_id: UUID) -> Sequence[Cue]:
    """Returns the cues that have evidence in a source, the oldest first, without retired and superseded ones."""
    async with database.session(workspace, transaction=False) as session:
        return [cue for cue in await store.of_source(session, source_id) if cue.state not in TAKEN_AWAY]
