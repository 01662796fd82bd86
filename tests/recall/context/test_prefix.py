"""The stable prefix: what was shown keeps its bytes, what was found is shown, and the budget holds."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.pieces import HEADING
from app.recall.context import section as prefix
from app.recall.context.section import Block, fit_blocks, frame_tokens, markdown_of, remade, section, shown_as
from app.recall.retrieval.recall import Hit
from tests.recall.context.test_section import Words, hit

POOL = [
    hit(
        " ".join(f"Sentence {number} of memory {name} says so." for number in range(1 + name % 7 * 3)), title=f"m{name}"
    )
    for name in range(12)
]
QUERIES = st.lists(st.permutations(POOL).flatmap(lambda hits: st.integers(0, 5).map(lambda k: hits[:k])), max_size=8)
BUDGETS = st.integers(1, 600)


def continued(
    hits: list[Hit], earlier: list[Block], *, budget: int, counter: TokenCounter
) -> tuple[list[Block], int, list[Hit]]:
    """One call, as the verb makes it."""
    found = fit_blocks(hits, budget=budget, counter=counter)
    return prefix.continue_blocks(hits, found, earlier, room=budget - frame_tokens(counter))


def calls(queries: list[list[Hit]], budget: int, counter: TokenCounter | None = None) -> list[tuple[list[Block], int]]:
    """The blocks of consecutive calls, and how many of each stand from the call before."""
    made: list[tuple[list[Block], int]] = []
    for hits in queries:
        earlier = made[-1][0] if made else []
        blocks, kept, _ = continued(hits, earlier, budget=budget, counter=counter or Words())
        made.append((blocks, kept))
    return made


def ids(blocks: list[Block]) -> list[UUID]:
    return [block.memory.memory_id for block in blocks]


@given(QUERIES, BUDGETS)
def test_what_stands_is_a_prefix_byte_for_byte(queries: list[list[Hit]], budget: int) -> None:
    made = calls(queries, budget)
    for (before, _), (blocks, kept) in pairwise(made):
        shared = markdown_of(before[:kept]).rstrip("\n")
        assert markdown_of(before).startswith(shared)
        assert markdown_of(blocks).startswith(shared)


@given(QUERIES, BUDGETS)
def test_every_hit_is_shown_that_a_section_of_its_own_would_show(queries: list[list[Hit]], budget: int) -> None:
    earlier: list[Block] = []
    for hits in queries:
        _, _, alone = section(hits, budget=budget, counter=Words())
        earlier, _, shown = continued(hits, earlier, budget=budget, counter=Words())
        assert shown == alone
        assert {item.memory.memory_id for item in alone} <= set(ids(earlier))


@given(QUERIES, BUDGETS)
def test_the_budget_holds_and_nothing_is_shown_twice(queries: list[list[Hit]], budget: int) -> None:
    for blocks, _ in calls(queries, budget):
        assert Words().count(markdown_of(blocks)) <= budget
        assert len(set(ids(blocks))) == len(blocks)


@given(QUERIES, BUDGETS)
def test_the_same_calls_give_the_same_bytes(queries: list[list[Hit]], budget: int) -> None:
    assert [markdown_of(blocks) for blocks, _ in calls(queries, budget)] == [
        markdown_of(blocks) for blocks, _ in calls(queries, budget)
    ]


@given(QUERIES)
def test_with_room_nothing_that_was_shown_goes(queries: list[list[Hit]]) -> None:
    made = calls(queries, 10_000)
    for (before, _), (blocks, kept) in pairwise(made):
        assert (kept, ids(blocks)[:kept]) == (len(before), ids(before))
        assert markdown_of(blocks).startswith(markdown_of(before).rstrip("\n"))


@given(QUERIES, BUDGETS)
def test_without_room_the_prefix_ends_with_what_was_found_again(queries: list[list[Hit]], budget: int) -> None:
    made = calls(queries, budget)
    for hits, (before, _), (blocks, kept) in zip(queries[1:], made, made[1:], strict=False):
        if 0 < kept < len(before):
            assert ids(blocks)[kept - 1] in {item.memory.memory_id for item in hits}


@given(st.lists(st.text(max_size=80), min_size=1, max_size=6), st.integers(60, 400))
def test_blocks_add_up_as_the_model_counts_them(counter: TokenCounter, bodies: list[str], budget: int) -> None:
    hits = [hit(f"x{body}", title=body) for body in bodies]
    blocks, _, _ = continued(hits, [], budget=budget, counter=counter)
    frame = markdown_of(blocks).split("\n\n```")[0]
    assert counter.count(markdown_of(blocks)) == counter.count(frame) + sum(block.tokens for block in blocks)


def again(blocks: list[Block], **changes: Any) -> tuple[list[Block], str | None]:
    """The blocks made again from what is remembered, after the second memory changed."""
    live = {block.memory.memory_id: block.memory for block in blocks}
    second = blocks[1].memory
    live[second.memory_id] = replace(second, **changes)
    made, broken = remade([shown_as(block) for block in blocks], live, live)
    assert broken is None or broken.memory_id == second.memory_id
    return made, None if broken is None else broken.reason


@pytest.fixture
def three() -> list[Block]:
    """Three blocks, the last of which is an excerpt."""
    long = " ".join(f"Sentence number {number} says what it says." for number in range(40))
    first, second = hit("One.", final_score=8.0), hit("Two.", title="second", final_score=6.5)
    blocks, _, _ = continued([first, second, hit(long)], [], budget=120, counter=Words())
    assert [block.cut is None for block in blocks] == [True, True, False]
    return blocks


def test_a_block_is_made_again_byte_for_byte_whatever_was_judged_since(three: list[Block]) -> None:
    made, broken = again(three, final_score=2.0, quality=-3)
    assert (markdown_of(made), broken) == (markdown_of(three), None)
    assert "score 6.5/10" in markdown_of(made)


@pytest.mark.parametrize(
    "changes",
    [{"body": "Two, corrected."}, {"title": "third"}, {"occurred_at": datetime(2026, 1, 1, tzinfo=UTC)}],
    ids=lambda changes: next(iter(changes)),
)
def test_an_edited_memory_ends_the_prefix(three: list[Block], changes: dict[str, Any]) -> None:
    made, broken = again(three, **changes)
    assert (ids(made), broken) == (ids(three)[:1], "edited")


def test_a_withdrawn_or_filtered_memory_ends_the_prefix(three: list[Block]) -> None:
    live = {block.memory.memory_id: block.memory for block in three}
    first, second, third = ids(three)
    remembered = [shown_as(block) for block in three]
    made, broken = remade(remembered, live, {first, third})
    assert (ids(made), broken and broken.reason, broken and broken.memory_id) == ([first], "filtered", second)
    del live[first]
    made, broken = remade(remembered, live, {second, third})
    assert (made, broken and broken.reason, broken and broken.memory_id) == ([], "withdrawn", first)


def test_the_frame_stands_first() -> None:
    blocks, _, _ = continued(POOL[:2], [], budget=500, counter=Words())
    assert markdown_of(blocks).startswith(f"{HEADING}\n\n")
    assert markdown_of([]) == ""
