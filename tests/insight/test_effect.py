"""Tests of the effects of memories on later runs: what is estimated, flagged, and added to a rank."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import mean
from time import process_time
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.insight.effect.ledger import LEAST_RUNS, ScoredRun, Slot, flag_harmful, influence
from app.insight.effect.model import LEAST_A_SIDE, estimate_effects
from app.storage.effects import Effect
from benchmarks.pipeline import Pipeline, naive

START = datetime(2026, 1, 1, tzinfo=UTC)
TASK_TYPES = ("scan", "review")


def run(number: int, score: float | None, task_type: str | None = None) -> ScoredRun:
    return ScoredRun(
        run_id=str(number),
        task_type=task_type or TASK_TYPES[number % 2],
        agent="scout",
        at=START + timedelta(hours=number),
        final_score=score,
    )


def slot(number: int, memory: int, *, shown: bool = True, propensity: float | None = 0.5, kind: str = "cue") -> Slot:
    return Slot(run_id=str(number), memory_id=UUID(int=memory), kind=kind, rank=1, shown=shown, propensity=propensity)


def drawn(
    effects: dict[int, float], runs: int = 300, *, propensity: float = 0.5, seed: int = 1, kind: str = "cue"
) -> tuple[list[ScoredRun], list[Slot]]:
    """Makes runs that recall each memory, and withhold it by a logged draw."""
    chance = np.random.default_rng(seed)
    scored, slots = [], []
    for number in range(runs):
        mine = [
            slot(number, memory, shown=chance.random() < propensity, propensity=propensity, kind=kind)
            for memory in effects
        ]
        score = 6 + chance.normal() + sum(effects[item.memory_id.int] for item in mine if item.shown)
        scored.append(run(number, score))
        slots += mine
    return scored, slots


def by_memory(effects: list[Effect]) -> dict[int, Effect]:
    return {effect.memory_id.int: effect for effect in effects}


EFFECT = Effect(
    memory_id=UUID(int=1),
    kind="cue",
    estimate=-1.0,
    deviation=0.2,
    low=-1.4,
    high=-0.6,
    harmful=0.99,
    basis="experimental",
    runs_with=90,
    runs_without=9,
    enough=True,
)


def test_a_drawn_effect_lies_in_its_interval() -> None:
    estimates = by_memory(estimate_effects(*drawn({1: -1.5, 2: 0.0, 3: 1.0}, seed=2)))
    for memory, truth in ((1, -1.5), (2, 0.0), (3, 1.0)):
        assert estimates[memory].low <= truth <= estimates[memory].high
        assert abs(estimates[memory].estimate - truth) < 0.4
        assert estimates[memory].basis == "experimental"


def test_an_effect_is_told_from_that_of_the_task_type() -> None:
    """The memory is shown more often where scores are low: the plain difference is far off."""
    chance = np.random.default_rng(3)
    scored, slots = [], []
    for number in range(600):
        hard = number % 2 == 1
        propensity = 0.9 if hard else 0.2
        shown = chance.random() < propensity
        scored.append(run(number, 8 - 4 * hard + shown + chance.normal()))
        slots.append(slot(number, 1, shown=shown, propensity=propensity))
    by_shown = {
        shown: mean(one.final_score or 0 for one, its in zip(scored, slots, strict=True) if its.shown is shown)
        for shown in (True, False)
    }
    assert by_shown[True] - by_shown[False] < -1
    (effect,) = estimate_effects(scored, slots)
    assert 0.5 < effect.estimate < 1.5


def test_a_memory_in_two_recalls_of_a_run_is_one_treatment() -> None:
    scored, slots = drawn({1: -1.5})
    again = [item._replace(rank=2, shown=False, propensity=0.5) for item in slots]
    effect = by_memory(estimate_effects(scored, slots + again))[1]
    assert effect.runs_with == sum(item.shown for item in slots)
    assert effect.low <= -1.5 <= effect.high


def test_without_logged_draws_an_effect_is_observational_and_never_flagged() -> None:
    scored, slots = drawn({1: -3.0, 2: 0.0})
    unlogged = [item._replace(propensity=None) for item in slots if item.shown]
    effects = estimate_effects(scored, unlogged)
    assert {effect.basis for effect in effects} == {"observational"}
    assert by_memory(effects)[1].estimate < -2
    assert flag_harmful(effects) == []
    assert influence(by_memory(effects)[1], 0.2) == 0.0


def test_a_certain_slot_is_no_draw() -> None:
    scored, slots = drawn({1: -3.0})
    certain = [item._replace(propensity=1.0) for item in slots if item.shown]
    assert {effect.basis for effect in estimate_effects(scored, certain)} == {"observational"}


@pytest.mark.parametrize("runs", [1, 2, 5, 10])
def test_a_few_runs_are_too_little_data(runs: int) -> None:
    effects = estimate_effects(*drawn({1: -5.0, 2: 0.0}, runs=runs))
    assert not any(effect.enough for effect in effects)
    assert flag_harmful(effects) == []


def test_an_effect_is_shown_from_twenty_runs_on_each_side() -> None:
    scored, slots = drawn({1: 0.0})
    for memory, runs in ((2, LEAST_A_SIDE), (3, LEAST_A_SIDE - 1), (4, LEAST_RUNS - 1)):
        slots += [slot(number, memory) for number in range(100 * memory - 200, 100 * memory - 200 + runs)]
    scored, _ = drawn({1: 0.0}, runs=400)
    estimates = by_memory(estimate_effects(scored, slots))
    assert {memory: effect.enough for memory, effect in estimates.items()} == {1: True, 2: True, 3: False}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("runs_a_type", [1, 2, 10])
def test_noise_flags_nothing_however_many_task_types_there_are(seed: int, runs_a_type: int) -> None:
    scored, slots = drawn(dict.fromkeys(range(1, 11), 0.0), runs=120, seed=seed)
    typed = [replace(one, task_type=f"type {number // runs_a_type}") for number, one in enumerate(scored)]
    assert flag_harmful(estimate_effects(typed, slots)) == []


def test_there_are_no_effects_where_the_terms_leave_too_few_runs() -> None:
    """30 runs are told with 8 terms: a deviation of what is left tells little of chance."""
    assert estimate_effects(*drawn({1: -3.0}, runs=30)) == []
    assert estimate_effects(*drawn({1: -3.0}, runs=60))


def test_many_small_task_types_take_no_longer() -> None:
    scored, slots = drawn({1: -1.5, 2: 0.0}, runs=1_500)
    typed = [replace(one, task_type=one.run_id) for one in scored]
    start = process_time()
    estimates = by_memory(estimate_effects(typed, slots))
    assert process_time() - start < 5, "with a column for each run it took 30 s"
    assert abs(estimates[1].estimate + 1.5) < 0.2


@pytest.mark.parametrize(("withheld", "basis"), [(0, "observational"), (2, "observational"), (3, "experimental")])
def test_an_effect_is_experimental_from_three_runs_from_which_draws_withheld_it(withheld: int, basis: str) -> None:
    scored, slots = drawn({1: -3.0})
    kept = iter(range(len(slots)))
    given = [item for item in slots if item.shown or next(kept) < withheld]
    (effect,) = estimate_effects(scored, given)
    assert (effect.basis, effect.enough) == (basis, True)
    assert effect.runs_without == (withheld if basis == "experimental" else sum(not item.shown for item in slots))
    assert bool(flag_harmful([effect])) is (basis == "experimental")


def test_memories_that_are_always_shown_together_share_their_effect() -> None:
    scored, slots = drawn({1: -2.0})
    twins = [item._replace(memory_id=UUID(int=2)) for item in slots]
    estimates = by_memory(estimate_effects(scored, slots + twins))
    assert estimates[1].estimate == pytest.approx(estimates[2].estimate)
    assert -2.5 < estimates[1].estimate + estimates[2].estimate < -1.5


def test_nothing_follows_from_equal_scores_or_no_recalls() -> None:
    scored, slots = drawn({1: 0.0}, runs=30)
    assert estimate_effects(scored, []) == []
    assert estimate_effects([replace(one, final_score=5.0) for one in scored], slots) == []
    assert estimate_effects([], slots) == []


def test_runs_without_the_outcome_are_left_out() -> None:
    scored, slots = drawn({1: -1.5})
    unjudged = [run(number, None) for number in range(1_000, 1_100)]
    more = [slot(number, 1) for number in range(1_000, 1_100)]
    assert estimate_effects(scored + unjudged, slots + more) == estimate_effects(scored, slots)


def test_a_next_candidate_that_takes_slots_changes_no_other_estimate_and_has_its_own() -> None:
    """Memory 1 has no effect; the slot that a draw takes from it is given to memory 2, which does harm, or is empty."""
    chance = np.random.default_rng(3)
    scored, slots = [], []
    for number in range(600):
        shown, gives = chance.random() < 0.6, chance.random() < 0.5
        slots.append(slot(number, 1, shown=shown, propensity=0.6))
        if not shown:
            slots.append(slot(number, 2, shown=gives)._replace(is_next=True))
        scored.append(run(number, 6 + chance.normal() - 2 * (gives and not shown)))
    estimates = by_memory(estimate_effects(scored, slots))
    assert abs(estimates[1].estimate) < 0.35
    assert estimates[1].low < 0 < estimates[1].high
    assert estimates[2].low < -2 < estimates[2].high < -1
    assert estimates[2].basis == "experimental"
    assert [item.memory_id for item in flag_harmful(estimate_effects(scored, slots))] == [UUID(int=2)]


def test_the_order_of_the_slots_does_not_matter() -> None:
    scored, slots = drawn({1: -1.0, 2: 0.5}, runs=60)
    forth, back = by_memory(estimate_effects(scored, slots)), by_memory(estimate_effects(scored, slots[::-1]))
    for memory in (1, 2):
        assert back[memory].estimate == pytest.approx(forth[memory].estimate)
        assert back[memory].low == pytest.approx(forth[memory].low, abs=1e-6)


def test_flags_stop_where_too_many_would_be_wrong() -> None:
    sure, likely, doubtful = (
        replace(EFFECT, memory_id=UUID(int=number), harmful=harmful) for number, harmful in enumerate((0.99, 0.93, 0.6))
    )
    assert flag_harmful([doubtful, likely, sure]) == [sure, likely]
    assert flag_harmful([doubtful]) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda effect: replace(effect, enough=False), id="too little data"),
        pytest.param(lambda effect: replace(effect, basis="observational"), id="observational"),
    ],
)
def test_effects_that_are_not_flagged(change: Callable[[Effect], Effect]) -> None:
    assert flag_harmful([EFFECT]) == [EFFECT]
    assert flag_harmful([change(EFFECT)]) == []


@given(estimate=st.floats(-10, 10), deviation=st.floats(0, 10), bound=st.floats(0, 1))
def test_influence_is_bounded_and_has_the_sign_of_the_effect(estimate: float, deviation: float, bound: float) -> None:
    value = influence(replace(EFFECT, estimate=estimate, deviation=deviation), bound)
    assert -bound <= value <= bound
    assert value * estimate >= 0


def test_influence_falls_with_uncertainty() -> None:
    values = [influence(replace(EFFECT, deviation=deviation), 0.2) for deviation in (0.0, 0.5, 0.9, 1.0, 3.0)]
    assert values == sorted(values)
    assert values[0] < -0.1
    assert values[-2:] == [0.0, 0.0]


def test_a_simulated_pipeline_fools_the_naive_difference_and_not_the_estimate() -> None:
    errors: dict[str, list[float]] = {"estimate": [], "naive": []}
    covered = []
    for seed in (2_001, 2_002, 2_003):
        pipeline = Pipeline(seed).go(300)
        truth = {memory: mean(gains) for memory, gains in pipeline.gains.items()}
        _, differences = naive(pipeline)
        for effect in estimate_effects(pipeline.runs, pipeline.slots):
            if effect.enough:
                errors["estimate"].append(abs(effect.estimate - truth[effect.memory_id]))
                errors["naive"].append(abs(differences[effect.memory_id][1] - truth[effect.memory_id]))
                covered.append(effect.low <= truth[effect.memory_id] <= effect.high)
    assert mean(errors["estimate"]) < 0.5
    assert mean(errors["naive"]) > 2 * mean(errors["estimate"])
    assert mean(covered) > 0.75
