"""The verb that unites wishes of several sessions that are one, in other words."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from app.cues import store as cues
from app.cues.conflicts import contradict
from app.cues.cue import ACTIVE, CORRECTION, PREFERENCE, TOGETHER, Cue
from app.cues.extraction.lesson import rejected
from app.cues.index import index_of
from app.cues.mining import store
from app.cues.tending.proposals import MERGE, Proposal
from app.cues.tending.tend import propose
from app.intake.sessions import store as sessions
from app.memories.remember import Door
from app.text.words import content_words

COMPARED = 200
"""Cues that those of a session are compared with, the newest that name what it turns down."""
SAME_WISH = 0.65
"""Cosine of the texts of two cues from which they are one wish. Of 70 invented sessions the pairs above it are one, and
the nearest pair that is not lies at 0.52; wishes in other words may lie lower."""
CHOICES = frozenset({PREFERENCE, CORRECTION})
WISHES = content_words(
    "always never please prefer use want would like keep rather project everywhere immer nie bitte lieber nutze benutze"
    " verwende will möchte projekt überall всегда никогда пожалуйста лучше используй хочу проект везде"
)
"""Words of any wish: they say nothing of what is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class United:
    """The outcome for a session."""

    merged: tuple[UUID, ...] = ()
    """The preferences that were merged into others; each merge is a proposal that a person can undo."""


async def unite_choices(door: Door, session_id: str) -> United:
    """Merges the wishes of a session into earlier ones that prefer the same to the same, or that mean the same.

    The one with the most evidence gets that of all sessions, and more confidence. What a person parted is not merged
    again.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id, revive=False)
        own = [] if known is None else [cue for cue in await cues.of_source(session, known.source_id) if is_wish(cue)]
    if not own:
        return United()
    near = await _near(door, [cue.cue_id for cue in own])
    async with door.database.session(door.workspace, transaction=False) as session:
        stems = sorted({stem for cue in own for stem in rejects(cue)})
        ids = {*await store.choices(session, stems, COMPARED), *(other for pair in near for other in pair)}
        others = await cues.read(session, sorted(ids))
    found = [_merge(cue, [other for other in others.values() if _is_one(cue, other, near)]) for cue in own]
    new = await propose(door, [item for item in found if item is not None])
    return United(merged=tuple(cue_id for item in new for cue_id in item.cue_ids))


async def _near(door: Door, ids: Sequence[UUID]) -> frozenset[tuple[UUID, UUID]]:
    """Returns the pairs of these cues and others whose texts mean the same; none without vectors."""
    if door.provider is None or not door.provider.enabled:
        return frozenset()
    index = await index_of(door.database, door.provider, door.workspace)
    places = [index.places[cue_id] for cue_id in ids if cue_id in index.places and index.embedded[index.places[cue_id]]]
    vectors = index.vectors[: len(index.known), TOGETHER].astype(np.float32)
    likeness = vectors[places] @ vectors.T
    return frozenset(
        (index.known[places[row]].cue_id, index.known[other].cue_id)
        for row, other in np.argwhere(likeness >= SAME_WISH).tolist()
        if other != places[row] and index.known[other].user == index.known[places[row]].user
    )


def _is_one(cue: Cue, other: Cue, near: frozenset[tuple[UUID, UUID]]) -> bool:
    """Tells whether two cues are one choice, or one wish of two sessions of which one names no alternative. Pure."""
    if rejects(cue) and rejects(other):
        return is_one_choice(cue, other)
    elsewhere = {proof.session for proof in cue.evidence} != {proof.session for proof in other.evidence}
    same_trust = is_wish(other) and cue.trust == other.trust
    return (cue.cue_id, other.cue_id) in near and elsewhere and same_trust and not contradict(cue, other)


def is_wish(cue: Cue) -> bool:
    """Returns True for an active preference or correction that is not suspect. Pure."""
    return cue.kind in CHOICES and cue.state == ACTIVE and not cue.suspect


def rejects(cue: Cue) -> frozenset[str]:
    """Returns the words of what an active preference or correction turns down; none if it states nothing. Pure."""
    if not is_wish(cue):
        return frozenset()
    return content_words(str(cue.details.get("preferred_over") or rejected(cue.lesson)))


def is_one_choice(one: Cue, other: Cue) -> bool:
    """Tells whether two cues, one of them a preference, choose the same thing over the same other thing. Pure."""
    if one.cue_id == other.cue_id or PREFERENCE not in {one.kind, other.kind} or one.trust != other.trust:
        return False
    against = [rejects(one), rejects(other)]
    common = against[0] & against[1]
    chosen = [content_words(cue.lesson) - words - WISHES for cue, words in zip((one, other), against, strict=True)]
    same = bool(common) and common in against and bool(chosen[0] & chosen[1])
    return same and not contradict(one, other)


def _merge(cue: Cue, same: Sequence[Cue]) -> Proposal | None:
    if not same:
        return None
    target, *rest = sorted([cue, *same], key=lambda item: (-len(item.evidence), item.created_at, item.cue_id))
    return Proposal(
        change=MERGE,
        cue_ids=tuple(item.cue_id for item in rest),
        target_id=target.cue_id,
        reason=f"the same wish in several sessions: “{target.lesson}”",
    )
