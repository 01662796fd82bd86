"""The values that make up a map of memories."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

COMPUTED, PROJECTED, STORED = "computed", "projected", "stored"
"""Origin of a layout: UMAP was fitted, new memories were placed into an older layout, or a stored one was unchanged."""

Known = tuple[UUID, bytes]
"""A memory's id and the hash of its text; a changed text gets a new place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A group of memories of similar meaning."""

    number: int
    terms: tuple[str, ...]
    """The most distinctive words of its members, best first."""
    size: int
    """Number of its members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories and their places, newest first."""

    nodes: tuple[tuple[Shown, Point], ...]
    clusters: tuple[Cluster, ...]
    fingerprint: str
    computed_at: datetime | None
    """When UMAP was fitted; a projection does not change it. None for an empty map."""
    mode: str
    """COMPUTED, PROJECTED or STORED."""
    projected: int = 0
    """Number of memories that were placed into an older map."""
    reason: str = ""
    """Why memories are missing; "" if none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLayout:
    """A stored layout without its points."""

    kind: str
    node_limit: int
    fingerprint: bytes
    model: str
    clusters: tuple[Cluster, ...]
    computed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The stored data that a layout is computed from."""

    ids: tuple[UUID, ...]
    """The memories that are shown, then the anchors that hold the map in place."""
    vectors: bytes
    """Vectors in the order of `ids`, as pgvector sends them."""
    texts: bytes
    """JSON list: language and beginning of the text of each memory that is shown."""
