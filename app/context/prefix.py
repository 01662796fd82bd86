"""The stable prefix: blocks that earlier calls of a run were shown keep their place and their bytes. Pure."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from uuid import UUID

from app.context.section import Block, block_text
from app.memories.memory import Memory
from app.retrieval.recall import Broken, Hit

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBlock:
    """A block as it is stored: enough to make its bytes again from the memory, and to prove that they are the same.

    The text is not kept, so that a memory that is destroyed is nowhere left.
    """

    memory_id: UUID
    cut: int | None
    final_score: float | None
    """The score that the heading shows, whatever was judged since."""
    digest: str
    tokens: int
    """Tokens of the block, whose bytes are the same or else not shown."""


def shown_as(block: Block) -> ShownBlock:
    """Returns a block as it is stored."""
    memory = block.memory
    return ShownBlock(
        memory_id=memory.memory_id,
        cut=block.cut,
        final_score=memory.final_score,
        digest=_digest(block.text),
        tokens=block.tokens,
    )


def remade(
    shown: Sequence[ShownBlock], live: Mapping[UUID, Memory], passing: Collection[UUID]
) -> tuple[list[Block], Broken | None]:
    """Returns the first of these blocks, up to the one that cannot be shown again byte for byte, and why it cannot.

    `live` has the memories that are still live, `passing` the ids of those that pass the filters.
    """
    blocks: list[Block] = []
    for item in shown:
        memory = live.get(item.memory_id)
        if memory is None:
            return blocks, Broken(memory_id=item.memory_id, reason="withdrawn")
        if item.memory_id not in passing:
            return blocks, Broken(memory_id=item.memory_id, reason="filtered")
        block = _again(item, memory)
        if block is None:
            return blocks, Broken(memory_id=item.memory_id, reason="edited")
        blocks.append(block)
    return blocks, None


def continued(
    hits: Sequence[Hit], found: Sequence[Block], earlier: Sequence[Block], *, room: int
) -> tuple[list[Block], int, list[Hit]]:
    """Returns the section's blocks, how many of the first are `earlier` ones, and the hits that it shows, best first.

    `found` are the blocks that `fitted` makes of the hits, `room` is what the budget leaves under the frame. It shows
    every hit that a section of these hits alone would show: the earlier blocks give way to them, never they to the
    earlier ones.
    """
    kept = _kept(earlier, found, room)
    standing = {block.memory.memory_id for block in earlier[:kept]}
    shown = {block.memory.memory_id for block in found}
    blocks = [*earlier[:kept], *(block for block in found if block.memory.memory_id not in standing)]
    return blocks, kept, [hit for hit in hits if hit.memory.memory_id in shown]


def _kept(earlier: Sequence[Block], found: Sequence[Block], room: int) -> int:
    """Returns how many earlier blocks stay: all where all fit; else as many as fit and end with one found again.

    A block behind the last one that was found again would cost room in every later call and give this one nothing
    (docs/retrieval.md has what other rules bring).
    """
    wanted = {block.memory.memory_id: block.tokens for block in found}
    added = (block.tokens - wanted.get(block.memory.memory_id, 0) for block in earlier)
    needed = list(accumulate(added, initial=sum(wanted.values())))
    if needed[-1] <= room:
        return len(earlier)
    ends = (place for place, block in enumerate(earlier, start=1) if block.memory.memory_id in wanted)
    return max((place for place in ends if needed[place] <= room), default=0)


def _again(item: ShownBlock, memory: Memory) -> Block | None:
    as_it_was = replace(memory, final_score=item.final_score)
    text = block_text(as_it_was, item.cut)
    if _digest(text) != item.digest:
        return None
    return Block(memory=as_it_was, cut=item.cut, text=text, tokens=item.tokens)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
