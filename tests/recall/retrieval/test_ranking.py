"""The documented numbers, and what must hold for all numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recall.retrieval.rank.presets import Weights, qual_weight, quality_adjustment, rank, recency

SCORES = st.one_of(st.none(), st.floats(0, 10))
RELEVANCE = st.floats(0, 1)
QUALITY = st.integers(-3, 3)
AGE = st.floats(0, 10_000)


@pytest.mark.parametrize(
    ("score", "weight"), [(6.0, 0.30), (6.99, 0.3495), (7.0, 0.70), (10.0, 1.0), (0.0, 0.0), (None, 0.5)]
)
def test_a_score_weighs_its_tenth_and_half_of_it_below_seven(score: float | None, weight: float) -> None:
    assert qual_weight(score) == pytest.approx(weight)


@pytest.mark.parametrize(("quality", "factor"), [(3, 1.45), (1, 1.15), (0, 1.0), (-1, 0.85), (-3, 0.55), (-9, 0.2)])
def test_ratings_move_the_rank_by_fifteen_percent_each(quality: int, factor: float) -> None:
    assert quality_adjustment(quality) == pytest.approx(factor)


def test_recency_is_half_way_to_its_floor_after_the_half_life() -> None:
    weights = Weights(half_life_days=100, recency_floor=0.8)
    assert recency(0, weights) == 1.0
    assert recency(100, weights) == pytest.approx(0.9)
    assert recency(1e6, weights) == pytest.approx(0.8)


def test_recency_can_be_off() -> None:
    assert recency(1e6, Weights(half_life_days=None)) == 1.0


def test_the_classic_formula() -> None:
    result = rank(0.8, final_score=9.0, quality=1, age_days=500, weights=Weights(half_life_days=None))
    assert result.value == pytest.approx((0.7 * 0.8 + 0.3 * 0.9) * 1.15)


@given(RELEVANCE, RELEVANCE, SCORES, QUALITY, AGE)
def test_more_relevance_never_ranks_lower(
    one: float, other: float, score: float | None, quality: int, age: float
) -> None:
    low, high = sorted((one, other))
    weights = Weights()
    lower = rank(low, final_score=score, quality=quality, age_days=age, weights=weights).value
    higher = rank(high, final_score=score, quality=quality, age_days=age, weights=weights).value
    assert 0 <= lower <= higher


@given(RELEVANCE, SCORES, QUALITY, QUALITY, AGE)
def test_better_ratings_never_rank_lower(
    relevance: float, score: float | None, one: int, other: int, age: float
) -> None:
    low, high = sorted((one, other))
    weights = Weights()
    lower = rank(relevance, final_score=score, quality=low, age_days=age, weights=weights).value
    higher = rank(relevance, final_score=score, quality=high, age_days=age, weights=weights).value
    assert lower <= higher


@given(st.sampled_from([(0.0, 6.999), (7.0, 10.0)]), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_score_weighs_more_on_its_side_of_seven(side: tuple[float, float], one: float, other: float) -> None:
    low, high = (side[0] + share * (side[1] - side[0]) for share in sorted((one, other)))
    assert qual_weight(low) <= qual_weight(high)
