"""`/api/runs`, `/api/runs/{run_id}`, `/api/memories/{id}/runs`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote_to_bytes
from uuid import UUID

from litestar import Controller, Request, get
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, QueryParameter
from msgspec import Meta, Struct, field

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.api.schemas import MemoryView, converted, cursor_of, memory_view, named_place_of
from app.memories.browse import LARGEST_PAGE
from app.retrieval.recall import Explanation
from app.runs.record import LARGEST_OUTPUT, get_run, list_runs, memory_uses, run_points
from app.runs.run import Run

Output = Annotated[str, Meta(max_length=LARGEST_OUTPUT)]
RUNS_PATH = b"/api/runs/"


class ObservationState(Struct, frozen=True):
    """The state of an observation that was asked for."""

    observation_id: UUID
    outcome: str | None
    """`stored`, `joined`, `refused`, `deleted`; null while it waits."""
    reason: str
    memory_id: UUID | None
    """The memory that holds it."""


class RunView(Struct, frozen=True):
    """A stored run."""

    run_id: str
    task: str
    task_type: str
    agent: str | None
    queries: Sequence[str]
    output: str | None
    output_path: str | None
    lines: int | None
    bytes: int | None
    round_scores: Sequence[float]
    final_score: float | None
    verdict: str
    issues: Sequence[str]
    stages: dict[str, Any]
    metadata: dict[str, Any]
    started_at: datetime | None
    finished_at: datetime | None
    created_at: datetime
    updated_at: datetime
    tokens: int | None
    cost: float | None


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


class RunPointView(Struct, frozen=True):
    """A judged run in a plot over time."""

    run_id: str
    task_type: str
    verdict: str
    final_score: float
    happened_at: datetime


class GivenView(Struct, frozen=True):
    """A memory that a recall gave to the run."""

    recall_id: UUID
    rank: int
    score: float
    memory_id: UUID = field(name="id")
    title: str | None
    """null where it is no longer stored."""
    agent: str | None
    given_at: datetime
    query: str
    explain: Explanation
    """Every component of the score, as it was then."""
    used: bool
    """True where its text came back in what the run wrote."""


class RunStoryView(Struct, frozen=True):
    """A run with the chain around it."""

    run_id: str
    stored: bool
    """False if the run itself is not stored and only other rows name it, as older data may."""
    run: RunView | None
    given: Sequence[GivenView]
    compression: ObservationState | None = field(name="observation")
    observations: Sequence[MemoryView]


class UseView(Struct, frozen=True):
    """A run that the memory was given to."""

    run_id: str
    stored: bool
    recall_id: UUID
    rank: int
    score: float
    used: bool
    given_at: datetime
    task: str | None
    agent: str | None
    final_score: float | None
    verdict: str | None


class TellerView(Struct, frozen=True):
    """A run whose observation the memory holds."""

    run_id: str | None
    """null where none was named."""
    stored: bool
    outcome: str
    """`stored` where it made the memory, `joined` where the memory said it already."""
    task: str
    final_score: float | None
    verdict: str
    said_at: datetime


class MemoryUsesView(Struct, frozen=True):
    """The runs around a memory."""

    memory_id: UUID = field(name="id")
    made_by: str | None
    made_by_stored: bool
    uses: int
    said_by: Sequence[TellerView]
    """The best judged run comes first; it gives the memory its score and its verdict."""
    given_to: Sequence[UseView]


V = TypeVar("V", RunView, RunSummary)


def shown_run(run: Run, view: type[V]) -> V:
    """Returns the view of a run, with what its stages say that it used."""
    spent = run.spent
    return converted(run, view, tokens=spent.tokens, cost=spent.cost)


class RunViewsController(Controller):
    """Shows runs, what they were given and what they left behind."""

    path = "/api"
    tags = ("runs",)

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
            context.database,
            workspace=await context.workspace(workspace),
            task_type=task_type,
            verdict=verdict,
            agent=agent,
            limit=limit,
            before=named_place_of(cursor),
        )
        following = cursor_of(found[-1].created_at, found[-1].run_id) if len(found) == limit else None
        return RunPage(runs=[shown_run(run, RunSummary) for run in found], next=following)

    @get("/runs:scores", responses=PROBLEMS)
    async def scores(self, state: State, workspace: WorkspaceHeader = None) -> Sequence[RunPointView]:
        """The latest 2,000 judged runs, as a plot of scores over time needs them."""
        context = context_of(state)
        found = await run_points(context.database, workspace=await context.workspace(workspace))
        return converted(found, list[RunPointView])

    @get("/runs/{run_id:path}", responses=PROBLEMS)
    async def show(
        self, state: State, run_id: FromPath[str], request: Request[Any, Any, Any], workspace: WorkspaceHeader = None
    ) -> RunStoryView:
        """A run: which memories it was given, what it produced, how it was judged, and what it left."""
        context = context_of(state)
        target = await context.workspace(workspace)
        story = await get_run(context.database, workspace=target, run_id=named_run(request, run_id))
        run = None if story.run is None else shown_run(story.run, RunView)
        observations = [memory_view(memory) for memory in story.observations]
        return converted(story, RunStoryView, stored=run is not None, run=run, observations=observations)

    @get("/memories/{memory_id:uuid}/runs", responses=PROBLEMS)
    async def uses(self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> MemoryUsesView:
        """Every run that a memory was given to, and how each was judged."""
        context = context_of(state)
        target = await context.workspace(workspace)
        return converted(await memory_uses(context.database, workspace=target, memory_id=memory_id), MemoryUsesView)


def named_run(request: Request[Any, Any, Any], run_id: str) -> str:
    """Returns the run's name as it was sent: the router takes slashes that follow each other for one."""
    raw = request.scope.get("raw_path")
    _, found, name = (raw or b"").partition(RUNS_PATH)
    return unquote_to_bytes(name).decode(errors="surrogateescape") if found else run_id.removeprefix("/")
