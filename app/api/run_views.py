"""How runs, observations that were asked for, and the chain around a memory are shown over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from app.api.memory_views import MemoryView
from app.retrieval.recall import Explanation
from app.runs.observations.request import Recorded
from app.runs.run import Compression, MemoryUses, Run, RunPoint, RunStory


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

    @classmethod
    def of(cls, run: Run) -> "RunView":
        """The view of a stored run."""
        spent = run.spent
        return cls(**{name: getattr(run, name) for name in Run.__slots__}, tokens=spent.tokens, cost=spent.cost)


class ObservationState(Struct, frozen=True):
    """What became of an observation that was asked for."""

    observation_id: UUID
    outcome: str | None
    """`stored`, `joined`, `refused`, `deleted`; null while it waits."""
    reason: str
    memory_id: UUID | None
    """The memory that holds it."""

    @classmethod
    def of(cls, state: Recorded | Compression) -> "ObservationState":
        """The view of either."""
        return cls(
            observation_id=state.observation_id,
            outcome=state.outcome,
            reason=state.reason,
            memory_id=state.memory_id,
        )


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
    """Over all stages; null where none says."""
    cost: float | None
    started_at: datetime | None
    finished_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, run: Run) -> "RunSummary":
        """The view of a stored run."""
        names = set(cls.__struct_fields__) - {"tokens", "cost"}
        shared: dict[str, Any] = {name: getattr(run, name) for name in names}
        return cls(**shared, tokens=run.spent.tokens, cost=run.spent.cost)


class RunPointView(Struct, frozen=True):
    """A judged run in a plot over time."""

    run_id: str
    task_type: str
    verdict: str
    final_score: float
    happened_at: datetime

    @classmethod
    def of(cls, point: RunPoint) -> "RunPointView":
        """The view of a point."""
        return cls(**{name: getattr(point, name) for name in cls.__struct_fields__})


class GivenView(Struct, frozen=True):
    """A memory that a recall gave to the run."""

    recall_id: UUID
    rank: int
    score: float
    id: UUID
    title: str | None
    """null where it is no longer stored."""
    agent: str | None
    given_at: datetime
    query: str
    explain: Explanation
    """Every component of the score, as it was then."""
    used: bool
    """Whether what it says came back in what the run wrote."""


class RunStoryView(Struct, frozen=True):
    """A run with the chain around it."""

    run_id: str
    stored: bool
    """Whether the run itself is; older data can name one that is not."""
    run: RunView | None
    given: Sequence[GivenView]
    observation: ObservationState | None
    observations: Sequence[MemoryView]

    @classmethod
    def of(cls, story: RunStory) -> "RunStoryView":
        """The view of a run's story."""
        return cls(
            run_id=story.run_id,
            stored=story.run is not None,
            run=None if story.run is None else RunView.of(story.run),
            given=[
                GivenView(
                    recall_id=item.recall_id, rank=item.rank, score=item.score, id=item.memory_id, title=item.title,
                    agent=item.agent, given_at=item.given_at, query=item.query, explain=dict(item.explain),
                    used=item.used,
                )
                for item in story.given
            ],
            observation=None if story.compression is None else ObservationState.of(story.compression),
            observations=[MemoryView.of(memory) for memory in story.observations],
        )  # fmt: skip


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

    id: UUID
    made_by: str | None
    made_by_stored: bool
    uses: int
    said_by: Sequence[TellerView]
    """The best judged first: that one gives the memory its score and its verdict."""
    given_to: Sequence[UseView]

    @classmethod
    def of(cls, uses: MemoryUses) -> "MemoryUsesView":
        """The view of a memory's uses."""
        given = [UseView(**{name: getattr(use, name) for name in UseView.__struct_fields__}) for use in uses.given_to]
        tellers = [
            TellerView(**{name: getattr(run, name) for name in TellerView.__struct_fields__}) for run in uses.said_by
        ]
        return cls(
            id=uses.memory_id, made_by=uses.made_by, made_by_stored=uses.made_by_stored, uses=uses.uses,
            said_by=tellers, given_to=given,
        )  # fmt: skip


class RunPage(Struct, frozen=True):
    """Runs, newest first, without their outputs."""

    runs: Sequence[RunSummary]
    next: str | None
