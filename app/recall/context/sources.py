"""The sources that hydrate a context: each gives sections, and none waits for another."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TypeAlias
from uuid import UUID

import structlog
from msgspec import Struct

from app.errors import InvalidInput, PriorsError
from app.foundation.models.protocols import TokenCounter
from app.foundation.text.words import in_one_line
from app.foundation.values import frozen
from app.intake.sessions.browse import Sessions
from app.intake.sessions.prepare import act
from app.intake.sessions.store import StoredMessage
from app.recall.context.blocks import heading
from app.recall.context.compile import count_section
from app.recall.context.representation import (
    CONSTRAINT,
    CONTEXTUAL,
    CUES,
    KNOWLEDGE,
    SEMANTIC,
    STATE,
    TEMPORAL,
    Provenance,
    Section,
)
from app.recall.context.request import ContextRequest
from app.recall.cues import render
from app.recall.cues.activate import DEFAULT_BUDGET, PLAN_LIMIT, Activations, Firing, PlanAsked
from app.recall.retrieval.log import UnloggedRecall
from app.recall.retrieval.rank.pasted import need_of
from app.recall.retrieval.recall import QUERY_LIMIT, Hit, Query
from app.recall.retrieval.service import Retrieval
from app.storage.memories.filters import Filters
from app.storage.memories.memory import Kind
from app.storage.tenants.workspace import Workspace

SECONDS = 5.0
"""Time that a source may take. A recall takes 10 to 20 ms; a slow database must not hold the whole context up."""
_PURPOSE = "context"
"""The purpose of the recalls of contexts, in the log and in the metrics."""
LEAST_OF_A_TURN = 40
"""Tokens to which a turn may be shortened: two or three sentences of it; a shorter one is left out."""
CUES_SHARE = 0.25
"""Most of a budget that cues take: they are never cut."""

logger = structlog.get_logger()


@frozen
class Hydration:
    """The parts that sources need, with the request."""

    retrieval: Retrieval
    activations: Activations
    sessions: Sessions
    counter: TokenCounter
    """Counts by the tokenizer of the model that reads the context."""
    workspace: Workspace
    request: ContextRequest
    now: datetime


@frozen
class Hydrated:
    """The sections of a source, and the facts for the trace."""

    sections: Sequence[Section] = ()
    finding: UnloggedRecall | None = None
    """The recall behind them, which is logged with the hits that the context shows."""
    firing: Firing | None = None
    """The activation behind them, which is logged with its cues if the context shows them."""
    notes: tuple[str, ...] = ()

    @property
    def activation_id(self) -> UUID | None:
        """The id of the activation behind them."""
        return None if self.firing is None else self.firing.activation.activation_id


class SourceTrace(Struct, frozen=True, kw_only=True):
    """The share of one source in a context."""

    source: str
    took_ms: float
    sections: int = 0
    tokens: int = 0
    """Tokens of its sections before anything was cut."""
    failure: str = ""
    """The reason why it gave nothing; empty if it did not fail."""
    notes: tuple[str, ...] = ()
    """Remarks: an arm that did not serve, turns that were left out."""
    recall_id: UUID | None = None
    activation_id: UUID | None = None


SectionSource: TypeAlias = Callable[[Hydration], Awaitable[Hydrated]]
"""Returns the sections of one kind for a request, not counted yet."""


async def _latest_turns(call: Hydration) -> Hydrated:
    """Returns a section for each latest turn of the session, the oldest first; suspect turns are left out."""
    request, window = call.request, call.request.strategy.temporal_window
    if not request.session or not window:
        return Hydrated()
    latest = await call.sessions.latest_turns(call.workspace, request.session, count=window)
    turns = [turn for turn in latest if not turn.suspect]
    left_out = len(latest) - len(turns)
    notes = (f"{left_out} suspect turns were left out",) if left_out else ()
    sections = [_of_turn(turn, request.session, (place + 1) / len(turns)) for place, turn in enumerate(turns)]
    return Hydrated(sections=[item for item in sections if item.content], notes=notes)


def _of_turn(turn: StoredMessage, session: str, recency: float) -> Section:
    at = "" if turn.at is None else f" ({turn.at.strftime('%Y-%m-%d %H:%M')})"
    return Section(
        id=f"turn:{turn.ordinal}",
        label=f"### {turn.role}{at}",
        content="\n".join(part for part in (turn.text, *map(act, turn.tools)) if part).strip(),
        source=TEMPORAL,
        provenance=Provenance(memory_ids=(turn.memory_id,), session=session),
        recency=round(recency, 4),
        priority="high",
        min_tokens=LEAST_OF_A_TURN,
        mode=CONTEXTUAL,
        reference=True,
    )


async def _find_related(call: Hydration, source: str, kinds: tuple[Kind, ...]) -> Hydrated:
    """Returns a section for each memory that matters for the request, the best first. Suspect memories are none."""
    strategy = call.request.strategy
    if not strategy.semantic_limit:
        return Hydrated()
    query = Query(
        text=call.request.query[:QUERY_LIMIT],
        k=strategy.semantic_limit,
        filters=Filters(kinds=kinds),
        agent=call.request.agent,
        run_id=call.request.run_id,
        purpose=_PURPOSE,
        now=call.now,
    )
    finding = await call.retrieval.find(call.workspace, query, suspects=False)
    near = [hit for hit in finding.hits if _is_near(hit, strategy.semantic_threshold)]
    return Hydrated(
        sections=[_of_hit(hit, source, call) for hit in near],
        finding=finding,
        notes=tuple(f"{item.arm}: {item.reason}" for item in finding.degraded),
    )


def _is_near(hit: Hit, threshold: float) -> bool:
    """Returns False for a hit below the threshold; one whose similarity is not known, as without a model, is near."""
    similarity = hit.explain["similarity"]
    return not threshold or similarity is None or similarity >= threshold


async def _knowledge(call: Hydration) -> Hydrated:
    """Returns related observations and notes."""
    if not call.request.strategy.include_knowledge:
        return Hydrated()
    return await _find_related(call, KNOWLEDGE, ("observation", "note"))


async def _semantic(call: Hydration) -> Hydrated:
    """Returns related turns and chunks."""
    return await _find_related(call, SEMANTIC, ("message", "chunk"))


def _of_hit(hit: Hit, source: str, call: Hydration) -> Section:
    memory, faded = hit.memory, hit.explain.get("recency") or 1.0
    age = max(timedelta(), call.now - (memory.occurred_at or memory.created_at)) / timedelta(days=1)
    return Section(
        id=f"memory:{memory.memory_id}",
        label=heading(memory, hit.remark(f"{memory.title} {memory.body}")),
        content=memory.body,
        source=source,
        provenance=Provenance(memory_ids=(memory.memory_id,)),
        # The score's own recency is taken out: a section has its recency beside its relevance.
        relevance=round(min(1.0, max(0.0, hit.score / faded)), 4),
        recency=round(call.request.strategy.recency_decay**age, 4),
        reference=True,
    )


async def _cues(call: Hydration) -> Hydrated:
    """Returns one section with the cues that the request fires as a plan, of those that a person stands behind."""
    request = call.request
    budget = min(DEFAULT_BUDGET, int(request.budget.usable * CUES_SHARE))
    if not request.strategy.include_cues or budget < 1:
        return Hydrated()
    asked = PlanAsked(
        plan=need_of(request.query)[:PLAN_LIMIT],
        agent=request.agent,
        run_id=request.run_id,
        budget_tokens=budget,
    )
    (firing,) = await call.activations.fire(call.workspace, [asked])
    found = firing.activation
    notes = (found.degraded,) if found.degraded else ()
    if not found.markdown:
        return Hydrated(firing=firing, notes=notes)
    ids = tuple(cue.cue_id for cue in found.cues)
    section = Section(
        id="cues",
        label=render.HEADING.removeprefix("## "),
        content=found.markdown.removeprefix(render.HEADING).strip(),
        source=CUES,
        provenance=Provenance(memory_ids=ids, activation_id=found.activation_id),
        relevance=max((cue.score for cue in found.cues), default=1.0),
        priority="high",
        mode=CONSTRAINT,
    )
    return Hydrated(sections=[section], firing=firing, notes=notes)


async def _circumstances(call: Hydration) -> Hydrated:
    """Returns one section of a line each for time, project and user."""
    state = call.request.state
    if state is None:
        return Hydrated()
    facts = {
        "Time": call.now.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Project": in_one_line(state.project) or call.workspace.name,
        "User": in_one_line(state.user),
    }
    content = "\n".join(f"- {name}: {fact}" for name, fact in facts.items() if fact)
    return Hydrated(
        sections=[Section(id="state", label="State", content=content, source=STATE, priority="high", mode=CONTEXTUAL)]
    )


SOURCES: Mapping[str, SectionSource] = MappingProxyType(
    {
        KNOWLEDGE: _knowledge,
        SEMANTIC: _semantic,
        TEMPORAL: _latest_turns,
        CUES: _cues,
        STATE: _circumstances,
    }
)
"""The sources in the order in which their sections stand."""


async def hydrate_sources(
    call: Hydration, sources: Mapping[str, SectionSource], *, seconds: float
) -> list[tuple[Hydrated, SourceTrace]]:
    """Asks all sources side by side. One that fails or takes longer than `seconds` gives nothing, and says why.

    A mistake of the caller ends the others too, so that nothing is logged for a context that is not made.

    Raises:
        InvalidInput: the request names something that is not there.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_hydrate_guarded(call, *item, seconds)) for item in sources.items()]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _hydrate_guarded(
    call: Hydration, name: str, source: SectionSource, seconds: float
) -> tuple[Hydrated, SourceTrace]:
    started, found, failure = time.perf_counter(), Hydrated(), ""
    try:
        async with asyncio.timeout(seconds):
            found = await source(call)
    except InvalidInput:
        raise
    except TimeoutError:
        failure = f"took longer than {seconds:g} s"
    except PriorsError as error:
        failure = str(error)
    except Exception as error:
        logger.exception("a source of contexts failed", source=name)
        failure = f"failed unexpectedly ({type(error).__name__}); the service's log has the details"

    def count() -> list[Section]:
        return [count_section(section, call.counter) for section in found.sections]

    sections = await asyncio.to_thread(count)
    trace = SourceTrace(
        source=name,
        took_ms=round((time.perf_counter() - started) * 1_000, 3),
        sections=len(sections),
        tokens=sum(section.tokens for section in sections),
        failure=failure,
        notes=found.notes,
        activation_id=found.activation_id,
    )
    return replace(found, sections=sections), trace
