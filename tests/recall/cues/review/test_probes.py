"""Probes: the plans that are made of a trigger, and the figures of a store."""

from uuid import UUID

from msgspec.structs import replace

from app.recall.cues.review.probes import plans_of, probe_texts, report
from tests.recall.cues.test_arbitrate import NOW, cue


def test_plans_are_made_of_a_trigger() -> None:
    assert plans_of("dropping a column.")[0] == "Next: dropping a column."
    assert len(probe_texts()["unrelated"]) >= 20


def test_a_report_counts_and_names_the_weak_cues() -> None:
    cues = [replace(cue(number), created_at=NOW, last_fired_at=NOW) for number in (1, 2)]
    one, other = UUID(int=1), UUID(int=2)
    own = [[frozenset({one}), frozenset({one, other})], [frozenset({one}), frozenset()]]
    found = report(cues, own, [frozenset(), frozenset({one})], now=NOW)
    assert (found.recall, found.precision) == (2 / 4, 2 / 4)
    assert (found.unrelated, found.unrelated_fired, found.stale) == (2, 0.5, 0)
    assert [item.cue_id for item in found.weak] == [other]
    nothing = report([], [], [], now=NOW)
    assert (nothing.recall, nothing.precision, nothing.unrelated_fired) == (None, None, 0)
