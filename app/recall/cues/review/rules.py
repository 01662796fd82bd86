"""Finds what should change in a store of cues: each change is a proposal with its reason. Pure."""

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from app.foundation.text.data import read_toml
from app.foundation.text.words import content_words, measures, same_figures
from app.recall.cues.cue import (
    CORRECTION,
    DECISION,
    LIST_LIMIT,
    PERSON,
    PREFERENCE,
    PROPOSED,
    STARTER,
    TEXT_LIMIT,
    TRUSTS,
    Cue,
    NewCue,
    choice_of,
    moment_of,
    subject_of,
)
from app.recall.cues.render import contradiction

MERGE, BROADEN, GRADUATE, RETIRE, STALE, NOTE = "merge", "broaden", "graduate", "retire", "stale", "note"
REPEATED, CANDIDATE, HARMFUL = "procedure", "candidate", "harmful"
"""The kinds of proposals: near-duplicates become one; corrections of one domain become a broader cue; a cue becomes a
convention; one is retired that never fires; newer turns contradict one; a cue touches a note or another document; the
same acts in several sessions become a procedure; a turn may hold a lesson; a memory of any kind did harm to later
runs."""
MODIFIES, CONTRADICTS, EXTENDS = "modifies", "contradicts", "extends"
SAME = 0.9
"""Cosine of two cues from which they are near-duplicates, if their numbers and negations are the same."""
DISPLACED = 0.7
"""Cosine from which an own cue takes the place of one of the first library."""
BROAD_SESSIONS, FAMILY_SESSIONS = 3, 2
"""Sessions from which on like corrections become a broader cue, and those of one family of mistakes: its words say what
they have in common, so that two are enough."""
BROAD_ALIKE = 0.75
"""Cosine that joins corrections to a broader cue. Of 163 corrections of one project it proposes 5 broader cues, of each
of which most corrections teach one labelled lesson (pairs that do: 0.60). All corrections of an action type together
were 18, most of them of nothing in common (4, 0.08); with 0.7 there are 6, of which 4 (0.33)."""
BROADENED = frozenset({CORRECTION, PREFERENCE})
WORDS = re.compile(r"[\W_]+")
FAMILY_WORDS, FAMILY_STEM = 2, 4
"""Words of a family that a correction of it has, and letters from which on a word's beginning counts."""
MOST_LESSONS = 5
GRADUATE_FIRED, GRADUATE_HEEDED = 5, 0.8
"""Times that a cue has fired and share of its outcomes that were heeded, from which it is a convention."""
IDLE_SESSIONS = 20
SAME_SUBJECT = 0.6


class Idle(NamedTuple):
    """Events since a cue fired last, or was stored."""

    sessions: int
    changed: tuple[str, ...]


class Note(NamedTuple):
    """A note, or a document such as a decision record, that cues may touch."""

    memory_id: UUID
    title: str
    body: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change that is proposed for some cues."""

    change: str
    cue_ids: tuple[UUID, ...]
    reason: str
    target_id: UUID | None = None
    """The cue that the others become, the newer one, or the note."""
    relation: str = ""
    """For a note: modifies, contradicts or extends."""
    cue: NewCue | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """The same for the same change, so that what a person declined or undid is not proposed again."""
        if self.change in {REPEATED, CANDIDATE}:
            return str(self.target_id)
        if self.cue is not None:
            return " ".join(self.cue.action_types)
        return " ".join([*sorted(map(str, self.cue_ids)), str(self.target_id or "")])


class ReviewedStore(NamedTuple):
    """The active cues of a store, with what the rules look at beside them."""

    cues: Mapping[UUID, Cue]
    pairs: Sequence[tuple[Cue, Cue, float]]
    """Two that their link calls similar, and how similar they are."""
    notes: Sequence[tuple[Cue, Note]]
    """Cues and notes that their links call similar."""
    idle: Mapping[UUID, Idle]


def proposals(store: ReviewedStore) -> list[Proposal]:
    """Returns all changes that the rules propose for a store."""
    return [*merges(store), *broader(store), *graduates(store), *idle(store), *stale(store), *notes(store)]


def merges(store: ReviewedStore) -> Iterator[Proposal]:
    """Yields near-duplicates, each group with the cue that the others become: the one with the most evidence.

    An own cue takes the place of one of the first library that is near it.
    """

    def precedence(cue: Cue) -> tuple[bool, bool, int, int, datetime]:
        return STARTER not in cue.tags, cue.trust == PERSON, len(cue.evidence), cue.heeded, cue.updated_at

    same = [(one.cue_id, other.cue_id) for one, other, near in store.pairs if _same(one, other, near)]
    for group in together(same):
        target, *others = sorted((store.cues[cue_id] for cue_id in group), key=precedence, reverse=True)
        ours = any(STARTER in cue.tags for cue in others) and STARTER not in target.tags
        reason = "takes the place of one of the first library" if ours else "say the same"
        yield Proposal(
            change=MERGE,
            cue_ids=tuple(cue.cue_id for cue in others),
            target_id=target.cue_id,
            reason=f"{len(group)} cues {reason}: “{target.lesson}”",
        )


def _same(one: Cue, other: Cue, similarity: float) -> bool:
    if (STARTER in one.tags) != (STARTER in other.tags):
        return similarity >= DISPLACED
    texts = [f"{cue.trigger}\n{cue.lesson}" for cue in (one, other)]
    return similarity >= SAME and one.kind == other.kind and one.scope == other.scope and same_figures(*texts)


def broader(store: ReviewedStore) -> Iterator[Proposal]:
    """Yields a broader cue for the corrections from several sessions that are alike, or of one family of mistakes."""
    corrections = [cue for cue in store.cues.values() if cue.kind in BROADENED and cue.evidence]
    corrections.sort(key=lambda cue: (moment_of(cue), cue.cue_id))
    alike = [(BROAD_SESSIONS, *found) for found in _alike(store, corrections)]
    of_families = [(FAMILY_SESSIONS, *found) for found in _of_families(corrections)]
    for least, key, name, cues in [*alike, *of_families]:
        sessions = {item.session for cue in cues for item in cue.evidence if item.session}
        if len(sessions) >= least:
            yield Proposal(
                change=BROADEN,
                cue_ids=tuple(cue.cue_id for cue in cues),
                reason=f"{len(cues)} corrections of {name} from {len(sessions)} sessions",
                cue=_broad(key, name, cues),
            )


def _alike(store: ReviewedStore, corrections: Sequence[Cue]) -> Iterator[tuple[str, str, list[Cue]]]:
    """Yields groups of corrections with near vectors, each with the action type that most of them have."""
    typed = {cue.cue_id: cue for cue in corrections if cue.kind == CORRECTION and cue.action_types}
    pairs = [(one.cue_id, other.cue_id) for one, other, near in store.pairs if near >= BROAD_ALIKE]
    for group in together(pair for pair in pairs if {*pair} <= typed.keys()):
        cues = [cue for cue_id, cue in typed.items() if cue_id in group]
        acts = Counter(cue.action_types[0] for cue in cues)
        action_type = max(acts, key=lambda name: (acts[name], name))
        yield action_type, action_type.replace(":", " ").replace("-", " "), cues


def _of_families(corrections: Sequence[Cue]) -> Iterator[tuple[str, str, list[Cue]]]:
    said = {cue.cue_id: WORDS.split(f"{cue.trigger}\n{cue.lesson}".lower()) for cue in corrections}
    for key, family in families().items():
        cues = [cue for cue in corrections if _is_of_family(said[cue.cue_id], family.words)]
        if cues:
            yield key, family.name, cues


def _is_of_family(said: Sequence[str], words: Sequence[str]) -> bool:
    """Tells if a text has FAMILY_WORDS words of a family; of a long word, its beginning is enough."""
    beginnings = {word: word if len(word) >= FAMILY_STEM else f"{word} " for word in words}
    found = (word for word, begins in beginnings.items() if any(f"{own} ".startswith(begins) for own in said))
    return len({word[:FAMILY_STEM] for word in found}) >= FAMILY_WORDS


class MistakeFamily(Struct, frozen=True):
    """A family of mistakes."""

    name: str
    acts: str
    """The trigger of its broader cue: acts at which such a mistake is near."""
    words: tuple[str, ...]


@functools.cache
def families() -> Mapping[str, MistakeFamily]:
    """Reads the families of mistakes, by their keys."""
    return read_toml("app.recall.cues.review", "families.toml", dict[str, MistakeFamily])


def _broad(key: str, name: str, cues: Sequence[Cue]) -> NewCue:
    lessons = list(
        dict.fromkeys(
            cue.lesson.strip() for cue in sorted(cues, key=lambda cue: (cue.consequence, moment_of(cue)), reverse=True)
        )
    )
    told = " ".join(f"({number}) {text}" for number, text in enumerate(lessons[:MOST_LESSONS], 1))
    return NewCue(
        kind=CORRECTION,
        trigger=families()[key].acts if key in families() else f"any work on {name}",
        lesson=f"It was corrected repeatedly; check each: {told}"[:TEXT_LIMIT],
        confidence=1 - math.prod(1 - cue.confidence for cue in cues),
        consequence=max(cue.consequence for cue in cues),
        evidence=tuple(cue.evidence[0] for cue in cues)[:LIST_LIMIT],
        trust=max((cue.trust for cue in cues), key=TRUSTS.index),
        origin=PROPOSED,
        action_types=(key,),
    )


def graduates(store: ReviewedStore) -> Iterator[Proposal]:
    """Yields the cues that fire often and are heeded."""
    for cue in store.cues.values():
        settled = cue.heeded + cue.ignored
        if cue.fired >= GRADUATE_FIRED and settled and cue.heeded / settled >= GRADUATE_HEEDED:
            yield Proposal(
                change=GRADUATE,
                cue_ids=(cue.cue_id,),
                reason=f"fired {cue.fired} times, heeded {cue.heeded} of {settled}: write it down as a convention",
            )


def idle(store: ReviewedStore) -> Iterator[Proposal]:
    """Yields the cues that have not fired for many sessions while their files changed."""
    for cue_id, since in store.idle.items():
        if since.sessions >= IDLE_SESSIONS and since.changed:
            files = ", ".join(since.changed[:3])
            yield Proposal(
                change=RETIRE,
                cue_ids=(cue_id,),
                reason=f"has not fired in {since.sessions} sessions, and {files} changed meanwhile",
            )


def stale(store: ReviewedStore) -> Iterator[Proposal]:
    """Yields the cues that a newer one contradicts."""
    for one, other, _ in store.pairs:
        older, newer = sorted((one, other), key=moment_of)
        if (reason := _against(older, newer)) and moment_of(newer) > moment_of(older):
            yield Proposal(change=STALE, cue_ids=(older.cue_id,), target_id=newer.cue_id, reason=reason)


def _against(older: Cue, newer: Cue) -> str:
    rejected = contradiction(newer, f"{choice_of(older)} {older.lesson}")
    if rejected is not None and contradiction(older, f"{choice_of(older)} {older.lesson}") is None:
        return f"a newer cue rejects “{rejected.rejected}”: “{newer.lesson}”"
    subjects = [content_words(subject_of(cue)) for cue in (older, newer)]
    is_one = len(subjects[0] & subjects[1]) >= SAME_SUBJECT * max(1, min(map(len, subjects)))
    if (
        older.kind == newer.kind == DECISION
        and is_one
        and not content_words(choice_of(older)) & content_words(choice_of(newer))
    ):
        return f"the decision was taken anew: “{choice_of(newer)}” in place of “{choice_of(older)}”"
    return ""


def notes(store: ReviewedStore) -> Iterator[Proposal]:
    """Yields the notes and documents that a newer cue touches, with how it does."""
    for cue, note in store.notes:
        if moment_of(cue) > note.at:
            relation = _touches(cue, note)
            yield Proposal(
                change=NOTE,
                cue_ids=(cue.cue_id,),
                target_id=note.memory_id,
                relation=relation,
                reason=f"“{cue.lesson}” {relation} “{note.title}”",
            )


def _touches(cue: Cue, note: Note) -> str:
    text = f"{note.title}\n{note.body}"
    if contradiction(cue, text) is not None:
        return CONTRADICTS
    told, known = measures(cue.lesson), measures(text)
    changed = any(unit == other and value != number for value, unit in told for number, other in known if unit)
    return MODIFIES if changed or cue.kind == CORRECTION else EXTENDS


def together(pairs: Iterable[tuple[UUID, UUID]]) -> list[list[UUID]]:
    """Returns the members of pairs in groups: two that are paired, directly or over others, are in one."""
    groups = dict[UUID, list[UUID]]()
    for one, other in pairs:
        first, second = groups.setdefault(one, [one]), groups.setdefault(other, [other])
        if first is not second:
            first += second
            groups |= dict.fromkeys(second, first)
    return list({id(group): group for group in groups.values()}.values())
