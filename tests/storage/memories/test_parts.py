"""Which memories of a changed file stay."""

from dataclasses import replace
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from app.storage.memories.memory import MemoryRow, NewMemory
from app.storage.memories.sources import KnownPart, match_parts

SOURCE = uuid4()


def row(body: str, ordinal: int) -> MemoryRow:
    memory = NewMemory(kind="chunk", title="t", body=body, ordinal=ordinal)
    return MemoryRow(memory=memory, source_id=SOURCE, language="english", tokens=1)


def known(body: str, ordinal: int, *, live: bool = True) -> KnownPart:
    content_hash = row(body, 0).content_hash
    return KnownPart(source_id=SOURCE, memory_id=uuid4(), content_hash=content_hash, ordinal=ordinal, live=live)


def test_unchanged_text_keeps_its_memory_wherever_it_moved() -> None:
    first, second = known("alpha", 0), known("beta", 1)
    plan = match_parts([row("new", 0), row("alpha", 1), row("beta", 2)], [first, second])
    assert [(chunk.memory_id, given.memory.ordinal) for chunk, given in plan.kept] == [
        (first.memory_id, 1),
        (second.memory_id, 2),
    ]
    assert [given.memory.body for given in plan.new] == ["new"]
    assert plan.retired == ()


def test_text_that_is_gone_retires() -> None:
    gone = known("alpha", 0)
    plan = match_parts([row("beta", 0)], [gone])
    assert plan.retired == (gone.memory_id,)


def test_text_that_comes_back_is_the_memory_it_was() -> None:
    retired = known("alpha", 3, live=False)
    plan = match_parts([row("alpha", 0)], [retired])
    assert [chunk.memory_id for chunk, _ in plan.kept] == [retired.memory_id]
    assert plan.retired == ()


BODIES = st.lists(st.sampled_from("abc"), max_size=8)


@given(BODIES, BODIES, st.data())
def test_every_chunk_has_one_memory_and_no_ordinal_is_taken_twice(
    before: list[str], after: list[str], data: st.DataObject
) -> None:
    live = [known(body, place) for place, body in enumerate(before)]
    retired = [known(body, data.draw(st.integers(0, 8)), live=False) for body in data.draw(BODIES)]
    chunks = [*live, *retired]
    plan = match_parts([row(body, place) for place, body in enumerate(after)], chunks)
    assert len(plan.kept) + len(plan.new) == len(after)
    stay = {chunk.memory_id for chunk, _ in plan.kept}
    assert len(stay) == len(plan.kept)
    assert set(plan.retired) == {chunk.memory_id for chunk in chunks if chunk.live} - stay
    places = [given_row.memory.ordinal for _, given_row in plan.kept]
    assert len(set(places)) == len(places)


def test_files_of_one_text_are_matched_each_with_its_own_source() -> None:
    mine, other = known("alpha", 0), replace(known("alpha", 0), source_id=uuid4())
    plan = match_parts([row("alpha", 0), replace(row("alpha", 0), source_id=other.source_id)], [other, mine])
    assert [chunk.memory_id for chunk, _ in plan.kept] == [mine.memory_id, other.memory_id]
    assert (plan.new, plan.retired) == ((), ())
