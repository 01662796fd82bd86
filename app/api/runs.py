"""`/api/runs`, `/api/runs/{run_id}`, `/api/memories/{id}/runs`, `/api/observations`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes
from uuid import UUID

from litestar import Controller, Request, Response, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.api.context import Context, WorkspaceHeader, context_of
from app.api.cursors import cursor_of, run_place_of
from app.api.fields import Name, Score, Tags
from app.api.problems import PROBLEMS
from app.api.run_views import (
    MemoryUsesView,
    ObservationState,
    RunPage,
    RunPointView,
    RunStoryView,
    RunSummary,
    RunView,
    SavedRunView,
)
from app.memories.admission import TASK_LIMIT
from app.memories.browse import LARGEST_PAGE
from app.runs.browse import get_run, list_runs, memory_uses, run_points
from app.runs.observations.issues import learn_issues
from app.runs.observations.observation import Outcome
from app.runs.observations.request import get_observation, request_observation
from app.runs.observations.settle import compress_requested
from app.runs.record import LARGEST_OUTPUT, LIST_LIMIT, record_run
from app.runs.run import NewRun, Run

Text = Annotated[str, Meta(max_length=TASK_LIMIT)]
Output = Annotated[str, Meta(max_length=LARGEST_OUTPUT)]
Texts = Annotated[list[Text], Meta(max_length=LIST_LIMIT)]
Wait = Annotated[bool, QueryParameter(description="answer once the observation is made")]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Bytes = Annotated[int, Meta(ge=0, le=2**53)]


class RunChange(Struct, forbid_unknown_fields=True):
    """What is new of a run; what is left out stays as it is."""

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

    def run(self, run_id: str) -> NewRun:
        """The value that the verb takes."""
        given: dict[str, Any] = {name: getattr(self, name) for name in NewRun.__slots__ if name != "run_id"}
        lists = {name: tuple(given[name]) for name in _LISTS if given[name] is not None}
        return NewRun(run_id=run_id, **{**given, **lists})


RUNS_PATH = b"/api/runs/"
_LISTS = ("queries", "round_scores", "issues")


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

    def outcome(self) -> Outcome:
        """The value that the verb takes."""
        given = {name: getattr(self, name) for name in Outcome.__slots__}
        return Outcome(**{**given, **{name: tuple(given[name]) for name in ("queries", "issues", "tags")}})


class RunsController(Controller):
    """What pipelines did, what they were given, and what it left behind."""

    path = "/api"
    tags = ("runs",)

    @post("/runs", status_code=200, responses=PROBLEMS)
    async def record(
        self,
        state: State,
        data: JSONBody[RunInput],
        workspace: WorkspaceHeader = None,
        wait: Wait = False,  # noqa: FBT002 - a query parameter
    ) -> Response[SavedRunView]:
        """Start or complete a run. The same run sent twice is one run. 202 while its observation waits."""
        return await _record(context_of(state), data.run(data.run_id), data, workspace, wait=wait, must_exist=False)

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
        return await _record(
            context_of(state), data.run(_named(request, run_id)), data, workspace, wait=wait, must_exist=True
        )

    @get("/runs", responses=PROBLEMS)
    async def page(
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        task_type: FromQuery[str | None] = None,
        verdict: FromQuery[str | None] = None,
        agent: FromQuery[str | None] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 50,
        cursor: Annotated[str | None, QueryParameter(max_length=1_600)] = None,
    ) -> RunPage:
        """Runs, newest first."""
        context = context_of(state)
        found = await list_runs(
            context.opened.database,
            workspace=context.workspace(workspace),
            task_type=task_type,
            verdict=verdict,
            agent=agent,
            limit=limit,
            before=run_place_of(cursor),
        )
        following = cursor_of(found[-1].created_at, found[-1].run_id) if len(found) == limit else None
        return RunPage(runs=[RunSummary.of(run) for run in found], next=following)

    @get("/runs:scores", responses=PROBLEMS)
    async def scores(self, state: State, workspace: WorkspaceHeader = None) -> Sequence[RunPointView]:
        """The latest 2,000 judged runs, as a plot of scores over time needs them."""
        context = context_of(state)
        found = await run_points(context.opened.database, workspace=context.workspace(workspace))
        return [RunPointView.of(point) for point in found]

    @get("/runs/{run_id:path}", responses=PROBLEMS)
    async def show(
        self, state: State, run_id: FromPath[str], request: Request[Any, Any, Any], workspace: WorkspaceHeader = None
    ) -> RunStoryView:
        """A run: which memories it was given, what it produced, how it was judged, and what it left."""
        context = context_of(state)
        story = await get_run(
            context.opened.database, workspace=context.workspace(workspace), run_id=_named(request, run_id)
        )
        return RunStoryView.of(story)

    @get("/memories/{memory_id:uuid}/runs", responses=PROBLEMS)
    async def uses(self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> MemoryUsesView:
        """Every run that a memory was given to, and how each was judged."""
        context = context_of(state)
        found = await memory_uses(context.opened.database, workspace=context.workspace(workspace), memory_id=memory_id)
        return MemoryUsesView.of(found)

    @post("/observations", status_code=202, responses=PROBLEMS)
    async def observe(
        self,
        state: State,
        data: JSONBody[OutcomeInput],
        workspace: WorkspaceHeader = None,
        wait: Wait = False,  # noqa: FBT002 - a query parameter
    ) -> Response[ObservationState]:
        """Compress a finished run. 202 at once, or 200 once it is made with `?wait=true`."""
        found = await _observe(context_of(state), data.outcome(), workspace, wait=wait)
        return Response(found, status_code=200 if found.outcome else 202)

    @get("/observations/{observation_id:uuid}", responses=PROBLEMS)
    async def observation(
        self, state: State, observation_id: FromPath[UUID], workspace: WorkspaceHeader = None
    ) -> ObservationState:
        """What became of an observation that was asked for."""
        context = context_of(state)
        found = await get_observation(
            context.opened.database, workspace=context.workspace(workspace), observation_id=observation_id
        )
        return ObservationState.of(found)


def _named(request: Request[Any, Any, Any], run_id: str) -> str:
    """The run's name as it was sent: the router takes slashes that follow each other for one."""
    raw = request.scope.get("raw_path")
    _, found, name = (raw or b"").partition(RUNS_PATH)
    return unquote_to_bytes(name).decode(errors="surrogateescape") if found else run_id.removeprefix("/")


async def _record(
    context: Context, run: NewRun, data: RunChange, workspace: str | None, *, wait: bool, must_exist: bool
) -> Response[SavedRunView]:
    services = context.opened
    saved, _ = await record_run(
        services.database,
        needs_output=data.remember,
        workspace=context.workspace(workspace),
        language=services.settings.language,
        run=run,
        must_exist=must_exist,
        mask=services.settings.mask_secrets,
    )
    if run.issues is not None:
        await learn_issues(
            services.database,
            services.counter,
            workspace=context.workspace(workspace),
            evaluator=services.settings.evaluator,
            run=saved,
        )
    if not data.remember:
        return Response(SavedRunView(run=RunView.of(saved)), status_code=200)
    observed = await _observe(context, outcome_of(saved), workspace, wait=wait)
    view = SavedRunView(run=RunView.of(saved), observation=observed)
    return Response(view, status_code=200 if observed.outcome else 202)


def outcome_of(run: Run) -> Outcome:
    """A stored run as it is compressed. Its issues are looked up when it is: they can be withdrawn until then."""
    return Outcome(
        task=run.task,
        output=run.output or "",
        task_type=run.task_type,
        queries=run.queries,
        lines=run.lines,
        bytes=run.bytes,
        output_path=run.output_path,
        run_id=run.run_id,
        final_score=run.final_score,
        verdict=run.verdict,
        occurred_at=run.finished_at,
    )


async def _observe(context: Context, outcome: Outcome, workspace: str | None, *, wait: bool) -> ObservationState:
    services = context.opened
    target = context.workspace(workspace)
    observation_id = await request_observation(
        services.database,
        workspace=target,
        language=services.settings.language,
        outcome=outcome,
        mask=services.settings.mask_secrets,
    )
    if wait:
        found = await compress_requested(
            services.database, services.compressor, workspace=target, observation_id=observation_id
        )
    else:
        found = await get_observation(services.database, workspace=target, observation_id=observation_id)
    return ObservationState.of(found)
