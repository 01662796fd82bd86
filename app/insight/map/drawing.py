"""The values of a map."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from app.foundation.values import frozen


class ShownMemory(Struct, frozen=True, rename={"memory_id": "id"}):
    """A memory on the map, without its place."""

    memory_id: UUID
    kind: str
    title: str
    """The memory's title, or the beginning of its text."""
    task_type: str
    """Task type of its observation or its run; "" if neither has one."""
    verdict: str
    """The verdict of its observation; "" if it has none."""
    source: str
    """The address of its source; "" if it has none."""
    user: str
    run_id: str | None
    quality: int
    final_score: float | None
    tags: tuple[str, ...]
    occurred_at: datetime | None
    created_at: datetime


class Point(NamedTuple):
    """The place of a memory."""

    x: float
    y: float
    cluster: int


class Cluster(Struct, frozen=True, kw_only=True):
    """Memories that are near each other in meaning."""

    id: int
    terms: Sequence[str]
    """The most distinctive words of its members, best first."""
    size: int
    """The number of its members when the map was drawn."""
    x: float
    y: float
    """The place of its label: the member in its middle."""


@frozen
class DrawnMap:
    """A map as it was drawn."""

    places: Mapping[UUID, Point]
    clusters: Sequence[Cluster]
    computed_at: datetime


@frozen
class Graph:
    """Memories and their places, newest first."""

    nodes: Sequence[tuple[ShownMemory, Point]] = ()
    clusters: Sequence[Cluster] = ()
    computed_at: datetime | None = None
    """The moment at which the map was drawn. None for an empty map."""
    reason: str = ""
    """The reason why memories are missing; "" if the map is complete."""
