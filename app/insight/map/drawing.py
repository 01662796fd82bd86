"""Makes a job for the layout process from stored data, and a map from its answer. Pure."""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from app.index.models import StoredModel
from app.insight.map.process import Job, Layout
from app.insight.map.values import COMPUTED, Cluster, Graph, Known, Material, Point, Shown, StoredLayout

VERSION = b"1"
"""Version of the computation. It is part of the fingerprint, so that no map of an older service is shown."""
DECIMALS = 4
"""Decimal places of a coordinate; a map is some 30 units wide."""
NOWHERE = (math.nan, math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The stored data for a question, as of one moment."""

    model: StoredModel | None
    shown: tuple[Shown, ...]
    pending: int
    """Memories of the workspace that have no vector yet."""
    fingerprint: bytes
    layout: StoredLayout | None
    """The layout of exactly these memories, or else the latest one for the same question."""
    places: Mapping[Known, Point]
    """The places in that layout."""

    @property
    def stored(self) -> bool:
        """True if the stored layout is that of exactly these memories."""
        return self.layout is not None and self.layout.fingerprint == self.fingerprint


def known(item: Shown) -> Known:
    """Returns the key of a memory in layouts."""
    return item.memory_id, item.content_hash


def fingerprint_of(model: str, shown: Sequence[Shown]) -> bytes:
    """Hashes the input of a layout to 16 bytes: the model, and each memory's id and text, but not its ratings."""
    digest = hashlib.blake2b(VERSION + b"\0" + model.encode(), digest_size=16)
    for identity in sorted(item.memory_id.bytes + item.content_hash for item in shown):
        digest.update(identity)
    return digest.digest()


def usable(view: View) -> Mapping[Known, Point]:
    """Returns the places among which new memories can be projected: those of a layout of the same model."""
    if view.layout is None or view.model is None or view.layout.model != view.model.name:
        return {}
    return view.places


def anchors_beyond(base: Mapping[Known, Point], wanted: Sequence[Known]) -> list[Known]:
    """Selects the anchors that are not shown; none if every memory has its place already."""
    shown = set(wanted)
    if base.keys() >= shown:
        return []
    return [item for item, point in base.items() if point.fitted and item not in shown]


def job_of(view: View, base: Mapping[Known, Point], material: Material) -> Job:
    """Makes the job that lays out these memories."""
    assert view.model is not None, "there are no vectors without a model"  # noqa: S101
    shown = [base.get(known(item)) for item in view.shown]
    by_id = {memory_id: point for (memory_id, _), point in base.items()}
    points = shown + [by_id[memory_id] for memory_id in material.ids[len(shown) :]]
    coordinates = [NOWHERE if point is None else (point.x, point.y) for point in points]
    return Job(
        shown=len(shown),
        dimension=view.model.dimension,
        vectors=material.vectors,
        texts=material.texts,
        coordinates=np.array(coordinates, dtype=np.float32).tobytes(),
        fitted=np.array([point is not None and point.fitted for point in points], dtype=np.bool_).tobytes(),
        clusters=[-1 if point is None else point.cluster for point in shown],
    )


def graph_of(view: View, layout: Layout, terms: Sequence[tuple[str, ...]], *, reason: str, now: datetime) -> Graph:
    """Makes the map of a computed layout."""
    nodes = tuple(zip(view.shown, points_of(layout), strict=True))
    sizes = Counter(layout.clusters)
    older = view.layout if layout.mode != COMPUTED else None
    return Graph(
        nodes=nodes,
        clusters=tuple(Cluster(number=n, terms=terms[n], size=sizes[n]) for n in range(len(terms))),
        fingerprint=view.fingerprint.hex(),
        computed_at=now if older is None else older.computed_at,
        mode=layout.mode,
        projected=projected_of(nodes),
        reason=reason,
    )


def points_of(layout: Layout) -> list[Point]:
    """Returns the places of a layout, in the order of its job."""
    computed = np.frombuffer(layout.coordinates, dtype=np.float32).reshape(-1, 2)
    coordinates = computed.astype(np.float64).round(DECIMALS).tolist()
    fitted = np.frombuffer(layout.fitted, dtype=np.bool_).tolist()
    return [
        Point(x=x, y=y, cluster=cluster, fitted=was_fitted)
        for (x, y), cluster, was_fitted in zip(coordinates, layout.clusters, fitted, strict=True)
    ]


def projected_of(nodes: Sequence[tuple[Shown, Point]]) -> int:
    """Counts the memories that a projection placed; 0 if UMAP placed none."""
    fitted = sum(point.fitted for _, point in nodes)
    return len(nodes) - fitted if fitted else 0


def places_of(graph: Graph, base: Mapping[Known, Point]) -> dict[Known, Point]:
    """Selects the places to store: the shown ones, and those that UMAP gave to memories that may be shown again."""
    shown = {known(item): point for item, point in graph.nodes}
    if graph.mode == COMPUTED:
        return shown
    ids = {memory_id for memory_id, _ in shown}
    return {**{item: point for item, point in base.items() if point.fitted and item[0] not in ids}, **shown}
