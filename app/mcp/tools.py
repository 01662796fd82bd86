"""The tools: each is a verb of the house, takes a few fields and answers with text within a budget of tokens."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Annotated, Any, Literal, get_type_hints
from uuid import UUID

import msgspec
from mcp_types import Tool, ToolAnnotations
from msgspec import Meta, Struct

from app.api.context import Call
from app.api.context_inputs import BudgetInput, ContextInput, Id, Text
from app.api.contexts import context_of
from app.api.cues import LessonInput, Path, activation_of, store_lesson
from app.api.feedback import RatingInput
from app.api.intake import as_error, door_of, embed
from app.api.retrieval import QueryText
from app.api.schemas import Kind, MemoryInput, Name, Tags, User
from app.context.compile import MARKDOWN
from app.context.history import history
from app.context.section import is_long, section
from app.cues.activate import PLAN_LIMIT, PlanAsked
from app.cues.cue import PERSON
from app.cues.why.why import ask_why
from app.errors import InvalidInput, NotFound
from app.keys.key import RATE, READ, WRITE
from app.mcp.told import HELD_BACK, ID_TOKENS, NAMED, fenced, fenced_tokens, hit_line, ids_line, shortened, within
from app.memories.browse import get_memory
from app.memories.filters import Filters
from app.memories.gate import BODY_LIMIT, TITLE_LIMIT
from app.memories.lifecycle import delete_memories
from app.memories.memory import Memory
from app.memories.remember import remember_batch
from app.retrieval.recall import Hit, Query, Recall
from app.retrieval.search import search
from app.runs.feedback.rate import rate as rate_memory

NOTHING_FOUND = "Nothing in the store is relevant to that."
NOTHING_LEARNT = "Nothing was learnt about this yet: go on."
RECALLED = "## Memories"
MOST_IDS = 20
PER_MEMORY = 100
"""Tokens of a budget for each memory or lesson: ID_TOKENS for its id below the section, the rest for its text."""

Budget = Annotated[int, Meta(ge=100, le=10_000, description="tokens that the answer may have")]
Agent = Annotated[Name, Meta(description="who asks: your role, such as `researcher`")]
RunId = Annotated[Name, Meta(description="the run that it is for, so that its outcome can be told of it")]
Ids = Annotated[list[UUID], Meta(min_length=1, max_length=MOST_IDS, description="ids of memories")]


WhichUser = Annotated[User, Meta(description="the user it is for, if any: his memories and nobody's are seen")]


class OfUser(Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields that every tool takes."""

    user: WhichUser = ""


class HistoryAsked(OfUser, forbid_unknown_fields=True):
    """A task to start with history."""

    query: Annotated[QueryText, Meta(description="the task, in its own words")]
    agent: Agent = ""
    run_id: RunId = ""
    k: Annotated[int, Meta(ge=1, le=10, description="memories at most")] = 3
    budget_tokens: Budget = 500


class PlanGiven(OfUser, forbid_unknown_fields=True):
    """An act that is about to be done."""

    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LIMIT, description="what you are about to do, and how")]
    files: Annotated[list[Path], Meta(max_length=100, description="files that it touches")] = []
    agent: Agent = ""
    run_id: RunId = ""
    budget_tokens: Budget = 400
    min_score: Annotated[float, Meta(ge=0, le=1, description="least probability of a lesson told")] | None = None


class MemoryGiven(OfUser, forbid_unknown_fields=True):
    """A memory to keep."""

    body: Annotated[str, Meta(min_length=1, max_length=BODY_LIMIT, description="what to keep; it must stand alone")]
    title: Annotated[str, Meta(max_length=TITLE_LIMIT)] = ""
    tags: Tags = []
    run_id: RunId = ""


class LessonGiven(LessonInput, forbid_unknown_fields=True, kw_only=True):
    """A lesson of this session."""

    user: WhichUser = ""


class RecallAsked(OfUser, forbid_unknown_fields=True):
    """A query for a list, or the ids of a list for whole texts."""

    query: Annotated[QueryText, Meta(description="gives a list: one line for each memory, with its cost")] | None = None
    ids: Annotated[Ids, Meta(description="gives the whole texts of these memories")] | None = None
    kinds: list[Kind] = []
    tags: Tags = []
    since: datetime | None = None
    until: datetime | None = None
    k: Annotated[int, Meta(ge=1, le=50, description="memories at most")] = 10
    budget_tokens: Budget = 1_000


class ForgetAsked(OfUser, forbid_unknown_fields=True):
    """Memories to forget."""

    ids: Ids


class RatingGiven(RatingInput, forbid_unknown_fields=True, kw_only=True):
    """A rating of a memory."""

    user: WhichUser = ""
    id: UUID
    rating: Annotated[Literal[1, -1], Meta(extra_json_schema={"type": "integer"})]


class WhyAsked(OfUser, forbid_unknown_fields=True):
    """A subject, or a file and a part of it."""

    subject: Annotated[str, Meta(description="a question, or what was decided on, such as `API versioning`")] = ""
    path: Annotated[str, Meta(description="instead: a file, or the end of its path")] = ""
    symbol: Annotated[str, Meta(description="a function or section, alone or in `path`")] = ""
    budget_tokens: Budget = 400


class ContextAsked(OfUser, forbid_unknown_fields=True):
    """An observation to make a context for."""

    observation: Annotated[Text, Meta(min_length=1, description="what you are asked, or have just seen")]
    goal: Text = ""
    session: Annotated[Id | None, Meta(description="the id of the session whose latest turns belong to it")] = None
    templates: Annotated[list[Name], Meta(max_length=20, description="names of the workspace's templates")] = []
    agent: Agent = ""
    run_id: RunId = ""
    budget_tokens: Annotated[int, Meta(ge=200, le=100_000, description="tokens that the answer may have")] = 2_000


@dataclass(frozen=True)
class AgentTool:
    """A tool: its function, whose docstring is its description, and its effects."""

    answer: Callable[[Call, Any], Awaitable[str]]
    title: str
    scope: str = READ
    """The scope of a key that may call it."""
    destructive: bool = False
    idempotent: bool = True

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.answer.__name__

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
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=self.scope == READ,
                destructive_hint=self.destructive,
                idempotent_hint=self.idempotent,
                open_world_hint=False,
            ),
        )


def _schema(takes: type[Struct]) -> dict[str, Any]:
    """Returns the JSON schema of a struct as one object, as tools must have it."""
    found: dict[str, Any] = msgspec.json.schema(takes)
    return {name: value for name, value in found["$defs"][takes.__name__].items() if name != "description"}


async def relevant_history(call: Call, given: HistoryAsked) -> str:
    """Start every task with this: what earlier work found, and how it was judged, on the task you are about to do.
    Returns a `## Relevant History` section to read as reference material, and the ids of its memories."""
    query = Query(
        text=given.query, k=given.k, agent=given.agent or None, run_id=given.run_id or None, purpose="history"
    )
    services = call.services
    room = _room_for_ids(call, min(given.k, given.budget_tokens // PER_MEMORY))
    found = await history(
        services.database,
        services.provider,
        services.counter,
        workspace=await call.tenant(),
        query=query,
        mask=services.settings.mask_secrets,
        reranker=services.reranker,
        budget_tokens=max(1, given.budget_tokens - room),
    )
    call.note_recall(found.recall)
    if found.needed_tokens is not None:
        room = _room_for_ids(call, min(given.k, found.needed_tokens // (PER_MEMORY - ID_TOKENS) + 1))
        return f"The best memory needs a budget_tokens of {found.needed_tokens + room} or more."
    room = given.budget_tokens - found.tokens
    ids = _ids_within(call, room, [hit.memory.memory_id for hit in found.recall.hits])
    return _told(call, room, found.markdown or NOTHING_FOUND, ids, _degraded(found.recall))


async def before_you_act(call: Call, given: PlanGiven) -> str:
    """Ask this before any act that is hard to take back, or that went wrong before: what was learnt about acts of
    this kind (corrections, decisions, what failed). Returns a `## Before you act` section to heed, and the ids of its
    lessons."""
    asked = PlanAsked(
        plan=given.plan,
        files=tuple(given.files),
        agent=given.agent or None,
        run_id=given.run_id or None,
        budget_tokens=max(1, given.budget_tokens - _room_for_ids(call, given.budget_tokens // PER_MEMORY)),
        min_score=given.min_score,
    )
    found = await activation_of(call, asked)
    degraded = f"Compared by words only: {found.degraded}" if found.degraded else ""
    room = given.budget_tokens - found.tokens
    ids = _ids_within(call, room, [cue.cue_id for cue in found.cues])
    return _told(call, room, found.markdown or NOTHING_LEARNT, ids, degraded)


async def remember(call: Call, given: MemoryGiven) -> str:
    """Keep a finding, a fact or an interim result for later runs; for a lesson take `learn`. State it so that it can be
    understood alone. Secrets are masked; orders to the reader and what is known already are not stored again. Returns
    the memory's id."""
    note = MemoryInput(
        kind="note", body=given.body, title=given.title, tags=given.tags, run_id=given.run_id or None, user=given.user
    )
    door = await door_of(call)
    result = await remember_batch(door, [note.memory()])
    call.metrics.note_remembered(result)
    if result.rejected:
        raise as_error(result.rejected[0])
    ids = [memory_id for memory_id in result.ids if memory_id]
    _, degraded = await embed(call.services, door.workspace, ids)
    state = "Stored" if result.stored else "Known already"
    later = "; ".join(f"found by words only for now: {item.reason}" for item in degraded)
    return _joined(f"{state}: {ids[0]}", later)


async def learn(call: Call, given: LessonGiven) -> str:
    """Keep a lesson of this session, so that a later run is told before the mistake. Worth keeping: a lasting rule or
    wish of the user, a choice with its reason, a found cause, a way that failed, an order of steps. Not: one-off
    requests, thanks, questions, pasted text, what the code or its documentation shows. One lesson a call. Copy the
    user's own words into `quote` where he said it: then it counts as his, else as your conclusion. Returns its id."""
    learnt = await store_lesson(call, given)
    if learnt.kept.known:
        return f"Known already: {learnt.cue_id}"
    behind = f"as the user's words (message {learnt.message})" if learnt.trust == PERSON else "as your own conclusion"
    return f"Stored {behind}: {learnt.cue_id}" + (f" ({learnt.reason})" if learnt.reason else "")


async def recall(call: Call, given: RecallAsked) -> str:
    """Search everything that is remembered. With `query`: a list, one line for each memory with its id, date, cost in
    tokens and beginning. With `ids` from a list: the whole texts, as far as the budget goes."""
    if (given.query is None) == (given.ids is None):
        raise InvalidInput("query", "give either `query`, for a list, or `ids`, for whole texts")
    if given.ids is not None:
        return await _texts(call, given.ids, given.budget_tokens)
    services, counter = call.services, call.services.counter
    filters = Filters(kinds=tuple(given.kinds), tags=tuple(given.tags), since=given.since, until=given.until)
    query = Query(text=given.query or "", k=given.k, filters=filters)
    found = await search(
        services.database,
        services.provider,
        workspace=await call.tenant(),
        query=query,
        mask=services.settings.mask_secrets,
        reranker=services.reranker,
    )
    call.note_recall(found)
    lines = [hit_line(hit) for hit in found.hits]
    more = "{} more: narrow the query, or ask with a larger budget_tokens."
    kept = within(lines, given.budget_tokens - fenced_tokens(RECALLED, counter) - counter.count(more), counter)
    left = more.format(len(lines) - kept) if kept < len(lines) else ""
    listed = fenced(RECALLED, lines[:kept]) if lines else NOTHING_FOUND
    return _told(call, given.budget_tokens - counter.count(listed), listed, left, _degraded(found))


async def forget(call: Call, given: ForgetAsked) -> str:
    """Take memories out of every answer, because they are wrong or a user asks for it. They go to the trash: a person
    can restore them until it is emptied."""
    found = await delete_memories(call.database, workspace=await call.tenant(), ids=given.ids)
    missing = f"Not there, or forgotten already: {', '.join(map(str, found.missing))}" if found.missing else ""
    return _joined(f"Forgotten: {len(found.changed)}", missing)


async def rate(call: Call, given: RatingGiven) -> str:
    """Say whether a memory helped (1) or misled (-1), with a short comment on why. The next answers rank by it. With a
    `reviewer`, your new rating takes the place of your former one."""
    rated = await rate_memory(
        call.database,
        workspace=await call.tenant(),
        memory_id=given.id,
        rating=given.rating,
        comment=given.comment,
        run_id=given.run_id,
        reviewer=given.reviewer,
        mask=call.settings.mask_secrets,
    )
    return f"Rated: its quality is {rated.quality} now, on a scale from -3 to 3."


async def why(call: Call, given: WhyAsked) -> str:
    """Ask why something is as it is before you change it, in your own words: what was decided on a subject or a file,
    the reasons, what failed, and where that is said. Says so where nothing that is stored says why."""
    found = await ask_why(
        call.database,
        call.services.provider,
        call.services.counter,
        workspace=await call.tenant(),
        subject=given.subject,
        path=given.path,
        symbol=given.symbol,
        budget_tokens=given.budget_tokens,
    )
    return shortened(found.markdown, given.budget_tokens, call.services.counter)


async def context(call: Call, given: ContextAsked) -> str:
    """Get a whole context in one answer, in place of several tools: instructions of the workspace, the session's latest
    turns, related memories, lessons and the observation, ordered, and cut to the budget where it is too long. Returns
    Markdown, and the id by which a person can look up how it was made."""
    asked = ContextInput(
        observation=given.observation,
        goal=given.goal,
        session=given.session or "",
        templates=given.templates,
        agent=given.agent or None,
        run_id=given.run_id or None,
        user=given.user,
        budget=BudgetInput(total=given.budget_tokens - _room_for_ids(call, 1), reserve_ratio=0),
        format=MARKDOWN,
    )
    found = await context_of(call, asked)
    return _joined(found.compiled.markdown or "", f"Context: {found.context_id}")


TOOLS: Mapping[str, AgentTool] = {
    tool.name: tool
    for tool in (
        AgentTool(relevant_history, "Relevant history"),
        AgentTool(before_you_act, "Before you act"),
        AgentTool(recall, "Search memories"),
        AgentTool(why, "Why it is so"),
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
    found = [readable(await get_memory(call.database, workspace=tenant, memory_id=memory_id)) for memory_id in ids]
    left = "No room for these of the ids, counted from 1: {}. Ask for them alone, or with a larger budget_tokens."
    hits = [Hit(memory=item, score=0, explain={}) for item in found]
    room = budget - counter.count(left.format(list(range(1, len(ids) + 1))))
    make = partial(section, hits, budget=room, counter=counter)
    markdown, _, shown = await asyncio.to_thread(make) if is_long(hits) else make()
    given = {hit.memory.memory_id for hit in shown}
    missing = [place for place, memory_id in enumerate(ids, 1) if memory_id not in given]
    return _joined(markdown, left.format(", ".join(map(str, missing))) if missing else "")


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


def _degraded(found: Recall) -> str:
    return "; ".join(f"Answered in the mode {found.mode}, {item.arm} arm: {item.reason}" for item in found.degraded)


def _told(call: Call, room: int, answer: str, *further: str) -> str:
    """Returns an answer with the further lines that have room: so many tokens are left beside the answer."""
    kept = [answer]
    for part in filter(None, further):
        room -= call.services.counter.count(part)
        if room >= 0:
            kept.append(part)
    return _joined(*kept)


def _joined(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part)
