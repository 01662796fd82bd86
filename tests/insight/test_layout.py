"""Tests of places and clusters, computed in the tests' own process."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.models.protocols import Matrix
from app.insight.map import layout
from app.insight.map.layout import Job, cluster, lay_out, place, vectors_of
from tests.insight.seeding import TOPICS
from tests.insight.seeding import vectors_of as topic_vectors

TOPIC_OF = [number % len(TOPICS) for number in range(80)]
NAMES = [list(TOPICS)[number] for number in TOPIC_OF]


@pytest.fixture(scope="module")
def vectors() -> Matrix:
    """Makes vectors of four topics, alternating."""
    return topic_vectors(NAMES)


def sent(rows: Matrix) -> bytes:
    header = rows.shape[1].to_bytes(2, "big") + b"\0\0"
    return b"".join(header + row.astype(">f2").tobytes() for row in rows)


def test_halves_are_read_as_the_database_sends_them() -> None:
    rows = np.array([[1, -0.5, 0.25], [0, 2, 3]], dtype=np.float32)
    assert vectors_of(sent(rows), 3).tolist() == rows.tolist()


def test_umap_is_compiled_for_one_thread_and_only_where_it_is_called(vectors: Matrix) -> None:
    place(vectors[:8])
    from pynndescent.rp_trees import tau_rand_int  # type: ignore[import-untyped]  # noqa: PLC0415 - takes seconds
    from umap.umap_ import compute_membership_strengths  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    assert tau_rand_int.signatures == []
    assert not compute_membership_strengths.targetoptions["parallel"]


def test_topics_stand_apart_and_the_same_memories_have_the_same_places(vectors: Matrix) -> None:
    found = place(vectors)
    away = np.linalg.norm(found[:, None] - found[None], axis=2) + 1e9 * np.eye(len(found))
    nearest = np.argsort(away, axis=1)[:, :3]
    assert np.mean([TOPIC_OF[other] == TOPIC_OF[row] for row, near in enumerate(nearest) for other in near]) > 0.95
    assert np.array_equal(place(vectors), found)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 15, 16, 17])
def test_few_memories_have_a_place_of_their_own(vectors: Matrix, count: int) -> None:
    found = place(vectors[:count])
    assert np.isfinite(found).all()
    assert len(np.unique(found, axis=0)) == count
    assert set(cluster(vectors[:count]).tolist()) == set(range(max(1, min(8, count // 3))))


def test_equal_vectors_do_not_hide_each_other(vectors: Matrix) -> None:
    same = np.repeat(vectors[:1], 40, axis=0)
    assert len(np.unique(place(same), axis=0)) == 40
    assert set(cluster(same).tolist()) == {0}


@given(st.integers(min_value=1, max_value=200))
def test_no_seed_of_a_sunflower_hides_another(count: int) -> None:
    assert len(np.unique(layout._sunflower(count).round(3), axis=0)) == count


def test_the_largest_cluster_is_0(vectors: Matrix) -> None:
    found = cluster(vectors[[place for place, topic in enumerate(TOPIC_OF) if topic or place < 8]]).tolist()
    sizes = [found.count(number) for number in range(len(set(found)))]
    assert sizes == sorted(sizes, reverse=True)


def test_a_label_stands_on_a_member_of_its_cluster(vectors: Matrix) -> None:
    texts = [("english", TOPICS[name]) for name in NAMES[:12]]
    found = lay_out(Job(vectors.shape[1], sent(vectors[:12]), texts))
    members = list(zip(found.xs, found.ys, found.members, strict=True))
    assert sum(item.size for item in found.clusters) == 12
    for number, item in enumerate(found.clusters):
        assert (item.x, item.y, number) in members
        topic = next(NAMES[at] for at, own in enumerate(found.members) if own == number)
        assert item.words[0][0] in TOPICS[topic]
