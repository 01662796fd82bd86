"""`/api/runs`, `/api/observations` and `/api/cases`."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from litestar import Controller, Response
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import UNSET, Struct, UnsetType, field

from app.errors import EmbeddingUnavailable
from app.intake.cases.cases import CaseHistory
from app.intake.cases.store import CaseSummary
from app.intake.runs.observations.observation import Outcome
from app.intake.runs.run import GivenCue, GivenMemory, NewRun, Recorded, Run, RunFields, RunId, RunSummary
from app.interfaces.http.context import BY_USER, Call, Cursor, Limit, ThisCall, Wait, name_of
from app.interfaces.http.intake import embed
from app.interfaces.http.schemas import (
    PROBLEMS,
    DegradedView,
    MemoryView,
    convert,
    cursor_of,
    get,
    memory_view,
    patch,
    place_of,
    post,
)
from app.storage.memories.service import LARGEST_PAGE
from app.storage.tenants.workspace import NOBODY, User, Workspace


class RunChange(RunFields, frozen=True, kw_only=True):
    """The new fields of a run; what is left out stays as it is."""

    user: User = ""
    remember: bool = False
    """Compress it to an observation."""


class RunInput(RunChange, frozen=True, kw_only=True):
    """A run, started or complete."""

    run_id: RunId


class OutcomeInput(Outcome, frozen=True, kw_only=True):
    """A finished run to compress."""

    user: User = ""


class SavedRunView(Struct, frozen=True, omit_defaults=True):
    """A run as it is stored now."""

    run: Run
    observation: Recorded | UnsetType = UNSET
    degraded: Sequence[DegradedView] | UnsetType = UNSET
    """With `?wait=true`: why what the run left has no vector yet."""


class RunPage(Struct, frozen=True):
    """Runs, newest first, without their outputs."""

    runs: Sequence[RunSummary]
    next: str | None


class RunStoryView(Struct, frozen=True):
    """A run with the chain around it."""

    run_id: str
    stored: bool
    """False if the run itself is not stored and only other rows name it, as older data may."""
    run: Run | None
    given: Sequence[GivenMemory]
    cues: Sequence[GivenCue]
    compression: Recorded | None = field(name="observation")
    observations: Sequence[MemoryView]


_SAVED = {
    **PROBLEMS,
    202: ResponseSpec(SavedRunView, description="saved; its observation waits", generate_examples=False),
}
ASKED = {**PROBLEMS, 200: ResponseSpec(Recorded, description="made, or refused", generate_examples=False)}
"""The answers of routes beside their usual one."""


class RunsController(Controller):
    """Records runs, compresses what they left, and shows them."""

    path = "/api"
    tags = ("runs",)

    @get("/runs", dependencies=BY_USER)
    async def page(
        self,
        call: ThisCall,
        task_type: FromQuery[str | None] = None,
        verdict: FromQuery[str | None] = None,
        agent: FromQuery[str | None] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> RunPage:
        """Runs, newest first."""
        before = place_of(cursor, datetime.fromisoformat, str)
        found = await call.services.runs.page(
            await call.tenant(), before=before, task_type=task_type, verdict=verdict, agent=agent, limit=limit
        )
        following = cursor_of(found[-1].created_at, found[-1].run_id) if len(found) == limit else None
        return RunPage(runs=[convert(run, RunSummary) for run in found], next=following)

    @get("/runs/{run_id:str}", dependencies=BY_USER)
    async def show(self, run_id: FromPath[str], call: ThisCall) -> RunStoryView:
        """A run: which memories it was given, what it produced, how it was judged, and what it left."""
        story = await call.services.runs.get(await call.tenant(), name_of(run_id))
        observations = [memory_view(memory) for memory in story.observations]
        return convert(story, RunStoryView, stored=story.run is not None, observations=observations)

    @post("/runs", responses=_SAVED)
    async def record(self, call: ThisCall, data: JSONBody[RunInput], wait: Wait = False) -> Response[SavedRunView]:
        """Start or complete a run. The same run sent twice is one run. 202 while its observation waits."""
        run = convert(data, NewRun)
        return await _record(call.asked_by(data.user), run, remember=data.remember, wait=wait)

    @patch("/runs/{run_id:str}", responses=_SAVED)
    async def complete(
        self,
        run_id: FromPath[str],
        call: ThisCall,
        data: JSONBody[RunChange],
        wait: Wait = False,
    ) -> Response[SavedRunView]:
        """Complete a run; one that was not recorded is recorded whole. 202 while its observation waits."""
        run = convert(data, NewRun, run_id=name_of(run_id))
        return await _record(call.asked_by(data.user), run, remember=data.remember, wait=wait)

    @post("/observations", status_code=202, responses=ASKED)
    async def observe(self, call: ThisCall, data: JSONBody[OutcomeInput], wait: Wait = False) -> Response[Recorded]:
        """Compress a finished run, stored or sent here: 202 at once, or 200 once it is made with `?wait=true`."""
        tenant = await call.asked_by(data.user).writer()
        found = await call.services.observations.observe(tenant, convert(data, Outcome), wait=wait)
        if wait:
            await _settle(call, await call.services.workspaces.get_or_create(tenant), found)
        return Response(found, status_code=_status(found))

    @get("/observations/{observation_id:uuid}", dependencies=BY_USER)
    async def observation(self, observation_id: FromPath[UUID], call: ThisCall) -> Recorded:
        """Show the state of an observation that was asked for."""
        return await call.services.observations.get(await call.tenant(), observation_id)


async def _record(call: Call, run: NewRun, *, remember: bool, wait: bool) -> Response[SavedRunView]:
    runs, observations, workspace = call.services.runs, call.services.observations, await call.writer()
    saved, _ = await runs.record(workspace, run, needs_output=remember)
    workspace = await call.services.workspaces.get_or_create(workspace)
    if run.issues is not None:
        await observations.learn_issues(workspace, saved)
    observed = await observations.observe(workspace, Outcome(run_id=saved.run_id), wait=wait) if remember else None
    degraded = await _settle(call, workspace, observed) if wait else UNSET
    observation = observed or UNSET
    view = SavedRunView(run=saved, observation=observation, degraded=degraded)
    return Response(view, status_code=200 if observed is None else _status(observed))


async def _settle(call: Call, workspace: Workspace, observed: Recorded | None) -> Sequence[DegradedView]:
    """Matches the issues of the run's case, and embeds what the run left; returns why some of it has no vector.

    A worker does what cannot be done now: the run is stored in any case.
    """
    left = [] if observed is None or observed.memory_id is None else [observed.memory_id]
    with suppress(EmbeddingUnavailable):
        left += await call.services.cases.match(workspace.of(NOBODY))
    _, degraded = await embed(call.services, workspace, left)
    return degraded


def _status(observed: Recorded) -> int:
    return 200 if observed.outcome else 202


class CasesController(Controller):
    """Shows what was judged."""

    path = "/api"
    tags = ("cases",)
    dependencies = BY_USER

    @get("/cases")
    async def cases(self, call: ThisCall, limit: Limit = LARGEST_PAGE) -> Sequence[CaseSummary]:
        """The test cases that were judged, the latest judged first."""
        return await call.services.cases.page(await call.tenant(), limit=limit)

    @get("/cases/{case:str}")
    async def case(self, case: FromPath[str], call: ThisCall) -> CaseHistory:
        """A test case: its versions with dates, scores and verdicts, what changed, and its issues over them."""
        return await call.services.cases.get(await call.tenant(), name_of(case))
