"""Finds the cues that may apply to a plan, and how likely each one does. Pure.

The log-odds of a pair are a sum of features: how alike they are by the model, and by its adapted form, which was
trained on plans and the lessons that apply to them; how alike their acts are; the words that they share by their
rarity; how much of the lesson the plan has already; and files and names that both have. None of them depends on the
other cues of the store: how alike the plan is to them was tried, and cost silence in stores of another field. The
weights are data (`weights.toml`), fitted to labelled pairs by `python -m benchmarks.activation --fit`.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    Numbers,
    PairWeights,
    Places,
    comparable,
    file_name,
    fitted_weights,
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
    meaning: Vector | None = field(repr=False)
    """The vector of its trigger and lesson together."""

    @property
    def odds(self) -> float:
        """The log-odds that the cue applies."""
        return sum(self.parts.values())


def find_matches(index: CueIndex, plan: PlannedAct, *, most: int) -> list[CueMatch]:
    """Returns the cues that may apply to a plan, the likeliest first.

    All cues with vectors are compared by these; the likeliest of them and the others also by words.
    """
    rows = np.flatnonzero(index.holding_at(plan.moment, past=plan.past, users=plan.users))
    of_file, query = _of_files(index, plan), _query_of(index, plan)
    by_meaning = index.embedded & (query is not None)
    near = _shortlist(index, rows, by_meaning, of_file, query)
    weights = _weights_of(index, near, by_meaning, adapted=plan.adapted is not None)
    meant, cues = read_plan(plan.text), [index.known[place] for place in near.tolist()]
    rarities = words_of(spoken_form(plan.text))
    shared = [sum(rare for word, rare in rarities.items() if word in cue.words) for cue in cues]
    covered = [_share(cue.said.asked, rarities) if both else 0.0 for cue, both in zip(cues, shared, strict=True)]
    features = {
        **_likeness(index, plan, near, by_meaning, query),
        "words": np.log1p(shared),
        "covered": np.array(covered),
        "rules_out": np.full(len(near), bool(meant.ruled_out)),
        "bias": np.ones(len(near)),
    }
    parts = {name: weights[name] * values for name, values in features.items()}
    parts["named"] = np.array([naming(cue.said, meant) for cue in cues])
    parts["file"] = np.array([of_file.get(place, 0.0) for place in near.tolist()])
    table = np.column_stack(list(parts.values()))
    found = [
        CueMatch(
            cue_id=cue.cue_id,
            parts={name: value for name, value in zip(parts, row, strict=True) if value},
            meaning=index.vectors[place, TOGETHER].astype(np.float32) if index.embedded[place] else None,
        )
        for cue, place, row in zip(cues, near.tolist(), table.tolist(), strict=True)
    ]
    return sorted(found, key=lambda item: (-item.odds, item.cue_id))[:most]


def _query_of(index: CueIndex, plan: PlannedAct) -> Vector | None:
    """Returns a plan as a row that cues are compared with; None if it has no vector of their kind."""
    mean = index.types.mean
    if plan.vector is None or mean is None or plan.vector.shape != mean.shape:
        return None
    adapted = np.zeros_like(plan.vector) if plan.adapted is None else plan.adapted
    row: Vector = comparable(index.types, plan.vector[None], adapted[None])[0]
    return row


def _shortlist(
    index: CueIndex, rows: Places, by_meaning: Flags, of_file: Iterable[int], query: Vector | None
) -> Places:
    """Returns the cues whose words are compared too: those of a file, those without vectors, the likeliest others."""
    if query is None or len(rows) <= SHORTLIST:
        return rows
    # `einsum` runs in this thread. BLAS is faster on free cores, and far slower on busy ones, where it waits for its
    # threads.
    width = index.vectors.shape[-1]
    fitted = fitted_weights().adapted if query[width : 2 * width].any() else fitted_weights().meaning
    weights = np.repeat([fitted.together, fitted.adapted, fitted.acts], [width, width, len(query) - 2 * width])
    scores = np.einsum("ij,j->i", index.compared, (query * weights).astype(np.float32))
    scores[~by_meaning] = np.inf
    scores[[*of_file]] = np.inf
    listed = SHORTLIST + int(np.isinf(scores[rows]).sum())
    near: Places = rows[np.argsort(-scores[rows])[:listed]]
    return near


def _likeness(
    index: CueIndex, plan: PlannedAct, near: Places, by_meaning: Flags, query: Vector | None
) -> Mapping[str, Numbers]:
    """Returns how alike a plan and some cues are: by their vectors, or else whether they have an act in common."""
    width, compared = index.vectors.shape[-1], by_meaning[near]
    parts = {"together": slice(width), "adapted": slice(width, 2 * width), "acts": slice(2 * width, None)}
    found: dict[str, Numbers] = dict.fromkeys(parts, np.zeros(len(near)))
    if query is not None:
        found = {name: (index.compared[near, part] @ query[part]) * compared for name, part in parts.items()}
    acts = set(index.types.names(plan.text, plan.vector))
    shared = [not acts.isdisjoint(index.known[place].action_types) for place in near.tolist()]
    return {**found, "acts": np.where(compared, found["acts"], shared)}


def _weights_of(index: CueIndex, near: Places, by_meaning: Flags, *, adapted: bool) -> Mapping[str, Numbers]:
    """Returns the weight of each feature for each of some cues."""
    is_adapted = index.vectors[near, ADAPTED].any(axis=1) & adapted
    return {
        name: np.where(by_meaning[near], np.where(is_adapted, with_it, without), alone)
        for name, with_it, without, alone in zip(PairWeights._fields, *fitted_weights(), strict=True)
    }


def _of_files(index: CueIndex, plan: PlannedAct) -> Mapping[int, float]:
    found = {index.places[cue_id]: TOUCHED for cue_id in plan.touched if cue_id in index.places}
    for path in plan.files[:MOST_FILES]:
        for place in index.of_files.get(file_name(path), ()):
            if any(_same_file(path, other) for other in index.known[place].files):
                found[place] = FILES
    return found


def _same_file(one: str, other: str) -> bool:
    first, second = ("/" + path.replace("\\", "/").lstrip("./").casefold() for path in (one, other))
    return first.endswith(second) or second.endswith(first)


def _share(asked: Mapping[str, float], plan: Mapping[str, float]) -> float:
    """Returns the share of the words of a lesson, by their rarity, that a plan has."""
    return sum(rare for word, rare in asked.items() if word in plan) / max(LEAST_ASKED, sum(asked.values()))
