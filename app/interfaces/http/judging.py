"""Takes what people judge: ratings of memories, proposals on cues; probes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import Controller
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from app.intake.runs.feedback.store import FeedbackEntry, Rated, Rating, RatingDetails
from app.interfaces.http.context import BY_USER, IdempotencyKey, ThisCall
from app.interfaces.http.schemas import Input, convert, delete, get, patch, post
from app.recall.cues.review.probes import MOST_PROBED, ProbeReport, run_probes
from app.recall.cues.review.review import PATH_LIMIT
from app.storage.tenants.keys import RATE

_NDJSON = "application/x-ndjson"


class RatingInput(RatingDetails, frozen=True, kw_only=True):
    """One human judgement."""

    rating: Literal[1, -1]


class FeedbackController(Controller):
    """Takes and shows what people say of memories."""

    path = "/api"
    tags = ("feedback",)
    dependencies = BY_USER

    @post("/memories/{memory_id:uuid}/feedback", opt={"scope": RATE})
    async def rate(
        self,
        memory_id: FromPath[UUID],
        call: ThisCall,
        data: JSONBody[RatingInput],
        idempotency_key: IdempotencyKey = None,
    ) -> Rated:
        """Rate a memory; its quality moves with the log, and the very next recall ranks by it."""
        entry = convert(data, FeedbackEntry, memory_id=memory_id, idempotency_key=idempotency_key)
        return await call.services.ratings.rate(await call.tenant(), entry)

    @get("/memories/{memory_id:uuid}/feedback")
    async def ratings(self, memory_id: FromPath[UUID], call: ThisCall) -> Sequence[Rating]:
        """A memory's ratings in their order, each with when it was undone."""
        return await call.services.ratings.of_memory(await call.tenant(), memory_id)

    @delete("/feedback/{feedback_id:uuid}", opt={"scope": RATE})
    async def undo(self, feedback_id: FromPath[UUID], call: ThisCall) -> Rated:
        """Take a rating back; the log keeps both."""
        return await call.services.ratings.undo(await call.tenant(), feedback_id)

    @get("/feedback/export", media_type=_NDJSON)
    async def export(
        self,
        call: ThisCall,
        format: FromQuery[Literal["ratings", "dpo", "kto"]] = "ratings",  # noqa: A002 - its name over HTTP
    ) -> Stream:
        """JSON lines: every rating that stands, or what TRL's trainers read: pairs (`dpo`), labelled texts (`kto`)."""
        exports, target = call.services.exports, await call.tenant()
        if format == "ratings":
            return Stream((_line(row) async for row in exports.ratings(target)), media_type=_NDJSON)
        found = await exports.training_rows(target, format)
        headers = {"X-Priors-Note": found.note} if found.note else {}
        return Stream((_line(row) for row in found.rows), media_type=_NDJSON, headers=headers)


def _line(row: object) -> bytes:
    return msgspec.json.encode(row) + b"\n"


class ProposalView(Struct, frozen=True, rename={"proposal_id": "id"}):
    """A change to cues that was proposed, with the decision on it."""

    proposal_id: UUID
    change: str
    cue_ids: Sequence[UUID]
    target_id: UUID | None
    relation: str
    reason: str
    state: str
    created_at: datetime
    decided_at: datetime | None


class TendedView(Struct, frozen=True):
    """The outcome of looking through a store of cues."""

    cues: int
    proposed: Mapping[str, int]
    proposals: Sequence[ProposalView]


class DecisionInput(Input):
    """A person's decision on a proposal."""

    state: Annotated[
        Literal["accepted", "declined", "undone"],
        Meta(description="undone: what was accepted has changed nothing, and all but a merge are open again"),
    ]
    artifact: Annotated[
        str, Meta(max_length=PATH_LIMIT, description="the file that holds the convention that an accepted cue becomes")
    ] = ""


class TendingController(Controller):
    """Finds what should change in a store of cues, and takes decisions."""

    path = "/api"
    tags = ("cues",)

    @post("/cues:tend", dependencies=BY_USER)
    async def tend(self, call: ThisCall) -> TendedView:
        """Merge near-duplicate cues, and propose what else should change. A worker does it each night."""
        owned = await call.writer()
        await call.services.mining.judge_precedents(owned)
        return convert(await call.services.reviews.review(owned), TendedView)

    @get("/proposals", dependencies=BY_USER)
    async def proposals(
        self,
        call: ThisCall,
        in_state: Annotated[
            Literal["open", "accepted", "declined", "undone", ""], QueryParameter(name="state")
        ] = "open",
        limit: Annotated[int, QueryParameter(ge=1, le=1_000)] = 100,
    ) -> Sequence[ProposalView]:
        """The changes to cues that were proposed, the newest first."""
        found = await call.services.reviews.page(await call.tenant(), state=in_state, limit=limit)
        return convert(found, list[ProposalView])

    @patch("/proposals/{proposal_id:uuid}")
    async def decide(self, proposal_id: FromPath[UUID], call: ThisCall, data: JSONBody[DecisionInput]) -> ProposalView:
        """Accept a proposal, which changes its cues, or decline it; or take the decision back."""
        reviews, tenant = call.services.reviews, await call.tenant()
        if data.state == "undone":
            found = await reviews.undo(tenant, proposal_id)
        else:
            accept = data.state == "accepted"
            found = await reviews.decide(tenant, proposal_id, accept=accept, artifact=data.artifact)
        return convert(found, ProposalView)

    @post("/probes:run")
    async def probe(
        self, call: ThisCall, limit: Annotated[int, QueryParameter(ge=1, le=MOST_PROBED)] = 50
    ) -> ProbeReport:
        """Measures whether the newest cues fire for plans of their triggers, and none for plans of other trades."""
        services = call.services
        return await run_probes(services.cues, services.activations, await call.tenant(), limit=limit)
