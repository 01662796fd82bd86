"""The values of a map; makes a job for the layout process from stored data, and a map from its answer. Pure."""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from app.insight.map.process import COMPUTED, Job, Layout
from app.storage.index.models import StoredModel

_STORED = "stored"
"""Origin of a map whose stored layout is that of exactly its memories; others are COMPUTED or PROJECTED."""
_VERSION = b"2"
"""Version of the computation. It is part of the fingerprint, so that no map of an older service is shown."""
_DECIMALS = 4
"""Decimal places of a coordinate; a map is some 30 units wide."""
_NOWHERE = (math.nan, math.nan)


Known = tuple[UUID, bytes]
"""A memory's id and the hash of its text; a changed text gets a new place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMemory:
    """A memory on the map, without its place."""

    memory_id: UUID
    content_hash: bytes
    kind: str
    title: str
    """The memory's title, or the beginning of its text."""
    task_type: str
    """Task type of its observation or its run; "" if neither has one."""
    run_id: str | None
    quality: int
    final_score: float | None
    tags: tuple[str, ...]
    occurred_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The place of a memory."""

    x: float
    y: float
    cluster: int
    fitted: bool
    """True if UMAP itself placed it, False if a later projection did."""


Nodes = tuple[tuple[ShownMemory, Point], ...]
"""Memories with their places, newest first."""


Terms = tuple[str, ...]
"""The most distinctive words of some memories, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Words for an island of the map."""

    x: float
    y: float
    terms: Terms
    size: int
    """Number of the island's memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A group of memories of similar meaning."""

    number: int
    terms: Terms
    """The most distinctive words of its members, best first."""
    size: int
    """Number of its members."""
    labels: tuple[Label, ...] = ()
    """The labels of the islands that most of its members are in, the largest first; none if other clusters have more
    members in these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories and their places, newest first."""

    nodes: Nodes
    clusters: tuple[Cluster, ...]
    fingerprint: str
    computed_at: datetime | None
    """The moment at which UMAP was fitted; a projection does not change it. None for an empty map."""
    mode: str
    """COMPUTED, PROJECTED or _STORED."""
    projected: int = 0
    """Number of memories that a projection placed into an older map; 0 if UMAP placed none."""
    reason: str = ""
    """The reason why memories are missing; "" if the map is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLayout:
    """A stored layout."""

    kind: str
    node_limit: int
    fingerprint: bytes
    model: str
    clusters: tuple[Cluster, ...]
    computed_at: datetime
    places: Mapping[Known, Point]
    """The places of its memories, and of anchors that hold the map in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The stored data that a layout is computed from."""

    ids: tuple[UUID, ...]
    """The memories that are shown, then the anchors that hold the map in place."""
    vectors: bytes
    """Vectors in the order of `ids`, in pgvector's binary format."""
    texts: bytes
    """JSON list: language and beginning of the text of each memory that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The stored data for a question, read at one moment."""

    model: StoredModel | None
    shown: tuple[ShownMemory, ...]
    pending: int
    """Memories of the workspace that have no vector yet."""
    fingerprint: bytes
    layout: StoredLayout | None
    """The layout of exactly these memories, or else the latest one for the same question."""

    @property
    def missing(self) -> str:
        """The reason why memories are missing; "" if the map is complete."""
        if self.pending == 1:
            return "1 memory waits for its vector and is not shown"
        return f"{self.pending:,} memories wait for their vector and are not shown" if self.pending else ""


def layout_key(item: ShownMemory) -> Known:
    """Returns the key of a memory in layouts."""
    return item.memory_id, item.content_hash


def fingerprint_of(model: str, shown: Sequence[ShownMemory]) -> bytes:
    """Hashes the input of a layout to 16 bytes: the model, and each memory's id and text, but not its ratings."""
    digest = hashlib.blake2b(_VERSION + b"\0" + model.encode(), digest_size=16)
    for identity in sorted(item.memory_id.bytes + item.content_hash for item in shown):
        digest.update(identity)
    return digest.digest()


def usable(view: View) -> Mapping[Known, Point]:
    """Returns the places among which new memories can be projected: those of a layout of the same model."""
    if view.layout is None or view.model is None or view.layout.model != view.model.name:
        return {}
    return view.layout.places


def anchors_beyond(base: Mapping[Known, Point], wanted: Sequence[Known]) -> list[Known]:
    """Selects the anchors that are not shown; selects none if every memory has its place already."""
    shown = set(wanted)
    if base.keys() >= shown:
        return []
    return [item for item, point in base.items() if point.fitted and item not in shown]


def job_of(view: View, base: Mapping[Known, Point], material: Material) -> Job:
    """Makes the job that lays out these memories."""
    assert view.model is not None, "there are no vectors without a model"  # noqa: S101
    shown = [base.get(layout_key(item)) for item in view.shown]
    # Another map and another model have other places, but the clusters' numbers stay.
    before = {} if view.layout is None else view.layout.places
    earlier = [before.get(layout_key(item)) for item in view.shown]
    by_id = {memory_id: point for (memory_id, _), point in base.items()}
    points = shown + [by_id[memory_id] for memory_id in material.ids[len(shown) :]]
    coordinates = [_NOWHERE if point is None else (point.x, point.y) for point in points]
    return Job(
        shown=len(shown),
        dimension=view.model.dimension,
        vectors=material.vectors,
        texts=material.texts,
        coordinates=np.array(coordinates, dtype=np.float32).tobytes(),
        fitted=np.array([point is not None and point.fitted for point in points], dtype=np.bool_).tobytes(),
        clusters=[-1 if point is None else point.cluster for point in earlier],
    )


def stored_graph(view: View) -> Graph | None:
    """Makes the map of a stored layout, if that is one of exactly the shown memories."""
    layout = view.layout
    if layout is None or layout.fingerprint != view.fingerprint:
        return None
    nodes = tuple((item, layout.places[layout_key(item)]) for item in view.shown)
    return _graph(view, _STORED, nodes, layout.clusters, layout.computed_at)


def graph_of(view: View, layout: Layout, terms: Sequence[Terms], *, now: datetime) -> Graph:
    """Makes the map of a computed layout; `terms` are those of its clusters and then those of its islands."""
    sizes = Counter(layout.clusters)
    points = _points_of(layout)
    labels: dict[int, list[Label]] = defaultdict(list)
    for island, words in zip(layout.islands, terms[len(layout.words) :], strict=True):
        middle = points[island.middle]
        labels[island.cluster].append(Label(x=middle.x, y=middle.y, terms=words, size=island.size))
    clusters = tuple(
        Cluster(number=number, terms=words, size=sizes[number], labels=tuple(labels[number]))
        for number, words in enumerate(terms[: len(layout.words)])
    )
    older = view.layout if layout.mode != COMPUTED else None
    nodes = tuple(zip(view.shown, points, strict=True))
    return _graph(view, layout.mode, nodes, clusters, now if older is None else older.computed_at)


def _graph(view: View, mode: str, nodes: Nodes, clusters: tuple[Cluster, ...], computed_at: datetime) -> Graph:
    fitted = sum(point.fitted for _, point in nodes)
    return Graph(
        nodes=nodes,
        clusters=clusters,
        fingerprint=view.fingerprint.hex(),
        computed_at=computed_at,
        mode=mode,
        projected=len(nodes) - fitted if fitted else 0,
        reason=view.missing,
    )


def _points_of(layout: Layout) -> list[Point]:
    """Returns the places of a layout, in the order of its job."""
    computed = np.frombuffer(layout.coordinates, dtype=np.float32).reshape(-1, 2)
    coordinates = computed.astype(np.float64).round(_DECIMALS).tolist()
    fitted = np.frombuffer(layout.fitted, dtype=np.bool_).tolist()
    return [
        Point(x=x, y=y, cluster=cluster, fitted=was_fitted)
        for (x, y), cluster, was_fitted in zip(coordinates, layout.clusters, fitted, strict=True)
    ]


def places_of(graph: Graph, base: Mapping[Known, Point]) -> dict[Known, Point]:
    """Selects the places to store: the shown ones, and those that UMAP gave to memories that may be shown again."""
    shown = {layout_key(item): point for item, point in graph.nodes}
    if graph.mode == COMPUTED:
        return shown
    ids = {memory_id for memory_id, _ in shown}
    return {**{item: point for item, point in base.items() if point.fitted and item[0] not in ids}, **shown}
