"""What sections of memories have in common: their frame, source lines, fences and cuts. Pure."""

import re
from collections.abc import Sequence

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.pieces import FRAME, HEADING
from app.foundation.text.sentences import SENTENCE_END
from app.foundation.text.words import IDEOGRAPHS, in_one_line
from app.recall.retrieval.recall import Hit
from app.storage.memories.memory import Memory

BACKTICKS = re.compile(r"`{3,}")
LEAST_EXCERPT = 32
"""Least tokens of an excerpt: a shorter one says too little to be worth its heading."""
COUNTED_AT_ONCE = 20_000
"""Most characters of hits that are counted and cut on the event loop, in 1.5 ms, or 15 ms if every word is new; a
thread counts more, so that no other request waits."""
TITLE_END = " › "
"""The mark after a file's title in the title of its chunk (`app.intake.reports.chunk`)."""
ELLIPSIS = "…"
END_OF_SENTENCE = re.compile(rf"{SENTENCE_END.pattern}|\n+")
END_OF_WORD = re.compile(rf"\s+|(?<=[{IDEOGRAPHS}])")


def is_long(hits: Sequence[Hit]) -> bool:
    """Returns True if fitting these hits takes so long that a thread does it."""
    return sum(len(hit.memory.body) for hit in hits) > COUNTED_AT_ONCE


def frame_tokens(counter: TokenCounter) -> int:
    """Returns the tokens of the lines above the blocks."""
    return counter.count(HEADING) + counter.count(FRAME)


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


def fence_text(top: str, body: str) -> str:
    """Returns a heading and a text in a fence."""
    fence = fence_around(f"{top}\n{body}")
    return f"{fence}\n{top}\n\n{body}\n{fence}"


def fence_around(text: str) -> str:
    """Returns a fence that nothing in `text` closes: longer than its longest run of backticks."""
    return "`" * max([3, *(len(run) + 1 for run in BACKTICKS.findall(text))])


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
