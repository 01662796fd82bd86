"""The stable prefix: what was shown keeps its bytes, what was found is shown, and the budget holds."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import HEADING
from app.recall.context.blocks import SourceBlock, frame_tokens, gather_blocks, memories_of, section_of
from app.recall.context.history import continue_blocks, make_again, stored_form
from app.recall.retrieval.recall import Hit, IssueState
from tests.recall.context.test_blocks import hit
from tests.recall.context.test_section import Words

SOURCES = [uuid4() for _ in range(5)]
POOL = [
    hit(
        "\n\n".join(
            " ".join(f"Sentence {number} of part {part} of memory {name} says so." for number in range(1 + name % 3))
            for part in range(1 + name % 3)
        ),
        *[0.9 - 0.1 * part for part in range(1 + name % 3)],
        source=SOURCES[name % 5],
        ordinal=name,
        title=f"m{name}",
    )
    for name in range(12)
]
QUERIES = st.lists(st.permutations(POOL).flatmap(lambda hits: st.integers(0, 5).map(lambda k: hits[:k])), max_size=8)
BUDGETS = st.integers(1, 400)
K = 4


def gathered(hits: list[Hit], *, budget: int, counter: TokenCounter) -> list[SourceBlock]:
    """The blocks of a section of its own."""
    return gather_blocks(hits, k=K, budget=budget, counter=counter)


def continued(
    hits: list[Hit], earlier: list[SourceBlock], *, budget: int, counter: TokenCounter
) -> tuple[list[SourceBlock], int]:
    """One call, as the verb makes it."""
    found = gathered(hits, budget=budget, counter=counter)
    return continue_blocks(found, earlier, room=budget - frame_tokens(counter), counter=counter)


def calls(
    queries: list[list[Hit]], budget: int, counter: TokenCounter | None = None
) -> list[tuple[list[SourceBlock], int]]:
    """The blocks of consecutive calls, and how many of each stand from the call before."""
    made: list[tuple[list[SourceBlock], int]] = []
    for hits in queries:
        earlier = made[-1][0] if made else []
        made.append(continued(hits, earlier, budget=budget, counter=counter or Words()))
    return made


def passages(blocks: list[SourceBlock]) -> list[tuple[UUID, int]]:
    return [(item.hit.memory.memory_id, item.passage.passage.start) for block in blocks for item in block.shown]


@given(QUERIES, BUDGETS)
def test_what_stands_is_a_prefix_byte_for_byte(queries: list[list[Hit]], budget: int) -> None:
    made = calls(queries, budget)
    for (before, _), (blocks, kept) in pairwise(made):
        shared = section_of(before[:kept]).rstrip("\n")
        assert section_of(before).startswith(shared)
        assert section_of(blocks).startswith(shared)


@given(QUERIES, BUDGETS)
def test_every_passage_is_shown_that_a_section_of_its_own_would_show(queries: list[list[Hit]], budget: int) -> None:
    earlier: list[SourceBlock] = []
    for hits in queries:
        alone = gathered(hits, budget=budget, counter=Words())
        earlier, _ = continued(hits, earlier, budget=budget, counter=Words())
        assert set(passages(alone)) <= set(passages(earlier))


@given(QUERIES, BUDGETS)
def test_the_budget_holds_and_nothing_is_shown_twice(queries: list[list[Hit]], budget: int) -> None:
    for blocks, _ in calls(queries, budget):
        assert Words().count(section_of(blocks)) <= budget
        assert len(set(passages(blocks))) == len(passages(blocks))


@given(QUERIES, BUDGETS)
def test_the_same_calls_give_the_same_bytes(queries: list[list[Hit]], budget: int) -> None:
    assert [section_of(blocks) for blocks, _ in calls(queries, budget)] == [
        section_of(blocks) for blocks, _ in calls(queries, budget)
    ]


@given(QUERIES)
def test_with_room_nothing_that_was_shown_goes(queries: list[list[Hit]]) -> None:
    made = calls(queries, 10_000)
    for (before, _), (blocks, kept) in pairwise(made):
        assert (kept, passages(blocks)[: len(passages(before))]) == (len(before), passages(before))
        assert section_of(blocks).startswith(section_of(before).rstrip("\n"))


@given(QUERIES, BUDGETS)
def test_without_room_the_prefix_ends_with_what_was_found_again(queries: list[list[Hit]], budget: int) -> None:
    made = calls(queries, budget)
    for hits, (before, _), (blocks, kept) in zip(queries[1:], made, made[1:], strict=False):
        if 0 < kept < len(before):
            wanted = passages(gathered(hits, budget=budget, counter=Words()))
            assert set(passages(blocks[kept - 1 : kept])) & set(wanted)


@given(st.lists(st.text(max_size=80), min_size=1, max_size=6), st.integers(60, 400))
def test_blocks_add_up_as_the_model_counts_them(counter: TokenCounter, bodies: list[str], budget: int) -> None:
    hits = [hit(f"x{' '.join(body.split())}", 0.9, title=body, source=uuid4()) for body in bodies]
    blocks, _ = continued(hits, [], budget=budget, counter=counter)
    frame = section_of(blocks).split("\n\n```")[0]
    assert counter.count(section_of(blocks)) == counter.count(frame) + sum(block.tokens for block in blocks)


def again(blocks: list[SourceBlock], **changes: Any) -> tuple[list[SourceBlock], str | None]:
    """The blocks made again from what is stored, after the second memory changed."""
    live = {item.hit.memory.memory_id: item.hit.memory for block in blocks for item in block.shown}
    second = blocks[1].shown[0].hit.memory
    live[second.memory_id] = replace(second, **changes)
    made, broken = make_again([stored_form(block) for block in blocks], live, live)
    assert broken is None or broken.memory_id == second.memory_id
    return made, None if broken is None else broken.reason


@pytest.fixture
def three() -> list[SourceBlock]:
    """Three blocks: the second tells the state of an issue, the third has two passages of a list with its lead-in."""
    resolved = IssueState(title="No actors", status="resolved", state="resolved in v6", words=("no actors",))
    items = "\n".join(f"- Item {number}: {'something is said about it and ' * 6}more." for number in range(3))
    second = hit("There are no actors.", 0.8, source=SOURCES[1], title="second", final_score=6.5)
    hits = [
        hit("One.", 0.9, source=SOURCES[0], final_score=8.0),
        replace(second, issues=(resolved,), stated_issues=1),
        hit(f"What was seen:\n\n{items}", 0.7, 0.1, 0.7, source=SOURCES[2]),
    ]
    blocks, _ = continued(hits, [], budget=400, counter=Words())
    assert [len(block.shown) for block in blocks] == [1, 1, 2]
    assert "6.5/10 · resolved in v6" in section_of(blocks)
    assert "What was seen:" in section_of(blocks)
    return blocks


def test_a_block_is_made_again_byte_for_byte_whatever_was_judged_since(three: list[SourceBlock]) -> None:
    made, broken = again(three, final_score=2.0, quality=-3)
    assert (section_of(made), broken) == (section_of(three), None)
    assert "6.5/10" in section_of(made)


def test_a_cut_passage_is_made_again() -> None:
    long = hit(" ".join(f"Sentence number {number} says what it says" for number in range(40)), 0.9, source=SOURCES[0])
    blocks, _ = continued([long], [], budget=80, counter=Words())
    assert blocks[0].shown[0].cut
    made, broken = make_again([stored_form(block) for block in blocks], *[{long.memory.memory_id: long.memory}] * 2)
    assert (section_of(made), broken) == (section_of(blocks), None)


@pytest.mark.parametrize(
    "changes",
    [{"body": "There are actors."}, {"title": "third"}, {"occurred_at": datetime(2026, 1, 1, tzinfo=UTC)}],
    ids=lambda changes: next(iter(changes)),
)
def test_an_edited_memory_ends_the_prefix(three: list[SourceBlock], changes: dict[str, Any]) -> None:
    made, broken = again(three, **changes)
    assert (passages(made), broken) == (passages(three[:1]), "edited")


def test_a_withdrawn_or_filtered_memory_ends_the_prefix(three: list[SourceBlock]) -> None:
    live = {item.hit.memory.memory_id: item.hit.memory for block in three for item in block.shown}
    first, second, third = memories_of(three)
    stored = [stored_form(block) for block in three]
    made, broken = make_again(stored, live, {first, third})
    assert (memories_of(made), broken and broken.reason, broken and broken.memory_id) == ((first,), "filtered", second)
    del live[first]
    made, broken = make_again(stored, live, {second, third})
    assert (made, broken and broken.reason, broken and broken.memory_id) == ([], "withdrawn", first)


def test_the_frame_stands_first() -> None:
    blocks, _ = continued(POOL[:2], [], budget=500, counter=Words())
    assert section_of(blocks).startswith(f"{HEADING}\n\n")
    assert section_of([]) == ""
