"""Tests of the report on what memory did: its figures, its intervals, and what it says cannot be concluded."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import ttest_ind  # type: ignore[import-untyped]  # it has no types

from app.insight.effect.document import NO_INTERVAL, escape_marks, markdown, page
from app.insight.effect.ledger import Exposure, RunFacts, ScoredRun, Slot, exposures
from app.insight.effect.report import (
    TOP,
    Report,
    by_draw,
    by_history,
    contrast,
    draws,
    limits,
    limits_of_selection,
    rank_effects,
    student,
    task_types,
    versions,
    weeks,
)
from app.intake.cases.store import Alert
from app.storage.effects import MemoryEffect

START = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday."""


def fact(
    number: int, score: float | None, *, shown: int = 1, task_type: str = "scan", version: str = "", issues: int = 2,
    repeats: int | None = 0, exposure: Exposure | None = None, cost: float | None = None,
) -> RunFacts:  # fmt: skip
    run = ScoredRun(
        run_id=str(number),
        task_type=task_type,
        agent="scout",
        at=START + timedelta(hours=number),
        final_score=score,
        cost=cost,
        version=version,
    )
    given = Exposure(shown=shown) if exposure is None else exposure
    return RunFacts(run=run, issues=issues, repeats=repeats, exposure=given)


def made(facts: Sequence[RunFacts], explore: float = 0.0, **given: object) -> Report:
    history, drawn = contrast("all runs", facts), draws(facts)
    report = Report(
        workspace="w",
        since=None,
        until=None,
        task_type="",
        runs=len(facts),
        left_out=0,
        scored=sum(item.run.final_score is not None for item in facts),
        history=history,
        draws=drawn,
        weeks=weeks(facts),
        versions=versions(facts),
        task_types=task_types(facts),
        helpful=(),
        harmful=(),
        estimated_at=None,
        alerts=(),
        limits=limits(facts, history, drawn, explore),
        explore=explore,
        uses_effects=False,
    )
    return replace(report, **given)


def slot(run: str, memory: int, *, query: str = "q", shown: bool = True, propensity: float | None = None) -> Slot:
    return Slot(run, UUID(int=memory), "note", 1, shown, propensity, query=query)


MEMORY = MemoryEffect(
    memory_id=UUID(int=1),
    title="T",
    kind="note",
    quality=0,
    final_score=None,
    estimate=-1.2,
    low=-2.0,
    high=-0.4,
    harmful=0.98,
    basis="experimental",
    runs_with=40,
    runs_without=8,
    enough=True,
    flagged=True,
    influence=-0.5,
)


def test_a_difference_has_an_interval_with_the_freedom_of_the_smaller_group() -> None:
    """It is wider than Welch's, which is too narrow where one group is small."""
    chance = np.random.default_rng(1)
    one, other = chance.normal(7, 1, 30).tolist(), chance.normal(6, 2, 12).tolist()
    facts = [fact(n, score) for n, score in enumerate(one)]
    facts += [fact(100 + n, score, shown=0) for n, score in enumerate(other)]
    found = contrast("all", facts).measure("score")
    assert found.given is not None
    assert found.difference is not None
    welch = ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    reach = student(11) * (np.var(one, ddof=1) / 30 + np.var(other, ddof=1) / 12) ** 0.5
    mean = np.mean(one) - np.mean(other)
    assert found.given.mean == pytest.approx(np.mean(one))
    assert (found.difference.low, found.difference.high) == pytest.approx((mean - reach, mean + reach), abs=1e-4)
    assert found.difference.high > welch.high


@pytest.mark.parametrize("runs", [1, 2])
def test_fewer_than_three_runs_have_a_mean_and_no_interval(runs: int) -> None:
    facts = [fact(n, 7.0 + n % 2, shown=0) for n in range(40)] + [fact(100 + n, 6.0 - n) for n in range(runs)]
    found = contrast("all", facts).measure("score")
    assert found.without is not None
    assert found.without.low is not None
    assert (found.given and found.given.mean, found.given and found.given.low) == (6.5 - runs / 2, None)
    assert (found.difference and found.difference.mean, found.difference and found.difference.low) == (
        -1 - runs / 2, None
    )  # fmt: skip


def test_runs_of_which_one_has_most_of_the_weight_have_no_interval() -> None:
    facts = [fact(n, 6.0 + n % 3, exposure=Exposure(shown=3, whole=0.9)) for n in range(20)]
    facts += [
        fact(100 + n, 5.0 + n, exposure=Exposure(shown=2, withheld=True, whole=0.999 if n == 0 else 0.1))
        for n in range(3)
    ]
    drawn = draws(facts)
    assert drawn is not None
    found = drawn.measure("score")
    assert (found.without and found.without.runs, found.without and found.without.low) == (3, None)


def test_the_interval_of_a_mean_has_possible_values_only() -> None:
    scores = [fact(n, score, repeats=n) for n, score in enumerate((9.9, 9.0, 10.0))]
    found = contrast("all", scores)
    score, repeats = found.measure("score").given, found.measure("repeats").given
    assert score is not None
    assert repeats is not None
    assert (score.high, repeats.low) == (10.0, 0.0)
    assert score.low is not None
    assert score.low < score.mean < 10


@pytest.mark.parametrize("runs", [2, 3, 40])
def test_equal_values_have_no_interval_and_are_never_called_certain(runs: int) -> None:
    report = made([fact(n, 0.1 + 7.0 * (n % 2), shown=n % 2) for n in range(2 * runs)])
    found = report.history.measure("score")
    assert (found.given and found.given.low, found.difference and found.difference.low) == (None, None)
    assert found.difference is not None
    assert found.difference.mean == pytest.approx(7.0)
    assert "is +7.00 (no interval)." in markdown(report)
    assert NO_INTERVAL in markdown(report)
    assert any(("fewer than 3 scored runs" in one) is (runs < 3) for one in report.limits if "has no interval" in one)
    assert any("the difference in score has no interval" in one for one in report.limits)
    assert not any("includes 0" in one for one in report.limits)


def test_one_run_is_in_the_singular() -> None:
    text = markdown(made([fact(1, 7.0), fact(2, 5.0, shown=0)]))
    assert "2 finished runs, 2 of them with a score. 1 was shown memories, 1 was not." in text
    assert "with history (1 run)" in text
    assert "1 scored run with history and 1 without are too little data" in text
    assert "without it is +2.00 (no interval)." in text
    assert "1 finished run, with a score. 1 was shown memories, 0 were not." in markdown(made([fact(1, 7.0)]))
    assert "1 run was shown it and from 1 a draw" in replace(MEMORY, runs_with=1, runs_without=1).why


def test_a_memory_with_too_little_data_says_so() -> None:
    assert replace(MEMORY, enough=False, runs_with=2).why == "2 runs were shown it: too little data for a conclusion."


def test_runs_that_are_not_compared_are_counted() -> None:
    assert list(limits_of_selection(10, 0, is_all=True, most_estimated=5_000)) == []
    cut, estimated = limits_of_selection(20_000, 1, is_all=True, most_estimated=5_000)
    assert cut == "There are 20,001 finished runs; the latest 20,000 are compared, and 1 earlier run is left out."
    assert "latest 5,000 runs alone" in estimated
    (others,) = limits_of_selection(10, 0, is_all=False, most_estimated=5_000)
    assert "over the workspace's latest 5,000 runs at most, of all periods and task types" in others


def test_a_measure_is_of_the_runs_that_have_it() -> None:
    found = contrast("all", [fact(1, 7.0, cost=2.0), fact(2, 5.0), fact(3, None, cost=4.0)])
    cost, score = found.measure("cost").given, found.measure("score").given
    assert (cost and cost.mean, cost and cost.runs) == (3.0, 2)
    assert (score and score.mean, score and score.runs) == (6.0, 2)
    assert found.measure("tokens").given is None


def test_a_difference_of_nothing_has_no_sign_of_less() -> None:
    report = made([fact(n, 7.0 - 0.0001 * (n % 2), shown=n % 2) for n in range(10)])
    assert "+0.00 (no interval)" in markdown(report)
    assert "-0.00" not in markdown(report)


def test_the_repeat_rate_is_the_share_of_all_issues_that_were_named_before() -> None:
    found = contrast("all", [fact(1, 7, issues=3, repeats=3), fact(2, 7, issues=7), fact(3, 7, shown=0, issues=0)])
    assert (found.repeat_rate, found.repeat_rate_without) == (0.3, None)


def test_first_versions_are_no_evidence_that_runs_without_history_repeat_less() -> None:
    first = [fact(n, 5.0, shown=0, repeats=None) for n in range(3)]
    report = made([*first, *(fact(10 + n, 6.0 + n, repeats=1) for n in range(3))])
    assert (report.history.repeat_rate, report.history.repeat_rate_without) == (0.5, None)
    assert report.history.measure("repeats").without is None
    assert any("nothing can be said about repeated mistakes" in one for one in made(first).limits)


def test_runs_whose_only_memory_a_draw_withheld_are_weighted_by_its_probability() -> None:
    """Each of them stands for nine others that the draw let have it."""
    drawn = Exposure(shown=0, withheld=True, whole=0.9, some=0.9)
    group, weight = by_history(fact(1, 5.0, exposure=drawn))
    assert not group
    assert weight == pytest.approx(10)
    assert by_history(fact(1, 5.0, exposure=Exposure(shown=1, whole=0.9, some=0.9)))[1] == pytest.approx(1 / 0.9)
    assert by_history(fact(1, 5.0, shown=0)) == (False, 1.0)


def test_weights_undo_that_some_runs_are_drawn_more_often() -> None:
    """Tasks with low scores are drawn more often here: the plain difference is far off, the weighted one is not."""
    chance = np.random.default_rng(2)
    facts = []
    for number in range(4_000):
        is_hard = number % 2 == 1
        whole = 0.3 if is_hard else 0.9
        withheld = chance.random() > whole
        score = 8 - 3 * is_hard - 0.5 * withheld + chance.normal() / 2
        facts.append(fact(number, score, exposure=Exposure(shown=3, withheld=bool(withheld), whole=whole)))
    plain = contrast("all", facts, lambda item: (not item.exposure.withheld, 1.0)).measure("score").difference
    weighted = contrast("all", facts, by_draw).measure("score").difference
    assert plain is not None
    assert weighted is not None
    assert plain.mean > 1.5
    assert weighted.mean == pytest.approx(0.5, abs=0.15)


def test_the_probability_of_a_run_is_that_of_its_recalls_together() -> None:
    found = exposures([
        slot("a", 1, propensity=0.95), slot("a", 2, propensity=0.95, shown=False),
        slot("a", 4, propensity=0.5, shown=False)._replace(is_next=True),
        slot("a", 3, query="r", propensity=0.8),
        slot("b", 1), slot("c", 1, propensity=0.9, shown=False),
    ])  # fmt: skip
    assert (found["a"].shown, found["a"].withheld, found["a"].some) == (2, True, None)
    assert found["a"].whole == pytest.approx(0.9 * 0.8)
    assert found["b"] == Exposure(shown=1)
    assert (found["c"].shown, found["c"].withheld) == (0, True)
    assert found["c"].whole == found["c"].some == pytest.approx(0.9)


def test_weeks_begin_on_monday_and_stand_in_their_order() -> None:
    found = weeks([fact(24 * day, 7.0) for day in (6, 7, 0)])
    assert [(item.label, item.given) for item in found] == [("2026-01-05", 2), ("2026-01-12", 1)]


def test_versions_stand_in_the_order_of_their_numbers_and_nameless_ones_are_left_out() -> None:
    found = versions([fact(n, 7.0, version=name) for n, name in enumerate(("v10", "v2", "", "v1"))])
    assert [item.label for item in found] == ["v1", "v2", "v10"]


def test_the_task_type_with_the_most_runs_stands_first() -> None:
    found = task_types([fact(n, 7.0, task_type=name) for n, name in enumerate(("a", "b", "b"))])
    assert [item.label for item in found] == ["b", "a"]


def test_without_runs_the_report_says_only_that() -> None:
    report = made([])
    assert report.limits == ("No finished run is in this period, so there is nothing to compare.",)
    assert "nothing to compare" in markdown(report)
    assert "Runs with history" not in markdown(report)


def test_ten_runs_are_too_few_for_a_conclusion() -> None:
    report = made([fact(n, 9.0 - n % 3, shown=n % 2) for n in range(10)])
    assert any("5 scored runs with history and 5 without are too little data" in one for one in report.limits)


def test_without_a_score_nothing_is_said_about_quality() -> None:
    assert any("No run has a final score" in one for one in made([fact(1, None), fact(2, None, shown=0)]).limits)


def test_many_runs_without_a_difference_say_that_they_show_none() -> None:
    chance = np.random.default_rng(3)
    report = made([fact(n, float(chance.normal(6, 1)), shown=n % 2) for n in range(400)])
    assert any("includes 0" in one for one in report.limits)


def test_many_runs_with_a_difference_still_prove_no_cause_without_draws() -> None:
    chance = np.random.default_rng(4)
    report = made([fact(n, float(chance.normal(5 + 2 * (n % 2), 1)), shown=n % 2) for n in range(400)])
    assert not any("too little data" in one or "includes 0" in one for one in report.limits)
    assert any("proves no cause" in one for one in report.limits)
    assert any("PRIORS_EXPLORE is 0" in one for one in report.limits)


def test_only_runs_that_chance_did_not_choose_are_called_so() -> None:
    drawn = [
        fact(n, 6.0, exposure=Exposure(shown=n % 2, withheld=n % 2 == 0, whole=0.5, some=0.5)) for n in range(40)
    ]  # fmt: skip
    assert not any("proves no cause" in one for one in made(drawn).limits)
    (told,) = (one for one in made([*drawn, fact(50, 6.0)]).limits if "proves no cause" in one)
    assert "were not all chosen by chance" in told


def test_runs_without_history_that_are_all_earlier_are_called_so() -> None:
    report = made([fact(n, 6.0, shown=int(n >= 20)) for n in range(40)])
    assert any("The runs without history are mostly the earlier ones" in one for one in report.limits)
    mixed = made([fact(n, 6.0, shown=n % 2) for n in range(40)])
    assert not any("mostly the earlier" in one for one in mixed.limits)


def test_draws_are_said_to_be_of_one_memory_and_counted() -> None:
    facts = [
        fact(n, 6.0 + n % 3, exposure=Exposure(shown=3, withheld=n % 10 == 0, whole=0.9)) for n in range(60)
    ]  # fmt: skip
    report = made(facts, explore=0.1)
    assert report.draws is not None
    assert any("one memory withheld" in one and "6 scored runs" in one for one in report.limits)


def test_a_cost_that_few_runs_name_is_said_so() -> None:
    report = made([fact(1, 7.0, cost=1.0), fact(2, 7.0, shown=0)])
    assert any("The cost is known of 1 of 2 runs" in one for one in report.limits)


def test_the_most_harmful_memories_are_the_surest() -> None:
    many = [replace(MEMORY, memory_id=UUID(int=n), high=-n / 100) for n in range(2 * TOP)]
    helpful, harmful = rank_effects(many)
    assert helpful == ()
    assert len(harmful) == TOP
    assert harmful[0].high == min(item.high for item in many)


@pytest.mark.parametrize("doubt", [{"enough": False}, {"basis": "observational"}, {"high": 0.3}])
def test_a_doubtful_memory_is_neither_helpful_nor_harmful(doubt: dict[str, Any]) -> None:
    good = replace(MEMORY, estimate=1.2, low=0.4, high=2.0)
    assert rank_effects([MEMORY, good]) == ((good,), (MEMORY,))
    assert rank_effects([replace(MEMORY, **doubt)]) == ((), ())


def test_a_memory_says_what_its_estimate_rests_on() -> None:
    assert "from 8 a draw withheld it: -1.2 points (-2.0 to -0.4)" in MEMORY.why
    assert "another cause may stand behind it" in replace(MEMORY, basis="observational").why


HOSTILE = "<script>alert(1)</script> | [click](http://x) `code`\n# not a heading"


def test_a_title_in_the_page_is_text_and_no_markup() -> None:
    report = made([fact(1, 7.0)], harmful=(replace(MEMORY, title=HOSTILE),), estimated_at=START)
    assert "<script>" not in page(report)
    assert "&lt;script&gt;" in page(report)


def test_a_title_in_markdown_is_text_in_one_line() -> None:
    report = made([fact(1, 7.0)], harmful=(replace(MEMORY, title=HOSTILE),), estimated_at=START)
    assert escape_marks(HOSTILE) in markdown(report)
    assert "\n# not a heading" not in markdown(report)


@pytest.mark.parametrize(
    "title", ["1. Setup", "12) Teardown", "+ x", "- - -", "-", "= x", "> x", "# x", "1.5 s", "-3 °C", "&copy; now"]
)
def test_a_title_that_could_begin_a_block_is_text(title: str) -> None:
    alert = Alert(case="c", title="t", severity=title, versions=("v1",), state="open")
    harmful = (replace(MEMORY, title=title),)
    report = made([fact(1, 7.0)], harmful=harmful, estimated_at=START, alerts=(alert,))
    assert f"<li>{escape(title)} (note" in page(report)
    assert f"<li>{escape(title)} “t” of c" in page(report)


def test_a_title_keeps_the_marks_that_begin_no_block() -> None:
    report = made([fact(1, 7.0)], harmful=(replace(MEMORY, title="1.5 s - 2. part + rest"),), estimated_at=START)
    assert "\n- 1.5 s - 2. part + rest (note" in markdown(report)


def test_a_wide_table_scrolls_and_not_the_page() -> None:
    (style,) = re.findall(r"^table \{(.+?)\}", page(made([fact(1, 7.0)])), re.MULTILINE)
    assert {"display: block", "overflow-x: auto"} <= {rule.strip() for rule in style.split(";")}


def test_both_documents_have_the_alerts_and_the_figures() -> None:
    alert = Alert(case="tea", title="No sources", severity="P0", versions=("v1", "v2", "v3"), state="open")
    report = made([fact(n, 6.0 + n % 3, shown=n % 2, version=f"v{n % 4}") for n in range(40)], alerts=(alert,))
    for text in (markdown(report), page(report)):
        assert "No sources" in text
        assert "v1, v2, v3" in text
    assert page(report).count("<table>") == 4


def test_a_report_of_one_run_can_be_rendered() -> None:
    report = made([fact(1, 7.0)])
    assert "7.00 (1 run)" in markdown(report)
    assert "7.00 (1 run)" in page(report)
