"""`POST /api/contexts`, `GET /api/contexts` and `/{id}`, `POST /api/contexts:compile`, templates."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.interfaces.http.context import BY_USER, Call, ThisCall
from app.interfaces.http.context_inputs import CompileInput, ContextInput, TemplateInput
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import convert, view_of
from app.recall.context.compile import Format, Message, Prefix
from app.recall.context.representation import (
    Budget,
    Provenance,
    Section,
    ShortenedPart,
    ToolDefinition,
)
from app.recall.context.service import Context
from app.recall.context.sources import SourceTrace
from app.recall.context.store import ContextSummary, Template
from app.storage.memories.browse import LARGEST_PAGE


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
class ToolDefinitionView(Struct):
    """A tool that the model may call."""


@view_of(ShortenedPart)
class CutView(Struct):
    """A part that was shortened or dropped, and why."""


@view_of(Message)
class PromptMessageView(Struct):
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
        bool | None,
        Meta(description="true: an earlier context of the run, for the same model, had the prefix; null: no run"),
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
    tools: Sequence[ToolDefinitionView]
    meta: ContextMeta
    messages: Sequence[PromptMessageView]
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


@view_of(ContextSummary, context_id="id")
class ContextSummaryView(Struct):
    """A stored context without its parts."""


@view_of(Template)
class TemplateView(Struct):
    """A stored template."""


async def context_of(call: Call, asked: ContextInput) -> Context:
    """Returns the context that a request asks for, and counts the recalls behind it."""
    request = asked.request()
    found, recalls = await call.services.contexts.make(await call.asked_by(asked.user).tenant(), request)
    for recall in recalls:
        call.note_recall(recall)
    return found


class ContextsController(Controller):
    """Makes, compiles, shows and compares contexts."""

    path = "/api"
    tags = ("contexts",)

    @post("/contexts", status_code=200, responses=PROBLEMS)
    async def make(self, call: ThisCall, data: JSONBody[ContextInput]) -> ContextView:
        """An agent's context for an observation: hydrated, composed, cut to the budget, compiled, and stored."""
        return context_view(await context_of(call, data))

    @post("/contexts:compile", status_code=200, responses=PROBLEMS)
    async def compile(self, call: ThisCall, data: JSONBody[CompileInput]) -> ContextView:
        """A representation that was made elsewhere, cut to a budget and compiled. Nothing is looked up or stored."""
        return context_view(await call.services.contexts.compile(**data.to_arguments()))

    @get("/contexts", responses=PROBLEMS, dependencies=BY_USER)
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
        found = await call.services.contexts.page(
            await call.tenant(),
            run_id=run_id,
            session_id=session,
            agent=agent,
            limit=limit,
            before=before,
        )
        return convert(found, list[ContextSummaryView])

    @get("/contexts/{context_id:uuid}", responses=PROBLEMS, dependencies=BY_USER)
    async def show(self, context_id: FromPath[UUID], call: ThisCall) -> ContextView:
        """A context as it was made, byte for byte."""
        return context_view(await call.services.contexts.get(await call.tenant(), context_id))

    @get("/templates", responses=PROBLEMS, dependencies=BY_USER)
    async def templates(self, call: ThisCall) -> Sequence[TemplateView]:
        """The templates of the workspace, by name."""
        return convert(await call.services.contexts.templates(await call.tenant()), list[TemplateView])

    @put("/templates/{name:str}", responses=PROBLEMS)
    async def save_template(self, name: FromPath[str], call: ThisCall, data: JSONBody[TemplateInput]) -> TemplateView:
        """Set a template of the workspace, in place of the one of its name."""
        found = await call.services.contexts.save_template(await call.tenant(), convert(data, Template, name=name))
        return convert(found, TemplateView)

    @delete("/templates/{name:str}", status_code=204, responses=PROBLEMS, dependencies=BY_USER)
    async def remove_template(self, name: FromPath[str], call: ThisCall) -> None:
        """Remove a template of the workspace."""
        await call.services.contexts.remove_template(await call.tenant(), name)
