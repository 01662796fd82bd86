"""`/api/graph`, `/api/novelty`, `/api/effect`: the map of memories, the novelty of texts, what memory did."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.insight.effect.document import markdown, page
from app.insight.effect.ledger import RunSelection
from app.insight.effect.report import Report
from app.insight.map.drawing import Cluster, Point, ShownMemory
from app.insight.map.service import FEW, MOST, MapQuestion
from app.insight.novelty import LONGEST_RESULT, MOST_RESULTS, Novelty
from app.interfaces.http.context import BY_USER, ThisCall
from app.interfaces.http.schemas import (
    Input,
    ask,
    convert,
    get,
)
from app.storage.memories.memory import NAME_LIMIT
from app.storage.tenants.workspace import User

Limit = Annotated[int, QueryParameter(ge=1, le=MOST, description="the newest so many memories")]
_KindOrAll = Annotated[
    Literal["", "observation", "chunk", "message", "cue", "note"], QueryParameter(description="empty: every kind")
]
_Refresh = Annotated[bool, QueryParameter(description="another map, though the stored one would do")]
_Sketch = Annotated[bool, QueryParameter(description="where none is stored, a rough one in moments")]


class NodeView(Struct, frozen=True):
    """A memory on the map."""

    id: UUID
    x: float
    y: float
    cluster: int
    title: str
    """The beginning of its text for a memory without a title."""
    kind: str
    task_type: str
    verdict: str
    source: str
    user: str
    run_id: str | None
    quality: int
    final_score: float | None
    tags: Sequence[str]
    occurred_at: datetime | None
    created_at: datetime


_SHOWN = attrgetter(*NodeView.__struct_fields__[4:])


class GraphView(Struct, frozen=True):
    """A map of memories: near in meaning is near on the map."""

    nodes: Sequence[NodeView]
    """Newest first."""
    clusters: Sequence[Cluster]
    computed_at: datetime | None
    """The moment at which the map was drawn. Null for an empty map."""
    reason: str
    """The reason why memories are missing; empty if the map is complete."""


class GraphController(Controller):
    """Shows the map of a workspace."""

    path = "/api"
    tags = ("graph",)

    @get("/graph", dependencies=BY_USER)
    async def graph(
        self,
        call: ThisCall,
        kind: _KindOrAll = "",
        limit: Limit = FEW,
        refresh: _Refresh = False,
        sketch: _Sketch = False,
    ) -> GraphView:
        """The newest memories in two dimensions, coloured by cluster, as they were drawn last.

        The first time it takes a while, and so it does where a tenth of them is missing.
        """
        question = MapQuestion(kind=kind, limit=limit, refresh=refresh, sketch=sketch)
        found = await call.services.maps.show(await call.tenant(), question)
        nodes = [_node(memory, point) for memory, point in found.nodes]
        return GraphView(nodes, found.clusters, found.computed_at, found.reason)


def _node(memory: ShownMemory, point: Point) -> NodeView:
    """Returns a node. A map has thousands of nodes, and `convert` takes 4 µs for each instead of 0.7 µs."""
    return NodeView(memory.memory_id, *point, *_SHOWN(memory))


_NovelText = Annotated[str, Meta(min_length=1, max_length=LONGEST_RESULT)]


class NoveltyInput(Input):
    """Texts to be compared with what is stored."""

    results: Annotated[list[_NovelText], Meta(min_length=1, max_length=MOST_RESULTS)]
    known: Annotated[
        Sequence[_NovelText],
        Meta(max_length=MOST_RESULTS, description="texts of this run so far, which are not stored"),
    ] = ()
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

    @ask("/novelty")
    async def novelty(self, call: ThisCall, data: JSONBody[NoveltyInput]) -> Novelty:
        """Measure how much each text adds beyond what is stored, with the nearest memories."""
        target = await call.asked_by(data.user).tenant()
        return await call.services.novelties.measure(target, task=data.task, results=data.results, known=data.known)


_MOST_VERSIONS = 100
Since = Annotated[datetime | None, QueryParameter(description="runs that began then or later")]
Until = Annotated[datetime | None, QueryParameter(description="runs that began before")]
_TaskType = Annotated[str, QueryParameter(description="runs of this task type; empty: of all", max_length=NAME_LIMIT)]
Versions = Annotated[
    int,
    QueryParameter(ge=2, le=_MOST_VERSIONS, description="an open P0 or P1 named of so many versions is an alert"),
]
Form = Annotated[
    Literal["json", "markdown", "html"],
    QueryParameter(
        name="format",
        description="markdown, or html with plots that needs no other file: the answer has it as `document`, too",
    ),
]
_FORMATS = {"markdown": markdown, "html": page}


class EffectView(Report, frozen=True, kw_only=True):
    """The proof for an owner: what memory did to the runs of a workspace, and what cannot be concluded."""

    document: Annotated[str, Meta(description="the report as the document that `format` names; else empty")]


class EffectController(Controller):
    """Shows what memory did to later runs."""

    path = "/api/effect"
    tags = ("effect",)

    @get("", dependencies=BY_USER)
    async def effect(
        self,
        call: ThisCall,
        since: Since = None,
        until: Until = None,
        task_type: _TaskType = "",
        versions: Versions = 3,
        form: Form = "json",
    ) -> EffectView:
        """Runs with and without history: score, cost, tokens, duration and repeated issues; and what proves nothing."""
        period = RunSelection(since, until, task_type)
        found = await call.services.effects.report(await call.tenant(), period, versions=versions)
        document = _FORMATS[form](found) if form in _FORMATS else ""
        return convert(found, EffectView, document=document)
