"""Renders the history of a test case: its scores, and its issues with their states. Pure."""

import textwrap
from collections.abc import Sequence

from app.foundation.text.prose import sentences_of
from app.foundation.text.scores import versions_in
from app.intake.cases.cases import CaseHistory, CaseIssue, CaseVersion
from app.intake.cases.issue import SENTENCE
from app.intake.cases.judgement import OPEN, REOPENED, RESOLVED, SILENT

_FEW = 3
"""Versions that are named one by one; more are a range."""
VERSIONS_SHOWN, ISSUES_SHOWN = 12, 20
SUMMARY_CHARACTERS, STATEMENT_CHARACTERS, ADVICE_CHARACTERS = 140, 240, 400
_FEW_WORDS = 10
"""A sentence of so few words that names versions says only where an issue was seen, as its state does."""


def score_text(history: CaseHistory) -> str:
    """Returns the score history in words, a line each version; empty where fewer than two versions have a score."""
    if not (shown := score_range(history)):
        return ""
    scored = [version for version in history.versions if version.score is not None]
    return "\n".join(
        [f"{shown}; the latest first:", *(_line(version) for version in reversed(scored[-VERSIONS_SHOWN:]))]
    )


def score_range(history: CaseHistory) -> str:
    """Returns between which scores a case was judged, and where it passed; empty for fewer than two scores."""
    scored = [version for version in history.versions if version.score is not None]
    if len(scored) < 2:  # noqa: PLR2004 - a score alone is no history
        return ""
    scores = [version.score or 0.0 for version in scored]
    head = f"{len(scored)} judged versions, scores from {min(scores):.1f} to {max(scores):.1f} of 10"
    return "; ".join(filter(None, (head, _passes(scored))))


def _passes(scored: Sequence[CaseVersion]) -> str:
    """Returns between which scores the pass mark lies."""
    passing = min((item for item in scored if item.passed), key=lambda item: item.score or 0.0, default=None)
    failing = max((item for item in scored if item.passed is False), key=lambda item: item.score or 0.0, default=None)
    named = [("lowest score that passed", passing), ("highest that failed", failing)]
    return ", ".join(f"{name} {item.score:.1f} ({item.version})" for name, item in named if item is not None)


def _line(version: CaseVersion) -> str:
    said = textwrap.shorten(_sentences(version.summary, SUMMARY_CHARACTERS, 2), SUMMARY_CHARACTERS, placeholder=" …")
    return ". ".join(filter(None, (f"- {_judgement_text(version)}", said.rstrip(". "))))


def _judgement_text(version: CaseVersion) -> str:
    date = f" ({version.judged_at.date().isoformat()})" if version.judged_at else ""
    change = f" ({version.change:+.1f})" if version.change is not None else ""
    score = "no score" if version.score is None else f"{version.score:.1f}{change}"
    passed = {True: "passed", False: "failed", None: ""}[version.passed]
    return ", ".join(filter(None, (f"{version.version}{date}: {score}", version.verdict or passed or version.grade)))


def _sentences(text: str, characters: int, most: int) -> str:
    """Returns the first sentences of a text, at least one."""
    said = ""
    for sentence in sentences_of(text)[:most]:
        if said and len(said) + len(sentence) > characters:
            break
        said = f"{said} {sentence}".strip()
    return said


def issues_text(history: CaseHistory) -> str:
    """Returns the issues in words, an item each; empty where none is open or resolved, or no version is judged.

    First those that are open, then the advice of the latest judgement, what resolved earlier ones, and the rest.
    """
    if not history.versions or all(issue.status == SILENT for issue in history.issues):
        return ""
    judged = [item for item in history.versions if item.score is not None or item.verdict] or history.versions[-1:]
    advice = _sentences(judged[-1].advice, ADVICE_CHARACTERS, 9)
    lines = {
        state: [issue_line(issue) for issue in history.issues if issue.status in states]
        for state, states in ((OPEN, (OPEN, REOPENED)), (RESOLVED, (RESOLVED,)), (SILENT, (SILENT,)))
    }
    given = [f"- Advice in {judged[-1].version}: {advice}"] if advice else []
    shown = [*lines[OPEN][:ISSUES_SHOWN], *given, *lines[RESOLVED], *lines[SILENT]]
    head = f"{history.title}, latest judged version {_judgement_text(judged[-1])}."
    return "\n".join([head, *shown[: max(ISSUES_SHOWN, len(lines[OPEN][:ISSUES_SHOWN]) + len(given))]])


def issue_line(issue: CaseIssue) -> str:
    """Returns an issue in one item: `- TAM without methodology: reopened in v8, P1, in v3, v5 and v8. No input …`."""
    earlier = f" after being {issue.resolution}" if issue.status == REOPENED and issue.resolved_in else ""
    facts = ", ".join(filter(None, (f"{issue.state}{earlier}", issue.severity, _versions_phrase(issue.versions))))
    return ". ".join(filter(None, (f"- {issue.title}: {facts}", _latest(issue) if issue.is_open else "")))


def _versions_phrase(versions: Sequence[str]) -> str:
    if len(versions) > _FEW:
        return f"in {versions[0]} to {versions[-1]} ({len(versions)} versions)"
    return f"in {' and '.join(filter(None, (', '.join(versions[:-1]), versions[-1])))}" if versions else ""


def _latest(issue: CaseIssue) -> str:
    """Returns the words of the newest version that states an issue, where they say more than its title."""
    latest = issue.versions[-1] if issue.versions else ""
    newest = [item for item in issue.occurrences if item.status == OPEN and item.version == latest]
    item = max(newest, key=lambda item: len(item.detail), default=None)
    if item is None:
        return ""
    repeated = item.title.casefold() == issue.title.casefold() or item.detail.startswith(item.title)
    title = "" if repeated else f"{item.title}. "
    said = (sentence for sentence in SENTENCE.split(f"{title}{item.detail}") if not _only_places(sentence))
    return _sentences(" ".join(said), STATEMENT_CHARACTERS, 2)


def _only_places(sentence: str) -> bool:
    return len(sentence.split()) <= _FEW_WORDS and next(versions_in(sentence), "") != ""
