"""Where memories stand and how they group: UMAP and KMeans over their vectors.

Importing UMAP takes seconds and compiling it more, so nothing here is called outside the layout process.
"""

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.insight.map.messages import COMPUTED, PROJECTED
from app.models.protocols import Matrix

Flags = NDArray[np.bool_]
Numbers = NDArray[np.intp]

SEED = 42
MOST_CLUSTERS, MEMORIES_A_CLUSTER = 8, 3
LEAST_FOR_UMAP = 4
"""UMAP raises for 2 and 3: its spectral start needs more points than dimensions and one."""
NEIGHBOURS = 15
"""UMAP's own default."""
EXACT_FROM = 4_096
"""UMAP finds neighbours exactly below this many points. From here on it would compile its search for half a minute and
find most of them, where the exact search of 5,000 takes a second."""
BLOCK = 1_000
"""Rows whose distances are held at once: 40 MB for 5,000 points."""
LEAST_ANCHORED = 0.25
"""Share of the shown memories that UMAP itself must have placed for more to be projected among them: beyond four times
its size a store has topics that the old map has no room for."""
FEW_ANCHORS, MOST_ANCHORS = 1_000, 4_000
"""Anchors that a projection takes along besides the nearest ones, and at most: 0.4 s and 15 s."""
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the shown memories stand."""

    mode: str
    coordinates: Matrix
    fitted: Flags


def vectors_of(sent: bytes, dimension: int) -> Matrix:
    """The rows of concatenated `halfvec`s as pgvector sends them: four bytes of header, then big-endian halves."""
    rows = np.frombuffer(sent, dtype=">u2").reshape(-1, dimension + 2)[:, 2:]
    return np.ascontiguousarray(rows).view(">f2").astype(np.float32)


def place(vectors: Matrix, shown: int, before: Matrix, fitted: Flags) -> Placement:
    """The first `shown` rows laid out; a place of `before` (not NaN) is kept while enough of the map is left."""
    known = ~np.isnan(before[:, 0])
    new = ~known[:shown]
    anchors = np.flatnonzero(known & fitted)
    if not new.any():
        return Placement(PROJECTED, before[:shown], fitted[:shown])
    if not holds(vectors[anchors], shown):
        return fresh(vectors[:shown])
    coordinates = before[:shown].copy()
    coordinates[new] = projected(vectors[anchors], before[anchors], vectors[:shown][new])
    return Placement(PROJECTED, coordinates, fitted[:shown] & ~new)


def holds(anchors: Matrix, shown: int) -> bool:
    """Whether these anchors carry a map of so many memories."""
    return len(anchors) >= max(LEAST_FOR_UMAP, LEAST_ANCHORED * shown) and not _all_equal(anchors)


def fresh(vectors: Matrix) -> Placement:
    """A layout from nothing: UMAP's, or a sunflower where there is nothing to tell apart."""
    count = len(vectors)
    if count < LEAST_FOR_UMAP or _all_equal(vectors):
        return Placement(COMPUTED, sunflower(count), np.zeros(count, dtype=np.bool_))
    known: dict[str, Any] = {"precomputed_knn": neighbours_within(vectors)} if count >= EXACT_FROM else {}
    with _quiet():
        coordinates = _umap(**known).fit_transform(vectors)
    return Placement(COMPUTED, np.asarray(coordinates, dtype=np.float32), np.ones(count, dtype=np.bool_))


def sunflower(count: int) -> Matrix:
    """The seeds of a sunflower: point i at the radius √(i + ½), turned by i golden angles; none hides another."""
    places = np.arange(count, dtype=np.float64)
    radius, angle = np.sqrt(places + 0.5), places * GOLDEN_ANGLE
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)


def projected(anchors: Matrix, places: Matrix, new: Matrix) -> Matrix:
    """Where new memories stand on a map whose anchors stay where they are.

    UMAP is fitted to the anchors without a single epoch, given their places, and transforms the new ones: what a
    stored reducer would answer, without storing one (docs/adr/0011).
    """
    chosen = chosen_anchors(anchors, new)
    held = places[chosen].copy()
    with _quiet():
        reducer = _umap(n_epochs=0, init=held.copy())
        reducer.fit(anchors[chosen])
        reducer.embedding_ = held
        reducer.n_epochs = None
        return np.asarray(reducer.transform(new), dtype=np.float32)


def chosen_anchors(anchors: Matrix, new: Matrix) -> Numbers:
    """The nearest anchors of each new memory, which draw it, and an even choice of the rest, which push it away."""
    count = min(NEIGHBOURS, len(anchors))
    near = np.unique(neighbours(new, anchors, count)[0])
    rest = np.setdiff1d(np.arange(len(anchors)), near)
    chosen = np.union1d(near, _evenly(rest, FEW_ANCHORS))
    return _evenly(chosen, MOST_ANCHORS)


def _evenly(items: Numbers, most: int) -> Numbers:
    if len(items) <= most:
        return items
    return items[np.linspace(0, len(items) - 1, most).astype(np.intp)]


def neighbours_within(vectors: Matrix) -> tuple[Numbers, Matrix]:
    """The nearest neighbours of each among all, itself first, as UMAP takes them."""
    indices, distances = neighbours(vectors, vectors, NEIGHBOURS + 1)
    for row, found in enumerate(indices):
        # Of several equal vectors any may come first, and UMAP takes the first for the vector itself.
        itself = np.flatnonzero(found == row)
        last = int(itself[0]) if len(itself) else NEIGHBOURS
        indices[row, 1 : last + 1], distances[row, 1 : last + 1] = found[:last].copy(), distances[row, :last].copy()
        indices[row, 0], distances[row, 0] = row, 0
    return indices[:, :NEIGHBOURS], distances[:, :NEIGHBOURS]


def neighbours(asking: Matrix, among: Matrix, count: int) -> tuple[Numbers, Matrix]:
    """Exactly the `count` nearest of `among` for each row, nearest first, with their Euclidean distances."""
    wide = among.astype(np.float64)
    squares = (wide * wide).sum(axis=1)
    blocks = [_nearest(asking[at : at + BLOCK], wide, squares, count) for at in range(0, len(asking), BLOCK)]
    return np.concatenate([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])


def _nearest(
    asking: Matrix, among: NDArray[np.float64], squares: NDArray[np.float64], count: int
) -> tuple[Numbers, Matrix]:
    wide = asking.astype(np.float64)
    distances = (wide * wide).sum(axis=1)[:, None] + squares - 2 * (wide @ among.T)
    chosen = np.argpartition(distances, count - 1, axis=1)[:, :count]
    near = np.take_along_axis(distances, chosen, axis=1)
    order = np.lexsort((chosen, near), axis=1)
    lengths = np.sqrt(np.take_along_axis(near, order, axis=1).clip(min=0))
    return np.take_along_axis(chosen, order, axis=1), lengths.astype(np.float32)


def cluster(vectors: Matrix, before: Numbers) -> Numbers:
    """The cluster of each memory, numbered like the earlier ones (-1: none) that it shares most with."""
    count = min(MOST_CLUSTERS, max(1, len(vectors) // MEMORIES_A_CLUSTER))
    if count == 1:
        return np.zeros(len(vectors), dtype=np.intp)
    with _quiet():
        from sklearn.cluster import KMeans  # type: ignore[import-untyped]  # noqa: PLC0415 - takes seconds

        found = KMeans(n_clusters=count, random_state=SEED, n_init=10).fit_predict(vectors)
    return numbered(found.astype(np.intp), before)


def numbered(found: Numbers, before: Numbers) -> Numbers:
    """Clusters numbered from 0: as before where they share members, the others by their size."""
    _, compact, sizes = np.unique(found, return_inverse=True, return_counts=True)
    names = _names(compact, before, sizes)
    free = iter(sorted(set(range(len(sizes))) - set(names.values())))
    for place in np.lexsort((np.unique(compact, return_index=True)[1], -sizes)):
        if place not in names:
            names[place] = next(free)
    return np.array([names[place] for place in compact], dtype=np.intp)


def _names(compact: Numbers, before: Numbers, sizes: Numbers) -> dict[int, int]:
    """The earlier number of each cluster that has one: as many members as can be keep theirs."""
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]  # noqa: PLC0415 - takes a second

    shared = np.zeros((len(sizes), len(sizes)), dtype=np.intp)
    kept = (before >= 0) & (before < len(sizes))
    np.add.at(shared, (compact[kept], before[kept]), 1)
    pairs = zip(*linear_sum_assignment(-shared), strict=True)
    return {int(place): int(name) for place, name in pairs if shared[place, name]}


def _all_equal(vectors: Matrix) -> bool:
    return bool((vectors == vectors[:1]).all())


def _umap(**options: Any) -> Any:  # noqa: ANN401 - UMAP has no types
    with kept_when_compiled():
        from umap import UMAP  # type: ignore[import-untyped]  # noqa: PLC0415 - takes up to 20 s

    return UMAP(n_components=2, random_state=SEED, low_memory=True, **options)


@contextmanager
def _quiet() -> Iterator[None]:
    """UMAP warns that a seed means one thread and a small store few neighbours; KMeans of equal vectors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


CACHE = "NUMBA_CACHE_DIR"
PARTS = ("umap-learn", "pynndescent", "numba")


def versions() -> str:
    """Name of a folder for what these versions compile: numba sees a change in a function, not in what it calls."""
    return "-".join(version(part) for part in PARTS)


@contextmanager
def kept_when_compiled() -> Iterator[None]:
    """What is imported meanwhile keeps what it compiles, if a folder is named for it."""
    if CACHE not in os.environ:
        yield
        return
    import numba  # noqa: PLC0415 - takes seconds

    compiling = numba.njit
    numba.njit = lambda *arguments, **options: compiling(*arguments, **{"cache": True, **options})
    try:
        yield
    finally:
        numba.njit = compiling
