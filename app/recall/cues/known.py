"""Holds the cues of a workspace as columns, ready to be matched. Pure.

Rows are only appended: a changed cue gets a new row, and its earlier one is not current any longer. So an index that
somebody still matches with stays as it is while the next one is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.foundation.models.protocols import Matrix, Vector
from app.foundation.text.data import read_toml
from app.recall.cues.actions import ActionTypes
from app.recall.cues.cue import ACTIVE, FORMS
from app.recall.cues.vocabulary import NO_WORDS, Places, WordRows

Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.floating[Any]]
Halves: TypeAlias = NDArray[np.float16]
SHARPNESS = 25.0
"""Factor by which a likeness to one act outweighs that to others."""
SCREENED_FROM, SCREENED = 8_000, 96
"""A store of more cues is screened in the first principal components, at 2 ms for 50,000 cues."""
SAMPLED = 8_000
"""Cues of a large store by which its components are found."""
ROWS_AT_ONCE = 2_000
REBUILT_BELOW, REBUILT_AFTER = 1_000, 0.2
"""A store of fewer rows is indexed anew after each change, in 10 ms; a larger one once this share of its rows was
added: until then, its components stay."""
BYTES_OF_TEXT = 1_000
"""Bytes of a row beside its vectors: two texts, the objects that hold them, and their words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedCue:
    """The parts of a stored cue that are matched, beside its vectors."""

    cue_id: UUID
    trigger: str
    lesson: str
    consequence: float
    state: str
    held: bool
    """True if it holds, or has held, from `begins` to `ends`: what a person took away held until then."""
    action_types: tuple[str, ...]
    files: tuple[str, ...]
    begins: float
    """The moment from which it holds, as a timestamp."""
    ends: float
    """The moment until which it holds; infinite if it has no end."""
    user: str = ""
    """The user whom it belongs to; "" for nobody."""


class PairWeights(NamedTuple):
    """The log-odds that a cue applies to a plan: a constant, and a weight for each feature of the pair."""

    bias: float
    acts: float
    """Likeness of their acts; for a cue without vectors, 1 if they have an action type in common."""
    words: float
    """The logarithm of 1 + the rarities of the words that they share."""
    reads: float
    """1 if the plan only reads, tells or counts something."""
    trigger: float = 0.0
    together: float = 0.0
    lesson: float = 0.0
    """Cosines of the plan and each text of the cue, without what all texts have in common."""

    @property
    def texts(self) -> tuple[float, ...]:
        """The weights of the cosines, in the order of FORMS."""
        return self.trigger, self.together, self.lesson


class FittedWeights(NamedTuple):
    """The weights of the matcher."""

    meaning: PairWeights
    alone: PairWeights
    """Weights for cues without vectors: only their words and action types are known."""


@cache
def fitted_weights() -> FittedWeights:
    """Returns the fitted weights."""
    stored = read_toml("app.recall.cues", "weights.toml", dict[str, dict[str, float]])
    return FittedWeights(**{name: PairWeights(**values) for name, values in stored.items()})


class CueBatch(NamedTuple):
    """Cues as they are read from the store."""

    items: Sequence[IndexedCue]
    embedded: Flags
    """The cues that have vectors of the served model."""
    vectors: Halves
    """The vectors of the FORMS of each cue; zeros for those that are not embedded."""


def batch_of(items: Sequence[IndexedCue], vectors: Sequence[bytes | None], dimension: int) -> CueBatch:
    """Returns cues and their stored vectors as a batch; those of another dimension are left out."""
    size = 2 * len(FORMS) * dimension
    fit = [rows is not None and len(rows) == size for rows in vectors]
    blank = bytes(size)
    joined = b"".join(rows if ok and rows is not None else blank for rows, ok in zip(vectors, fit, strict=True))
    matrix = np.frombuffer(joined, dtype="<f2").reshape(len(items), len(FORMS), dimension)
    return CueBatch(items, np.array(fit, dtype=bool), matrix)


def together(batches: Sequence[CueBatch]) -> CueBatch:
    """Returns all batches as one, each cue once, as the last of them has it."""
    whole = _concatenate(batches)
    last = {item.cue_id: place for place, item in enumerate(whole.items)}
    return whole if len(last) == len(whole.items) else _part(whole, list(last.values()))


def _concatenate(batches: Sequence[CueBatch]) -> CueBatch:
    items = [item for batch in batches for item in batch.items]
    embedded, vectors = (np.concatenate([batch[at] for batch in batches]) for at in (1, 2))
    return CueBatch(items, embedded, vectors)


def _part(batch: CueBatch, places: Sequence[int]) -> CueBatch:
    return CueBatch([batch.items[place] for place in places], batch.embedded[places], batch.vectors[places])


def centre(rows: NDArray[Any], mean: Vector) -> Matrix:
    """Returns rows without what all texts have in common, of unit length."""
    moved = rows.astype(np.float32) - mean
    found: Matrix = moved / np.maximum(1e-6, np.linalg.norm(moved, axis=-1, keepdims=True)).astype(np.float32)
    return found


@dataclass(frozen=True, kw_only=True)
class Acts:
    """The action types as directions: how alike a vector and each type are."""

    matrix: Matrix
    starts: tuple[int, ...]

    @classmethod
    def of(cls, types: ActionTypes) -> "Acts | None":
        """Returns the directions of these types; None without a model."""
        if types.matrix is None or not types.types:
            return None
        sizes = np.cumsum([0, *(len(item.examples) for item in types.types[:-1])])
        return cls(matrix=types.matrix, starts=tuple(map(int, sizes)))

    def profile(self, rows: NDArray[Any]) -> Matrix:
        """Returns the likeness of each row and each type, sharpened, of unit length."""
        found = np.maximum.reduceat(rows.astype(np.float32) @ self.matrix.T, self.starts, axis=1)
        sharpened = np.exp(SHARPNESS * (found - found.mean(axis=1, keepdims=True)))
        profiles: Matrix = sharpened / np.linalg.norm(sharpened, axis=1, keepdims=True)
        return profiles


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Properties of the model and the action types; the axes are those of a large store, kept while it changes little.

    What is subtracted from all vectors is the mean of the action types' examples, and nothing of the store: a pair of
    plan and cue has the same likeness in every store.
    """

    acts: Acts
    mean: Vector
    axes: Matrix | None
    """Principal components by which a large store is screened."""

    def to_screen(self, combined: Matrix) -> Matrix:
        """Returns combined rows in the coordinates of the screen."""
        return combined if self.axes is None else combined @ self.axes

    def query(self, vector: Vector) -> Vector:
        """Returns a plan as a combined row without weights."""
        return np.concatenate([centre(vector, self.mean), self.acts.profile(vector[None])[0]])

    def combine(self, vectors: Halves, acts: Matrix) -> Matrix:
        """Returns the weighted sum of the vectors of each cue, and its acts."""
        texts = np.tensordot(centre(vectors, self.mean), fitted_weights().meaning.texts, axes=([1], [0]))
        return np.hstack([texts, acts]).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class CueIndex:
    """The cues of a store, ready to be matched. Made by `indexed`; the arrays may be longer than `known`."""

    known: Sequence[IndexedCue]
    types: ActionTypes
    scale: Scale | None
    """None without a model."""
    numbers: dict[str, int]
    """The number of each word of the cues. It is shared with later indexes, which add to it."""
    words: WordRows
    """The words of trigger and lesson."""
    current: Flags
    """The rows that are not replaced by later ones."""
    embedded: Flags
    vectors: Halves
    acts: Matrix
    """The weighted likeness of each cue and each action type."""
    screen: Matrix
    """One row for each cue: the weighted sum of its vectors and its acts, or their principal components."""
    places: Mapping[UUID, int]
    """The row of each cue."""
    made_of: int
    """Number of rows by which `scale` was found."""

    @property
    def bytes(self) -> int:
        """Memory that the index takes, about."""
        return len(self.known) * (
            BYTES_OF_TEXT + sum(rows[:1].nbytes for rows in (self.vectors, self.acts, self.screen))
        )

    @cached_property
    def _validity(self) -> tuple[Flags, Flags, Numbers, Numbers]:
        """The rows that are active, and those that hold or have held; from when and until when they hold."""
        active = self.current & np.array([item.state == ACTIVE for item in self.known], dtype=bool)
        held = self.current & np.array([item.held for item in self.known], dtype=bool)
        begins, ends = (np.array([getattr(item, name) for item in self.known], float) for name in ("begins", "ends"))
        return active, held, begins, ends

    def holding_at(self, moment: datetime, *, past: bool, users: Sequence[str] | None = None) -> Flags:
        """Returns which rows hold at a moment; with `past` also those of cues that were taken away since.

        `users` are those whose cues count, "" for nobody; None for all.
        """
        active, held, begins, ends = self._validity
        now = moment.timestamp()
        found: Flags = (held if past else active) & (begins <= now) & (ends > now) & self.of_users(users)
        return found

    def of_users(self, users: Sequence[str] | None) -> Flags:
        """Returns which rows belong to these users, "" for nobody; None for all."""
        if users is None or (not self._owned and "" in users):
            return np.ones(len(self.known), dtype=bool)
        return np.array([item.user in users for item in self.known], dtype=bool)

    @cached_property
    def _owned(self) -> bool:
        """True if cues belong to users."""
        return any(item.user for item in self.known)

    def state_of(self, cue_id: UUID) -> str:
        """Returns the state of a cue."""
        return self.known[self.places[cue_id]].state

    def lasting(self, moment: datetime) -> Flags:
        """Returns which rows hold at a moment or will hold later."""
        active, _, _, ends = self._validity
        found: Flags = active & (ends > moment.timestamp())
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
    def bare(self) -> Places:
        """The current rows without vectors."""
        return np.flatnonzero(self.current & ~self.embedded)

    @cached_property
    def lacking(self) -> int:
        """Number of active cues without vectors."""
        return sum(self.known[place].state == ACTIVE for place in self.bare.tolist())


def file_name(path: str) -> str:
    """Returns the last part of a path, in small letters."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()


def index_cues(batch: CueBatch, types: ActionTypes) -> CueIndex:
    """Returns the index of these cues."""
    numbers: dict[str, int] = {}
    return _build(batch, types, numbers, NO_WORDS.with_texts(_texts(batch), numbers))


def _texts(batch: CueBatch) -> Sequence[str]:
    return [f"{item.trigger}\n{item.lesson}" for item in batch.items]


def _build(batch: CueBatch, types: ActionTypes, numbers: dict[str, int], words: WordRows) -> CueIndex:
    count, acts = len(batch.items), Acts.of(types)
    scale = None if acts is None else _scale(acts, batch)
    profiles, screen = _columns(scale, batch)
    return CueIndex(
        known=tuple(batch.items),
        types=types,
        scale=scale,
        numbers=numbers,
        words=words,
        current=np.ones(count, dtype=bool),
        embedded=batch.embedded,
        vectors=batch.vectors,
        acts=profiles,
        screen=screen,
        places={item.cue_id: place for place, item in enumerate(batch.items)},
        made_of=count,
    )


def renew(index: CueIndex, batch: CueBatch, types: ActionTypes) -> CueIndex:
    """Returns the index with changed and new cues. Only the latest index of a store may be renewed."""
    count = len(index.known)
    total = count + len(batch.items)
    words = index.words.with_texts(_texts(batch), index.numbers)
    current = np.concatenate([index.current, np.ones(len(batch.items), dtype=bool)])
    current[[index.places[item.cue_id] for item in batch.items if item.cue_id in index.places]] = False
    same = index.types.types == types.types and (index.scale is None) == (types.matrix is None)
    if not same or total < REBUILT_BELOW or total > index.made_of * (1 + REBUILT_AFTER):
        whole = [CueBatch(index.known, index.embedded, index.vectors[:count]), batch]
        kept = np.flatnonzero(current)
        return _build(_part(_concatenate(whole), kept.tolist()), types, index.numbers, words.part(kept))
    profiles, screen = _columns(index.scale, batch)
    return replace(
        index,
        known=(*index.known, *batch.items),
        words=words,
        current=current,
        embedded=np.concatenate([index.embedded, batch.embedded]),
        vectors=_append(index.vectors, count, batch.vectors),
        acts=_append(index.acts, count, profiles),
        screen=_append(index.screen, count, screen),
        places={**index.places, **{item.cue_id: place for place, item in enumerate(batch.items, count)}},
    )


def _append(rows: NDArray[Any], count: int, new: NDArray[Any]) -> NDArray[Any]:
    """Returns an array whose first `count` rows are followed by new ones; it grows by doubling."""
    total = count + len(new)
    if total > len(rows) or not rows.flags.writeable:
        larger = np.empty((max(total, 2 * count), *rows.shape[1:]), dtype=rows.dtype)
        larger[:count] = rows[:count]
        rows = larger
    rows[count:total] = new
    return rows


def _columns(scale: Scale | None, batch: CueBatch) -> tuple[Matrix, Matrix]:
    """Returns the acts and the screened rows of cues; zeros for those that are not embedded."""
    count = len(batch.items)
    if scale is None:
        return np.zeros((count, 0), dtype=np.float32), np.zeros((count, 0), dtype=np.float32)
    width = len(scale.mean) + len(scale.acts.starts)
    profiles = np.zeros((count, len(scale.acts.starts)), dtype=np.float32)
    screen = np.zeros((count, width if scale.axes is None else scale.axes.shape[1]), dtype=np.float32)
    found = np.flatnonzero(batch.embedded)
    for first in range(0, len(found), ROWS_AT_ONCE):
        part = found[first : first + ROWS_AT_ONCE]
        vectors = batch.vectors[part]
        profiles[part] = fitted_weights().meaning.acts * scale.acts.profile(vectors[:, 0])
        screen[part] = scale.to_screen(scale.combine(vectors, profiles[part]))
    return profiles, screen


def _scale(acts: Acts, batch: CueBatch) -> Scale:
    """Returns the scale, with the components by which a large store is screened."""
    scale = Scale(acts=acts, mean=acts.matrix.mean(axis=0), axes=None)
    found = np.flatnonzero(batch.embedded)
    if len(batch.items) <= SCREENED_FROM or not len(found):
        return scale
    if len(found) > SAMPLED:
        found = found[np.linspace(0, len(found) - 1, SAMPLED).astype(int)]
    vectors = batch.vectors[found]
    rows = scale.combine(vectors, fitted_weights().meaning.acts * acts.profile(vectors[:, 0]))
    _, components = np.linalg.eigh(rows.T @ rows)
    return replace(scale, axes=np.ascontiguousarray(components[:, ::-1][:, :SCREENED]).astype(np.float32))
