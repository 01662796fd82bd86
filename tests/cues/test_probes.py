"""Probes: the plans that are made of a trigger, and the figures of a store."""

from dataclasses import replace
from uuid import UUID

import pytest

from app.cues.tending.probes import data, gerund, plans_of, report
from tests.cues.test_arbitrate import NOW, cue


@pytest.mark.parametrize(
    ("verb", "form"), [("drop", "dropping"), ("write", "writing"), ("set up", "setting up"), ("commit", "committing"),
                       ("deploy", "deploying"), ("check in", "checking in"), ("edit", "editing")],
)  # fmt: skip
def test_a_verb_with_ing(verb: str, form: str) -> None:
    assert gerund(verb) == form


def test_plans_are_made_of_a_trigger() -> None:
    assert plans_of("dropping a column.")[0] == "Next: dropping a column."
    assert len(data().unrelated) >= 20


def test_a_report_counts_and_names_the_weak_cues() -> None:
    cues = [replace(cue(number), created_at=NOW, last_fired_at=NOW) for number in (1, 2)]
    one, other = UUID(int=1), UUID(int=2)
    own = [[frozenset({one}), frozenset({one, other})], [frozenset({one}), frozenset()]]
    found = report(cues, own, [frozenset(), frozenset({one})], now=NOW)
    assert (found.recall, found.precision) == (2 / 4, 2 / 4)
    assert (found.unrelated, found.unrelated_fired, found.stale) == (2, 0.5, 0)
    assert [item.cue_id for item in found.weak] == [other]
    assert "is missed" in found.weak[0].advice
    nothing = report([], [], [], now=NOW)
    assert (nothing.recall, nothing.precision, nothing.unrelated_fired) == (None, None, 0)
