"""Reads issues: a line that states one, and JSON of any form that lists them. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.runs.judgements.judgement import (
    DETAIL_CHARACTERS,
    MENDED,
    MOST,
    NAME_CHARACTERS,
    OPEN,
    TITLE_CHARACTERS,
    FoundIssue,
    first,
    key_of,
    text_of,
    version_of,
    versions_in,
)

SEVERITIES = {
    "P0": r"p0|s0|sev(?:erity)?[ -]?0|critical|blocker|blocking|severe|fatal",
    "P1": r"p1|s1|sev(?:erity)?[ -]?1|high|major|serious|important",
    "P2": r"p2|s2|sev(?:erity)?[ -]?2|medium|moderate|normal",
    "P3": r"p3|s3|sev(?:erity)?[ -]?3|low|minor|trivial|cosmetic|nit|info",
}
GONE = r"fixed|mended|resolved|closed|solved|addressed|исправлено|behoben|corrigé|resuelto|已修复"
STATED_GONE = re.compile(rf"(?i)(?<!un)(?<!not )(?<!partially )(?<!partly )(?<!\w)(?:{GONE}|done)(?!\w)")
BEGINS_GONE = re.compile(rf"(?i)\W*(?:{GONE})(?!\w)")
SENTENCE = re.compile(r"(?<=[.!?;])\s+")
SEEN = re.compile(
    r"(?i)\b(?:seen|found|present|appears?|appeared|occurs?|occurred|recurring|open|noted)\b[^.]{0,40}\bv|^\W*v\.?\d"
)
LEADING = re.compile(
    rf"\s*(?:[*_\[(`]+\s*(?P<marked>{'|'.join(SEVERITIES.values())})[\s:]*[*_\])`]+[\s:.–—-]*"
    rf"|(?P<plain>{'|'.join(SEVERITIES.values())})(?:\s*:|\s+[–—-])\s*|(?P<bare>[ps]\d)\s+)",
    re.IGNORECASE,
)
"""A severity before an issue: `[P0]`, `**P1**:`, `critical:`."""
REMARK = re.compile(r"[(\[]([^()\[\]]{2,80})[)\]]$")

SEVERITY = ("severity", "priority", "level", "impact", "sev")
TITLES = ("title", "name", "issue", "problem", "finding", "summary", "description", "text", "message")
DETAILS = ("detail", "details", "description", "explanation", "reason", "evidence")
STATUS = ("status", "state", "resolution")
SEEN_IN = ("seen_in", "versions", "found_in", "occurrences", "version", "first_seen")
GONE_IN = ("mended_in", "fixed_in", "resolved_in", "closed_in")
IS_GONE = ("fixed", "mended", "resolved", "closed", "done")


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


def issues_in(value: Any, *, severity: str = "", mended: bool = False) -> Iterator[FoundIssue]:  # noqa: ANN401 - any JSON value
    """Yields the issues of a text, an object, a list, or an object of lists by severity (`{"P0": […]}`)."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from issues_in(item, severity=severity, mended=mended)
    elif isinstance(value, Mapping) and any(severity_of(str(key)) for key in value):
        for key, item in value.items():
            yield from issues_in(item, severity=severity_of(str(key)), mended=mended)
    elif isinstance(value, Mapping | str):
        line = value if isinstance(value, Mapping) else {"title": value}
        if (issue := _issue(line, severity, mended=mended)) is not None:
            yield issue


def _issue(value: Mapping[str, Any], severity: str, *, mended: bool) -> FoundIssue | None:
    facts = {key_of(key): item for key, item in value.items()}
    titles = [facts[key] for key in TITLES if isinstance(facts.get(key), str) and facts[key].strip()]
    title = titles[0] if titles else ""
    detail = next((facts[key] for key in DETAILS if isinstance(facts.get(key), str) and facts[key] != title), "")
    status, gone_in = _told(facts, STATUS), _told(facts, GONE_IN)
    stated_gone = STATED_GONE.search(status) or gone_in or any(facts.get(key) is True for key in IS_GONE)
    found = issue_of(
        title,
        detail=detail,
        severity=severity_of(text_of(first(facts, SEVERITY), 40)) or severity,
        mended=mended or bool(stated_gone),
        seen=_told(facts, SEEN_IN),
    )
    if found is None:
        return None
    if status and not (mended or stated_gone):
        found = replace(found, status=OPEN)
    return replace(found, mended_in=next(versions_in(gone_in), "") or found.mended_in)


def _told(facts: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Returns the first of these fields, a list of texts, numbers or objects with a version as one line."""
    value = next((facts[key] for key in keys if facts.get(key)), None)
    parts = [part.get("version") if isinstance(part, Mapping) else part for part in _listed(value)[:MOST]]
    return ", ".join(
        version_of(str(part)) if isinstance(part, int) else text_of(part, NAME_CHARACTERS)
        for part in parts
        if part is not True
    )


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, list) else [value]


def severity_of(text: str) -> str:
    """Returns the severity that a text is, P0 to P3; empty where it is none."""
    said = text.strip(" *_[]()").lower()
    return next((name for name, words in SEVERITIES.items() if re.fullmatch(words, said)), "")
