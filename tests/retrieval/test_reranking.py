"""A ranking that is read once more: the arithmetic, with hits that are made up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.rank.quality import Weights, rank
from app.retrieval.rank.rank import SHARE, reranked
from app.retrieval.recall import Hit
from tests.context.test_section import hit as shown

WEIGHTS = Weights()


def hit(title: str, relevance: float, *, quality: int = 0) -> Hit:
    made = rank(relevance, final_score=None, quality=quality, age_days=0, weights=WEIGHTS)
    explain = {"score": made.value, "relevance": relevance, "q_adjust": made.q_adjust, "recency": made.recency}
    return Hit(memory=shown("", title=title).memory, score=made.value, explain=explain)


def order(hits: list[Hit]) -> list[str]:
    return [item.title for item in hits]


def test_what_the_re_ranker_prefers_comes_first_and_says_so() -> None:
    first, second = reranked([hit("a", 1.0), hit("b", 0.9)], [-3.0, 3.0], WEIGHTS)
    assert (first.title, second.title) == ("b", "a")
    assert first.explain["reranker"] == 3.0
    assert first.explain["before_reranking"] == 0.9
    assert first.explain["relevance"] == pytest.approx((1 - SHARE) * 0.9 + SHARE)
    expected = rank(first.explain["relevance"] or 0, final_score=None, quality=0, age_days=0, weights=WEIGHTS)
    assert first.score == first.explain["score"] == pytest.approx(expected.value)


def test_ratings_still_count() -> None:
    hits = [hit("bad", 1.0, quality=-3), hit("good", 0.9)]
    assert order(reranked(hits, [2.0, 1.0], WEIGHTS)) == ["good", "bad"]


def test_what_was_not_read_counts_as_the_worst_that_was() -> None:
    hits = [hit("a", 1.0), hit("b", 0.5), hit("c", 0.8)]
    again = reranked(hits, [0.0, -9.0], WEIGHTS)
    assert order(again) == ["a", "c", "b"]
    assert again[1].explain["reranker"] is None


def test_without_scores_nothing_changes() -> None:
    hits = [hit("a", 1.0), hit("b", 0.5)]
    assert reranked(hits, [], WEIGHTS) == hits
    assert reranked([], [], WEIGHTS) == []


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-1e6, 1e6)), min_size=1, max_size=8))
def test_any_scores_give_every_hit_once_best_first(given: list[tuple[float, float]]) -> None:
    hits = [hit(str(place), relevance) for place, (relevance, _) in enumerate(given)]
    again = reranked(hits, [score for _, score in given], WEIGHTS)
    assert sorted(order(again)) == sorted(order(hits))
    scores = [item.score for item in again]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= (item.explain["relevance"] or 0) <= 1 for item in again)
