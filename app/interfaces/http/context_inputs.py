"""The inputs of contexts: requests, representations made elsewhere, and templates."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct, field

from app.interfaces.http.schemas import Name, User, convert
from app.recall.context.compile import Format
from app.recall.context.representation import (
    GIVEN,
    Allocation,
    Budget,
    Mode,
    Priority,
    Representation,
    Section,
    ToolDefinition,
)
from app.recall.context.request import (
    EMBEDDING_LIMIT,
    LABEL_LIMIT,
    LARGEST_BUDGET,
    LARGEST_LIMIT,
    LARGEST_WINDOW,
    MOST_SECTIONS,
    MOST_TEMPLATES,
    MOST_TOOLS,
    CallState,
    ContextRequest,
    GivenSection,
    GivenTool,
    Strategy,
)
from app.storage.memories.gate import BODY_LIMIT

Text = Annotated[str, Meta(max_length=BODY_LIMIT)]
Label = Annotated[str, Meta(max_length=LABEL_LIMIT)]
Id = Annotated[str, Meta(min_length=1, max_length=LABEL_LIMIT)]
Share = Annotated[float, Meta(ge=0, le=1)]
Tokens = Annotated[int, Meta(ge=0, le=LARGEST_BUDGET)]
Model = Annotated[
    Label,
    Meta(description="the model that reads the context: tokens are counted as it does; empty: as the embedding model"),
]
Shape = Annotated[
    Format | None, Meta(description="the form of the compiled context; null: messages as the model's API takes them")
]


class StrategyInput(Struct, forbid_unknown_fields=True):
    """The choice of what a context is hydrated with."""

    temporal_window: Annotated[int, Meta(ge=0, le=LARGEST_WINDOW, description="latest turns of the session")] = 10
    semantic_limit: Annotated[
        int, Meta(ge=0, le=LARGEST_LIMIT, description="related turns and chunks, and as many observations and notes")
    ] = 8
    min_probability: (
        Annotated[float, Meta(ge=0, le=1, description="least probability that a related memory speaks to the request")]
        | None
    ) = None
    recency_decay: Annotated[
        float, Meta(gt=0, le=1, description="share of its recency that a memory keeps a day; 1: all of it")
    ] = 0.998
    include_knowledge: bool = True
    include_cues: bool = True


class AllocationInput(Struct, forbid_unknown_fields=True):
    """Largest shares of the budget; their sum is at most 1."""

    system: Share = 0.25
    context: Share = 0.55
    observation: Share = 0.2


class BudgetInput(Struct, forbid_unknown_fields=True):
    """The tokens that the final bytes may have."""

    total: Annotated[int, Meta(ge=1, le=LARGEST_BUDGET)] = 4_000
    reserve_ratio: Annotated[float, Meta(ge=0, lt=1, description="share that stays free for the answer")] = 0.15
    allocation: Annotated[
        AllocationInput | Literal["information", "relevance"],
        Meta(
            description="shares for instructions, for what is hydrated, and for the observation; or one room for all:"
            " by relevance, or by relevance and what a section alone says"
        ),
    ] = "relevance"


class SectionInput(Struct, forbid_unknown_fields=True):
    """A section that the caller gives."""

    id: Id
    content: Text
    label: Label = ""
    source: Annotated[Name, Meta(description="where it comes from, such as `knowledge`; it decides its place")] = GIVEN
    priority: Priority = "high"
    mode: Mode = "additive"
    relevance: Share = 1.0
    recency: Share = 1.0
    min_tokens: Tokens = 0
    reference: Annotated[bool, Meta(description="true: material to read, not to obey; it stands in a fence")] = False


class ContextToolInput(Struct, forbid_unknown_fields=True):
    """A tool that the caller gives."""

    name: Annotated[Name, Meta(min_length=1)]
    description: Text = ""
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    priority: Priority = "high"


class StateInput(Struct, forbid_unknown_fields=True):
    """The circumstances of a call."""

    project: Annotated[Label, Meta(description="without it the workspace")] = ""
    user: Label = ""
    now: Annotated[datetime | None, Meta(description="without it the present")] = None


class ContextInput(Struct, forbid_unknown_fields=True):
    """A request for a context."""

    observation: Annotated[Text, Meta(min_length=1, description="what the agent is asked, or has just seen")]
    goal: Text = ""
    strategy: StrategyInput = field(default_factory=StrategyInput)
    budget: BudgetInput = field(default_factory=BudgetInput)
    sections: Annotated[list[SectionInput], Meta(max_length=MOST_SECTIONS)] = []
    templates: Annotated[
        list[Name], Meta(max_length=MOST_TEMPLATES, description="names of the workspace's templates")
    ] = []
    tools: Annotated[list[ContextToolInput], Meta(max_length=MOST_TOOLS)] = []
    state: StateInput | None = field(default_factory=StateInput)
    session: Annotated[Label, Meta(description="the id of the session whose latest turns are shown")] = ""
    run_id: Name | None = None
    agent: Name | None = None
    model: Model = ""
    format: Shape = None
    user: User = ""

    def request(self) -> ContextRequest:
        """Returns the value that the verb takes."""
        return convert(
            self,
            ContextRequest,
            strategy=convert(self.strategy, Strategy),
            budget=budget_of(self.budget),
            sections=[convert(item, GivenSection) for item in self.sections],
            tools=[convert(item, GivenTool) for item in self.tools],
            state=None if self.state is None else convert(self.state, CallState),
        )


def budget_of(given: BudgetInput) -> Budget:
    """Returns the budget as the verbs take it."""
    allocation = given.allocation
    if not isinstance(allocation, str):
        return convert(given, Budget, allocation=convert(allocation, Allocation))
    return convert(given, Budget)


class ProvenanceInput(Struct, forbid_unknown_fields=True):
    """The origin of a section."""

    memory_ids: Annotated[list[UUID], Meta(max_length=1_000)] = []
    recall_id: UUID | None = None
    activation_id: UUID | None = None
    session: Label = ""
    template: Label = ""


class MadeSectionInput(Struct, forbid_unknown_fields=True):
    """A section of a representation that was made elsewhere; its tokens and its hash are computed anew."""

    id: Id
    content: Text
    label: Label = ""
    source: Name = GIVEN
    provenance: ProvenanceInput = field(default_factory=ProvenanceInput)
    tokens: Tokens = 0
    min_tokens: Tokens = 0
    priority: Priority = "medium"
    relevance: Share = 1.0
    recency: Share = 1.0
    mode: Mode = "additive"
    reference: bool = False
    embedding: Annotated[list[float], Meta(max_length=EMBEDDING_LIMIT)] | None = None
    content_hash: Label = ""


class MadeToolInput(ContextToolInput):
    """A tool of a representation that was made elsewhere; its tokens are counted anew."""

    tokens: Tokens = 0


class CompileInput(Struct, forbid_unknown_fields=True):
    """A representation that was made elsewhere."""

    sections: Annotated[list[MadeSectionInput], Meta(max_length=MOST_SECTIONS)] = []
    tools: Annotated[list[MadeToolInput], Meta(max_length=MOST_TOOLS)] = []
    budget: Annotated[BudgetInput | None, Meta(description="without it nothing is cut")] = None
    model: Model = ""
    format: Shape = None

    def representation(self) -> Representation:
        """Returns the representation as the verb takes it."""
        return Representation(
            sections=tuple(convert(item, Section) for item in self.sections),
            tools=tuple(convert(item, ToolDefinition) for item in self.tools),
        )

    def to_arguments(self) -> dict[str, Any]:
        """Returns the arguments that the verb takes."""
        return {
            "representation": self.representation(),
            "budget": None if self.budget is None else budget_of(self.budget),
            "model": self.model,
            "form": ContextRequest(observation="", model=self.model, format=self.format).form,
        }


class TemplateInput(Struct, forbid_unknown_fields=True):
    """A text that contexts name: instructions, or rules that always hold."""

    content: Annotated[Text, Meta(min_length=1)]
    label: Annotated[Label, Meta(description="the heading above it; empty: none")] = ""
    mode: Literal["hierarchical", "constraint"] = "hierarchical"
    priority: Priority = "critical"
