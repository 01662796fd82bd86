"""The tools: each is a verb of the house, takes a few fields and answers with text within a budget of tokens."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_type_hints
from uuid import UUID

import msgspec
from mcp_types import Tool, ToolAnnotations
from msgspec import Struct
from priors_client.entries import CONTEXT

from app.errors import InvalidInput, NotFound
from app.intake.runs.feedback.store import FeedbackEntry
from app.interfaces.http.context import Call
from app.interfaces.http.contexts import ContextInput, context_of
from app.interfaces.http.cues import store_lesson
from app.interfaces.http.intake import as_error, embed
from app.interfaces.mcp.shapes import (
    HELD_BACK,
    ID_TOKENS,
    NAMED,
    ContextAsked,
    ForgetAsked,
    HistoryAsked,
    LessonGiven,
    MemoryGiven,
    OfUser,
    PlanChecked,
    PlanGiven,
    RatingGiven,
    RecallAsked,
    WhyAsked,
    fenced_tokens,
    hit_line,
    ids_line,
    in_fence,
    shorten,
    within,
)
from app.recall.context.blocks import memories_of, section_of, whole_blocks
from app.recall.context.compile import MARKDOWN
from app.recall.context.representation import Budget
from app.recall.cues.activate import PlanAsked
from app.recall.cues.cue import PERSON
from app.recall.preflight import CheckAsked
from app.recall.retrieval.recall import Hit, Query, Recall
from app.storage.memories.filters import Filters
from app.storage.memories.memory import Memory, NewMemory
from app.storage.tenants.keys import RATE, READ, WRITE

_NOTHING_FOUND = "Nothing in the store is relevant to that."
_NOTHING_AGAINST = "Nothing is known against this plan: go on."
_NOTHING_LEARNT = "Nothing was learnt about this yet: go on."
_RECALLED = "## Memories"
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMaximum", "format")
"""Parts of a schema that clients are not sent."""
_PER_MEMORY = 100
"""Tokens of a budget for each memory or lesson: ID_TOKENS for its id below the section, the rest for its text."""


@dataclass(frozen=True)
class AgentTool:
    """A tool: its function, whose docstring is its description, and its effects."""

    answer: Callable[[Call, Any], Awaitable[str]]
    title: str
    scope: str = READ
    """The scope of a key that may call it."""
    destructive: bool = False
    idempotent: bool = True
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Other names of its fields, which models use; they are not listed."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.answer.__name__

    def rename(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns arguments under the names of the fields, without those that are null: a model may send all fields."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return {self.spellings.get(name, name): value for name, value in given.items()} | {
            name: value for name, value in given.items() if name not in self.spellings
        }

    @cached_property
    def takes(self) -> type[OfUser | RatingGiven | LessonGiven]:
        """The fields that it takes."""
        found: type[OfUser | RatingGiven | LessonGiven] = get_type_hints(self.answer)["given"]
        return found

    @cached_property
    def shown(self) -> Tool:
        """The tool as clients see it."""
        return Tool(
            name=self.name,
            title=self.title,
            description=" ".join((self.answer.__doc__ or "").split()),
            input_schema=_schema(self.takes),
            annotations=self._effects(),
        )

    def _effects(self) -> ToolAnnotations:
        """Returns its effects; of a tool that only reads, the protocol asks for no more."""
        if self.scope == READ:
            return ToolAnnotations(read_only_hint=True, open_world_hint=False)
        return ToolAnnotations(
            read_only_hint=False,
            destructive_hint=self.destructive,
            idempotent_hint=self.idempotent,
            open_world_hint=False,
        )


def _schema(takes: type[Struct]) -> dict[str, Any]:
    """Returns the JSON schema of a struct as one object, as tools must have it, without what costs tokens in vain.

    A client sends the schemas of all tools with each of its prompts. An error names a limit, and the fields of a tool.
    """
    found = msgspec.json.schema(takes)["$defs"][takes.__name__]
    fields = {name: _short_field(given) for name, given in found["properties"].items()}
    needed = {"required": found["required"]} if found["required"] else {}
    return {"type": "object", "properties": fields, **needed}


def _short_field(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of a field without its limits, and without a default that says nothing."""
    for one in given.get("anyOf", ()):
        if one != {"type": "null"}:
            given = {**given, **one}
    items = {"items": _short_field(given["items"])} if "items" in given else {}
    empty = not given.get("default", True)
    left_out = {"anyOf", *_LENGTHS, *(("default",) if empty else ())}
    return {name: value for name, value in given.items() if name not in left_out} | items


async def relevant_history(call: Call, given: HistoryAsked) -> str:
    """Call this first in every task: what earlier work found on it, and how that was judged. Returns reference
    material, and the ids of its memories."""
    query = Query(
        text=given.query, k=given.k, agent=given.agent or None, run_id=given.run_id or None, purpose="history"
    )
    room = _room_for_ids(call, min(given.k, given.budget_tokens // _PER_MEMORY))
    budget = max(1, given.budget_tokens - room)
    found = await call.services.histories.get(await call.tenant(), query, budget_tokens=budget)
    call.note_recall(found.recall)
    if found.needed_tokens is not None:
        room = _room_for_ids(call, min(given.k, found.needed_tokens // (_PER_MEMORY - ID_TOKENS) + 1))
        return f"The best memory needs a budget_tokens of {found.needed_tokens + room} or more."
    room = given.budget_tokens - found.tokens
    ids = _ids_within(call, room, [hit.memory.memory_id for hit in found.recall.hits])
    return _add_lines(call, room, found.markdown or _NOTHING_FOUND, ids, _lack_of(found.recall), call.lack)


async def before_you_act(call: Call, given: PlanGiven) -> str:
    """Call this before an act that is hard to take back or went wrong before: the corrections, decisions and failures
    known of it. Returns a section to follow, and the ids of its lessons."""
    asked = replace(_plan_of(call, given), min_score=given.min_score)
    found = await call.services.activations.activate(await call.tenant(), asked)
    degraded = f"Compared by words only: {found.degraded}" if found.degraded else ""
    room = given.budget_tokens - found.tokens
    ids = _ids_within(call, room, [cue.cue_id for cue in found.cues])
    return _add_lines(call, room, found.markdown or _NOTHING_LEARNT, ids, degraded, call.lack)


async def check_plan(call: Call, given: PlanChecked) -> str:
    """Check a plan of several steps before you start. Returns the steps to look at again or to ask about, and
    why: lessons, contradicted decisions, failures, open issues."""
    asked = CheckAsked(plan=_plan_of(call, given), task_type=given.task_type)
    found = await call.services.preflights.check(await call.tenant(), asked)
    degraded = f"Compared by words only: {found.degraded}" if found.degraded else ""
    cues = [item.memory_id for step in found.steps if not step.added for item in step.evidence if item.memory_id]
    room = given.budget_tokens - found.tokens
    return _add_lines(call, room, found.markdown or _NOTHING_AGAINST, _ids_within(call, room, cues), degraded)


def _plan_of(call: Call, given: PlanGiven | PlanChecked) -> PlanAsked:
    """Returns a plan as the verbs take it, whose budget leaves room for the ids of lessons."""
    return PlanAsked(
        plan=given.plan,
        files=tuple(given.files),
        agent=given.agent or None,
        run_id=given.run_id or None,
        budget_tokens=max(1, given.budget_tokens - _room_for_ids(call, given.budget_tokens // _PER_MEMORY)),
    )


async def remember(call: Call, given: MemoryGiven) -> str:
    """Store a finding, a fact or an interim result for later runs; use `learn` for a lesson. Secrets are masked;
    instructions to the reader are refused. Returns the memory's id."""
    note = NewMemory(
        kind="note",
        body=given.body,
        title=given.title,
        tags=given.tags,
        metadata={CONTEXT: given.context} if given.context else {},
        run_id=given.run_id or None,
        user=given.user,
    )
    tenant = await call.tenant()
    result = await call.services.write_gate.remember_batch(tenant, [note])
    call.metrics.note_remembered(result)
    if result.rejected:
        raise as_error(result.rejected[0])
    ids = [memory_id for memory_id in result.ids if memory_id]
    _, degraded = await embed(call.services, tenant, ids)
    state = "Stored" if result.stored else "Known already"
    later = "; ".join(f"found by words only for now: {item.reason}" for item in degraded)
    return _join_parts(f"{state}: {ids[0]}", later)


async def learn(call: Call, given: LessonGiven) -> str:
    """Store a lesson of this session, so that later runs avoid the mistake. Store: a lasting rule or wish of the user,
    a choice with its reason, a cause you found, a way that failed, an order of steps. Do not store: one-off requests,
    thanks, questions, pasted text, what the code or its documentation shows. One lesson a call. If the user said it,
    copy the exact words into `quote`; without a quote it counts as your conclusion. Returns its id."""
    learnt = await store_lesson(call, given)
    if learnt.kept.known:
        return f"Known already: {learnt.cue_id}"
    behind = f"as the user's words (message {learnt.message})" if learnt.trust == PERSON else "as your own conclusion"
    return f"Stored {behind}: {learnt.cue_id}" + (f" ({learnt.reason})" if learnt.reason else "")


async def recall(call: Call, given: RecallAsked) -> str:
    """Search all memories. With `query`: a list with the id, date, length in tokens and beginning of each. With `ids`
    from a list: their whole texts, up to `budget_tokens`."""
    if (given.query is None) == (given.ids is None):
        raise InvalidInput("query", "give either `query`, for a list, or `ids`, for whole texts")
    if given.ids is not None:
        return await _texts(call, given.ids, given.budget_tokens)
    counter = call.services.counter
    filters = Filters(kinds=tuple(given.kinds), tags=tuple(given.tags), since=given.since, until=given.until)
    query = Query(text=given.query or "", k=given.k, filters=filters)
    found = await call.services.retrieval.search(await call.tenant(), query)
    call.note_recall(found)
    lines = [hit_line(hit) for hit in found.hits]
    more = "{} more: narrow the query, or ask with a larger budget_tokens."
    kept = within(lines, given.budget_tokens - fenced_tokens(_RECALLED, counter) - counter.count(more), counter)
    left = more.format(len(lines) - kept) if kept < len(lines) else ""
    listed = in_fence(_RECALLED, lines[:kept]) if lines else _NOTHING_FOUND
    room = given.budget_tokens - counter.count(listed)
    return _add_lines(call, room, listed, left, _lack_of(found), call.lack)


async def forget(call: Call, given: ForgetAsked) -> str:
    """Remove memories from all answers, because they are wrong or the user asks for it. They go to the trash, from
    which a person can restore them."""
    found = await call.services.memories.delete(await call.tenant(), ids=given.ids)
    missing = f"Not there, or forgotten already: {', '.join(map(str, found.missing))}" if found.missing else ""
    return _join_parts(f"Forgotten: {len(found.changed)}", missing)


async def rate(call: Call, given: RatingGiven) -> str:
    """Rate a memory that helped (1) or misled (-1), with a short comment on why. Later answers rank memories by it."""
    entry = FeedbackEntry(
        memory_id=given.id,
        rating=given.rating,
        comment=given.comment,
        run_id=given.run_id,
        reviewer=given.reviewer,
    )
    rated = await call.services.ratings.rate(await call.tenant(), entry)
    return f"Rated: its quality is {rated.quality} now, on a scale from -3 to 3."


async def why(call: Call, given: WhyAsked) -> str:
    """Ask why something is as it is before you change it: what was decided on a subject or a file, the reasons, what
    failed, and where that is written. Says so if nothing gives a reason."""
    found = await call.services.reasons.ask(
        await call.tenant(),
        subject=given.subject,
        path=given.path,
        symbol=given.symbol,
        budget_tokens=given.budget_tokens,
    )
    return shorten(found.markdown, given.budget_tokens, call.services.counter)


async def context(call: Call, given: ContextAsked) -> str:
    """Get a whole prompt context in one answer instead of calling several tools: instructions, the latest turns of the
    session, related memories, lessons and the observation, cut to `budget_tokens`. Returns Markdown and its
    id."""
    asked = ContextInput(
        observation=given.observation,
        goal=given.goal,
        session=given.session or "",
        agent=given.agent or None,
        run_id=given.run_id or None,
        user=given.user,
        budget=Budget(total=given.budget_tokens - _room_for_ids(call, 1), reserve_ratio=0),
        format=MARKDOWN,
    )
    found = await context_of(call, asked)
    return _join_parts(found.compiled.markdown or "", f"Context: {found.context_id}")


TOOLS: Mapping[str, AgentTool] = {
    tool.name: tool
    for tool in (
        AgentTool(relevant_history, "Relevant history"),
        AgentTool(before_you_act, "Before you act"),
        AgentTool(check_plan, "Check a plan"),
        AgentTool(recall, "Search memories"),
        AgentTool(why, "Why it is so", spellings={"question": "subject", "query": "subject"}),
        AgentTool(context, "A whole context"),
        AgentTool(learn, "Learn", scope=WRITE),
        AgentTool(remember, "Remember", scope=WRITE),
        AgentTool(rate, "Rate a memory", scope=RATE, idempotent=False),
        AgentTool(forget, "Forget", scope=WRITE, destructive=True),
    )
}
"""The tools, in the order in which clients list them."""


async def _texts(call: Call, ids: Sequence[UUID], budget: int) -> str:
    """Returns the whole texts of memories, or their beginnings where the budget ends, and what is left out."""
    tenant, counter = await call.tenant(), call.services.counter
    found = [readable(await call.services.memories.get(tenant, memory_id=memory_id)) for memory_id in ids]
    left = "No room for these of the ids, counted from 1: {}. Ask for them alone, or with a larger budget_tokens."
    hits = [Hit(memory=item, score=0, explain={}) for item in found]
    room = budget - counter.count(left.format(list(range(1, len(ids) + 1))))
    blocks = await asyncio.to_thread(whole_blocks, hits, budget=room, counter=counter)
    markdown, given = section_of(blocks), memories_of(blocks)
    missing = [place for place, memory_id in enumerate(ids, 1) if memory_id not in given]
    return _join_parts(markdown, left.format(", ".join(map(str, missing))) if missing else "")


def readable(memory: Memory) -> Memory:
    """Returns a memory that agents may read.

    Raises:
        NotFound: it is retired, or the injection scan holds it back.
    """
    if memory.retired_as or memory.suspect:
        state = memory.retired_as or HELD_BACK
        raise NotFound(f"the memory {memory.memory_id} cannot be read: it is {state}")
    return memory


def _room_for_ids(call: Call, count: int) -> int:
    return call.services.counter.count(NAMED) + ID_TOKENS * count


def _ids_within(call: Call, room: int, ids: Sequence[UUID]) -> str:
    """Returns the line that names the first of the memories, as many as have room."""
    while ids and call.services.counter.count(ids_line(ids)) > room:
        ids = ids[:-1]
    return ids_line(ids)


def _lack_of(found: Recall) -> str:
    return "; ".join(f"Answered in the mode {found.mode}, {item.arm} arm: {item.reason}" for item in found.degraded)


def _add_lines(call: Call, room: int, answer: str, *further: str) -> str:
    """Returns an answer with the further lines that have room: so many tokens are left beside the answer."""
    kept = [answer]
    for part in filter(None, further):
        room -= call.services.counter.count(part)
        if room >= 0:
            kept.append(part)
    return _join_parts(*kept)


def _join_parts(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part)
