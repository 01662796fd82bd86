"""Tests of the islands of a map: their distances, and the labels on them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree  # type: ignore[import-untyped]
from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

from app.foundation.models.protocols import Matrix
from app.insight.map.layout import GAP, LEAST_GAP, ONE_ISLAND, close_gaps, middle_of, number_dense_parts


def clump(count: int, x: float, y: float, seed: int = 1) -> Matrix:
    """Makes places in a square of side 2."""
    places: Matrix = np.random.default_rng(seed).uniform(-1, 1, size=(count, 2)).astype(np.float32)
    return places + np.array([x, y], dtype=np.float32)


def gap(one: Matrix, other: Matrix) -> float:
    return float(KDTree(one).query(other)[0].min())


def test_islands_come_near_and_keep_their_shape() -> None:
    far = np.concatenate([clump(30, 0, 0), clump(30, 3, 40, 2), clump(30, -30, 12, 3)])
    near = close_gaps(far)
    parts = [near[:30], near[30:60], near[60:]]
    for before, after in zip((far[:30], far[30:60], far[60:]), parts, strict=True):
        assert np.allclose(pdist(before), pdist(after), atol=1e-4)
    spacing = float(np.median(KDTree(near).query(near, 2)[0][:, 1]))
    gaps = sorted(gap(parts[one], parts[other]) for one, other in ((0, 1), (0, 2), (1, 2)))
    assert ONE_ISLAND * spacing > gaps[1] > 0.9 * max(LEAST_GAP * spacing, GAP * 2)
    # Before, the islands took a thousandth of the map; now they take a third.
    assert np.prod(np.ptp(far, axis=0)) > 1_000
    assert np.prod(np.ptp(near, axis=0)) < 40


@pytest.mark.parametrize("degrees", [0, 37, 90, 161])
def test_a_map_is_as_low_as_it_can_be(degrees: int) -> None:
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    # Most memories are spread the other way, so the direction of the largest variance is a wrong one.
    places = np.concatenate(
        [clump(60, 0, 0) * np.array([1, 0.3]), np.array([[0, y] for y in np.arange(-1.5, 1.6, 0.1)])]
    )
    width, height = np.ptp(close_gaps((places @ [[cosine, sine], [-sine, cosine]]).astype(np.float32)), axis=0)
    assert width > 1.4 * height


def test_one_island_stays_as_it_is() -> None:
    places = clump(40, 7, 7)
    assert np.allclose(pdist(close_gaps(places)), pdist(places), atol=1e-5)


@pytest.mark.parametrize("count", [4, 5])
def test_equal_places_stay_together(count: int) -> None:
    places = np.repeat(np.array([[0, 0], [9, 9]], dtype=np.float32), count, axis=0)
    near = close_gaps(places)
    assert np.isfinite(near).all()
    assert np.allclose(near[0], near[count - 1])


@settings(deadline=None, max_examples=50)
@given(st.integers(min_value=0, max_value=10_000), st.integers(min_value=2, max_value=6))
def test_islands_never_meet(seed: int, count: int) -> None:
    dice = np.random.default_rng(seed)
    parts = [clump(int(dice.integers(1, 20)), 80 * dice.random(), 80 * dice.random(), seed + n) for n in range(count)]
    places = np.concatenate(parts)
    near = close_gaps(places)
    assert np.isfinite(near).all()
    least = min(pdist(places).min(), LEAST_GAP * np.median(KDTree(places).query(places, 2)[0][:, 1]))
    assert pdist(near).min() > 0.99 * least


def test_each_dense_part_gets_a_label_of_its_own() -> None:
    centres = [(4.0 * x, 4.0 * y) for x in range(4) for y in range(3)]
    places = np.concatenate([clump(20, x, y, seed) for seed, (x, y) in enumerate(centres)])
    topics = np.repeat(np.arange(12), 20)
    clusters = topics // 4
    found = number_dense_parts(places, clusters)
    inside = found >= 0
    assert inside.mean() > 0.5
    assert len(set(found[inside].tolist())) >= 12
    assert len(set(zip(found[inside].tolist(), topics[inside].tolist(), strict=True))) == found.max() + 1


def test_clusters_get_the_labels_of_a_map_with_few_islands() -> None:
    places = np.concatenate([clump(10, 0, 0), clump(10, 9, 0, 2)])
    clusters = np.arange(20) % 5
    assert number_dense_parts(places, clusters).tolist() == clusters.tolist()
    assert number_dense_parts(places[:2], clusters[:2]).tolist() == [0, 1]


def test_a_label_stands_in_the_middle() -> None:
    places = np.array([[0, 0], [10, 10], [1, 0], [2, 0], [2, 9]], dtype=np.float32)
    assert middle_of(places, np.array([0, 2, 3])) == 2
