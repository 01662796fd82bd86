"""Continues the section of a run's previous call byte for byte, for prefix caches. Pure.

docs/adr/0016-a-prefix-that-is-made-again.md says why the blocks are made again and not stored as text.
"""

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec

from app.errors import InvalidInput
from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import HEADING, Passage
from app.foundation.values import frozen
from app.intake.cases.service import Cases
from app.recall.context.blocks import (
    ShownPassage,
    SourceBlock,
    frame_tokens,
    gather_blocks,
    is_long,
    least_budget,
    memories_of,
    section_of,
    shown_by,
)
from app.recall.context.names import remark_on_names
from app.recall.cues import render
from app.recall.cues import store as stored_cues
from app.recall.cues.activate import PLAN_LIMIT, Activation, Activations, PlanAsked, check_plan
from app.recall.cues.cue import PROPOSED
from app.recall.retrieval.judged import JudgedIssue, case_of_run, issues_before, lines_of
from app.recall.retrieval.log import Drawn, RunSection, UnloggedRecall, drawn_from, log, log_section, shown_of
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.rank.pasted import need_of
from app.recall.retrieval.recall import Broken, History, Hit, Query, Reuse
from app.recall.retrieval.service import Retrieval
from app.recall.retrieval.texts import standing
from app.storage.index.following import OncePerText
from app.storage.memories.memory import Memory
from app.storage.recalls.store import latest_section
from app.storage.tenants.workspace import Workspace

DIGEST_BYTES = 16


@frozen
class _StoredPassage:
    """A passage of a stored block, without its text."""

    memory_id: UUID
    start: int
    end: int
    head: tuple[int, int] | None
    cut: int | None
    is_state: bool
    """True for the state of a case, which stands before the case's scores."""
    final_score: float | None
    """The score that the source line shows, even if the memory was judged again since."""
    newer: str = ""
    """The source of a later passage that the mark above it names."""


@frozen
class _StoredBlock:
    """The values that make the bytes of a block again from its memories, and a hash that proves that they are the same.

    The text is not stored, so that no copy of a destroyed memory remains.
    """

    passages: tuple[_StoredPassage, ...]
    states: tuple[str, ...]
    digest: str
    tokens: int
    """Tokens of the block. The number stays right, because a block is only shown again with the same bytes."""


class _Continued(NamedTuple):
    """A section that continues the blocks of an earlier one."""

    blocks: list[SourceBlock]
    kept: int
    """Number of blocks at the front that come from the earlier section."""


def continue_blocks(
    found: Sequence[SourceBlock], earlier: Sequence[SourceBlock], *, room: int, counter: TokenCounter
) -> _Continued:
    """Returns the section that continues the `earlier` blocks with the passages of `found` that these do not show.

    `room` is the budget without the frame; the `found` blocks fit into it. All earlier blocks stay if they fit, else
    those up to the last one that has a passage which is found again: blocks after it would take room in every later
    call without a use for this one (benchmarks/retrieval.md compares other rules).
    """
    wanted = {_key(item) for block in found for item in block.shown}
    ends = (
        place
        for place, block in enumerate(earlier, start=1)
        if place == len(earlier) or any(_key(item) in wanted for item in block.shown)
    )
    for kept in sorted(ends, reverse=True):
        blocks = [*earlier[:kept], *_without(found, earlier[:kept], counter)]
        if sum(block.tokens for block in blocks) <= room:
            return _Continued(blocks, kept)
    return _Continued(list(found), 0)


def _without(found: Sequence[SourceBlock], kept: Sequence[SourceBlock], counter: TokenCounter) -> list[SourceBlock]:
    """Returns the found blocks without the passages that the kept ones show."""
    shown = {_key(item) for block in kept for item in block.shown}
    blocks: list[SourceBlock] = []
    for block in found:
        left = [item for item in block.shown if _key(item) not in shown]
        if left:
            is_new = len(left) == len(block.shown)
            blocks.append(block if is_new else SourceBlock(left[:-1]).longer(left[-1], counter.count))
    return blocks


def _key(item: ShownPassage) -> tuple[UUID, int]:
    return item.hit.memory.memory_id, item.passage.passage.start


def stored_form(block: SourceBlock) -> _StoredBlock:
    """Returns the stored form of a block."""
    passages = [
        _StoredPassage(
            **item.passage.passage._asdict(),
            memory_id=item.hit.memory.memory_id,
            cut=item.cut,
            is_state="state" in item.hit.explain,
            final_score=item.hit.memory.final_score,
            newer=item.newer,
        )
        for item in block.shown
    ]
    return _StoredBlock(
        passages=tuple(passages), states=block.shown_states(), digest=_digest(block), tokens=block.tokens
    )


def make_again(
    stored: Sequence[_StoredBlock], live: Mapping[UUID, Memory], passing: Collection[UUID]
) -> tuple[list[SourceBlock], Broken | None]:
    """Returns the blocks before the first that cannot be shown again byte for byte, and that one with the reason.

    `live` has the memories that are still live, `passing` the ids of those that pass the filters.
    """
    blocks: list[SourceBlock] = []
    for item in stored:
        ids = [passage.memory_id for passage in item.passages]
        if missing := [memory_id for memory_id in ids if memory_id not in live]:
            return blocks, Broken(memory_id=missing[0], reason="withdrawn")
        if missing := [memory_id for memory_id in ids if memory_id not in passing]:
            return blocks, Broken(memory_id=missing[0], reason="filtered")
        block = SourceBlock([_passage_of(passage, live) for passage in item.passages], item.tokens, item.states)
        if _digest(block) != item.digest:
            return blocks, Broken(memory_id=ids[0], reason="edited")
        blocks.append(block)
    return blocks, None


def _passage_of(stored: _StoredPassage, live: Mapping[UUID, Memory]) -> ShownPassage:
    memory = replace(live[stored.memory_id], final_score=stored.final_score)
    hit = Hit(memory=memory, score=0.0, explain={"state": None} if stored.is_state else {})
    passage = Passage(stored.start, stored.end, stored.head)
    return ShownPassage(hit, PassageScore(passage, 0.0, 0.0, 0.0), stored.cut, stored.newer)


def _digest(block: SourceBlock) -> str:
    text = block.markdown().encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).hexdigest()


CUES_SHARE = 0.4
"""Most of a budget that cues take; the history takes the rest, and what they leave."""
_LEAST_SLOTS = 2
"""Memories of a section from which on the next candidate may get a withheld one's slot; an only slot stays empty."""
_TRIED = 4
"""Hits that are tried as the next candidate for a slot, each in a section of its own."""
_REMADE_AT_ONCE = 100_000
"""Most characters of text that are made again on the event loop, in up to 7 ms; a thread makes longer ones."""

CALLS: WeakValueDictionary[tuple[int, str, str | None], asyncio.Lock] = WeakValueDictionary()
"""The lock of each run's calls, by database and workspace; a lock that no call holds is dropped. The slowest of
36 calls, 12 of them at a time, took 1.3 s without the lock and 0.6 s with it."""


@frozen
class _Before:
    """The part of the run's previous section that can be shown again."""

    recall_id: UUID | None
    """The recall that made the previous section; None if there is none."""
    was_shown: bool
    """True if the previous section had a block."""
    blocks: Sequence[SourceBlock]
    broken: Broken | None


@frozen
class Histories:
    """Gives agents their histories."""

    retrieval: Retrieval
    activations: Activations
    cases: Cases
    counter: TokenCounter

    async def get(self, workspace: Workspace, query: Query, *, budget_tokens: int, stable: bool = False) -> History:
        """Returns the `## Relevant History` section for a query, of at most `budget_tokens` model tokens.

        The open issues of the case of the query's run follow it, as `## Before you act`.

        The log has the hits that the section shows. A `stable` section continues the previous stable section of the
        query's run: earlier blocks keep their place and bytes as long as there is room, and new blocks follow.

        Raises:
            InvalidInput: the query or a filter is not valid, or a `stable` section has no run.
            DatabaseUnavailable: the database does not answer.
        """
        _check(query, stable=stable)
        finding = await self.retrieval.find(workspace, query, suspects=False, passages=True)
        finding = await self._without_cues(finding, ())
        issues = await self._issues_of_run(workspace, query)
        lines = lines_of(issues, budget=int(budget_tokens * CUES_SHARE), counter=self.counter)
        section = render.markdown_of((), lines)
        taken = self.counter.count(section)
        history = await self._log_and_render(finding, budget_tokens=max(1, budget_tokens - taken), stable=stable)
        return replace(
            history,
            markdown="\n".join(filter(None, (history.markdown, section))),
            tokens=history.tokens + taken,
        )

    async def _issues_of_run(self, workspace: Workspace, query: Query) -> list[JudgedIssue]:
        """Returns the open issues of the case that the query's run is of."""
        if not query.run_id:
            return []
        found = await case_of_run(self.cases, workspace, query.run_id)
        return [] if found is None else issues_before(found, query.text)

    async def with_cues(
        self, workspace: Workspace, query: Query, *, budget_tokens: int, stable: bool = False
    ) -> tuple[History, Activation]:
        """Returns the history for a query, and the cues that it fires as a plan, both within one budget.

        The query is embedded once. A cue that is shown stands in no hit of the history, and neither does one that
        hardly applies: in a small store the best of what is stored looks good, and what applies is judged by the cues.
        Neither does a wish that is not shown, unless a question asks for what is known, nor what is kept back beside
        others.

        Raises:
            InvalidInput: as for `get` and `activate`.
            DatabaseUnavailable: the database does not answer.
        """
        _check(query, stable=stable)
        share = max(1, int(budget_tokens * CUES_SHARE))
        asked = PlanAsked(
            plan=need_of(query.text)[:PLAN_LIMIT],
            agent=query.agent,
            run_id=query.run_id,
            budget_tokens=share,
            idempotency_key=query.idempotency_key,
        )
        check_plan(asked)
        embedding = OncePerText(self.retrieval.provider)
        retrieval = replace(self.retrieval, provider=embedding)
        finding = await retrieval.find(workspace, query, suspects=False, passages=True)
        activation = await replace(self.activations, provider=embedding).activate(workspace, asked)
        shown = [cue.cue_id for cue in activation.cues]
        finding = await self._without_cues(finding, shown, activation.fit_to_inform(asked.plan))
        room = max(1, budget_tokens - activation.tokens)
        return await self._log_and_render(finding, budget_tokens=room, stable=stable), activation

    async def _without_cues(
        self, finding: UnloggedRecall, shown: Collection[UUID], near: Collection[UUID] | None = None
    ) -> UnloggedRecall:
        """Returns a finding without the cues that are shown already, and those that no person has accepted yet.

        If it is known which ones nearly apply, the others are left out too.
        """
        found = [hit.memory.memory_id for hit in finding.hits if hit.memory.kind == "cue"]
        if not found:
            return finding
        async with self.retrieval.database.session(finding.workspace, transaction=False) as session:
            cues = await stored_cues.read(session, found)
        left_out = {*shown, *(cue_id for cue_id, cue in cues.items() if cue.state == PROPOSED)}
        left_out |= set() if near is None else {*cues} - {*near}
        return replace(finding, hits=tuple(hit for hit in finding.hits if hit.memory.memory_id not in left_out))

    async def _log_and_render(self, finding: UnloggedRecall, *, budget_tokens: int, stable: bool) -> History:
        """Logs and returns the section of a finding, and below it what the query names and its blocks do not.

        Below, because the blocks of a stable section continue those of an earlier one, and only if there is room left.
        """
        history = await self._log_section(finding, budget_tokens=budget_tokens, stable=stable)
        line = remark_on_names(finding.query.text, history.recall.hits, history.markdown)
        tokens = history.tokens + self.counter.count(line)
        if not line or tokens > budget_tokens:
            return history
        return replace(history, markdown=f"{history.markdown}\n{line}", tokens=tokens)

    async def _log_section(self, finding: UnloggedRecall, *, budget_tokens: int, stable: bool) -> History:
        """Logs and returns the section of a finding."""
        if stable:
            return await self._continue_section(finding, budget_tokens=budget_tokens)
        blocks, shown = await self._blocks_of(finding, budget_tokens)
        drawn = drawn_from(finding, shown, self.retrieval.explore)
        if drawn is not None and drawn.withheld is not None:
            drawn = drawn._replace(following=await self._following(finding, shown, drawn, budget_tokens))
            # The slot goes to the next candidate or to none: the probability of any other memory would not be known.
            others = replace(finding, hits=_in_order(finding, shown_of(shown, drawn)))
            blocks, shown = await self._blocks_of(others, budget_tokens)
        markdown = section_of(blocks)
        if not blocks and drawn is None and finding.period is not None:
            nothing = _nothing_in(finding.period)
            markdown = nothing if self.counter.count(nothing) <= budget_tokens else ""
        tokens = self.counter.count(markdown)
        async with self.retrieval.database.session(finding.workspace, transaction=False) as session:
            recall = await log(
                session,
                finding,
                hits=shown,
                tokens=tokens,
                budget_tokens=budget_tokens,
                drawn=drawn,
                shown=shown_by(blocks),
            )
        is_too_small = not shown and drawn is None and any(hit.passages for hit in finding.hits)
        needed = least_budget(finding.hits, self.counter) if is_too_small else None
        return History(markdown=markdown, tokens=tokens, recall=recall, needed_tokens=needed)

    async def _following(self, finding: UnloggedRecall, shown: list[Hit], drawn: Drawn, budget: int) -> Hit | None:
        """Returns the best hit that a section could show in the drawn slot, beside all its other hits; None if none.

        It does not depend on whether the slot is given to it, so its probability is known.
        """
        if len(shown) < _LEAST_SLOTS:
            return None
        own = {hit.memory.memory_id for hit in shown}
        candidates = (hit for hit in finding.hits if hit.memory.memory_id not in own)
        for hit in islice(candidates, _TRIED):
            wanted = _in_order(finding, shown_of(shown, drawn._replace(following=hit, gives=True)))
            _, found = await self._blocks_of(replace(finding, hits=wanted), budget)
            if len(found) == len(wanted):
                return hit
        return None

    async def _blocks_of(self, finding: UnloggedRecall, budget_tokens: int) -> tuple[list[SourceBlock], list[Hit]]:
        """Returns the blocks of a section of this finding alone, and the hits that they show."""
        gather = partial(gather_blocks, finding.hits, k=finding.query.k, budget=budget_tokens, counter=self.counter)
        blocks = await asyncio.to_thread(gather) if is_long(finding.hits) else gather()
        shown = set(memories_of(blocks))
        return blocks, [hit for hit in finding.hits if hit.memory.memory_id in shown]

    async def _continue_section(self, finding: UnloggedRecall, *, budget_tokens: int) -> History:
        """Returns the section of a finding, after the reused blocks of the run's previous section.

        Concurrent calls of one run continue each other, one after the other. Within a process they wait for their turn.
        If another process has logged a newer section in the meantime, the call is repeated on top of that section; one
        of the calls always gets through. A call holds no connection while it waits or computes.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        database, counter = self.retrieval.database, self.counter
        found, hits = await self._blocks_of(finding, budget_tokens)
        room = budget_tokens - frame_tokens(counter)
        async with CALLS.setdefault((id(database), finding.workspace.name, finding.query.run_id), asyncio.Lock()):
            while True:
                before = await self._before(finding)
                made = continue_blocks(found, before.blocks, room=room, counter=counter)
                history = await self._log(finding, hits, before, made)
                if history is not None:
                    return history

    async def _before(self, finding: UnloggedRecall) -> _Before:
        """Reads the run's previous section, and makes again its first blocks that are still valid."""
        stored: tuple[_StoredBlock, ...] = ()
        live, passing = dict[UUID, Memory](), set[UUID]()
        async with self.retrieval.database.session(finding.workspace, transaction=False) as session:
            latest = await latest_section(session, finding.query.run_id or "")
            if latest is not None:
                stored = _stored_blocks(latest.blocks)
                ids = {passage.memory_id for block in stored for passage in block.passages}
                live, passing = await standing(session, list(ids), finding.query.filters)
                live = {memory_id: memory for memory_id, memory in live.items() if not memory.suspect}
        make = partial(make_again, stored, live, passing)
        large = sum(len(memory.body) for memory in live.values()) > _REMADE_AT_ONCE
        blocks, broken = await asyncio.to_thread(make) if large else make()
        recall_id = None if latest is None else latest.recall_id
        return _Before(recall_id=recall_id, was_shown=bool(stored), blocks=blocks, broken=broken)

    async def _log(
        self, finding: UnloggedRecall, hits: Sequence[Hit], before: _Before, made: _Continued
    ) -> History | None:
        """Logs and returns the history; returns None if another call of the run was logged in between."""
        reuse, tokens = _reuse(before, made, self.counter)
        stored = [stored_form(block) for block in made.blocks]
        section = RunSection(kept=reuse.kept, blocks=stored, shown=shown_by(made.blocks), continues=before.recall_id)
        async with self.retrieval.database.session(finding.workspace, transaction=False) as session:
            recall = await log_section(session, finding, section, hits=hits, tokens=tokens)
        if recall is None:
            return None
        return History(markdown=section_of(made.blocks), tokens=tokens, recall=recall, reuse=reuse)


def _nothing_in(period: str) -> str:
    """Returns the section that says that nothing of a period is stored."""
    return f"{HEADING}\n\nNothing {'' if period.startswith(('before', 'since')) else 'from '}{period}.\n"


def _stored_blocks(blocks: object) -> tuple[_StoredBlock, ...]:
    """Returns the blocks of a stored section; none of one that another version stored in another form."""
    try:
        return msgspec.convert(blocks or (), tuple[_StoredBlock, ...])
    except msgspec.ValidationError:
        return ()


def _in_order(finding: UnloggedRecall, hits: Collection[Hit]) -> tuple[Hit, ...]:
    """Returns these hits in the order of the finding."""
    wanted = {hit.memory.memory_id for hit in hits}
    return tuple(hit for hit in finding.hits if hit.memory.memory_id in wanted)


def _check(query: Query, *, stable: bool) -> None:
    if stable and not query.run_id:
        raise InvalidInput("run_id", "is missing; `stable` continues what a run was given before, so name the run")


def _reuse(before: _Before, made: _Continued, counter: TokenCounter) -> tuple[Reuse, int]:
    """Returns what the section shares with the previous one, and its tokens: blocks share none, so they add up."""
    frame = frame_tokens(counter) if made.blocks else 0
    tokens = frame + sum(block.tokens for block in made.blocks)
    kept = made.blocks[: made.kept]
    reused = frame + sum(block.tokens for block in kept) if before.was_shown else 0
    broken = before.broken
    if made.kept < len(before.blocks):
        first, *_ = memories_of(before.blocks[made.kept :])
        broken = Broken(memory_id=first, reason="budget")
    share = reused / tokens if tokens else 0.0
    return Reuse(tokens=reused, share=share, kept=memories_of(kept), broken=broken), tokens
