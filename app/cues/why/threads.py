"""Groups decisions on one subject, made in sessions near in time, into threads, and says how each ended. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from app.cues.cue import ACTIVE, DECISION, PROPOSED, RETIRED, Cue
from app.memories.memory import in_utc
from app.models.protocols import Matrix
from app.text.words import content_words

NEAR = timedelta(days=60)
"""Most time between two decisions of one thread: a later one on the same subject is a new look at it."""
ALIKE = 0.55
"""Likeness of two subjects from which they are one; unrelated subjects have 0.0 to 0.35 with MiniLM."""
AROUND = 0.4
"""Likeness from which another cue, such as a negative result, belongs to a decision's subject."""
WORDS = 0.4
"""Share of the common words in a likeness; the rest is the cosine of the subjects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Decisions on one subject, with what was tried around them."""

    subject: str
    decisions: tuple[Cue, ...]
    """The oldest first."""
    around: tuple[Cue, ...]
    """Attempts, corrections and findings on the subject, the oldest first."""
    sessions: tuple[str, ...]
    """The sessions of all these cues, in the order of their times."""
    begins: datetime
    ends: datetime
    outcome: str


def subject_of(cue: Cue) -> str:
    """Returns the subject of a cue: as a decision states it, or else the situation in which it applies."""
    return str(cue.details.get("subject") or cue.trigger)


def named_in(cue: Cue, stems: Sequence[str]) -> float:
    """Returns the greatest share that these words have in the words of one field, 0 to 1, of those that have them all.

    An alternative that mentions the subject among other things is not about it.
    """
    texts = [text for value in cue.details.values() for text in ([value] if isinstance(value, str) else value)]
    fields = [words for text in texts if (words := content_words(str(text)))]
    whole = [words for words in fields if all(any(word.startswith(stem) for word in words) for stem in stems)]
    return max((min(1.0, len(stems) / len(words)) for words in whole), default=0.0)


def moment_of(cue: Cue) -> datetime:
    """Returns the moment of the first turn that says so; without one, that from which the cue holds."""
    return min((in_utc(item.at) for item in cue.evidence if item.at is not None), default=in_utc(cue.valid_from))


def likeness(texts: Sequence[str], vectors: Matrix | None) -> Matrix:
    """Returns how alike every two texts are, 0 to 1, by vectors of unit length and common words, or by words alone."""
    words = [content_words(text) for text in texts]
    common = np.array([[_shared(one, other) for other in words] for one in words], dtype=np.float32)
    return common if vectors is None else (1 - WORDS) * np.clip(vectors @ vectors.T, 0, 1) + WORDS * common


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))


def threads(cues: Sequence[Cue], alike: Matrix) -> list[Thread]:
    """Returns the threads of these cues, in the order of their first ones; `alike` holds the likeness of every two.

    A cue that is no decision belongs to the thread of the decision that it is most like; one that is like none is in
    no thread.
    """
    decided = [at for at, cue in enumerate(cues) if cue.kind == DECISION]
    groups = together(decided, lambda one, other: _is_one(cues[one], cues[other], float(alike[one, other])))
    around: dict[int, list[Cue]] = {place: [] for place in range(len(groups))}
    for at, cue in enumerate(cues):
        if cue.kind != DECISION and decided:
            nearest = max(decided, key=lambda other: alike[at, other])
            if alike[at, nearest] >= AROUND:
                around[next(place for place, group in enumerate(groups) if nearest in group)].append(cue)
    return [_thread([cues[at] for at in group], around[place]) for place, group in enumerate(groups)]


def together(items: Iterable[int], joined: Callable[[int, int], bool]) -> list[list[int]]:
    """Returns the items in groups: two that are joined, directly or over others, are in one. The order stays."""
    groups: list[list[int]] = []
    place: dict[int, int] = {}
    for item in items:
        place[item] = len(place)
        linked = [group for group in groups if any(joined(item, other) for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([other for group in linked for other in group] + [item])
    return sorted(groups, key=lambda group: min(place[item] for item in group))


def _is_one(one: Cue, other: Cue, alike: float) -> bool:
    if one.superseded_by == other.cue_id or other.superseded_by == one.cue_id:
        return True
    return alike >= ALIKE and abs(moment_of(one) - moment_of(other)) <= NEAR


def _thread(decisions: Sequence[Cue], around: Sequence[Cue]) -> Thread:
    decisions = sorted(decisions, key=lambda cue: (moment_of(cue), cue.state == ACTIVE))
    around = sorted(around, key=moment_of)
    cues = sorted((*decisions, *around), key=moment_of)
    moments = [in_utc(item.at) for cue in cues for item in cue.evidence if item.at is not None]
    moments += [moment_of(cue) for cue in cues]
    return Thread(
        subject=subject_of(decisions[-1]),
        decisions=tuple(decisions),
        around=tuple(around),
        sessions=sessions_of(cues),
        begins=min(moments),
        ends=max(moments),
        outcome=outcome_of(decisions),
    )


def sessions_of(cues: Iterable[Cue]) -> tuple[str, ...]:
    """Returns the sessions that these cues were learnt in, each once, in the order of their times."""
    found = [item for cue in cues for item in cue.evidence if item.session]
    found.sort(key=lambda item: datetime.max.replace(tzinfo=UTC) if item.at is None else in_utc(item.at))
    return tuple(dict.fromkeys(item.session for item in found))


def outcome_of(decisions: Sequence[Cue]) -> str:
    """Returns a sentence that says which of the decisions holds, the oldest given first."""
    holding = [cue for cue in decisions if cue.state == ACTIVE]
    if not holding:
        states = {cue.state for cue in decisions}
        if states == {PROPOSED}:
            return "proposed, and accepted by nobody yet"
        return "none holds any more: retired" if RETIRED in states else "none holds any more: replaced"
    disputed = [cue for cue in holding if cue.disputed_by]
    if disputed:
        return f"disputed: {' / '.join(choice_of(cue) for cue in disputed)}"
    earlier = [choice_of(cue) for cue in decisions if cue.state != ACTIVE]
    was = f" (before: {'; '.join(earlier)})" if earlier else ""
    return f"{'; '.join(dict.fromkeys(map(choice_of, holding)))}{was}"


def choice_of(cue: Cue) -> str:
    """Returns the chosen alternative of a decision; where none is stated, its lesson."""
    return str(cue.details.get("choice") or cue.lesson).strip().rstrip(".")
