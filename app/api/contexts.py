"""`POST /api/contexts`, `GET /api/contexts` and `/{id}`, `/diff/{other}`, `POST /api/contexts:compile`, templates."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct, field

from app.api.context import ThisCall
from app.api.problems import PROBLEMS
from app.api.schemas import Name, converted, view_of
from app.context.compile import Format, Message, Prefix
from app.context.compose import Change, Difference
from app.context.contexts import (
    Context,
    compile_given,
    diff_contexts,
    get_context,
    list_contexts,
    list_templates,
    make_context,
    remove_template,
    save_template,
)
from app.context.representation import (
    Allocation,
    Budget,
    Cut,
    Mode,
    Priority,
    Provenance,
    Representation,
    Section,
    ToolDefinition,
)
from app.context.request import (
    EMBEDDING_LIMIT,
    LABEL_LIMIT,
    LARGEST_BUDGET,
    LARGEST_LIMIT,
    LARGEST_WINDOW,
    MOST_SECTIONS,
    MOST_TEMPLATES,
    MOST_TOOLS,
    ContextRequest,
    GivenSection,
    GivenTool,
    State,
    Strategy,
)
from app.context.sources import SourceTrace
from app.context.store import ContextSummary, Template
from app.memories.browse import LARGEST_PAGE
from app.memories.gate import BODY_LIMIT

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
    semantic_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    recency_decay: Annotated[float, Meta(ge=0, lt=1, description="share of its recency that a memory loses a day")] = (
        0.002
    )
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
    priority: Priority = "high"
    mode: Mode = "additive"
    relevance: Share = 1.0
    recency: Share = 1.0
    min_tokens: Tokens = 0
    reference: Annotated[bool, Meta(description="true: material to read, not to obey; it stands in a fence")] = False


class ToolInput(Struct, forbid_unknown_fields=True):
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
    tools: Annotated[list[ToolInput], Meta(max_length=MOST_TOOLS)] = []
    state: StateInput | None = field(default_factory=StateInput)
    session: Annotated[Label, Meta(description="the id of the session whose latest turns are shown")] = ""
    run_id: Name | None = None
    agent: Name | None = None
    model: Model = ""
    format: Shape = None

    def request(self) -> ContextRequest:
        """Returns the value that the verb takes."""
        return converted(
            self,
            ContextRequest,
            strategy=converted(self.strategy, Strategy),
            budget=budget_of(self.budget),
            sections=[converted(item, GivenSection) for item in self.sections],
            tools=[converted(item, GivenTool) for item in self.tools],
            state=None if self.state is None else converted(self.state, State),
        )


def budget_of(given: BudgetInput) -> Budget:
    """Returns the budget as the verbs take it."""
    allocation = given.allocation
    if not isinstance(allocation, str):
        return converted(given, Budget, allocation=converted(allocation, Allocation))
    return converted(given, Budget)


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
    source: Name = "given"
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


class MadeToolInput(ToolInput):
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
            sections=tuple(converted(item, Section) for item in self.sections),
            tools=tuple(converted(item, ToolDefinition) for item in self.tools),
        )

    def asked(self) -> dict[str, Any]:
        """Returns the arguments that the verb takes."""
        return {
            "representation": self.representation(),
            "budget": None if self.budget is None else budget_of(self.budget),
            "model": self.model,
            "form": ContextRequest(observation="", model=self.model, format=self.format).form,
        }


@view_of(Provenance)
class ProvenanceView(Struct):
    """The origin of a section beyond its source."""


@view_of(Section)
class SectionView(Struct):
    """A labelled part of a context."""

    provenance: ProvenanceView
    worth: float
    """Priority × relevance × recency: what is worth least is cut first."""


@view_of(ToolDefinition)
class ToolView(Struct):
    """A tool that the model may call."""


@view_of(Cut)
class CutView(Struct):
    """A part that was shortened or dropped, and why."""


@view_of(Message)
class MessageView(Struct):
    """A message of a chat API."""


@view_of(Prefix)
class PrefixView(Struct):
    """The beginning of the compiled bytes that stays the same from call to call, for prompt caches."""


@view_of(SourceTrace)
class SourceTraceView(Struct):
    """The share of one source in a context."""


@view_of(Budget)
class BudgetView(Struct):
    """The tokens that the final bytes may have, as they were asked for."""


class ContextMeta(Struct, frozen=True):
    """The figures of a context."""

    total_tokens: int
    """Counted on the final bytes, with the frames of messages and the tools."""
    budget: BudgetView | None
    usable_tokens: Annotated[int | None, Meta(description="the budget without its reserve; null without a budget")]
    strategy: dict[str, Any] | None
    created_at: datetime | None
    compression_ratio: float
    """Tokens of the parts by those that they had before anything was cut."""
    entropy: float
    """Entropy of the words, in bits a word."""
    cache_hit: Annotated[
        bool | None, Meta(description="true: the cacheable prefix is that of the run's context before; null: unknown")
    ]
    prefix: PrefixView
    model: str
    format: Format


class ContextTrace(Struct, frozen=True):
    """The making of a context."""

    sources: Sequence[SourceTraceView]
    cuts: Sequence[CutView]
    """The parts that were shortened or dropped; those worth most first."""
    counter: str
    """The tokenizer by which tokens are counted."""
    exact: bool
    """False where tokens are estimated, because no tokenizer of the model is at hand."""
    hydrate_ms: float
    compile_ms: float
    took_ms: float
    notes: Sequence[str]


class ContextView(Struct, frozen=True):
    """A compiled context, its parts, and how it was made."""

    id: UUID | None
    """Null for one that is not stored."""
    sections: Sequence[SectionView]
    tools: Sequence[ToolView]
    meta: ContextMeta
    messages: Sequence[MessageView]
    """Empty for Markdown."""
    system: Annotated[str | None, Meta(description="the system prompt where the API takes it beside the messages")]
    markdown: Annotated[str | None, Meta(description="the whole text, for Markdown")]
    tool_definitions: Sequence[dict[str, Any]]
    """The tools in the API's shape."""
    trace: ContextTrace


def context_view(found: Context) -> ContextView:
    """Returns the view of a context."""
    compiled, whole = found.compiled, found.representation
    budget = whole.meta.budget
    meta = converted(
        whole.meta,
        ContextMeta,
        total_tokens=compiled.tokens,
        usable_tokens=None if budget is None else budget.usable,
        compression_ratio=round(whole.compression_ratio, 4),
        entropy=round(found.entropy, 3),
        prefix=compiled.prefix,
        model=found.model,
        format=compiled.format,
    )
    trace = converted(found.trace, ContextTrace, cuts=whole.cuts)
    parts: dict[str, Any] = {"id": found.context_id, "sections": whole.sections, "tools": whole.tools}
    return converted(compiled, ContextView, **parts, meta=meta, trace=trace)


@view_of(ContextSummary, context_id="id")
class ContextSummaryView(Struct):
    """A stored context without its parts."""


@view_of(Change)
class ChangeView(Struct):
    """A part that two contexts do not share as it is."""

    kind: Literal["added", "removed", "changed"]


@view_of(Difference)
class DifferenceView(Struct):
    """The way from one context to another."""

    changes: Sequence[ChangeView]


class TemplateInput(Struct, forbid_unknown_fields=True):
    """A text that contexts name: instructions, or rules that always hold."""

    content: Annotated[Text, Meta(min_length=1)]
    label: Annotated[Label, Meta(description="the heading above it; empty: none")] = ""
    mode: Literal["hierarchical", "constraint"] = "hierarchical"
    priority: Priority = "critical"


@view_of(Template)
class TemplateView(Struct):
    """A stored template."""


class ContextsController(Controller):
    """Makes, compiles, shows and compares contexts."""

    path = "/api"
    tags = ("contexts",)

    @post("/contexts", status_code=200, responses=PROBLEMS)
    async def make(self, call: ThisCall, data: JSONBody[ContextInput]) -> ContextView:
        """An agent's context for an observation: hydrated, composed, cut to the budget, compiled, and stored."""
        parts, tenant = call.services.context_parts, await call.tenant()
        return context_view(await make_context(parts, workspace=tenant, request=data.request()))

    @post("/contexts:compile", status_code=200, responses=PROBLEMS)
    async def compile(self, call: ThisCall, data: JSONBody[CompileInput]) -> ContextView:
        """A representation that was made elsewhere, cut to a budget and compiled. Nothing is looked up or stored."""
        return context_view(await compile_given(call.services.counting, **data.asked()))

    @get("/contexts", responses=PROBLEMS)
    async def page(
        self,
        call: ThisCall,
        run_id: FromQuery[str | None] = None,
        session: Annotated[str | None, QueryParameter(description="the id of a session")] = None,
        agent: FromQuery[str | None] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 50,
        before: Annotated[UUID | None, QueryParameter(description="the last context of the page before")] = None,
    ) -> Sequence[ContextSummaryView]:
        """Stored contexts that meet every condition, the latest first, without their parts."""
        found = await list_contexts(
            call.database,
            workspace=await call.tenant(),
            run_id=run_id,
            session_id=session,
            agent=agent,
            limit=limit,
            before=before,
        )
        return converted(found, list[ContextSummaryView])

    @get("/contexts/{context_id:uuid}", responses=PROBLEMS)
    async def show(self, context_id: FromPath[UUID], call: ThisCall) -> ContextView:
        """A context as it was made, byte for byte."""
        return context_view(await get_context(call.database, workspace=await call.tenant(), context_id=context_id))

    @get("/contexts/{context_id:uuid}/diff/{other_id:uuid}", responses=PROBLEMS)
    async def diff(self, context_id: FromPath[UUID], other_id: FromPath[UUID], call: ThisCall) -> DifferenceView:
        """The parts that the other context has more, less or in another form."""
        tenant = await call.tenant()
        found = await diff_contexts(call.database, workspace=tenant, context_id=context_id, other_id=other_id)
        return converted(found, DifferenceView)

    @get("/templates", responses=PROBLEMS)
    async def templates(self, call: ThisCall) -> Sequence[TemplateView]:
        """The templates of the workspace, by name."""
        return converted(await list_templates(call.database, workspace=await call.tenant()), list[TemplateView])

    @put("/templates/{name:str}", responses=PROBLEMS)
    async def save_template(self, name: FromPath[str], call: ThisCall, data: JSONBody[TemplateInput]) -> TemplateView:
        """Set a template of the workspace, in place of the one of its name."""
        found = await save_template(
            call.database,
            workspace=await call.tenant(),
            template=converted(data, Template, name=name),
            mask=call.settings.mask_secrets,
        )
        return converted(found, TemplateView)

    @delete("/templates/{name:str}", status_code=204, responses=PROBLEMS)
    async def remove_template(self, name: FromPath[str], call: ThisCall) -> None:
        """Remove a template of the workspace."""
        await remove_template(call.database, workspace=await call.tenant(), name=name)
