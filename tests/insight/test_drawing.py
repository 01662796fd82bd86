"""Tests of the job that is made from stored data, and of the map that is made from its answer."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.insight.map.drawing import (
    Cluster,
    Known,
    Label,
    Material,
    Point,
    ShownMemory,
    StoredLayout,
    View,
    anchors_beyond,
    fingerprint_of,
    graph_of,
    job_of,
    layout_key,
    places_of,
    stored_graph,
    usable,
)
from app.insight.map.process import COMPUTED, PROJECTED, Island, Layout
from app.storage.index.models import StoredModel

NOW = datetime(2026, 1, 2, tzinfo=UTC)
BEFORE = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = StoredModel(model_id=1, name="model", dimension=2)


def memory(number: int, *, content_hash: bytes = b"h", quality: int = 0) -> ShownMemory:
    return ShownMemory(
        memory_id=UUID(int=number),
        content_hash=content_hash,
        kind="note",
        title="",
        task_type="",
        run_id=None,
        quality=quality,
        final_score=None,
        tags=(),
        occurred_at=None,
        created_at=BEFORE,
    )


def point(number: int, *, fitted: bool = True) -> Point:
    return Point(x=number, y=-number, cluster=number % 2, fitted=fitted)


def view(*numbers: int, places: dict[Known, Point] | None = None, model: str = "model") -> View:
    shown = tuple(memory(number) for number in numbers)
    layout = StoredLayout(
        kind="", node_limit=9, fingerprint=b"f", model=model, clusters=(Cluster(number=0, terms=(), size=1),),
        computed_at=BEFORE, places=places or {},
    )  # fmt: skip
    return View(
        model=MODEL,
        shown=shown,
        pending=0,
        fingerprint=fingerprint_of("model", shown),
        layout=layout if places is not None else None,
    )


def material(*numbers: int) -> Material:
    return Material(ids=tuple(UUID(int=number) for number in numbers), vectors=b"", texts=b"[]")


def layout(mode: str, *numbers: int, fitted: bool = True) -> Layout:
    return Layout(
        mode=mode,
        coordinates=np.array([[number, -number] for number in numbers], dtype=np.float32).tobytes(),
        fitted=np.array([fitted] * len(numbers)).tobytes(),
        clusters=[number % 2 for number in numbers],
        words=[[], []],
        islands=[],
    )


def test_a_fingerprint_is_of_ids_texts_and_model() -> None:
    ours = [memory(1), memory(2)]
    same = fingerprint_of("model", [memory(2, quality=3), memory(1)])
    assert fingerprint_of("model", ours) == same
    others = [("other", ours), ("model", ours[:1]), ("model", [memory(1), memory(2, content_hash=b"i")])]
    assert len({fingerprint_of(*other) for other in others} | {same}) == 4


@given(st.sets(st.integers(min_value=0, max_value=50)))
def test_a_fingerprint_does_not_know_an_order(numbers: set[int]) -> None:
    memories = [memory(number) for number in numbers]
    assert fingerprint_of("m", memories) == fingerprint_of("m", memories[::-1])


def test_a_layout_of_another_model_is_no_base() -> None:
    places = {layout_key(memory(1)): point(1)}
    assert usable(view(1, places=places)) == places
    assert usable(view(1, places=places, model="other")) == {}
    assert usable(view(1)) == {}


def test_who_is_not_shown_holds_the_map_where_somebody_is_new() -> None:
    base = {
        layout_key(memory(1)): point(1),
        layout_key(memory(2)): point(2),
        layout_key(memory(3)): point(3, fitted=False),
    }
    assert anchors_beyond(base, [layout_key(memory(4)), layout_key(memory(1))]) == [layout_key(memory(2))]
    assert anchors_beyond(base, [layout_key(memory(1))]) == []


def test_a_job_has_the_places_of_all_who_have_one() -> None:
    base = {
        layout_key(memory(1)): point(1),
        layout_key(memory(2)): point(2, fitted=False),
        layout_key(memory(7)): point(7),
    }
    job = job_of(view(3, 2, 1, places=base), base, material(3, 2, 1, 7))
    coordinates = np.frombuffer(job.coordinates, dtype=np.float32).reshape(-1, 2)
    assert np.isnan(coordinates[0]).all()
    assert coordinates[1:].tolist() == [[2, -2], [1, -1], [7, -7]]
    assert np.frombuffer(job.fitted, dtype=np.bool_).tolist() == [False, False, True, True]
    assert (job.shown, job.dimension, job.clusters) == (3, 2, [-1, 0, 1])


def test_a_projected_map_is_as_old_as_the_one_it_was_projected_into() -> None:
    asked = view(1, 2, 3, places={layout_key(memory(1)): point(1)})
    found = graph_of(asked, layout(PROJECTED, 1, 2, 3), [("a",), ("b",)], now=NOW)
    assert (found.computed_at, found.projected) == (BEFORE, 0)
    assert found.clusters == (Cluster(number=0, terms=("a",), size=1), Cluster(number=1, terms=("b",), size=2))
    anew = graph_of(asked, layout(COMPUTED, 1, 2, 3, fitted=False), [(), ()], now=NOW)
    assert (anew.computed_at, anew.projected) == (NOW, 0)


def test_a_cluster_has_the_labels_of_its_islands() -> None:
    islands = [Island(1, 2, 5, []), Island(0, 0, 4, []), Island(1, 1, 3, [])]
    found = graph_of(
        view(1, 2, 3),
        msgspec.structs.replace(layout(COMPUTED, 1, 2, 3), islands=islands),
        [("a",), ("b",), ("c",), ("d",), ("e",)],
        now=NOW,
    )
    assert [label.terms for label in found.clusters[1].labels] == [("c",), ("e",)]
    assert found.clusters[0].labels == (Label(x=1, y=-1, terms=("d",), size=4),)


def test_another_map_keeps_the_numbers_of_clusters() -> None:
    base = {layout_key(memory(1)): point(1), layout_key(memory(2)): point(2)}
    job = job_of(view(1, 2, 3, places=base), {}, material(1, 2, 3))
    assert np.isnan(np.frombuffer(job.coordinates, dtype=np.float32)).all()
    assert job.clusters == [1, 0, -1]


def test_what_umap_placed_is_kept_though_it_is_not_shown() -> None:
    base = {
        layout_key(memory(1)): point(1),
        layout_key(memory(7)): point(7),
        layout_key(memory(8)): point(8, fitted=False),
        layout_key(memory(2, content_hash=b"another text")): point(2),
    }
    shown = graph_of(view(1, 2, places=base), layout(PROJECTED, 1, 2), [(), ()], now=NOW)
    assert {memory_id.int for memory_id, _ in places_of(shown, base)} == {1, 2, 7}
    anew = graph_of(view(1, 2, places=base), layout(COMPUTED, 1, 2), [(), ()], now=NOW)
    assert {memory_id.int for memory_id, _ in places_of(anew, base)} == {1, 2}


@given(st.floats(min_value=-1e4, max_value=1e4, width=32))
def test_a_coordinate_is_rounded(value: float) -> None:
    sent = Layout(
        mode=COMPUTED,
        coordinates=np.array([[value, value]], dtype=np.float32).tobytes(),
        fitted=b"\1",
        clusters=[0],
        words=[[]],
        islands=[],
    )
    (node,) = graph_of(view(1), sent, [()], now=NOW).nodes
    assert abs(node[1].x - value) <= 1e-4


def test_a_stored_layout_is_a_map_of_exactly_its_memories() -> None:
    asked = view(1, 2, places={layout_key(memory(1)): point(1), layout_key(memory(2)): point(2, fitted=False)})
    assert asked.layout is not None
    assert stored_graph(asked) is None
    found = stored_graph(replace(asked, layout=replace(asked.layout, fingerprint=asked.fingerprint)))
    assert found is not None
    assert (found.mode, found.computed_at, found.projected) == ("stored", BEFORE, 1)
    assert [place for _, place in found.nodes] == [point(1), point(2, fitted=False)]
