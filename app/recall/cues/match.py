"""Finds the cues that may apply to a plan, and how likely each one does. Pure.

The log-odds of a pair are a sum of features: how alike they are by the model, and by its adapted form, which was
trained on plans and the lessons that apply to them; how alike their acts are; the words that they share by their
rarity; how much of the lesson the plan has already; and files and names that both have. None of them depends on the
other cues of the store: how alike the plan is to them was tried, and cost silence in stores of another field. The
weights are data (`weights.toml`), fitted to labelled pairs by `python -m benchmarks.activation --fit`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.foundation.models.protocols import Vector
from app.recall.cues.commands import spoken_form
from app.recall.cues.cue import ADAPTED, TOGETHER
from app.recall.cues.known import (
    CueIndex,
    Flags,
    Halves,
    Numbers,
    Places,
    RowWeights,
    file_name,
    fitted_weights,
    weights_of,
)
from app.recall.cues.rarity import words_of
from app.recall.cues.ways import naming, read_plan

FILES = 2.0
"""Added for a file that the plan names and the cue is about."""
TOUCHED = 1.0
"""Added for a cue of a session that touched a file that the plan names. Smaller, because a session touches many."""
LEAST_ASKED = 2.0
"""Rarity of what a lesson of a few words asks for, so that one word that both have is not all of it."""
SHORTLIST = 300
MOST_FILES = 100


class PlannedAct(NamedTuple):
    """A plan or action that somebody is about to carry out."""

    text: str
    moment: datetime
    """Cues that hold then may apply."""
    files: tuple[str, ...] = ()
    vector: Vector | None = None
    adapted: Vector | None = None
    """Its vector by the adapted model."""
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
    query = _query_of(index, plan)
    found = _by_words(index, plan, allowed if query is None else allowed & ~index.embedded, of_file, most)
    if query is not None:
        found += _by_meaning(index, plan, query, allowed & index.embedded, of_file, most)
    return sorted(found, key=lambda item: (-item.odds, item.cue_id))[:most]


def _query_of(index: CueIndex, plan: PlannedAct) -> Vector | None:
    """Returns the vectors of a plan and its acts as one row; None if they cannot be compared with the cues."""
    mean = index.types.mean
    if plan.vector is None or mean is None or plan.vector.shape != mean.shape:
        return None
    adapted = np.zeros_like(plan.vector) if plan.adapted is None else plan.adapted
    return np.concatenate([index.types.centre(plan.vector), adapted, index.types.profile(plan.vector[None])[0]])


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
    found, width = index.vectors[rows], index.vectors.shape[-1]
    weights = weights_of(found, adapted=plan.adapted is not None)
    parts = {"together": weights.together * (index.types.centre(found[:, TOGETHER]) @ query[:width])}
    parts["adapted"] = weights.adapted * (found[:, ADAPTED].astype(np.float32) @ query[width : 2 * width])
    parts["acts"] = weights.acts * (index.acts[rows] @ query[2 * width :])
    return _matches(index, plan, rows, parts, weights, of_file, most)


def _by_words(
    index: CueIndex, plan: PlannedAct, allowed: Flags, of_file: Mapping[int, float], most: int
) -> list[CueMatch]:
    rows = np.flatnonzero(allowed)
    if not len(rows):
        return []
    acts = set(index.types.names(plan.text, plan.vector))
    alike = np.array([not acts.isdisjoint(index.known[place].action_types) for place in rows.tolist()])
    weights = RowWeights(*(np.full(len(rows), weight) for weight in fitted_weights().alone))
    return _matches(index, plan, rows, {"acts": weights.acts * alike}, weights, of_file, most)


def _matches(
    index: CueIndex,
    plan: PlannedAct,
    rows: Places,
    known: Mapping[str, Numbers],
    weights: RowWeights,
    of_file: Mapping[int, float],
    most: int,
) -> list[CueMatch]:
    meant, cues = read_plan(plan.text), [index.known[place] for place in rows.tolist()]
    rarities = words_of(spoken_form(plan.text))
    shared = [sum(rare for word, rare in rarities.items() if word in cue.words) for cue in cues]
    covered = [_share(cue.said.asked, rarities) if both else 0.0 for cue, both in zip(cues, shared, strict=True)]
    parts = {
        **known,
        "words": weights.words * np.log1p(np.array(shared, dtype=np.float32)),
        "covered": weights.covered * np.array(covered, dtype=np.float32),
        "rules_out": weights.rules_out * bool(meant.ruled_out),
        "named": np.array([naming(cue.said, meant) for cue in cues]),
        "file": np.array([of_file.get(place, 0.0) for place in rows.tolist()]),
        "bias": weights.bias,
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


def _share(asked: Mapping[str, float], plan: Mapping[str, float]) -> float:
    """Returns the share of the words of a lesson, by their rarity, that a plan has."""
    return sum(rare for word, rare in asked.items() if word in plan) / max(LEAST_ASKED, sum(asked.values()))
