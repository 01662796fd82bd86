"""The verb that unites preferences of several sessions that are one choice, in other words."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.cues import store as cues
from app.cues.conflicts import contradict
from app.cues.cue import ACTIVE, CORRECTION, PREFERENCE, Cue
from app.cues.extraction.lesson import rejected
from app.cues.mining import store
from app.cues.tending.proposals import MERGE, Proposal
from app.cues.tending.tend import propose
from app.intake.sessions import store as sessions
from app.memories.remember import Door
from app.text.words import content_words

COMPARED = 200
"""Cues that those of a session are compared with, the newest that name what it turns down."""
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
    """Merges the preferences of a session into earlier ones that prefer the same thing to the same other thing.

    The one with the most evidence gets that of all sessions, and more confidence. What a person parted is not merged
    again.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id, revive=False)
        own = [] if known is None else [cue for cue in await cues.of_source(session, known.source_id) if rejects(cue)]
        stems = sorted({stem for cue in own for stem in rejects(cue)})
        others = await cues.read(session, await store.choices(session, stems, COMPARED)) if own else {}
    found = [_merge(cue, [other for other in others.values() if is_one_choice(cue, other)]) for cue in own]
    new = await propose(door, [item for item in found if item is not None])
    return United(merged=tuple(cue_id for item in new for cue_id in item.cue_ids))


def rejects(cue: Cue) -> frozenset[str]:
    """Returns the words of what an active preference or correction turns down; none if it states nothing. Pure."""
    if cue.kind not in CHOICES or cue.state != ACTIVE or cue.suspect:
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
        reason=f"the same choice in several sessions: “{target.lesson}”",
    )
