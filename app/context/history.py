"""The verb that gives an agent its history, alone or as the continuation of its run's previous section."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec

from app.context.blocks import gathered, least_budget, section_of
from app.context.section import (
    Block,
    Continued,
    ShownBlock,
    continued,
    fitted,
    frame_tokens,
    is_long,
    markdown_of,
    remade,
    shown_as,
)
from app.cues import store as stored_cues
from app.cues.activate import PLAN_LIMIT, Activation, PlanAsked, activate, check_plan
from app.cues.cue import PROPOSED
from app.db.database import Database
from app.errors import InvalidInput
from app.index.reembed import OncePerText
from app.memories.memory import Memory
from app.models.protocols import EmbeddingProvider, Reranker, TokenCounter
from app.retrieval.log import Finding, RunSection, latest_section, log, log_section
from app.retrieval.recall import Broken, History, Hit, Query, Reuse
from app.retrieval.search import find
from app.retrieval.texts import standing
from app.workspaces.workspace import Workspace

LEAST_BUDGET, LARGEST_BUDGET = 1, 100_000
"""Limits of the budget, in tokens."""


async def history(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    query: Query,
    budget_tokens: int,
    stable: bool = False,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> History:
    """Returns the `## Relevant History` section for a query, of at most `budget_tokens` model tokens.

    The log has the hits that the section shows. A `stable` section continues the previous stable section of the query's
    run: earlier blocks keep their place and bytes as long as there is room, and new blocks follow. The log has no
    secrets of the query, unless `mask` is off.

    Raises:
        InvalidInput: the query, its filters or the budget is not valid, or a `stable` section has no run.
        DatabaseUnavailable: the database does not answer.
    """
    _check(query, budget_tokens, stable=stable)
    finding = await find(
        database,
        provider,
        workspace=workspace,
        query=query,
        mask=mask,
        reranker=reranker,
        suspects=False,
        passages=not stable,
    )
    finding = await _without_cues(database, finding, ())
    return await _shown(database, counter, finding, budget_tokens=budget_tokens, stable=stable)


def _check(query: Query, budget_tokens: int, *, stable: bool) -> None:
    if not LEAST_BUDGET <= budget_tokens <= LARGEST_BUDGET:
        raise InvalidInput("budget_tokens", f"must be from {LEAST_BUDGET} to {LARGEST_BUDGET:,}")
    if stable and not query.run_id:
        raise InvalidInput("run_id", "is missing; `stable` continues what a run was given before, so name the run")


async def _without_cues(database: Database, finding: Finding, told: Collection[UUID]) -> Finding:
    """Returns a finding without the cues that are told already, and those that no person has accepted yet."""
    found = [hit.memory.memory_id for hit in finding.hits if hit.memory.kind == "cue"]
    if not found:
        return finding
    async with database.session(finding.workspace, transaction=False) as session:
        cues = await stored_cues.read(session, found)
    left_out = {*told, *(cue_id for cue_id, cue in cues.items() if cue.state == PROPOSED)}
    return replace(finding, hits=tuple(hit for hit in finding.hits if hit.memory.memory_id not in left_out))


async def _shown(
    database: Database, counter: TokenCounter, finding: Finding, *, budget_tokens: int, stable: bool
) -> History:
    """Logs and returns the section of a finding."""
    if stable:
        return await continued_history(database, counter, finding, budget_tokens=budget_tokens)
    make = partial(_section, finding, budget=budget_tokens, counter=counter)
    markdown, tokens, shown = await asyncio.to_thread(make) if is_long(finding.hits) else make()
    async with database.session(finding.workspace, transaction=False, at_node=True) as session:
        recall = await log(session, finding, hits=shown, tokens=tokens, budget_tokens=budget_tokens)
    needed = None if shown or not any(hit.passages for hit in finding.hits) else least_budget(finding.hits, counter)
    return History(markdown=markdown, tokens=tokens, recall=recall, needed_tokens=needed)


def _section(finding: Finding, *, budget: int, counter: TokenCounter) -> tuple[str, int, list[Hit]]:
    """Returns the section of a finding's passages, its tokens, and the hits that it shows."""
    blocks = gathered(finding.hits, k=finding.query.k, budget=budget, counter=counter)
    markdown = section_of(blocks)
    shown = {item.hit.memory.memory_id for block in blocks for item in block.shown}
    return markdown, counter.count(markdown), [hit for hit in finding.hits if hit.memory.memory_id in shown]


CUES_SHARE = 0.4
"""Most of a budget that cues take; the history takes the rest, and what they leave."""


async def history_with_cues(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    query: Query,
    budget_tokens: int,
    stable: bool = False,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> tuple[History, Activation]:
    """Returns the history for a query, and the cues that it fires as a plan, both within one budget.

    The query is embedded once, and a cue that is told stands in no hit of the history.

    Raises:
        InvalidInput: as for `history` and `activate`.
        DatabaseUnavailable: the database does not answer.
    """
    _check(query, budget_tokens, stable=stable)
    if len(query.text) > PLAN_LIMIT:
        raise InvalidInput("query", f"has {len(query.text):,} characters; at most {PLAN_LIMIT:,} fire cues")
    share = max(1, int(budget_tokens * CUES_SHARE))
    asked = PlanAsked(
        plan=query.text,
        agent=query.agent,
        run_id=query.run_id,
        budget_tokens=share,
        idempotency_key=query.idempotency_key,
    )
    check_plan(asked)
    provider = OncePerText(provider)
    finding = await find(
        database,
        provider,
        workspace=workspace,
        query=query,
        mask=mask,
        reranker=reranker,
        suspects=False,
        passages=not stable,
    )
    activation = await activate(database, provider, counter, workspace=workspace, asked=asked, mask=mask)
    finding = await _without_cues(database, finding, [cue.cue_id for cue in activation.cues])
    room = max(1, budget_tokens - activation.tokens)
    return await _shown(database, counter, finding, budget_tokens=room, stable=stable), activation


REMADE_AT_ONCE = 100_000
"""Most characters of text that are made again on the event loop, in up to 7 ms; a thread makes longer ones."""

CALLS: WeakValueDictionary[tuple[int, str, str | None], asyncio.Lock] = WeakValueDictionary()
"""The lock of each run's calls, by database and workspace; a lock that no call holds is dropped. The slowest of
36 calls, 12 of them at a time, took 1.3 s without the lock and 0.6 s with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """The part of the run's previous section that can be shown again."""

    recall_id: UUID | None
    """The recall that made the previous section; None if there is none."""
    was_shown: bool
    """True if the previous section had a block."""
    blocks: Sequence[Block]
    broken: Broken | None


async def continued_history(
    database: Database, counter: TokenCounter, finding: Finding, *, budget_tokens: int
) -> History:
    """Returns the section of a finding, after the reused blocks of the run's previous section.

    Concurrent calls of one run continue each other, one after the other. Within a process they wait for their turn.
    If another process has logged a newer section in the meantime, the call is repeated on top of that section; one of
    the calls always gets through. A call holds no connection while it waits or computes.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    fit = partial(fitted, finding.hits, budget=budget_tokens, counter=counter)
    found = await asyncio.to_thread(fit) if is_long(finding.hits) else fit()
    room = budget_tokens - frame_tokens(counter)
    async with CALLS.setdefault((id(database), finding.workspace.name, finding.query.run_id), asyncio.Lock()):
        while True:
            before = await _before(database, finding)
            made = continued(finding.hits, found, before.blocks, room=room)
            history = await _logged(database, finding, before, made, counter)
            if history is not None:
                return history


async def _before(database: Database, finding: Finding) -> _Before:
    """Reads the run's previous section, and makes again its first blocks that are still valid."""
    shown: tuple[ShownBlock, ...] = ()
    live, passing = dict[UUID, Memory](), set[UUID]()
    async with database.session(finding.workspace, transaction=False, at_node=True) as session:
        latest = await latest_section(session, finding.query.run_id or "")
        if latest is not None and latest.blocks:
            shown = msgspec.convert(latest.blocks, tuple[ShownBlock, ...])
            live, passing = await standing(session, [block.memory_id for block in shown], finding.query.filters)
            live = {memory_id: memory for memory_id, memory in live.items() if not memory.suspect}
    remake = partial(remade, shown, live, passing)
    large = sum(len(memory.body) for memory in live.values()) > REMADE_AT_ONCE
    blocks, broken = await asyncio.to_thread(remake) if large else remake()
    recall_id = None if latest is None else latest.recall_id
    return _Before(recall_id=recall_id, was_shown=bool(shown), blocks=blocks, broken=broken)


async def _logged(
    database: Database, finding: Finding, before: _Before, made: Continued, counter: TokenCounter
) -> History | None:
    """Logs and returns the history; returns None if another call of the run was logged in between."""
    reuse, tokens = _reuse(before, made, counter)
    shown = [shown_as(block) for block in made.blocks]
    section = RunSection(kept=reuse.kept, blocks=shown, continues=before.recall_id)
    async with database.session(finding.workspace, transaction=False, at_node=True) as session:
        recall = await log_section(session, finding, section, hits=made.hits, tokens=tokens)
    if recall is None:
        return None
    return History(markdown=markdown_of(made.blocks), tokens=tokens, recall=recall, reuse=reuse)


def _reuse(before: _Before, made: Continued, counter: TokenCounter) -> tuple[Reuse, int]:
    """Returns what the section shares with the previous one, and its tokens: blocks share none, so they add up."""
    frame = frame_tokens(counter) if made.blocks else 0
    tokens = frame + sum(block.tokens for block in made.blocks)
    kept = made.blocks[: made.kept]
    reused = frame + sum(block.tokens for block in kept) if before.was_shown else 0
    broken = before.broken
    if made.kept < len(before.blocks):
        broken = Broken(memory_id=before.blocks[made.kept].memory.memory_id, reason="budget")
    ids = tuple(block.memory.memory_id for block in kept)
    return Reuse(tokens=reused, share=reused / tokens if tokens else 0.0, kept=ids, broken=broken), tokens
