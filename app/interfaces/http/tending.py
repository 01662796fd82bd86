"""`/api/proposals`, `POST /api/cues:tend`, `POST /api/probes:run`: what keeps a store of cues sound."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, get, post
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.interfaces.http.context import BY_USER, ThisCall
from app.interfaces.http.cues import cues_door
from app.interfaces.http.schemas import PROBLEMS, convert, view_of
from app.recall.cues.review import review
from app.recall.cues.review.mining import judge_precedents
from app.recall.cues.review.probes import MOST_PROBED, ProbeReport, run_probes
from app.recall.cues.review.review import PATH_LIMIT, Review
from app.recall.cues.review.store import StoredProposal


@view_of(StoredProposal, without=["before"], proposal_id="id")
class ProposalView(Struct):
    """A change to cues that was proposed, with the decision on it."""


@view_of(Review)
class TendedView(Struct):
    """The outcome of looking through a store of cues."""

    proposals: Sequence[ProposalView]


class DecisionInput(Struct, forbid_unknown_fields=True):
    """A person's decision."""

    accept: bool
    artifact: Annotated[
        str, Meta(max_length=PATH_LIMIT, description="the file that holds the convention that a cue becomes")
    ] = ""


class ProbedCueView(Struct, frozen=True, rename={"cue_id": "id"}):
    """A cue that needs a better trigger: none of its plans fired it."""

    cue_id: UUID
    trigger: str


@view_of(ProbeReport)
class ProbeReportView(Struct):
    """Shares of plans for which the cues of a store fire as they should."""

    weak: Sequence[ProbedCueView]


class TendingController(Controller):
    """Finds what should change in a store of cues, and takes decisions."""

    path = "/api"
    tags = ("cues",)

    @post("/cues:tend", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def tend(self, call: ThisCall) -> TendedView:
        """Merge near-duplicate cues, and propose what else should change. A worker does it each night."""
        door = await cues_door(call)
        await judge_precedents(door)
        return convert(await review.review_cues(door), TendedView)

    @get("/proposals", responses=PROBLEMS, dependencies=BY_USER)
    async def proposals(
        self,
        call: ThisCall,
        in_state: Annotated[
            Literal["open", "accepted", "declined", "undone", ""], QueryParameter(name="state")
        ] = "open",
        limit: Annotated[int, QueryParameter(ge=1, le=1_000)] = 100,
    ) -> Sequence[ProposalView]:
        """The changes to cues that were proposed, the newest first."""
        workspace = await call.tenant()
        found = await review.list_proposals(call.database, workspace=workspace, state=in_state, limit=limit)
        return convert(found, list[ProposalView])

    @post("/proposals/{proposal_id:uuid}/decision", status_code=200, responses=PROBLEMS)
    async def decide(self, proposal_id: FromPath[UUID], call: ThisCall, data: JSONBody[DecisionInput]) -> ProposalView:
        """Accept a proposal, which changes its cues, or decline it."""
        found = await review.decide(
            call.database,
            workspace=await call.tenant(),
            proposal_id=proposal_id,
            accept=data.accept,
            artifact=data.artifact,
        )
        return convert(found, ProposalView)

    @post("/proposals/{proposal_id:uuid}/undo", status_code=200, responses=PROBLEMS)
    async def undo(self, proposal_id: FromPath[UUID], call: ThisCall) -> ProposalView:
        """Take back a decision: what an accepted proposal has changed is as before, a declined one is open again."""
        found = await review.undo(call.database, workspace=await call.tenant(), proposal_id=proposal_id)
        return convert(found, ProposalView)

    @post("/probes:run", status_code=200, responses=PROBLEMS)
    async def probe(
        self, call: ThisCall, limit: Annotated[int, QueryParameter(ge=1, le=MOST_PROBED)] = 50
    ) -> ProbeReportView:
        """Measures whether the newest cues fire for plans of their triggers, and none for plans of other trades."""
        found = await run_probes(call.services.activations, await call.tenant(), limit=limit)
        return convert(found, ProbeReportView)
