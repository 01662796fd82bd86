"""Gathers the best passages of hits into blocks, one for each source. Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby, takewhile
from uuid import UUID

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import FRAME, HEADING, Passage
from app.foundation.text.prose import SENTENCE_END
from app.foundation.text.words import IDEOGRAPHS, Statement, content_words, in_one_line, statement_of
from app.intake.cases.judgement import is_case_note
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.state import conclusion_of, state_of, states_conclusion
from app.recall.retrieval.log import Shown
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.recall import Hit
from app.storage.memories.memory import Memory

_BACKTICKS = re.compile(r"`{3,}")
LEAST_EXCERPT = 32
"""Least tokens of an excerpt: a shorter one says too little to be worth its heading."""
_COUNTED_AT_ONCE = 20_000
"""Most characters of hits that are counted and cut on the event loop, in 1.5 ms, or 15 ms if every word is new; a
thread counts more, so that no other request waits."""
ELLIPSIS = "…"
_END_OF_SENTENCE = re.compile(rf"{SENTENCE_END.pattern}|\n+")
_END_OF_WORD = re.compile(rf"\s+|(?<=[{IDEOGRAPHS}])")

_LEAST_SHARE = 0.3
"""Share of the best passage's evidence below which a passage is not shown. 0.5 costs 0.04 of the needed evidence of the
three report trees, and a lower share brings none (benchmarks/retrieval.md)."""

_LEAST_OF_ANOTHER = 0.6
"""Share of the best passage's own evidence from which a passage of another source makes a block. On eight report trees,
five of them real, a second or third block adds needed evidence in 0.08 of the cases, and nothing known tells in which.
With 0.5 fewer blocks hold evidence (0.47 instead of 0.50 of the three invented trees); with 0.7, 0.52, and 0.02 of the
right answers are lost."""
_LEAST_PASSAGE = 8
"""Tokens of a section that are left unused: hardly any passage is so short."""
_LONGEST_TOKEN = 8
"""Characters of a token, at most, over a whole passage: a longer passage is not counted, as it cannot fit."""
_HEADING_CHARACTERS, _ENDS = 160, 4
"""Characters of a title from which its heading path is shortened in the middle: the first heading and the last three
stay."""
_UNSAID_HEADING = 0.4
"""Share of the words of a heading, at most, that a passage below it does not say, so that the heading is left out."""

Count = Callable[[str], int]
"""Counts the tokens of a text."""


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage that a block shows."""

    hit: Hit
    passage: PassageScore
    cut: int | None = None
    """Number of characters that are shown; None for all."""
    newer: str = ""
    """The source of a later passage on the same thing, where this one may be outdated."""

    @property
    def place(self) -> tuple[bool, int, int]:
        """Its place in the source; the state of a case's issues stands before the case's scores."""
        return "state" not in self.hit.explain, self.hit.memory.ordinal or 0, self.passage.passage.start

    @property
    def text(self) -> str:
        """Its text, cut where it does not fit."""
        passage, body = self.passage.passage, self.hit.memory.body
        if self.cut is None:
            return body[passage.start : passage.end]
        return f"{body[passage.start : passage.start + self.cut]} {ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """The passages of one source that are shown, in the order in which they were chosen."""

    shown: Sequence[ShownPassage] = ()
    tokens: int = 0
    states: Sequence[str] | None = None
    """The states of its issues that its source line shows; None for those that its hits tell now."""

    def longer(self, item: ShownPassage, count: Count) -> "SourceBlock":
        """Returns the block with a passage more, and with its tokens: a line break never joins two."""
        block = SourceBlock([*self.shown, item])
        return replace(block, tokens=sum(map(count, block._fence_lines())))

    def markdown(self) -> str:
        """Returns the block in its fence."""
        return "\n".join(self._fence_lines())

    def shown_states(self) -> tuple[str, ...]:
        """Returns the states of the issues that its passages or their headings state."""
        return self._states_in(list(self._lines()))

    def _states_in(self, lines: Sequence[str]) -> tuple[str, ...]:
        if self.states is not None:
            return tuple(self.states)
        # A heading is left out where the source line or the passage says it, and states an issue all the same.
        hits = {item.hit.memory.memory_id: item.hit for item in self.shown if item.hit.issues}
        return tuple(filter(None, dict.fromkeys(hit.remark("\n".join([hit.title, *lines])) for hit in hits.values())))

    def _fence_lines(self) -> list[str]:
        lines = list(self._lines())
        lines = [_source_line(self.shown[0].hit.memory, self._states_in(lines), lines), "", *lines]
        fence = fence_around("\n".join(lines))
        return [fence, *lines, fence]

    def _lines(self) -> Iterator[str]:
        """Yields headings, introductions and passages in the source's order, and a mark where some are left out."""
        heading, head = "", ""
        end: tuple[int, int] | None = None
        for _, parts in groupby(sorted(self.shown, key=lambda item: item.place), key=lambda item: item.hit):
            for item in parts:
                memory, passage = item.hit.memory, item.passage.passage
                named, before = heading_of(item.hit), heading
                heading = named
                if named != before and not _says_heading(item.text, named):
                    yield _below(named, before)
                elif end is not None and not _follow(end, (memory.ordinal or 0, passage.start), memory.body):
                    yield ELLIPSIS
                if (introduced := passage.head_of(memory.body).rstrip()) and introduced != head:
                    head = introduced
                    yield introduced
                if item.newer:
                    yield f"(older; see {in_one_line(item.newer)})"
                yield item.text
                end = memory.ordinal or 0, passage.end


def _follow(end: tuple[int, int], start: tuple[int, int], body: str) -> bool:
    """Returns True if a passage begins where the one before it ends."""
    return end[0] == start[0] and not body[end[1] : start[1]].strip()


@lru_cache(maxsize=2_048)
def _says_heading(text: str, heading: str) -> bool:
    """Returns True if a passage says most of what its heading says."""
    words = content_words(heading)
    return len(words - content_words(text)) <= _UNSAID_HEADING * len(words)


def heading_of(hit: Hit) -> str:
    """Returns the headings under which a memory stands in its source; empty where the source line says it."""
    memory = hit.memory
    if not memory.source_name or is_case_note(memory.source_uri):
        return ""
    if memory.kind != "chunk":
        return in_one_line(memory.title)
    _, *below = in_one_line(memory.title).split(HEADING_SEPARATOR)
    if len(below) > _ENDS and len(memory.title) > _HEADING_CHARACTERS:
        below[1 : 1 - _ENDS] = [ELLIPSIS]
    return f"› {HEADING_SEPARATOR.join(below)}" if below else ""


def _below(heading: str, before: str) -> str:
    """Returns a heading path without the headings that the one before it has in common with it."""
    if not heading.startswith("› "):
        return heading
    parts = heading.split(HEADING_SEPARATOR)
    common = takewhile(lambda pair: pair[0] == pair[1], zip(parts[:-1], before.split(HEADING_SEPARATOR), strict=False))
    return f"› {HEADING_SEPARATOR.join(parts[len(list(common)) :]).removeprefix('› ')}"


def gather_blocks(hits: Sequence[Hit], *, k: int, budget: int, counter: TokenCounter) -> list[SourceBlock]:
    """Returns at most `k` blocks of at most `budget` tokens, by their best passages.

    Passages are chosen by their scores. One that does not fit is left out, and so is one that says nothing that
    another does not say.
    """
    ranked = [(item, hit) for hit in hits for item in hit.passages]
    ranked.sort(key=lambda item: -item[0].score)
    least = _LEAST_SHARE * max((item.passage.evidence for item, _ in ranked), default=0.0)
    own = _LEAST_OF_ANOTHER * max((item.passage.own for item, _ in ranked), default=0.0)
    made = _Blocks(budget - frame_tokens(counter), k, counter, own)
    wanted = [
        ShownPassage(hit, item.passage, newer=item.newer) for item, hit in ranked if item.passage.evidence >= least
    ]
    for item in wanted:
        if made.is_full:
            break
        made.add(item)
    return list(made.blocks.values())


_statement_of = lru_cache(maxsize=2_048)(statement_of)
"""It remembers the passages of hits that come again and again."""


class _Blocks:
    """Blocks that grow passage by passage, until `room` tokens are taken."""

    def __init__(self, room: int, k: int, counter: TokenCounter, least: float) -> None:
        self.room, self._k, self._counter, self._least = room, k, counter, least
        self.blocks: dict[UUID, SourceBlock] = {}
        self._count = cache(counter.count)
        self._said: list[Statement] = []

    @property
    def is_full(self) -> bool:
        """True if hardly any passage fits."""
        return bool(self.blocks) and self.room < _LEAST_PASSAGE

    def add(self, item: ShownPassage) -> None:
        """Adds a passage that fits and says something new."""
        memory = item.hit.memory
        key = memory.source_id or memory.memory_id
        before = self.blocks.get(key, SourceBlock())
        earns_a_block = not self.blocks or (len(self.blocks) < self._k and item.passage.own >= self._least)
        if not before.shown and not earns_a_block:
            return
        # The comparison and the whole block take much longer than the passage's own tokens.
        if self.blocks and not _may_fit(item.text, self.room, self._count):
            return
        statement = _statement_of(item.passage.passage.of(memory.body))
        if any(statement.adds_nothing(other) for other in self._said):
            return
        block = before.longer(item, self._count)
        if block.tokens > self.room and not self.blocks:
            item = _cut(item, self.room, self._counter)
            block = before.longer(item, self._count)
        cost = block.tokens - before.tokens
        if cost > self.room or item.cut == 0:
            return
        self.blocks[key] = block
        self.room -= cost
        self._said.append(statement)


def _may_fit(text: str, room: int, count: Count) -> bool:
    """Returns False for a text that has more tokens than there is room for; a long one is not counted.

    A passage between two others takes the place of the mark between them.
    """
    return len(text) <= _LONGEST_TOKEN * room and count(text) <= room + count(ELLIPSIS)


def _cut(item: ShownPassage, room: int, counter: TokenCounter) -> ShownPassage:
    """Returns the beginning of a passage that fits; a `cut` of 0 if there is no useful one."""
    start, end, _ = item.passage.passage
    body = item.hit.memory.body[start : min(end, start + _LONGEST_TOKEN * room)]
    shown = replace(item, cut=len(body))
    around = counter.count(SourceBlock([shown]).markdown()) - counter.count(shown.text)
    cut = cut_at(body, room - around, counter) if room - around >= LEAST_EXCERPT else 0
    return replace(item, cut=cut)


def whole_blocks(hits: Sequence[Hit], *, budget: int, counter: TokenCounter) -> list[SourceBlock]:
    """Returns a block of each memory with its whole text, or with its beginning where the budget ends."""
    blocks: list[SourceBlock] = []
    room = budget - frame_tokens(counter)
    for hit in hits:
        item = whole_text(hit)
        if not _may_fit(item.text, room, counter.count):
            item = _cut(item, room, counter)
        block = SourceBlock().longer(item, counter.count)
        if block.tokens > room:
            block = SourceBlock().longer(_cut(item, room, counter), counter.count)
        if block.tokens <= room and block.shown[0].cut != 0:
            blocks.append(block)
            room -= block.tokens
    return blocks


def whole_text(hit: Hit) -> ShownPassage:
    """Returns the whole text of a memory as a passage."""
    body = hit.memory.body
    return ShownPassage(
        hit, PassageScore(Passage(len(body) - len(body.lstrip("\n")), len(body.rstrip())), 0.0, 0.0, 0.0)
    )


def least_budget(hits: Sequence[Hit], counter: TokenCounter) -> int:
    """Returns the tokens of the smallest section that shows the best passage whole, or the beginning of it."""
    _, hit, passage = max(
        ((item.score, hit, item.passage) for hit in hits for item in hit.passages), key=lambda item: item[0]
    )
    text = hit.memory.body[passage.passage.start : passage.passage.end]
    whole, tokens = counter.count(SourceBlock([ShownPassage(hit, passage)]).markdown()), counter.count(text)
    return frame_tokens(counter) + whole - tokens + min(LEAST_EXCERPT, tokens)


def memories_of(blocks: Sequence[SourceBlock]) -> tuple[UUID, ...]:
    """Returns the ids of the memories that these blocks show, each once."""
    return tuple(dict.fromkeys(item.hit.memory.memory_id for block in blocks for item in block.shown))


def shown_by(blocks: Sequence[SourceBlock]) -> Shown:
    """Returns the characters of each memory that these blocks show."""
    found: dict[UUID, list[int]] = {}
    for item in sorted((item for block in blocks for item in block.shown), key=lambda item: item.place):
        (start, end, head), body = item.passage.passage, item.hit.memory.body
        until = end if item.cut is None else start + item.cut
        places = found.setdefault(item.hit.memory.memory_id, [len(body)])
        for first, last in (*((head,) if head else ()), (start, until)):
            if len(places) > 1 and first >= places[-2] and not body[places[-1] : first].strip():
                places[-1] = max(places[-1], last)
            else:
                places += (first, last)
    return found


def is_long(hits: Sequence[Hit]) -> bool:
    """Returns True if fitting these hits takes so long that a thread does it."""
    return sum(len(hit.memory.body) for hit in hits) > _COUNTED_AT_ONCE


def frame_tokens(counter: TokenCounter) -> int:
    """Returns the tokens of the lines above the blocks."""
    return counter.count(HEADING) + counter.count(FRAME)


def _source_line(memory: Memory, states: Sequence[str], lines: Sequence[str]) -> str:
    """Returns the name of a memory's source, with its date, version, own state, score and the states of its issues.

    What the name says is left out. Without a state, the verdict is shown, or what the file concludes, unless the
    block's `lines` say it.
    """
    name = in_one_line(memory.source_name) or in_one_line(memory.title) or memory.kind.capitalize()
    date = "" if memory.occurred_at is None else memory.occurred_at.date().isoformat()
    version = in_one_line(str(memory.metadata.get("version") or ""))
    score = None if memory.final_score is None else f"{memory.final_score:.1f}/10"
    verdict = in_one_line(str(memory.metadata.get("verdict") or ""))
    state = in_one_line(state_of(memory))
    concluded = "" if state or verdict else in_one_line(conclusion_of(memory))
    if concluded and states_conclusion("\n".join(lines), concluded):
        concluded = ""
    facts = [*(fact for fact in (date, version) if fact not in name), state, score, *(states or [verdict or concluded])]
    return " · ".join([f"# {name}", *(fact for fact in facts if fact)])


def heading(memory: Memory, remark: str = "") -> str:
    """Returns a memory's title, source, date, score and remark in one line.

    The line is inside the fence too, because the memory's title is not trusted.
    """
    date = None if memory.occurred_at is None else memory.occurred_at.date().isoformat()
    score = None if memory.final_score is None else f"score {memory.final_score:.1f}/10"
    facts = [in_one_line(part) for part in (memory.source_name, date, score, remark) if part]
    title = in_one_line(memory.title) or memory.kind.capitalize()
    return f"# {title}" + (f" ({' · '.join(facts)})" if facts else "")


def fence_text(top: str, body: str) -> str:
    """Returns a heading and a text in a fence."""
    fence = fence_around(f"{top}\n{body}")
    return f"{fence}\n{top}\n\n{body}\n{fence}"


def fence_around(text: str) -> str:
    """Returns a fence that nothing in `text` closes: longer than its longest run of backticks."""
    return "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(text))])


def cut_at(body: str, room: int, counter: TokenCounter) -> int:
    """Returns the place to cut `body`: after a sentence, or after a word if no sentence fits; 0 if no word fits."""
    ends = [match.start() for match in _END_OF_SENTENCE.finditer(body)]
    room -= counter.count(ELLIPSIS)
    excerpt = _longest(body, ends, room, counter)
    if counter.count(excerpt) < LEAST_EXCERPT:
        excerpt = _longest(body, [match.start() for match in _END_OF_WORD.finditer(body)], room, counter)
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


def section_of(blocks: Sequence[SourceBlock]) -> str:
    """Returns the section of these blocks; empty without any."""
    return "\n\n".join([HEADING, FRAME, *(block.markdown() for block in blocks)]) + "\n" if blocks else ""
