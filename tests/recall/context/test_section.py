"""The section that an agent reads: data in fences, within its budget."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import FRAME, HEADING
from app.recall.context.blocks import memories_of, section_of, whole_blocks
from app.recall.retrieval.recall import Hit
from app.storage.memories.memory import Memory


class Words:
    """Counts words: the section only adds what it is told."""

    def count(self, text: str) -> int:
        return len(text.split())

    def count_many(self, texts: Any) -> list[int]:
        return [self.count(text) for text in texts]


def hit(body: str, **given: Any) -> Hit:
    empty: dict[str, Any] = dict.fromkeys(Memory.__slots__)
    fixed = {"memory_id": uuid4(), "kind": "note", "title": "", "body": body, "tags": (), "metadata": {}, "quality": 0}
    return Hit(memory=Memory(**{**empty, **fixed, **given}), score=1.0, explain={})


def section(hits: list[Hit], *, budget: int, counter: Any) -> tuple[str, int, list[Hit]]:
    """Returns the section of whole memories, its tokens, and the hits that it shows."""
    blocks = whole_blocks(hits, budget=budget, counter=counter)
    markdown, shown = section_of(blocks), memories_of(blocks)
    return markdown, counter.count(markdown), [hit for hit in hits if hit.memory.memory_id in shown]


def outside_fences(markdown: str) -> str:
    """What a reader of Markdown sees outside code blocks."""
    kept, fence = [], ""
    for line in markdown.splitlines():
        mark = line[: len(line) - len(line.lstrip("`"))]
        if not fence and len(mark) >= 3:
            fence = mark
        elif fence and line == fence:
            fence = ""
        elif not fence:
            kept.append(line)
    return "\n".join(kept)


def test_source_date_and_score_stand_in_one_line_above_the_title() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    one = hit("The text.", title="A\ntitle", source_title="r.md", occurred_at=moment, final_score=8.25)
    markdown, _, _ = section([one], budget=100, counter=Words())
    assert markdown == f"{HEADING}\n\n{FRAME}\n\n```\n# r.md · 2026-03-01 · 8.2/10\n\nA title\nThe text.\n```\n"


@given(st.text(alphabet="`~a\n #>", max_size=60), st.text(alphabet="`~a\n #>", max_size=60), st.text(max_size=40))
def test_nothing_that_others_wrote_gets_out_of_its_fence(body: str, title: str, source: str) -> None:
    hits = [hit(f"x{body}", title=title, source_title=source), hit("second")]
    markdown, _, shown = section(hits, budget=1_000, counter=Words())
    assert len(shown) == 2
    assert outside_fences(markdown).split("\n") == [HEADING, "", FRAME, "", ""]


def test_what_does_not_fit_is_cut_after_a_sentence_or_left_out() -> None:
    long = " ".join(f"Sentence number {number} says what it says." for number in range(40))
    markdown, tokens, shown = section([hit(long), hit(long)], budget=120, counter=Words())
    assert (tokens <= 120, len(shown)) == (True, 1)
    assert markdown.rstrip("`\n").endswith("says. …")
    assert section([hit(long)], budget=20, counter=Words()) == ("", 0, [])


@pytest.mark.parametrize(
    ("sentence", "ends"), [("内存每小时增长三十兆，因为缓存没有清空。", "。"), ("内存每小时增长三十兆", "")]
)
def test_a_text_without_blanks_is_cut_too(counter: TokenCounter, sentence: str, ends: str) -> None:
    markdown, tokens, shown = section([hit(sentence * 40)], budget=150, counter=counter)
    assert (tokens <= 150, len(shown)) == (True, 1)
    assert markdown.rstrip("`\n").endswith(f"{ends} …")


class Counted(Words):
    """Counts, and keeps account of how much."""

    def __init__(self) -> None:
        self.characters = 0

    def count(self, text: str) -> int:
        self.characters += len(text)
        return super().count(text)


WORDS = st.sampled_from(
    ["a", "word", "sentence.", "end.\n\n", "\n", "  ", "long" * 30, "`", "次の。", "\x1c", "\u2003"]
)
LONG = st.lists(WORDS, max_size=120).map(lambda words: f"x {' '.join(words)}")


@given(st.lists(LONG, min_size=1, max_size=3), st.integers(1, 400))
def test_the_budget_holds(counter: TokenCounter, bodies: list[str], budget: int) -> None:
    _, tokens, _ = section([hit(body) for body in bodies], budget=budget, counter=counter)
    assert tokens <= budget


def test_no_more_is_counted_than_may_fit() -> None:
    hits = [hit("A sentence of six words here. " * 6_000) for _ in range(20)]
    counter = Counted()
    _, tokens, shown = section(hits, budget=500, counter=counter)
    assert (len(shown), tokens <= 500) == (1, True)
    assert counter.characters < len(hits[0].memory.body)
    nothing = Counted()
    assert section(hits, budget=9, counter=nothing)[2] == []
    assert nothing.characters < 200 * len(hits)
