"""The request for a context: its fields with their limits, and its checks. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from app.errors import check
from app.foundation.text.data import faults_in
from app.recall.context.compile import ANTHROPIC, OPENAI, Format
from app.recall.context.representation import (
    ADDITIVE,
    CRITICAL,
    GIVEN,
    HIERARCHICAL,
    LABEL_LIMIT,
    LARGEST_BUDGET,
    OBSERVATION,
    Allocation,
    Budget,
    Label,
    Mode,
    Priority,
    Representation,
    Section,
    Share,
    Text,
    ToolDefinition,
)
from app.storage.memories.memory import Name

LARGEST_WINDOW, LARGEST_LIMIT = 200, 200
MOST_SECTIONS, MOST_TOOLS = 2_000, 200
EMBEDDING_LIMIT = 16_000

Id = Annotated[str, Meta(min_length=1, max_length=LABEL_LIMIT)]
Tokens = Annotated[int, Meta(ge=0, le=LARGEST_BUDGET)]
Model = Annotated[
    Label,
    Meta(description="the model that reads the context: tokens are counted as it does; empty: as the embedding model"),
]
Shape = Annotated[
    Format | None, Meta(description="the form of the compiled context; null: messages as the model's API takes them")
]


class Strategy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choice of what a context is hydrated with."""

    temporal_window: Annotated[int, Meta(ge=0, le=LARGEST_WINDOW, description="latest turns of the session")] = 10
    semantic_limit: Annotated[
        int, Meta(ge=0, le=LARGEST_LIMIT, description="related turns and chunks, and as many observations and notes")
    ] = 8
    semantic_threshold: Annotated[
        float, Meta(ge=0, le=1, description="least cosine similarity of a related memory and the request")
    ] = 0.0
    recency_decay: Annotated[
        float, Meta(gt=0, le=1, description="share of its recency that a memory keeps a day; 1: all of it")
    ] = 0.998
    include_knowledge: bool = True
    include_cues: bool = True


class GivenSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section that the caller gives."""

    id: Id
    content: Text
    label: Label = ""
    source: Annotated[Name, Meta(description="where it comes from, such as `knowledge`; it decides its place")] = GIVEN
    priority: Priority = "high"
    mode: Mode = ADDITIVE
    relevance: Share = 1.0
    recency: Share = 1.0
    min_tokens: Tokens = 0
    reference: Annotated[bool, Meta(description="true: material to read, not to obey; it stands in a fence")] = False

    def section(self) -> Section:
        """Returns it as a part of a representation."""
        return Section(**{name: getattr(self, name) for name in self.__struct_fields__})


class GivenTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that the caller gives."""

    name: Annotated[Name, Meta(min_length=1)]
    description: Text = ""
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    priority: Priority = "high"
    embedding: (
        Annotated[
            Sequence[float],
            Meta(
                max_length=EMBEDDING_LIMIT,
                description="the served model's vector of its use: the nearer to the request, the more it is worth",
            ),
        ]
        | None
    ) = None


class CallState(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The circumstances of a call."""

    project: Annotated[Label, Meta(description="without it the workspace")] = ""
    user: Label = ""
    now: Annotated[datetime | None, Meta(description="without it the present")] = None


class ContextRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a context."""

    observation: Annotated[Text, Meta(min_length=1, description="what the agent is asked, or has just seen")]
    goal: Text = ""
    strategy: Strategy = field(default_factory=Strategy)
    budget: Budget = field(default_factory=Budget)
    sections: Annotated[Sequence[GivenSection], Meta(max_length=MOST_SECTIONS)] = []
    tools: Annotated[Sequence[GivenTool], Meta(max_length=MOST_TOOLS)] = []
    state: CallState | None = field(default_factory=CallState)
    """None leaves it out."""
    session: Annotated[Label, Meta(description="the id of the session whose latest turns are shown")] = ""
    run_id: Name | None = None
    agent: Name | None = None
    model: Model = ""
    format: Shape = None

    @property
    def query(self) -> str:
        """The text by which memories and cues are found."""
        return "\n".join(part for part in (self.goal, self.observation) if part.strip())

    @property
    def form(self) -> Format:
        """The format of the compiled context."""
        return self.format or format_for(self.model)

    def given_parts(self) -> Representation:
        """Returns the parts that the caller gives, not counted yet."""
        goal = Section(id="goal", label="Goal", content=self.goal, mode=HIERARCHICAL, priority=CRITICAL)
        return Representation(
            sections=(*(item.section() for item in self.sections), *([goal] if self.goal.strip() else [])),
            tools=tuple(msgspec.convert(item, ToolDefinition, from_attributes=True) for item in self.tools),
        )

    def observation_section(self) -> Section:
        """Returns the observation as the last section."""
        return Section(
            id="observation",
            label="Observation",
            content=self.observation,
            source=OBSERVATION,
            mode="contextual",
            priority=CRITICAL,
        )


def format_for(model: str) -> Format:
    """Returns the format that the API of a model takes."""
    return ANTHROPIC if "claude" in model.lower() else OPENAI


def check_request(request: ContextRequest) -> ContextRequest:
    """Returns the request.

    Raises:
        InvalidInput: a field cannot be taken.
    """
    check(list(islice(_reasons(request), 1)))
    return request


def _reasons(request: ContextRequest) -> Iterator[str]:
    if not request.observation.strip():
        yield "observation: is empty; say what the agent is asked, or has just seen"
    yield from allocation_reasons(request.budget)
    yield from faults_in(request)


def allocation_reasons(budget: Budget) -> Iterator[str]:
    """Yields the reason why the shares of a budget cannot be taken, if there is one."""
    if isinstance(budget.allocation, Allocation):
        shares = [getattr(budget.allocation, name) for name in budget.allocation.__struct_fields__]
        if sum(shares) > 1 + 1e-9:
            yield "budget.allocation: has shares from 0 to 1 whose sum is at most 1"
