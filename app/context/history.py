"""A history that continues what the run was given before."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID
from weakref import WeakValueDictionary

from app.aside import aside
from app.context.prefix import ShownBlock, continued, remade, shown_as
from app.context.section import Block, fitted, frame_tokens, is_long, markdown_of, section
from app.db.engine import Database
from app.errors import InvalidInput
from app.memories.memory import Memory
from app.models.protocols import EmbeddingProvider, Reranker, TokenCounter
from app.retrieval import store
from app.retrieval.query import Query
from app.retrieval.recall import Broken, History, Hit, Reuse
from app.retrieval.search import Finding, entry, find, log, note
from app.retrieval.store import LatestSection
from app.workspaces import store as workspaces
from app.workspaces.languages import configuration

LEAST_BUDGET, LARGEST_BUDGET = 1, 100_000
"""Tokens."""


async def history(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: str,
    language: str,
    query: Query,
    budget_tokens: int,
    stable: bool = False,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> History:
    """The `## Relevant History` section for a query, of at most `budget_tokens` model tokens.

    What is logged as given is what the section shows. A `stable` one continues the previous stable one of the query's
    run: what that showed keeps its place and bytes as long as there is room, and what is new follows. The log
    has no secrets of the query, unless `mask` is off.

    Raises:
        InvalidInput: the query, its filters or the budget cannot be taken, or `stable` is asked for without a run.
        DatabaseUnavailable: the database does not answer.
    """
    if not LEAST_BUDGET <= budget_tokens <= LARGEST_BUDGET:
        raise InvalidInput("budget_tokens", f"must be from {LEAST_BUDGET} to {LARGEST_BUDGET:,}")
    if stable and not query.run_id:
        raise InvalidInput("run_id", "is missing; `stable` continues what a run was given before, so name the run")
    finding = await find(database, provider, workspace=workspace, query=query, mask=mask, reranker=reranker)
    if stable:
        return await continued_history(database, counter, finding, budget_tokens=budget_tokens, language=language)
    made = partial(section, finding.hits, budget=budget_tokens, counter=counter)
    markdown, tokens, shown = await aside(made, long=is_long(finding.hits))
    recall = await log(database, finding, hits=shown, tokens=tokens, language=language)
    return History(markdown=markdown, tokens=tokens, recall=recall)


REMADE_AT_ONCE = 100_000
"""Characters of text that are made again on the event loop, which takes up to 7 ms; more are in a thread."""

TURNS: WeakValueDictionary[tuple[int, str, str | None], asyncio.Lock] = WeakValueDictionary()
"""Whose turn it is among the calls of a run, by database and workspace; what nobody waits for goes. Of 36 calls, 12 at
once, the slowest took 1.3 s while they overtook one another, and 0.6 s in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """The run's previous section, as far as it can be shown again."""

    recall_id: UUID | None
    """The call that made it; None: there was none."""
    was_shown: bool
    """Whether it had a block."""
    blocks: Sequence[Block]
    broken: Broken | None


async def continued_history(
    database: Database, counter: TokenCounter, finding: Finding, *, budget_tokens: int, language: str
) -> History:
    """The section for what was found, behind what the run's previous section began with.

    Of calls of one run at once each continues another. In one process they take turns; one whose predecessor is no
    longer the latest when it is logged, because another process came between, is made again on what came between. It
    holds no connection while it waits or computes, and one of them always gets through.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    fit = partial(fitted, finding.hits, budget=budget_tokens, counter=counter)
    found = await aside(fit, long=is_long(finding.hits))
    room = budget_tokens - frame_tokens(counter)
    async with TURNS.setdefault((id(database), finding.workspace, finding.query.run_id), asyncio.Lock()):
        while True:
            before = await _before(database, finding, language)
            blocks, kept, hits = continued(finding.hits, found, before.blocks, room=room)
            history = await _logged(database, finding, before, blocks, kept, hits, counter)
            if history is not None:
                return history


async def _before(database: Database, finding: Finding, language: str) -> _Before:
    section, live, passing = await _read(database, finding)
    if section is None:
        async with database.transaction() as connection:
            await workspaces.ensure(connection, finding.workspace, configuration(language))
        return _Before(recall_id=None, was_shown=False, blocks=(), broken=None)
    large = sum(len(memory.body) for memory in live.values()) > REMADE_AT_ONCE
    blocks, broken = await aside(partial(remade, section.blocks, live, passing), long=large)
    return _Before(recall_id=section.recall_id, was_shown=bool(section.blocks), blocks=blocks, broken=broken)


async def _read(database: Database, finding: Finding) -> tuple[LatestSection | None, dict[UUID, Memory], set[UUID]]:
    """The run's previous section, those of its memories that are live, and which of them pass the filters."""
    async with database.direct() as connection:
        section = await store.latest_section(connection, finding.workspace, finding.query.run_id or "")
        if section is None or not section.blocks:
            return section, {}, set()
        ids = [block.memory_id for block in section.blocks]
        return section, *await store.standing(connection, section.workspace_id, ids, finding.query.filters)


async def _logged(
    database: Database,
    finding: Finding,
    before: _Before,
    blocks: Sequence[Block],
    kept: int,
    hits: Sequence[Hit],
    counter: TokenCounter,
) -> History | None:
    """The history, once the log has it; None where another call of the run was logged in between."""
    reuse, tokens = _reuse(before, blocks, kept, counter)
    recall, record = entry(finding, hits=hits, tokens=tokens, kept=reuse.kept)
    shown: list[ShownBlock] = [shown_as(block) for block in blocks]
    async with database.direct() as connection:
        if not await store.log_section(connection, record, shown, continues=before.recall_id):
            return None
    note(finding, recall)
    return History(markdown=markdown_of(blocks), tokens=tokens, recall=recall, reuse=reuse)


def _reuse(before: _Before, blocks: Sequence[Block], kept: int, counter: TokenCounter) -> tuple[Reuse, int]:
    """What the section shares with the previous one, and its tokens: blocks never share one, so they add up."""
    frame = frame_tokens(counter) if blocks else 0
    tokens = frame + sum(block.tokens for block in blocks)
    reused = frame + sum(block.tokens for block in blocks[:kept]) if before.was_shown else 0
    broken = before.broken
    if kept < len(before.blocks):
        broken = Broken(memory_id=before.blocks[kept].memory.memory_id, reason="budget")
    ids = tuple(block.memory.memory_id for block in blocks[:kept])
    return Reuse(tokens=reused, share=reused / tokens if tokens else 0.0, kept=ids, broken=broken), tokens
