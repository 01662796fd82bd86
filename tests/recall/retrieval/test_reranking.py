"""A ranking that is read once more: the arithmetic, with hits that are made up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recall.retrieval.rank.presets import RERANKER_SHARE, Weights, rank, rerank_by_quality

WEIGHTS = Weights()


def hit(relevance: float, *, quality: int = 0) -> dict[str, float | None]:
    made = rank(relevance, final_score=None, quality=quality, age_days=0, weights=WEIGHTS)
    return {"score": made.value, "relevance": relevance, "q_adjust": made.q_adjust, "recency": made.recency}


def order(found: list[tuple[int, dict[str, float | None]]]) -> list[int]:
    return [place for place, _ in found]


def test_what_the_re_ranker_prefers_comes_first_and_says_so() -> None:
    again = rerank_by_quality([hit(1.0), hit(0.9)], [-3.0, 3.0], WEIGHTS)
    assert order(again) == [1, 0]
    (_, first), _ = again
    assert first["reranker"] == 3.0
    assert first["before_reranking"] == 0.9
    assert first["relevance"] == pytest.approx((1 - RERANKER_SHARE) * 0.9 + RERANKER_SHARE)
    expected = rank(first["relevance"] or 0, final_score=None, quality=0, age_days=0, weights=WEIGHTS)
    assert first["score"] == pytest.approx(expected.value)


def test_ratings_still_count() -> None:
    bad, good = hit(1.0, quality=-3), hit(0.9)
    assert order(rerank_by_quality([bad, good], [2.0, 1.0], WEIGHTS)) == [1, 0]


def test_what_was_not_read_counts_as_the_worst_that_was() -> None:
    again = rerank_by_quality([hit(1.0), hit(0.5), hit(0.8)], [0.0, -9.0], WEIGHTS)
    assert order(again) == [0, 2, 1]
    assert again[1][1]["reranker"] is None


def test_the_note_of_a_case_stays_first() -> None:
    note: dict[str, float | None] = {"score": 2.0, "state": 2.0, "probability": 0.9}
    (place, first), *_ = rerank_by_quality([note, hit(1.0)], [-9.0, 9.0], WEIGHTS)
    assert place == 0
    assert first["score"] == 2.0


def test_without_scores_nothing_changes() -> None:
    hits = [hit(1.0), hit(0.5)]
    assert rerank_by_quality(hits, [], WEIGHTS) == list(enumerate(hits))
    assert rerank_by_quality([], [], WEIGHTS) == []


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-1e6, 1e6)), min_size=1, max_size=8))
def test_any_scores_give_every_hit_once_best_first(given: list[tuple[float, float]]) -> None:
    hits = [hit(relevance) for relevance, _ in given]
    again = rerank_by_quality(hits, [score for _, score in given], WEIGHTS)
    assert sorted(order(again)) == list(range(len(hits)))
    scores = [parts["score"] or 0 for _, parts in again]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= (parts["relevance"] or 0) <= 1 for _, parts in again)
