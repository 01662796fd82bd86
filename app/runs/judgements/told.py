"""Tells the history of a test case in words. Pure."""

import textwrap
from collections.abc import Sequence

from app.runs.judgements.cases import OPENED, RECURRING, REOPENED, CaseHistory, CaseIssue, CaseVersion
from app.runs.judgements.judgement import OPEN, WORST
from app.text.sentences import sentences_of

FEW = 2
"""Versions that are named one by one; more are a range."""
VERSIONS_TOLD, ISSUES_TOLD, ISSUES_NAMED, SAID_CHARACTERS = 12, 20, 2, 140
"""Versions and issues that a text tells of, issues of a kind in a version's line, and characters of its summary."""


def score_text(history: CaseHistory) -> str:
    """Returns the score history in words, a line each version; empty where fewer than two versions have a score."""
    scored = [version for version in history.versions if version.score is not None]
    if len(scored) < FEW:
        return ""
    scores = [version.score or 0.0 for version in scored]
    head = f"{len(scored)} judged versions, scores from {min(scores):.1f} to {max(scores):.1f}"
    head = "; ".join(filter(None, (head, _passes(scored), "the latest first:")))
    return "\n".join([head, *(_line(version) for version in reversed(scored[-VERSIONS_TOLD:]))])


def score_lines(history: CaseHistory) -> list[str]:
    """Returns a line for each version, the oldest first."""
    return [_line(version) for version in history.versions]


def _passes(scored: Sequence[CaseVersion]) -> str:
    """Returns between which scores the pass mark lies."""
    passing = min((item for item in scored if item.passed), key=lambda item: item.score or 0.0, default=None)
    failing = max((item for item in scored if item.passed is False), key=lambda item: item.score or 0.0, default=None)
    named = [("lowest score that passed", passing), ("highest that failed", failing)]
    return ", ".join(f"{name} {item.score:.1f} ({item.version})" for name, item in named if item is not None)


def _line(version: CaseVersion) -> str:
    date = f" ({version.judged_at.date().isoformat()})" if version.judged_at else ""
    change = f" ({version.change:+.1f})" if version.change is not None else ""
    score = "no score" if version.score is None else f"{version.score:.1f}/10{change}"
    scored = f"- {version.version}{date}: {score}"
    named = [
        f"{name}: {', '.join(titles[:ISSUES_NAMED])}"
        for name in (REOPENED, RECURRING, OPENED)
        if (titles := getattr(version, name))
    ]
    passed = {True: "passed", False: "failed", None: ""}[version.passed]
    parts = [
        ", ".join(filter(None, (scored, version.verdict or passed or version.grade))),
        _said(version.summary),
        "; ".join(named),
    ]
    return ". ".join(filter(None, parts))


def _said(summary: str) -> str:
    """Returns the first sentences of a summary."""
    said = ""
    for sentence in sentences_of(summary):
        if said and len(said) + len(sentence) > SAID_CHARACTERS:
            break
        said = f"{said} {sentence}".strip()
    return textwrap.shorten(said, SAID_CHARACTERS, placeholder=" …").rstrip(". ")


def issues_text(history: CaseHistory) -> str:
    """Returns the issues in words, a line each: those that recur or are open; empty where none recurs."""
    if not any(issue.recurs for issue in history.issues):
        return ""
    told = sorted(history.issues, key=lambda item: (item.status != OPEN, not item.recurs, WORST.index(item.severity)))
    return "\n".join(issue_line(issue) for issue in told[:ISSUES_TOLD])


def issue_line(issue: CaseIssue) -> str:
    """Returns an issue in one line: `TAM/SAM without methodology: v3 to v7 (5 versions), open, P1`."""
    count = len(issue.versions)
    seen = (
        f"{issue.versions[0]} to {issue.versions[-1]} ({count} versions)"
        if count > FEW
        else " and ".join(issue.versions)
    )
    unsaid = "" if issue.stated or issue.status == OPEN else " (no longer named)"
    status = f"mended in {issue.mended_in}{unsaid}" if issue.mended_in else issue.status
    again = f"reopened in {', '.join(issue.reopened_in)}" if issue.reopened_in else ""
    return f"- {issue.title}: " + ", ".join(part for part in (seen, again, status, issue.severity) if part)
