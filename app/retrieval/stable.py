"""A history that continues what the run was given before."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.db.engine import Database
from app.embeddings.provider import TokenCounter
from app.retrieval import store
from app.retrieval.prefix import ShownBlock, continued, remade, shown_as
from app.retrieval.recall import Broken, History, Hit, Reuse
from app.retrieval.search import Finding, entry, note
from app.retrieval.section import Block, frame_tokens, markdown_of
from app.workspaces import store as workspaces
from app.workspaces.language import configuration


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

    Of calls of one run at once each continues another: one whose predecessor is no longer the latest when it is logged
    is made again on what came between. It holds no connection while it computes, and one of them always gets through.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    await _ensure_workspace(database, finding.workspace, language)
    while True:
        before = await _before(database, finding, counter)
        blocks, kept, hits = continued(finding.hits, before.blocks, budget=budget_tokens, counter=counter)
        history = await _logged(database, finding, before, blocks, kept, hits, counter)
        if history is not None:
            return history


async def _ensure_workspace(database: Database, workspace: str, language: str) -> None:
    async with database.statements() as connection:
        known = await workspaces.find(connection, workspace)
    if known is None:
        async with database.transaction() as connection:
            await workspaces.ensure(connection, workspace, configuration(language))


async def _before(database: Database, finding: Finding, counter: TokenCounter) -> _Before:
    async with database.direct() as connection:
        section = await store.latest_section(connection, finding.workspace, finding.query.run_id or "")
        if section is None:
            return _Before(recall_id=None, was_shown=False, blocks=(), broken=None)
        ids = [block.memory_id for block in section.blocks]
        live, passing = await store.standing(connection, section.workspace_id, ids, finding.query.filters)
    blocks, broken = remade(section.blocks, live, passing, counter)
    return _Before(recall_id=section.recall_id, was_shown=bool(ids), blocks=blocks, broken=broken)


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
