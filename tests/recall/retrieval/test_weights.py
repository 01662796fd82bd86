"""The table of weights: what is in use, and that the ranking uses it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from uuid import UUID

import msgspec
import pytest

from app.recall.retrieval.rank.features import SPREADING, WEIGHTS, values
from app.recall.retrieval.rank.presets import DEFAULT
from app.recall.retrieval.rank.rank import Asking, Candidate, HitText, rank_pool, reread
from app.storage.links import relations
from benchmarks.fit import weights_of

IN_USE = {
    "blend": {
        "lexical": 0.6, "repeated": 3.0, "next": 0.3, "second": 0.15, "source_lexical": 0.3, "source_vector": 0.1,
        "named": 0.2, "dated": 0.5,
    },
    "links": {"mentions": 0.7, "derived_from": 0.7, "supersedes": 0.7, "same_task": 0.9, "same_entity": 0.2},
    "text_features": {"phrases": 0.4, "time": 0.2, "own": 0.15, "asks": -0.1, "answers": 0.1, "short": -0.3},
    "quality": {"relevance": 0.7, "quality": 0.3, "half_life_days": 365.0, "recency_floor": 0.8},
}  # fmt: skip


class Weight(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    value: float
    unit: str
    does: str
    measured: str
    """The section of benchmarks/retrieval.md."""
    date: date
    """The day of the measurement."""
    brings: Mapping[str, tuple[float, ...]] = {}
    """Points of recall@5, and @10 where it was measured, that are lost without it, by development set."""


def test_the_table_holds_the_weights_in_use() -> None:
    assert {part: values(part) for part in WEIGHTS} == IN_USE


def test_every_weight_of_the_relevance_is_in_the_table() -> None:
    named = {f"{part}.{name}" for part in ("blend", "text_features") for name in values(part)}
    assert weights_of(DEFAULT).keys() == named | {f"blend.links.{relation}" for relation in values("links")}


def test_links_spread_by_relations_that_exist() -> None:
    assert SPREADING.keys() < {value for value in vars(relations).values() if isinstance(value, str)}


def test_every_weight_says_where_it_was_measured() -> None:
    for part in msgspec.convert(WEIGHTS, dict[str, dict[str, Weight]]).values():
        for weight in part.values():
            assert weight.unit
            assert weight.does
            assert weight.measured
            assert all(len(points) in {1, 2} for points in weight.brings.values())


def test_a_ranking_by_these_weights_stays_the_same() -> None:
    now = datetime(2024, 1, 10, tzinfo=UTC)
    said = {
        "I planted a lemon tree in May 2023, and it grew to the roof of the old house before winter came.": 0.5,
        "A lemon tree?": 0.6,
        "Did you plant anything last year, or did the house take all of your time?": 0.4,
    }
    pool = [
        Candidate(UUID(int=place), "Ann", UUID(int=9), place, None, 0, now, similarity, 3.0 - place)
        for place, similarity in enumerate(said.values())
    ]
    asking = Asking("When did Ann plant the lemon tree?", now)
    best = list(rank_pool(pool, DEFAULT, asking, full_match=2.5))
    texts = [
        HitText("Ann", list(said)[item.candidate.memory_id.int], "s", item.candidate.memory_id.int) for item in best
    ]
    again = reread(best, texts, DEFAULT, asking)
    assert [item.candidate.memory_id.int for item in again] == [0, 2, 1]
    assert [item.relevance.evidence for item in again] == pytest.approx([2.314556, 1.447179, 1.201569], abs=1e-6)
