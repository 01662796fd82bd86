"""Taking memories out, bringing them back, tagging: `/api/memories:delete` and the like, candidates, quarantine."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from litestar import Controller, get, post
from litestar.datastructures import State
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.memory_views import MemoryView
from app.api.problems import PROBLEMS
from app.memories.admission import TAG_LIMIT
from app.memories.lifecycle import (
    MOST_AT_ONCE,
    Changed,
    delete_memories,
    deleted,
    prune_candidates,
    quarantined,
    restore_memories,
    review_counts,
    tag_memories,
    untag_memories,
)

Limit = Annotated[int, QueryParameter(ge=1, le=1000)]


class Ids(Struct, forbid_unknown_fields=True):
    """Memories by id."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class TaggedIds(Struct, forbid_unknown_fields=True):
    """Memories by id, and a tag."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    tag: Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT)]


class ChangedView(Struct, frozen=True):
    """What became of memories that were named."""

    changed: Sequence[UUID]
    missing: Sequence[UUID]
    """Not in the workspace, or not in the state from which this leads."""

    @classmethod
    def of(cls, changed: Changed) -> "ChangedView":
        """The view of a change."""
        return cls(changed=changed.changed, missing=changed.missing)


class CandidateView(Struct, frozen=True):
    """A memory that people and scores speak against."""

    memory: MemoryView
    reason: str


class ReviewCountsView(Struct, frozen=True):
    """How many memories there are to review, of which the lists give as many as their limit allows."""

    prune_candidates: int
    quarantined: int
    deleted: int


class LifecycleController(Controller):
    """What people take out, and bring back."""

    path = "/api"
    tags = ("lifecycle",)

    @get("/memories/prune-candidates", responses=PROBLEMS)
    async def candidates(
        self, state: State, workspace: WorkspaceHeader = None, limit: Limit = 200
    ) -> Sequence[CandidateView]:
        """Memories of quality -2 or less, and those below a score of 6 with ratings against them."""
        context = context_of(state)
        found = await prune_candidates(context.opened.database, workspace=context.workspace(workspace), limit=limit)
        return [CandidateView(memory=MemoryView.of(item.memory), reason=item.reason) for item in found]

    @get("/memories/quarantined", responses=PROBLEMS)
    async def quarantined(
        self, state: State, workspace: WorkspaceHeader = None, limit: Limit = 200
    ) -> Sequence[MemoryView]:
        """Memories that the injection scan took out, each with its findings."""
        context = context_of(state)
        found = await quarantined(context.opened.database, workspace=context.workspace(workspace), limit=limit)
        return [MemoryView.of(memory) for memory in found]

    @get("/memories/deleted", responses=PROBLEMS)
    async def deleted(
        self, state: State, workspace: WorkspaceHeader = None, limit: Limit = 200
    ) -> Sequence[MemoryView]:
        """Memories in the trash."""
        context = context_of(state)
        found = await deleted(context.opened.database, workspace=context.workspace(workspace), limit=limit)
        return [MemoryView.of(memory) for memory in found]

    @get("/memories/review-counts", responses=PROBLEMS)
    async def counts(self, state: State, workspace: WorkspaceHeader = None) -> ReviewCountsView:
        """How many prune candidates, quarantined and deleted memories there are."""
        context = context_of(state)
        found = await review_counts(context.opened.database, workspace=context.workspace(workspace))
        return ReviewCountsView(
            prune_candidates=found.prune_candidates, quarantined=found.quarantined, deleted=found.deleted
        )

    @post("/memories:delete", status_code=200, responses=PROBLEMS)
    async def delete(self, state: State, data: JSONBody[Ids], workspace: WorkspaceHeader = None) -> ChangedView:
        """Take memories out of every answer; they can be restored until the trash is emptied."""
        context = context_of(state)
        found = await delete_memories(context.opened.database, workspace=context.workspace(workspace), ids=data.ids)
        return ChangedView.of(found)

    @post("/memories:restore", status_code=200, responses=PROBLEMS)
    async def restore(self, state: State, data: JSONBody[Ids], workspace: WorkspaceHeader = None) -> ChangedView:
        """Bring back what was deleted or superseded, and release what was quarantined."""
        context = context_of(state)
        found = await restore_memories(context.opened.database, workspace=context.workspace(workspace), ids=data.ids)
        return ChangedView.of(found)

    @post("/memories:tag", status_code=200, responses=PROBLEMS)
    async def tag(self, state: State, data: JSONBody[TaggedIds], workspace: WorkspaceHeader = None) -> ChangedView:
        """Give memories a tag; `changed` are those that did not have it, which is what an undo takes it from."""
        context = context_of(state)
        mask = context.opened.settings.mask_secrets
        found = await tag_memories(
            context.opened.database, workspace=context.workspace(workspace), ids=data.ids, tag=data.tag, mask=mask
        )
        return ChangedView.of(found)

    @post("/memories:untag", status_code=200, responses=PROBLEMS)
    async def untag(self, state: State, data: JSONBody[TaggedIds], workspace: WorkspaceHeader = None) -> ChangedView:
        """Take a tag from memories; `changed` are those that had it."""
        context = context_of(state)
        mask = context.opened.settings.mask_secrets
        found = await untag_memories(
            context.opened.database, workspace=context.workspace(workspace), ids=data.ids, tag=data.tag, mask=mask
        )
        return ChangedView.of(found)
