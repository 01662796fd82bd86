"""Finds judgements in JSON of any nesting, and in the fields of runs. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec

from app.foundation.text.scores import BARE, OF_NAMES, Score, found_date, stated_score, version_in, version_of
from app.intake.cases.issue import issues_in, severity_of
from app.intake.cases.judgement import (
    DETAIL_CHARACTERS,
    JUDGED,
    KEYS,
    LISTED,
    MOST,
    NAME_CHARACTERS,
    REPORTED,
    RESOLVED,
    FoundIssue,
    FoundJudgement,
    case_key,
    first,
    key_of,
    named_in_path,
    named_in_task,
    text_of,
)

_DEPTH = 8
"""Levels of nested objects that are looked through."""

FIELDS = KEYS["judgement"]
"""Keys of each field, the best first."""
_JUDGING_FIELDS = ("verdict", "passed", "grade", "version", "summary", "judge")
"""Beside one of these, a number called score is the score of something that was judged."""
_BESIDE = frozenset({*_JUDGING_FIELDS, "reasoning", "main_cause", "issues", "title"})
_CRITERIA = re.compile(
    r"criteri|dimension|breakdown|sub_?scores|rubric|token|stages|config|^items$|^best$|^children$|^tests?$"
)
"""Objects that hold the scores of parts, or no judgement at all."""
_PLOT = frozenset({"$schema", "encoding", "vconcat", "hconcat"})
"""Keys of a plot's specification, whose data are copies of what stands elsewhere."""
ISSUES = re.compile(
    r"^(?:(?P<gone>fixed|resolved|mended|closed|solved)_)?(?:(?P<severity>p\d|critical|blocker|major|minor|high|medium|low)_)?"
    r"(?:\w+_)?(?:issues?|problems|findings|weaknesses|defects|flaws|shortcomings|concerns|gaps|blockers|violations|faults|"
    r"objections|complaints|criticisms?|deficiencies|mistakes|drawbacks|red_flags|deductions)"
    r"(?:_(?:found|list|by_severity))?$"
)
POINTS = re.compile(r"(?:\w+_)?points")
IN_LISTS = frozenset({"issue", "problem", "finding"})
"""Keys of the objects of a list of points that are issues."""
VERDICTS = re.compile(
    r"(?i)pass(?:ed)?|fail(?:ed|ure)?|accept(?:ed)?|reject(?:ed)?|approved?|revise|needs[ _-]\w+|\w*_?(?:pass|fail)"
)
"""Values of a status that are verdicts."""
_MOMENTS = ("finished_at", "occurred_at", "started_at", "created_at")
"""Fields of a run that date its judgement, the best first."""
YES, NO = (
    re.compile(r"(?i)\W*(?:true|yes|pass(?:ed)?|accept(?:ed)?|approved?|✅|✓)\W*"),
    re.compile(r"(?i)\W*(?:false|no|not passed|fail(?:ed|ure)?|reject(?:ed)?|❌|✗)\W*"),
)


@dataclass(slots=True, kw_only=True)
class Facts:
    """The statements of one place of a document: the fields of an object and of nested ones, the outermost first."""

    values: dict[str, Any] = field(default_factory=dict)
    issues: list[FoundIssue] = field(default_factory=list)
    lists_issues: bool = False
    is_judged: bool = False
    """True where a judge is said to state the issues."""
    lists: list[tuple[str, Sequence[tuple[str | int, Any]]]] = field(default_factory=list)
    """Lists of objects by pointer, and objects called as versions."""

    def take(self, value: Mapping[str, Any], pointer: str = "", depth: int = 0) -> None:
        """Take in the fields of an object, and of those nested in it."""
        nested: list[tuple[str, Mapping[str, Any]]] = []
        scored = depth == 0 or not _BESIDE.isdisjoint(map(key_of, value))
        for raw, item in value.items():
            key, where = key_of(raw), f"{pointer}/{str(raw).replace('~', '~0').replace('/', '~1')}"
            if self._take_issues(key, item):
                continue
            if isinstance(item, Mapping | list):
                nested += self._take_nested(key, where, item)
            elif key != "score" or scored:
                self.values.setdefault(key, item)
        if value and all(str(raw)[:1] in "vV" and version_of(str(raw)) for raw in value):
            self.lists.append((pointer, [(raw, _as_judged(raw, item)) for raw, item in value.items()]))
        elif depth < _DEPTH:
            for where, inner in nested:
                self.take(inner, where, depth + 1)

    def _take_issues(self, key: str, item: Any) -> bool:  # noqa: ANN401 - any JSON value
        """Takes in a list of issues, or of advice; returns whether it is one."""
        if isinstance(item, str) and OF_NAMES.version(item):
            # The issue of a magazine: `Weekly, week 12`.
            return False
        if found := ISSUES.fullmatch(key):
            severity = severity_of(found["severity"] or "")
            self.issues += issues_in(item, severity=severity, status=RESOLVED if found["gone"] else "")
            self.lists_issues = True
        elif key in KEYS["issue"]["is_gone"] and isinstance(item, list):
            self.issues += issues_in(item, status=RESOLVED)
        elif key in FIELDS["advice"] and isinstance(item, list):
            self.values.setdefault(key, " ".join(part for part in item if isinstance(part, str)))
        else:
            return False
        return True

    def _take_nested(
        self, key: str, where: str, item: Mapping[str, Any] | list[Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Takes in a list of objects; returns an object, whose own fields come after those beside it."""
        if _CRITERIA.search(key):
            return []
        if isinstance(item, Mapping):
            self.values.setdefault(key, item)
            return [(where, item)]
        if POINTS.fullmatch(key) and all(isinstance(part, Mapping) and not IN_LISTS.isdisjoint(part) for part in item):
            self.issues += issues_in(item)
            self.lists_issues |= bool(item)
        elif any(isinstance(part, Mapping) for part in item):
            self.lists.append((where, list(enumerate(item))))
        return []

    def stated_value(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Returns the value of a field; None where nothing states it. A status is a verdict if it says one."""
        keys = FIELDS[name]
        if name == "verdict" and not VERDICTS.fullmatch(text_of(first(self.values, keys[-2:]), 40)):
            keys = keys[:-2]
        return first(self.values, keys)

    def text(self, name: str, limit: int = NAME_CHARACTERS) -> str:
        """Returns the value of a field in one line."""
        return text_of(self.stated_value(name), limit)

    @property
    def version(self) -> str:
        """The version; a bare number stays one."""
        version = self.text("version")
        return version if BARE.fullmatch(version) else version_of(version)

    @property
    def score(self) -> Score | None:
        """The evaluator's score; a grade that is a number is one."""
        return stated_score(self.values) or stated_score({"score": self.stated_value("grade")})

    @property
    def judged_at(self) -> datetime | None:
        """The date."""
        return found_date(self.values)

    @property
    def passed(self) -> bool | None:
        """True where it passed, as a field or the verdict says; None where neither does."""
        for value in (self.stated_value("passed"), self.stated_value("verdict")):
            if isinstance(value, bool):
                return value
            if YES.fullmatch(said := text_of(value, NAME_CHARACTERS)):
                return True
            if NO.fullmatch(said):
                return False
        return None

    @property
    def judges(self) -> bool:
        """True where something was judged."""
        beside = self.lists_issues or any(self.stated_value(name) not in (None, "") for name in _JUDGING_FIELDS)
        return self.is_judged or (self.score is not None and beside) or self.passed is not None

    def judgement(self, *, basis: str, pointer: str = "", score_alone: bool = False) -> FoundJudgement | None:
        """Returns the judgement that it states; None where it states none."""
        if self.judges or self.issues or (score_alone and self.score is not None):
            return self.as_judgement(basis, pointer)
        return None

    def as_judgement(self, basis: str, pointer: str = "") -> FoundJudgement:
        """Returns what it states as a judgement."""
        score = self.score
        return FoundJudgement(
            case=self.text("case"),
            version=self.version,
            pointer=pointer,
            judged_at=self.judged_at,
            score=None if score is None else score.value,
            stated=None if score is None else score.stated,
            verdict=self.text("verdict").strip("*_ "),
            passed=self.passed,
            grade=self.text("grade", 20),
            judge=re.sub(r"^\d.*", "", self.text("judge")),
            basis=basis,
            summary=self.text("summary", DETAIL_CHARACTERS),
            advice=self.text("advice", DETAIL_CHARACTERS),
            lists_issues=self.lists_issues and self.judges,
            issues=tuple(self.issues[:MOST]),
        )

    def parts(self, depth: int = 0) -> Iterator[FoundJudgement]:
        """Yields the judgements in lists; what a part does not say is said of the whole."""
        for where, items in self.lists:
            for place, item in items:
                for found in _find_judgements(item, f"{where}/{place}", LISTED, depth + 1, judging=False):
                    own = found.version or (place if isinstance(place, str) else "")
                    yield replace(
                        found,
                        case=found.case or self.text("case"),
                        version=version_of(own) if own else self.text("version"),
                        judged_at=found.judged_at or self.judged_at,
                    )


def in_json(document: Any, *, judging: bool) -> list[FoundJudgement]:  # noqa: ANN401 - any JSON value
    """Returns the judgements of a JSON value; `judging` says that its file's name promises one."""
    return list(_find_judgements(document, "", JUDGED, 0, judging=judging))[:MOST]


def _find_judgements(value: Any, pointer: str, basis: str, depth: int, *, judging: bool) -> Iterator[FoundJudgement]:  # noqa: ANN401 - any JSON value
    if isinstance(value, list) and depth < _DEPTH:
        for place, item in enumerate(value):
            if isinstance(item, Mapping):
                yield from _find_judgements(item, f"{pointer}/{place}", LISTED, depth + 1, judging=judging)
        return
    if not isinstance(value, Mapping) or depth >= _DEPTH or not _PLOT.isdisjoint(value):
        return
    facts = Facts()
    facts.take(value, pointer)
    if not (depth or judging or facts.lists_issues):
        basis = REPORTED
    own = facts.judgement(basis=basis, pointer=pointer, score_alone=judging and depth == 0)
    if own is not None and (facts.judges or judging or any(issue.severity or issue.versions for issue in facts.issues)):
        yield own
    yield from facts.parts(depth)


def _as_judged(version: str, item: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    return {"version": version, **item} if isinstance(item, Mapping) else {"version": version, "score": item}


def in_run(run_id: str, run: object) -> FoundJudgement | None:
    """Returns the judgement of a run, or of the outcome of one; None where nobody has judged it.

    A run that names no case is one of its own, which no list shows.
    """
    fields = msgspec.to_builtins(run)
    judged = {name: fields.get(name) for name in ("final_score", "verdict", "issues") if fields.get(name)}
    if fields.get("final_score") is None and not judged:
        return None
    facts = Facts()
    facts.take({"final_score": fields.get("final_score"), **judged, "metadata": fields.get("metadata") or {}})
    found = facts.as_judgement(JUDGED)
    case, version = case_of_run(run_id, str(fields.get("task") or ""), fields.get("metadata") or {})
    return replace(
        found,
        case=case or run_id,
        version=version,
        judged_at=next(filter(None, (found_date({name: fields.get(name)}) for name in _MOMENTS)), None),
        lists_issues="issues" in judged or found.passed is True,
    )


def case_of_run(run_id: str, task: str, metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the case and the version of a run, each empty where nothing names it.

    Its metadata, its id and its task name them, in this order. A task without a version names no case, and one that
    says the same version with more words of the name than the id says it better: `bads-v1`, "BADs Russia v1".
    """
    facts = Facts()
    facts.take(metadata)
    task = text_of(task, NAME_CHARACTERS)
    path_case, path_version = named_in_path(run_id.split("/"))
    if not (version_in(run_id) or "/" in run_id):
        # `job-b3` is an id like any other.
        path_version = ""
    version = version_of(facts.text("version")) or path_version or version_in(task)
    case = facts.text("case")
    if not case and version:
        named = named_in_task(task) if task else ""
        says_more = version_in(task) == path_version and _is_part(path_case, named)
        case = path_case if path_case and path_version and not says_more else named
    return case, version


def _is_part(name: str, of: str) -> bool:
    """Tells whether all words of a name stand in another one."""
    words = set(case_key(name).split("-"))
    return name != "" and words <= set(case_key(of).split("-"))
