"""`/api/memories/{id}/feedback`, `/api/feedback/…`."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import Controller, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody
from litestar.response import Stream
from msgspec import Meta, Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.insight.exports import exported_ratings, preference_pairs
from app.runs.feedback.rate import COMMENT_LIMIT, list_ratings, rate, undo_rating
from app.runs.feedback.rating import Rated, Rating

NDJSON = "application/x-ndjson"

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

    @classmethod
    def of(cls, rating: Rating) -> "RatingView":
        """The view of a rating."""
        return cls(**{name: getattr(rating, name) for name in cls.__struct_fields__})


class RatedView(Struct, frozen=True):
    """A rating, and the memory's quality after it."""

    rating: RatingView
    quality: int

    @classmethod
    def of(cls, rated: Rated) -> "RatedView":
        """The view of a rating as it was taken."""
        return cls(rating=RatingView.of(rated.rating), quality=rated.quality)


class FeedbackController(Controller):
    """What people say of memories."""

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
            context.opened.database,
            workspace=context.workspace(workspace),
            memory_id=memory_id,
            rating=data.rating,
            comment=data.comment,
            run_id=data.run_id,
            idempotency_key=idempotency_key,
            mask=context.opened.settings.mask_secrets,
        )
        return RatedView.of(rated)

    @get("/memories/{memory_id:uuid}/feedback", responses=PROBLEMS)
    async def ratings(
        self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None
    ) -> Sequence[RatingView]:
        """A memory's ratings in their order, each with when it was undone."""
        context = context_of(state)
        found = await list_ratings(context.opened.database, workspace=context.workspace(workspace), memory_id=memory_id)
        return [RatingView.of(rating) for rating in found]

    @delete("/feedback/{feedback_id:uuid}", status_code=200, responses=PROBLEMS)
    async def undo(self, state: State, feedback_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> RatedView:
        """Take a rating back; the log keeps both."""
        context = context_of(state)
        rated = await undo_rating(
            context.opened.database, workspace=context.workspace(workspace), feedback_id=feedback_id
        )
        return RatedView.of(rated)

    @get("/feedback/export", responses=PROBLEMS, media_type=NDJSON)
    async def export(
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        format: FromQuery[Literal["ratings", "dpo"]] = "ratings",  # noqa: A002 - what it is called over HTTP
    ) -> Stream:
        """JSON lines: every rating that stands, or preference pairs (`format=dpo`)."""
        context = context_of(state)
        database, target = context.opened.database, context.workspace(workspace)
        if format == "ratings":
            return Stream(_lines(exported_ratings(database, workspace=target)), media_type=NDJSON)
        found = await preference_pairs(database, workspace=target, evaluator=context.opened.settings.evaluator)
        headers = {"X-Priors-Note": found.note} if found.note else {}
        return Stream((line(pair) for pair in found.pairs), media_type=NDJSON, headers=headers)


async def _lines(rows: AsyncIterator[object]) -> AsyncIterator[bytes]:
    async for row in rows:
        yield line(row)


def line(row: object) -> bytes:
    """A value as a line of JSON."""
    return msgspec.json.encode(row) + b"\n"
