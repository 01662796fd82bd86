"""`GET /api/memories/{id}/links`, `POST /api/links`, `POST /api/links:delete`."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.links.give import MOST_AT_ONCE, LinksGiven, give_links, links_of, take_back_link
from app.links.link import GIVEN, LEAST_WEIGHT, Link, Linked

Relation = Literal["next", "derived_from", "supersedes", "mentions", "same_entity", "similar"]


class LinkedView(Struct, frozen=True):
    """A memory at the other end of a link."""

    relation: Relation
    direction: Literal["out", "in"]
    """`out` where the memory asked for mentions, is derived from, supersedes, comes before … this one; else `in`."""
    memory_id: UUID
    title: str
    kind: str
    weight: float
    """Above 0, at most 1: of `similar` the cosine similarity."""

    @classmethod
    def of(cls, linked: Linked) -> "LinkedView":
        """The view of a linked memory."""
        return cls(**{name: getattr(linked, name) for name in Linked.__slots__})


class LinksView(Struct, frozen=True):
    """What a memory is linked with."""

    links: Sequence[LinkedView]


class LinkInput(Struct, forbid_unknown_fields=True):
    """A link between two memories of the workspace."""

    from_id: Annotated[UUID, Meta(description="the memory that is derived from the other, or supersedes it")]
    to_id: UUID
    relation: Annotated[str, Meta(description="the others are found", extra_json_schema={"enum": list(GIVEN)})]
    weight: Annotated[float, Meta(ge=LEAST_WEIGHT, le=1)] = 1.0

    def link(self) -> Link:
        """The value that the verb takes."""
        return Link(self.from_id, self.to_id, self.relation, self.weight)


class LinksInput(Struct, forbid_unknown_fields=True):
    """Links to make."""

    links: Annotated[list[LinkInput], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class LinksGivenView(Struct, frozen=True):
    """What became of links that were given."""

    created: int
    updated: int
    """Known links with another weight."""
    unchanged: int

    @classmethod
    def of(cls, given: LinksGiven) -> "LinksGivenView":
        """The view of what became of them."""
        return cls(created=given.created, updated=given.updated, unchanged=given.unchanged)


class LinkDeletion(Struct, forbid_unknown_fields=True):
    """A stored link, of any relation."""

    from_id: UUID
    to_id: UUID
    relation: Literal["derived_from", "supersedes", "mentions", "same_entity", "similar"]


class LinksController(Controller):
    """What hangs together."""

    path = "/api"
    tags = ("links",)

    @get("/memories/{memory_id:uuid}/links", responses=PROBLEMS)
    async def show(self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> LinksView:
        """The memories that one is linked with: those beside it in its source, those callers named, those found."""
        context = context_of(state)
        found = await links_of(context.opened.database, workspace=context.workspace(workspace), memory_id=memory_id)
        return LinksView(links=[LinkedView.of(linked) for linked in found])

    @post("/links", status_code=200, responses=PROBLEMS)
    async def give(self, state: State, data: JSONBody[LinksInput], workspace: WorkspaceHeader = None) -> LinksGivenView:
        """Link memories, all or none of them. A known link takes the new weight, so a call may be repeated."""
        context = context_of(state)
        links = [item.link() for item in data.links]
        given = await give_links(context.opened.database, workspace=context.workspace(workspace), links=links)
        return LinksGivenView.of(given)

    @post("/links:delete", status_code=204, responses=PROBLEMS)
    async def take_back(self, state: State, data: JSONBody[LinkDeletion], workspace: WorkspaceHeader = None) -> None:
        """Take a link away."""
        context = context_of(state)
        link = Link(data.from_id, data.to_id, data.relation)
        await take_back_link(context.opened.database, workspace=context.workspace(workspace), link=link)
