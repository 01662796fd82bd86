"""The states of issues over versions, the spellings of versions, the names of cases, and the notes: all pure."""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from app.foundation.text.document import read_document
from app.foundation.text.scores import spellings, version_in
from app.intake.cases.cases import (
    CaseHistory,
    CaseIssue,
    Judgement,
    assemble_history,
    number_issues,
    unify_version_spellings,
)
from app.intake.cases.extract import case_of_run, in_run
from app.intake.cases.extract_text import found_in_report
from app.intake.cases.issue import issue_of, title_and_rest
from app.intake.cases.judgement import OPEN, RESOLVED, SILENT, FoundJudgement, case_key, named_in_path, named_in_task
from app.intake.cases.service import issues_text, score_text
from app.intake.runs.run import NewRun
from tests.growth import assert_linear


def found_in(name: str, text: str) -> tuple[FoundJudgement, ...]:
    return found_in_report(PurePosixPath(name), read_document(text, PurePosixPath(name).suffix))


def history(files: Mapping[str, Any]) -> CaseHistory:
    """Returns the history of the one case that these files are of; words alone tell which issues are the same."""
    found = [
        (name, item)
        for name, content in files.items()
        for item in found_in(name, content if isinstance(content, str) else json.dumps(content))
    ]
    assert len({case_key(item.case) for _, item in found}) == 1, [(name, item.case) for name, item in found]
    judgements = unify_version_spellings(
        [
            Judgement(judgement_id=UUID(int=number), found=item, source=name)
            for number, (name, item) in enumerate(found, 1)
        ]
    )
    return assemble_history("tea", judgements, number_issues("tea", judgements))


def test_a_version_that_is_named_as_its_run_has_the_name_of_the_run() -> None:
    found = [
        found_in("v1/judge.json", json.dumps(judged("P1: No source", version="run-57"))),
        found_in("v2/judge.json", json.dumps(judged("P1: No source", version="run-058"))),
    ]
    judgements = [
        Judgement(judgement_id=UUID(int=number), found=item, source="", run_id=run)
        for number, ((item,), run) in enumerate(zip(found, ("run-057", "run-058"), strict=True), 1)
    ]
    assert [item.found.version for item in judgements] == ["run-57", "run-58"]
    named = unify_version_spellings(judgements)
    case = assemble_history("tea", named, number_issues("tea", named))
    assert [version.version for version in case.versions] == ["run-057", "run-058"]
    assert [item.versions for item in case.issues] == [("run-057", "run-058")]


def issue(case: CaseHistory, words: str) -> CaseIssue:
    (found,) = [item for item in case.issues if words in item.title]
    return found


def judged(*issues: str, **fields: Any) -> dict[str, Any]:
    return {"score": 5, "verdict": "revise", "issues": list(issues), **fields}


V1 = judged("P1: No method for the market size", "P2: Old prices of kiosks", "P2: Charts without units")


def test_silence_is_not_a_repair_and_a_text_is() -> None:
    case = history({
        "tea/v1.json": V1,
        "tea/v2.json": judged("P2: Charts without units", resolved=["Old prices of kiosks are replaced by new ones."]),
    })  # fmt: skip
    assert issue(case, "method").state == "not named since v2"
    assert issue(case, "Old prices").state == "resolved in v2 (Old prices of kiosks are replaced by new ones)"
    assert issue(case, "Charts").state == "open"
    last = case.versions[-1]
    assert (len(last.resolved), len(last.unnamed), len(last.recurring), last.opened) == (1, 1, 1, ())


def test_what_a_later_version_broke_again_is_reopened() -> None:
    case = history({
        "tea/v1.json": V1,
        "tea/v2.json": judged("Old prices", resolved=["No method for the market size"]),
        "tea/v3.json": judged("P0: REOPENED: the method for the market size is gone. A merge lost the sheet."),
    })  # fmt: skip
    method = issue(case, "No method")
    assert (method.state, method.resolved_in, method.severity) == ("reopened in v3", "v2", "P0")
    assert case.issues[0] is method
    assert method.is_open


def test_an_issue_that_calls_itself_reopened_is_so_without_its_past() -> None:
    (found,) = history({"tea/v3.json": judged("Stamps without offset are back")}).issues
    assert found.state == "reopened in v3"


@pytest.mark.parametrize(
    "title", ["Customers who never come back are not explained", "Money-back offers missing", "Prices are back-tested"]
)
def test_what_only_has_such_words_is_not_reopened(title: str) -> None:
    assert history({"tea/v3.json": judged(title)}).issues[0].status == OPEN


KEPT = """# Known issues of tea (kept by hand, last touched after v5)

**Open**
- Blame in the factors. v4, v5. Writers fall back to old words.

**Fixed**
- Mixed time zones. v1, v2, v3; fixed in v4 by the guard in the loader.
- Owners missing on action items. v1, v2; since v3 every row has a name.

**Quiet**
- Impact without a counting method: marked in v1 and v2, not named since v3. Nobody wrote down that it was fixed.
"""


def test_a_list_kept_by_hand_says_where_issues_were_and_how_they_ended() -> None:
    case = history({"tea/known_issues.md": KEPT})
    assert {(item.title, item.state, item.versions) for item in case.issues} == {
        ("Blame in the factors", "open", ("v4", "v5")),
        ("Mixed time zones", "resolved in v4 by the guard in the loader", ("v1", "v2", "v3")),
        ("Owners missing on action items", "resolved in v3 (every row has a name)", ("v1", "v2")),
        ("Impact without a counting method", "not named since v3", ("v1", "v2")),
    }


TABLE = """# Known issues

| issue | named in | state |
|---|---|---|
| same people on both sides | v1, v2 | fixed in v4, folds by household |
| single seed | v1, v2 | done in v4 (5 x 5) |
| accuracy is no help | v1 | replaced by recall in v2 |
| eyes weak | v4, v5 | explained, not solved |
| no test | v4 | not named in v5, and nobody ran one; still open in our view |
"""


def test_states_of_a_table_are_read_with_their_versions() -> None:
    case = history({"tea/known_issues.md": TABLE})
    assert {item.title: item.state for item in case.issues} == {
        "same people on both sides": "resolved in v4 (folds by household)",
        "single seed": "resolved in v4 (5 x 5)",
        "accuracy is no help": "resolved in v2 by recall in v2",
        "eyes weak": "open",
        "no test": "not named since v5",
    }
    points = [{"issue": "wrong commit quoted", "seen_in": ["v1"], "status": "fixed in v2 by pinning"},
              {"issue": "no matrix", "seen_in": ["v1"], "status": "silent since v3, so it is not fixed"}]  # fmt: skip
    case = history({"tea/open_points.json": {"points": points}})
    assert [item.state for item in case.issues] == ["resolved in v2 by pinning", "not named since v3"]


def test_reports_declare_issues_resolved_in_prose() -> None:
    text = (
        "# Tea, round v4\n\n## Proofs\n\nThe pipeline refuses a finding without a test. "
        "The complaint about unproven findings, open since v1, is herewith **fixed**.\n\n"
        "Time zones: FIXED. Every stamp passes the guard. The issue had been open since v1.\n\n"
        "The issue with old prices is not fixed. Once the issue of units is fixed, we go on.\n"
    )
    (found,) = found_in("tea/v4_report.md", text)
    assert [(item.title, item.status, item.versions, item.how) for item in found.issues] == [
        ("unproven findings", RESOLVED, ("v1",), "The pipeline refuses a finding without a test"),
        ("Time zones", RESOLVED, ("v1",), "Every stamp passes the guard"),
    ]


REPORT = """# Tea, audit round v2

## Findings in short

1. High: the vault can be drained.

## What the judge said

**P0 again:** exploits are told, not shown. Only one can be run.

P1: no matrix of severities. P2: gas remarks are mixed in.

## Plan for v3

- Show exploits.
- Add a matrix.
"""


def test_what_the_judge_says_counts_beside_the_texts_own_findings() -> None:
    (found,) = found_in("tea/r2_report.md", REPORT)
    assert [(item.severity, item.title) for item in found.issues] == [
        ("P0", "exploits are told, not shown"), ("P1", "no matrix of severities"), ("P2", "gas remarks are mixed in"),
    ]  # fmt: skip
    assert (found.version, found.lists_issues, found.advice) == ("r2", True, "Show exploits. Add a matrix.")


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("No sources for prices.", "No sources for prices", ""),
        ("Overlap remains: 38% of the test patients were already seen in training, which a date does not cure.",
         "Overlap remains", "38% of the test patients were already seen in training, which a date does not cure."),
        ("Zone drift of one hour. Row 9 stands before its cause.", "Zone drift of one hour",
         "Row 9 stands before its cause."),
        ("Cause without evidence: seen in v1.", "Cause without evidence", "seen in v1."),
        ("Data: all of the rows are wrong", "Data: all of the rows are wrong", ""),
    ],
)  # fmt: skip
def test_titles_are_the_first_sentence_or_clause(text: str, title: str, rest: str) -> None:
    assert title_and_rest(text) == (title, rest)


def test_a_long_sentence_is_cut_at_a_word_and_kept_whole_in_the_detail() -> None:
    text = "the report takes its invariants from the README of the client which promises things that no code does"
    title, rest = title_and_rest(text)
    assert len(title) <= 80
    assert text.startswith(f"{title} ")
    assert rest == f"{text}."


@pytest.mark.parametrize(
    "line", ["P0: REOPENED: same people", "[P0] again, same people", "**P0** Re-opened same people"]
)
def test_severities_and_what_calls_it_reopened_are_no_title(line: str) -> None:
    found = issue_of(line)
    assert found is not None
    assert (found.severity, found.title) == ("P0", "same people")


def test_a_state_in_the_future_is_none() -> None:
    found = issue_of("Risks are too high", detail="A later step would fix it. Not named are the sources.")
    assert found is not None
    assert (found.status, found.since) == (OPEN, "")
    silent = issue_of("Risks are too high (not named since v3)")
    assert silent is not None
    assert (silent.status, silent.since) == (SILENT, "v3")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("r1", "r1"), ("R2 review", "r2"), ("exp_v3", "v3"), ("exp-04", "exp-4"), ("round 3", "round-3"),
        ("iteration 4", "iteration-4"), ("attempt_5", "attempt-5"), ("draft 2", "draft-2"), ("third draft", "draft-3"),
        ("Second round", "round-2"), ("Round two", "round-2"), ("Second round in a row", ""), ("r2d2", ""),
        ("PR12", ""), ("a round table", ""),
    ],
)  # fmt: skip
def test_versions_are_named_in_many_ways(text: str, version: str) -> None:
    assert version_in(text) == version


@pytest.mark.parametrize(
    ("path", "case", "version"),
    [
        ("noshow/exp_v3.md", "noshow", "v3"),
        ("noshow/exp_v5_long.md", "noshow", "v5"),
        ("noshow/exp-04.json", "noshow", "exp-4"),
        ("harborline/r1_judgement.json", "harborline", "r1"),
        ("inc-2041/v2_round.md", "inc-2041", "v2"),
        ("tea/third-draft/judgement.json", "tea", "draft-3"),
        ("v3-tea-china.json", "tea-china", "v3"),
    ],
)
def test_generic_words_of_paths_name_no_case(path: str, case: str, version: str) -> None:
    named, found = named_in_path(path.split("/"))
    assert (case_key(named), found) == (case, version)


@pytest.mark.parametrize(
    ("task", "case"),
    [
        ("Evaluate BADs Russia v2", "BADs Russia"),
        ("Plan the next run of BADs Russia", "BADs Russia"),
        ("Score draft v6 of BADs Russia", "BADs Russia"),
        ("Judge the third draft of BADs Russia", "BADs Russia"),
        ("Plan and run the next experiment on BADs Russia", "BADs Russia"),
        ("BADs Russia, round 3", "BADs Russia"),
        ("v2 of BADs Russia", "BADs Russia"),
        ("Market report on tea in China", "Market report on tea in China"),
        ("Run tests", "Run tests"),
        ("Plan", "Plan"),
    ],
)
def test_a_task_names_its_case_without_what_is_to_be_done(task: str, case: str) -> None:
    assert named_in_task(task) == case


@pytest.mark.parametrize("piece", [", ", "the ", "plan ", "draft ", "- "])
def test_tasks_are_read_in_linear_time(piece: str) -> None:
    assert_linear(lambda text: named_in_task(f"Plan {text}x"), piece, characters=2_000)


def test_runs_are_of_one_case_whatever_names_their_version() -> None:
    runs = (
        NewRun(run_id="a", task="Evaluate BADs Russia v2", final_score=5),
        NewRun(run_id="bads-russia-v1", task="whatever", final_score=4),
        NewRun(run_id="b", final_score=6, metadata={"case": "BADs Russia", "version": "v3"}),
        NewRun(run_id="c", task="Score draft 4 of BADs Russia", final_score=7),
    )
    found = [in_run(run.run_id, run) for run in runs]
    named = [(case_key(item.case), item.version) for item in found if item is not None]
    assert named == [("bads-russia", version) for version in ("v2", "v1", "v3", "draft-4")]


def test_a_task_says_more_of_the_case_than_a_short_id() -> None:
    assert case_of_run("bads-v1", "BADs Russia v1", {}) == ("BADs Russia", "v1")
    assert case_of_run("bads-v2", "Judge v2 of the report", {}) == ("bads", "v2")


def test_a_task_without_a_version_makes_no_case() -> None:
    assert case_of_run("run-8f2c", "Market report on tea in China", {}) == ("", "")
    assert case_of_run("job-b3", "Market report on tea in China", {}) == ("", "")
    assert case_of_run("run-8f2c", "Tea in China", {"version": "2"}) == ("Tea in China", "v2")


def test_one_number_in_several_spellings_is_one_version() -> None:
    named = [("r1", 4.6), ("v1", None), ("round-1", None), ("v2", 5.0), ("r2", 5.0)]
    assert spellings(named) == {"r1": "r1", "v1": "r1", "round-1": "r1", "v2": "r2", "r2": "r2"}


def test_runs_of_a_version_are_no_versions() -> None:
    found = spellings([("v1", 4.0), ("run-1", 7.0), ("v2", 5.0), ("run-2", None)])
    assert found == {name: name for name in ("v1", "run-1", "v2", "run-2")}


def test_the_spelling_seen_first_is_shown() -> None:
    case = history({
        "tea/r1_judgement.json": judged("No sources"),
        "tea/score_history.json": {"rounds": [{"round": "v1", "score": 5, "why": "thin"}, {"round": "v2", "score": 6}]},
        "tea/v2_round.md": "---\nscore: 6\n---\n\n## Issues\n\n- No sources\n",
    })  # fmt: skip
    assert [(item.version, item.score, item.summary) for item in case.versions] == [("r1", 5, "thin"), ("v2", 6, "")]
    assert issue(case, "No sources").versions == ("r1", "v2")


def test_the_note_says_what_is_open_then_advice_then_what_is_over() -> None:
    case = history({
        "tea/v1.json": V1,
        "tea/v2.json": judged("P2: Charts without units", date="2026-01-05",
                             resolved=["No method for the market size"]),
        "tea/v3.json": judged(
            "P2: Charts without units. Axes too. A third sentence.", "P1: REOPENED: No method for the market size",
            score=6.5, next="Show the method. Name the units.", date="2026-02-05", summary="Better. Yet thin.",
        ),
    })  # fmt: skip
    assert issues_text(case).splitlines() == [
        "tea, latest judged version v3 (2026-02-05): 6.5 (+1.5), revise. Earlier scores: v1 5.0, v2 5.0.",
        "- No method for the market size: reopened in v3 after being resolved in v2, P1, in v1 and v3",
        "- Charts without units: open, P2, in v1, v2 and v3. Axes too. A third sentence.",
        "- Advice in v3: Show the method. Name the units.",
        "- Old prices of kiosks: not named since v2, P2, in v1",
    ]
    assert score_text(case).splitlines()[:3] == [
        "3 judged versions, scores from 5.0 to 6.5 of 10; the latest first:",
        "- v3 (2026-02-05): 6.5 (+1.5), revise. Better. Yet thin",
        "- v2 (2026-01-05): 5.0 (+0.0), revise",
    ]


def test_a_case_of_one_version_has_a_note_of_its_issues_and_none_without() -> None:
    assert "open" in issues_text(history({"tea/v1.json": V1}))
    case = assemble_history(
        "tea", [Judgement(judgement_id=UUID(int=1), found=FoundJudgement(case="tea", version="v1"))], {}
    )
    assert issues_text(case) == ""
