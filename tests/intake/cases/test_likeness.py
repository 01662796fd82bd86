"""Which issues of several versions are one: pure cases, and the figures of cases that no threshold was chosen by."""

import json
from uuid import uuid4

import numpy as np
import pytest

from app.foundation.models.protocols import EmbeddingProvider
from app.intake.cases.cases import MOST_STATEMENTS, Judgement, assemble_history, number_issues
from app.intake.cases.issue import IssueStatement, group_statements
from app.intake.cases.judgement import FoundIssue, FoundJudgement
from benchmarks.judgements import PHRASINGS, matched


@pytest.mark.meaning
@pytest.mark.parametrize(("split", "precision", "recall"), [("fit", 0.95, 0.82), ("held_out", 0.95, 0.78)])
async def test_statements_in_other_words_are_matched(
    provider: EmbeddingProvider, split: str, precision: float, recall: float
) -> None:
    cases = [case for case in json.loads(PHRASINGS.read_text()) if case["split"] == split]
    texts = [text for case in cases for issue in case["issues"] for text in issue]
    vectors = dict(zip(texts, await provider.embed_documents(texts), strict=True))
    found = matched(cases, vectors)
    assert found[0] >= precision
    assert found[1] >= recall


def test_two_statements_of_one_version_are_two_issues() -> None:
    vectors = np.eye(3, dtype=np.float32)[[0, 0, 0]]
    told = [
        IssueStatement(0, "No sources for prices"),
        IssueStatement(0, "No sources for shares"),
        IssueStatement(1, "No sources"),
    ]
    first, second, third = group_statements(told, vectors)
    assert first != second
    assert third in {first, second}


def test_a_case_with_very_many_issues_ends() -> None:
    def judged(version: int) -> Judgement:
        issues = tuple(FoundIssue(title=f"No {version}x{place}y") for place in range(500))
        return Judgement(judgement_id=uuid4(), found=FoundJudgement(case="a", version=f"v{version}", issues=issues))

    judgements = [judged(version) for version in range(200)]
    numbers = number_issues("a", judgements)
    assert len(numbers) == MOST_STATEMENTS
    assert {item.occurrences[0].version for item in assemble_history("a", judgements, numbers).issues} == {
        "v198",
        "v199",
    }


def test_the_same_words_of_two_judges_are_one_issue() -> None:
    told = [
        IssueStatement(0, "No sources for prices"),
        IssueStatement(0, "no sources for prices."),
        IssueStatement(1, "Typos"),
    ]
    assert group_statements(told) == [0, 0, 1]


def test_nothing_is_matched_of_nothing() -> None:
    assert group_statements([]) == []


def judged(version: str, *issues: FoundIssue, score: float | None = 5.0, lists: bool = True) -> Judgement:
    found = FoundJudgement(case="Tea", version=version, score=score, lists_issues=lists, issues=issues)
    return Judgement(judgement_id=uuid4(), found=found)


def test_silence_of_a_version_that_lists_issues_is_no_repair() -> None:
    issue = FoundIssue(title="No sources", severity="P1")
    told = [judged("v1", issue), judged("v2", lists=False), judged("v3")]
    (found,) = assemble_history("tea", told, number_issues("tea", told)).issues
    assert (found.status, found.state, found.resolved_in) == ("unnamed", "not named since v3", "")
    (found,) = assemble_history("tea", told[:2], number_issues("tea", told[:2])).issues
    assert found.status == "open"


def test_severity_is_the_worst_that_was_stated() -> None:
    told = [judged(f"v{at}", FoundIssue(title="No sources", severity=name)) for at, name in enumerate(("P2", "", "P0"))]
    (found,) = assemble_history("tea", told, number_issues("tea", told)).issues
    assert (found.severity, found.versions) == ("P0", ("v0", "v1", "v2"))


def test_versions_are_in_the_order_of_their_numbers() -> None:
    told = [judged(f"v{number}") for number in (10, 2, 1, 9)]
    assert [version.version for version in assemble_history("tea", told, {}).versions] == ["v1", "v2", "v9", "v10"]


def test_a_versions_score_is_the_mean_of_its_judges_and_not_of_lists() -> None:
    lists = FoundJudgement(case="Tea", version="v1", score=1.0, basis="listed")
    told = [judged("v1", score=6.0), judged("v1", score=7.0), Judgement(judgement_id=uuid4(), found=lists)]
    (version,) = assemble_history("tea", told, {}).versions
    assert (version.score, version.judges) == (6.5, 2)
