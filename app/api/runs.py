"""`/api/runs`, `/api/runs/{run_id}`, `/api/observations`, `/api/memories/{id}/runs`: recording and showing runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

from litestar import Controller, Request, Response, get, patch, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import UNSET, Meta, Struct, UnsetType, field

from app.api.context import BY_USER, Call, ThisCall, name_in_path
from app.api.problems import PROBLEMS
from app.api.schemas import MemoryView, Name, Score, Tags, User, converted, cursor_of, memory_view, place_of, view_of
from app.memories.browse import LARGEST_PAGE
from app.memories.gate import TASK_LIMIT
from app.runs.observations.observation import Outcome
from app.runs.observations.request import get_observation, learn_issues, request_observation
from app.runs.observations.settle import compress_requested
from app.runs.record import LARGEST_OUTPUT, LIST_LIMIT, get_run, list_runs, memory_uses, record_run, run_points
from app.runs.run import GivenMemory, MemoryTeller, MemoryUse, MemoryUses, NewRun, Recorded, Run, RunPoint
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace

RUNS_PATH = b"/api/runs/"

Text = Annotated[str, Meta(max_length=TASK_LIMIT)]
Texts = Annotated[list[Text], Meta(max_length=LIST_LIMIT)]
Output = Annotated[str, Meta(max_length=LARGEST_OUTPUT)]
Wait = Annotated[bool, QueryParameter(description="answer once the observation is made")]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Bytes = Annotated[int, Meta(ge=0, le=2**53)]
V = TypeVar("V", "RunView", "RunSummary")


class RunChange(Struct, forbid_unknown_fields=True):
    """The new fields of a run; what is left out stays as it is."""

    task: Text | None = None
    task_type: Name | None = None
    agent: Name | None = None
    queries: Texts | None = None
    output: Output | None = None
    output_path: Text | None = None
    lines: Count | None = None
    bytes: Bytes | None = None
    round_scores: Annotated[list[Score], Meta(max_length=LIST_LIMIT)] | None = None
    final_score: Score | None = None
    verdict: Name | None = None
    issues: Texts | None = None
    user: User = ""
    stages: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    remember: bool = False
    """Compress it to an observation."""


class RunInput(RunChange, forbid_unknown_fields=True, kw_only=True):
    """A run, started or complete."""

    run_id: Annotated[str, Meta(min_length=1, max_length=200, description="the pipeline's own")]


class OutcomeInput(Struct, forbid_unknown_fields=True):
    """A finished run to compress."""

    output: Annotated[Output, Meta(description="may be left out with the `run_id` of a stored run that has one")] = ""
    task: Text = ""
    task_type: Name = ""
    queries: Texts = []
    lines: Count | None = None
    bytes: Bytes | None = None
    output_path: Text | None = None
    run_id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    final_score: Score | None = None
    verdict: Name = ""
    issues: Texts = []
    tags: Tags = []
    user: User = ""
    language: Name | None = None
    occurred_at: datetime | None = None


@view_of(Recorded)
class ObservationState(Struct):
    """The state of an observation that was asked for."""


@view_of(Run)
class RunView(Struct):
    """A stored run."""

    tokens: int | None
    cost: float | None


class SavedRunView(Struct, frozen=True, omit_defaults=True):
    """A run as it is stored now."""

    run: RunView
    observation: ObservationState | UnsetType = UNSET


class RunSummary(Struct, frozen=True):
    """A stored run without its output."""

    run_id: str
    task: str
    task_type: str
    agent: str | None
    round_scores: Sequence[float]
    final_score: float | None
    verdict: str
    issues: Sequence[str]
    tokens: int | None
    """The sum over all stages; null where none says."""
    cost: float | None
    started_at: datetime | None
    finished_at: datetime | None
    created_at: datetime


class RunPage(Struct, frozen=True):
    """Runs, newest first, without their outputs."""

    runs: Sequence[RunSummary]
    next: str | None


@view_of(RunPoint)
class RunPointView(Struct):
    """A judged run in a plot over time."""


@view_of(GivenMemory, memory_id="id")
class GivenView(Struct):
    """A memory that a recall gave to the run."""


class RunStoryView(Struct, frozen=True):
    """A run with the chain around it."""

    run_id: str
    stored: bool
    """False if the run itself is not stored and only other rows name it, as older data may."""
    run: RunView | None
    given: Sequence[GivenView]
    compression: ObservationState | None = field(name="observation")
    observations: Sequence[MemoryView]


@view_of(MemoryUse)
class UseView(Struct):
    """A run that the memory was given to."""


@view_of(MemoryTeller)
class TellerView(Struct):
    """A run whose observation the memory holds."""


@view_of(MemoryUses, memory_id="id")
class MemoryUsesView(Struct):
    """The runs around a memory."""

    said_by: Sequence[TellerView]
    given_to: Sequence[UseView]


SAVED = {
    **PROBLEMS,
    202: ResponseSpec(SavedRunView, description="saved; its observation waits", generate_examples=False),
}
ASKED = {**PROBLEMS, 200: ResponseSpec(ObservationState, description="made, or refused", generate_examples=False)}
"""The answers of routes beside their usual one."""


class RunsController(Controller):
    """Records runs, compresses what they left, and shows them."""

    path = "/api"
    tags = ("runs",)

    @get("/runs", responses=PROBLEMS, dependencies=BY_USER)
    async def page(
        self,
        call: ThisCall,
        task_type: FromQuery[str | None] = None,
        verdict: FromQuery[str | None] = None,
        agent: FromQuery[str | None] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 50,
        cursor: Annotated[str | None, QueryParameter(max_length=1_600)] = None,
    ) -> RunPage:
        """Runs, newest first."""
        found = await list_runs(
            call.database,
            before=place_of(cursor, datetime.fromisoformat, str),
            workspace=await call.tenant(),
            task_type=task_type,
            verdict=verdict,
            agent=agent,
            limit=limit,
        )
        following = cursor_of(found[-1].created_at, found[-1].run_id) if len(found) == limit else None
        return RunPage(runs=[shown_run(run, RunSummary) for run in found], next=following)

    @get("/runs:scores", responses=PROBLEMS, dependencies=BY_USER)
    async def scores(self, call: ThisCall) -> Sequence[RunPointView]:
        """The latest 2,000 judged runs, as a plot of scores over time needs them."""
        return converted(await run_points(call.database, workspace=await call.tenant()), list[RunPointView])

    @get("/runs/{run_id:path}", responses=PROBLEMS, dependencies=BY_USER)
    async def show(self, run_id: FromPath[str], call: ThisCall, request: Request[Any, Any, Any]) -> RunStoryView:
        """A run: which memories it was given, what it produced, how it was judged, and what it left."""
        story = await get_run(
            call.database, workspace=await call.tenant(), run_id=name_in_path(request, RUNS_PATH, run_id)
        )
        run = None if story.run is None else shown_run(story.run, RunView)
        observations = [memory_view(memory) for memory in story.observations]
        return converted(story, RunStoryView, stored=run is not None, run=run, observations=observations)

    @get("/memories/{memory_id:uuid}/runs", responses=PROBLEMS, dependencies=BY_USER)
    async def uses(self, memory_id: FromPath[UUID], call: ThisCall) -> MemoryUsesView:
        """Every run that a memory was given to, and how each was judged."""
        found = await memory_uses(call.database, workspace=await call.tenant(), memory_id=memory_id)
        return converted(found, MemoryUsesView)

    @post("/runs", status_code=200, responses=SAVED)
    async def record(self, call: ThisCall, data: JSONBody[RunInput], wait: Wait = False) -> Response[SavedRunView]:
        """Start or complete a run. The same run sent twice is one run. 202 while its observation waits."""
        run = converted(data, NewRun)
        return await _record(call.asked_by(data.user), run, remember=data.remember, wait=wait, must_exist=False)

    @patch("/runs/{run_id:path}", responses=SAVED)
    async def complete(
        self,
        run_id: FromPath[str],
        call: ThisCall,
        request: Request[Any, Any, Any],
        data: JSONBody[RunChange],
        wait: Wait = False,
    ) -> Response[SavedRunView]:
        """Complete a run. 202 while its observation waits."""
        run = converted(data, NewRun, run_id=name_in_path(request, RUNS_PATH, run_id))
        return await _record(call.asked_by(data.user), run, remember=data.remember, wait=wait, must_exist=True)

    @post("/observations", status_code=202, responses=ASKED)
    async def observe(
        self, call: ThisCall, data: JSONBody[OutcomeInput], wait: Wait = False
    ) -> Response[ObservationState]:
        """Compress a finished run, stored or sent here. 202 at once, or 200 once it is made with `?wait=true`."""
        found = await observe(call, converted(data, Outcome), await call.asked_by(data.user).writer(), wait=wait)
        return Response(converted(found, ObservationState), status_code=_status(found))

    @get("/observations/{observation_id:uuid}", responses=PROBLEMS, dependencies=BY_USER)
    async def observation(self, observation_id: FromPath[UUID], call: ThisCall) -> ObservationState:
        """Show the state of an observation that was asked for."""
        found = await get_observation(call.database, workspace=await call.tenant(), observation_id=observation_id)
        return converted(found, ObservationState)


async def observe(call: Call, outcome: Outcome, workspace: Workspace, *, wait: bool) -> Recorded:
    """Asks for an observation of a finished run, and makes it now with `wait`; returns its state."""
    database, mask = call.database, call.settings.mask_secrets
    observation_id = await request_observation(database, workspace=workspace, outcome=outcome, mask=mask)
    workspace = await made(database, workspace)
    if not wait:
        return await get_observation(database, workspace=workspace, observation_id=observation_id)
    compressor = call.services.compressor
    return await compress_requested(database, compressor, workspace=workspace, observation_id=observation_id)


async def _record(call: Call, run: NewRun, *, remember: bool, wait: bool, must_exist: bool) -> Response[SavedRunView]:
    settings, workspace = call.settings, await call.writer()
    database, mask = call.database, settings.mask_secrets
    saved, _ = await record_run(
        database, workspace=workspace, run=run, must_exist=must_exist, needs_output=remember, mask=mask
    )
    workspace = await made(database, workspace)
    if run.issues is not None:
        evaluator = settings.evaluator
        await learn_issues(database, call.services.counter, workspace=workspace, evaluator=evaluator, run=saved)
    if not remember:
        return Response(SavedRunView(run=shown_run(saved, RunView)), status_code=200)
    observed = await observe(call, Outcome(run_id=saved.run_id), workspace, wait=wait)
    view = SavedRunView(run=shown_run(saved, RunView), observation=converted(observed, ObservationState))
    return Response(view, status_code=_status(observed))


def _status(observed: Recorded) -> int:
    return 200 if observed.outcome else 202


def shown_run(run: Run, view: type[V]) -> V:
    """Returns the view of a run, with the tokens and the cost of its stages."""
    spent = run.spent
    return converted(run, view, tokens=spent.tokens, cost=spent.cost)
