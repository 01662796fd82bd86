"""Finds the islands of a map, which its labels stand on, and caps the distances between them.

UMAP keeps the distances within an island. Those between islands are an accident of its start, and can leave three small
clumps at the edges of an empty map.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]  # it has no types
from scipy.spatial import KDTree  # type: ignore[import-untyped]  # as above
from sklearn.cluster import HDBSCAN  # type: ignore[import-untyped]  # as above

from app.foundation.models.protocols import Matrix

Numbers = NDArray[np.intp]
_Places = NDArray[np.float64]

ONE_ISLAND = 4.0
"""Longest step within an island, in units of the map's spacing: the median distance of a memory to the nearest one."""
LEAST_GAP, GAP = 3.0, 0.3
"""Widest gap between an island and the nearest one: so many spacings, or this share of the smaller island's width, if
that is more. Tried on 14 stores of 12 to 1,250 memories: a share of 0.5 leaves a twentieth more of the map empty."""
_ANGLES = 60
"""Ways to turn the map that are tried: one every three degrees."""
LEAST_LABELLED, LABELLED_SHARE = 3, 60
"""Least members of an island with a label: so many, or one in so many of all memories, if that is more. One in 40 puts
the label of another topic next to a tenth more of the memories."""


def close_gaps(coordinates: Matrix) -> Matrix:
    """Moves islands towards each other to the widest gap, and turns the map so that it is low and wide.

    Again and again the smallest island moves to its nearest one and becomes a part of it. It moves by less than the
    distance between the two, so it passes no other island.
    """
    places = coordinates.astype(np.float64)
    spacing = _spacing(places)
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


def _spacing(places: _Places) -> float:
    return float(np.median(KDTree(places).query(places, 2)[0][:, 1]))


def _number_groups(places: _Places, reach: float) -> Numbers:
    """Numbers the groups of places that steps of at most `reach` connect."""
    steps = KDTree(places).sparse_distance_matrix(KDTree(places), reach, output_type="coo_matrix")
    names: Numbers = connected_components(steps, directed=False)[1].astype(np.intp)
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


def number_dense_parts(coordinates: Matrix, clusters: Numbers) -> Numbers:
    """Numbers the dense parts of the map that get a label, from 0; -1 for a memory between them.

    If the map has no more of them than clusters, the clusters get the labels.
    """
    least = max(LEAST_LABELLED, len(coordinates) // LABELLED_SHARE)
    if len(coordinates) <= least:
        return clusters
    search = HDBSCAN(min_cluster_size=least, cluster_selection_method="leaf", copy=True)
    found: Numbers = search.fit_predict(coordinates.astype(np.float64)).astype(np.intp)
    return found if found.max() > clusters.max() else clusters


def middle_of(coordinates: Matrix, members: Numbers) -> int:
    """Returns the member that is next to the members' median place."""
    places = coordinates[members]
    return int(members[np.hypot(*(places - np.median(places, axis=0)).T).argmin()])
