"""Finds judgements and issues in JSON of any nesting, and reads the fields that JSON and Markdown share. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from app.runs.judgements.judgement import (
    BARE,
    JUDGED,
    LISTED,
    MENDED,
    OPEN,
    FoundIssue,
    FoundJudgement,
    named_in_path,
    version_of,
    versions_in,
)
from app.text.scores import Score, found_date, stated_score

DEPTH = 8
"""Levels of nested objects that are looked through."""
MOST = 500
"""Judgements of a document, and issues of a judgement."""
TITLE_CHARACTERS, DETAIL_CHARACTERS, NAME_CHARACTERS = 300, 1_000, 120

FIELDS: Mapping[str, Sequence[str]] = {
    "verdict": ("verdict", "decision", "final", "outcome", "status", "result"),
    "passed": ("passed", "pass", "is_pass"),
    "grade": ("grade", "letter_grade"),
    "version": ("version", "report_version", "run_version", "iteration", "round", "attempt", "run"),
    "case": ("test_case", "testcase", "case", "case_id", "case_name", "test_id", "test_name", "scenario"),
    "judge": ("judge", "judge_model", "evaluator", "judged_by", "reviewer", "model"),
    "summary": ("reasoning", "main_cause", "summary", "rationale", "justification", "feedback", "overall_assessment"),
}  # fmt: skip
"""Keys of each field, the best first."""
JUDGING_FIELDS = ("verdict", "passed", "grade", "version", "summary", "judge")
"""Beside one of these, a number called score is the score of something that was judged."""
BESIDE = frozenset({*JUDGING_FIELDS, "reasoning", "main_cause", "issues", "title"})
PREFIX = re.compile(r"^(?:judge|evaluator)_(?!model)|^(?:overall|final)_(?!score)")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
CRITERIA = re.compile(
    r"criteri|dimension|breakdown|sub_?scores|rubric|token|stages|config|^items$|^best$|^children$|^tests?$"
)
"""Objects that hold the scores of parts, or no judgement at all."""
PLOT = frozenset({"$schema", "encoding", "vconcat", "hconcat"})
"""Keys of a plot's specification, whose data are copies of what stands elsewhere."""
ISSUES = re.compile(
    r"^(?:(?P<mended>fixed|resolved|mended|closed|solved)_)?(?:(?P<severity>p\d|critical|blocker|major|minor|high|medium|low)_)?"
    r"(?:\w+_)?(?:issues?|problems|findings|weaknesses|defects|flaws|shortcomings|concerns|gaps|blockers|violations)"
    r"(?:_(?:found|list|by_severity))?$"
)
VERDICTS = re.compile(
    r"(?i)pass(?:ed)?|fail(?:ed|ure)?|accept(?:ed)?|reject(?:ed)?|approved?|revise|needs[ _-]\w+|\w*_?(?:pass|fail)"
)
"""What a status says where it is a verdict."""
YES, NO = (
    re.compile(r"(?i)\W*(?:true|yes|pass(?:ed)?|accept(?:ed)?|approved?|✅|✓)\W*"),
    re.compile(r"(?i)\W*(?:false|no|not passed|fail(?:ed|ure)?|reject(?:ed)?|❌|✗)\W*"),
)
SEVERITIES = {
    "P0": r"p0|s0|sev(?:erity)?[ -]?0|critical|blocker|blocking|severe|fatal",
    "P1": r"p1|s1|sev(?:erity)?[ -]?1|high|major|serious|important",
    "P2": r"p2|s2|sev(?:erity)?[ -]?2|medium|moderate|normal",
    "P3": r"p3|s3|sev(?:erity)?[ -]?3|low|minor|trivial|cosmetic|nit|info",
}
GONE = r"fixed|mended|resolved|closed|solved|addressed|исправлено|behoben|corrigé|resuelto|已修复"
STATED_GONE = re.compile(rf"(?i)(?<!un)(?<!not )(?<!partially )(?<!partly )(?<!\w)(?:{GONE}|done)(?!\w)")
SENTENCE = re.compile(r"(?<=[.!?;])\s+")
BEGINS_GONE = re.compile(rf"(?i)\W*(?:{GONE})(?!\w)")
SEEN = re.compile(
    r"(?i)\b(?:seen|found|present|appears?|appeared|occurs?|occurred|recurring|open|noted)\b[^.]{0,40}\bv|^\W*v\.?\d"
)
LEADING = re.compile(
    rf"\s*(?:[*_\[(`]+\s*(?P<marked>{'|'.join(SEVERITIES.values())})[\s:]*[*_\])`]+[\s:.–—-]*"
    rf"|(?P<plain>{'|'.join(SEVERITIES.values())})(?:\s*:|\s+[–—-])\s*|(?P<bare>[ps]\d)\s+)",
    re.IGNORECASE,
)
"""A severity before an issue: `[P0]`, `**P1**:`, `critical:`."""
REMARK = re.compile(r"\s*[(\[]([^()\[\]]{2,80})[)\]]\s*$")
TITLES = ("title", "name", "issue", "problem", "finding", "summary", "description", "text", "message")
DETAILS = ("detail", "details", "description", "explanation", "reason", "evidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one place of a document states of a judgement."""

    fields: Mapping[str, Any]
    score: Score | None
    judged_at: datetime | None
    issues: tuple[FoundIssue, ...] = ()
    lists_issues: bool = False

    @property
    def judges(self) -> bool:
        """True where something was judged."""
        beside = any(self.fields.get(name) not in (None, "") for name in JUDGING_FIELDS) or self.lists_issues
        return (self.score is not None and beside) or passed_of(self.fields) is not None

    def judgement(self, *, basis: str, pointer: str = "", score_alone: bool = False) -> FoundJudgement | None:
        """Returns the judgement that it states; None where it states none."""
        if not (self.judges or self.issues or (score_alone and self.score is not None)):
            return None
        version = text_of(self.fields.get("version"), NAME_CHARACTERS)
        return FoundJudgement(
            case=text_of(self.fields.get("case"), NAME_CHARACTERS),
            version=version if BARE.fullmatch(version) else version_of(version),
            pointer=pointer,
            judged_at=self.judged_at,
            score=None if self.score is None else self.score.value,
            stated=None if self.score is None else self.score.stated,
            verdict=verdict_of(self.fields),
            passed=passed_of(self.fields),
            grade=text_of(self.fields.get("grade"), 20),
            judge=re.sub(r"^\d.*", "", text_of(self.fields.get("judge"), NAME_CHARACTERS)),
            basis=basis,
            summary=text_of(self.fields.get("summary"), DETAIL_CHARACTERS),
            lists_issues=self.lists_issues and self.judges,
            issues=self.issues[:MOST],
        )


def in_json(text: str, *, judging: bool) -> list[FoundJudgement]:
    """Returns the judgements of a JSON text; `judging` says that its file's name promises one."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return list(_found(document, "", JUDGED, 0, judging=judging))[:MOST]


def _found(value: Any, pointer: str, basis: str, depth: int, *, judging: bool) -> Iterator[FoundJudgement]:  # noqa: ANN401 - any JSON value
    if isinstance(value, list) and depth < DEPTH:
        for place, item in enumerate(value):
            if isinstance(item, Mapping):
                yield from _found(item, f"{pointer}/{place}", LISTED, depth + 1, judging=judging)
        return
    if not isinstance(value, Mapping) or depth >= DEPTH or not PLOT.isdisjoint(value):
        return
    gathered = _Gathered()
    gathered.take(value, pointer, 0)
    facts = gathered.facts
    own = facts.judgement(basis=basis, pointer=pointer, score_alone=judging and depth == 0)
    if own is not None and (facts.judges or judging or any(issue.severity for issue in facts.issues)):
        yield own
    yield from _parts(gathered.lists, facts, depth)


def _parts(
    lists: Sequence[tuple[str, Sequence[tuple[str | int, Any]]]], facts: "Facts", depth: int
) -> Iterator[FoundJudgement]:
    """Yields the judgements in lists; what a part does not say is said of the whole."""
    case, whole = (text_of(facts.fields.get(name), NAME_CHARACTERS) for name in ("case", "version"))
    for where, items in lists:
        for place, item in items:
            for found in _found(item, f"{where}/{place}", LISTED, depth + 1, judging=False):
                own = found.version or (place if isinstance(place, str) else "")
                yield replace(
                    found,
                    case=found.case or case,
                    version=version_of(own) if own else whole,
                    judged_at=found.judged_at or facts.judged_at,
                )


@dataclass(slots=True)
class _Gathered:
    """The fields of an object and of those nested in it, the outermost first."""

    values: dict[str, Any] = field(default_factory=dict)
    issues: list[FoundIssue] = field(default_factory=list)
    lists_issues: bool = False
    lists: list[tuple[str, Sequence[tuple[str | int, Any]]]] = field(default_factory=list)
    """Lists of objects by pointer, and objects called as versions."""

    @property
    def facts(self) -> Facts:
        """The fields, read."""
        fields = {name: _first(self.values, keys) for name, keys in FIELDS.items()}
        if not VERDICTS.fullmatch(text_of(_first(self.values, ("status", "result")), 40)):
            fields["verdict"] = _first(self.values, FIELDS["verdict"][:-2])
        return Facts(
            fields=fields,
            score=stated_score(self.values),
            judged_at=found_date(self.values),
            issues=tuple(self.issues),
            lists_issues=self.lists_issues,
        )

    def take(self, value: Mapping[str, Any], pointer: str, depth: int) -> None:
        """Take in the fields of an object, and of those nested in it."""
        nested: list[tuple[str, Mapping[str, Any]]] = []
        stated = {_key(raw) for raw in value}
        scored = depth == 0 or not BESIDE.isdisjoint(stated)
        for raw, item in value.items():
            key, where = _key(raw), f"{pointer}/{str(raw).replace('~', '~0').replace('/', '~1')}"
            if found := ISSUES.fullmatch(key):
                self.issues += _issues(
                    item, severity=severity_of(found["severity"] or ""), mended=bool(found["mended"])
                )
                self.lists_issues = True
            elif isinstance(item, Mapping | list):
                nested += self._take_nested(key, where, item)
            elif key != "score" or scored:
                self.values.setdefault(key, item)
        if value and all(str(raw)[:1] in "vV" and version_of(str(raw)) for raw in value):
            self.lists.append((pointer, [(raw, _as_judged(raw, item)) for raw, item in value.items()]))
        elif depth < DEPTH:
            for where, inner in nested:
                self.take(inner, where, depth + 1)

    def _take_nested(
        self, key: str, where: str, item: Mapping[str, Any] | list[Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Takes in a list of objects; returns an object, whose own fields come after those beside it."""
        if CRITERIA.search(key):
            return []
        if isinstance(item, Mapping):
            self.values.setdefault(key, item)
            return [(where, item)]
        if any(isinstance(part, Mapping) for part in item):
            self.lists.append((where, list(enumerate(item))))
        return []


def _as_judged(version: str, item: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    return {"version": version, **item} if isinstance(item, Mapping) else {"version": version, "score": item}


def _key(raw: object) -> str:
    key = re.sub(r"[\s-]+", "_", CAMEL.sub("_", str(raw)).lower())
    return PREFIX.sub("", key)


def _first(values: Mapping[str, Any], keys: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Returns the first of these values that is a text, a number or a truth."""
    return next((values[key] for key in keys if isinstance(values.get(key), str | int | float)), None)


def _issues(value: Any, *, severity: str = "", mended: bool = False) -> list[FoundIssue]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        by_severity = [(severity_of(str(key)), item) for key, item in value.items()]
        if any(name for name, _ in by_severity):
            return [issue for name, item in by_severity for issue in _issues(item, severity=name, mended=mended)]
        return [issue] if (issue := _issue(value, severity, mended=mended)) else []
    if isinstance(value, str):
        return [issue] if (issue := issue_of(value, severity=severity, mended=mended)) else []
    return (
        [issue for item in value for issue in _issues(item, severity=severity, mended=mended)]
        if isinstance(value, list)
        else []
    )


def _issue(value: Mapping[str, Any], severity: str, *, mended: bool) -> FoundIssue | None:
    facts = {_key(key): item for key, item in value.items()}
    title = next((facts[key] for key in TITLES if isinstance(facts.get(key), str) and facts[key].strip()), "")
    detail = next((facts[key] for key in DETAILS if isinstance(facts.get(key), str) and facts[key] != title), "")
    stated = _first(facts, ("severity", "priority", "level", "impact", "sev"))
    seen = _joined(_first_of(facts, ("seen_in", "versions", "found_in", "occurrences", "version", "first_seen")))
    gone_in = _joined(_first_of(facts, ("mended_in", "fixed_in", "resolved_in", "closed_in")))
    status = _joined(_first_of(facts, ("status", "state", "resolution")))
    gone = (
        mended
        or bool(gone_in)
        or bool(STATED_GONE.search(status))
        or any(facts.get(key) is True for key in GONE.split("|")[:4])
    )
    found = issue_of(
        title, detail=detail, severity=severity_of(text_of(stated, 40)) or severity, mended=gone, seen=seen
    )
    if found is None:
        return None
    if status and not gone:
        found = replace(found, status=OPEN)
    return replace(found, mended_in=next(versions_in(gone_in), "") or found.mended_in)


def issue_of(
    line: str, *, detail: str = "", severity: str = "", mended: bool = False, seen: str = ""
) -> FoundIssue | None:
    """Returns the issue that a line states with its detail; None where it says nothing.

    A severity may stand before it, a status in brackets behind it, and sentences of the detail may say in which
    versions it was seen, and which one mended it.
    """
    leading = LEADING.match(line)
    title = (line[leading.end() :] if leading else line).strip()
    remarks = REMARK.findall(title)
    struck = "~~" in title
    title = REMARK.sub("", title).strip(" *_~`|\t:-–—✅☑")
    if not re.search(r"[^\W\d_]{2}", title):
        return None
    sentences = [*SENTENCE.split(detail), *remarks]
    gone = [part for part in sentences if BEGINS_GONE.match(part)]
    told = [seen, *(part for part in sentences if part not in gone and SEEN.search(part))]
    return FoundIssue(
        title=text_of(title, TITLE_CHARACTERS),
        detail=text_of(detail, DETAIL_CHARACTERS),
        severity=severity_of(leading[leading.lastgroup or 0] if leading else "") or severity,
        status=MENDED if mended or struck or gone or "✅" in line else OPEN,
        versions=tuple(dict.fromkeys(version for part in told for version in versions_in(part))),
        mended_in=next((version for part in gone for version in versions_in(part)), ""),
    )


class Judged(Protocol):
    """A run, or the outcome of one, as far as it is judged."""

    @property
    def run_id(self) -> str | None:
        """The pipeline's name for it."""
        ...

    @property
    def task(self) -> str:
        """What it was to do."""
        ...

    @property
    def final_score(self) -> float | None:
        """The evaluator's score, 0 to 10."""
        ...

    @property
    def verdict(self) -> str:
        """The evaluator's final word."""
        ...

    @property
    def issues(self) -> tuple[str, ...]:
        """The evaluator's issues."""
        ...


def in_run(run: Judged, *, name: str = "") -> tuple[str, FoundJudgement | None]:
    """Returns the name of a run, or `name` if it has none, and its judgement; None where nobody has judged it.

    Its case and version are those that its metadata, its id or its task name, in this order; else the task is the case.
    """
    run_id = run.run_id or name
    if run.final_score is None and not run.verdict and not run.issues:
        return run_id, None
    facts = {_key(key): value for key, value in getattr(run, "metadata", {}).items()}
    stated = {field: text_of(_first(facts, FIELDS[field]), NAME_CHARACTERS) for field in ("case", "version", "judge")}
    versions = (version_of(stated["version"]), *versions_in(run.run_id or ""), *versions_in(run.task))
    version = next(filter(None, versions), "")
    path_case, path_version = named_in_path((run.run_id or "",))
    issues = (issue_of(line, severity="") for line in run.issues)
    moments = (getattr(run, field, None) for field in ("finished_at", "occurred_at", "started_at", "created_at"))
    return run_id, FoundJudgement(
        case=stated["case"] or (path_case if path_version else "") or text_of(run.task, NAME_CHARACTERS) or run_id,
        version=version,
        judged_at=next((moment for moment in moments if moment is not None), None),
        score=run.final_score,
        stated=run.final_score,
        verdict=text_of(run.verdict, NAME_CHARACTERS),
        passed=passed_of({"verdict": run.verdict}),
        judge=stated["judge"],
        lists_issues=bool(run.issues) or passed_of({"verdict": run.verdict}) is True,
        issues=tuple(issue for issue in issues if issue is not None)[:MOST],
    )


def severity_of(text: str) -> str:
    """Returns the severity that a text is, P0 to P3; empty where it is none."""
    said = text.strip(" *_[]()").lower()
    return next((name for name, words in SEVERITIES.items() if re.fullmatch(words, said)), "")


def verdict_of(fields: Mapping[str, Any]) -> str:
    """Returns the evaluator's final word."""
    return text_of(fields.get("verdict"), NAME_CHARACTERS).strip("*_ ")


def passed_of(fields: Mapping[str, Any]) -> bool | None:
    """Returns whether it passed, as a field or the verdict says; None where neither does."""
    for value in (fields.get("passed"), fields.get("verdict")):
        if isinstance(value, bool):
            return value
        if YES.fullmatch(said := text_of(value, NAME_CHARACTERS)):
            return True
        if NO.fullmatch(said):
            return False
    return None


def _first_of(facts: Mapping[str, Any], keys: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    return next((facts[key] for key in keys if facts.get(key)), None)


def _joined(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Returns texts and numbers, or the texts of a list's parts, in one line."""
    parts = value if isinstance(value, list) else [value]
    said = [part.get("version") if isinstance(part, Mapping) else part for part in parts[:MOST]]
    return ", ".join(
        f"v{part}" if isinstance(part, int) else text_of(part, NAME_CHARACTERS) for part in said if part is not True
    )


def text_of(value: Any, limit: int) -> str:  # noqa: ANN401 - any JSON value
    """Returns a value in one line of at most `limit` characters."""
    if value is None or isinstance(value, bool | Mapping | list):
        return ""
    line = " ".join(str(value).replace("\0", " ").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
