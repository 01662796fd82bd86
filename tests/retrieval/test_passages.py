"""Passages of the best hits: their scores, corrections, and the gate over the query."""

from typing import Any

import numpy as np
import pytest

from app.retrieval.rank.passages import Dated, Terms, outdated, read_text, scored
from app.retrieval.rank.presets import probability

TERMS = Terms({"bear": 2.0, "pump": 1.0}, 3.0, ("english",))
OLD, NEW = np.array([1.0, 0.0], np.float32), np.array([0.8, 0.6], np.float32)


def dated(text: str, vector: Any = OLD, moment: float | None = None, stored: float = 0.0) -> Dated:
    return Dated(text, vector, moment, stored)


def test_the_passage_with_the_words_of_the_query_is_the_best() -> None:
    text = read_text("Notes", "The lid is red.\n\nThe bearings of a pump wear out.", similarity=0.3, evidence=0.5)
    ((other, best),) = scored([text], TERMS, None)
    assert best.evidence > other.evidence
    assert (other.lexical, best.lexical > 0.8) == (0.0, True)


def test_a_passage_has_its_own_similarity_where_its_vector_is_stored() -> None:
    text = read_text("", "One.\n\nTwo.", similarity=0.3, evidence=0.0)
    ((first, second),) = scored([text._replace(vectors=np.stack([OLD, NEW]))], TERMS, NEW)
    assert first.similarity == pytest.approx(0.8)
    assert second.similarity == pytest.approx(1.0)
    ((first, second),) = scored([text], TERMS, NEW)
    assert first.similarity == second.similarity == 0.3


def test_a_later_correction_outdates_what_speaks_of_the_same() -> None:
    items = [dated("The limit is 14."), dated("Correction: the limit is 22.", NEW, stored=10.0)]
    assert outdated(items) == {0: 1}


@pytest.mark.parametrize(
    "new",
    [
        dated("The limit is 22.", NEW, stored=10.0),
        dated("Correction: the lid is blue.", np.array([0.0, 1.0], np.float32), stored=10.0),
        dated("Correction: the limit is 22.", NEW, stored=0.0),
        dated("Correction: the limit is 22.", None, stored=10.0),
    ],
)
def test_without_a_mark_another_matter_the_same_intake_or_no_vector_nothing_is_outdated(new: Dated) -> None:
    assert outdated([dated("The limit is 14."), new]) == {}


def test_the_dates_of_reports_count_before_the_moments_of_storing() -> None:
    old = dated("The limit is 14, reopened.", moment=200.0, stored=0.0)
    assert outdated([old, dated("Correction: the limit is 22.", NEW, moment=100.0, stored=10.0)]) == {1: 0}


def test_the_probability_rises_with_each_of_its_features() -> None:
    base = probability(0.3, 0.2, 0.4)
    assert 0 < base < min(probability(0.4, 0.2, 0.4), probability(0.3, 0.5, 0.4), probability(0.3, 0.2, 0.8)) < 1
    assert probability(0.1, 0.05, 0.1) < 0.05
    assert probability(0.2, 1.0, 0.0) > 0.5
