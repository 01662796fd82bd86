"""`/api/memories` with neighbours and links, the values to filter by, and `/api/sources`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.insight.same.service import PHRASE_LIMIT, Why, says_the_same
from app.interfaces.http.context import BY_USER, ThisCall
from app.interfaces.http.schemas import (
    PROBLEMS,
    MemoryView,
    cursor_of,
    memory_view,
    place_of,
    sort_value,
)
from app.storage.links.relations import LEAST_WEIGHT, RELATION_FORM, Link, Linked
from app.storage.links.service import (
    DEEPEST,
    MOST_AT_ONCE,
    MOST_STEPPED,
    LinksGiven,
    Walk,
    give_links,
    take_back_link,
    walk_links,
)
from app.storage.links.service import Direction as WalkDirection
from app.storage.memories import service as browse
from app.storage.memories.filters import GLOB_LIMIT, Filters
from app.storage.memories.memory import Kind, Source, SourceKind

Limit = Annotated[int, QueryParameter(ge=1, le=browse.LARGEST_PAGE)]
Sort = Literal["created", "occurred", "score", "quality"]
Direction = Literal["desc", "asc"]
Cursor = Annotated[str | None, QueryParameter(max_length=200)]
Phrase = Annotated[str, QueryParameter(max_length=PHRASE_LIMIT, description="what of it is meant; empty: all")]
_Relation = Annotated[str, Meta(pattern=f"^{RELATION_FORM}$", examples=["contradicts", "refines", "causes"])]


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
    """The values of the newest 100,000 live memories to filter by, the most frequent first."""

    kinds: Sequence[FacetView]
    task_types: Sequence[FacetView]
    verdicts: Sequence[FacetView]
    tags: Sequence[FacetView]


class SayingView(Struct, frozen=True):
    """A memory that says the same as another, and the reason why it was found."""

    memory: MemoryView
    why: Why


class SameView(Struct, frozen=True):
    """The memories that say the same as another, which comes first."""

    found: Sequence[SayingView]
    more: Annotated[bool, Meta(description="more may say the same: take these back, and ask again")]


class SourcePage(Struct, frozen=True):
    """Sources, newest first."""

    sources: Sequence[Source]
    next: str | None


class LinksView(Struct, frozen=True):
    """The memories that one is linked with."""

    links: Sequence[Linked]


class LinkInput(Struct, forbid_unknown_fields=True):
    """A link between two memories of the workspace."""

    from_id: Annotated[UUID, Meta(description="the memory that contradicts, refines, supersedes … the other")]
    to_id: UUID
    relation: Annotated[_Relation, Meta(description="`mentions`, `similar` and the like are found, not given")]
    weight: Annotated[float, Meta(ge=LEAST_WEIGHT, le=1)] = 1.0


class LinksInput(Struct, forbid_unknown_fields=True):
    """Links to make."""

    links: Annotated[list[LinkInput], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class LinkDeletion(Struct, forbid_unknown_fields=True):
    """A stored link, of any relation."""

    from_id: UUID
    to_id: UUID
    relation: _Relation


class WalkInput(Struct, forbid_unknown_fields=True, rename={"start": "from"}):
    """A walk over links."""

    start: Annotated[UUID, Meta(description="the memory where the walk begins")]
    relations: Annotated[list[_Relation], Meta(max_length=32, description="empty: all")] = []
    direction: Annotated[WalkDirection, Meta(description="out: from a link's `from_id` to its `to_id`")] = "both"
    depth: Annotated[int, Meta(ge=1, le=DEEPEST)] = 2
    limit: Annotated[int, Meta(ge=1, le=MOST_STEPPED)] = 50
    user: Annotated[str, Meta(description="the user whose memories are walked, besides those that all users share")] = (
        ""
    )


@dataclass(frozen=True, slots=True)
class _PageOptions:
    """The query parameters of a page of memories. Stated in one place, their mistakes are told together."""

    kind: FromQuery[list[Kind] | None] = None
    tag: FromQuery[list[str] | None] = None
    task_type: FromQuery[list[str] | None] = None
    verdict: FromQuery[list[str] | None] = None
    source: Annotated[str, QueryParameter(max_length=GLOB_LIMIT, description="glob of the source's path")] = ""
    source_id: FromQuery[UUID | None] = None
    since: FromQuery[datetime | None] = None
    until: FromQuery[datetime | None] = None
    min_quality: FromQuery[int | None] = None
    max_quality: FromQuery[int | None] = None
    min_score: FromQuery[float | None] = None
    max_score: FromQuery[float | None] = None
    sort: FromQuery[Sort] = "created"
    order: FromQuery[Direction] = "desc"
    limit: Limit = 50
    cursor: Cursor = None

    def filters(self) -> Filters:
        """Returns the conditions that queries have as well."""
        given: dict[str, Any] = {name: getattr(self, name) for name in Filters.__struct_fields__ if hasattr(self, name)}
        lists = {"kinds": self.kind, "tags": self.tag, "task_types": self.task_type, "verdicts": self.verdict}
        given |= {name: tuple(values or ()) for name, values in lists.items()}
        return Filters(**given)


class MemoryViewsController(Controller):
    """Shows memories and their sources."""

    path = "/api"
    tags = ("memories",)

    @get(
        "/memories", responses=PROBLEMS, dependencies=BY_USER | {"options": Provide(_PageOptions, sync_to_thread=False)}
    )
    async def page(self, call: ThisCall, options: NamedDependency[_PageOptions]) -> MemoryPage:
        """Live memories that meet every condition, newest first or in another order."""
        judged = options.sort in {"score", "quality"}
        read: Callable[[str], datetime | float] = sort_value if judged else datetime.fromisoformat
        found = await browse.page_memories(
            call.database,
            after=place_of(options.cursor, read, UUID),
            filters=options.filters(),
            source_id=options.source_id,
            order=(options.sort, options.order),
            limit=options.limit,
            counted=options.cursor is None,
            workspace=await call.tenant(),
        )
        following = None if found.end is None else cursor_of(*found.end)
        memories = [memory_view(memory) for memory in found.memories]
        return MemoryPage(memories=memories, next=following, total=found.total)

    @get("/memories/facets", responses=PROBLEMS, dependencies=BY_USER)
    async def facets(self, call: ThisCall) -> FacetsView:
        """Kinds, task types, verdicts and tags to filter by, each with its count among the newest 100,000."""
        found = await browse.list_facets(call.database, workspace=await call.tenant())
        names = FacetsView.__struct_fields__
        return FacetsView(**{name: [FacetView(*counted) for counted in getattr(found, name)] for name in names})

    @get("/memories/{memory_id:uuid}/neighbours", responses=PROBLEMS, dependencies=BY_USER)
    async def neighbours(self, memory_id: FromPath[UUID], call: ThisCall) -> Sequence[MemoryView]:
        """The live memories up to two places before and after one in its source."""
        found = await browse.neighbours_of(call.database, workspace=await call.tenant(), memory_id=memory_id)
        return [memory_view(memory) for memory in found]

    @get("/memories/{memory_id:uuid}", responses=PROBLEMS, dependencies=BY_USER)
    async def show(self, memory_id: FromPath[UUID], call: ThisCall) -> MemoryView:
        """One memory, live or retired."""
        return memory_view(await browse.get_memory(call.database, workspace=await call.tenant(), memory_id=memory_id))

    @get("/memories/{memory_id:uuid}/same", responses=PROBLEMS, dependencies=BY_USER)
    async def same(self, memory_id: FromPath[UUID], call: ThisCall, phrase: Phrase = "") -> SameView:
        """The memory and all live ones that say the same: copies, cues, what they quote, what was derived of it.

        A search hides equal texts. So delete all of them by `POST /api/memories:delete`, else a copy takes its place.
        """
        same = await says_the_same(call.database, workspace=await call.tenant(), memory_id=memory_id, phrase=phrase)
        return SameView([SayingView(memory_view(one.memory), one.why) for one in same.found], same.more)

    @get("/sources", responses=PROBLEMS, dependencies=BY_USER)
    async def sources(
        self, call: ThisCall, kind: FromQuery[SourceKind | None] = None, limit: Limit = 50, cursor: Cursor = None
    ) -> SourcePage:
        """Sources, the retired ones included, newest first."""
        before = place_of(cursor, datetime.fromisoformat, UUID)
        found = await browse.list_sources(
            call.database, workspace=await call.tenant(), kind=kind, limit=limit, before=before
        )
        following = cursor_of(found[-1].created_at, found[-1].source_id) if len(found) == limit else None
        return SourcePage(sources=found, next=following)


class LinksController(Controller):
    """Shows and makes links between memories."""

    path = "/api"
    tags = ("links",)

    @get("/memories/{memory_id:uuid}/links", responses=PROBLEMS, dependencies=BY_USER)
    async def show(self, memory_id: FromPath[UUID], call: ThisCall) -> LinksView:
        """The memories that one is linked with: those beside it in its source, those callers named, those found."""
        found = await browse.links_of(call.database, workspace=await call.tenant(), memory_id=memory_id)
        return LinksView(links=found)

    @post("/links", status_code=200, responses=PROBLEMS)
    async def give(self, call: ThisCall, data: JSONBody[LinksInput]) -> LinksGiven:
        """Link memories, all or none of them. A known link takes the new weight, so a call may be repeated."""
        links = [Link(item.from_id, item.to_id, item.relation, item.weight) for item in data.links]
        return await give_links(call.database, workspace=await call.tenant(), links=links)

    @post("/links:delete", status_code=204, responses=PROBLEMS)
    async def take_back(self, call: ThisCall, data: JSONBody[LinkDeletion]) -> None:
        """Take a link away."""
        link = Link(data.from_id, data.to_id, data.relation)
        await take_back_link(call.database, workspace=await call.tenant(), link=link)

    @post("/graph:walk", status_code=200, responses=PROBLEMS)
    async def walk(self, call: ThisCall, data: JSONBody[WalkInput]) -> Walk:
        """Follow links from a memory, up to three steps; the nearest come first, then the strongest."""
        return await walk_links(
            call.database,
            workspace=(await call.tenant()).for_reading(data.user),
            start=data.start,
            relations=data.relations,
            direction=data.direction,
            depth=data.depth,
            limit=data.limit,
        )
