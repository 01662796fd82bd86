"""Finds the cues that a plan may trigger, by meaning, action types, files and words. Pure.

A store of cues is one matrix: the weighted sum of the cosines of a plan and the texts of a cue is one product with it.
The best are scored again with the words.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.cues.actions import ActionTypes
from app.cues.cue import ACTIVE, SUPERSEDED
from app.models.protocols import Matrix, Vector
from app.text.words import content_words

Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.floating[Any]]
TRIGGER, LESSON, QUOTE, ACTS, SAME_WORDS, LESSON_WORDS = 7.4, 1.3, 1.4, 1.5, -10.2, 2.9
"""Weights of the cosines with trigger, lesson and quote, of the likeness of the acts, and of the words that a plan
shares with the trigger and with the lesson. They were fitted to 160 plans and 160 near misses of 80 cues of one
project, with each trigger as a plan of its own so that a plan in the trigger's own words fires too
(docs/cues.md has the figures with whole lessons left out). Words shared with a trigger count against a cue that is no
nearer in meaning for them: a near miss has the words, but not the act."""
MOST_WORDS = 0.3
"""Share of words from which more of them change nothing."""
OWN_WORDS, OWN_FROM = 20.0, 0.6
"""Weight of words shared with the trigger beyond this share: such a plan is the trigger in its own words. If a
plan has three quarters of a trigger's words, the right cue is first for 0.89 of the plans, and for 0.46 without this.
The plans of the benchmark fire as before."""
FILES = 2.0
"""Added for a file that the plan names and the cue is about."""
BIAS = -2.0
"""The middle of the scale of relevance: half of the right cues of a plan lie above."""
WORDS_ALONE = 12.0
"""Weight of the words where there is no model; they then count for a cue."""
SHARPNESS = 25.0
"""Factor by which a likeness to one act outweighs that to others."""
OWN_MEAN_FROM = 50
"""Cues of a store that weigh as much as the examples of the action types in the mean that is subtracted from all
vectors: what all texts of a project have in common tells nothing. Hits among 10 rise from 0.40 to 0.43."""
SCREENED_FROM, SCREENED = 8_000, 96
"""A store of more cues is screened in the first principal components, at 2 ms for 50,000 cues."""
SHORTLIST = 300
"""Cues whose words are compared."""
MOST_FILES = 100
WORDS_KNOWN = 20_000
"""Texts whose words are cached, of about 1 kB each."""
ROWS_AT_ONCE = 2_000
REBUILT_AFTER = 0.1
"""Share of changed cues from which an index is made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The parts of a stored cue that are matched."""

    cue_id: UUID
    trigger: str
    lesson: str
    consequence: float
    state: str
    action_types: tuple[str, ...]
    files: tuple[str, ...]
    vectors: Matrix | None
    """Trigger, lesson and quote; None if they are not embedded."""
    valid_from: datetime
    valid_until: datetime | None


class Plan(NamedTuple):
    """A plan or action that somebody is about to carry out."""

    text: str
    files: tuple[str, ...] = ()
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A cue that a plan may trigger, with the parts of its relevance."""

    cue_id: UUID
    relevance: float
    """On the scale of a log-odds; BIAS is not subtracted."""
    parts: Mapping[str, float]
    """Contribution of each part to the relevance."""
    vectors: Matrix | None = field(repr=False)


def centred(rows: Matrix, mean: Vector) -> Matrix:
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

    def profile(self, rows: Matrix) -> Matrix:
        """Returns the likeness of each row and each type, sharpened, of unit length."""
        found = np.maximum.reduceat(rows.astype(np.float32) @ self.matrix.T, self.starts, axis=1)
        sharpened = np.exp(SHARPNESS * (found - found.mean(axis=1, keepdims=True)))
        profiles: Matrix = sharpened / np.linalg.norm(sharpened, axis=1, keepdims=True)
        return profiles


@dataclass(frozen=True, kw_only=True)
class CueIndex:
    """The cues of a store, ready to be matched. Made by `indexed`."""

    known: tuple[Known, ...]
    types: ActionTypes
    acts: Acts | None
    mean: Vector
    combined: Matrix
    """One row for each cue: the weighted sum of its texts' vectors, and its acts; zeros without vectors."""
    weights: Mapping[str, float]
    """Inverse document frequency of each word of the triggers and lessons: ln(1 + (N - n + 0.5) / (n + 0.5))."""
    axes: Matrix | None
    """Principal components by which a large store is screened."""
    screen: Matrix | None

    @cached_property
    def unknown(self) -> float:
        """The weight of a word that no cue has."""
        return max(self.weights.values(), default=1.0)

    @cached_property
    def places(self) -> Mapping[UUID, int]:
        """The row of each cue."""
        return {item.cue_id: place for place, item in enumerate(self.known)}

    @cached_property
    def _validity(self) -> tuple[Flags, Flags, Numbers, Numbers]:
        """Returns flags of active and of superseded cues, and the timestamps from which and until which each holds."""
        states = np.array([item.state for item in self.known], dtype=object)
        begins = [item.valid_from.timestamp() for item in self.known]
        ends = [math.inf if item.valid_until is None else item.valid_until.timestamp() for item in self.known]
        return states == ACTIVE, states == SUPERSEDED, np.array(begins, float), np.array(ends, float)

    def standing(self, moment: datetime, *, past: bool) -> Flags:
        """Returns which cues hold at a moment."""
        active, superseded, begins, ends = self._validity
        now = moment.timestamp()
        found: Flags = (active | superseded if past else active) & (begins <= now) & (ends > now)
        return found

    @cached_property
    def of_files(self) -> Mapping[str, Sequence[int]]:
        """The rows of the cues about each file, by the last part of its path."""
        found: dict[str, list[int]] = {}
        for place, item in enumerate(self.known):
            for path in item.files:
                found.setdefault(_name(path), []).append(place)
        return found

    @cached_property
    def of_words(self) -> Mapping[str, Sequence[int]]:
        """The rows of the cues with each word; only used where there is no model."""
        found: dict[str, list[int]] = {}
        for place, item in enumerate(self.known):
            for word in content_words(f"{item.trigger} {item.lesson}"):
                found.setdefault(word, []).append(place)
        return found


def indexed(known: Iterable[Known], types: ActionTypes) -> CueIndex:
    """Returns the index of these cues."""
    items, acts = tuple(known), Acts.of(types)
    mean = _mean(acts, items)
    rows = _rows(items, acts, mean)
    axes = _axes(rows) if len(items) > SCREENED_FROM and rows.shape[1] else None
    screen = None if axes is None else np.ascontiguousarray(rows @ axes)
    return CueIndex(
        known=items, types=types, acts=acts, mean=mean, combined=rows, weights=_weights(items), axes=axes, screen=screen
    )


def renewed(index: CueIndex, changed: Sequence[Known], types: ActionTypes) -> CueIndex:
    """Returns the index with changed and new cues; that of a large store keeps its means and weights."""
    items = dict(zip(index.places, index.known, strict=True)) | {item.cue_id: item for item in changed}
    if len(items) < SCREENED_FROM or len(changed) > len(items) * REBUILT_AFTER:
        return indexed(items.values(), types)
    rows = np.vstack([index.combined, np.zeros((len(items) - len(index.known), index.combined.shape[1]), np.float32)])
    places = {cue_id: place for place, cue_id in enumerate(items)}
    at = [places[item.cue_id] for item in changed]
    rows[at] = _rows(changed, index.acts, index.mean)
    screen = None if index.axes is None else np.ascontiguousarray(rows @ index.axes)
    return replace(index, known=tuple(items.values()), combined=rows, screen=screen)


def _rows(items: Sequence[Known], acts: Acts | None, mean: Vector) -> Matrix:
    """Returns the combined rows of cues; zeros for those without vectors of the served model."""
    if acts is None:
        return np.zeros((len(items), 0), dtype=np.float32)
    width = acts.matrix.shape[1]
    rows = np.zeros((len(items), width + len(acts.starts)), dtype=np.float32)
    found = [place for place, item in enumerate(items) if item.vectors is not None]
    for first in range(0, len(found), ROWS_AT_ONCE):
        part = found[first : first + ROWS_AT_ONCE]
        stacked = np.stack([_vectors(items[place]) for place in part])
        for at, weight in enumerate((TRIGGER, LESSON, QUOTE)):
            rows[part, :width] += weight * centred(stacked[:, at], mean)
        rows[part, width:] = ACTS * acts.profile(stacked[:, 0])
    return rows


def _vectors(item: Known) -> Matrix:
    assert item.vectors is not None, "the caller asks only for those that have vectors"  # noqa: S101
    return item.vectors


def _weights(items: Sequence[Known]) -> Mapping[str, float]:
    counts: Counter[str] = Counter()
    for item in items:
        counts.update(content_words(f"{item.trigger} {item.lesson}"))
    return {word: math.log1p((len(items) - count + 0.5) / (count + 0.5)) for word, count in counts.items()}


def _mean(acts: Acts | None, items: Sequence[Known]) -> Vector:
    """Returns what all texts have in common: of the store, and of the examples of the action types."""
    if acts is None:
        return np.zeros(0, dtype=np.float32)
    found = [item.vectors for item in items if item.vectors is not None]
    common: Vector = acts.matrix.mean(axis=0)
    if not found:
        return common
    own = np.mean([rows.mean(axis=0, dtype=np.float32) for rows in found], axis=0)
    share = len(found) / (len(found) + OWN_MEAN_FROM)
    mixed: Vector = (share * own + (1 - share) * common).astype(np.float32)
    return mixed


def _axes(rows: Matrix) -> Matrix:
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return np.ascontiguousarray(vectors[:, ::-1][:, :SCREENED]).astype(np.float32)


def matched(index: CueIndex, plan: Plan, *, moment: datetime, past: bool = False, most: int) -> list[Match]:
    """Returns the cues that a plan may trigger, the most relevant first: those that hold at a moment.

    Of a `past` moment, those that were superseded since are among them.
    """
    allowed = index.standing(moment, past=past)
    by_meaning = _by_meaning(index, plan)
    by_file = _by_file(index, plan)
    shortlist = _shortlist(index, plan, by_meaning, by_file, allowed)
    words = content_words(plan.text)
    cosines = _cosines(index, shortlist, by_meaning)
    found = [_match(index, place, words, cosines.get(place), by_file) for place in shortlist]
    return sorted(found, key=lambda item: (-item.relevance, item.cue_id))[:most]


class _Meaning(NamedTuple):
    """The plan in the coordinates of the combined matrix."""

    query: Vector
    screened: Vector


def _by_meaning(index: CueIndex, plan: Plan) -> _Meaning | None:
    if plan.vector is None or index.acts is None or not index.combined.shape[1]:
        return None
    if plan.vector.shape != index.mean.shape:
        return None
    query = np.concatenate([centred(plan.vector, index.mean), index.acts.profile(plan.vector[None])[0]])
    if index.screen is None or index.axes is None:
        return _Meaning(query, np.asarray(index.combined @ query, dtype=np.float32))
    return _Meaning(query, np.asarray(index.screen @ (query @ index.axes), dtype=np.float32))


def _by_file(index: CueIndex, plan: Plan) -> Mapping[int, str]:
    """Returns the cues about the files that the plan names, each with the file."""
    found = {}
    for path in plan.files[:MOST_FILES]:
        for place in index.of_files.get(_name(path), ()):
            if any(_same_file(path, other) for other in index.known[place].files):
                found[place] = path
    return found


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()


def _same_file(one: str, other: str) -> bool:
    """Returns True if one path ends with the other."""
    first, second = (path.replace("\\", "/").lstrip("./").casefold() for path in (one, other))
    return f"/{first}".endswith(f"/{second}") or f"/{second}".endswith(f"/{first}")


def _shortlist(
    index: CueIndex,
    plan: Plan,
    by_meaning: _Meaning | None,
    by_file: Mapping[int, str],
    allowed: Flags,
) -> list[int]:
    if by_meaning is not None:
        scores = np.where(allowed, by_meaning.screened, -np.inf)
        most = min(SHORTLIST, len(scores))
        best = np.argpartition(-scores, most - 1)[:most].tolist() if most else []
        places = [place for place in best if scores[place] > -np.inf]
    else:
        counts: Counter[int] = Counter()
        for word in content_words(plan.text):
            for place in index.of_words.get(word, ()):
                counts[place] += 1
        places = [place for place, _ in counts.most_common() if allowed[place]][:SHORTLIST]
    named = (place for place in by_file if allowed[place])
    return list(dict.fromkeys([*places, *named]))


def _cosines(index: CueIndex, shortlist: Sequence[int], by_meaning: _Meaning | None) -> Mapping[int, Sequence[float]]:
    """Returns the cosines of a plan with trigger, lesson and quote of each cue, and the likeness of their acts."""
    places = [place for place in shortlist if index.known[place].vectors is not None]
    if by_meaning is None or not places:
        return {}
    width = len(index.mean)
    query = by_meaning.query
    stacked = centred(np.stack([_vectors(index.known[place]) for place in places]), index.mean)
    found = np.column_stack([stacked @ query[:width], index.combined[places, width:] @ query[width:]])
    return dict(zip(places, found.tolist(), strict=True))


def _match(
    index: CueIndex,
    place: int,
    words: frozenset[str],
    cosines: Sequence[float] | None,
    by_file: Mapping[int, str],
) -> Match:
    item = index.known[place]
    same, in_lesson = (overlap(words, known_words(text), index) for text in (item.trigger, item.lesson))
    shared, in_lesson = min(MOST_WORDS, same), min(MOST_WORDS, in_lesson)
    if cosines is None:
        parts = {"words": WORDS_ALONE * max(shared, in_lesson)}
    else:
        trigger, lesson, quote, acts = cosines
        parts = {
            "trigger": TRIGGER * trigger,
            "lesson": LESSON * lesson,
            "quote": QUOTE * quote,
            "acts": acts,
            "same_words": SAME_WORDS * shared + OWN_WORDS * max(0.0, same - OWN_FROM),
            "lesson_words": LESSON_WORDS * in_lesson,
        }
    if place in by_file:
        parts["file"] = FILES
    return Match(cue_id=item.cue_id, relevance=sum(parts.values()), parts=parts, vectors=item.vectors)


known_words = lru_cache(maxsize=WORDS_KNOWN)(content_words)


def overlap(one: frozenset[str], other: frozenset[str], index: CueIndex) -> float:
    """Returns the share of words that two texts have in common, 0 to 1, the rare ones counting more."""
    weights, unknown = index.weights, index.unknown
    sizes = [sum(weights.get(word, unknown) for word in words) for words in (one, other)]
    if not all(sizes):
        return 0.0
    return sum(weights.get(word, unknown) for word in one & other) / math.sqrt(sizes[0] * sizes[1])
