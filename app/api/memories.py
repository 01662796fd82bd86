"""`/api/memories`, `/api/memories/{id}` with its neighbours and links, what there is to filter by, `/api/sources`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct, field

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.api.schemas import (
    Kind,
    MemoryView,
    SourceKind,
    converted,
    cursor_of,
    memory_view,
    place_of,
    sorted_place_of,
)
from app.links.linking import MOST_AT_ONCE, give_links, take_back_link
from app.links.relations import GIVEN, LEAST_WEIGHT, Link
from app.memories.browse import (
    LARGEST_PAGE,
    get_memory,
    links_of,
    list_facets,
    list_sources,
    neighbours_of,
    page_memories,
)
from app.memories.filters import GLOB_LIMIT, Filters

Limit = Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)]
Sort = Literal["created", "occurred", "score", "quality"]
Direction = Literal["desc", "asc"]
Cursor = Annotated[str | None, QueryParameter(max_length=200)]


class SourceDetail(Struct, frozen=True):
    """A source with its state."""

    source_id: UUID = field(name="id")
    kind: str
    uri: str
    title: str
    memories: int
    created_at: datetime
    updated_at: datetime
    retired_at: datetime | None


class MemoryPage(Struct, frozen=True):
    """Memories in the order that was asked for."""

    memories: Sequence[MemoryView]
    next: str | None
    """Pass it as `cursor` for the page after; null at the end."""
    total: int | None
    """The number on all pages, counted up to 10,001; only on the first page."""


class FacetView(Struct, frozen=True):
    """A value that memories can be filtered by, and how many live ones have it."""

    value: str
    count: int


class FacetsView(Struct, frozen=True):
    """The values to filter by, the most frequent first."""

    kinds: Sequence[FacetView]
    task_types: Sequence[FacetView]
    verdicts: Sequence[FacetView]
    tags: Sequence[FacetView]


class SourcePage(Struct, frozen=True):
    """Sources, newest first."""

    sources: Sequence[SourceDetail]
    next: str | None


class LinkedView(Struct, frozen=True):
    """A memory at the other end of a link."""

    relation: Literal["next", "derived_from", "supersedes", "mentions", "same_entity", "similar"]
    direction: Literal["out", "in"]
    """`out` where the memory asked for mentions, is derived from, supersedes, comes before … this one; else `in`."""
    memory_id: UUID
    title: str
    kind: str
    weight: float
    """Above 0, at most 1; for `similar` the cosine similarity."""


class LinksView(Struct, frozen=True):
    """The memories that one is linked with."""

    links: Sequence[LinkedView]


class LinkInput(Struct, forbid_unknown_fields=True):
    """A link between two memories of the workspace."""

    from_id: Annotated[UUID, Meta(description="the memory that is derived from the other, or supersedes it")]
    to_id: UUID
    relation: Annotated[str, Meta(description="the others are found", extra_json_schema={"enum": list(GIVEN)})]
    weight: Annotated[float, Meta(ge=LEAST_WEIGHT, le=1)] = 1.0


class LinksInput(Struct, forbid_unknown_fields=True):
    """Links to make."""

    links: Annotated[list[LinkInput], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class LinksGivenView(Struct, frozen=True):
    """The numbers of links that a call made, changed and left as they were."""

    created: int
    updated: int
    """Known links with another weight."""
    unchanged: int


class LinkDeletion(Struct, forbid_unknown_fields=True):
    """A stored link, of any relation."""

    from_id: UUID
    to_id: UUID
    relation: Literal["derived_from", "supersedes", "mentions", "same_entity", "similar"]


class MemoryViewsController(Controller):
    """Shows memories and their sources."""

    path = "/api"
    tags = ("memories",)

    @get("/memories", responses=PROBLEMS)
    async def page(  # noqa: PLR0913, PLR0917 - each is a query parameter
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        kind: FromQuery[list[Kind] | None] = None,
        tag: FromQuery[list[str] | None] = None,
        task_type: FromQuery[list[str] | None] = None,
        verdict: FromQuery[list[str] | None] = None,
        source: Annotated[str, QueryParameter(max_length=GLOB_LIMIT, description="glob of the source's path")] = "",
        source_id: FromQuery[UUID | None] = None,
        since: FromQuery[datetime | None] = None,
        until: FromQuery[datetime | None] = None,
        min_quality: FromQuery[int | None] = None,
        max_quality: FromQuery[int | None] = None,
        min_score: FromQuery[float | None] = None,
        max_score: FromQuery[float | None] = None,
        sort: FromQuery[Sort] = "created",
        order: FromQuery[Direction] = "desc",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> MemoryPage:
        """Live memories that meet every condition, newest first or in another order."""
        context = context_of(state)
        filters = Filters(
            kinds=tuple(kind or ()), tags=tuple(tag or ()), task_types=tuple(task_type or ()),
            verdicts=tuple(verdict or ()), source=source, since=since, until=until, min_quality=min_quality,
            max_quality=max_quality, min_score=min_score, max_score=max_score,
        )  # fmt: skip
        found = await page_memories(
            context.database,
            workspace=await context.workspace(workspace),
            filters=filters,
            source_id=source_id,
            order=(sort, order),
            limit=limit,
            after=sorted_place_of(cursor, sort),
            counted=cursor is None,
        )
        following = None if found.end is None else cursor_of(*found.end)
        memories = [memory_view(memory) for memory in found.memories]
        return MemoryPage(memories=memories, next=following, total=found.total)

    @get("/memories/facets", responses=PROBLEMS)
    async def facets(self, state: State, workspace: WorkspaceHeader = None) -> FacetsView:
        """Kinds, task types, verdicts and tags to filter by, each with how many live memories have it."""
        context = context_of(state)
        found = await list_facets(context.database, workspace=await context.workspace(workspace))
        names = FacetsView.__struct_fields__
        return FacetsView(**{name: [FacetView(*counted) for counted in getattr(found, name)] for name in names})

    @get("/memories/{memory_id:uuid}/neighbours", responses=PROBLEMS)
    async def neighbours(
        self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None
    ) -> Sequence[MemoryView]:
        """The live memories up to two places before and after one in its source."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await neighbours_of(context.database, workspace=target, memory_id=memory_id)
        return [memory_view(memory) for memory in found]

    @get("/memories/{memory_id:uuid}", responses=PROBLEMS)
    async def show(self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> MemoryView:
        """One memory, live or retired."""
        context = context_of(state)
        target = await context.workspace(workspace)
        return memory_view(await get_memory(context.database, workspace=target, memory_id=memory_id))

    @get("/sources", responses=PROBLEMS)
    async def sources(
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        kind: FromQuery[SourceKind | None] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> SourcePage:
        """Sources, the retired ones included, newest first."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await list_sources(context.database, workspace=target, kind=kind, limit=limit, before=place_of(cursor))
        following = cursor_of(found[-1].created_at, found[-1].source_id) if len(found) == limit else None
        return SourcePage(sources=converted(found, list[SourceDetail]), next=following)


class LinksController(Controller):
    """Shows and makes links between memories."""

    path = "/api"
    tags = ("links",)

    @get("/memories/{memory_id:uuid}/links", responses=PROBLEMS)
    async def show(self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> LinksView:
        """The memories that one is linked with: those beside it in its source, those callers named, those found."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await links_of(context.database, workspace=target, memory_id=memory_id)
        return LinksView(links=converted(found, list[LinkedView]))

    @post("/links", status_code=200, responses=PROBLEMS)
    async def give(self, state: State, data: JSONBody[LinksInput], workspace: WorkspaceHeader = None) -> LinksGivenView:
        """Link memories, all or none of them. A known link takes the new weight, so a call may be repeated."""
        context = context_of(state)
        links = [Link(item.from_id, item.to_id, item.relation, item.weight) for item in data.links]
        given = await give_links(context.database, workspace=await context.workspace(workspace), links=links)
        return converted(given, LinksGivenView)

    @post("/links:delete", status_code=204, responses=PROBLEMS)
    async def take_back(self, state: State, data: JSONBody[LinkDeletion], workspace: WorkspaceHeader = None) -> None:
        """Take a link away."""
        context = context_of(state)
        link = Link(data.from_id, data.to_id, data.relation)
        await take_back_link(context.database, workspace=await context.workspace(workspace), link=link)
