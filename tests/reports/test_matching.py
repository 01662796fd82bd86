"""Which memories of a changed file stay."""

from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from app.memories.memory import NewMemory
from app.memories.store import MemoryRow, row_of
from app.reports.matching import KnownChunk, matched


def row(body: str, ordinal: int) -> MemoryRow:
    memory = NewMemory(kind="chunk", title="t", body=body, ordinal=ordinal)
    return row_of(memory, source_id=None, language="english", tokens=1)


def known(body: str, ordinal: int, *, live: bool = True) -> KnownChunk:
    return KnownChunk(memory_id=uuid4(), content_hash=row(body, 0).content_hash, ordinal=ordinal, live=live)


def test_unchanged_text_keeps_its_memory_wherever_it_moved() -> None:
    first, second = known("alpha", 0), known("beta", 1)
    plan = matched([row("new", 0), row("alpha", 1), row("beta", 2)], [first, second])
    assert [(chunk.memory_id, given.memory.ordinal) for chunk, given in plan.kept] == [
        (first.memory_id, 1),
        (second.memory_id, 2),
    ]
    assert [given.memory.body for given in plan.new] == ["new"]
    assert plan.retired == ()


def test_text_that_is_gone_retires() -> None:
    gone = known("alpha", 0)
    plan = matched([row("beta", 0)], [gone])
    assert plan.retired == (gone.memory_id,)


def test_text_that_comes_back_is_the_memory_it_was() -> None:
    retired = known("alpha", 3, live=False)
    plan = matched([row("alpha", 0)], [retired])
    assert [chunk.memory_id for chunk, _ in plan.kept] == [retired.memory_id]
    assert plan.retired == ()


BODIES = st.lists(st.sampled_from("abc"), max_size=8)


@given(BODIES, BODIES, st.data())
def test_every_chunk_has_one_memory_and_no_ordinal_is_ever_taken_twice(
    before: list[str], after: list[str], data: st.DataObject
) -> None:
    chunks = [known(body, place, live=data.draw(st.booleans())) for place, body in enumerate(before)]
    plan = matched([row(body, place) for place, body in enumerate(after)], chunks)
    assert len(plan.kept) + len(plan.new) == len(after)
    stay = {chunk.memory_id for chunk, _ in plan.kept}
    assert len(stay) == len(plan.kept)
    assert set(plan.retired) == {chunk.memory_id for chunk in chunks if chunk.live} - stay
    # One statement moves them all; a live one must never move to where another of its text stands at the time.
    places: dict[tuple[bytes, int], UUID] = {
        (chunk.content_hash, chunk.ordinal): chunk.memory_id for chunk in chunks if chunk.live
    }
    for chunk, given_row in plan.kept:
        ordinal = given_row.memory.ordinal
        assert ordinal is not None
        holder = places.get((chunk.content_hash, ordinal))
        assert holder in {None, chunk.memory_id} or holder in plan.retired
