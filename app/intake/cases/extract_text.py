"""Finds the judgements of a report file, those in Markdown here, with their case and version. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from app.foundation.safety.scan import blocking, scan
from app.foundation.text.document import Document
from app.foundation.text.prose import HEADING, ITEM, ROW, without_code
from app.foundation.text.scores import BARE, VERSION, version_in, version_of, versions_in, written_date
from app.intake.cases.extract import FIELDS, Facts, in_json
from app.intake.cases.issue import (
    GONE,
    LEADING,
    SENTENCE,
    issue_of,
    issues_in,
    severity_of,
    title_and_rest,
)
from app.intake.cases.judgement import (
    JUDGED,
    JUDGING,
    KEYS,
    LISTED,
    MOST,
    NAME_CHARACTERS,
    OPEN,
    REPORTED,
    RESOLVED,
    SILENT,
    TITLE_CHARACTERS,
    FoundIssue,
    FoundJudgement,
    case_key,
    key_of,
    named_in_path,
    text_of,
)

_LARGEST = 2_000_000
"""Characters of a file that are looked through."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?\s*(?:(?:/|out of)\s*\d+(?:[.,]\d+)?|%)?")
_LINE = re.compile(r"^[ \t>|*_#-]*(?P<name>[^\W\d_][^\n:|*]{0,40}?)[ \t*_]*[:|](?P<value>.+)$", re.MULTILINE)
"""A line that gives a name its value: `**Overall score: 6.3/10**`, `Verdict: pass`, `| Score | 0.97 |`."""
_NAMES = {
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
_KEYS = KEYS["issue"]
_VERSIONS = frozenset({*FIELDS["version"], "versions", "версия"})
"""Names of a table's first column that lists versions."""
_TITLE_KEYS, _LONGEST_TITLE = ("title", "name"), 300
"""Keys of a JSON document's title, and the most characters of one."""
_BEFORE_VERSION = re.compile(rf"[\s,;:–—|-]*(?:{VERSION.pattern})|\s*[:–—|]\s", re.IGNORECASE)
_PROSE = re.compile(r"^(?![#>|*+-]|\d+[.)]|\s)[^\n:]{60,}$", re.MULTILINE)
_BULLET = re.compile(rf"{ITEM.pattern}(?P<text>.+)$", re.MULTILINE)
_BLANK = re.compile(r"\n\s*\n")
_JUDGES = re.compile(
    r"(?i)judg|verdict|(?:known|open)[ _-]?(?:issues|points)|gap[ _-]?analysis"
    r"|оцен|вердикт|beurteil|jugement|juicio|评审|评估"
)
"""Names of files whose lists of issues are a judge's, whatever else they say."""
_KEPT = re.compile(
    r"(?i)known[ _-]?issues|open[ _-]?(?:points|issues)|gap[ _-]?analysis"
    r"|issues?[ _-]?(?:list|log|register|board|tracker)"
)
"""Names of files that are kept over versions: a version in their title is when they were last written."""
_LABEL = re.compile(
    r"(?m)^[ \t]*(?:\*\*|__)?(?P<text>[^\W\d_][^\n:*|]{0,60}?)(?:(?:\*\*|__):?|:)(?:[ \t]*$|[ \t]+(?=\(?P[0-3]\b))"
)
"""A line of few words that heads what follows: `**Open**`, `What the judge marked:`, `Judge: P1, …`."""
_INLINE = re.compile(r"(?m)(?:^|(?<=[.!?;]) +)(?=[*(\[]{0,2}P[0-3]\b)")
"""The place in a paragraph at which a severity begins an issue."""
_BY_JUDGE = re.compile(r"(?i)\b(?:judge|judgements?|judgments?|reviewers?|review|referee|evaluator)\b")
_A_REVIEW = re.compile(r"(?i)\breview\b")
"""In a heading it may be an audit's, whose table of findings says nothing of a judge."""
_PRIORITY = re.compile(r"(?m)^[\W\d]{0,8}P[0-3]\b")
"""An issue as judges mark it; words such as `low:` may stand in any review of a product."""
_FINDINGS = re.compile(r"(?i)\bfindings\b")
_STATES = {
    OPEN: re.compile(r"(?i)(?:still )?open|active|unresolved"),
    RESOLVED: re.compile(rf"(?i)(?:{GONE})(?!\w).*"),
    SILENT: re.compile(r"(?i)quiet|silent|(?:not|no longer) named.*"),
}
"""Headings that say the state of the issues below them."""
_NEXT = re.compile(
    r"(?i)(?:\d+[.)]? +)?(?:next(?: steps?| run| version| round| time)?|recommendations?|advice|what to do next"
    r"|(?:plan|recommendations?|advice) for [^\n:.]{1,40}|to[ -]?do(?: [^\n:.]{1,40})?)"
)
"""Headings of what the next run should do."""
_DECLARED = re.compile(
    r"(?i)(?:(?:with this|herewith|thereby|now|so|thus),? )?(?:(?:the|this|that) )?"
    r"(?P<kind>(?:complaint|issue|problem|point)s? (?:about|of|with|on|that) )?(?P<subject>[^,.;:]{4,90}?)"
    r"(?P<since>(?:,| which| that) [^,.;:]{0,30}\bsince (?:v\.?|r|round )\d+,?)?"
    rf" (?:is|are|was|were|has been|have been) (?:[a-z]+ ){{0,2}}\W*(?:{GONE})\b"
)
"""A sentence that declares an issue resolved: it calls it an issue, or says since when it was open."""
_DENIED = re.compile(r"(?i)\b(?:not|never|nobody|unless|until|once|if|when|should|must|will|partly|partially)\b|n't\b")
_SINCE = re.compile(r"(?i)\bsince (?:v\.?|r|round )\d+")
_FIXED_LABEL = re.compile(rf"(?i)\W*(?P<subject>[^\W\d_][^\n:.]{{2,60}}):\s*\W*(?:{GONE})\b\W*(?P<rest>.*)")
_PLAN = re.compile(rf"(?s){_NEXT.pattern}:\s+(?P<text>.+)")
_ISSUE_HEADING = re.compile(
    r"(?i)\b(?:issues?|problems|findings|weaknesses|defects|flaws|shortcomings|what (?:is|was|went) wrong)\b"
    r"|замечания|проблемы|mängel|problèmes"
)


def found_in_report(path: PurePosixPath, document: Document) -> tuple[FoundJudgement, ...]:
    """Returns the judgements of a report file, with the case and the version that it or its path names."""
    judging = any(JUDGING.search(part) for part in (path.stem, *path.parts[-2:-1]))
    if document.is_json:
        found, title = in_json(document.value, judging=judging), next(_titles(document.value), "")
    else:
        found, title = _in_markdown(document.facts, document.body[:_LARGEST], judging=judging)
    case, version = named_in_path(path.parts)
    named = _BEFORE_VERSION.split(title, maxsplit=1)[0].strip(" /,;:–—|-") if _BEFORE_VERSION.search(title) else ""
    # A title often spells the name that the path has in lower case.
    case = named if not case or case_key(named) == case_key(case) else case
    version = version or ("" if _KEPT.search(path.stem) else version_in(title))
    named_of = (
        replace(
            item,
            case=item.case or case,
            # A bare number is often the version of a format: the path's goes first.
            version=(version or version_of(item.version)) if BARE.fullmatch(item.version or "0") else item.version,
        )
        for item in found
    )
    is_kept = _JUDGES.search(path.stem) is not None
    return tuple(item for item in named_of if is_kept or _judges(item))


def _judges(found: FoundJudgement) -> bool:
    """Tells whether a judge speaks: an audit lists the findings of its product, which nobody judged."""
    is_scored = found.score is not None or found.passed is not None or bool(found.verdict or found.grade)
    return is_scored or found.lists_issues or found.version != "" or any(issue.named for issue in found.issues)


def harmless(found: FoundJudgement) -> FoundJudgement:
    """Returns a judgement without the texts and issues that instruct their reader."""
    texts: dict[str, Any] = {
        name: "" if blocking(scan(getattr(found, name))) else getattr(found, name)
        for name in ("case", "verdict", "grade", "judge", "summary")
    }
    issues = (issue for issue in found.issues if not blocking(scan(f"{issue.title}\n{issue.detail}")))
    return replace(found, **texts, issues=tuple(issues))


def _titles(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yields the titles and names in a JSON value, in its order."""
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        if key in _TITLE_KEYS and isinstance(item, str) and 0 < len(item) <= _LONGEST_TITLE and "\n" not in item:
            yield item
        yield from _titles(item)


def _in_markdown(front: Mapping[str, Any], body: str, *, judging: bool) -> tuple[list[FoundJudgement], str]:
    """Returns the judgements of a Markdown text, and its title; `judging` says that its file's name promises one."""
    body = "\n".join(without_code(body.split("\n")))
    heading = HEADING.search(body)
    title = text_of(front.get("title") or (heading["text"].rstrip(" \t#") if heading else ""), TITLE_CHARACTERS)
    if not title:
        # A text without a heading may begin with its round.
        title = text_of(body.strip()[:40].partition(".")[0], TITLE_CHARACTERS)
    facts, stated = _stated_facts(front, body)
    own = None
    if judging or stated:
        basis = JUDGED if judging or facts.lists_issues else REPORTED
        own = facts.judgement(basis=basis, score_alone=True)
    elif any(issue.versions and (issue.how or facts.lists_issues) for issue in facts.issues):
        own = facts.judgement(basis=LISTED)
    return [*([own] if own else []), *facts.parts()][:MOST], title


def _stated_facts(front: Mapping[str, Any], body: str) -> tuple[Facts, bool]:
    """Returns what front matter and text state, and whether that is a judgement of its own.

    The first value of a field counts. A number that a line only calls score judges nothing by itself.
    """
    facts = Facts()
    facts.take(front)
    is_scored = facts.score is not None
    for key, value in _lines(body):
        facts.values.setdefault(key, value)
    facts.values.setdefault("date", written_date(body))
    sections = list(_sections(ROW.sub("", body)))
    issues, headed, by_judge = _issues(sections)
    facts.issues += issues
    facts.lists_issues |= headed or by_judge
    for section in sections:
        facts.issues += _issues_declared_resolved(section.text)
        if advice := _advice(section):
            facts.values.setdefault("next", advice)
    in_text = len(facts.issues)
    for table in _tables(body):
        _take_table(facts, table)
    heads_judge = any(_BY_JUDGE.search(_A_REVIEW.sub("", section.heading)) for section in sections)
    facts.is_judged = by_judge or (heads_judge and any(issue.severity for issue in facts.issues[in_text:]))
    stated = is_scored or "overall_score" in facts.values or facts.judges
    if not facts.text("summary"):
        facts.values["summary"] = next(iter(_PROSE.findall(body)), "")
    return facts, stated


class _TextSection(NamedTuple):
    """The text below a heading."""

    depth: int
    heading: str
    text: str


def _sections(body: str) -> Iterator[_TextSection]:
    """Yields the sections; a line that names a state of issues, the judge or what comes next is a heading too."""
    before, *rest = HEADING.split(_LABEL.sub(_heading_text, body))
    yield _TextSection(0, "", before)
    for marks, heading, text in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        yield _TextSection(len(marks), heading.rstrip(" \t#").strip(" *_:"), text)


def _heading_text(label: re.Match[str]) -> str:
    said = label["text"].strip(" _*")
    is_heading = _NEXT.fullmatch(said) or _state_of(said) or _BY_JUDGE.search(said)
    return f"\n###### {said}\n" if is_heading else label[0]


def _state_of(heading: str) -> str:
    return next((state for state, words in _STATES.items() if words.fullmatch(heading)), "")


def _issues(sections: Sequence[_TextSection]) -> tuple[list[FoundIssue], bool, bool]:
    """Returns the issues that a text marks by a severity or has in sections of issues, with two answers.

    They tell whether it has such a section, and one of what the judge says, beside which other findings are the text's
    own. A section of issues ends at the next heading of its level. Each heading and list item in it is an issue.
    """
    found: list[tuple[bool, FoundIssue | None]] = []
    headed, depth, severity, status, judge, own_findings, by_judge = False, 0, "", "", 0, False, False
    for own, said, text in sections:
        first, state = severity_of(said) or severity_of(said.partition(" ")[0]), _state_of(said)
        marked = LEADING.match(said) is not None and issue_of(said) is not None
        is_issue = marked or 0 < depth < own
        judge = own if _BY_JUDGE.search(said) else judge if 0 < judge < own else 0
        if (state or _ISSUE_HEADING.search(said)) and not (marked and own > 1):
            headed, depth, severity, status, is_issue = True, own, first, state.replace(OPEN, ""), False
            own_findings = not state and _FINDINGS.search(said) is not None
        elif first and not marked:
            depth, severity, is_issue = min(depth or own, own), first, False
        elif not is_issue:
            depth, severity, status = 0, "", ""
        listed = _INLINE.sub("\n- ", text) if judge else text
        by_judge |= judge > 0 and _PRIORITY.search(listed) is not None
        for line, detail in _items(said if is_issue else "", listed, every=depth > 0):
            issue = issue_of(line, detail=detail, severity=severity, status=status)
            found.append((not judge and (own_findings or not depth), issue))
    issues = [issue for is_texts, issue in found if issue is not None and not (by_judge and is_texts)]
    return issues[:MOST], headed, by_judge


def _issues_declared_resolved(text: str) -> Iterator[FoundIssue]:
    """Yields the issues that sentences declare resolved, with the sentence before as what resolved them."""
    for paragraph in _BLANK.split(text):
        said = SENTENCE.split(" ".join(paragraph.split()))
        label = _FIXED_LABEL.match(said[0])
        if label and _SINCE.search(paragraph):
            yield _resolved_issue(label["subject"], paragraph, " ".join([label["rest"], *said[1:2]]))
        for before, sentence in pairwise(["", *said]):
            match = _DECLARED.match(sentence[:400])
            if match and (match["kind"] or match["since"]) and not _DENIED.search(match[0]):
                yield _resolved_issue(match["subject"], sentence, before)


def _resolved_issue(subject: str, text: str, how: str) -> FoundIssue:
    versions = tuple(version for match in _SINCE.finditer(text) for version in versions_in(match[0]))
    title, how = title_and_rest(subject.strip(" *_`"))[0], text_of(how.strip(" *_."), NAME_CHARACTERS)
    return FoundIssue(title=title, detail=text_of(text, 500), status=RESOLVED, versions=versions, how=how)


def _advice(section: _TextSection) -> str:
    """Returns what a section says that the next run should do; empty where it says nothing of it."""
    if _NEXT.fullmatch(section.heading):
        return " ".join(_BULLET.sub(r"\g<text>", section.text).split())
    found = (_PLAN.match(paragraph) for paragraph in _BLANK.split(section.text))
    return next((" ".join(match["text"].split()) for match in found if match), "")


def _items(heading: str, text: str, *, every: bool) -> Iterator[tuple[str, str]]:
    """Yields a heading and the list items of the text below it, each with what is said of it up to an empty line.

    Items without a severity are left out unless `every` one is an issue.
    """
    bullets = [match for match in _BULLET.finditer(text) if every or LEADING.match(match["text"])]
    ends = [*(match.start() for match in bullets), len(text)]
    yield heading, " ".join(text[: ends[0]].split())
    for match, end in zip(bullets, ends[1:], strict=True):
        line = match["text"] + (" (fixed)" if match["done"] in {"x", "X"} else "")
        yield line, " ".join(_BLANK.split(text[match.end() : end])[0].split())


def _lines(body: str) -> Iterator[tuple[str, str]]:
    """Yields the keys and values of lines that have a known name."""
    for match in _LINE.finditer(body):
        name, value = match["name"].strip(" *_`"), match["value"].strip(" \t|*_`")
        if not value or "|" in value:
            continue
        key = next((key for key, names in _NAMES.items() if re.fullmatch(names, name, re.IGNORECASE)), "")
        if key and not key.endswith("score"):
            yield key, value.strip("✅❌✓✗ ") or value
        elif key and (number := _NUMBER.match(value)):
            yield key, number[0]


def _take_table(facts: Facts, table: Sequence[Sequence[str]]) -> None:
    """Takes in a table of issues with their severities, or of versions, which may stand in its first row."""
    if key_of(table[0][0]) in _VERSIONS and all(map(version_of, table[0][1:])):
        table = list(zip(*table, strict=True))
    head = [key_of(cell) for cell in table[0]]
    rows = [dict(zip(head, row, strict=True)) for row in table[1:]]
    if head[0] in _VERSIONS:
        versions = [{**row, "version": row[head[0]]} for row in rows if version_of(row[head[0]])]
        facts.lists.append(("", list(enumerate(versions))))
        return
    columns, severities, states = (not set(_KEYS[name]).isdisjoint(head) for name in ("column", "severity", "status"))
    if columns and (severities or states):
        facts.issues += (issue for issue in issues_in(rows) if issue.severity or states)
        facts.lists_issues = True


def _tables(body: str) -> Iterator[list[list[str]]]:
    """Yields the tables: a head, and what follows the line under it up to the next head."""
    rows = [[cell.strip(" *_`") for cell in match[1].split("|")] for match in ROW.finditer(body)]
    heads = [at for at, (_, line) in enumerate(pairwise(rows)) if set("".join(line)) <= set("-: ")]
    for at, end in zip(heads, [*heads[1:], len(rows)], strict=False):
        yield [rows[at], *(row for row in rows[at + 2 : end] if len(row) == len(rows[at]))]
