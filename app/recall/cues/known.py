"""Holds the cues of a workspace as columns, ready to be matched. Pure."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_MOST_READ_AHEAD = 8_000
"""Cues up to which a store's lessons are read before its first plan. One takes 0.4 ms of a core, so that 8,000 take
3 s; of a larger store each is read when it is on a shortlist."""
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
        return read_lesson(self.lesson, self.trigger)


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


@dataclass(frozen=True, kw_only=True)
class CueIndex:
    """The cues of a store, ready to be matched. It stays as it is while the next one is made."""

    known: Sequence[IndexedCue]
    types: ActionTypes
    embedded: Flags
    vectors: Halves
    """The vectors of each cue by their places, shape (cues, VECTORS_OF_CUE, dimension); zeros if it has none."""
    compared: Matrix
    """One row for each cue, as `comparable` makes it."""

    @cached_property
    def places(self) -> Mapping[UUID, int]:
        """The row of each cue."""
        return {item.cue_id: place for place, item in enumerate(self.known)}

    @property
    def bytes(self) -> int:
        """Memory that the index takes, about."""
        return _BYTES_OF_TEXT * len(self.known) + self.vectors.nbytes + self.compared.nbytes

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
        others = np.flatnonzero(holds)
        texts = self.vectors[others, form].astype(np.float32)
        found = list[tuple[UUID, UUID]]()
        for cue_id in dict.fromkeys(ids):
            place = self.places[cue_id]
            likeness = texts @ self.vectors[place, form].astype(np.float32)
            fits = np.flatnonzero(likeness >= least)
            near = others[fits[np.argsort(-likeness[fits], kind="stable")]].tolist()
            same = [at for at in near if at != place and self.known[at].user == self.known[place].user]
            found += [(cue_id, self.known[at].cue_id) for at in same[: most * bool(holds[place])]]
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
        return int(np.count_nonzero(self._validity[0] & ~self.embedded))


def file_name(path: str) -> str:
    """Returns the last part of a path, in small letters."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()


def comparable(types: ActionTypes, together: NDArray[Any], adapted: NDArray[Any]) -> Matrix:
    """Returns rows whose parts are compared by their products.

    They are texts without what all texts have in common, their adapted vectors, and their acts.
    """
    if types.mean is None:
        return np.zeros((len(together), 0), dtype=np.float32)
    return np.hstack([types.centre(together), adapted.astype(np.float32), types.profile(together)])


def index_cues(
    items: Sequence[IndexedCue], vectors: Sequence[bytes | None], dimension: int, types: ActionTypes
) -> CueIndex:
    """Returns the index of these cues and their stored vectors; those of another dimension are left out."""
    for item in items:
        item.words  # noqa: B018 - they are found here, so that no plan waits for them
        if len(items) <= _MOST_READ_AHEAD:
            item.said  # noqa: B018 - as the words
    size = 2 * VECTORS_OF_CUE * dimension
    fit = [own if own is not None and len(own) == size else None for own in vectors]
    joined = b"".join(bytes(size) if own is None else own for own in fit)
    matrix = np.frombuffer(joined, dtype="<f2").reshape(len(items), VECTORS_OF_CUE, dimension)
    return CueIndex(
        known=tuple(items),
        types=types,
        embedded=np.array([own is not None for own in fit], dtype=bool),
        vectors=matrix,
        compared=comparable(types, matrix[:, TOGETHER], matrix[:, ADAPTED]),
    )


def renew(index: CueIndex, newer: CueIndex) -> CueIndex:
    """Returns the index with the changed and new cues of a newer one, which follow the others."""
    kept = [place for place, item in enumerate(index.known) if item.cue_id not in newer.places]
    embedded, vectors, compared = (
        np.concatenate([getattr(index, name)[kept], getattr(newer, name)])
        for name in ("embedded", "vectors", "compared")
    )
    return CueIndex(
        known=(*(index.known[place] for place in kept), *newer.known),
        types=newer.types,
        embedded=embedded,
        vectors=vectors,
        compared=compared,
    )
