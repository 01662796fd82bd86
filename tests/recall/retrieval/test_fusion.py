"""Fusion and association on small pools whose answer can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recall.retrieval.rank.features import ArmScores, Blend, reciprocal_ranks, relevances

ALONE = Blend(lexical=0.6, next=0, second=0, source_lexical=0, source_vector=0)


def evidence(similarity: float | None, bm25: float, source: int | None = None, ordinal: int | None = None) -> ArmScores:
    return ArmScores(similarity=similarity, bm25=bm25, source=source, ordinal=ordinal)


def test_both_scores_are_mixed_on_a_scale_of_their_own() -> None:
    first, second = relevances([evidence(0.5, 4.0), evidence(0.25, 0.0)], full_match=8.0, blend=ALONE)
    assert [first.vector, first.lexical] == [0.5, 0.5]
    assert first.fused == pytest.approx(0.6 * 0.5 + 0.4 * 0.5)
    assert second.evidence == pytest.approx(0.4 * 0.25)
    assert [first.value, second.value] == pytest.approx([1.0, 0.2])


def test_beside_a_text_that_repeats_the_words_meaning_tells_the_others_apart() -> None:
    near, worded = evidence(0.6, 6.0), evidence(0.5, 8.0)
    first, second = relevances([near, worded], full_match=10.0, blend=ALONE)
    assert first.fused < second.fused
    first, second, _ = relevances([near, worded, evidence(0.7, 20.0)], full_match=10.0, blend=ALONE)
    assert first.fused == pytest.approx(0.6)
    assert first.fused > second.fused


def test_without_vectors_words_decide_alone() -> None:
    first, second = relevances([evidence(None, 6.0), evidence(None, 3.0)], full_match=6.0, blend=ALONE)
    assert 0.9 < first.fused < 1
    assert second.fused == 0.5


def test_without_words_meaning_decides_alone() -> None:
    (only,) = relevances([evidence(0.7, 0.0)], full_match=0.0, blend=ALONE)
    assert only.fused == pytest.approx(0.7)


def test_a_hit_lifts_its_neighbours_and_no_others() -> None:
    blend = Blend(lexical=1.0, next=0.3, second=0.15, source_lexical=0, source_vector=0)
    pool = [evidence(0.0, 10.0 if place == 5 else 0.0, 7, place) for place in range(10)]
    lifted = [item.neighbours for item in relevances(pool, full_match=10.0, blend=blend)]
    assert lifted == pytest.approx([0, 0, 0, 0.15, 0.3, 0, 0.3, 0.15, 0, 0])


def test_a_strong_hit_lifts_its_source() -> None:
    pool = [evidence(0.9, 5.0, 1, 0), evidence(0.1, 1.0, 1, 90), evidence(0.1, 1.0, 2, 0)]
    _, same, other = relevances(pool, full_match=10.0)
    assert same.fused == other.fused
    assert same.source > other.source


def test_a_memory_that_the_query_names_gains_its_share() -> None:
    plain = evidence(0.5, 5.0)
    first, second = relevances([plain, plain._replace(named=True)], full_match=10.0, blend=Blend(named=0.2))
    assert first.named == 0
    assert second.named == pytest.approx(0.2 * first.evidence)
    assert second.evidence == pytest.approx(1.2 * first.evidence)


def test_a_memory_from_the_time_that_the_query_names_gains_its_share() -> None:
    plain = evidence(0.5, 5.0)
    first, second, both = relevances(
        [plain, plain._replace(dated=0.5), plain._replace(dated=1.0, named=True)],
        full_match=10.0,
        blend=Blend(named=0.2, dated=0.3),
    )
    assert first.dated == 0
    assert second.evidence == pytest.approx(1.15 * first.evidence)
    assert both.evidence == pytest.approx(1.2 * 1.3 * first.evidence)
    assert both.evidence == pytest.approx(both.fused + both.neighbours + both.source + both.named + both.dated)


def test_reciprocal_ranks_prefer_what_both_arms_found() -> None:
    both, words, meaning = reciprocal_ranks([evidence(0.5, 5.0), evidence(None, 9.0), evidence(0.9, 0.0)])
    assert both > words
    assert both > meaning


POOLS = st.lists(
    st.builds(
        evidence,
        st.one_of(st.none(), st.floats(-1, 1)),
        st.floats(0, 50),
        st.one_of(st.none(), st.integers(0, 1)),
        st.one_of(st.none(), st.integers(0, 6)),
    ),
    max_size=12,
)


@given(POOLS, st.floats(0, 60), st.randoms())
def test_the_order_of_the_pool_does_not_matter(pool: list[ArmScores], full_match: float, random: object) -> None:
    shuffled = list(range(len(pool)))
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' own Random
    straight = relevances(pool, full_match=full_match)
    crooked = relevances([pool[place] for place in shuffled], full_match=full_match)
    assert [straight[place].value for place in shuffled] == pytest.approx([item.value for item in crooked])
    assert all(0 <= item.value <= 1 for item in straight)


def test_fusion_by_rank_is_a_choice() -> None:
    blend = Blend(by_rank=True, next=0, second=0, source_lexical=0, source_vector=0)
    pool = [evidence(0.5, 5.0), evidence(0.4, 9.0)]
    assert [item.fused for item in relevances(pool, full_match=9.0, blend=blend)] == reciprocal_ranks(pool)
