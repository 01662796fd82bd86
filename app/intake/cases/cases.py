"""Assembles the judgements of a test case to its history: versions, and issues over them. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean
from uuid import NAMESPACE_URL, UUID, uuid5

from msgspec import Struct
from msgspec.structs import force_setattr

from app.foundation.models.protocols import Matrix
from app.foundation.text.scores import spellings
from app.foundation.values import frozen
from app.intake.cases.issue import IssueStatement, group_statements
from app.intake.cases.judgement import (
    JUDGED,
    LISTED,
    OPEN,
    REOPENED,
    REPORTED,
    RESOLVED,
    SILENT,
    WORST,
    FoundIssue,
    FoundJudgement,
    in_order,
)

_BASES = (JUDGED, REPORTED, LISTED)
"""Places in which the judgements of a version stand, the one that counts first."""
MOST_STATEMENTS = 1_000
"""Statements of a case that are compared with one another: they take 0.2 s, and the vectors of their titles a few."""
_OPENED, _RECURRING = "opened", "recurring"
_EVENTS = (_OPENED, _RECURRING, RESOLVED, SILENT, REOPENED)
_STATES = (OPEN, RESOLVED, SILENT)
"""States in the order in which issues are listed; reopened ones stand among the open ones."""
_SPOKEN_OF = re.compile(r"(?i)\b(?:again|still|once more)\b")
"""Words by which a statement speaks of an earlier issue."""
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
"""Zeros before a number, which a version is read without."""
_SHORT = 140
"""Characters of a remark in a list of versions that sums its version up."""
Numbers = Mapping[tuple[UUID, int], UUID]
"""The issue of each statement, by judgement and place."""


@frozen
class Judgement:
    """A stored judgement."""

    judgement_id: UUID
    found: FoundJudgement
    source: str = ""
    """The path of its report."""
    run_id: str | None = None


@frozen
class Occurrence:
    """An issue as one judgement states it of one version."""

    judgement_id: UUID
    place: int
    """Its place among the judgement's issues."""
    version: str
    title: str
    detail: str
    severity: str
    status: str


class CaseIssue(Struct, frozen=True, kw_only=True, rename={"issue_id": "id"}):
    """An issue of a case, over all versions."""

    issue_id: UUID
    title: str
    severity: str
    """The worst that was ever stated."""
    status: str
    """OPEN, REOPENED, RESOLVED or SILENT after the latest version."""
    versions: tuple[str, ...]
    """The versions in which it was seen."""
    resolved_in: str
    """The last version in which a text says that it is resolved; empty where none says so, or names no version."""
    how: str
    """The words that say how it was resolved."""
    unnamed_since: str
    """The first version that lists issues and no longer named it, if its status is SILENT."""
    reopened_in: tuple[str, ...]
    """Versions in which it came back."""
    occurrences: tuple[Occurrence, ...]
    state: str = ""
    """Its status in words: `reopened in v8`, `resolved in v7 by the stop rule`, `not named since v6`."""

    def __post_init__(self) -> None:
        """Finds the words for its status."""
        force_setattr(self, "state", self._state())

    @property
    def is_open(self) -> bool:
        """True where it is open, also again."""
        return self.status in {OPEN, REOPENED}

    def _state(self) -> str:
        if self.status == REOPENED:
            return f"reopened in {self.reopened_in[-1]}"
        if self.status == SILENT:
            return f"not named since {self.unnamed_since}" if self.unnamed_since else "not named any more"
        if self.status == OPEN:
            return OPEN
        return self.resolution

    @property
    def resolution(self) -> str:
        """When and how it was last resolved, in words."""
        place = f"resolved in {self.resolved_in}" if self.resolved_in else RESOLVED
        how = self.how if self.how.startswith("by ") else f"({self.how})"
        return f"{place} {how}" if self.how else place


@frozen
class CaseVersion:
    """A version of a case, as it was judged."""

    version: str
    judged_at: datetime | None
    score: float | None
    """From 0 to 10, the mean of its judges."""
    change: float | None
    """The gain of the score since the latest earlier version that has one."""
    verdict: str
    passed: bool | None
    grade: str
    judges: int
    summary: str
    sources: tuple[str, ...]
    runs: tuple[str, ...]
    """The runs that were judged."""
    opened: tuple[str, ...]
    """The titles of issues that are new in it."""
    recurring: tuple[str, ...]
    resolved: tuple[str, ...]
    unnamed: tuple[str, ...]
    reopened: tuple[str, ...]
    advice: str
    """The words of its judgement on what the next run should do."""


@frozen
class CaseHistory:
    """The judged versions of a case, the oldest first, and its issues, the open and worst first."""

    case: str
    title: str
    versions: tuple[CaseVersion, ...]
    issues: tuple[CaseIssue, ...]


@dataclass(slots=True)
class _JudgedVersion:
    """The judgements of a version."""

    name: str
    judgements: list[Judgement] = field(default_factory=list)
    events: dict[str, list[str]] = field(default_factory=dict)

    @property
    def judged_at(self) -> datetime | None:
        return next((item.found.judged_at for item in self.ordered if item.found.judged_at), None)

    @property
    def ordered(self) -> list[Judgement]:
        return sorted(self.judgements, key=lambda item: _BASES.index(item.found.basis))

    @property
    def lists_issues(self) -> bool:
        return any(item.found.lists_issues and item.found.basis == JUDGED for item in self.judgements)


def _versions_of(judgements: Sequence[Judgement]) -> list[_JudgedVersion]:
    """Returns the versions in their order: by number where all have one of the same kind, else by date."""
    found: dict[str, _JudgedVersion] = {}
    for item in judgements:
        if name := _name(item):
            found.setdefault(name, _JudgedVersion(name)).judgements.append(item)
        for version in (version for issue in item.found.issues for version in issue.named):
            found.setdefault(version, _JudgedVersion(version))
    return [found[name] for name in in_order({name: version.judged_at for name, version in found.items()})]


def unify_version_spellings(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Returns judgements of one case with one spelling for each version, the one seen first.

    A version that is named as its run has the name of the run: `run-058`, not `run-58`.
    """
    own = [(item.found.version, item.found.score if item.found.basis == JUDGED else None) for item in judgements]
    named = [(name, None) for item in judgements for issue in item.found.issues for name in issue.named]
    as_first = spellings([*own, *named])

    runs = {_ZEROS.sub("", item.run_id): item.run_id for item in judgements if item.run_id}

    def spell(name: str) -> str:
        return runs.get(as_first.get(name, name), as_first.get(name, name))

    return [
        replace(
            item,
            found=replace(
                item.found,
                version=spell(item.found.version),
                issues=tuple(
                    replace(issue, versions=tuple(map(spell, issue.versions)), since=spell(issue.since))
                    for issue in item.found.issues
                ),
            ),
        )
        for item in judgements
    ]


def _name(item: Judgement) -> str:
    """Returns the version of a judgement; of one that names none its run or its date. A list of issues has none."""
    found = item.found
    if found.version:
        return found.version
    if found.score is None and not found.verdict and found.passed is None:
        return ""
    return item.run_id or (found.judged_at.date().isoformat() if found.judged_at else "undated")


def statements(judgements: Sequence[Judgement]) -> list[tuple[Judgement, int, FoundIssue]]:
    """Returns what the judgements say is wrong, in the order of versions; lists of several versions come last.

    Of more than MOST_STATEMENTS, it returns the last ones.
    """
    order = {version.name: place for place, version in enumerate(_versions_of(judgements))}
    found = [(item, place, issue) for item in judgements for place, issue in enumerate(item.found.issues)]
    found.sort(key=lambda item: (order.get(_name(item[0]), len(order)), str(item[0].judgement_id), item[1]))
    return found[-MOST_STATEMENTS:]


def number_issues(case: str, judgements: Sequence[Judgement], *vectors: Matrix) -> Numbers:
    """Returns the issue of each statement; `vectors` are those of the `forms` of the `statements`.

    Without them words alone tell.
    """
    found = statements(judgements)
    order = {version.name: place for place, version in enumerate(_versions_of(judgements))}
    stated = [
        IssueStatement(
            order.get(_name(item), len(order)),
            issue.title,
            frozenset(order[version] for version in issue.versions if version in order),
            issue.again
            or issue.status == RESOLVED
            or _SPOKEN_OF.search(f"{issue.title} {issue.detail[:_SHORT]}") is not None,
        )
        for item, _, issue in found
    ]
    numbers = group_statements(stated, *vectors)
    ids: dict[int, UUID] = {}
    for number, (_, _, issue) in zip(numbers, found, strict=True):
        if number not in ids:
            ids[number] = uuid5(NAMESPACE_URL, f"priors:{case}:{number}:{issue.title}")
    return {(item.judgement_id, place): ids[number] for number, (item, place, _) in zip(numbers, found, strict=True)}


def assemble_history(case: str, judgements: Sequence[Judgement], numbers: Numbers) -> CaseHistory:
    """Returns the history of a case. A statement whose issue is not known yet is an issue of its own."""
    versions = _versions_of(judgements)
    by_issue: dict[UUID, list[tuple[Judgement, int, FoundIssue]]] = {}
    for item, place, issue in statements(judgements):
        known = numbers.get((item.judgement_id, place)) or uuid5(item.judgement_id, str(place))
        by_issue.setdefault(known, []).append((item, place, issue))
    issues = [_issue(issue_id, stated, versions) for issue_id, stated in by_issue.items()]
    order = {version.name: place for place, version in enumerate(versions)}
    issues.sort(key=lambda item: _rank(item, order))
    titles = Counter(item.found.case for item in judgements if item.found.case)
    spelled = max(titles, key=lambda name: (name != name.lower(), titles[name]), default="")
    return CaseHistory(
        case=case, title=spelled or case, versions=tuple(_versions_of_history(versions)), issues=tuple(issues)
    )


def _rank(issue: CaseIssue, order: Mapping[str, int]) -> tuple[int, int, int, int, str]:
    """Returns what issues are sorted by: the open and worst first, then those of the newest version."""
    newest = max((order[version] for version in issue.versions), default=-1)
    state = _STATES.index(OPEN if issue.is_open else issue.status)
    return state, WORST.index(issue.severity), -newest, -len(issue.versions), issue.title


_Stated = Sequence[tuple[Judgement, int, FoundIssue]]


def _issue(issue_id: UUID, stated: _Stated, versions: Sequence[_JudgedVersion]) -> CaseIssue:
    seen = {version for item, _, issue in stated for version in _seen_in(item, issue)}
    back = {_name(item) for item, _, issue in stated if issue.again}
    said = {state: {_said_of(item, issue) for item, _, issue in stated if issue.status == state} for state in _STATES}
    title, status, resolved_in, silent, reopened = _title(stated), "", "", "", []
    for version in versions:
        name = version.name
        if name in seen:
            event = REOPENED if name in back or status in {RESOLVED, SILENT} else _RECURRING if status else _OPENED
            reopened += [name] if event == REOPENED else []
            status = REOPENED if reopened else OPEN
        elif name in said[RESOLVED]:
            event = RESOLVED if status != RESOLVED else ""
            status, resolved_in = RESOLVED, name
        elif status in {OPEN, REOPENED} and (name in said[SILENT] or version.lists_issues):
            event = status = SILENT
            silent = name
        else:
            continue
        if event:
            version.events.setdefault(event, []).append(title)
    if "" in said[RESOLVED] and not resolved_in and status != REOPENED:
        # A list says so of the whole case, and names no version.
        status = RESOLVED
    return CaseIssue(
        issue_id=issue_id,
        title=title,
        severity=min((issue.severity for _, _, issue in stated), key=WORST.index),
        status=status or (SILENT if said[SILENT] else OPEN),
        versions=tuple(version.name for version in versions if version.name in seen),
        resolved_in=resolved_in,
        how=_how(stated, resolved_in) if status == RESOLVED or resolved_in else "",
        unnamed_since=silent if status == SILENT else "",
        reopened_in=tuple(reopened),
        occurrences=tuple(occurrence for item in stated for occurrence in _occurrences_of(*item)),
    )


def _title(stated: _Stated) -> str:
    """Returns the title that a list over versions gives an issue, or most judgements, or the shortest."""
    titles = [(not item.found.is_list, issue.status != OPEN, issue.title) for item, _, issue in stated]
    counts = Counter(titles)
    return min(titles, key=lambda item: (item[0], item[1], -counts[item], len(item[2])))[2]


def _how(stated: _Stated, version: str) -> str:
    """Returns the words on how an issue was resolved: those of the statement, or the statement if it has others."""
    said = [issue for item, _, issue in stated if issue.status == RESOLVED and _said_of(item, issue) == version]
    others = {issue.title for _, _, issue in stated if issue.status == OPEN}
    words = [issue.how for issue in said if issue.how] or [
        issue.title for issue in said if others and issue.title not in others and not issue.versions
    ]
    return min(words, key=len, default="")


def _said_of(item: Judgement, issue: FoundIssue) -> str:
    """Returns the version of which a statement says its state."""
    return issue.since or _name(item)


def _seen_in(item: Judgement, issue: FoundIssue) -> tuple[str, ...]:
    """Returns the versions that have an issue: those it names, and its judgement's unless it is gone there."""
    name = "" if issue.status != OPEN or (issue.versions and item.found.is_list) else _name(item)
    return tuple(dict.fromkeys((*issue.versions, name))) if name else issue.versions


def _occurrences_of(item: Judgement, place: int, issue: FoundIssue) -> Iterable[Occurrence]:
    """Yields a statement once for each version that it speaks of."""
    told = [(version, OPEN) for version in _seen_in(item, issue)]
    if issue.status != OPEN:
        told.append((_said_of(item, issue), issue.status))
    for version, status in told:
        yield Occurrence(
            judgement_id=item.judgement_id,
            place=place,
            version=version,
            title=issue.title,
            detail=issue.detail,
            severity=issue.severity,
            status=status,
        )


def _versions_of_history(versions: Sequence[_JudgedVersion]) -> Iterable[CaseVersion]:
    before: float | None = None
    for version in versions:
        ordered = [item.found for item in version.ordered]
        scored = [item for item in ordered if item.score is not None]
        counted = [item.score for item in scored if item.basis == scored[0].basis and item.score is not None]
        score = round(fmean(counted), 4) if counted else None
        yield CaseVersion(
            version=version.name,
            judged_at=version.judged_at,
            score=score,
            change=None if score is None or before is None else round(score - before, 4),
            verdict=next((item.verdict for item in ordered if item.verdict), ""),
            passed=next((item.passed for item in ordered if item.passed is not None), None),
            grade=next((item.grade for item in ordered if item.grade), ""),
            judges=len(counted),
            summary=_summary(ordered),
            sources=tuple(dict.fromkeys(item.source for item in version.ordered if item.source)),
            runs=tuple(dict.fromkeys(item.run_id for item in version.ordered if item.run_id)),
            advice=next((item.advice for item in ordered if item.advice and item.basis == JUDGED), ""),
            **{name: tuple(version.events.get(name, ())) for name in _EVENTS},
        )
        before = before if score is None else score


def _summary(ordered: Sequence[FoundJudgement]) -> str:
    """Returns the summary of a version; a short remark in a list of versions goes first."""
    said = [item for item in ordered if item.summary]
    said.sort(key=lambda item: item.basis != LISTED or len(item.summary) > _SHORT)
    return said[0].summary if said else ""
