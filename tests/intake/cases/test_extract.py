"""What is found in files of other people's making: scores, verdicts, issues, cases and versions."""

import json
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from app.foundation.text.document import read_document
from app.foundation.text.scores import MOST_BETWEEN, versions_in
from app.intake.cases.extract_text import found_in_report
from app.intake.cases.judgement import (
    JUDGED,
    OPEN,
    REPORTED,
    RESOLVED,
    FoundIssue,
    FoundJudgement,
    case_key,
    named_in_path,
)
from benchmarks.judgements import as_stated
from tests.growth import assert_linear

AUDIT = """# Aave security review

## Impact

- High - leads to a significant loss of assets

# Findings

## [M-04] `adminSettleDebt()` could be called multiple times

**Severity:** Medium

The debt is settled twice.

| Issue | Severity |
| --- | --- |
| [M-04] `adminSettleDebt()` could be called multiple times | Medium |
"""


def found(name: str, content: Any) -> list[FoundJudgement]:
    text = content if isinstance(content, str) else json.dumps(content)
    return list(found_in_report(PurePosixPath(name), read_document(text, PurePosixPath(name).suffix)))


def one(name: str, content: Any) -> FoundJudgement:
    (only,) = found(name, content)
    return only


@pytest.mark.parametrize(
    ("content", "score"),
    [
        ({"score": 6.3, "verdict": "fail"}, 6.3),
        ({"total_score": "5.8/10"}, 5.8),
        ({"scores": {"overall": 6.3, "depth": 9}}, 6.3),
        ({"evaluation": {"result": {"overall": {"score": 63, "max": 100}}, "decision": "fail"}}, 6.3),
        ({"judge_score": 0.63, "judge_passed": False}, 6.3),
        ({"overall_score": "63%"}, 6.3),
        ({"finalScore": 6.3, "criteria_scores": {"functional": {"score": 1.0, "max": 3.5}}}, 6.3),
        ("---\nscore: 6.3\n---\n\n# Judgement\n", 6.3),
        ("# Judgement\n\n**Overall score: 6.3/10**\n", 6.3),
        ("# Judgement\n\n| Metric | Value |\n| --- | --- |\n| Score | 0.63 |\n| Grade | B |\n", 6.3),
        ("# Judgement\n\n- **Total score:** 6,3 / 10\n", 6.3),
    ],
)  # fmt: skip
def test_scores_of_any_form_are_on_the_scale_of_ten(content: Any, score: float) -> None:
    name = "reports/tea-china/v3/judgement." + ("md" if isinstance(content, str) else "json")
    judgement = one(name, content)
    assert judgement.score == pytest.approx(score)
    assert (judgement.version, case_key(judgement.case)) == ("v3", "tea-china")


def test_every_field_is_read() -> None:
    judgement = one("x.json", {
        "meta": {"testCase": "Tea China", "version": "v3", "evaluatedAt": "2026-03-01"},
        "result": {"scores": {"overall": 6.3}, "verdict": "FAIL", "grade": "C", "reasoning": "None.", "judge": "m1"},
        "issues": [{"title": "No method", "severity": "critical", "detail": "Again.", "status": "open"}],
    })  # fmt: skip
    assert (judgement.case, judgement.version, judgement.verdict, judgement.grade) == ("Tea China", "v3", "FAIL", "C")
    assert (judgement.passed, judgement.judge, judgement.summary) == (False, "m1", "None.")
    assert judgement.judged_at is not None
    assert judgement.issues == (FoundIssue(title="No method", detail="Again.", severity="P0"),)


@pytest.mark.parametrize(
    ("path", "case", "version"),
    [
        ("tea-china-v3-judgement.json", "tea-china", "v3"),
        ("reports/bads-russia/v7/judgement.json", "bads-russia", "v7"),
        ("raw/T0/00/run_01/judge/judge_01/judgment.json", "t0-00", "run-1"),
        ("bads-russia/calibration/score_history.json", "bads-russia", ""),
        ("2026-03/tea-china/judgement-v2.md", "tea-china", "v2"),
        ("reports/BADs Russia/version 3/final judgement.md", "bads-russia", "v3"),
        ("tea-china-2026-01-12-judgement.json", "tea-china", ""),
        ("case-12/v3/report.md", "case-12", "v3"),
        ("reports/v3/judgement.json", "unnamed", "v3"),
        ("weekly/w11_judgement.json", "weekly", "w11"),
        ("acme/2025-02-12_memo_K1.md", "acme", "k1"),
        ("podcast/pilot2_runlog.md", "podcast", "pilot-2"),
        ("trials/t3/verdict.json", "trials", "t3"),
        ("study/week-3/judgement.md", "study", "week-3"),
        ("t0/00/run-1/judgement.json", "t0-00", "run-1"),
        ("019aa3f1-a123-7b12-b456-0123456789ab", "unnamed", ""),
    ],
)
def test_case_and_version_are_named_by_the_path(path: str, case: str, version: str) -> None:
    named, found_version = named_in_path(path.split("/"))
    assert (case_key(named), found_version) == (case, version)


def test_objections_in_other_words_are_issues_with_their_severities() -> None:
    faults = [{"what": "Start date rests on one article", "gravity": "stopper"},
              {"objection": "Means are given without spread", "weight": "slight"}]  # fmt: skip
    judgement = one("weekly/w12_judgement.json", {"issue": "Weekly, week 12", "overall": 6.0, "faults": faults})
    assert (judgement.case, judgement.version, judgement.score) == ("weekly", "w12", 6.0)
    assert [(issue.title, issue.severity) for issue in judgement.issues] == [
        ("Start date rests on one article", "P0"), ("Means are given without spread", "P3"),
    ]  # fmt: skip


def test_a_tracker_says_in_which_versions_an_issue_was_seen_and_since_when_it_is_gone() -> None:
    faults = [{"name": "unit mix-ups", "seen": ["w11", "w12"], "state": "gone", "since": "w13"},
              {"name": "alt text", "seen": ["w15"], "state": "live", "since": None}]  # fmt: skip
    gone, live = one("weekly/fault_tracker.json", {"faults": faults}).issues
    assert (gone.status, gone.versions, gone.since) == ("resolved", ("w11", "w12"), "w13")
    assert (live.status, live.versions, live.since) == ("open", ("w15",), "")


def test_a_grade_that_is_a_number_is_the_score_and_a_date_may_have_its_day_first() -> None:
    judgement = one("acme/memo_R2.md", '---\ngrade: "4,9"\ndate: 19.03.2025\n---\n# Memo\n\nBoth offers were read.\n')
    assert (judgement.score, judgement.judged_at) == (4.9, datetime(2025, 3, 19, tzinfo=UTC))


def test_a_title_names_the_case_where_no_path_does() -> None:
    judgement = one("judgement.json", {"title": "BADs Russia, v6: judgement", "score": 3.2})
    assert (judgement.case, judgement.version) == ("BADs Russia", "v6")


def test_versions_are_read_with_their_ranges() -> None:
    assert list(versions_in("Seen in v2 to v5 and V7; round 3")) == ["v2", "v3", "v4", "v5", "v7", "round-3"]
    assert list(versions_in("baseline-eval-run-2026-01-23")) == []
    assert list(versions_in("a savoury v-shaped valley, 12 of them")) == []


def test_issues_of_any_form_keep_severity_and_status() -> None:
    text = """# Judgement

**Overall score: 6.3/10**

## Issues

- **[P0]** No sources for prices
  They are still guessed.
- P1: TAM without methodology (recurring)
- [x] Typos in the summary

### P2

1. Charts have no axis labels

## Fixed since v3

- Missing executive summary

## Summary

- Not an issue at all

| Issue | Severity | Status |
| --- | --- | --- |
| Old data | high | open |
| Broken links | low | fixed |
"""
    issues = one("tea/v4/judgement.md", text).issues
    assert [(item.title, item.severity, item.status) for item in issues] == [
        ("No sources for prices", "P0", OPEN), ("TAM without methodology", "P1", OPEN),
        ("Typos in the summary", "", RESOLVED), ("Charts have no axis labels", "P2", OPEN),
        ("Missing executive summary", "", RESOLVED), ("Old data", "P1", OPEN), ("Broken links", "P3", RESOLVED),
    ]  # fmt: skip
    given = {"P0": ["No sources"], "P2": [{"name": "Typos", "resolved": True}]}
    judgement = one("tea/v4/judgement.json", {"score": 5, "issues": given, "resolved_issues": ["Old data"],
                                              "minor_issues": [{"issue": "Fonts", "status": "not fixed"}]})  # fmt: skip
    assert [(item.title, item.severity, item.status) for item in judgement.issues] == [
        ("No sources", "P0", OPEN), ("Typos", "P2", RESOLVED), ("Old data", "", RESOLVED), ("Fonts", "P3", OPEN),
    ]  # fmt: skip


def test_a_list_of_known_issues_names_versions_and_what_resolved_them() -> None:
    text = (
        "# Tea: known issues\n\n## P0: weak sources\n\nSeen in v3 to v5. Mended in v7: a source needs a date.\n\n"
        "## P1: TAM without methodology (recurring)\n\nSeen in v2, v3 and v6. The v7 report shows it.\n"
    )
    sources, sizing = one("tea/known_issues.md", text).issues
    assert (sources.versions, sources.status, sources.since) == (("v3", "v4", "v5"), RESOLVED, "v7")
    assert (sizing.versions, sizing.status, sizing.severity) == (("v2", "v3", "v6"), OPEN, "P1")
    listed = one("tea/known_issues.json", {"issues": [{"priority": "P2", "title": "Dogs", "seen_in": "v1, v2"}]})
    assert listed.issues[0].versions == ("v1", "v2")


@pytest.mark.parametrize(
    "content",
    [
        {"history": [{"version": "v1", "score": 4.1}, {"version": 2, "score": 4.8}]},
        {"scores": {"v1": 4.1, "v2": 4.8}},
        {"v1": {"score": 4.1}, "v2": {"score": 4.8}},
        [{"version": "v1", "final_score": 4.1}, {"version": "v2", "final_score": 4.8}],
        "# Scores\n\n| Version | v1 | v2 |\n| --- | --- | --- |\n| Score | 4.1 | 4.8 |\n",
        "# Scores\n\n| Version | Date | Score |\n|---|---|---|\n| v1 | 2026-01-01 | 4.1/10 |\n| 2 | 2026-02-01 | 4.8 |",
    ],
)
def test_a_score_history_is_a_judgement_of_each_version(content: Any) -> None:
    name = "tea/calibration/score_history." + ("md" if isinstance(content, str) else "json")
    assert [(item.version, item.score) for item in found(name, content)] == [("v1", 4.1), ("v2", 4.8)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.md", "# App\n\nScore: 4.5/5 stars. Status: done\n\n- low: the battery\n"),
        ("apps.md", f"# App\n\nScore: 4.5/5\n\n{'It is a fair app for people who travel. ' * 3}\n"),
        ("app_v2.md", "# App v2\n\n## Review of users\n\n- low: the battery\n- High: the price\n"),
        ("report.md", "# Report\n\n| Run | Score | Grade |\n| --- | --- | --- |\n| all | 0.97 | A |\n"),
        ("brands.md", "# Brands\n\n| Name | Level |\n| --- | --- |\n| Evalar | high |\n"),
        ("config.json", {"version": "2.0", "max_score": 10, "status": "completed", "model": "m"}),
        ("plot.vl.json", {"$schema": "vega-lite", "data": {"values": [{"score": 1, "passed": True}]}}),
        ("checkpoint.json", {"completed_runs": {"T3": {"01": {"1": "passed"}}}, "version": "2.0"}),
        ("table.json", [{"tier": "T0", "score": 0.9}, {"tier": "T1", "score": 0.8}]),
        ("list.json", [1, 2, 3]),
        ("Aave-security-review.md", AUDIT),
        ("team/reviews/assessment_2026-01-23.md", AUDIT),
        ("sprint-4/quality.md", "# Quality\n\n## Issues\n\n- High: the filter keeps stop words\n"),
    ],
)
def test_what_judges_nothing_gives_nothing(name: str, content: Any) -> None:
    assert found(name, content) == []


def test_a_file_that_repeats_a_score_is_no_judge() -> None:
    facts = {"score": 0.97, "passed": True}
    bases = [one(f"t1/run_01/{name}.json", facts).basis for name in ("judgment", "run_result")]
    assert bases == [JUDGED, REPORTED]
    assert one("t1/run_01/output.json", {**facts, "issues": ["No sources"]}).basis == JUDGED


def test_deep_and_hostile_documents_end() -> None:
    deep: Any = {"score": 3, "verdict": "fail"}
    for _ in range(60):
        deep = {"a": deep}
    assert found("judgement.json", deep) == []
    many = {"judges": [{"score": 5, "verdict": "fail"}] * 2_000}
    assert len(found("judgement.json", many)) == 500
    assert one("judgement.json", {"score": 5, "issues": [f"issue {letter}" for letter in "ab" * 600]}).issues[499:500]
    found("judgement.md", "- **[P0]** " * 20_000)
    found("judgement.md", "| a " * 50_000)


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("Score: 5", " ", "x|y"),
        ("Score: 5", "* ", "x|y"),
        ("", "_", ""),
        ("# Report", " #", " x"),
        ("## Issues\n- No sources", " ", "x"),
        ("---\nverdict: fail\nscore: '5", " ", "x'\n---\n"),
        ("# Judge\n\nThe issue of ", "a ", "since v1 is fixed"),
        ("## Issues\n\n- P1: a, ", "not v1 ", "."),
        ("# Judge\n\n", "P1 ", "Judge:"),
        ("", "\n ", "Plan for v2: x"),
    ],
)
def test_lines_of_blanks_and_marks_are_read_in_linear_time(before: str, piece: str, after: str) -> None:
    # The small text first, so that the test ends even if the time is cubic.
    assert_linear(lambda text: found("judgement.md", f"{before}{text}{after}\n"), piece, characters=300)
    assert_linear(lambda text: found("judgement.md", f"{before}{text}{after}\n"), piece, characters=2_000)


def test_a_text_of_ranges_names_a_limited_number_of_versions() -> None:
    assert len(list(versions_in("v1-v99 " * 13_000))) < 13_000 * 2 + MOST_BETWEEN


def test_the_judgments_of_a_real_pipeline_are_read_as_their_json_states_them(shared_data: Path) -> None:
    assert as_stated(shared_data / "reports-scylla") == (21, 21)
