"""Reads issues: a line that states one, and JSON of any form that lists them; tells which issues are the same. Pure.

Issues of several versions are the same one by meaning and by words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from app.foundation.models.protocols import Matrix
from app.foundation.text.scores import VERSION, versions_in, whole_version
from app.foundation.text.words import content_words
from app.intake.cases.judgement import (
    DETAIL_CHARACTERS,
    ISSUE_CHARACTERS,
    KEYS,
    MOST,
    NAME_CHARACTERS,
    OPEN,
    RESOLVED,
    SILENT,
    FoundIssue,
    first,
    key_of,
    text_of,
)

_WORDS = 0.2
"""Share of the common words in the likeness of two issues; the rest is the cosine of their titles."""
_ALIKE, AGAIN = 0.34, 0.56
"""Likeness from which a statement is an issue of the version before, and one that was not named there."""
_WHOLE = 0.05
"""Taken off the cosine of whole statements: those of one case share its subject. Pairs of three report trees that are
one issue reach 0.41 and more where their titles do not, others 0.37."""
_CODE = re.compile(r"\b[A-Z]{1,4}-\d{1,4}\b")
"""The number that a report gives a finding: M-1 is not M-2."""


class IssueStatement(NamedTuple):
    """An issue as one judgement states it."""

    version: int
    """The place of its version among the case's."""
    title: str
    seen: frozenset[int] = frozenset()
    """The versions that it names itself: an issue of one of them is told again rather than anew."""
    again: bool = False
    """True where it speaks of an issue of any earlier version, as one that is resolved or back does."""


def _likeness(statements: Sequence[IssueStatement], *vectors: Matrix) -> Matrix:
    """Returns how alike every two statements are, 0 to 1, by their vectors of unit length and by words of their titles.

    There may be vectors of titles, and of whole statements: the greater likeness counts. Without any, words alone tell.
    """
    common = _common([content_words(statement.title) for statement in statements])
    meaning = common
    for place, form in enumerate(vectors):
        cosines: Matrix = np.clip(form @ form.T, 0, 1)
        meaning = np.maximum(meaning, cosines - _WHOLE) if place else cosines
    codes = [frozenset(_CODE.findall(statement.title)) for statement in statements]
    has_code = np.array([bool(found) for found in codes], dtype=bool)
    meaning = np.where(np.outer(has_code, has_code) & (_common(codes) == 0), 0, meaning)
    return (1 - _WORDS) * meaning + _WORDS * common


def _common(words: Sequence[frozenset[str]]) -> Matrix:
    """Returns the share of words that every two have in common."""
    columns = {word: column for column, word in enumerate(frozenset[str]().union(*words))}
    has = np.zeros((len(words), len(columns)), dtype=np.float32)
    for row, own in enumerate(words):
        has[row, [columns[word] for word in own]] = 1
    both, sizes = has @ has.T, has.sum(axis=1)
    common: Matrix = both / np.maximum(1, sizes[:, None] + sizes - both)
    return common


def group_statements(statements: Sequence[IssueStatement], *vectors: Matrix) -> list[int]:
    """Returns the number of each statement's issue; the statements come in the order of their versions.

    Two statements of one version are two issues, unless their words are the same. Of several issues that a statement
    may be, it is the one that it is most like, and each issue takes the statement that is most like it.
    """
    found = _likeness(statements, *vectors)
    # The likeness of each issue, in the order of their numbers, to every statement; and the versions that have it.
    issues, versions = np.empty_like(found), list[set[int]]()
    number = [-1] * len(statements)
    latest: set[int] = set()
    for version, group in groupby(range(len(statements)), key=lambda at: statements[at].version):
        new, taken = _each_once(list(group), statements), set[int]()
        for value, issue, places in _alike(issues[: len(versions)], new):
            is_free = number[places[0]] < 0 and issue not in taken
            said = statements[places[0]]
            again = said.again or issue in latest or not versions[issue].isdisjoint(said.seen)
            if is_free and value >= (_ALIKE if again else AGAIN):
                issues[issue] = np.maximum(issues[issue], found[places].max(axis=0))
                versions[issue].add(version)
                taken.add(issue)
                _number(places, issue, number)
        for places in new:
            if number[places[0]] < 0:
                taken.add(len(versions))
                _number(places, len(versions), number)
                issues[len(versions)] = found[places].max(axis=0)
                versions.append({version})
        latest = taken
    return number


def _alike(issues: Matrix, new: Sequence[Sequence[int]]) -> list[tuple[float, int, Sequence[int]]]:
    """Returns the likeness of issues and new statements, an issue's number and the statements, the most alike first."""
    values = np.array([issues[:, places].max(axis=1) for places in new]).T
    pairs = ((float(values[at, column]), int(at), new[column]) for at, column in np.argwhere(values >= _ALIKE))
    return sorted(pairs, key=lambda pair: -pair[0])


def _number(places: Sequence[int], issue: int, number: list[int]) -> None:
    for at in places:
        number[at] = issue


def _each_once(places: Sequence[int], statements: Sequence[IssueStatement]) -> list[list[int]]:
    """Returns the statements of a version, those with the same words together."""
    same: dict[frozenset[str] | str, list[int]] = {}
    for at in places:
        title = statements[at].title
        same.setdefault(content_words(title) or title, []).append(at)
    return list(same.values())


_SEVERITIES = {
    "P0": r"p0|s0|sev(?:erity)?[ -]?0|critical|blocker|blocking|severe|fatal|(?:show-?)?stopper",
    "P1": r"p1|s1|sev(?:erity)?[ -]?1|high|major|serious|important|heavy|grave",
    "P2": r"p2|s2|sev(?:erity)?[ -]?2|medium|moderate|normal|middle",
    "P3": r"p3|s3|sev(?:erity)?[ -]?3|low|minor|trivial|cosmetic|nit|info|light|slight",
}
GONE = r"fixed|mended|gone|resolved|closed|solved|addressed|исправлено|behoben|corrigé|resuelto|已修复"
_STATED_GONE = re.compile(rf"(?i)(?<!un)(?<!not )(?<!partially )(?<!partly )(?<!\w)(?:{GONE}|done|replaced)(?!\w)")
_BEGINS_GONE = re.compile(rf"(?i)\W*(?:{GONE})(?!\w)")
_BEGINS_SILENT = re.compile(
    r"(?i)\W*(?:(?:not (?:named|marked|mentioned|raised|seen|listed)|silent|quiet)"
    r"(?=\s+(?:any ?more|any longer|(?:since|after|in) (?:[vr]\.?\d|round)))|no longer (?:named|marked|seen|listed))\b"
)
SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_CLAUSE = re.compile(rf"(?i){SENTENCE.pattern}|,\s+(?=(?:not|no longer|since|silent|but|and|then|{GONE})\b)")
_SEEN = re.compile(
    r"(?i)\b(?:seen|found|present|appears?|appeared|occurs?|occurred|recurring|open|noted|named|marked|raised|reported|said)"
    r"\b[^.]{0,40}\b(?:v\.?|r|round )\d|^\W*[vr]\.?\d"
)
_SINCE = re.compile(r"(?i)\W*since\s+(?=[vr]\.?\d|round)")
_VERSION_SAID = re.compile(rf"(?i)^\W*(?:(?:in|since|with|by|as of)\s+)?(?:{VERSION.pattern})\W*")
_AGAIN = re.compile(r"(?i)\bre-?opened\b|\b(?:is|are|was|were) back(?![\w-])|\b(?:has|have) (?:returned|come back)\b")
_LEADS = re.compile(
    r"(?i)[\s*_]*(?:(?:re-?opened|(?:back )?again)\b[\s:,.;*_–—-]*|(?:recurring|regression)[*_]*[:,]\s*)"
)
LEADING = re.compile(
    rf"\s*(?:[*_\[(`]+\s*(?P<marked>{'|'.join(_SEVERITIES.values())})(?:\s+again)?[\s:]*[*_\])`]+[\s:.–—-]*"
    rf"|(?P<plain>{'|'.join(_SEVERITIES.values())})(?:\s+again)?(?:\s*:|\s+[–—-])\s*|(?P<bare>[ps]\d)[\s,.]+)",
    re.IGNORECASE,
)
"""A severity before an issue: `[P0]`, `**P1**:`, `critical:`."""
_REMARK = re.compile(r"[(\[]([^()\[\]]{2,80})[)\]]$")
_CLAUSE_END = re.compile(r"[,;:](?=\s)|\s+(?=\(|[–—-]\s)")
_LEAST_TITLE = 15
"""Characters of a clause that can be a title."""

_KEYS = KEYS["issue"]


def issue_of(
    line: str, *, detail: str = "", severity: str = "", status: str = "", state: str = "", seen: Sequence[str] = ()
) -> FoundIssue | None:
    """Returns the issue that a line states with its detail; None where it says nothing.

    A severity may stand before it, a state in brackets behind it, and clauses may say in which versions it was seen,
    which one resolved it and how. `status` is that of its list, and `state` a text of its own.
    """
    leading = LEADING.match(line)
    text = (line[leading.end() :] if leading else line).strip()
    remarks = _REMARK.findall(text)
    struck = "~~" in text
    text = _REMARK.sub("", text).strip(" *_~`|\t:-–—✅☑")
    if not re.search(r"[^\W\d_]{2}", text):
        return None
    again = _AGAIN.search(f"{text[:300]}") is not None
    title, rest = title_and_rest(_LEADS.sub("", text, count=1) if _LEADS.match(text) else text)
    clauses = [*filter(None, _CLAUSE.split(state)), *_CLAUSE.split(rest), *_CLAUSE.split(detail), *remarks]
    told, since, how, seen_in = _state(clauses, status)
    if struck or "✅" in line:
        told = RESOLVED
    return FoundIssue(
        title=title,
        detail=text_of(" ".join(filter(None, (rest, detail, state))), DETAIL_CHARACTERS),
        severity=severity_of(leading[leading.lastgroup or 0] if leading else "") or severity,
        status=told or status or OPEN,
        versions=tuple(dict.fromkeys([*seen, *(version for part in seen_in for version in versions_in(part))])),
        since=since,
        how=how,
        again=again,
    )


def title_and_rest(text: str) -> tuple[str, str]:
    """Returns a title of at most ISSUE_CHARACTERS, cut at the end of a sentence, a clause or a word, and the rest.

    The rest is the whole text where the title ends in the middle of a sentence.
    """
    sentence, *more = SENTENCE.split(text_of(text, DETAIL_CHARACTERS), maxsplit=1)
    rest, sentence = " ".join(more), sentence.strip(" .;:*_`")
    label, colon, after = sentence.partition(": ")
    if colon and (_SEEN.search(after) or _BEGINS_GONE.match(after) or _BEGINS_SILENT.match(after)):
        return title_and_rest(label)[0], f"{after}. {rest}".strip()
    if len(sentence) <= ISSUE_CHARACTERS:
        return sentence, rest
    if _LEAST_TITLE <= len(label) <= ISSUE_CHARACTERS:
        return label, f"{after}. {rest}".strip()
    ends = [match.start() for match in _CLAUSE_END.finditer(sentence[: ISSUE_CHARACTERS + 1])]
    words = sentence[: ISSUE_CHARACTERS + 1].rpartition(" ")[0] or sentence[:ISSUE_CHARACTERS]
    end = max((end for end in ends if end >= _LEAST_TITLE * 2), default=len(words))
    return sentence[:end].rstrip(" ,;:–—-"), f"{sentence}. {rest}".strip()


def _state(clauses: Sequence[str], status: str) -> tuple[str, str, str, list[str]]:
    """Returns what clauses say of an issue: its state, the version of this state, how it was resolved, where seen."""
    told, since, how, seen = "", "", "", []
    for clause in clauses:
        gone, silent = _BEGINS_GONE.match(clause), _BEGINS_SILENT.match(clause)
        begun = gone or silent or (status and _SINCE.match(clause))
        if begun and not told:
            told = RESOLVED if gone else SILENT if silent else status
            since = next(versions_in(clause), "")
            how = _manner(clause[begun.end() :]) if told == RESOLVED else ""
        elif not begun and _SEEN.search(clause):
            seen.append(clause)
    return told, since, how, seen


def _manner(words: str) -> str:
    """Returns how an issue was resolved, of the words after `fixed`: those after the version, if one follows."""
    said = _VERSION_SAID.match(words)
    return text_of(words[said.end() if said else 0 :].strip(" .,:;()–—-"), NAME_CHARACTERS)


def issues_in(value: Any, *, severity: str = "", status: str = "") -> Iterator[FoundIssue]:  # noqa: ANN401 - any JSON value
    """Yields the issues of a text, an object, a list, or an object of lists by severity (`{"P0": […]}`)."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from issues_in(item, severity=severity, status=status)
    elif isinstance(value, Mapping) and any(severity_of(str(key)) for key in value):
        for key, item in value.items():
            yield from issues_in(item, severity=severity_of(str(key)), status=status)
    elif isinstance(value, Mapping | str):
        line = value if isinstance(value, Mapping) else {"title": value}
        if (issue := _issue(line, severity, status)) is not None:
            yield issue


def _issue(value: Mapping[str, Any], severity: str, status: str) -> FoundIssue | None:
    facts = {key_of(key): item for key, item in value.items()}
    titles = [facts[key] for key in _KEYS["title"] if isinstance(facts.get(key), str) and facts[key].strip()]
    title = titles[0] if titles else ""
    detail = next(
        (facts[key] for key in _KEYS["detail"] if isinstance(facts.get(key), str) and facts[key] != title), ""
    )
    state = text_of(first(facts, _KEYS["status"]), NAME_CHARACTERS)
    gone = _STATED_GONE.search(state)
    gone_in = _versions(facts, _KEYS["gone_in"]) or (_versions(facts, ("since",)) if gone else [])
    stated_gone = gone or gone_in or any(facts.get(key) is True for key in _KEYS["is_gone"])
    found = issue_of(
        title,
        detail=detail,
        severity=severity_of(text_of(first(facts, _KEYS["severity"]), 40)) or severity,
        status=status,
        state=state if len(state.split()) > 1 else "",
        seen=_versions(facts, _KEYS["seen_in"]),
    )
    if found is None:
        return None
    if stated_gone and found.status == OPEN:
        how = _manner(state[gone.end() :]) if gone else ""
        found = replace(found, status=RESOLVED, since=next(versions_in(state), ""), how=how)
    elif state and not (status or stated_gone or _BEGINS_SILENT.match(state)):
        found = replace(found, status=OPEN, since="", how="")
    return replace(found, since=next(iter(gone_in), "") or found.since)


def _versions(facts: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Returns the versions that the first of these fields names: it is one, or a text or a list that names some."""
    value = next((facts[key] for key in keys if facts.get(key)), None)
    parts = [part.get("version") if isinstance(part, Mapping) else part for part in _as_list(value)[:MOST]]
    texts = (str(item) if isinstance(item, int) else text_of(item, NAME_CHARACTERS) for item in parts)
    return [name for text in texts for name in (_own_version(text) or versions_in(text))]


def _own_version(text: str) -> list[str]:
    return [version] if (version := whole_version(text)) else []


def _as_list(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, list) else [value]


def severity_of(text: str) -> str:
    """Returns the severity that a text is, P0 to P3; empty where it is none."""
    said = text.strip(" *_[]()").lower()
    return next((name for name, words in _SEVERITIES.items() if re.fullmatch(words, said)), "")
