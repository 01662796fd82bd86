"""Passages of the best hits: their scores, and the gate over the query."""

import numpy as np
import pytest

from app.recall.retrieval.rank.passages import (
    PassageScore,
    Terms,
    evidence_in,
    fuse_scores,
    need_of,
    read_text,
    score_passages,
)
from app.recall.retrieval.rank.presets import DEFAULT, Signs, answerable, probability

TERMS = Terms({"bear": 2.0, "pump": 1.0}, 3.0, ("english",))
OLD, NEW = np.array([1.0, 0.0], np.float32), np.array([0.8, 0.6], np.float32)


def test_the_passage_with_the_words_of_the_query_is_the_best() -> None:
    text = read_text("Notes", "The lid is red.\n\nThe bearings of a pump wear out.", similarity=0.3, evidence=0.5)
    ((other, best),) = score_passages([text], TERMS, None)
    assert best.evidence > other.evidence
    assert (other.lexical, best.lexical > 0.8) == (0.0, True)


def test_a_passage_has_its_own_similarity_where_its_vector_is_stored() -> None:
    text = read_text("", "One.\n\nTwo.", similarity=0.3, evidence=0.0)
    ((first, second),) = score_passages([text._replace(vectors=np.stack([OLD, NEW]))], TERMS, NEW)
    assert first.similarity == pytest.approx(0.8)
    assert second.similarity == pytest.approx(1.0)
    ((first, second),) = score_passages([text], TERMS, NEW)
    assert first.similarity == second.similarity == 0.3


def test_a_word_of_the_title_counts_half() -> None:
    own = read_text("", "The bearings wear out.", similarity=0.3, evidence=0.0)
    titled = read_text("Bearings", "The lids are red now.", similarity=0.3, evidence=0.0)
    neither = read_text("", "The lids are red now.", similarity=0.3, evidence=0.0)
    ((own_score,), (title_score,), (no_score,)) = score_passages([own, titled, neither], TERMS, None)
    assert own_score.lexical > title_score.lexical > no_score.lexical == 0.0
    assert title_score.lexemes == {"bear"}


def test_half_of_the_score_is_that_of_the_need_that_fits_best() -> None:
    text = read_text("", "The pump leaks.", similarity=0.0, evidence=0.0)._replace(vectors=np.stack([OLD]))
    fits, other = need_of("pump", TERMS, OLD), need_of("bearings", TERMS, np.array([0.0, 1.0], np.float32))
    alone, several = (score_passages([text], TERMS, NEW, needs)[0][0] for needs in ((), (other, fits)))
    of_need = fuse_scores(
        1.0, score_passages([text], TERMS._replace(weights={"pump": 1.0}, full=fits.full), NEW)[0][0].lexical
    )
    assert several.own == pytest.approx((alone.own + of_need) / 2)
    assert (several.similarity, several.lexical) == (alone.similarity, alone.lexical)


def test_a_late_score_is_estimated_for_a_text_without_codes_where_another_has_some() -> None:
    known = read_text("", "The pump leaks.\n\nThe lid is red.", similarity=0.4, evidence=0.5)._replace(late=[0.9, 0.1])
    same, other = (read_text("", body, similarity=0.4, evidence=0.5) for body in ("The pump leaks.", "The lid is red."))
    ((leaks, lid), (expected,), (less,)) = score_passages([known, same, other], TERMS, None)
    assert (leaks.late, lid.late) == (0.9, 0.1)
    assert leaks.own == expected.own
    assert expected.late is not None
    assert less.late is not None
    assert 0.3 < less.late < expected.late < 0.9
    ((alone,),) = score_passages([same], TERMS, None)
    assert alone.late is None


def test_the_probability_rises_with_each_of_its_features() -> None:
    base = probability(0.3, 0.2, 0.4)
    assert 0 < base < min(probability(0.4, 0.2, 0.4), probability(0.3, 0.5, 0.4), probability(0.3, 0.2, 0.8)) < 1
    assert probability(0.1, 0.05, 0.1) < 0.05
    assert probability(0.2, 1.0, 1.0) > 0.5


def evidence_of(body: str) -> list[PassageScore]:
    (scored,) = score_passages([read_text("", body, similarity=0.0, evidence=0.0)], TERMS, None)
    return evidence_in(body, scored)


def test_a_sentence_that_announces_a_list_stands_above_its_items_alone() -> None:
    lead = "Three weeks of tests in the new hall have shown that the pump fails for these reasons, each on its own:"
    body = f"The hall is new. {lead}\n\n- The bearings wear out.\n- The lid leaks."
    first, items = evidence_of(body)
    assert first.passage.of(body) == "The hall is new."
    assert items.passage.of(body) == f"{lead}\n- The bearings wear out.\n- The lid leaks."


def test_items_have_the_score_of_the_sentence_that_announces_them() -> None:
    lead = "The bearings of the pump, of which the new hall has as many as the old hall had, failed because of:"
    body = f"{lead}\n\n- {'Frost in the pipes. ' * 8}\n- {'Dust in the air. ' * 8}"
    one, other = evidence_of(body)
    assert one.evidence == other.evidence > 0


def test_a_sentence_that_announces_nothing_is_no_evidence() -> None:
    body = "The pump of the new hall, of which the old hall has none at all, has failed for the following reasons:"
    assert not evidence_of(body)


def test_a_sentence_with_a_colon_that_says_something_stays_without_a_list() -> None:
    body = "The limit is 5 EUR per call:"
    assert [item.passage.of(body) for item in evidence_of(body)] == [body]


NEAR = Signs(late=0.6, share=0.5, similarity=0.55, known=0.9, gap=0.1, size=4.0)


def test_a_store_answers_where_words_and_meaning_stand_together_in_one_passage() -> None:
    assert DEFAULT.threshold is not None
    assert answerable(NEAR) > DEFAULT.threshold.likely > answerable(Signs(0.2, 0.1, 0.35, 0.6, 0.05, 4.0))


@pytest.mark.parametrize("worse", [{"size": 8.0}, {"known": 0.3}, {"gap": 0.0}, {"late": 0.2}, {"share": 0.1}])
def test_a_larger_store_and_unknown_words_make_an_answer_less_likely(worse: dict[str, float]) -> None:
    assert answerable(NEAR._replace(**worse)) < answerable(NEAR)
