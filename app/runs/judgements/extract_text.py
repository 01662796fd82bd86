"""Finds the judgements of a report file, those in Markdown here, with their case and version. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import frontmatter
import yaml

from app.runs.judgements.extract import FIELDS, Facts, in_json
from app.runs.judgements.issue import BEGINS_GONE, LEADING, SEVERITY, issue_of, issues_in, severity_of
from app.runs.judgements.judgement import (
    BARE,
    JUDGED,
    JUDGING,
    LISTED,
    MOST,
    REPORTED,
    TITLE_CHARACTERS,
    VERSION,
    FoundIssue,
    FoundJudgement,
    case_key,
    key_of,
    named_in_path,
    text_of,
    version_of,
    versions_in,
)
from app.safety.scan import blocking, scan
from app.text.scores import written_date

LARGEST = 2_000_000
"""Characters of a file that are looked through."""
NUMBER = re.compile(r"\d+(?:[.,]\d+)?\s*(?:(?:/|out of)\s*\d+(?:[.,]\d+)?|%)?")
LINE = re.compile(r"^[ \t>|*_#-]*(?P<name>[^\W\d_][^\n:|*]{0,40}?)[ \t*_]*[:|](?P<value>.+)$", re.MULTILINE)
"""A line that gives a name its value: `**Overall score: 6.3/10**`, `Verdict: pass`, `| Score | 0.97 |`."""
NAMES = {
    "overall_score": r"(?:overall|final|total|judge'?s?|evaluator'?s?) (?:score|grade|rating)"
    "|итоговая оценка|gesamtnote",
    "score": "score|оценка",
    "verdict": "verdict|decision|outcome|вердикт",
    "status": "status",
    "passed": "passed",
    "grade": "grade",
    "version": "version|versión|iteration|round",
    "case": "(?:test )?case|scenario",
    "judge": "judge|evaluator|reviewer|judged by",
}
"""Names of lines by the key that they are read as."""
VERSIONS = frozenset({*FIELDS["version"], "versions", "версия"})
"""Names of a table's first column that lists versions."""
ISSUE = frozenset({"issue", "problem", "finding", "title", "description"})
"""Names of a column of issues, in a table that has a severity for each."""
TITLE = re.compile(r'"(?:title|name)"\s*:\s*"([^"\n]{1,300})"')
BEFORE_VERSION = re.compile(rf"[\s,;:–—|-]*(?:{VERSION.pattern})|\s*[:–—|]\s", re.IGNORECASE)
FENCE = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1[^\n]*$", re.MULTILINE | re.DOTALL)
PROSE = re.compile(r"^(?![#>|*+-]|\d+[.)]|\s)[^\n:]{60,}$", re.MULTILINE)
HEADING = re.compile(r"^(?P<marks>#{1,6})[ \t]+(?P<text>\S.*)$", re.MULTILINE)
BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+(?:\[(?P<done>[ xX])\][ \t]*)?(?P<text>.+)$", re.MULTILINE)
ROW = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)
BLANK = re.compile(r"\n\s*\n")
ISSUE_HEADING = re.compile(
    r"(?i)\b(?:issues?|problems|findings|weaknesses|defects|flaws|shortcomings|what (?:is|was|went) wrong)\b"
    r"|замечания|проблемы|mängel|problèmes"
)


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
    body = FENCE.sub("", body)
    heading = HEADING.search(body)
    title = text_of(front.get("title") or (heading["text"].rstrip(" \t#") if heading else ""), TITLE_CHARACTERS)
    facts, stated = _stated(front, body)
    own = None
    if judging or stated:
        basis = JUDGED if judging or facts.lists_issues else REPORTED
        own = facts.judgement(basis=basis, score_alone=True)
    elif facts.lists_issues and any(issue.severity for issue in facts.issues):
        own = facts.judgement(basis=LISTED)
    return [*([own] if own else []), *facts.parts()][:MOST], title


def _stated(front: Mapping[str, Any], body: str) -> tuple[Facts, bool]:
    """Returns what front matter and text state, and whether that is a judgement of its own.

    The first value of a field counts. A number that a line only calls score judges nothing by itself.
    """
    facts = Facts()
    facts.take(front)
    is_scored = facts.score is not None
    for key, value in _lines(body):
        facts.values.setdefault(key, value)
    facts.values.setdefault("date", written_date(body))
    issues, headed = _issues(ROW.sub("", body))
    facts.issues += issues
    facts.lists_issues |= headed
    for table in _tables(body):
        _take_table(facts, table)
    stated = is_scored or "overall_score" in facts.values or facts.judges
    if not facts.text("summary"):
        facts.values["summary"] = next(iter(PROSE.findall(body)), "")
    return facts, stated


def _issues(body: str) -> tuple[list[FoundIssue], bool]:
    """Returns the issues that a text marks by a severity or has in a section of issues, and whether it has such one.

    A section of issues ends at the next heading of its level. Each heading and list item in it is an issue.
    """
    found: list[FoundIssue | None] = []
    headed, depth, severity, mended = False, 0, "", False
    before, *rest = HEADING.split(body)
    for marks, heading, text in [("", "", before), *zip(rest[::3], rest[1::3], rest[2::3], strict=True)]:
        said = heading.rstrip(" \t#").strip(" *_:")
        first = severity_of(said) or severity_of(said.partition(" ")[0])
        gone = BEGINS_GONE.match(said) is not None
        marked = LEADING.match(said) is not None and issue_of(said) is not None
        is_issue = marked or 0 < depth < len(marks)
        if (gone or ISSUE_HEADING.search(said)) and not (marked and len(marks) > 1):
            headed, depth, severity, mended, is_issue = True, len(marks), first, gone, False
        elif first and not marked:
            depth, severity, is_issue = min(depth or len(marks), len(marks)), first, False
        elif not is_issue:
            depth, severity, mended = 0, "", False
        for line, detail in _items(said if is_issue else "", text, every=depth > 0):
            found.append(issue_of(line, detail=detail, severity=severity, mended=mended))
    return [issue for issue in found if issue is not None][:MOST], headed


def _items(heading: str, text: str, *, every: bool) -> Iterator[tuple[str, str]]:
    """Yields a heading and the list items of the text below it, each with what is said of it up to an empty line.

    Items without a severity are left out unless `every` one is an issue.
    """
    bullets = [match for match in BULLET.finditer(text) if every or LEADING.match(match["text"])]
    ends = [*(match.start() for match in bullets), len(text)]
    yield heading, " ".join(text[: ends[0]].split())
    for match, end in zip(bullets, ends[1:], strict=True):
        line = match["text"] + (" (fixed)" if match["done"] in {"x", "X"} else "")
        yield line, " ".join(BLANK.split(text[match.end() : end])[0].split())


def _lines(body: str) -> Iterator[tuple[str, str]]:
    """Yields the keys and values of lines that have a known name."""
    for match in LINE.finditer(body):
        name, value = match["name"].strip(" *_`"), match["value"].strip(" \t|*_`")
        if not value or "|" in value:
            continue
        key = next((key for key, names in NAMES.items() if re.fullmatch(names, name, re.IGNORECASE)), "")
        if key and not key.endswith("score"):
            yield key, value.strip("✅❌✓✗ ") or value
        elif key and (number := NUMBER.match(value)):
            yield key, number[0]


def _take_table(facts: Facts, table: Sequence[Sequence[str]]) -> None:
    """Takes in a table of issues with their severities, or of versions, which may stand in its first row."""
    if key_of(table[0][0]) in VERSIONS and all(map(version_of, table[0][1:])):
        table = list(zip(*table, strict=True))
    head = [key_of(cell) for cell in table[0]]
    rows = [dict(zip(head, row, strict=True)) for row in table[1:]]
    if head[0] in VERSIONS:
        versions = [{**row, "version": row[head[0]]} for row in rows if version_of(row[head[0]])]
        facts.lists.append(("", list(enumerate(versions))))
    elif not ISSUE.isdisjoint(head) and not set(SEVERITY).isdisjoint(head):
        facts.issues += (issue for issue in issues_in(rows) if issue.severity)
        facts.lists_issues = True


def _tables(body: str) -> Iterator[list[list[str]]]:
    """Yields the tables: a head, and what follows the line under it up to the next head."""
    rows = [[cell.strip(" *_`") for cell in match[1].split("|")] for match in ROW.finditer(body)]
    heads = [at for at, (_, line) in enumerate(pairwise(rows)) if set("".join(line)) <= set("-: ")]
    for at, end in zip(heads, [*heads[1:], len(rows)], strict=False):
        yield [rows[at], *(row for row in rows[at + 2 : end] if len(row) == len(rows[at]))]
