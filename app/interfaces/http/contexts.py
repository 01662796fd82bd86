"""`POST /api/contexts`, `GET /api/contexts` and `/{id}`, `POST /api/contexts:compile` and `:compare`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct, field

from app.interfaces.http.context import BY_USER, Call, Limit, ThisCall
from app.interfaces.http.schemas import (
    Input,
    ask,
    convert,
    get,
    post,
)
from app.recall.context.compile import ContextComparison, Format, Message, Prefix
from app.recall.context.representation import (
    GIVEN,
    Budget,
    Label,
    Priority,
    Provenance,
    Representation,
    Section,
    Share,
    ShortenedPart,
    ToolDefinition,
)
from app.recall.context.request import (
    EMBEDDING_LIMIT,
    MOST_SECTIONS,
    MOST_TOOLS,
    ContextRequest,
    GivenSection,
    GivenTool,
    Model,
    Shape,
    Tokens,
    format_for,
)
from app.recall.context.service import Context, Trace
from app.recall.context.store import ContextSummary
from app.storage.memories.memory import Name
from app.storage.tenants.workspace import User


class ContextInput(ContextRequest, frozen=True, kw_only=True):
    """A request for a context."""

    user: User = ""


class ProvenanceInput(Input):
    """The origin of a section."""

    memory_ids: Annotated[Sequence[UUID], Meta(max_length=1_000)] = []
    recall_id: UUID | None = None
    activation_id: UUID | None = None
    session: Label = ""


class MadeSectionInput(GivenSection, frozen=True, kw_only=True):
    """A section of a representation that was made elsewhere; its tokens and its hash are computed anew."""

    source: Name = GIVEN
    reference: bool = False
    provenance: ProvenanceInput = field(default_factory=ProvenanceInput)
    tokens: Tokens = 0
    priority: Priority = "medium"
    embedding: Annotated[Sequence[float], Meta(max_length=EMBEDDING_LIMIT)] | None = None
    content_hash: Label = ""


class MadeToolInput(GivenTool, frozen=True, kw_only=True):
    """A tool of a representation that was made elsewhere; its tokens are counted anew."""

    tokens: Tokens = 0
    relevance: Share = 1.0


class CompileInput(Input):
    """A representation that was made elsewhere."""

    sections: Annotated[Sequence[MadeSectionInput], Meta(max_length=MOST_SECTIONS)] = []
    tools: Annotated[Sequence[MadeToolInput], Meta(max_length=MOST_TOOLS)] = []
    budget: Annotated[Budget | None, Meta(description="without it nothing is cut")] = None
    model: Model = ""
    format: Shape = None

    def representation(self) -> Representation:
        """Returns the representation as the verb takes it."""
        return convert(self, Representation)


class CompareInput(Input):
    """A representation, and another one to compare it with."""

    first: CompileInput
    second: CompileInput | None = None
    threshold: Annotated[Share, Meta(description="likeness from which two are equivalent")] = 0.9


class SectionView(Section, frozen=True, kw_only=True):
    """A labelled part of a context."""

    provenance: Provenance


class BudgetView(Budget, frozen=True, kw_only=True, forbid_unknown_fields=False):
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
        bool | None,
        Meta(description="true: an earlier context of the run, for the same model, had the prefix; null: no run"),
    ]
    prefix: Prefix
    model: str
    format: Format


class ContextTrace(Trace, frozen=True, kw_only=True):
    """The making of a context."""

    cuts: Sequence[ShortenedPart]
    """The parts that were shortened or dropped; those worth most first."""


class ContextView(Struct, frozen=True):
    """A compiled context, its parts, and how it was made."""

    id: UUID | None
    """Null for one that is not stored."""
    sections: Sequence[SectionView]
    tools: Sequence[ToolDefinition]
    meta: ContextMeta
    messages: Sequence[Message]
    """Empty for Markdown."""
    system: Annotated[str | None, Meta(description="the system prompt where the API takes it beside the messages")]
    markdown: Annotated[str | None, Meta(description="the whole text, for Markdown")]
    tool_definitions: Sequence[dict[str, Any]]
    """The tools in the API's shape."""
    trace: ContextTrace


def _context_view(found: Context) -> ContextView:
    """Returns the view of a context."""
    compiled, whole = found.compiled, found.representation
    budget = whole.meta.budget
    meta = convert(
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
    trace = convert(found.trace, ContextTrace, cuts=whole.cuts)
    parts: dict[str, Any] = {"id": found.context_id, "sections": whole.sections, "tools": whole.tools}
    return convert(compiled, ContextView, **parts, meta=meta, trace=trace)


async def context_of(call: Call, asked: ContextInput) -> Context:
    """Returns the context that a request asks for, and counts the recalls behind it."""
    found, recalls = await call.services.contexts.make(await call.asked_by(asked.user).tenant(), asked)
    for recall in recalls:
        call.note_recall(recall)
    return found


class ContextsController(Controller):
    """Makes, compiles, shows and compares contexts."""

    path = "/api"
    tags = ("contexts",)

    @ask("/contexts")
    async def make(self, call: ThisCall, data: JSONBody[ContextInput]) -> ContextView:
        """An agent's context for an observation: hydrated, composed, cut to the budget, compiled, and stored."""
        return _context_view(await context_of(call, data))

    @ask("/contexts:compile")
    async def compile(self, call: ThisCall, data: JSONBody[CompileInput]) -> ContextView:
        """A representation that was made elsewhere, cut to a budget and compiled. Nothing is looked up or stored."""
        form = data.format or format_for(data.model)
        found = await call.services.contexts.compile(
            representation=data.representation(), budget=data.budget, model=data.model, form=form
        )
        return _context_view(found)

    @post("/contexts:compare")
    async def compare(self, call: ThisCall, data: JSONBody[CompareInput]) -> ContextComparison:
        """The share that each section contributes to a representation, and whether another one says the same."""
        second = None if data.second is None else data.second.representation()
        return await call.services.contexts.compare(
            data.first.representation(), second, threshold=data.threshold, model=data.first.model
        )

    @get("/contexts", dependencies=BY_USER)
    async def page(
        self,
        call: ThisCall,
        run_id: FromQuery[str | None] = None,
        session: Annotated[str | None, QueryParameter(description="the id of a session")] = None,
        agent: FromQuery[str | None] = None,
        limit: Limit = 50,
        before: Annotated[UUID | None, QueryParameter(description="the last context of the page before")] = None,
    ) -> Sequence[ContextSummary]:
        """Stored contexts that meet every condition, the latest first, without their parts."""
        return await call.services.contexts.page(
            await call.tenant(),
            run_id=run_id,
            session_id=session,
            agent=agent,
            limit=limit,
            before=before,
        )

    @get("/contexts/{context_id:uuid}", dependencies=BY_USER)
    async def show(self, context_id: FromPath[UUID], call: ThisCall) -> ContextView:
        """A context as it was made, byte for byte."""
        return _context_view(await call.services.contexts.get(await call.tenant(), context_id))
