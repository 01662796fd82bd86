"""Checks cues before they are stored, and embeds their texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from msgspec import structs

from app.errors import EmbeddingUnavailable, NotFound, told_apart
from app.foundation.db.session import Session
from app.foundation.models.protocols import EmbeddingProvider, Matrix, TokenCounter, adapted_vectors
from app.foundation.safety.secrets import masked_values
from app.recall.cues import store
from app.recall.cues.actions import ActionTypes
from app.recall.cues.cue import EDITABLE, TOGETHER, Cue, NewCue, cue_text, objections
from app.storage.index.following import provider_of_model
from app.storage.index.vectors import embedded_text
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import NewMemory, Rejection, Screened
from app.storage.tenants.workspace import Workspace, configuration

MOST_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCues:
    """The outcome of a batch of cues."""

    ids: tuple[UUID | None, ...]
    """One id for each given cue, in their order; None for a rejected one."""
    stored: int
    known: int
    """Number of given cues whose text was stored already; they add their evidence."""
    rejected: tuple[Rejection, ...]


class CheckedCue(NamedTuple):
    """A cue that passed all checks."""

    cue: NewCue
    memory: Screened
    vectors: Matrix | None = None
    is_known: bool = False
    """True if it is stored with vectors already."""


def check_cue(cue: NewCue, index: int, *, counter: TokenCounter, mask: bool) -> CheckedCue | Rejection:
    """Returns a cue in the form in which it is stored, or the reason why it cannot be."""
    reason = next(objections(cue), None)
    if reason is not None:
        return Rejection(index=index, reason=reason)
    clean = masked_values(cue) if mask else cue
    passed = screen_memory(memory_of(clean), mask=mask)
    if passed.objection is not None:
        field, message = told_apart(passed.objection.message)
        reason = f"{'lesson' if field == 'body' else field}: {message}"
        return Rejection(index=index, reason=reason, code=passed.objection.code)
    text = embedded_text(passed.memory.title, passed.memory.body)
    plain = structs.replace(passed.memory, metadata={"cue": cue.kind})
    return CheckedCue(clean, replace(passed, memory=plain, tokens=counter.count(text)))


def memory_of(cue: NewCue) -> NewMemory:
    """Returns the memory of a cue, with all its texts, so that the injection scan sees them."""
    evidence = [text for item in cue.evidence for text in (item.session, item.quote)]
    texts = {**cue.details, "quote": cue.quote, "evidence": evidence}
    return NewMemory(
        kind="cue", title=cue.trigger, body=cue.lesson, tags=cue.tags, metadata=texts, language=cue.language
    )


def given_of(cue: Cue, changed: Mapping[str, Any] = {}) -> NewCue:
    """Returns a stored cue as its writer would give it, with some fields changed."""
    known = {name: getattr(cue, name) for name in EDITABLE}
    return NewCue(**{**known, **changed}, evidence=cue.evidence, origin=cue.origin)


async def embed_texts(
    provider: EmbeddingProvider | None, cues: Sequence[NewCue]
) -> tuple[str, Sequence[Matrix | None]]:
    """Returns a model and its vectors of each of these cues' texts; none if it gives none now."""
    none: tuple[str, Sequence[None]] = "", [None] * len(cues)
    if provider is None or not provider.enabled or not cues:
        return none
    # All vectors are of one model, even if the store moves to another meanwhile.
    provider = provider_of_model(provider, provider.model_id) or provider
    model = provider.model_id
    together = [cue_text(cue.trigger, cue.lesson) for cue in cues]
    try:
        rows = await _embed_each(provider, [*(cue.trigger for cue in cues), *together])
        adapted = await adapted_vectors(provider, together)
    except EmbeddingUnavailable:
        return none
    of_triggers, of_both = np.split(rows, 2)
    matrix = np.stack([of_triggers, of_both, np.zeros_like(of_both) if adapted is None else adapted], axis=1)
    return model, list(matrix)


async def _embed_each(provider: EmbeddingProvider, texts: Sequence[str]) -> Matrix:
    """Returns the vector of each text; equal texts are embedded once."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    rows = await provider.embed_documents(list(places))
    return rows[[places[text] for text in texts]]


def with_types(item: CheckedCue, types: ActionTypes) -> CheckedCue:
    """Returns a cue with its action types: a new one without any is classified by trigger and lesson."""
    cue, vectors = item.cue, item.vectors
    if item.is_known or cue.action_types:
        return item
    names = types.names(f"{cue.trigger}\n{cue.lesson}", None if vectors is None else vectors[TOGETHER])
    return item._replace(cue=replace(cue, action_types=names))


def language_of(workspace: Workspace, cue: NewCue) -> str:
    """Returns the language whose words a cue is indexed by."""
    return workspace.language if cue.language is None else configuration(cue.language)


async def cue_in(session: Session, workspace: Workspace, cue_id: UUID) -> Cue:
    """Returns one cue, of any state, in a session.

    Raises:
        NotFound: the workspace has no such cue.
    """
    cue = (await store.read(session, [cue_id])).get(cue_id)
    if cue is None:
        raise NotFound(f"there is no cue {cue_id} in workspace {workspace.name}")
    return cue
