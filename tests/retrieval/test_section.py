"""The section that an agent reads: data in fences, within its budget."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from app.memories.memory import Memory
from app.memories.pieces import FRAME, HEADING
from app.retrieval.recall import Hit
from app.retrieval.section import section


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


def test_title_source_date_and_score_stand_in_one_line() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    one = hit("The text.", title="A\ntitle", source_title="r.md", occurred_at=moment, final_score=8.25)
    markdown, _, _ = section([one], budget=100, counter=Words())
    assert (
        markdown == f"{HEADING}\n\n{FRAME}\n\n```\n### A title (r.md · 2026-03-01 · score 8.2/10)\n\nThe text.\n```\n"
    )


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
