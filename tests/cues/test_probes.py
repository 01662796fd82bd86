"""Probes: the plans and neighbours that rules make of a trigger, and the figures of a store."""

from uuid import uuid4

import pytest

from app.cues.tending.probes import Probes, gerund, probed, probes_of, report


@pytest.mark.parametrize(
    ("verb", "form"), [("drop", "dropping"), ("write", "writing"), ("set up", "setting up"), ("commit", "committing"),
                       ("deploy", "deploying"), ("check in", "checking in"), ("edit", "editing")],
)  # fmt: skip
def test_a_verb_with_ing(verb: str, form: str) -> None:
    assert gerund(verb) == form


def test_plans_say_the_act_in_other_words_and_with_an_instance() -> None:
    plans, neighbours = probes_of("Before dropping a column in production")
    assert plans == [
        "Next step: removing a column in production.",
        "I will delete a column deprecated_flag in production now.",
        "Drop a column in production and go on.",
    ]
    assert neighbours == [
        "Explain a column in production in one paragraph for the reader.",
        "Who asked about a column in production last week?",
    ]


def test_a_trigger_without_a_known_verb_is_a_situation() -> None:
    assert probes_of("the user has stated a preference").plans[0] == "Next: the user has stated a preference."


def test_a_report_counts_and_names_the_weak_cues() -> None:
    probes = Probes(["a", "b"], ["c", "d"])
    good, broad, narrow = uuid4(), uuid4(), uuid4()
    scores = {
        "a": {good: 0.6, broad: 0.4},
        "b": {good: 0.5, broad: 0.3},
        "c": {good: 0.4, broad: 0.5},
        "d": {broad: 0.4},
    }
    found = report([probed(cue, str(cue), probes, scores) for cue in (good, broad, narrow)], stale=1)
    assert (found.recall, found.precision, found.stale) == (4 / 6, 4 / 6, 1)
    assert [item.cue_id for item in found.weak] == [narrow, broad]
    assert found.weak[0].missed == ("a", "b")
    assert ["is missed" in item.advice for item in found.weak] == [True, False]
