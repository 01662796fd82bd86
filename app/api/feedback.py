"""Judging memories: ratings and their export, candidates, quarantine, trash, tags."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import Controller, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.api.schemas import MemoryView, converted, memory_view
from app.insight.exports import exported_ratings, preference_pairs
from app.memories import lifecycle
from app.memories.admission import TAG_LIMIT
from app.memories.lifecycle import MOST_AT_ONCE
from app.runs.feedback.rate import COMMENT_LIMIT, list_ratings, rate, undo_rating

NDJSON = "application/x-ndjson"

Limit = Annotated[int, QueryParameter(ge=1, le=1000)]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", description="makes a retry safe", min_length=1, max_length=200),
]


class RatingInput(Struct, forbid_unknown_fields=True):
    """One human judgement."""

    rating: Literal[1, -1]
    comment: Annotated[str, Meta(max_length=COMMENT_LIMIT)] = ""
    run_id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class RatingView(Struct, frozen=True):
    """An entry of the feedback log."""

    feedback_id: UUID
    memory_id: UUID
    rating: int
    comment: str
    run_id: str | None
    created_at: datetime
    undone_at: datetime | None


class RatedView(Struct, frozen=True):
    """A rating, and the memory's quality after it."""

    rating: RatingView
    quality: int


class Ids(Struct, forbid_unknown_fields=True):
    """Memories by id."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class TaggedIds(Struct, forbid_unknown_fields=True):
    """Memories by id, and a tag."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    tag: Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT)]


class ChangedView(Struct, frozen=True):
    """The memories of a call that it changed, and those that it did not find."""

    changed: Sequence[UUID]
    missing: Sequence[UUID]
    """Not in the workspace, or not in the state from which this leads."""


class CandidateView(Struct, frozen=True):
    """A memory that people and scores speak against."""

    memory: MemoryView
    reason: str


class ReviewCountsView(Struct, frozen=True):
    """The numbers of memories to review; the lists give as many of them as their limit allows."""

    prune_candidates: int
    quarantined: int
    deleted: int


class FeedbackController(Controller):
    """Takes and shows what people say of memories."""

    path = "/api"
    tags = ("feedback",)

    @post("/memories/{memory_id:uuid}/feedback", status_code=200, responses=PROBLEMS)
    async def rate(
        self,
        state: State,
        memory_id: FromPath[UUID],
        data: JSONBody[RatingInput],
        workspace: WorkspaceHeader = None,
        idempotency_key: IdempotencyKey = None,
    ) -> RatedView:
        """Rate a memory; its quality moves with the log, and the very next recall ranks by it."""
        context = context_of(state)
        rated = await rate(
            context.database,
            workspace=await context.workspace(workspace),
            memory_id=memory_id,
            rating=data.rating,
            comment=data.comment,
            run_id=data.run_id,
            idempotency_key=idempotency_key,
            mask=context.opened.settings.mask_secrets,
        )
        return converted(rated, RatedView)

    @get("/memories/{memory_id:uuid}/feedback", responses=PROBLEMS)
    async def ratings(
        self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None
    ) -> Sequence[RatingView]:
        """A memory's ratings in their order, each with when it was undone."""
        context = context_of(state)
        target = await context.workspace(workspace)
        return converted(await list_ratings(context.database, workspace=target, memory_id=memory_id), list[RatingView])

    @delete("/feedback/{feedback_id:uuid}", status_code=200, responses=PROBLEMS)
    async def undo(self, state: State, feedback_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> RatedView:
        """Take a rating back; the log keeps both."""
        context = context_of(state)
        target = await context.workspace(workspace)
        return converted(await undo_rating(context.database, workspace=target, feedback_id=feedback_id), RatedView)

    @get("/feedback/export", responses=PROBLEMS, media_type=NDJSON)
    async def export(
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        format: FromQuery[Literal["ratings", "dpo"]] = "ratings",  # noqa: A002 - its name over HTTP
    ) -> Stream:
        """JSON lines: every rating that stands, or preference pairs (`format=dpo`)."""
        context = context_of(state)
        target = await context.workspace(workspace)
        if format == "ratings":
            return Stream(_lines(exported_ratings(context.database, workspace=target)), media_type=NDJSON)
        evaluator = context.opened.settings.evaluator
        found = await preference_pairs(context.database, workspace=target, evaluator=evaluator)
        headers = {"X-Priors-Note": found.note} if found.note else {}
        return Stream((_line(pair) for pair in found.pairs), media_type=NDJSON, headers=headers)


class LifecycleController(Controller):
    """Takes memories out, brings them back and tags them."""

    path = "/api"
    tags = ("lifecycle",)

    @get("/memories/prune-candidates", responses=PROBLEMS)
    async def candidates(
        self, state: State, workspace: WorkspaceHeader = None, limit: Limit = 200
    ) -> Sequence[CandidateView]:
        """Memories of quality -2 or less, and those below a score of 6 with ratings against them."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await lifecycle.prune_candidates(context.database, workspace=target, limit=limit)
        return [CandidateView(memory=memory_view(item.memory), reason=item.reason) for item in found]

    @get("/memories/quarantined", responses=PROBLEMS)
    async def quarantined(
        self, state: State, workspace: WorkspaceHeader = None, limit: Limit = 200
    ) -> Sequence[MemoryView]:
        """Memories that the injection scan took out, each with its findings."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await lifecycle.quarantined(context.database, workspace=target, limit=limit)
        return [memory_view(memory) for memory in found]

    @get("/memories/deleted", responses=PROBLEMS)
    async def deleted(
        self, state: State, workspace: WorkspaceHeader = None, limit: Limit = 200
    ) -> Sequence[MemoryView]:
        """Memories in the trash."""
        context = context_of(state)
        target = await context.workspace(workspace)
        return [
            memory_view(memory) for memory in await lifecycle.deleted(context.database, workspace=target, limit=limit)
        ]

    @get("/memories/review-counts", responses=PROBLEMS)
    async def counts(self, state: State, workspace: WorkspaceHeader = None) -> ReviewCountsView:
        """How many prune candidates, quarantined and deleted memories there are."""
        context = context_of(state)
        found = await lifecycle.review_counts(context.database, workspace=await context.workspace(workspace))
        return converted(found, ReviewCountsView)

    @post("/memories:delete", status_code=200, responses=PROBLEMS)
    async def delete(self, state: State, data: JSONBody[Ids], workspace: WorkspaceHeader = None) -> ChangedView:
        """Take memories out of every answer; they can be restored until the trash is emptied."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await lifecycle.delete_memories(context.database, workspace=target, ids=data.ids)
        return converted(found, ChangedView)

    @post("/memories:restore", status_code=200, responses=PROBLEMS)
    async def restore(self, state: State, data: JSONBody[Ids], workspace: WorkspaceHeader = None) -> ChangedView:
        """Bring back what was deleted or superseded, and release what was quarantined."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await lifecycle.restore_memories(context.database, workspace=target, ids=data.ids)
        return converted(found, ChangedView)

    @post("/memories:tag", status_code=200, responses=PROBLEMS)
    async def tag(self, state: State, data: JSONBody[TaggedIds], workspace: WorkspaceHeader = None) -> ChangedView:
        """Give memories a tag; `changed` are those that did not have it, which is what an undo takes it from."""
        context = context_of(state)
        target, settings = await context.workspace(workspace), context.opened.settings
        found = await lifecycle.tag_memories(
            context.database, workspace=target, ids=data.ids, tag=data.tag, mask=settings.mask_secrets
        )
        return converted(found, ChangedView)

    @post("/memories:untag", status_code=200, responses=PROBLEMS)
    async def untag(self, state: State, data: JSONBody[TaggedIds], workspace: WorkspaceHeader = None) -> ChangedView:
        """Take a tag from memories; `changed` are those that had it."""
        context = context_of(state)
        target, mask = await context.workspace(workspace), context.opened.settings.mask_secrets
        found = await lifecycle.untag_memories(
            context.database, workspace=target, ids=data.ids, tag=data.tag, mask=mask
        )
        return converted(found, ChangedView)


async def _lines(rows: AsyncIterator[object]) -> AsyncIterator[bytes]:
    async for row in rows:
        yield _line(row)


def _line(row: object) -> bytes:
    return msgspec.json.encode(row) + b"\n"
