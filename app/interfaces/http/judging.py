"""Takes what people judge: ratings, candidates, quarantine, trash and tags of memories; proposals on cues; probes."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import Controller, Request, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from app.insight.exports import exported_ratings, training_rows
from app.intake.runs.feedback.store import FeedbackEntry, Rated, Rating, RatingDetails
from app.interfaces.http.admission import is_panels
from app.interfaces.http.context import BY_USER, Call, IdempotencyKey, ThisCall
from app.interfaces.http.cues import cues_door
from app.interfaces.http.schemas import PROBLEMS, MemoryView, convert, memory_view, view_of
from app.recall.cues.review import review
from app.recall.cues.review.mining import judge_precedents
from app.recall.cues.review.probes import MOST_PROBED, ProbeReport, run_probes
from app.recall.cues.review.review import PATH_LIMIT, Review
from app.recall.cues.review.store import StoredProposal
from app.storage.memories import service
from app.storage.memories.memory import DELETED, QUARANTINED, SUPERSEDED, TAG_LIMIT
from app.storage.memories.service import MOST_AT_ONCE, Changed, ReviewCounts
from app.storage.tenants.keys import ADMIN, Key

_NDJSON = "application/x-ndjson"
_MOST_SKIPPED = 10_000_000

Limit = Annotated[int, QueryParameter(ge=1, le=1000)]
Offset = Annotated[int, QueryParameter(ge=0, le=_MOST_SKIPPED, description="memories of the list to leave out first")]


class RatingInput(RatingDetails, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One human judgement."""

    rating: Literal[1, -1]


class Ids(Struct, forbid_unknown_fields=True):
    """Memories by id."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class TaggedIds(Struct, forbid_unknown_fields=True):
    """Memories by id, and a tag."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    tag: Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT)]


class SupersededIds(Struct, forbid_unknown_fields=True):
    """Memories by id, and the one that replaces them.

    Without `by`, each is replaced by the live memory that replaced it before: this takes back its restoration.
    """

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    by: UUID | None = None


class CandidateView(Struct, frozen=True):
    """A memory that people and scores speak against."""

    memory: MemoryView
    reason: str
    ratings: Sequence[Rating]
    """Its ratings that stand, the latest first."""


class FeedbackController(Controller):
    """Takes and shows what people say of memories."""

    path = "/api"
    tags = ("feedback",)

    @post("/memories/{memory_id:uuid}/feedback", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
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

    @get("/memories/{memory_id:uuid}/feedback", responses=PROBLEMS, dependencies=BY_USER)
    async def ratings(self, memory_id: FromPath[UUID], call: ThisCall) -> Sequence[Rating]:
        """A memory's ratings in their order, each with when it was undone."""
        return await call.services.ratings.of_memory(await call.tenant(), memory_id)

    @delete("/feedback/{feedback_id:uuid}", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def undo(self, feedback_id: FromPath[UUID], call: ThisCall) -> Rated:
        """Take a rating back; the log keeps both."""
        return await call.services.ratings.undo(await call.tenant(), feedback_id)

    @get("/feedback/export", responses=PROBLEMS, media_type=_NDJSON, dependencies=BY_USER)
    async def export(
        self,
        call: ThisCall,
        format: FromQuery[Literal["ratings", "dpo", "kto"]] = "ratings",  # noqa: A002 - its name over HTTP
    ) -> Stream:
        """JSON lines: every rating that stands, or what TRL's trainers read: pairs (`dpo`), labelled texts (`kto`)."""
        database, target = call.database, await call.tenant()
        if format == "ratings":
            return Stream(_lines(exported_ratings(database, workspace=target)), media_type=_NDJSON)
        found = await training_rows(database, workspace=target, evaluator=call.settings.evaluator, trainer=format)
        headers = {"X-Priors-Note": found.note} if found.note else {}
        return Stream((_line(row) for row in found.rows), media_type=_NDJSON, headers=headers)


class LifecycleController(Controller):
    """Takes memories out, brings them back and tags them."""

    path = "/api"
    tags = ("lifecycle",)

    @get("/memories/prune-candidates", responses=PROBLEMS, dependencies=BY_USER)
    async def candidates(self, call: ThisCall, limit: Limit = 200, offset: Offset = 0) -> Sequence[CandidateView]:
        """Memories of quality -2 or less, and those below a score of 6 with ratings against them."""
        tenant = await call.tenant()
        found = await service.prune_candidates(call.database, workspace=tenant, limit=limit, offset=offset)
        ids = [item.memory.memory_id for item in found]
        ratings = await call.services.ratings.of_memories(tenant, ids)
        return [
            CandidateView(
                memory=memory_view(item.memory),
                reason=item.reason,
                ratings=ratings[item.memory.memory_id],
            )
            for item in found
        ]

    @get("/memories/quarantined", responses=PROBLEMS, dependencies=BY_USER)
    async def list_quarantined(self, call: ThisCall, limit: Limit = 200, offset: Offset = 0) -> Sequence[MemoryView]:
        """Memories that the injection scan took out, each with its findings."""
        return await _list_retired(call, QUARANTINED, limit, offset)

    @get("/memories/suspect", responses=PROBLEMS, dependencies=BY_USER)
    async def suspect(self, call: ThisCall, limit: Limit = 200, offset: Offset = 0) -> Sequence[MemoryView]:
        """Memories that the injection scan suspects: searches find them, and no history shows them."""
        tenant = await call.tenant()
        found = await service.suspects(call.database, workspace=tenant, limit=limit, offset=offset)
        return [memory_view(memory) for memory in found]

    @get("/memories/deleted", responses=PROBLEMS, dependencies=BY_USER)
    async def list_deleted(self, call: ThisCall, limit: Limit = 200, offset: Offset = 0) -> Sequence[MemoryView]:
        """Memories in the trash."""
        return await _list_retired(call, DELETED, limit, offset)

    @get("/memories/superseded", responses=PROBLEMS, dependencies=BY_USER)
    async def list_superseded(self, call: ThisCall, limit: Limit = 200, offset: Offset = 0) -> Sequence[MemoryView]:
        """Memories that a newer one replaced; they can be restored."""
        return await _list_retired(call, SUPERSEDED, limit, offset)

    @get("/memories/review-counts", responses=PROBLEMS, dependencies=BY_USER)
    async def counts(self, call: ThisCall) -> ReviewCounts:
        """Count the prune candidates, and the quarantined, suspect, deleted and superseded memories."""
        return await service.review_counts(call.database, workspace=await call.tenant())

    @post("/memories:delete", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def delete(self, call: ThisCall, data: JSONBody[Ids]) -> Changed:
        """Take memories out of every answer; they can be restored until the trash is emptied."""
        return await service.delete_memories(call.database, workspace=await call.tenant(), ids=data.ids)

    @post("/memories:restore", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def restore(self, call: ThisCall, data: JSONBody[Ids], request: Request[Any, Any, Any]) -> Changed:
        """Bring back what was deleted or superseded. Only the panel or the admin key release what the scan holds."""
        release = _by_a_person(call.key, request)
        tenant = await call.tenant()
        return await service.restore_memories(call.database, workspace=tenant, ids=data.ids, release=release)

    @post("/memories:supersede", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def supersede(self, call: ThisCall, data: JSONBody[SupersededIds]) -> Changed:
        """Let a memory replace others: they leave every answer, can be restored, and are linked with it."""
        tenant = await call.tenant()
        return await service.supersede_memories(call.database, workspace=tenant, ids=data.ids, newer=data.by)

    @post("/memories:quarantine", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def quarantine(self, call: ThisCall, data: JSONBody[Ids]) -> Changed:
        """Take back a release: memories that somebody released are quarantined again."""
        return await service.quarantine_memories(call.database, workspace=await call.tenant(), ids=data.ids)

    @post("/memories:tag", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def tag(self, call: ThisCall, data: JSONBody[TaggedIds]) -> Changed:
        """Give memories a tag; `changed` are those that did not have it, which is what an undo takes it from."""
        return await _change_tags(call, data, remove=False)

    @post("/memories:untag", status_code=200, responses=PROBLEMS, dependencies=BY_USER)
    async def untag(self, call: ThisCall, data: JSONBody[TaggedIds]) -> Changed:
        """Take a tag from memories; `changed` are those that had it."""
        return await _change_tags(call, data, remove=True)


def _by_a_person(key: Key, request: Request[Any, Any, Any]) -> bool:
    """Tells whether a person asks: by a personal key, or where none is needed by the panel, as its browser says."""
    return key.personal or (key.has(ADMIN) and is_panels(request.scope))


async def _list_retired(call: Call, reason: str, limit: int, offset: int) -> Sequence[MemoryView]:
    tenant = await call.tenant()
    found = await service.retired_memories(call.database, workspace=tenant, reason=reason, limit=limit, offset=offset)
    return [memory_view(memory) for memory in found]


async def _change_tags(call: Call, data: TaggedIds, *, remove: bool) -> Changed:
    mask, tenant = call.settings.mask_secrets, await call.tenant()
    return await service.tag_memories(
        call.database, workspace=tenant, ids=data.ids, tag=data.tag, mask=mask, remove=remove
    )


async def _lines(rows: AsyncIterator[object]) -> AsyncIterator[bytes]:
    async for row in rows:
        yield _line(row)


def _line(row: object) -> bytes:
    return msgspec.json.encode(row) + b"\n"


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
