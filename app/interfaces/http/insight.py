"""`/api/graph`, `/api/novelty`, `/api/effect`: the map of memories, the novelty of texts, what memory did."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct, structs

from app.insight.effect.document import markdown, page
from app.insight.effect.ledger import RunSelection
from app.insight.effect.report import Report
from app.insight.map.drawing import Cluster, ShownMemory
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


class NodeView(ShownMemory, frozen=True):
    """A memory on the map."""

    x: float
    y: float
    cluster: int


class GraphView(Struct, frozen=True):
    """A map of memories: near in meaning is near on the map."""

    nodes: Sequence[NodeView]
    """Newest first."""
    clusters: Sequence[Cluster]
    computed_at: datetime | None
    """The moment at which the map was drawn. Null for an empty map."""
    reason: str
    """The reason why memories are missing; empty if the map is complete."""


@get("/api/graph", tags=["graph"], dependencies=BY_USER)
async def graph(
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
    # A map has thousands of nodes, and `convert` takes 4 µs for each.
    nodes = [NodeView(*(*structs.astuple(memory), *point)) for memory, point in found.nodes]
    return GraphView(nodes, found.clusters, found.computed_at, found.reason)


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


@ask("/api/novelty", tags=["novelty"])
async def novelty(call: ThisCall, data: JSONBody[NoveltyInput]) -> Novelty:
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


@get("/api/effect", tags=["effect"], dependencies=BY_USER)
async def effect(
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
