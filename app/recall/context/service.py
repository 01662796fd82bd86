"""The verbs of contexts: made, compiled from a given representation, shown again and compared."""

import asyncio
import dataclasses
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.errors import EmbeddingUnavailable, InvalidInput, NotFound, check
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.models.tokens import Counting
from app.foundation.safety.secrets import masked_values
from app.foundation.values import frozen
from app.intake.sessions.browse import Sessions
from app.recall.context import store
from app.recall.context.compile import (
    MARKDOWN,
    Compiled,
    ContextComparison,
    Format,
    compile_representation,
    compose,
    compress,
    count_section,
    counted_tool,
    cut_of,
    entropy,
    estimate_impact,
    likeness,
    overhead,
    similarity,
)
from app.recall.context.representation import (
    CUES,
    EMPTY,
    SEMANTIC,
    TEMPORAL,
    Budget,
    Meta,
    Representation,
)
from app.recall.context.request import ContextRequest, allocation_reasons, check_request
from app.recall.context.sources import (
    SECONDS,
    SOURCES,
    Hydrated,
    Hydration,
    SectionSource,
    SourceTrace,
    hydrate_sources,
)
from app.recall.context.store import ContextSummary
from app.recall.cues.activate import Activations, log_firing
from app.recall.retrieval.log import log
from app.recall.retrieval.recall import Recall
from app.recall.retrieval.service import Retrieval
from app.storage.index.following import OncePerText
from app.storage.memories.gate import unstorable
from app.storage.memories.memory import in_utc, new_id
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace

EMBEDDING_SECONDS = 3.0
"""Time after which sources go on by words alone: a remote model that hangs must not cost them all of theirs."""


class Trace(Struct, frozen=True, kw_only=True):
    """The making of a context."""

    sources: tuple[SourceTrace, ...] = ()
    counter: str
    """The tokenizer by which tokens are counted."""
    exact: bool
    """False where tokens are estimated, because no tokenizer of the model is at hand."""
    hydrate_ms: float = 0.0
    compile_ms: float
    took_ms: float
    notes: tuple[str, ...] = ()


@frozen
class Context:
    """A compiled context with everything that it was made of."""

    context_id: UUID | None
    """None for one that is not stored."""
    model: str
    representation: Representation
    compiled: Compiled
    entropy: float
    """Entropy of the words of its sections, in bits a word."""
    trace: Trace


@frozen
class Contexts:
    """Makes, compiles and shows contexts."""

    retrieval: Retrieval
    activations: Activations
    sessions: Sessions
    counting: Counting

    async def make(
        self,
        workspace: Workspace,
        request: ContextRequest,
        *,
        sources: Mapping[str, SectionSource] = SOURCES,
        seconds: float | None = None,
    ) -> tuple[Context, Sequence[Recall]]:
        """Returns the context for a request, within its budget, and the recalls behind it; stores both.

        Raises:
            InvalidInput: the request is not valid, or its budget is less than what may not be cut.
            DatabaseUnavailable: the database does not answer.
        """
        started = time.perf_counter()
        request = check_request(request)
        if self.retrieval.mask_secrets:
            # A context is stored as it is given.
            request = await asyncio.to_thread(masked_values, request)
        call = self._hydration_of(workspace, request, counter := await self.counting.of(request.model))
        given = await _weigh_tools(request, call.retrieval.provider)
        found = await hydrate_sources(call, sources, seconds=SECONDS if seconds is None else seconds)
        hydrated = time.perf_counter()
        representation, result, bits, notes = await asyncio.to_thread(
            _make_context, request, given, [item for item, _ in found], counter, call.now
        )
        now = time.perf_counter()
        trace = Trace(
            sources=tuple(item for _, item in found),
            counter=counter.name,
            exact=counter.exact,
            hydrate_ms=round((hydrated - started) * 1_000, 3),
            compile_ms=round((now - hydrated) * 1_000, 3),
            took_ms=round((now - started) * 1_000, 3),
            notes=notes,
        )
        context = Context(
            context_id=new_id(),
            model=request.model,
            representation=representation,
            compiled=result,
            entropy=bits,
            trace=trace,
        )
        return await _store_context(call, context, found)

    def _hydration_of(self, workspace: Workspace, request: ContextRequest, counter: TokenCounter) -> Hydration:
        asked_at = request.state.now if request.state and request.state.now else datetime.now(UTC)
        provider = OncePerText(self.retrieval.provider, seconds=EMBEDDING_SECONDS)
        return Hydration(
            retrieval=dataclasses.replace(self.retrieval, provider=provider),
            activations=dataclasses.replace(self.activations, provider=provider, counter=counter),
            sessions=self.sessions,
            counter=counter,
            workspace=workspace,
            request=request,
            now=in_utc(asked_at),
        )

    async def compile(
        self, *, representation: Representation, budget: Budget | None, model: str, form: Format
    ) -> Context:
        """Returns a representation that was made elsewhere compiled within a budget; nothing is stored.

        Its tokens are counted anew. Without a budget nothing is cut.

        Raises:
            InvalidInput: the budget is not valid, or less than what may not be cut.
        """
        if budget is not None:
            check(allocation_reasons(budget))
        counter = await self.counting.of(model)
        started = time.perf_counter()

        def work() -> tuple[Representation, Compiled, float]:
            whole = _count_tokens(representation, form, counter)
            found, result = _fit_budget(whole, budget, form, counter)
            return found, result, entropy(found)

        found, result, bits = await asyncio.to_thread(work)
        took = round((time.perf_counter() - started) * 1_000, 3)
        trace = Trace(counter=counter.name, exact=counter.exact, compile_ms=took, took_ms=took)
        return Context(
            context_id=None,
            model=model,
            representation=found,
            compiled=result,
            entropy=bits,
            trace=trace,
        )

    async def compare(
        self, first: Representation, second: Representation | None, *, threshold: float, model: str
    ) -> ContextComparison:
        """Returns what each section of a representation contributes, and whether another one is equivalent."""
        counter = await self.counting.of(model)

        def work() -> ContextComparison:
            impacts = estimate_impact(_count_tokens(first, MARKDOWN, counter))
            if second is None:
                return ContextComparison(impacts=impacts)
            alike = similarity(first, second)
            return ContextComparison(impacts=impacts, similarity=round(alike, 4), equivalent=alike >= threshold)

        return await asyncio.to_thread(work)

    async def get(self, workspace: Workspace, context_id: UUID) -> Context:
        """Returns a context as it was made.

        Raises:
            NotFound: the workspace has no such context, or it is too old.
        """
        async with self.retrieval.database.session(workspace, reading=True) as session:
            document = await store.get(session, context_id)
        if document is None:
            raise NotFound(f"there is no context {context_id} in workspace {workspace.name}; old ones are removed")
        return msgspec.json.decode(document, type=Context)

    async def page(
        self,
        workspace: Workspace,
        *,
        run_id: str | None,
        session_id: str | None,
        agent: str | None,
        limit: int,
        before: UUID | None,
    ) -> Sequence[ContextSummary]:
        """Returns stored contexts, the latest first, after the one that `before` names.

        Raises:
            InvalidInput: a text cannot be searched.
        """
        asked = {"run_id": run_id, "session": session_id, "agent": agent, "before": before, "limit": limit}
        check(unstorable(asked))
        async with self.retrieval.database.session(workspace, reading=True) as session:
            return await store.page(session, asked)


async def _weigh_tools(request: ContextRequest, provider: EmbeddingProvider) -> Representation:
    """Returns the parts that the caller gives; a tool with an embedding is as relevant as it is like the request.

    Raises:
        InvalidInput: an embedding is not of the served model.
    """
    given = request.given_parts()
    if not provider.enabled or all(tool.embedding is None for tool in given.tools):
        return given
    if any(len(tool.embedding or ()) not in {0, provider.dimension} for tool in given.tools):
        raise InvalidInput("tools.embedding", f"the served model's vectors have {provider.dimension} numbers")
    try:
        asked = await provider.embed_query(request.query)
    except EmbeddingUnavailable:
        return given
    weighed = (
        tool if tool.embedding is None else replace(tool, relevance=likeness(asked, tool.embedding))
        for tool in given.tools
    )
    return replace(given, tools=tuple(weighed))


def _make_context(
    request: ContextRequest,
    given: Representation,
    found: Sequence[Hydrated],
    counter: TokenCounter,
    now: datetime,
) -> tuple[Representation, Compiled, float, tuple[str, ...]]:
    """Returns the context of a request within its budget, what it is compiled to, its entropy, and remarks."""
    whole = _whole(request, given, found, counter, now)
    fitting, result, notes = _fitted_with_cues(whole, request.budget, request.form, counter)
    return fitting, result, entropy(fitting), notes


def _whole(
    request: ContextRequest, given: Representation, found: Sequence[Hydrated], counter: TokenCounter, now: datetime
) -> Representation:
    """Returns all that was given and hydrated, before anything is cut; each memory once."""
    given = _count_tokens(given, request.form, counter)
    sections = [part for item in found for part in item.sections if part.source == TEMPORAL]
    turns = {memory_id for part in sections for memory_id in part.provenance.memory_ids}
    # Related memories that are turns of the context anyway are left out.
    parts = [
        Representation(
            sections=tuple(
                part
                for part in item.sections
                if part.source != SEMANTIC or turns.isdisjoint(part.provenance.memory_ids)
            )
        )
        for item in found
    ]
    observed = Representation(sections=(count_section(request.observation_section(), counter),))
    whole = reduce(compose, [given, *parts, observed], EMPTY)
    strategy = msgspec.to_builtins(request.strategy)
    return replace(whole, meta=Meta(budget=request.budget, strategy=strategy, created_at=now))


def _count_tokens(representation: Representation, form: Format, counter: TokenCounter) -> Representation:
    return replace(
        representation,
        sections=tuple(count_section(section, counter) for section in representation.sections),
        tools=tuple(counted_tool(tool, form, counter) for tool in representation.tools),
    )


def _fitted_with_cues(
    whole: Representation, budget: Budget, form: Format, counter: TokenCounter
) -> tuple[Representation, Compiled, tuple[str, ...]]:
    """Returns a context within its budget. Cues, which cannot be cut, are left out where there is no room for them."""
    try:
        return *_fit_budget(whole, budget, form, counter), ()
    except InvalidInput:
        without = tuple(section for section in whole.sections if section.source != CUES)
        if len(without) == len(whole.sections):
            raise
    reason = "there is no room for the cues beside the parts that may not be cut"
    cuts = tuple(cut_of(item, None, reason) for item in whole.sections if item.source == CUES)
    left = replace(whole, sections=without, cuts=(*whole.cuts, *cuts))
    return *_fit_budget(left, budget, form, counter), (reason,)


def _fit_budget(
    whole: Representation, budget: Budget | None, form: Format, counter: TokenCounter
) -> tuple[Representation, Compiled]:
    """Returns a representation whose compiled bytes have at most the budget's tokens, and these bytes.

    Parts are counted one by one, and a tokenizer may join or divide differently where they meet: the bytes are counted
    again, and where they are over, the parts get less room.
    """
    if budget is None:
        return whole, compile_representation(whole, form, counter)
    room = budget.usable - overhead(form)
    while True:
        fitting = compress(whole, room, counter, allocation=budget.allocation)
        result = compile_representation(fitting, form, counter)
        if result.tokens <= budget.usable:
            return fitting, result
        room -= result.tokens - budget.usable


async def _store_context(
    call: Hydration, context: Context, found: Sequence[tuple[Hydrated, SourceTrace]]
) -> tuple[Context, Sequence[Recall]]:
    """Logs recalls and activation with what the context shows of them, stores the context, and returns both.

    The first context of a workspace makes it, so that it can be shown again.
    If the disk is full, the context is answered and not stored, as recalls are.
    """
    kept, request = context.representation.sections, call.request
    shown = {memory_id: item.tokens for item in kept if item.reference for memory_id in item.provenance.memory_ids}
    told = {item.provenance.activation_id for item in kept}
    traces, recalls = list[SourceTrace](), list[Recall]()
    database = call.retrieval.database
    target = await Workspaces(database=database).get_or_create(call.workspace)
    async with database.session(target, transaction=False) as session:
        for hydrated_by, trace in found:
            recall_id = None
            if hydrated_by.finding is not None:
                hits = [hit for hit in hydrated_by.finding.hits if hit.memory.memory_id in shown]
                tokens = sum(shown[hit.memory.memory_id] for hit in hits)
                finding = dataclasses.replace(hydrated_by.finding, workspace=target)
                recalls.append(await log(session, finding, hits=hits, tokens=tokens))
                recall_id = recalls[-1].recall_id
            if hydrated_by.firing is not None:
                await log_firing(session, hydrated_by.firing, stands=hydrated_by.activation_id in told)
            traces.append(replace(trace, recall_id=recall_id))
        values: dict[str, Any] = {
            "context_id": context.context_id,
            "run_id": request.run_id,
            "session": request.session or None,
            "agent": request.agent,
            "model": request.model,
            "format": request.form,
            "budget": request.budget.usable,
            "tokens": context.compiled.tokens,
            "prefix": context.compiled.prefix.digest,
            "took_ms": context.trace.took_ms,
        }
        cache_hit = await store.has_prefix(session, values) if request.run_id else None
        meta = replace(context.representation.meta, cache_hit=cache_hit)
        context = dataclasses.replace(
            context,
            representation=replace(context.representation, meta=meta),
            trace=replace(context.trace, sources=tuple(traces)),
        )
        values["document"] = msgspec.json.encode(context).decode()
        await store.add(session, values)
    return context, recalls
