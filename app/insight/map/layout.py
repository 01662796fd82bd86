"""Computes places, clusters and islands of memories from their vectors, for the layout process alone.

UMAP keeps the distances within an island. Those between islands, on which the labels stand, are an accident of its
start, and can leave three small clumps at the edges of an empty map: they are capped.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]  # it has no types
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]  # it has no types
from scipy.spatial import KDTree  # type: ignore[import-untyped]  # as above
from sklearn.cluster import HDBSCAN, KMeans  # type: ignore[import-untyped]  # as above
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]  # as above

from app.foundation.models.protocols import Matrix
from app.insight.map.process import (
    COMPUTED,
    LEAST_FOR_UMAP,
    PROJECTED,
    Counted,
    Island,
    Job,
    Layout,
    count_words,
    distinctive,
)

_Numbers = NDArray[np.intp]
_Places = NDArray[np.float64]

ONE_ISLAND = 4.0
"""Longest step within an island, in units of the map's spacing: the median distance of a memory to the nearest one."""
LEAST_GAP, GAP = 3.0, 0.3
"""Widest gap between an island and the nearest one: so many spacings, or this share of the smaller island's width, if
that is more. Tried on 14 stores of 12 to 1,250 memories: a share of 0.5 leaves a twentieth more of the map empty."""
_ANGLES = 60
"""Ways to turn the map that are tried: one every three degrees."""
_LEAST_LABELLED, _LABELLED_SHARE = 3, 60
"""Least members of an island with a label: so many, or one in so many of all memories, if that is more. One in 40 puts
the label of another topic next to a tenth more of the memories."""


def close_gaps(coordinates: Matrix) -> Matrix:
    """Moves islands towards each other to the widest gap, and turns the map so that it is low and wide.

    Again and again the smallest island moves to its nearest one and becomes a part of it. It moves by less than the
    distance between the two, so it passes no other island.
    """
    places = coordinates.astype(np.float64)
    spacing = float(np.median(KDTree(places).query(places, 2)[0][:, 1]))
    names = _number_groups(places, ONE_ISLAND * spacing) if spacing else np.zeros(len(places), dtype=np.intp)
    while names.min() != names.max():
        sizes = np.bincount(names)
        own = names == np.where(sizes, sizes, len(names) + 1).argmin()
        step, to = _step(places, own, spacing)
        places[own] += step
        names[own] = names[to]
    return _turn_to_lowest(places - places.mean(axis=0)).astype(np.float32)


def _turn_to_lowest(places: _Places) -> _Places:
    """Turns the map so that it is as low as it can be: most canvases are wider than high."""
    angles = np.linspace(0, np.pi, _ANGLES, endpoint=False)
    upward = np.stack([-np.sin(angles), np.cos(angles)])
    lowest = angles[np.ptp(places @ upward, axis=0).argmin()]
    rotation = [[np.cos(lowest), -np.sin(lowest)], [np.sin(lowest), np.cos(lowest)]]
    return places @ np.array(rotation)


def _number_groups(places: _Places, reach: float) -> _Numbers:
    """Numbers the groups of places that steps of at most `reach` connect."""
    steps = KDTree(places).sparse_distance_matrix(KDTree(places), reach, output_type="coo_matrix")
    names: _Numbers = connected_components(steps, directed=False)[1].astype(np.intp)
    return names


def _step(places: _Places, own: NDArray[np.bool_], spacing: float) -> tuple[_Places, int]:
    """Returns the step that takes the `own` places to the widest gap, and the place that they are then next to."""
    others = np.flatnonzero(~own)
    distances, nearest = KDTree(places[others]).query(places[own])
    at = int(distances.argmin())
    to, distance = int(others[nearest[at]]), float(distances[at])
    width = float(np.sqrt(np.prod(np.ptp(places[own], axis=0) + spacing)))
    widest = max(LEAST_GAP * spacing, GAP * width)
    return (places[to] - places[own][at]) * (1 - widest / max(distance, widest)), to


def number_dense_parts(coordinates: Matrix, clusters: _Numbers) -> _Numbers:
    """Numbers the dense parts of the map that get a label, from 0; -1 for a memory between them.

    If the map has no more of them than clusters, the clusters get the labels.
    """
    least = max(_LEAST_LABELLED, len(coordinates) // _LABELLED_SHARE)
    if len(coordinates) <= least:
        return clusters
    search = HDBSCAN(min_cluster_size=least, cluster_selection_method="leaf", copy=True)
    found: _Numbers = search.fit_predict(coordinates.astype(np.float64)).astype(np.intp)
    return found if found.max() > clusters.max() else clusters


def middle_of(coordinates: Matrix, members: _Numbers) -> int:
    """Returns the member that is next to the members' median place."""
    places = coordinates[members]
    return int(members[np.hypot(*(places - np.median(places, axis=0)).T).argmin()])


Flags = NDArray[np.bool_]

_SEED = 42
_MOST_CLUSTERS, _MEMORIES_A_CLUSTER = 8, 3
_HELD = 1.02
"""Clusters that start from the earlier ones stay if their inertia is at most so many times that of fresh ones. When a
tenth more memories came, 99 % of the old ones kept their cluster's number, and 85 % with fresh clusters. New topics
exceed the factor."""
NEIGHBOURS = 15
"""Neighbours of each point; UMAP's own default."""
EXACT_FROM = 4_096
"""From this number of points on, this module searches the neighbours exactly, which takes a second for 5,000 points.
Below, UMAP does so itself; above, UMAP would compile an approximate search for half a minute."""
_LEAST_ANCHORED = 0.25
"""Anchors that a projection needs, as a share of the shown memories. A store that has grown to more than four times the
map's size has topics that the old map has no room for."""
FEW_ANCHORS, MOST_ANCHORS = 1_000, 4_000
"""Anchors that a projection uses in addition to the nearest ones, and most anchors in all; they take 0.4 s and 15 s."""
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


@dataclass(frozen=True, slots=True)
class Placement:
    """The places of the shown memories."""

    mode: str
    """COMPUTED or PROJECTED."""
    coordinates: Matrix
    fitted: Flags
    """True for the memories that UMAP itself placed."""


def laid_out(job: Job) -> Layout:
    """Computes the layout of a job's memories."""
    vectors = vectors_of(job.vectors, job.dimension)
    before = np.frombuffer(job.coordinates, dtype=np.float32).reshape(-1, 2)
    placement = place(vectors, job.shown, before, np.frombuffer(job.fitted, dtype=np.bool_))
    clusters = cluster(vectors[: job.shown], np.array(job.clusters, dtype=np.intp))
    texts = count_words(msgspec.json.decode(job.texts, type=list[tuple[str, str]]))
    if not np.isfinite(placement.coordinates).all():
        raise ValueError("UMAP gave coordinates that are no numbers")
    return Layout(
        mode=placement.mode,
        coordinates=placement.coordinates.astype(np.float32).tobytes(),
        fitted=placement.fitted.tobytes(),
        clusters=clusters.tolist(),
        words=distinctive(texts, clusters.tolist()),
        islands=_islands(placement.coordinates, clusters, texts),
    )


def _islands(coordinates: Matrix, clusters: _Numbers, texts: Sequence[Counted]) -> list[Island]:
    names = number_dense_parts(coordinates, clusters)
    inside = np.flatnonzero(names >= 0)
    words = distinctive([texts[place] for place in inside.tolist()], names[inside].tolist())
    islands = []
    for name, found in enumerate(words):
        members = np.flatnonzero(names == name)
        most = int(np.bincount(clusters[members]).argmax())
        islands.append(Island(most, middle_of(coordinates, members), len(members), found))
    return sorted(islands, key=lambda island: -island.size)


def vectors_of(sent: bytes, dimension: int) -> Matrix:
    """Decodes concatenated `halfvec`s in pgvector's binary format: a header of four bytes, then big-endian halves."""
    rows = np.frombuffer(sent, dtype=">u2").reshape(-1, dimension + 2)[:, 2:]
    return np.ascontiguousarray(rows).view(">f2").astype(np.float32)


def place(vectors: Matrix, shown: int, before: Matrix, fitted: Flags) -> Placement:
    """Lays out the first `shown` rows; places of `before` that are not NaN stay, if enough anchors hold the map."""
    known = ~np.isnan(before[:, 0])
    new = ~known[:shown]
    anchors = np.flatnonzero(known & fitted)
    if not new.any():
        return Placement(PROJECTED, before[:shown], fitted[:shown])
    if not holds(vectors[anchors], shown):
        return fresh(vectors[:shown])
    coordinates = before[:shown].copy()
    coordinates[new] = place_new_memories(vectors[anchors], before[anchors], vectors[:shown][new])
    return Placement(PROJECTED, coordinates, fitted[:shown] & ~new)


def holds(anchors: Matrix, shown: int) -> bool:
    """Tells if these anchors suffice for a map of so many memories."""
    return len(anchors) >= max(LEAST_FOR_UMAP, _LEAST_ANCHORED * shown) and not _all_equal(anchors)


def fresh(vectors: Matrix) -> Placement:
    """Computes a new layout by UMAP; memories that are too few or all equal form a sunflower."""
    count = len(vectors)
    if count < LEAST_FOR_UMAP or _all_equal(vectors):
        return Placement(COMPUTED, sunflower(count), np.zeros(count, dtype=np.bool_))
    known: dict[str, Any] = {"precomputed_knn": neighbours_within(vectors)} if count >= EXACT_FROM else {}
    with _quiet():
        coordinates = _umap(**known).fit_transform(vectors)
    return Placement(COMPUTED, close_gaps(coordinates), np.ones(count, dtype=np.bool_))


def sunflower(count: int) -> Matrix:
    """Places point i at the radius √(i + ½) and i golden angles, like a sunflower's seeds: none hides another."""
    places = np.arange(count, dtype=np.float64)
    radius, angle = np.sqrt(places + 0.5), places * _GOLDEN_ANGLE
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)


def place_new_memories(anchors: Matrix, places: Matrix, new: Matrix) -> Matrix:
    """Places new memories on a map whose anchors keep their places.

    UMAP is fitted to the anchors and their places in zero epochs, and then transforms the new memories. The result is
    that of a stored reducer, and none needs to be stored (docs/adr/0011).
    """
    chosen = chosen_anchors(anchors, new)
    held = places[chosen].copy()
    with _quiet():
        reducer = _umap(n_epochs=0, init=held.copy())
        reducer.fit(anchors[chosen])
        reducer.embedding_ = held
        reducer.n_epochs = None
        return np.asarray(reducer.transform(new), dtype=np.float32)


def chosen_anchors(anchors: Matrix, new: Matrix) -> _Numbers:
    """Chooses the nearest anchors of each new memory, which attract it, and evenly others, which repel it."""
    count = min(NEIGHBOURS, len(anchors))
    near = np.unique(neighbours(new, anchors, count)[0])
    rest = np.setdiff1d(np.arange(len(anchors)), near)
    chosen = np.union1d(near, _evenly(rest, FEW_ANCHORS))
    return _evenly(chosen, MOST_ANCHORS)


def _evenly(items: _Numbers, most: int) -> _Numbers:
    if len(items) <= most:
        return items
    return items[np.linspace(0, len(items) - 1, most).astype(np.intp)]


def neighbours_within(vectors: Matrix) -> tuple[_Numbers, Matrix]:
    """Finds the nearest neighbours of each vector, itself first, as UMAP expects them."""
    indices, distances = neighbours(vectors, vectors, NEIGHBOURS + 1)
    for row, found in enumerate(indices):
        # UMAP takes the first neighbour for the vector itself, but any of several equal vectors can come first.
        itself = np.flatnonzero(found == row)
        last = int(itself[0]) if len(itself) else NEIGHBOURS
        indices[row, 1 : last + 1], distances[row, 1 : last + 1] = found[:last].copy(), distances[row, :last].copy()
        indices[row, 0], distances[row, 0] = row, 0
    return indices[:, :NEIGHBOURS], distances[:, :NEIGHBOURS]


def neighbours(asking: Matrix, among: Matrix, count: int) -> tuple[_Numbers, Matrix]:
    """Finds the `count` nearest of `among` for each row, exactly, nearest first, with their Euclidean distances."""
    search = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(among.astype(np.float64))
    distances, indices = search.kneighbors(asking.astype(np.float64))
    return indices.astype(np.intp), distances.astype(np.float32)


def cluster(vectors: Matrix, before: _Numbers) -> _Numbers:
    """Clusters the memories. `before` holds their earlier clusters (-1: none), whose members and numbers stay."""
    count = min(_MOST_CLUSTERS, max(1, len(vectors) // _MEMORIES_A_CLUSTER))
    if count == 1:
        return np.zeros(len(vectors), dtype=np.intp)
    with _quiet():
        found = KMeans(count, random_state=_SEED, n_init=10).fit(vectors)
        if (before >= 0).any():
            held = KMeans(count, init=_centres(vectors, before, count), n_init=1).fit(vectors)
            found = held if held.inertia_ <= _HELD * found.inertia_ else found
    return number_clusters(found.labels_.astype(np.intp), before)


def _centres(vectors: Matrix, before: _Numbers, count: int) -> Matrix:
    """Returns the centres of the largest earlier clusters, and then the vectors that are farthest from all centres."""
    names, sizes = np.unique(before[before >= 0], return_counts=True)
    largest = names[np.argsort(-sizes, kind="stable")][:count]
    centres = [vectors[before == name].mean(axis=0) for name in largest]
    while len(centres) < count:
        centres.append(vectors[neighbours(vectors, np.stack(centres), 1)[1][:, 0].argmax()])
    return np.stack(centres)


def number_clusters(found: _Numbers, before: _Numbers) -> _Numbers:
    """Numbers clusters from 0: those that share members with an earlier cluster keep its number, others follow."""
    _, compact, sizes = np.unique(found, return_inverse=True, return_counts=True)
    names = _names(compact, before, sizes)
    free = iter(sorted(set(range(len(sizes))) - set(names.values())))
    for place in np.lexsort((np.unique(compact, return_index=True)[1], -sizes)):
        if place not in names:
            names[place] = next(free)
    return np.array([names[place] for place in compact], dtype=np.intp)


def _names(compact: _Numbers, before: _Numbers, sizes: _Numbers) -> dict[int, int]:
    """Returns the earlier number of each cluster that has one, so that the most members keep theirs."""
    shared = np.zeros((len(sizes), len(sizes)), dtype=np.intp)
    kept = (before >= 0) & (before < len(sizes))
    np.add.at(shared, (compact[kept], before[kept]), 1)
    pairs = zip(*linear_sum_assignment(-shared), strict=True)
    return {int(place): int(name) for place, name in pairs if shared[place, name]}


def _all_equal(vectors: Matrix) -> bool:
    return bool((vectors == vectors[:1]).all())


def _umap(**options: Any) -> Any:  # noqa: ANN401 - UMAP has no types
    from app.insight.map.reducer import UMAP  # noqa: PLC0415 - takes seconds, and few memories need no UMAP

    return UMAP(n_components=2, random_state=_SEED, low_memory=True, **options)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences UMAP's warnings of single threads and few neighbours, and KMeans' of equal vectors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
