"""Shows, before an agent acts, what a judge marked the earlier versions of its case down for."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from app.errors import NotFound
from app.foundation.models.protocols import TokenCounter
from app.foundation.safety.scan import blocking, scan
from app.foundation.text.prose import sentences_of
from app.foundation.text.words import content_words
from app.intake.cases import store as judgements
from app.intake.cases.cases import CaseHistory, CaseIssue
from app.intake.cases.judgement import REOPENED, case_key
from app.intake.cases.service import Cases, issue_line
from app.intake.runs import store as runs
from app.recall.retrieval.rank.asking import case_of
from app.storage.tenants.workspace import NOBODY, Workspace

_MOST_CASES = 200
"""Cases, the latest judged, among which the plan's is looked for."""
_MOST_ISSUES = 500
"""Open issues among which one that is about the plan is looked for where nothing names a case."""
_READ = 20_000
"""Characters of a plan whose sentences are compared with the titles of issues."""
_MOST_SHOWN = 3
"""Issues that are shown before an act; a check shows all of them."""
_RECURRING = 2
"""Versions from which an issue of P3 is shown."""
_SHARED_WORDS = 2
"""Content words that an issue's title and a sentence of a plan share at least where the issue is about it."""
_OTHER_CASE_WORDS, _OTHER_CASE_SHARE = 3, 0.6
"""Content words of a title, and the share of them in one sentence of a plan, from which an issue of a case that nothing
names is shown: "a blog is no source for a price" has three, and a plan with two of them is about it."""


class JudgedIssue(Struct, frozen=True, kw_only=True, rename={"issue_id": "id"}):
    """An open issue of the case that a plan continues."""

    issue_id: UUID
    case: str
    title: str
    severity: str
    versions: tuple[str, ...]
    statement: str
    """The fault, its state, and the score that it cost."""


class PlannedCase(NamedTuple):
    """The case that a plan continues."""

    history: CaseHistory
    of_run: bool
    """True where the plan's run is of the case; else its words name it, or one of its issues."""


async def case_of_plan(
    cases: Cases, workspace: Workspace, plan: str, *, run_id: str | None, task_type: str = ""
) -> PlannedCase | None:
    """Returns the case of a plan: that of its run, or else the one that its words name; None if it has none.

    A plan of no run and no task type is of the case with an open issue that one of its sentences repeats.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    name = await _case_name(cases, workspace, run_id) if run_id else ""
    if name:
        return await _planned_case(cases, workspace, name, of_run=True)
    async with cases.database.session(workspace.of(NOBODY), transaction=False) as session:
        names = await judgements.names(session, limit=_MOST_CASES)
        found = case_of(f"{plan} {task_type}", names, {})
        name = found.name if found else ""
        if names and not (found or run_id or task_type):
            stated = await judgements.open_issues(session, names, limit=_MOST_ISSUES)
            said = [content_words(sentence) for sentence in sentences_of(plan[:_READ])]
            name = next((case for case, title in stated if _repeats(said, title)), "")
    return await _planned_case(cases, workspace, name, of_run=False)


async def case_of_run(cases: Cases, workspace: Workspace, run_id: str) -> PlannedCase | None:
    """Returns the judged case that a run is of; None if it is of none.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    name = await _case_name(cases, workspace, run_id)
    return await _planned_case(cases, workspace, name, of_run=True)


async def _case_name(cases: Cases, workspace: Workspace, run_id: str) -> str:
    async with cases.database.session(workspace, transaction=False) as session:
        name, _ = await runs.case_of(session, run_id)
    return name


async def _planned_case(cases: Cases, workspace: Workspace, name: str, *, of_run: bool) -> PlannedCase | None:
    if not name:
        return None
    try:
        return PlannedCase(history=await cases.get(workspace.of(NOBODY), case_key(name)), of_run=of_run)
    except NotFound:
        return None  # the run is of a case that nobody has judged yet, or it was deleted meanwhile


def open_issues(history: CaseHistory) -> Iterator[JudgedIssue]:
    """Yields the open issues that are worse than P3 or recur, the worst first."""
    for issue in history.issues:
        recurs = len(issue.versions) >= _RECURRING or issue.status == REOPENED
        if issue.is_open and (recurs or issue.severity != "P3"):
            yield JudgedIssue(
                issue_id=issue.issue_id,
                case=history.title,
                title=issue.title,
                severity=issue.severity,
                versions=issue.versions,
                statement=". ".join(filter(None, (issue_line(issue).removeprefix("- "), _cost(history, issue)))),
            )


def _cost(history: CaseHistory, issue: CaseIssue) -> str:
    """Returns which version was marked down for an issue, the latest that has a score; empty without one."""
    scores = {version.version: version.score for version in history.versions if version.score is not None}
    version = next((name for name in reversed(issue.versions) if name in scores), "")
    name = f"version {version[1:]}" if version[:1] == "v" and version[1:2].isdigit() else version
    return f"{name} was marked down for this, {scores[version]:.1f}" if version else ""


def is_about(title: str, words: frozenset[str]) -> bool:
    """Tells whether an issue's title shares enough with the content words of a text to be about it."""
    return len(content_words(title) & words) >= _SHARED_WORDS


def _repeats(said: Sequence[frozenset[str]], title: str) -> bool:
    """Tells whether a sentence of a plan, by its words, has most words of an issue's title."""
    words = content_words(title)
    if len(words) < _OTHER_CASE_WORDS:
        return False
    shared = max((len(words & sentence) for sentence in said), default=0)
    return shared >= max(_SHARED_WORDS, _OTHER_CASE_SHARE * len(words))


def issues_before(found: PlannedCase, plan: str) -> list[JudgedIssue]:
    """Returns the issues to show before an act, those that are about it first.

    A case that only the plan's words name shows no others: `report` may name a case, and says little.
    """
    harmless = [issue for issue in open_issues(found.history) if not blocking(scan(issue.statement))]
    words = content_words(plan)
    about = [issue for issue in harmless if is_about(issue.title, words)]
    others = [issue for issue in harmless if issue not in about]
    is_named = found.of_run or "-" in found.history.case
    return [*about, *(others if is_named else [])][:_MOST_SHOWN]


def lines_of(issues: Sequence[JudgedIssue], *, budget: int, counter: TokenCounter) -> list[str]:
    """Returns the issues as items of a section, as many as fit."""
    lines: list[str] = []
    for issue in issues:
        line = f"- Judged in {issue.case}: {issue.statement}."
        if counter.count("\n".join([*lines, line])) > budget:
            break
        lines.append(line)
    return lines
