"""`POST /api/runs`, `PATCH /api/runs/{run_id}`, `/api/observations`: recording runs and compressing what they left."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Request, Response, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import UNSET, Meta, Struct, UnsetType

from app.api.context import Context, WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.api.runs import ObservationState, RunView, RunViewsController, named_run, shown_run
from app.api.schemas import Name, Score, Tags, converted
from app.memories.admission import TASK_LIMIT
from app.runs.observations.observation import Outcome
from app.runs.observations.request import get_observation, learn_issues, request_observation
from app.runs.observations.settle import compress_requested
from app.runs.record import LARGEST_OUTPUT, LIST_LIMIT, record_run
from app.runs.run import NewRun, Run
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace

Text = Annotated[str, Meta(max_length=TASK_LIMIT)]
Texts = Annotated[list[Text], Meta(max_length=LIST_LIMIT)]
Output = Annotated[str, Meta(max_length=LARGEST_OUTPUT)]
Wait = Annotated[bool, QueryParameter(description="answer once the observation is made")]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Bytes = Annotated[int, Meta(ge=0, le=2**53)]


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

    output: Annotated[str, Meta(min_length=1, max_length=LARGEST_OUTPUT)]
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
    language: Name | None = None
    occurred_at: datetime | None = None


class SavedRunView(Struct, frozen=True, omit_defaults=True):
    """A run as it is stored now."""

    run: RunView
    observation: ObservationState | UnsetType = UNSET


class RunsController(RunViewsController):
    """Records runs and compresses what they left, and shows them: the methods of a path stand in one controller."""

    @post("/runs", status_code=200, responses=PROBLEMS)
    async def record(
        self,
        state: State,
        data: JSONBody[RunInput],
        workspace: WorkspaceHeader = None,
        wait: Wait = False,  # noqa: FBT002 - a query parameter
    ) -> Response[SavedRunView]:
        """Start or complete a run. The same run sent twice is one run. 202 while its observation waits."""
        context = context_of(state)
        target = await context.workspace(workspace)
        run = converted(data, NewRun)
        return await _record(context, target, run, remember=data.remember, wait=wait, must_exist=False)

    @patch("/runs/{run_id:path}", responses=PROBLEMS)
    async def complete(
        self,
        state: State,
        run_id: FromPath[str],
        request: Request[Any, Any, Any],
        data: JSONBody[RunChange],
        workspace: WorkspaceHeader = None,
        wait: Wait = False,  # noqa: FBT002 - a query parameter
    ) -> Response[SavedRunView]:
        """Complete a run. 202 while its observation waits."""
        context = context_of(state)
        target = await context.workspace(workspace)
        run = converted(data, NewRun, run_id=named_run(request, run_id))
        return await _record(context, target, run, remember=data.remember, wait=wait, must_exist=True)

    @post("/observations", status_code=202, responses=PROBLEMS)
    async def observe(
        self,
        state: State,
        data: JSONBody[OutcomeInput],
        workspace: WorkspaceHeader = None,
        wait: Wait = False,  # noqa: FBT002 - a query parameter
    ) -> Response[ObservationState]:
        """Compress a finished run. 202 at once, or 200 once it is made with `?wait=true`."""
        context = context_of(state)
        found = await observe(context, converted(data, Outcome), await context.workspace(workspace), wait=wait)
        return Response(found, status_code=200 if found.outcome else 202)

    @get("/observations/{observation_id:uuid}", responses=PROBLEMS)
    async def observation(
        self, state: State, observation_id: FromPath[UUID], workspace: WorkspaceHeader = None
    ) -> ObservationState:
        """What became of an observation that was asked for."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await get_observation(context.database, workspace=target, observation_id=observation_id)
        return converted(found, ObservationState)


async def observe(context: Context, outcome: Outcome, workspace: Workspace, *, wait: bool) -> ObservationState:
    """Ask for an observation of a finished run, and make it now with `wait`; returns its state."""
    services = context.opened
    observation_id = await request_observation(
        services.database, workspace=workspace, outcome=outcome, mask=services.settings.mask_secrets
    )
    workspace = await made(services.database, workspace)
    if wait:
        found = await compress_requested(
            services.database, services.compressor, workspace=workspace, observation_id=observation_id
        )
    else:
        found = await get_observation(services.database, workspace=workspace, observation_id=observation_id)
    return converted(found, ObservationState)


async def _record(
    context: Context, workspace: Workspace, run: NewRun, *, remember: bool, wait: bool, must_exist: bool
) -> Response[SavedRunView]:
    services = context.opened
    saved, _ = await record_run(
        services.database,
        needs_output=remember,
        workspace=workspace,
        run=run,
        must_exist=must_exist,
        mask=services.settings.mask_secrets,
    )
    workspace = await made(services.database, workspace)
    if run.issues is not None:
        evaluator = services.settings.evaluator
        await learn_issues(services.database, services.counter, workspace=workspace, evaluator=evaluator, run=saved)
    if not remember:
        return Response(SavedRunView(run=shown_run(saved, RunView)), status_code=200)
    observed = await observe(context, outcome_of(saved), workspace, wait=wait)
    view = SavedRunView(run=shown_run(saved, RunView), observation=observed)
    return Response(view, status_code=200 if observed.outcome else 202)


def outcome_of(run: Run) -> Outcome:
    """Returns a stored run as it is compressed. Its issues can be withdrawn until then, so they are read later."""
    return converted(run, Outcome, output=run.output or "", issues=(), occurred_at=run.finished_at)
