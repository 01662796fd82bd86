"""What a map of memories is."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

Known = tuple[UUID, bytes]
"""A memory and the hash of its text: with another text it is to be placed anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A memory of the map, without its place."""

    memory_id: UUID
    content_hash: bytes
    kind: str
    title: str
    """Of a memory without one, the beginning of its text."""
    task_type: str
    """Of its observation or its run; "" where neither is known."""
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
    """Whether UMAP itself placed it, and not a later projection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Memories that are near each other in meaning."""

    number: int
    terms: tuple[str, ...]
    """The most distinctive words of its members, best first."""
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Memories and their places, newest first."""

    nodes: tuple[tuple[Shown, Point], ...]
    clusters: tuple[Cluster, ...]
    fingerprint: str
    computed_at: datetime | None
    """When the map itself was computed; a projection leaves it. None where there is none."""
    mode: str
    """`computed`, `projected` or `stored`."""
    projected: int = 0
    """How many of the memories were placed into an older map."""
    reason: str = ""
    """Why memories are missing; "" where none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLayout:
    """A layout as it is kept, without its points."""

    kind: str
    node_limit: int
    fingerprint: bytes
    model: str
    clusters: tuple[Cluster, ...]
    computed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a layout is computed from."""

    ids: tuple[UUID, ...]
    """Of the memories that are shown, then of those that hold the map in place."""
    vectors: bytes
    """In the order of the ids, as pgvector sends them."""
    texts: bytes
    """JSON: language and beginning of the text of each that is shown."""
