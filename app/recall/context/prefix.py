"""Continues the section of a run's previous call byte for byte, for prefix caches. Pure.

docs/adr/0016-a-prefix-that-is-made-again.md says why the blocks are made again and not stored as text.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import Passage
from app.recall.context.blocks import ShownPassage, SourceBlock
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.recall import Broken, Hit
from app.storage.memories.memory import Memory

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPassage:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlock:
    """The values that make the bytes of a block again from its memories, and a hash that proves that they are the same.

    The text is not stored, so that no copy of a destroyed memory remains.
    """

    passages: tuple[StoredPassage, ...]
    states: tuple[str, ...]
    digest: str
    tokens: int
    """Tokens of the block. The number stays right, because a block is only shown again with the same bytes."""


class Continued(NamedTuple):
    """A section that continues the blocks of an earlier one."""

    blocks: list[SourceBlock]
    kept: int
    """Number of blocks at the front that come from the earlier section."""


def continue_blocks(
    found: Sequence[SourceBlock], earlier: Sequence[SourceBlock], *, room: int, counter: TokenCounter
) -> Continued:
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
            return Continued(blocks, kept)
    return Continued(list(found), 0)


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


def stored_form(block: SourceBlock) -> StoredBlock:
    """Returns the stored form of a block."""
    passages = [
        StoredPassage(
            **item.passage.passage._asdict(),
            memory_id=item.hit.memory.memory_id,
            cut=item.cut,
            is_state="state" in item.hit.explain,
            final_score=item.hit.memory.final_score,
        )
        for item in block.shown
    ]
    return StoredBlock(
        passages=tuple(passages), states=block.shown_states(), digest=_digest(block), tokens=block.tokens
    )


def make_again(
    stored: Sequence[StoredBlock], live: Mapping[UUID, Memory], passing: Collection[UUID]
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


def _passage_of(stored: StoredPassage, live: Mapping[UUID, Memory]) -> ShownPassage:
    memory = replace(live[stored.memory_id], final_score=stored.final_score)
    hit = Hit(memory=memory, score=0.0, explain={"state": None} if stored.is_state else {})
    passage = Passage(stored.start, stored.end, stored.head)
    return ShownPassage(hit, PassageScore(passage, 0.0, 0.0, 0.0), stored.cut)


def _digest(block: SourceBlock) -> str:
    text = block.markdown().encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).hexdigest()
