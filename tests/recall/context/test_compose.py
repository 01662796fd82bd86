"""The laws of composing, compressing and weighing representations."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.errors import InvalidInput
from app.recall.context.compile import compose, compress, count_section, counted_tool, lead, own_shares, shorten_section
from app.recall.context.representation import (
    ADDITIVE,
    CONTEXTUAL,
    EMPTY,
    HIERARCHICAL,
    MODES,
    Allocation,
    Representation,
    Section,
    ToolDefinition,
)
from tests.recall.context.test_section import Words

WORDS = st.sampled_from(
    ["market", "grew", "by", "221", "billion", "rubles.", "The", "licence", "was", "lost", "in", "March.", "рынок",
     "вырос.", "```", "\n", "{\"a\": 1}"]
)  # fmt: skip
TEXTS = st.lists(WORDS, min_size=1, max_size=60).map(" ".join)
SHARES = st.floats(0, 1).map(lambda number: round(number, 3))
COUNTER = Words()
SECTIONS = st.builds(
    Section,
    id=st.sampled_from("abcdef"),
    content=TEXTS,
    label=st.sampled_from(["", "Rules", "### note"]),
    source=st.sampled_from(["given", "static", "semantic", "knowledge", "temporal", "observation"]),
    min_tokens=st.integers(0, 40),
    priority=st.sampled_from(["critical", "high", "medium", "low"]),
    relevance=SHARES,
    recency=SHARES,
    mode=st.sampled_from(MODES),
    reference=st.booleans(),
    embedding=st.none() | st.tuples(SHARES, SHARES),
).map(lambda section: count_section(section, COUNTER))
TOOLS = st.builds(
    ToolDefinition,
    name=st.sampled_from("xyz"),
    description=TEXTS,
    priority=st.sampled_from(["critical", "high", "low"]),
).map(lambda tool: counted_tool(tool, "openai", COUNTER))
REPRESENTATIONS = st.builds(
    Representation,
    sections=st.lists(SECTIONS, max_size=8).map(tuple),
    tools=st.lists(TOOLS, max_size=3).map(tuple),
)
ALLOCATIONS = st.sampled_from(["relevance", "information", Allocation()])


def cost(representation: Representation) -> int:
    """Returns the tokens of the parts and of the lines above them."""
    leads = {lead(section) for section in representation.sections}
    return representation.total_tokens + sum(COUNTER.count(text) for text in leads)


@given(REPRESENTATIONS, REPRESENTATIONS, REPRESENTATIONS)
def test_composing_is_associative_and_the_empty_one_is_neutral(
    one: Representation, two: Representation, three: Representation
) -> None:
    assert compose(compose(one, two), three) == compose(one, compose(two, three))
    assert compose(one, EMPTY) == one == compose(EMPTY, one)


@given(REPRESENTATIONS, REPRESENTATIONS)
def test_composing_follows_the_modes(one: Representation, two: Representation) -> None:
    both = compose(one, two)
    places = [MODES.index(section.mode) for section in both.sections]
    assert places == sorted(places)
    for mode in set(MODES) - {ADDITIVE}:
        given_sections = [section for part in (one, two) for section in part.sections if section.mode == mode]
        assert [section for section in both.sections if section.mode == mode] == given_sections
    hashes = [section.content_hash for section in both.sections if section.mode == ADDITIVE]
    assert len(hashes) == len(set(hashes))
    names = [tool.name for tool in both.tools]
    assert len(names) == len(set(names))


@given(REPRESENTATIONS)
def test_a_representation_is_json_both_ways(one: Representation) -> None:
    assert msgspec.json.decode(msgspec.json.encode(one), type=Representation) == one


def test_the_hash_is_that_of_the_content_whatever_is_given() -> None:
    section = Section(id="a", content="text", content_hash="forged")
    assert section.content_hash == Section(id="b", content="text").content_hash
    assert replace(section, content="other").content_hash != section.content_hash


@given(REPRESENTATIONS, st.integers(0, 400), ALLOCATIONS)
def test_no_budget_is_passed_and_no_protected_part_is_cut(
    one: Representation, budget: int, allocation: Allocation | str
) -> None:
    protected = replace(
        one,
        sections=tuple(item for item in one.sections if item.is_protected),
        tools=tuple(item for item in one.tools if item.is_protected),
    )
    if cost(protected) > budget:
        with pytest.raises(InvalidInput, match="critical and constraint parts alone"):
            compress(one, budget, COUNTER, allocation=allocation)
        return
    found = compress(one, budget, COUNTER, allocation=allocation)
    assert cost(found) <= budget
    assert [item for item in found.sections if item.is_protected] == list(protected.sections)
    assert [item for item in found.tools if item.is_protected] == list(protected.tools)
    before = {(item.id, item.mode): item for item in one.sections}
    for item in found.sections:
        assert (
            item in one.sections
            or item.min_tokens <= item.tokens < before[item.id, item.mode].tokens
            or any(item.min_tokens <= item.tokens < other.tokens for other in one.sections if other.id == item.id)
        )
    assert one.total_tokens == found.total_tokens + sum(cut.before - cut.after for cut in found.cuts)
    assert found.compression_ratio == (found.total_tokens / one.total_tokens if one.total_tokens else 1.0)
    assert compress(found, budget, COUNTER) == found


@given(REPRESENTATIONS, st.integers(0, 300))
def test_what_is_worth_least_is_cut_first(one: Representation, budget: int) -> None:
    plain = replace(one, sections=tuple(replace(item, min_tokens=10_000) for item in one.sections), tools=())
    try:
        found = compress(plain, budget, COUNTER)
    except InvalidInput:
        return
    dropped = [item for item in plain.sections if item not in found.sections]
    for item in dropped:
        better = [other for other in found.sections if other.is_protected or other.worth >= item.worth]
        leads = {lead(other) for other in (*better, item)}
        assert sum(other.tokens for other in (*better, item)) + sum(map(COUNTER.count, leads)) > budget


def test_a_section_is_shortened_to_its_central_sentences_before_it_is_dropped() -> None:
    told = " ".join(f"The market of supplements grew by {number} percent in that year." for number in range(30))
    section = count_section(Section(id="a", content=f"{told} Nobody asked about cats.", priority="low"), COUNTER)
    found = compress(Representation(sections=(section,)), 100, COUNTER)
    (kept,) = found.sections
    assert kept.content.endswith("…")
    assert "cats" not in kept.content
    assert 80 < kept.tokens <= 100
    (cut,) = found.cuts
    assert (cut.id, cut.before, cut.after) == ("a", section.tokens, kept.tokens)
    least = replace(section, min_tokens=150)
    assert compress(Representation(sections=(least,)), 100, COUNTER).sections == ()


@given(SECTIONS, st.integers(0, 200))
def test_a_shortened_section_keeps_to_its_room(section: Section, room: int) -> None:
    found = shorten_section(section, room, COUNTER)
    if found is not None:
        assert section.min_tokens <= found.tokens <= min(room, section.tokens)
        assert found.tokens == count_section(found, COUNTER).tokens


@given(REPRESENTATIONS)
def test_a_sections_own_words_are_a_share(one: Representation) -> None:
    assert all(0 <= share <= 1 for share in own_shares(one.sections))


def test_what_others_say_too_counts_less() -> None:
    texts = ("market grew", "grew market", "licence lost")
    sections = [Section(id=text, content=text, mode=CONTEXTUAL) for text in texts]
    assert own_shares(sections) == [0.5, 0.5, 1.0]


def test_a_hierarchical_part_of_the_first_leads() -> None:
    one, two = (
        Representation(sections=(Section(id=name, content=name, mode=HIERARCHICAL),)) for name in ("first", "second")
    )
    assert [section.id for section in compose(one, two).sections] == ["first", "second"]
