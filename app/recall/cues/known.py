"""Holds the cues of a workspace as columns, ready to be matched. Pure."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.foundation.models.protocols import Matrix
from app.foundation.text.data import read_toml
from app.recall.cues.actions import ActionTypes
from app.recall.cues.cue import ACTIVE, ADAPTED, TOGETHER, VECTORS_OF_CUE
from app.recall.cues.rarity import words_of
from app.recall.cues.ways import LessonWords, read_lesson

Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.floating[Any]]
Halves: TypeAlias = NDArray[np.float16]
Places: TypeAlias = NDArray[np.integer[Any]]
SCREENED_FROM, SCREENED = 8_000, 96
"""A store of more cues is screened in the first principal components, at 2 ms for 50,000 cues."""
SAMPLED = 8_000
ROWS_AT_ONCE = 2_000
COMPARED_AT_ONCE = 64
"""Cues whose nearest others are looked for at once: 13 MB of cosines with 50,000."""
_BYTES_OF_TEXT = 4_200
"""Bytes of a row beside its vectors: two texts, the objects that hold them, their words, and what the lesson says:
2,200 of them for texts of 195 characters."""


@dataclass(frozen=True, kw_only=True)
class IndexedCue:
    """The parts of a stored cue that are matched, beside its vectors."""

    cue_id: UUID
    trigger: str
    lesson: str
    state: str
    held: bool
    """True if it holds, or has held, from `begins` to `ends`: what a person took away held until then."""
    action_types: Sequence[str]
    files: Sequence[str]
    begins: float
    ends: float
    user: str = ""
    """The user whom it belongs to; "" for nobody."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of its words."""
        return frozenset(map(sys.intern, words_of(f"{self.trigger}\n{self.lesson}")))

    @cached_property
    def said(self) -> LessonWords:
        """The words by which its lesson asks for things and turns them down."""
        return read_lesson(self.lesson)


class PairWeights(NamedTuple):
    """The log-odds that a cue applies to a plan: a constant, and a weight for each feature of the pair."""

    bias: float
    acts: float
    """Likeness of their acts; for a cue without vectors, 1 if they have an action type in common."""
    words: float
    """The logarithm of 1 + the rarities of the words that they share."""
    together: float = 0.0
    """Cosine of the plan and the cue's trigger and lesson, without what all texts have in common."""
    adapted: float = 0.0
    """Cosine of the plan and the cue's trigger and lesson by the adapted model."""
    covered: float = 0.0
    """The share of the words of what the lesson asks for, by their rarity, that the plan has."""
    rules_out: float = 0.0
    """1 for a plan that rules something out itself."""


class FittedWeights(NamedTuple):
    """The weights of the matcher: with the adapted model, without it, and for cues without vectors.

    Those without it are fitted to the vectors of the default model; other models are compared by them too.
    """

    adapted: PairWeights
    meaning: PairWeights
    alone: PairWeights


@cache
def fitted_weights() -> FittedWeights:
    """Returns the fitted weights."""
    stored = read_toml("app.recall.cues", "weights.toml", dict[str, dict[str, float]])
    return FittedWeights(**{name: PairWeights(**values) for name, values in stored.items()})


class CueBatch(NamedTuple):
    """Cues as they are read from the store."""

    items: Sequence[IndexedCue]
    embedded: Flags
    vectors: Halves
    """The vectors of each cue by their places, shape (cues, VECTORS_OF_CUE, dimension); zeros if it has none."""


def batch_of(items: Sequence[IndexedCue], vectors: Sequence[bytes | None], dimension: int) -> CueBatch:
    """Returns cues and their stored vectors as a batch; those of another dimension are left out."""
    for item in items:
        item.words  # noqa: B018 - they are found here, so that no plan waits for them
        if len(items) <= SCREENED_FROM:
            item.said  # noqa: B018 - 0.4 ms each; of a larger store it is found for the cues of a shortlist
    size = 2 * VECTORS_OF_CUE * dimension
    fit = [rows is not None and len(rows) == size for rows in vectors]
    blank = bytes(size)
    joined = b"".join(rows if ok and rows is not None else blank for rows, ok in zip(vectors, fit, strict=True))
    matrix = np.frombuffer(joined, dtype="<f2").reshape(len(items), VECTORS_OF_CUE, dimension)
    return CueBatch(items, np.array(fit, dtype=bool), matrix)


@dataclass(frozen=True, kw_only=True)
class CueIndex:
    """The cues of a store, ready to be matched. It stays as it is while the next one is made."""

    known: Sequence[IndexedCue]
    types: ActionTypes
    axes: Matrix | None
    embedded: Flags
    vectors: Halves
    acts: Matrix
    screen: Matrix
    """One row for each cue, or its principal components: its weighted vectors and its weighted acts."""

    @cached_property
    def places(self) -> Mapping[UUID, int]:
        """The row of each cue."""
        return {item.cue_id: place for place, item in enumerate(self.known)}

    @property
    def bytes(self) -> int:
        """Memory that the index takes, about."""
        return _BYTES_OF_TEXT * len(self.known) + self.vectors.nbytes + self.acts.nbytes + self.screen.nbytes

    @cached_property
    def _validity(self) -> tuple[Flags, Flags, Numbers, Numbers]:
        """The rows that are active, and those that hold or have held; from when and until when they hold."""
        active = np.array([item.state == ACTIVE for item in self.known], dtype=bool)
        held = np.array([item.held for item in self.known], dtype=bool)
        begins, ends = (np.array([getattr(item, name) for item in self.known], float) for name in ("begins", "ends"))
        return active, held, begins, ends

    def holding_at(self, moment: datetime, *, past: bool, users: Sequence[str] | None = None) -> Flags:
        """Returns which rows hold at a moment; with `past` also those of cues that were taken away since.

        `users` are those whose cues count, "" for nobody; None for all.
        """
        active, held, begins, ends = self._validity
        now = moment.timestamp()
        found: Flags = (held if past else active) & (begins <= now) & (ends > now)
        if users is not None and not (self._users <= {*users}):
            found = found & np.array([item.user in users for item in self.known], dtype=bool)
        return found

    @cached_property
    def _users(self) -> frozenset[str]:
        return frozenset(item.user for item in self.known)

    def state_of(self, cue_id: UUID) -> str:
        """Returns the state of a cue."""
        return self.known[self.places[cue_id]].state

    def nearest(
        self, ids: Sequence[UUID], *, form: int, least: float, most: int, moment: datetime
    ) -> list[tuple[UUID, UUID]]:
        """Returns pairs of one of these cues and another of its user, the nearest by their vectors in one place.

        Both hold at the moment, or will hold later.
        """
        active, _, _, ends = self._validity
        holds = active & (ends > moment.timestamp()) & self.embedded
        places = [place for cue_id in dict.fromkeys(ids) if holds[place := self.places[cue_id]]]
        others = np.flatnonzero(holds)
        texts = self.vectors[others, form].astype(np.float32)
        found = list[tuple[UUID, UUID]]()
        for first in range(0, len(places), COMPARED_AT_ONCE):
            part = places[first : first + COMPARED_AT_ONCE]
            for place, likeness in zip(part, self.vectors[part, form].astype(np.float32) @ texts.T, strict=True):
                one, near = self.known[place], np.flatnonzero(likeness >= least)
                order = others[near[np.argsort(-likeness[near], kind="stable")]].tolist()
                same = [at for at in order if at != place and self.known[at].user == one.user]
                found += [(one.cue_id, self.known[at].cue_id) for at in same[:most]]
        return found

    @cached_property
    def of_files(self) -> Mapping[str, Sequence[int]]:
        """The rows of the cues about each file, by the last part of its path."""
        found: dict[str, list[int]] = {}
        for place, item in enumerate(self.known):
            for path in item.files:
                found.setdefault(file_name(path), []).append(place)
        return found

    @cached_property
    def lacking(self) -> int:
        """Number of active cues without vectors."""
        return sum(self.known[place].state == ACTIVE for place in np.flatnonzero(~self.embedded).tolist())


def file_name(path: str) -> str:
    """Returns the last part of a path, in small letters."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()


def index_cues(batch: CueBatch, types: ActionTypes) -> CueIndex:
    """Returns the index of these cues."""
    axes = _axes(batch, types) if len(batch.items) > SCREENED_FROM else None
    acts, screen = _columns(batch, types, axes)
    return CueIndex(
        known=tuple(batch.items),
        types=types,
        axes=axes,
        embedded=batch.embedded,
        vectors=batch.vectors,
        acts=acts,
        screen=screen,
    )


def renew(index: CueIndex, batch: CueBatch, types: ActionTypes) -> CueIndex:
    """Returns the index with changed and new cues, which follow the others."""
    changed = {item.cue_id for item in batch.items}
    kept = np.array([place for place, item in enumerate(index.known) if item.cue_id not in changed], dtype=np.intp)
    whole = CueBatch(
        [*(index.known[place] for place in kept.tolist()), *batch.items],
        np.concatenate([index.embedded[kept], batch.embedded]),
        np.concatenate([index.vectors[kept], batch.vectors]),
    )
    if not types.are_same(index.types) or (index.axes is None) != (len(whole.items) <= SCREENED_FROM):
        return index_cues(whole, types)
    acts, screen = _columns(batch, types, index.axes)
    return replace(
        index,
        known=tuple(whole.items),
        embedded=whole.embedded,
        vectors=whole.vectors,
        acts=np.concatenate([index.acts[kept], acts]),
        screen=np.concatenate([index.screen[kept], screen]),
    )


def _columns(batch: CueBatch, types: ActionTypes, axes: Matrix | None) -> tuple[Matrix, Matrix]:
    parts = [
        _combine(batch.vectors[first : first + ROWS_AT_ONCE], types, axes)
        for first in range(0, max(1, len(batch.items)), ROWS_AT_ONCE)
    ]
    acts, screen = (np.concatenate(columns) * batch.embedded[:, None] for columns in zip(*parts, strict=True))
    return acts, screen


class RowWeights(NamedTuple):
    """The weights of each of some cues, with the fields of PairWeights."""

    bias: Numbers
    acts: Numbers
    words: Numbers
    together: Numbers
    adapted: Numbers
    covered: Numbers
    rules_out: Numbers


def weights_of(vectors: Halves, *, adapted: bool = True) -> RowWeights:
    """Returns the weights of cues with these vectors; without `adapted` those for a plan without an adapted vector."""
    is_adapted = vectors[:, ADAPTED].any(axis=1) & adapted
    both = zip(fitted_weights().adapted, fitted_weights().meaning, strict=True)
    return RowWeights(*(np.where(is_adapted, with_it, without) for with_it, without in both))


def _combine(vectors: Halves, types: ActionTypes, axes: Matrix | None) -> tuple[Matrix, Matrix]:
    """Returns the acts of cues, and their rows of the screen."""
    if types.mean is None:
        nothing = np.zeros((len(vectors), 0), dtype=np.float32)
        return nothing, nothing
    weights = weights_of(vectors)
    acts = types.profile(vectors[:, TOGETHER])
    centred, adapted = types.centre(vectors[:, TOGETHER]), vectors[:, ADAPTED]
    parts = [weights.together[:, None] * centred, weights.adapted[:, None] * adapted, weights.acts[:, None] * acts]
    rows = np.hstack(parts).astype(np.float32)
    return acts.astype(np.float32), rows if axes is None else rows @ axes


def _axes(batch: CueBatch, types: ActionTypes) -> Matrix | None:
    found = np.flatnonzero(batch.embedded)
    if types.mean is None or not len(found):
        return None
    found = found[np.linspace(0, len(found) - 1, min(len(found), SAMPLED)).astype(int)]
    _, rows = _combine(batch.vectors[found], types, None)
    _, components = np.linalg.eigh(rows.T @ rows)
    return np.ascontiguousarray(components[:, ::-1][:, :SCREENED]).astype(np.float32)
