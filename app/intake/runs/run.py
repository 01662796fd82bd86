"""A run before it is stored, as it is stored, and the chain around it. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from app.errors import check
from app.foundation.text.data import check_value, unstorable
from app.foundation.values import frozen
from app.storage.memories.gate import score_reasons
from app.storage.memories.memory import NAME_LIMIT, TASK_LIMIT, Memory, Name, Score
from app.storage.recalls.parts import ScoreParts
from app.storage.recalls.store import Explanation

_LARGEST_OUTPUT = 5_000_000
"""Most characters of an output."""
_LIST_LIMIT = 1_000
Text: TypeAlias = Annotated[str, Meta(max_length=TASK_LIMIT)]
Task: TypeAlias = Annotated[
    Text, Meta(description="what the run was to do; to look for earlier work on it, ask with it as `query`")
]
Texts: TypeAlias = Annotated[tuple[Text, ...], Meta(max_length=_LIST_LIMIT)]
Output: TypeAlias = Annotated[str, Meta(max_length=_LARGEST_OUTPUT)]
LineCount: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
ByteCount: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
RunId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT, description="the pipeline's own")]


class RunFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a run as a pipeline reports them; a field of None keeps its stored value."""

    task: Task | None = None
    task_type: Name | None = None
    agent: Name | None = None
    queries: Texts | None = None
    output: Output | None = None
    output_path: Text | None = None
    lines: LineCount | None = None
    """Lines of the output; counted if the output is given and this is not."""
    bytes: ByteCount | None = None
    round_scores: Annotated[tuple[Score, ...], Meta(max_length=_LIST_LIMIT)] | None = None
    """The evaluator's score after each round, 0 to 10."""
    final_score: Score | None = None
    verdict: Name | None = None
    issues: Texts | None = None
    """The evaluator's issues."""
    stages: Mapping[str, Any] | None = None
    """Tokens and cost by stage, in the order of the stages."""
    metadata: Mapping[str, Any] | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class NewRun(RunFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run as a pipeline reports it."""

    run_id: RunId


class RunSummary(Struct, frozen=True, kw_only=True):
    """A stored run without its output, and what else is long."""

    run_id: str
    task: str
    task_type: str
    agent: str | None
    round_scores: tuple[float, ...]
    final_score: float | None
    verdict: str
    issues: tuple[str, ...]
    started_at: datetime | None
    finished_at: datetime | None
    created_at: datetime
    tokens: int | None = None
    """The sum over all stages; None where none says."""
    cost: float | None = None


class Run(RunSummary, frozen=True, kw_only=True):
    """A stored run."""

    queries: tuple[str, ...]
    output: str | None
    output_path: str | None
    lines: int | None
    bytes: int | None
    stages: Mapping[str, Any]
    metadata: Mapping[str, Any]
    updated_at: datetime

    def __post_init__(self) -> None:
        """Sums what its stages used."""
        tokens, cost = sum_of_stages(self.stages)
        force_setattr(self, "tokens", tokens)
        force_setattr(self, "cost", cost)


class Spent(NamedTuple):
    """Tokens and cost of a run, summed over its stages; None if no stage names them."""

    tokens: int | None
    cost: float | None


TOKEN_NAMES = ("tokens", "input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")
"""Names of token counts in a stage; `tokens` is the total, the others are parts."""
_MOST_SPENT = 1e15
"""Largest plausible number of tokens or amount of cost; a larger one is ignored."""


def sum_of_stages(stages: Mapping[str, Any]) -> Spent:
    """Returns the sums of tokens and cost over the stages that are objects and name them."""
    named = [stage for stage in stages.values() if isinstance(stage, Mapping)]
    tokens = [found for stage in named if (found := _tokens(stage)) is not None]
    costs = [found for stage in named if (found := _number(stage.get("cost"))) is not None]
    return Spent(round(sum(tokens)) if tokens else None, sum(costs) if costs else None)


def _tokens(stage: Mapping[str, Any]) -> float | None:
    whole, *parts = (_number(stage.get(name)) for name in TOKEN_NAMES)
    given = [part for part in parts if part is not None]
    return whole if whole is not None else sum(given) if given else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST_SPENT else None


Use = Literal["used", "not used", "not known"]
"""The use of a memory by the run that it was given to: its output repeats it, or does not."""


class GivenMemory(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A memory that a recall gave to a run."""

    recall_id: UUID
    rank: int
    score: float
    memory_id: UUID
    title: str | None
    """The memory's title, or the beginning of its text; None if the memory is no longer stored."""
    shown: str | None
    """The passages of it that the history showed; None where that is not known: of a search, or after an edit."""
    agent: str | None
    given_at: datetime
    query: str
    explain: Explanation
    """Every component of the score at the time of the recall."""
    parts: ScoreParts
    """The score is the sum of these."""
    used: Use
    """not known: the run has no output, or none that was compared with what the run was given."""


class GivenCue(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A cue that a run was warned by."""

    activation_id: UUID
    memory_id: UUID
    lesson: str | None
    """None if the cue is no longer stored."""
    plan: str
    """The plan that fired it."""
    given_at: datetime
    outcome: Literal["heeded", "ignored"] | None
    """None if it is not known."""


STORED, JOINED, REFUSED = "stored", "joined", "refused"


@frozen
class Recorded:
    """The state of an observation that was asked for."""

    observation_id: UUID
    outcome: str | None
    """STORED, JOINED (an earlier memory says the same), REFUSED, DELETED or SUPERSEDED since; None while it is
    queued."""
    reason: str
    memory_id: UUID | None
    """The id of the memory that holds the observation."""


DELETED_SINCE = "a person deleted its memory, which is not stored again; restore it, or send another output"
SUPERSEDED_SINCE = "an observation that says more, or was judged better, took its place"


@frozen
class RunStory:
    """A run with the chain around it; `run` is None if only its traces are stored."""

    run_id: str
    run: Run | None
    given: tuple[GivenMemory, ...]
    cues: tuple[GivenCue, ...]
    compression: Recorded | None
    observations: tuple[Memory, ...]
    """The observations of the run."""


@frozen
class MemoryUse:
    """A run that a memory was given to, and how that run was judged."""

    run_id: str
    stored: bool
    """True if the run itself is stored; older data can name one that is not."""
    recall_id: UUID
    rank: int
    score: float
    used: bool
    """True if the run's output repeats the memory."""
    given_at: datetime
    task: str | None
    agent: str | None
    final_score: float | None
    verdict: str | None


@frozen
class MemoryTeller:
    """A run whose observation a memory holds, and how that run was judged."""

    run_id: str | None
    """The run's name; None if the request for the observation named no run."""
    stored: bool
    """True if the run itself is stored."""
    outcome: str
    """`stored` if the run made the memory, `joined` if the memory said the same already."""
    task: str
    final_score: float | None
    """The run's score, or else the score in the request for the observation."""
    verdict: str
    said_at: datetime


class MemoryUses(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """The runs around a memory: the one that made it, and those that it was given to."""

    memory_id: UUID
    made_by: str | None
    """The name of the run that the memory was made of."""
    made_by_stored: bool
    uses: int
    """Number of recalls whose run used the memory."""
    said_by: tuple[MemoryTeller, ...]
    """The runs whose observation it holds, the best judged first: this run gives the memory its score and its
    verdict."""
    given_to: tuple[MemoryUse, ...]


def counts(output: str) -> dict[str, Any]:
    """Returns the numbers of an output's lines and bytes."""
    lines = output.count("\n") + (not output.endswith("\n") and bool(output))
    return {"lines": lines, "bytes": len(output.encode())}


def check_run(run: NewRun) -> None:
    """Raises InvalidInput if a field is not valid."""
    check(name_reasons(run.run_id))
    check_value(run)
    for name, scores in (("round_scores", run.round_scores or ()), ("final_score", (run.final_score or 0,))):
        check(reason for score in scores for reason in score_reasons(name, score))


def name_reasons(run_id: str) -> Iterator[str]:
    """Yields the reasons why a run cannot have this name."""
    if not run_id.strip() or len(run_id) > NAME_LIMIT:
        yield f"run_id: has 1 to {NAME_LIMIT} characters"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in run_id):  # noqa: PLR2004 - control characters
        yield "run_id: has a control character"
    yield from unstorable({"run_id": run_id})
