"""`GET /api/graph`, `POST /api/novelty`: the map of memories, and the novelty of texts."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, get, post
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.insight.map.drawing import Cluster, Graph, Point, ShownMemory
from app.insight.map.project import FEW, MOST, MapQuestion, graph
from app.insight.novelty import LONGEST_RESULT, MOST_RESULTS, Novelty, novelty
from app.interfaces.http.context import BY_USER, ThisCall
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import convert, view_of
from app.storage.tenants.workspace import User

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


_PLACE = attrgetter(*NodeView.__struct_fields__[1:5])
_SHOWN = attrgetter(*NodeView.__struct_fields__[5:])


@view_of(Cluster, number="id")
class ClusterView(Struct):
    """Memories that are near each other in meaning."""


@view_of(Graph)
class GraphView(Struct):
    """A map of memories: near in meaning is near on the map."""

    nodes: Sequence[NodeView]
    clusters: Sequence[ClusterView]
    mode: Literal["computed", "stored", "projected"]


class GraphController(Controller):
    """Shows the map of a workspace."""

    path = "/api"
    tags = ("graph",)

    @get("/graph", responses=PROBLEMS, dependencies=BY_USER)
    async def graph(
        self, call: ThisCall, kind: KindOrAll = "", limit: Limit = FEW, refresh: Refresh = False
    ) -> GraphView:
        """The newest memories in two dimensions, coloured by cluster. The first time it takes a while."""
        services = call.services
        question = MapQuestion(workspace=await call.tenant(), kind=kind, limit=limit, refresh=refresh)
        found = await graph(services.database, services.provider, services.layouts, question)
        call.metrics.graphs.labels(found.mode).inc()
        return convert(found, GraphView, nodes=[_node(memory, point) for memory, point in found.nodes])


def _node(memory: ShownMemory, point: Point) -> NodeView:
    """Returns a node. A map has thousands of nodes, and `convert` takes 4 µs for each instead of 0.7 µs."""
    return NodeView(memory.memory_id, *_PLACE(point), *_SHOWN(memory))


NovelText = Annotated[str, Meta(min_length=1, max_length=LONGEST_RESULT)]


class NoveltyInput(Struct, forbid_unknown_fields=True):
    """Texts to be compared with what is stored."""

    results: Annotated[list[NovelText], Meta(min_length=1, max_length=MOST_RESULTS)]
    known: Annotated[
        list[NovelText], Meta(max_length=MOST_RESULTS, description="texts of this run so far, which are not stored")
    ] = []
    task: Annotated[
        str,
        Meta(
            max_length=20_000,
            description="the task of the texts; its words, numbers and names are known, and count neither for"
            " a text nor against it",
        ),
    ] = ""
    user: User = ""


class NoveltyController(Controller):
    """Says how new texts are."""

    path = "/api"
    tags = ("novelty",)

    @post("/novelty", status_code=200, responses=PROBLEMS)
    async def novelty(self, call: ThisCall, data: JSONBody[NoveltyInput]) -> Novelty:
        """Measure how much each text adds beyond what is stored, with the nearest memories."""
        target, provider = await call.asked_by(data.user).tenant(), call.services.provider
        return await novelty(
            call.database, provider, workspace=target, task=data.task, results=data.results, known=data.known
        )
