"""Assembles the judgements of a test case to its history: versions, and issues over them. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from uuid import NAMESPACE_URL, UUID, uuid5

from app.models.protocols import Matrix
from app.runs.judgements.judgement import (
    JUDGED,
    LISTED,
    MENDED,
    OPEN,
    REPORTED,
    WORST,
    FoundIssue,
    FoundJudgement,
    version_order,
)
from app.runs.judgements.likeness import Statement, grouped

BASES = (JUDGED, REPORTED, LISTED)
"""Places in which the judgements of a version stand, the one that counts first."""
MOST_STATEMENTS = 1_000
"""Statements of a case that are compared with one another: they take 0.2 s, and the vectors of their titles a few."""
OPENED, RECURRING, REOPENED = "opened", "recurring", "reopened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A stored judgement."""

    judgement_id: UUID
    found: FoundJudgement
    source: str = ""
    """The path of its report."""
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseIssue:
    """An issue of a case, over all versions."""

    issue_id: UUID
    title: str
    severity: str
    """The worst that was ever stated."""
    status: str
    """OPEN or MENDED after the latest version."""
    versions: tuple[str, ...]
    """The versions in which it was seen."""
    mended_in: str
    """The version that says so, or the first one that no longer names it; empty while it is open, or unknown."""
    stated: bool
    """True where a judgement says that it is mended; else it is only not named any more."""
    reopened_in: tuple[str, ...]
    """Versions in which it came back after it had been mended."""
    occurrences: tuple[Occurrence, ...]

    @property
    def recurs(self) -> bool:
        """True where more than one version has it."""
        return len(self.versions) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
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
    opened: tuple[str, ...]
    """The titles of issues that are new in it."""
    recurring: tuple[str, ...]
    mended: tuple[str, ...]
    reopened: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseHistory:
    """The judged versions of a case, the oldest first, and its issues, the open and worst first."""

    case: str
    title: str
    versions: tuple[CaseVersion, ...]
    issues: tuple[CaseIssue, ...]


@dataclass(slots=True)
class _Version:
    """The judgements of a version."""

    name: str
    judgements: list[Judgement] = field(default_factory=list)
    events: dict[str, list[str]] = field(default_factory=dict)

    @property
    def judged_at(self) -> datetime | None:
        return next((item.found.judged_at for item in self.ordered if item.found.judged_at), None)

    @property
    def ordered(self) -> list[Judgement]:
        return sorted(self.judgements, key=lambda item: BASES.index(item.found.basis))

    @property
    def lists_issues(self) -> bool:
        return any(item.found.lists_issues and item.found.basis == JUDGED for item in self.judgements)


def versions_of(judgements: Sequence[Judgement]) -> list[_Version]:
    """Returns the versions in their order: by number where all have one of the same kind, else by date."""
    found: dict[str, _Version] = {}
    for item in judgements:
        name = _name(item)
        if name:
            found.setdefault(name, _Version(name)).judgements.append(item)
        for version in (version for issue in item.found.issues for version in issue.versions):
            found.setdefault(version, _Version(version))
    numbered = all(version_order(name) for name in found) and len({name.rstrip("0123456789.") for name in found}) == 1
    dates = [version.judged_at.timestamp() for version in found.values() if version.judged_at]

    def place(version: _Version) -> tuple[float | tuple[int, ...], ...]:
        number = version_order(version.name)
        moment = version.judged_at.timestamp() if version.judged_at else max(dates, default=0.0)
        return (number, moment) if numbered else (moment, number)

    return sorted(found.values(), key=place)


def _name(item: Judgement) -> str:
    """Returns the version of a judgement; of one that names none its run or its date. A list of issues has none."""
    found = item.found
    if found.version:
        return found.version
    if found.score is None and not found.verdict and found.passed is None:
        return ""
    return item.run_id or (found.judged_at.date().isoformat() if found.judged_at else "undated")


Numbers = Mapping[tuple[UUID, int], UUID]
"""The issue of each statement, by judgement and place."""


def statements(judgements: Sequence[Judgement]) -> list[tuple[Judgement, int, FoundIssue]]:
    """Returns what the judgements say is wrong, in the order of versions; lists of several versions come last.

    Of more than MOST_STATEMENTS, it returns the last ones.
    """
    order = {version.name: place for place, version in enumerate(versions_of(judgements))}
    found = [(item, place, issue) for item in judgements for place, issue in enumerate(item.found.issues)]
    found.sort(key=lambda item: (order.get(_name(item[0]), len(order)), str(item[0].judgement_id), item[1]))
    return found[-MOST_STATEMENTS:]


def numbered(case: str, judgements: Sequence[Judgement], vectors: Matrix | None) -> Numbers:
    """Returns the issue of each statement; `vectors` are those of the titles of `statements`.

    Without them words alone tell.
    """
    found = statements(judgements)
    order = {version.name: place for place, version in enumerate(versions_of(judgements))}
    stated = [
        Statement(
            order.get(_name(item), len(order)),
            issue.title,
            frozenset(order[version] for version in issue.versions if version in order),
        )
        for item, _, issue in found
    ]
    numbers = grouped(stated, vectors)
    ids: dict[int, UUID] = {}
    for number, (_, _, issue) in zip(numbers, found, strict=True):
        if number not in ids:
            ids[number] = uuid5(NAMESPACE_URL, f"priors:{case}:{number}:{issue.title}")
    return {(item.judgement_id, place): ids[number] for number, (item, place, _) in zip(numbers, found, strict=True)}


def assembled(case: str, judgements: Sequence[Judgement], numbers: Numbers) -> CaseHistory:
    """Returns the history of a case. A statement whose issue is not known yet is an issue of its own."""
    versions = versions_of(judgements)
    by_issue: dict[UUID, list[tuple[Judgement, int, FoundIssue]]] = {}
    for item, place, issue in statements(judgements):
        known = numbers.get((item.judgement_id, place)) or uuid5(item.judgement_id, str(place))
        by_issue.setdefault(known, []).append((item, place, issue))
    issues = [_issue(issue_id, stated, versions) for issue_id, stated in by_issue.items()]
    issues.sort(key=lambda item: (item.status != OPEN, WORST.index(item.severity), -len(item.versions), item.title))
    titles = Counter(item.found.case for item in judgements if item.found.case)
    spelled = max(titles, key=lambda name: (name != name.lower(), titles[name]), default="")
    return CaseHistory(case=case, title=spelled or case, versions=tuple(_shown(versions)), issues=tuple(issues))


def _issue(
    issue_id: UUID, stated: Sequence[tuple[Judgement, int, FoundIssue]], versions: Sequence[_Version]
) -> CaseIssue:
    seen = {version for item, _, issue in stated for version in _seen_in(item, issue)}
    gone = {
        version for item, _, issue in stated if issue.status == MENDED for version in (issue.mended_in or _name(item),)
    }
    (title, _), *_ = Counter(issue.title for _, _, issue in stated).most_common(1)
    status, mended_in, reopened = "", "", []
    for version in versions:
        if version.name in seen:
            event = {"": OPENED, OPEN: RECURRING, MENDED: REOPENED}[status]
            reopened += [version.name] if event == REOPENED else []
            status, mended_in = OPEN, ""
        elif version.name in gone or (status == OPEN and version.lists_issues):
            event = MENDED if status != MENDED else ""
            status, mended_in = MENDED, mended_in or version.name
        else:
            continue
        if event:
            version.events.setdefault(event, []).append(title)
    if "" in gone and not mended_in:
        # A list says so of the whole case, and names no version.
        status = MENDED
    return CaseIssue(
        issue_id=issue_id,
        title=title,
        severity=min((issue.severity for _, _, issue in stated), key=WORST.index),
        status=status or OPEN,
        versions=tuple(version.name for version in versions if version.name in seen),
        mended_in=mended_in,
        stated=mended_in in gone if status == MENDED else False,
        reopened_in=tuple(reopened),
        occurrences=tuple(occurrence for item in stated for occurrence in occurrences_of(*item)),
    )


def _seen_in(item: Judgement, issue: FoundIssue) -> tuple[str, ...]:
    """Returns the versions that have an issue: those it names, or its judgement's unless it is gone there."""
    if issue.versions:
        return issue.versions
    return (_name(item),) if issue.status == OPEN else ()


def occurrences_of(item: Judgement, place: int, issue: FoundIssue) -> Iterable[Occurrence]:
    """Yields a statement once for each version that it speaks of."""
    told = [(version, OPEN) for version in _seen_in(item, issue)]
    if issue.status == MENDED:
        told.append((issue.mended_in or ("" if issue.versions else _name(item)), MENDED))
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


def _shown(versions: Sequence[_Version]) -> Iterable[CaseVersion]:
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
            summary=next((item.summary for item in ordered if item.summary), ""),
            sources=tuple(dict.fromkeys(item.source for item in version.ordered if item.source)),
            **{name: tuple(version.events.get(name, ())) for name in (OPENED, RECURRING, MENDED, REOPENED)},
        )
        before = before if score is None else score
