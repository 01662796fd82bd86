"""`GET /api/graph`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, get
from litestar.datastructures import State
from litestar.params import QueryParameter
from msgspec import Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.insight.map.project import FEW, MOST, graph
from app.insight.map.values import Cluster, Graph, Point, Shown

Limit = Annotated[int, QueryParameter(ge=1, le=MOST, description="the newest so many memories")]
KindOrAll = Annotated[
    Literal["", "observation", "chunk", "message", "cue", "note"], QueryParameter(description="empty: every kind")
]
Refresh = Annotated[bool, QueryParameter(description="another map, though the stored one would do")]


class NodeView(Struct, frozen=True):
    """A memory on the map."""

    id: UUID
    x: float
    y: float
    cluster: int
    fitted: bool
    """False where it was placed into an older map, or the map is too small for UMAP."""
    title: str
    """Of a memory without one, the beginning of its text."""
    kind: str
    task_type: str
    run_id: str | None
    quality: int
    final_score: float | None
    tags: Sequence[str]
    occurred_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, memory: Shown, point: Point) -> "NodeView":
        """The view of a memory at its place."""
        return cls(
            id=memory.memory_id,
            x=point.x,
            y=point.y,
            cluster=point.cluster,
            fitted=point.fitted,
            title=memory.title,
            kind=memory.kind,
            task_type=memory.task_type,
            run_id=memory.run_id,
            quality=memory.quality,
            final_score=memory.final_score,
            tags=memory.tags,
            occurred_at=memory.occurred_at,
            created_at=memory.created_at,
        )


class ClusterView(Struct, frozen=True):
    """Memories that are near each other in meaning."""

    id: int
    terms: Sequence[str]
    """The words that set its members apart, the most distinctive first."""
    size: int

    @classmethod
    def of(cls, cluster: Cluster) -> "ClusterView":
        """The view of a cluster."""
        return cls(id=cluster.number, terms=cluster.terms, size=cluster.size)


class GraphView(Struct, frozen=True):
    """A map of memories: near in meaning is near on the map."""

    nodes: Sequence[NodeView]
    clusters: Sequence[ClusterView]
    fingerprint: str
    """Of the memories and their texts; ratings do not change it."""
    computed_at: datetime | None
    mode: Literal["computed", "stored", "projected"]
    projected: int
    """Nodes that were placed into an older map; `refresh=true` computes another one for all."""
    reason: str
    """Why memories are missing; empty where none is."""

    @classmethod
    def of(cls, found: Graph) -> "GraphView":
        """The view of a graph."""
        shared = {name: getattr(found, name) for name in ("fingerprint", "computed_at", "mode", "projected", "reason")}
        return cls(
            nodes=[NodeView.of(memory, point) for memory, point in found.nodes],
            clusters=[ClusterView.of(cluster) for cluster in found.clusters],
            **shared,
        )


class GraphController(Controller):
    """The map of a workspace."""

    path = "/api"
    tags = ("graph",)

    @get("/graph", responses=PROBLEMS)
    async def graph(
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        kind: KindOrAll = "",
        limit: Limit = FEW,
        refresh: Refresh = False,  # noqa: FBT002 - a query parameter
    ) -> GraphView:
        """The newest memories in two dimensions, coloured by cluster. The first time it takes a while."""
        context = context_of(state)
        services = context.opened
        found = await graph(
            services.database,
            services.provider,
            services.layouts,
            workspace=context.workspace(workspace),
            kind=kind,
            limit=limit,
            refresh=refresh,
        )
        context.metrics.graphs.labels(found.mode).inc()
        return GraphView.of(found)
