"""Finds the judgements of a report file, those in Markdown here, with their case and version. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import frontmatter
import yaml

from app.runs.judgements.extract import (
    BEGINS_GONE,
    FIELDS,
    LEADING,
    MOST,
    STATED_GONE,
    TITLE_CHARACTERS,
    VERDICTS,
    Facts,
    in_json,
    issue_of,
    severity_of,
    text_of,
)
from app.runs.judgements.judgement import (
    BARE,
    JUDGED,
    JUDGING,
    LISTED,
    REPORTED,
    VERSION,
    FoundIssue,
    FoundJudgement,
    case_key,
    named_in_path,
    version_of,
    versions_in,
)
from app.safety.scan import blocking, scan
from app.text.scores import found_date, stated_score, written_moment, written_score

LARGEST = 2_000_000
"""Characters of a file that are looked through."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)?\s*(?:(?:/|out of)\s*\d+(?:[.,]\d+)?|%)?")
LINE = re.compile(
    r"^[ \t>|*_#-]*(?P<name>[^\W\d][^\n:|*]{0,40}?)[ \t*_]*[:|][ \t|*_`]*(?P<value>[^\n|]+?)[ \t|*_`]*$", re.MULTILINE
)
"""A line that gives a name its value: `**Overall score: 6.3/10**`, `Verdict: pass`, `| Score | 0.97 |`."""
SCORE_NAME = re.compile(
    r"(?i)(?P<sure>(?:overall|final|total|judge'?s?|evaluator'?s?) (?:score|grade|rating)|итоговая оценка|gesamtnote)"
    r"|score|оценка"
)
NAMES = {
    "verdict": "verdict|decision|outcome|status|вердикт",
    "passed": "passed",
    "grade": "grade",
    "version": "version|versión|iteration|round",
    "case": "(?:test )?case|scenario",
    "judge": "judge|evaluator|reviewer|judged by",
    "date": "date|judged(?: at| on)?|evaluated|generated|дата",
}
TITLE = re.compile(r'"(?:title|name)"\s*:\s*"([^"\n]{1,300})"')
BEFORE_VERSION = re.compile(rf"[\s,;:–—|-]*(?:{VERSION.pattern})|\s*[:–—|]\s", re.IGNORECASE)
FENCE = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1[^\n]*$", re.MULTILINE | re.DOTALL)
PROSE = re.compile(r"^(?![#>|*+-]|\d+[.)]|\s)[^\n:]{60,}$", re.MULTILINE)
HEADING = re.compile(r"^(?P<marks>#{1,6})[ \t]+(?P<text>.+?)[ \t#]*$", re.MULTILINE)
BULLET = re.compile(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+(?:\[(?P<done>[ xX])\][ \t]*)?(?P<text>.+)$")
ISSUE_HEADING = re.compile(
    r"(?i)\b(?:issues?|problems|findings|weaknesses|defects|flaws|shortcomings|what (?:is|was|went) wrong)\b"
    r"|замечания|проблемы|mängel|problèmes"
)
COLUMNS = {
    "severity": re.compile(r"(?i)severity|priority|sev\.?"),
    "title": re.compile(r"(?i)issue|problem|finding|title|description"),
    "status": re.compile(r"(?i)status|state"),
}


def found_in_report(path: PurePosixPath, content: str) -> tuple[FoundJudgement, ...]:
    """Returns the judgements of a report file, with the case and the version that it or its path names."""
    content = content[:LARGEST]
    judging = any(JUDGING.search(part) for part in (path.stem, *path.parts[-2:-1]))
    if path.suffix.lower() == ".json":
        found, match = in_json(content, judging=judging), TITLE.search(content)
        title = "" if match is None else match[1]
    else:
        found, title = in_markdown(content, judging=judging)
    case, version = named_in_path(path.parts)
    titled = BEFORE_VERSION.split(title, maxsplit=1)[0] if BEFORE_VERSION.search(title) else ""
    # A title often spells the name that the path has in lower case.
    case = titled if not case or case_key(titled) == case_key(case) else case
    version = version or next(versions_in(title), "")
    return tuple(
        replace(
            item,
            case=item.case or case,
            # A bare number is often the version of a format: the path's goes first.
            version=(version or version_of(item.version)) if BARE.fullmatch(item.version or "0") else item.version,
        )
        for item in found
    )


def harmless(found: FoundJudgement) -> FoundJudgement:
    """Returns a judgement without the texts and issues that instruct their reader."""
    texts: dict[str, Any] = {
        name: "" if blocking(scan(getattr(found, name))) else getattr(found, name)
        for name in ("case", "verdict", "grade", "judge", "summary")
    }
    issues = (issue for issue in found.issues if not blocking(scan(f"{issue.title}\n{issue.detail}")))
    return replace(found, **texts, issues=tuple(issues))


def in_markdown(text: str, *, judging: bool) -> tuple[list[FoundJudgement], str]:
    """Returns the judgements of a Markdown text, and its title; `judging` says that its file's name promises one."""
    try:
        front, body = frontmatter.parse(text)
    except (yaml.YAMLError, ValueError):
        front, body = {}, text
    values = {str(key).lower().replace(" ", "_"): value for key, value in front.items()}
    body = FENCE.sub("", body)
    heading = HEADING.search(body)
    title = text_of(values.get("title") or (heading["text"] if heading else ""), TITLE_CHARACTERS)
    reader = _Issues()
    for line in body.splitlines():
        reader.take(line)
    reader.end()
    facts, sure = _facts(values, body, reader)
    stated = stated_score(values) is not None or sure or facts.judges
    basis = JUDGED if judging or reader.headed else REPORTED
    own = facts.judgement(basis=basis, score_alone=judging or stated) if judging or stated else None
    if own is None and reader.headed and any(issue.severity for issue in facts.issues):
        own = facts.judgement(basis=LISTED)
    return [*([own] if own else []), *_listed(body)][:MOST], title


def _facts(values: Mapping[str, Any], body: str, issues: "_Issues") -> tuple[Facts, bool]:
    """Returns what front matter and text state, and whether it is called an overall score; the first value counts."""
    fields = {name: next((values[key] for key in keys if key in values), None) for name, keys in FIELDS.items()}
    score, judged_at, sure = stated_score(values), found_date(values), False
    for match in LINE.finditer(body):
        name, value = match["name"].strip(" *_`"), match["value"].strip(" *_`")
        if score is None and (known := SCORE_NAME.fullmatch(name)) and (number := NUMBER.match(value)):
            score, sure = written_score(number[0]), bool(known["sure"])
        wanted = next((item for item, names in NAMES.items() if re.fullmatch(names, name, re.IGNORECASE)), "")
        if wanted == "date":
            judged_at = judged_at or written_moment(value)
        elif wanted and fields.get(wanted) is None and (name.lower() != "status" or VERDICTS.search(value)):
            fields[wanted] = value.strip("✅❌✓✗ ") or value
    fields["summary"] = fields["summary"] or next(iter(PROSE.findall(body)), "")
    facts = Facts(
        fields=fields, score=score, judged_at=judged_at, issues=tuple(issues.found), lists_issues=issues.headed
    )
    return facts, sure


@dataclass(slots=True)
class _Issues:
    """Reads the issues of a text line by line: marked by a severity, or in a section or table of issues."""

    found: list[FoundIssue] = field(default_factory=list)
    headed: bool = False
    """True where a section or a table is called so."""
    depth: int = 0
    """The level of the heading of the section of issues that the line is in; 0: in none."""
    severity: str = ""
    mended: bool = False
    columns: Mapping[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    """The issue that is read, and what stands under it."""
    listed: bool = False
    """True where it is the item of a list, which ends at an empty line."""

    def take(self, line: str) -> None:
        """Read a line."""
        bullet, heading = BULLET.match(line), HEADING.match(line)
        if heading:
            self._take_heading(len(heading["marks"]), heading["text"].strip(" *_:"))
        elif line.lstrip().startswith("|"):
            self._take_row([cell.strip(" *_`") for cell in line.strip().strip("|").split("|")])
        elif bullet and (self.depth or LEADING.match(bullet["text"])):
            self._begin(bullet["text"] + (" (fixed)" if bullet["done"] in {"x", "X"} else ""), listed=True)
        elif line.strip() and self.lines:
            self.lines.append(line.strip())
        elif self.listed or not line.strip():
            self.columns = {}
            if self.listed:
                self.end()

    def end(self) -> None:
        """Keep the issue that is read."""
        title, *detail = self.lines or ("",)
        issue = issue_of(title, detail=" ".join(detail), severity=self.severity, mended=self.mended)
        if issue is not None and len(self.found) < MOST:
            self.found.append(issue)
        self.lines = []

    def _begin(self, line: str, *, listed: bool) -> None:
        self.end()
        self.lines, self.listed = [line], listed

    def _take_heading(self, depth: int, text: str) -> None:
        self.end()
        first = severity_of(text) or severity_of(text.split(maxsplit=1)[0]) if text else ""
        gone = BEGINS_GONE.match(text) is not None
        if (gone or ISSUE_HEADING.search(text)) and not (LEADING.match(text) and issue_of(text) and depth > 1):
            self.headed, self.depth, self.severity, self.mended = True, depth, first, gone
        elif LEADING.match(text) and issue_of(text):
            self._begin(text, listed=False)
        elif first:
            self.depth, self.severity = min(self.depth or depth, depth), first
        elif self.depth and depth <= self.depth:
            self.depth, self.severity, self.mended = 0, "", False
        elif self.depth:
            self._begin(text, listed=False)

    def _take_row(self, cells: Sequence[str]) -> None:
        self.end()
        head = {
            name: at for name, pattern in COLUMNS.items() for at, cell in enumerate(cells) if pattern.fullmatch(cell)
        }
        if {"severity", "title"} <= head.keys():
            self.columns, self.headed = head, True
        elif self.columns and len(cells) > max(self.columns.values()):
            status = cells[self.columns["status"]] if "status" in self.columns else ""
            severity = severity_of(cells[self.columns["severity"]])
            gone = bool(STATED_GONE.search(status))
            issue = issue_of(cells[self.columns["title"]], severity=severity, mended=gone)
            if severity and issue is not None:
                self.found.append(issue)


ROW = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)


def _listed(body: str) -> Iterator[FoundJudgement]:
    """Yields the judgements of tables whose first column or first row are versions, with a score for each."""
    rows = [[cell.strip(" *_`") for cell in match[1].split("|")] for match in ROW.finditer(body)]
    for head, *others in _tables(rows):
        by_row = re.fullmatch(r"(?i)versions?|версия|run|iteration", head[0]) is not None
        across = [version_of(cell) for cell in head[1:]]
        lines = zip(*others, strict=False) if by_row and all(across) else ()
        if by_row and across and all(across):
            named = [dict(zip([row[0] for row in others], column, strict=True)) for column in list(lines)[1:]]
            yield from _judged(zip(across, named, strict=False))
        elif by_row:
            named = [dict(zip(head, row, strict=False)) for row in others]
            yield from _judged((version_of(row[0]), item) for row, item in zip(others, named, strict=True))


def _tables(rows: Sequence[list[str]]) -> Iterator[list[list[str]]]:
    """Yields the tables among rows: a head, and what follows the line under it up to the next head."""
    heads = [at for at, (_, line) in enumerate(pairwise(rows)) if set("".join(line)) <= set("-: ")]
    for at, end in zip(heads, [*heads[1:], len(rows)], strict=False):
        yield [rows[at], *(row for row in rows[at + 2 : end] if len(row) == len(rows[at]))]


def _judged(found: Any) -> Iterator[FoundJudgement]:  # noqa: ANN401 - pairs of a version and its cells by name
    for version, cells in found:
        values = {name.lower().replace(" ", "_"): value for name, value in cells.items()}
        score = stated_score(values)
        if version and score is not None:
            facts = {name: next((values[key] for key in keys if key in values), None) for name, keys in FIELDS.items()}
            stated = Facts(fields={**facts, "version": version}, score=score, judged_at=found_date(values))
            if (judgement := stated.judgement(basis=LISTED, score_alone=True)) is not None:
                yield judgement
