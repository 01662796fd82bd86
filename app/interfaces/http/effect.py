"""`/api/effect`: what memory did to the runs of a workspace, and whether estimated effects count in its ranking."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from litestar import Controller, get, put
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.insight.effect.document import markdown, page
from app.insight.effect.report import Report
from app.insight.effect.service import ReportPeriod
from app.interfaces.http.context import BY_USER, ThisCall
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import convert, view_of
from app.storage.effects import MemoryEffect
from app.storage.memories.memory import NAME_LIMIT

_MOST_VERSIONS = 100
Since = Annotated[datetime | None, QueryParameter(description="runs that began then or later")]
Until = Annotated[datetime | None, QueryParameter(description="runs that began before")]
TaskType = Annotated[str, QueryParameter(description="runs of this task type; empty: of all", max_length=NAME_LIMIT)]
Versions = Annotated[
    int,
    QueryParameter(ge=2, le=_MOST_VERSIONS, description="an open P0 or P1 named of so many versions is an alert"),
]
Form = Annotated[Literal["markdown", "html"], QueryParameter(description="html: with plots, and no other file needed")]
_FORMATS = {"markdown": markdown, "html": page}


@view_of(MemoryEffect, memory_id="id")
class MemoryEffectView(Struct):
    """A memory with its estimated effect on the final score of later runs."""

    why: str


@view_of(Report)
class EffectView(Struct):
    """The proof for an owner: what memory did to the runs of a workspace, and what cannot be concluded."""

    helpful: Sequence[MemoryEffectView]
    harmful: Sequence[MemoryEffectView]


class EffectExportView(Struct):
    """The report as a document."""

    format: Literal["markdown", "html"]
    text: str


class EffectUse(Struct, forbid_unknown_fields=True):
    """The setting by which estimated effects count in the ranking."""

    on: Annotated[bool, Meta(description="true: memories that helped later runs rank higher, those that harmed lower")]


class EffectController(Controller):
    """Shows what memory did to later runs."""

    path = "/api/effect"
    tags = ("effect",)

    @get("", responses=PROBLEMS, dependencies=BY_USER)
    async def effect(
        self, call: ThisCall, since: Since = None, until: Until = None, task_type: TaskType = "", versions: Versions = 3
    ) -> EffectView:
        """Runs with and without history: score, cost, tokens, duration and repeated issues; and what proves nothing."""
        period = ReportPeriod(since=since, until=until, task_type=task_type, versions=versions)
        return convert(await call.services.effects.report(await call.tenant(), period), EffectView)

    @get("/export", responses=PROBLEMS, dependencies=BY_USER)
    async def export(
        self,
        call: ThisCall,
        since: Since = None,
        until: Until = None,
        task_type: TaskType = "",
        versions: Versions = 3,
        format: Form = "markdown",  # noqa: A002 - the name of the parameter
    ) -> EffectExportView:
        """The same report as a document: Markdown, or one HTML page with plots."""
        period = ReportPeriod(since=since, until=until, task_type=task_type, versions=versions)
        found = await call.services.effects.report(await call.tenant(), period)
        return EffectExportView(format, _FORMATS[format](found))

    @put("/use", responses=PROBLEMS)
    async def use(self, call: ThisCall, data: JSONBody[EffectUse]) -> EffectUse:
        """Let the estimated effects of memories count in the ranking of the workspace, or not; at first they do not."""
        return EffectUse(on=await call.services.effects.use(await call.tenant(), on=data.on))
