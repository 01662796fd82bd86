"""`/api/memories` with what is around each, the values to filter by, `/api/sources` and `/api/links`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from litestar import Controller, Request
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct, structs

from app.errors import InvalidInput
from app.foundation.db.audit import actor, note_operation
from app.insight.same.service import PHRASE_LIMIT, Why
from app.intake.runs.run import MemoryUses
from app.interfaces.http.admission import is_panels
from app.interfaces.http.context import BY_USER, Cursor, Limit, ThisCall
from app.interfaces.http.schemas import (
    Input,
    ListedMemory,
    MemoryView,
    cursor_of,
    get,
    listed_memory,
    memory_view,
    patch,
    place_of,
    post,
    sort_value,
)
from app.storage.links.relations import LEAST_WEIGHT, RELATION_FORM, Link, Linked
from app.storage.links.service import MOST_AT_ONCE as MOST_LINKED
from app.storage.links.service import LinksGiven
from app.storage.memories import service as browse
from app.storage.memories.filters import GLOB_LIMIT, Filters, State
from app.storage.memories.memory import TAG_LIMIT, Kind, Source, SourceKind
from app.storage.tenants.keys import ADMIN, Key

Sort = Literal["created", "occurred", "score", "quality"]
_FIRST: Mapping[State, browse.Sort] = {"prune": "worst", "live": "created", "suspect": "created"}
"""The order of each state's list where none is asked for; the others begin with what was retired last."""
Direction = Literal["desc", "asc"]
Phrase = Annotated[str, QueryParameter(max_length=PHRASE_LIMIT, description="what of it is meant; empty: all")]
_Relation = Annotated[str, Meta(pattern=f"^{RELATION_FORM}$", examples=["contradicts", "refines", "causes"])]


class MemoryPage(Struct, frozen=True):
    """Memories in the order that was asked for."""

    memories: Sequence[ListedMemory]
    next: str | None
    """Pass it as `cursor` for the page after; null at the end."""
    total: int | None
    """The number on all pages, counted up to 10,001; only on the first page."""


class SayingView(Struct, frozen=True):
    """A memory that says the same as another, and the reason why it was found."""

    memory: MemoryView
    why: Why


class SameView(Struct, frozen=True):
    """The memories that say the same as another, which comes first."""

    found: Sequence[SayingView]
    more: Annotated[bool, Meta(description="more may say the same: take these back, and ask again")]


class MemoriesChange(Input):
    """Memories by id, and one change of them: a state, a tag to give, or one to take away."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=browse.MOST_AT_ONCE)]
    state: (
        Annotated[
            Literal["live", "deleted", "quarantined", "superseded"],
            Meta(
                description="deleted: out of every answer, until the trash is emptied; live: restores and releases;"
                " quarantined: takes a release back; superseded: replaced by the memory `by`"
            ),
        ]
        | None
    ) = None
    by: Annotated[
        UUID | None,
        Meta(
            description="the memory that replaces them; without it, the live one that replaced each before, which takes"
            " back its restoration"
        ),
    ] = None
    tag: Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT, description="give them this tag")] | None = None
    untag: Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT, description="take this tag away")] | None = None

    def require_one(self) -> Self:
        """Returns it if it is one change.

        Raises:
            InvalidInput: it is none, or more than one.
        """
        given = [name for name in ("state", "tag", "untag") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput("state", f"give one of state, tag and untag; {' and '.join(given) or 'none'} is given")
        if self.by is not None and self.state != "superseded":
            raise InvalidInput("by", "goes with the state superseded")
        return self


class SourcePage(Struct, frozen=True):
    """Sources, newest first."""

    sources: Sequence[Source]
    next: str | None


class AroundView(Struct, frozen=True):
    """The surroundings of a memory."""

    neighbours: Annotated[
        Sequence[MemoryView], Meta(description="the live memories up to two places before and after it in its source")
    ]
    links: Annotated[
        Sequence[Linked], Meta(description="those beside it in its source first, then given links, then found ones")
    ]
    runs: Annotated[MemoryUses, Meta(description="the runs that made it, and those that it was given to")]


class LinkInput(Input):
    """A link between two memories of the workspace."""

    from_id: Annotated[UUID, Meta(description="the memory that contradicts, refines, supersedes … the other")]
    to_id: UUID
    relation: Annotated[_Relation, Meta(description="`mentions`, `similar` and the like are found, not given")]
    weight: Annotated[float, Meta(ge=LEAST_WEIGHT, le=1)] = 1.0


class LinkDeletion(Input):
    """A stored link, of any relation."""

    from_id: UUID
    to_id: UUID
    relation: _Relation


class LinksInput(Input):
    """Links to make, or one to remove."""

    links: Annotated[Sequence[LinkInput], Meta(max_length=MOST_LINKED)] = ()
    remove: LinkDeletion | None = None


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
    in_state: Annotated[
        State,
        QueryParameter(
            name="state",
            description="live; suspect: live, and in no history; prune: live, of quality -2 or less, or rated down and"
            " scored below 6; quarantined: taken out by the scan; deleted: in the trash; superseded: replaced",
        ),
    ] = "live"
    sort: Annotated[
        Sort | None, QueryParameter(description="without it, the newest, the worst or the latest retired come first")
    ] = None
    order: FromQuery[Direction | None] = None
    limit: Limit = 50
    cursor: Cursor = None

    def sorted_by(self) -> browse.Order:
        """Returns the order that was asked for, or that of the state."""
        sort = self.sort or _FIRST.get(self.in_state, "retired")
        return sort, self.order or ("asc" if sort == "worst" else "desc")

    def filters(self) -> Filters:
        """Returns the conditions that queries have as well."""
        given: dict[str, Any] = {name: getattr(self, name) for name in Filters.__struct_fields__ if hasattr(self, name)}
        lists = {"kinds": self.kind, "tags": self.tag, "task_types": self.task_type, "verdicts": self.verdict}
        given |= {name: tuple(values or ()) for name, values in lists.items()}
        return Filters(**given)


class MemoryViewsController(Controller):
    """Shows memories and their sources, and changes the state and the tags of memories."""

    path = "/api"
    tags = ("memories",)

    @get("/memories", dependencies=BY_USER | {"options": Provide(_PageOptions, sync_to_thread=False)})
    async def page(self, call: ThisCall, options: NamedDependency[_PageOptions]) -> MemoryPage:
        """Memories of a state that meet every condition, in an order; without more, the live ones, newest first."""
        order = options.sorted_by()
        moments = order[0] in {"created", "occurred", "retired"}
        read: Callable[[str], datetime | float] = datetime.fromisoformat if moments else sort_value
        # A wrong cursor is named although the database does not answer.
        after = place_of(options.cursor, read, UUID)
        tenant = await call.tenant()
        found = await call.services.memories.page(
            tenant,
            after=after,
            filters=options.filters(),
            source_id=options.source_id,
            state=options.in_state,
            order=order,
            limit=options.limit,
            counted=options.cursor is None,
        )
        following = None if found.end is None else cursor_of(*found.end)
        if options.in_state == "prune":
            ratings = await call.services.ratings.of_memories(tenant, [memory.memory_id for memory in found.memories])
            memories = [
                listed_memory(memory, reason=browse.reason_to_prune(memory), ratings=ratings[memory.memory_id])
                for memory in found.memories
            ]
        else:
            memories = [listed_memory(memory) for memory in found.memories]
        return MemoryPage(memories=memories, next=following, total=found.total)

    @get("/memories/facets", dependencies=BY_USER)
    async def facets(self, call: ThisCall) -> browse.Facets:
        """Kinds, task types, verdicts and tags to filter by, each with its count among the newest 100,000."""
        return await call.services.memories.facets(await call.tenant())

    @get("/memories/{memory_id:uuid}/around", dependencies=BY_USER)
    async def around(self, memory_id: FromPath[UUID], call: ThisCall) -> AroundView:
        """The neighbours of a memory in its source, its links, and its runs."""
        tenant = await call.tenant()
        neighbours = await call.services.memories.neighbours(tenant, memory_id=memory_id)
        links = await call.services.memories.links_of(tenant, memory_id=memory_id)
        runs = await call.services.runs.uses(tenant, memory_id)
        return AroundView([memory_view(memory) for memory in neighbours], links, runs)

    @get("/memories/{memory_id:uuid}", dependencies=BY_USER)
    async def show(self, memory_id: FromPath[UUID], call: ThisCall) -> MemoryView:
        """One memory, live or retired."""
        return memory_view(await call.services.memories.get(await call.tenant(), memory_id=memory_id))

    @get("/memories/{memory_id:uuid}/same", dependencies=BY_USER)
    async def same(self, memory_id: FromPath[UUID], call: ThisCall, phrase: Phrase = "") -> SameView:
        """The memory and all live ones that say the same: copies, cues, what they quote, what was derived of it.

        A search hides equal texts. So delete all of them by `PATCH /api/memories`, else a copy takes its place.
        """
        same = await call.services.same_texts.find(await call.tenant(), memory_id, phrase)
        return SameView([SayingView(memory_view(one.memory), one.why) for one in same.found], same.more)

    @get("/memories/review-counts", dependencies=BY_USER)
    async def counts(self, call: ThisCall) -> browse.ReviewCounts:
        """Count the memories to review by state: to prune, quarantined, suspect, deleted and superseded ones."""
        return await call.services.memories.review_counts(await call.tenant())

    @patch("/memories", dependencies=BY_USER)
    async def change(
        self, call: ThisCall, data: JSONBody[MemoriesChange], request: Request[Any, Any, Any]
    ) -> browse.Changed:
        """Change the state of memories, or give them a tag or take it away; all of them or none.

        `changed` are those that were not so before: an undo changes these. Only the panel or the admin key release what
        the scan holds.
        """
        asked = data.require_one()
        memories, ids, tenant = call.services.memories, asked.ids, await call.tenant()
        note_operation(f"{actor().operation} {asked.state or ('untag' if asked.tag is None else 'tag')}")
        match asked.state:
            case "live":
                release = _by_a_person(call.key, request)
                return await memories.restore(tenant, ids=ids, release=release)
            case "deleted":
                return await memories.delete(tenant, ids=ids)
            case "quarantined":
                return await memories.quarantine(tenant, ids=ids)
            case "superseded":
                return await memories.supersede(tenant, ids=ids, newer=asked.by)
        tag, remove = asked.tag or asked.untag or "", asked.tag is None
        mask = call.settings.mask_secrets
        return await memories.tag(tenant, ids=ids, tag=tag, mask=mask, remove=remove)

    @get("/sources", dependencies=BY_USER)
    async def sources(
        self, call: ThisCall, kind: FromQuery[SourceKind | None] = None, limit: Limit = 50, cursor: Cursor = None
    ) -> SourcePage:
        """Sources, the retired ones included, newest first."""
        before = place_of(cursor, datetime.fromisoformat, UUID)
        found = await call.services.memories.list_sources(await call.tenant(), kind=kind, limit=limit, before=before)
        following = cursor_of(found[-1].created_at, found[-1].source_id) if len(found) == limit else None
        return SourcePage(sources=found, next=following)


def _by_a_person(key: Key, request: Request[Any, Any, Any]) -> bool:
    """Tells whether a person asks: by a personal key, or where none is needed by the panel, as its browser says."""
    return key.personal or (key.has(ADMIN) and is_panels(request.scope))


class LinksController(Controller):
    """Makes and removes links between memories."""

    path = "/api"
    tags = ("links",)

    @post("/links")
    async def change(self, call: ThisCall, data: JSONBody[LinksInput]) -> LinksGiven:
        """Link memories, all or none of them, or remove a link. A known link takes the new weight, and `removed` is 0
        for one that is not stored, so a call may be repeated."""
        if data.remove is not None:
            if data.links:
                raise InvalidInput("remove", "is given beside `links`; send one of them")
            link = Link(*structs.astuple(data.remove))
            return LinksGiven(
                created=0,
                updated=0,
                unchanged=0,
                removed=await call.services.links.take_back(await call.tenant(), link),
            )
        links = [Link(*structs.astuple(item)) for item in data.links]
        return await call.services.links.give(await call.tenant(), links)
