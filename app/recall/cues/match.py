"""Finds the cues that may apply to a plan, and how likely each one does. Pure.

The log-odds of a pair are a sum of few features: the likeness of the plan with the lesson and with trigger and lesson,
the likeness of their acts, the words that they share by their rarity, and whether the plan only reads or tells. None of
them depends on the other cues of the store. The weights are data (`weights.toml`), fitted to labelled pairs by
`python -m benchmarks.activation --fit`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.foundation.models.protocols import Vector
from app.foundation.text.words import WORD
from app.recall.cues.cue import FORMS
from app.recall.cues.known import (
    CueIndex,
    Flags,
    Halves,
    Numbers,
    PairWeights,
    Places,
    file_name,
    fitted_weights,
    words_of,
)

FILES = 2.0
"""Added for a file that the plan names and the cue is about."""
TOUCHED = 1.0
"""Added for a cue of a session that touched a file that the plan names. Smaller, because a session touches many."""
SHORTLIST = 300
MOST_FILES = 100
ANNOUNCES = frozenset("i ll will d would m am going to now just then next first also let me us we plan want".split())  # noqa: SIM905 - words
READS = frozenset(
    """ask compare compute count describe explain find inspect list look measure read report review search see summarise
    summarize tell view watch""".split()  # noqa: SIM905 - as above
)
"""Verbs of plans that change nothing that a lesson could save: they read, count or tell."""
CHANGES = frozenset(
    """add apply change commit create delete deploy drop fix merge migrate move push remove rename replace restart run
    set update write""".split()  # noqa: SIM905 - as above
)
"""Verbs after "and" or "then" by which a plan that reads first goes on to change something."""
WRITES_ABOUT = frozenset("docstring documentation guide page paragraph post readme summary wiki".split())  # noqa: SIM905 - as above
SOON = 7


class PlannedAct(NamedTuple):
    """A plan or action that somebody is about to carry out."""

    text: str
    moment: datetime
    """Cues that hold then may apply."""
    files: tuple[str, ...] = ()
    vector: Vector | None = None
    touched: frozenset[UUID] = frozenset()
    """Cues of the sessions that touched the files that it names."""
    users: Sequence[str] | None = None
    """The users whose cues it may trigger, "" for nobody; None for all."""
    past: bool = False
    """True for a moment that is over: cues that were taken away since are among those that hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CueMatch:
    """A cue that may apply to a plan, with the parts of its log-odds."""

    cue_id: UUID
    parts: Mapping[str, float]
    vectors: Halves | None = field(repr=False)

    @property
    def odds(self) -> float:
        """The log-odds that the cue applies."""
        return sum(self.parts.values())


def find_matches(index: CueIndex, plan: PlannedAct, *, most: int) -> list[CueMatch]:
    """Returns the cues that may apply to a plan, the likeliest first."""
    allowed = index.holding_at(plan.moment, past=plan.past, users=plan.users)
    of_file = {place: added for place, added in _of_files(index, plan).items() if allowed[place]}
    query = None if plan.vector is None else index.types.combine(plan.vector)
    found = _by_words(index, plan, allowed if query is None else allowed & ~index.embedded, of_file, most)
    if query is not None:
        found += _by_meaning(index, plan, query, allowed & index.embedded, of_file, most)
    return sorted(found, key=lambda item: (-item.odds, item.cue_id))[:most]


def only_reads(plan: str) -> bool:
    """Returns True if a plan reads, counts or tells something, by its first verb, or writes about something."""
    words = WORD.findall(plan.lower()[:200])
    while words and words[0] in ANNOUNCES:
        words = words[1:]
    first = words[0] if words else ""
    if any(word in {"and", "then"} and CHANGES & set(words[at + 1 : at + 3]) for at, word in enumerate(words)):
        return False
    return first in READS or (first in {"write", "add"} and not WRITES_ABOUT.isdisjoint(words[1 : 1 + SOON]))


def _of_files(index: CueIndex, plan: PlannedAct) -> Mapping[int, float]:
    found = {index.places[cue_id]: TOUCHED for cue_id in plan.touched if cue_id in index.places}
    for path in plan.files[:MOST_FILES]:
        for place in index.of_files.get(file_name(path), ()):
            if any(_same_file(path, other) for other in index.known[place].files):
                found[place] = FILES
    return found


def _same_file(one: str, other: str) -> bool:
    first, second = (path.replace("\\", "/").lstrip("./").casefold() for path in (one, other))
    return f"/{first}".endswith(f"/{second}") or f"/{second}".endswith(f"/{first}")


def _by_meaning(
    index: CueIndex, plan: PlannedAct, query: Vector, allowed: Flags, of_file: Mapping[int, float], most: int
) -> list[CueMatch]:
    # `einsum` runs in this thread: 0.8 ms for 50,000 cues. BLAS takes 0.2 ms on free cores and 20 on busy ones, where
    # it waits for its threads.
    scores = np.einsum("ij,j->i", index.screen, query if index.axes is None else query @ index.axes)
    near = np.flatnonzero(allowed)
    if len(near) > SHORTLIST:
        near = near[np.argpartition(-scores[near], SHORTLIST - 1)[:SHORTLIST]]
    rows = np.union1d(near, [place for place in of_file if index.embedded[place]]).astype(np.intp)
    width = index.vectors.shape[-1]
    cosines = index.types.centre(index.vectors[rows]) @ query[:width]
    weights = fitted_weights().meaning
    parts = {form: weight * cosines[:, at] for at, (form, weight) in enumerate(zip(FORMS, weights.texts, strict=True))}
    parts["acts"] = index.acts[rows] @ query[width:]
    return _matches(index, plan, rows, parts, weights, of_file, most)


def _by_words(
    index: CueIndex, plan: PlannedAct, allowed: Flags, of_file: Mapping[int, float], most: int
) -> list[CueMatch]:
    rows = np.flatnonzero(allowed)
    if not len(rows):
        return []
    acts = set(index.types.names(plan.text, plan.vector))
    alike = np.array([not acts.isdisjoint(index.known[place].action_types) for place in rows.tolist()])
    weights = fitted_weights().alone
    return _matches(index, plan, rows, {"acts": weights.acts * alike}, weights, of_file, most)


def _matches(
    index: CueIndex,
    plan: PlannedAct,
    rows: Places,
    known: Mapping[str, Numbers],
    weights: PairWeights,
    of_file: Mapping[int, float],
    most: int,
) -> list[CueMatch]:
    rarities = words_of(plan.text)
    stems = [index.known[place].words for place in rows.tolist()]
    shared = [sum(rare for word, rare in rarities.items() if word in own) for own in stems]
    parts = {
        **known,
        "words": weights.words * np.log1p(np.array(shared, dtype=np.float32)),
        "reads": np.full(len(rows), weights.reads * only_reads(plan.text)),
        "file": np.array([of_file.get(place, 0.0) for place in rows.tolist()]),
        "bias": np.full(len(rows), weights.bias),
    }
    table = np.column_stack(list(parts.values()))
    return [
        CueMatch(
            cue_id=index.known[int(rows[at])].cue_id,
            parts={name: value for name, value in zip(parts, table[at].tolist(), strict=True) if value},
            vectors=index.vectors[rows[at]] if index.embedded[rows[at]] else None,
        )
        for at in np.argsort(-table.sum(axis=1), kind="stable")[:most].tolist()
    ]
