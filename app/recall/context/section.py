"""The section that an agent reads before it acts. Pure: the same hits and budget give the same bytes."""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.pieces import FRAME, HEADING
from app.foundation.text.sentences import SENTENCE_END
from app.foundation.text.words import IDEOGRAPHS, in_one_line
from app.recall.retrieval.recall import Broken, Hit
from app.storage.memories.memory import Memory

BACKTICKS = re.compile(r"`{3,}")
LEAST_EXCERPT = 32
"""Least tokens of an excerpt: a shorter one says too little to be worth its heading."""
COUNTED_AT_ONCE = 20_000
"""Most characters of hits that are counted and cut on the event loop, in 1.5 ms, or 15 ms if every word is new; a
thread counts more, so that no other request waits."""
PIECE_CHARACTERS = 4_000
"""A text is counted piece by piece until the room is full; a piece has about this many characters. Counting 20 whole
texts of 180,000 characters took 6 s for an excerpt of 500 tokens."""
TITLE_END = " › "
"""The mark after a file's title in the title of its chunk (`app.intake.reports.chunk`)."""
SEAM = re.compile(r"[ \t\n\r]")
"""A place at which a cut does not change the tokens of a text."""
ELLIPSIS = "…"
END_OF_SENTENCE = re.compile(rf"{SENTENCE_END.pattern}|\n+")
END_OF_WORD = re.compile(rf"\s+|(?<=[{IDEOGRAPHS}])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A memory that the section shows, and the part of its text."""

    memory: Memory
    cut: int | None
    """Number of characters of its text that are shown; None for all from `start` on."""
    text: str
    tokens: int
    start: int = 0
    """The first character of its text that is shown."""
    remark: str = ""
    """The last part of its heading: what has become of its issues since."""


def section(hits: Sequence[Hit], *, budget: int, counter: TokenCounter) -> tuple[str, int, list[Hit]]:
    """Returns the Markdown, its tokens (at most `budget`), and the hits that it shows, most relevant first.

    A hit that does not fit whole is cut after a sentence; it is left out if there is no room for a useful excerpt. The
    excerpt begins with the best passage where one from the beginning would not reach the passage's end.
    """
    blocks = fit_blocks(hits, budget=budget, counter=counter)
    shown = {block.memory.memory_id for block in blocks}
    markdown = markdown_of(blocks)
    return markdown, counter.count(markdown), [hit for hit in hits if hit.memory.memory_id in shown]


def is_long(hits: Sequence[Hit]) -> bool:
    """Returns True if fitting these hits takes so long that a thread does it."""
    return sum(len(hit.memory.body) for hit in hits) > COUNTED_AT_ONCE


def fit_blocks(hits: Sequence[Hit], *, budget: int, counter: TokenCounter) -> list[Block]:
    """Returns the blocks of a section of at most `budget` tokens, most relevant first."""
    used, least = frame_tokens(counter), 2 * counter.count(fence_around(""))
    blocks: list[Block] = []
    for hit in hits:
        if used + least > budget:
            break
        block = _fitting(hit, budget - used, counter)
        if block is not None:
            blocks.append(block)
            used += block.tokens
    return blocks


def frame_tokens(counter: TokenCounter) -> int:
    """Returns the tokens of the lines above the blocks."""
    return counter.count(HEADING) + counter.count(FRAME)


def markdown_of(blocks: Sequence[Block]) -> str:
    """Returns the section of these blocks; empty without any."""
    return "\n\n".join([HEADING, FRAME, *(block.text for block in blocks)]) + "\n" if blocks else ""


def source_line(memory: Memory, states: Sequence[str]) -> str:
    """Returns the name of a memory's source, with its date, version, score and the states of its issues.

    What the name says is left out. Without a state, the verdict is shown.
    """
    name = in_one_line(source_name(memory)) or in_one_line(memory.title) or memory.kind.capitalize()
    date = "" if memory.occurred_at is None else memory.occurred_at.date().isoformat()
    version = in_one_line(str(memory.metadata.get("version") or ""))
    score = None if memory.final_score is None else f"{memory.final_score:.1f}/10"
    verdict = in_one_line(str(memory.metadata.get("verdict") or ""))
    facts = [*(fact for fact in (date, version) if fact not in name), score, *(states or [verdict])]
    return " · ".join([name, *(fact for fact in facts if fact)])


def heading(memory: Memory, remark: str = "") -> str:
    """Returns a memory's title, source, date, score and remark in one line.

    The line is inside the fence too, because the memory's title is not trusted.
    """
    date = None if memory.occurred_at is None else memory.occurred_at.date().isoformat()
    score = None if memory.final_score is None else f"score {memory.final_score:.1f}/10"
    facts = [in_one_line(part) for part in (source_name(memory), date, score, remark) if part]
    title = in_one_line(memory.title) or memory.kind.capitalize()
    return f"# {title}" + (f" ({' · '.join(facts)})" if facts else "")


def source_name(memory: Memory) -> str:
    """Returns the name by which a person knows the memory's source."""
    return memory.source_title or memory.source_uri or ""


def block_text(memory: Memory, cut: int | None, remark: str = "", start: int = 0) -> str:
    """Returns a memory in its fence, with `cut` characters of its text from `start` on.

    The same cut and start give the same bytes.
    """
    top, body = heading(memory, remark), memory.body.strip()
    return fence_text(top, body, fence_around(f"{top}\n{body}"), cut, start)


def fence_text(top: str, body: str, fence: str, cut: int | None = None, start: int = 0) -> str:
    """Returns a heading and a text in a fence, of the text `cut` characters from `start` on."""
    shown = body[start:] if cut is None else f"{body[start : start + cut]} {ELLIPSIS}"
    return f"{fence}\n{top}\n\n{f'{ELLIPSIS} {shown}' if start else shown}\n{fence}"


def _fitting(hit: Hit, room: int, counter: TokenCounter) -> Block | None:
    memory, body = hit.memory, hit.body.strip()
    remark = hit.remark(f"{memory.title} {body}")
    top = heading(memory, remark)
    fence = fence_around(f"{top}\n{body}")
    room -= counter.count(top) + 2 * counter.count(fence)
    cut, start = _cut(body, room, counter), 0
    if cut:
        cut, start = _from_passage(hit, body, cut, room, counter)
    if cut == 0:
        return None
    text = fence_text(top, body, fence, cut, start)
    return Block(memory=memory, cut=cut, text=text, tokens=counter.count(text), start=start, remark=remark)


def _cut(body: str, room: int, counter: TokenCounter) -> int | None:
    """Returns the place to cut `body`; None if it fits whole, 0 if there is no room for a useful excerpt."""
    begun = _beginning_of(body, room, counter) if room >= 0 else ""
    if body and begun is None:
        return None
    return cut_at(begun or "", room, counter) if room >= LEAST_EXCERPT else 0


def _from_passage(hit: Hit, body: str, cut: int, room: int, counter: TokenCounter) -> tuple[int | None, int]:
    """Returns the cut and the start of an excerpt that has the nearest passage, as far as it fits.

    An excerpt from the beginning that has the whole passage stays, and so does one in place of which none fits.
    """
    before = len(hit.body) - len(hit.body.lstrip())
    start, end = (max(0, place - before) for place in hit.passage or (0, 0))
    if start == 0 or end <= cut:
        return cut, 0
    later = _cut(body[start:], room - counter.count(ELLIPSIS), counter)
    return (cut, 0) if later == 0 else (later, start)


def fence_around(text: str) -> str:
    """Returns a fence that nothing in `text` closes: longer than its longest run of backticks."""
    return "`" * max([3, *(len(run) + 1 for run in BACKTICKS.findall(text))])


def _beginning_of(body: str, room: int, counter: TokenCounter) -> str | None:
    """Returns a beginning of `body` that has more than `room` tokens; None if the whole body fits."""
    used = start = 0
    while start < len(body):
        seam = SEAM.search(body, start + PIECE_CHARACTERS)
        end = seam.start() if seam else len(body)
        used += counter.count(body[start:end])
        if used > room:
            return body[:end]
        start = end
    return None


def cut_at(body: str, room: int, counter: TokenCounter) -> int:
    """Returns the place to cut `body`: after a sentence, or after a word if no sentence fits; 0 if no word fits."""
    ends = [match.start() for match in END_OF_SENTENCE.finditer(body)]
    room -= counter.count(ELLIPSIS)
    excerpt = _longest(body, ends, room, counter)
    if counter.count(excerpt) < LEAST_EXCERPT:
        excerpt = _longest(body, [match.start() for match in END_OF_WORD.finditer(body)], room, counter)
    return len(excerpt)


def _longest(body: str, ends: Sequence[int], room: int, counter: TokenCounter) -> str:
    """Returns the longest beginning that ends at one of `ends` and has at most `room` tokens, by bisection."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if counter.count(body[: ends[middle]]) <= room:
            low = middle + 1
        else:
            high = middle
    return body[: ends[low - 1]].rstrip() if low else ""


DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBlock:
    """A stored block: the values that make its bytes again from the memory, and a hash that proves that they are the
    same.

    The text is not stored, so that no copy of a destroyed memory remains.
    """

    memory_id: UUID
    cut: int | None
    start: int = 0
    final_score: float | None
    """The score that the heading shows, even if the memory was judged again since."""
    digest: str
    remark: str = ""
    """The remark that the heading shows."""
    tokens: int
    """Tokens of the block. The number stays right, because a block is only shown again with the same bytes."""


def shown_as(block: Block) -> ShownBlock:
    """Returns the stored form of a block."""
    memory, digest = block.memory, _digest(block.text)
    return ShownBlock(
        memory_id=memory.memory_id,
        cut=block.cut,
        start=block.start,
        final_score=memory.final_score,
        digest=digest,
        remark=block.remark,
        tokens=block.tokens,
    )


def remade(
    shown: Sequence[ShownBlock], live: Mapping[UUID, Memory], passing: Collection[UUID]
) -> tuple[list[Block], Broken | None]:
    """Returns the blocks before the first that cannot be shown again byte for byte, and that one with the reason.

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


class Continued(NamedTuple):
    """A section that continues the blocks of an earlier one."""

    blocks: list[Block]
    kept: int
    """Number of blocks at the front that come from the earlier section."""
    hits: list[Hit]
    """The hits that it shows, best first."""


def continue_blocks(hits: Sequence[Hit], found: Sequence[Block], earlier: Sequence[Block], *, room: int) -> Continued:
    """Returns the section that continues the `earlier` blocks.

    `found` are the blocks that `fit_blocks` makes of the hits; `room` is the budget without the frame. The section
    shows every hit that a section of these hits alone would show: earlier blocks are dropped to make room for them.
    """
    kept = _count_kept(earlier, found, room)
    standing = {block.memory.memory_id for block in earlier[:kept]}
    shown = {block.memory.memory_id for block in found}
    blocks = [*earlier[:kept], *(block for block in found if block.memory.memory_id not in standing)]
    return Continued(blocks, kept, [hit for hit in hits if hit.memory.memory_id in shown])


def _count_kept(earlier: Sequence[Block], found: Sequence[Block], room: int) -> int:
    """Returns the number of earlier blocks that stay: all that fit, up to the last block found again unless all fit.

    Blocks after the last one found again would take room in every later call without a use for this one
    (benchmarks/retrieval.md compares other rules).
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
    text = block_text(as_it_was, item.cut, item.remark, item.start)
    if _digest(text) != item.digest:
        return None
    return Block(memory=as_it_was, cut=item.cut, text=text, tokens=item.tokens, start=item.start, remark=item.remark)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
