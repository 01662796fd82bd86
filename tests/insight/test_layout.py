"""Tests of places and clusters, computed in the tests' own process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.foundation.models.protocols import Matrix
from app.insight.map import layout
from app.insight.map.layout import (
    Placement,
    chosen_anchors,
    close_gaps,
    cluster,
    fresh,
    holds,
    neighbours,
    neighbours_within,
    number_clusters,
    place,
    place_new_memories,
    sunflower,
    vectors_of,
)
from app.insight.map.process import COMPUTED, PROJECTED
from tests.insight.seeding import TOPICS
from tests.insight.seeding import vectors_of as topic_vectors

TOPIC_OF = [number % len(TOPICS) for number in range(80)]
NAMES = [list(TOPICS)[number] for number in TOPIC_OF]
small = st.integers(min_value=0, max_value=7)


@pytest.fixture(scope="module")
def vectors() -> Matrix:
    """Makes vectors of four topics, alternating."""
    return topic_vectors(NAMES)


@pytest.fixture(scope="module")
def fitted(vectors: Matrix) -> Placement:
    """Computes the layout of the vectors."""
    return fresh(vectors)


def nowhere(count: int) -> Matrix:
    return np.full((count, 2), np.nan, dtype=np.float32)


def test_halves_are_read_as_the_database_sends_them() -> None:
    header = (3).to_bytes(2, "big") + b"\0\0"
    rows = np.array([[1, -0.5, 0.25], [0, 2, 3]], dtype=np.float32)
    sent = b"".join(header + row.astype(">f2").tobytes() for row in rows)
    assert vectors_of(sent, 3).tolist() == rows.tolist()


def test_a_layout_is_umaps_own_with_its_islands_gathered(vectors: Matrix, fitted: Placement) -> None:
    from umap import UMAP  # type: ignore[import-untyped]  # noqa: PLC0415 - takes seconds

    with layout._quiet():
        expected = UMAP(n_components=2, random_state=42, low_memory=True).fit_transform(vectors)
    assert np.array_equal(fitted.coordinates, close_gaps(expected))
    assert fitted.mode == COMPUTED
    assert fitted.fitted.all()


@pytest.mark.usefixtures("fitted")
def test_umap_is_compiled_for_one_thread_and_only_where_it_is_called() -> None:
    from pynndescent.rp_trees import tau_rand_int  # type: ignore[import-untyped]  # noqa: PLC0415 - takes seconds
    from umap.umap_ import compute_membership_strengths  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    assert tau_rand_int.signatures == []
    assert not compute_membership_strengths.targetoptions["parallel"]


def test_topics_stand_apart(fitted: Placement) -> None:
    nearest = neighbours(fitted.coordinates, fitted.coordinates, 4)[0][:, 1:]
    assert np.mean([TOPIC_OF[other] == TOPIC_OF[row] for row, found in enumerate(nearest) for other in found]) > 0.95


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_too_few_for_umap_stand_on_a_sunflower(vectors: Matrix, count: int) -> None:
    found = fresh(vectors[:count])
    assert np.array_equal(found.coordinates, sunflower(count))
    assert not found.fitted.any()
    assert cluster(vectors[:count], np.full(count, -1)).tolist() == [0] * count


@pytest.mark.parametrize("count", [4, 5, 6, 15, 16, 17])
def test_few_memories_have_a_layout(vectors: Matrix, count: int) -> None:
    found = fresh(vectors[:count])
    assert np.isfinite(found.coordinates).all()
    assert found.fitted.all()
    assert len(set(cluster(vectors[:count], np.full(count, -1)).tolist())) <= max(1, count // 3)


def test_identical_vectors_stand_on_a_sunflower(vectors: Matrix) -> None:
    same = np.repeat(vectors[:1], 40, axis=0)
    assert np.array_equal(fresh(same).coordinates, sunflower(40))
    assert set(cluster(same, np.full(40, -1)).tolist()) == {0}


def test_a_few_distinct_vectors_among_many(vectors: Matrix) -> None:
    found = fresh(np.repeat(vectors[:2], 20, axis=0))
    assert np.isfinite(found.coordinates).all()


@given(st.integers(min_value=0, max_value=200))
def test_no_seed_of_a_sunflower_hides_another(count: int) -> None:
    points = sunflower(count)
    assert points.shape == (count, 2)
    assert len(np.unique(points.round(3), axis=0)) == count


def test_who_has_a_place_keeps_it(vectors: Matrix, fitted: Placement) -> None:
    before = np.concatenate([nowhere(20), fitted.coordinates[20:]])
    known = np.array([False] * 20 + [True] * 60)
    found = place(vectors, 80, before, known)
    assert found.mode == PROJECTED
    assert np.array_equal(found.coordinates[20:], fitted.coordinates[20:])
    assert np.array_equal(found.fitted, known)
    for row in range(20):
        distances = np.linalg.norm(fitted.coordinates[20:] - found.coordinates[row], axis=1)
        assert TOPIC_OF[20 + int(distances.argmin())] == TOPIC_OF[row]


def test_a_projection_is_what_the_reducer_itself_would_answer(vectors: Matrix) -> None:
    with layout._quiet():
        reducer = layout._umap().fit(vectors[:60])
        expected = reducer.transform(vectors[60:])
    assert np.array_equal(place_new_memories(vectors[:60], reducer.embedding_, vectors[60:]), expected)


def test_what_is_not_shown_holds_the_map_in_place(vectors: Matrix, fitted: Placement) -> None:
    shown = np.concatenate([vectors[:10], vectors[10:]])
    before = np.concatenate([nowhere(10), fitted.coordinates[10:]])
    found = place(shown, 10, before, ~np.isnan(before[:, 0]))
    assert found.mode == PROJECTED
    assert found.coordinates.shape == (10, 2)
    assert not found.fitted.any()


def test_nothing_new_is_nothing_to_do(vectors: Matrix) -> None:
    before = sunflower(10)
    found = place(vectors[:10], 10, before, np.zeros(10, dtype=np.bool_))
    assert (found.mode, found.coordinates.tolist()) == (PROJECTED, before.tolist())


def test_a_map_that_has_too_little_left_is_made_anew(vectors: Matrix, fitted: Placement) -> None:
    before = np.concatenate([nowhere(70), fitted.coordinates[70:]])
    found = place(vectors, 80, before, ~np.isnan(before[:, 0]))
    assert found.mode == COMPUTED
    assert np.array_equal(found.coordinates, fitted.coordinates)


def test_what_holds_a_map(vectors: Matrix) -> None:
    assert holds(vectors[:20], 80)
    assert not holds(vectors[:19], 80)
    assert not holds(vectors[:3], 3)
    assert not holds(np.repeat(vectors[:1], 20, axis=0), 20)


def test_the_nearest_anchors_are_taken_along(vectors: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "FEW_ANCHORS", 5)
    new = topic_vectors(["harbour"], seed=9)
    chosen = chosen_anchors(vectors, new)
    assert len(chosen) == 20
    assert set(neighbours(new, vectors, 15)[0][0]) <= set(chosen)
    monkeypatch.setattr(layout, "MOST_ANCHORS", 7)
    assert len(chosen_anchors(vectors, new)) == 7


@settings(deadline=None)
@given(st.integers(min_value=2, max_value=40), st.integers(min_value=1, max_value=40), small)
def test_neighbours_are_the_nearest(among: int, asking: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    points, questions = random.normal(size=(among, 5)), random.normal(size=(asking, 5))
    count = min(3, among)
    indices, distances = neighbours(questions.astype(np.float32), points.astype(np.float32), count)
    expected = np.sort(np.linalg.norm(questions[:, None] - points[None], axis=2), axis=1)[:, :count]
    assert np.allclose(distances, expected, atol=1e-4)
    assert np.allclose(np.linalg.norm(questions[:, None] - points[indices], axis=2), expected, atol=1e-4)


def test_each_is_its_own_nearest_neighbour_even_among_equals(vectors: Matrix) -> None:
    doubled = np.concatenate([np.repeat(vectors[:1], 30, axis=0), vectors])
    indices, distances = neighbours_within(doubled)
    assert indices[:, 0].tolist() == list(range(len(doubled)))
    assert all(len(set(found)) == layout.NEIGHBOURS for found in indices.tolist())
    assert (np.diff(distances, axis=1) >= 0).all()


def test_exact_neighbours_serve_a_large_layout(vectors: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "EXACT_FROM", 10)
    indices, distances = neighbours_within(vectors)
    assert np.array_equal(indices, neighbours(vectors, vectors, layout.NEIGHBOURS)[0])
    assert np.allclose(distances[:, 0], 0)
    assert np.isfinite(fresh(vectors).coordinates).all()


def test_clusters_are_the_topics(vectors: Matrix) -> None:
    found = cluster(vectors[:12], np.full(12, -1))
    assert len({(topic, int(number)) for topic, number in zip(TOPIC_OF[:12], found, strict=True)}) == 4
    assert len(set(cluster(vectors, np.full(80, -1)).tolist())) == 8


def test_memories_keep_their_clusters_when_a_tenth_more_come() -> None:
    dice = np.random.default_rng(4)
    spread = np.concatenate([dice.normal(centre, 1.0, size=(30, 16)) for centre in dice.normal(size=(6, 16))])
    vectors = dice.permutation(spread).astype(np.float32)
    before = cluster(vectors[:164], np.full(164, -1))
    found = cluster(vectors, np.concatenate([before, np.full(16, -1)]))
    assert np.mean(found[:164] == before) > 0.97
    fresh_ones = number_clusters(cluster(vectors, np.full(180, -1)), np.concatenate([before, np.full(16, -1)]))
    assert np.mean(fresh_ones[:164] == before) < 0.9


def test_a_new_topic_gets_a_cluster_of_its_own(vectors: Matrix) -> None:
    old = np.flatnonzero(np.array(TOPIC_OF) != 3)[:24]
    before = cluster(vectors[old], np.full(24, -1))
    new = np.flatnonzero(np.array(TOPIC_OF) == 3)[:8]
    found = cluster(vectors[np.concatenate([old, new])], np.concatenate([before, np.full(8, -1)]))
    assert not set(found[:24]) & set(found[24:])


def test_clusters_keep_their_numbers_when_memories_come(vectors: Matrix) -> None:
    before = cluster(vectors[:12], np.full(12, -1))
    turned = (before + 1) % 4
    found = cluster(vectors[:14], np.concatenate([turned, [-1, -1]]))
    assert found[:12].tolist() == turned.tolist()


@given(st.lists(st.tuples(small, st.integers(min_value=-1, max_value=9)), max_size=40))
def test_numbers_are_a_renaming_from_0(pairs: list[tuple[int, int]]) -> None:
    found = np.array([pair[0] for pair in pairs], dtype=np.intp)
    names = number_clusters(found, np.array([pair[1] for pair in pairs], dtype=np.intp)).tolist()
    assert set(names) == set(range(len(set(found.tolist()))))
    assert len(set(zip(found.tolist(), names, strict=True))) == len(set(names))


@given(st.lists(small, min_size=1, max_size=40))
def test_without_earlier_ones_the_largest_cluster_is_0(found: list[int]) -> None:
    names = number_clusters(np.array(found, dtype=np.intp), np.full(len(found), -1)).tolist()
    sizes = [names.count(number) for number in range(len(set(names)))]
    assert sizes == sorted(sizes, reverse=True)
