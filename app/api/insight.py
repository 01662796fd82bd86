"""`GET /api/graph`, `POST /api/novelty`: the map of memories, and how much texts add to what is stored."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, get, post
from litestar.datastructures import State
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct, field

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.api.schemas import converted
from app.insight.map.project import FEW, MOST, graph
from app.insight.map.values import Point, Shown
from app.insight.novelty import LONGEST_RESULT, MOST_RESULTS, novelty

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
    """The beginning of its text for a memory without a title."""
    kind: str
    task_type: str
    run_id: str | None
    quality: int
    final_score: float | None
    tags: Sequence[str]
    occurred_at: datetime | None
    created_at: datetime


class ClusterView(Struct, frozen=True):
    """Memories that are near each other in meaning."""

    number: int = field(name="id")
    terms: Sequence[str]
    """The words that set its members apart, the most distinctive first."""
    size: int


class GraphView(Struct, frozen=True):
    """A map of memories: near in meaning is near on the map."""

    nodes: Sequence[NodeView]
    clusters: Sequence[ClusterView]
    fingerprint: str
    """A hash of the memories and their texts; ratings do not change it."""
    computed_at: datetime | None
    mode: Literal["computed", "stored", "projected"]
    projected: int
    """The number of nodes that were placed into an older map; `refresh=true` computes another one for all."""
    reason: str
    """The reason why memories are missing; empty where none is."""


class GraphController(Controller):
    """Shows the map of a workspace."""

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
            workspace=await context.workspace(workspace),
            kind=kind,
            limit=limit,
            refresh=refresh,
        )
        context.metrics.graphs.labels(found.mode).inc()
        return converted(found, GraphView, nodes=[_node(memory, point) for memory, point in found.nodes])


def _node(memory: Shown, point: Point) -> NodeView:
    """Field by field: a map has thousands of nodes, and `converted` from two values takes 7 µs each instead of 0.2."""
    return NodeView(
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


class NoveltyInput(Struct, forbid_unknown_fields=True):
    """Texts to be compared with what is stored."""

    results: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=LONGEST_RESULT)]], Meta(min_length=1, max_length=MOST_RESULTS)
    ]
    task: Annotated[
        str,
        Meta(
            max_length=20_000,
            description="what the texts were written for; its words, numbers and names are known, and count neither for"
            " a text nor against it",
        ),
    ] = ""


class NearestView(Struct, frozen=True):
    """A memory that a text was compared with."""

    memory_id: UUID = field(name="id")
    title: str
    similarity: float


class ResultNoveltyView(Struct, frozen=True):
    """The novelty of one text."""

    novelty: float
    nearest: Sequence[NearestView]
    passages: int
    """The number of passages that the text has."""
    compared: int
    """The number of them that were compared, evenly spread over the text."""


class NoveltyView(Struct, frozen=True):
    """The novelty of texts beyond what is stored: 0 they add nothing, 1 everything."""

    novelty: float
    results: Sequence[ResultNoveltyView]
    path: str
    """`vector` or `lexical`: how they were compared."""
    degraded: str


class NoveltyController(Controller):
    """Says how new texts are."""

    path = "/api"
    tags = ("novelty",)

    @post("/novelty", status_code=200, responses=PROBLEMS)
    async def novelty(
        self, state: State, data: JSONBody[NoveltyInput], workspace: WorkspaceHeader = None
    ) -> NoveltyView:
        """How much each text adds beyond what is stored, with the nearest memories."""
        context = context_of(state)
        found = await novelty(
            context.database,
            context.opened.provider,
            workspace=await context.workspace(workspace),
            task=data.task,
            results=data.results,
        )
        return converted(found, NoveltyView)
