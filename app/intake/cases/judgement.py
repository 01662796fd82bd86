"""Reads judgements of cases, and the facets that say what kind of document a memory is of. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.foundation.text.data import read_toml
from app.foundation.text.scores import COMMON, OF_NAMES, Spelling, version_in, version_order, without_version
from app.foundation.values import frozen

KEYS: Mapping[str, Mapping[str, Sequence[str]]] = read_toml(
    "app.intake.cases", "keys.toml", dict[str, dict[str, tuple[str, ...]]]
)
"""Keys of a judgement and of an issue by what they state, the best of each first."""
FACET = "facet"
"""Its key in a memory's metadata."""
JUDGEMENT, ISSUES, CALIBRATION, SOURCES, DECISIONS = "judgement", "issues", "calibration", "sources", "decisions"
"""The facets of a report's chunk: what kind of document it is of, as its path and place say. Others are products."""
RECURRING = "recurring"
"""The facet of the note that tells a case's issues over all versions."""
CASE = "case:"
"""The beginning of the address of a case's notes; the rest is the case's name."""
UNNAMED = "unnamed"
"""The case of a judgement that names none."""
_LESSONS = frozenset({JUDGEMENT, ISSUES, CALIBRATION, SOURCES, DECISIONS, RECURRING, "cue", "note"})
"""Facets, and kinds of memories without one, that are no run's product: a low score speaks of the product alone."""

_FACETS_BY_NAME = (
    (CALIBRATION, re.compile(r"(?i)calibrat|score[ _-]?histor|scoring|rubric")),
    (ISSUES, re.compile(r"(?i)issue|gap[ _-]?analy|lessons?|post[ _-]?mortem|retro|failure|correction")),
    (JUDGEMENT, re.compile(r"(?i)judg|evaluat|verdict|critique|assessment|review|оцен|bewert")),
    (SOURCES, re.compile(r"(?i)scout|links?\b|sources?\b|references|bibliograph")),
    (DECISIONS, re.compile(r"(?i)director|decision")),
)


def is_case_note(uri: str | None) -> bool:
    """Tells whether the address of a source is that of a case's notes."""
    return uri is not None and uri.startswith(CASE)


def facet_of(parts: Sequence[str], place: str) -> str:
    """Returns the facet of a chunk of the file with this path, at this heading path or pointer; empty for a product."""
    stem = parts[-1].rsplit(".", 1)[0] if parts else ""
    for text in (stem, *reversed(parts[-3:-1])):
        found = next((facet for facet, pattern in _FACETS_BY_NAME if pattern.search(text)), "")
        if found:
            is_issue = found == JUDGEMENT and re.search(r"(?i)issues?\b|problems|what went wrong", place)
            return ISSUES if is_issue else found
    return (
        ISSUES
        if re.search(r"(?i)\bissues\b|what went wrong|\bcorrections?\b|\bfailures?\b|lessons learn", place)
        else ""
    )


def is_lesson(facet: str) -> bool:
    """Tells whether a memory of this facet or kind is no run's product."""
    return facet in _LESSONS


OPEN, REOPENED, RESOLVED, SILENT = "open", "reopened", "resolved", "unnamed"
"""States of an issue: it is resolved if a text says so, and unnamed if later versions only do not name it any more."""
JUDGED, LISTED, REPORTED = "judged", "listed", "reported"
"""Places of a judgement: in a document of its own or with a run, in a list of several (a score history, judges), or
in the document that was judged (a report's front matter). The first counts where a version has several."""
WORST = ("P0", "P1", "P2", "P3", "")
"""Severities, the worst first; the last is none."""
MOST = 500
"""Judgements of a document, and issues of a judgement."""
ISSUE_CHARACTERS, TITLE_CHARACTERS, DETAIL_CHARACTERS, NAME_CHARACTERS = 80, 300, 1_000, 120
_STATEMENT_CHARACTERS = 300
"""Characters of a statement whose meaning is compared beside that of its title."""


@frozen
class FoundIssue:
    """An issue as an evaluator states it."""

    title: str
    detail: str = ""
    severity: str = ""
    """P0 to P3, or empty where none is stated."""
    status: str = OPEN
    """OPEN, RESOLVED or SILENT."""
    versions: tuple[str, ...] = ()
    """The versions in which it was seen, beside the judgement's own."""
    since: str = ""
    """The version that resolved it, or the first that no longer named it, where one is named."""
    how: str = ""
    """The words that say how it was resolved."""
    again: bool = False
    """True where it is said to be back."""

    @property
    def named(self) -> tuple[str, ...]:
        """The versions that it names."""
        return (*self.versions, self.since) if self.since else self.versions

    @property
    def forms(self) -> tuple[str, str]:
        """The texts whose vectors tell what it means: its title, and the beginning of the statement."""
        whole = self.detail if self.detail.startswith(self.title) else f"{self.title}. {self.detail}"
        return self.title, whole[:_STATEMENT_CHARACTERS].strip(" .") if self.detail else self.title


@frozen
class FoundJudgement:
    """A judgement as a document or a run states it."""

    case: str
    """The test case as it is written; `case_key` gives its name."""
    version: str
    """`v3`, `run-1`; empty where none is named."""
    pointer: str = ""
    """RFC 6901 pointer of its place in the document."""
    judged_at: datetime | None = None
    score: float | None = None
    """From 0 to 10."""
    stated: float | None = None
    """The score's number as it is written."""
    verdict: str = ""
    passed: bool | None = None
    grade: str = ""
    judge: str = ""
    basis: str = JUDGED
    summary: str = ""
    advice: str = ""
    """Its words on what the next run should do."""
    lists_issues: bool = False
    """True where it says what is wrong, so that an issue which it does not name is not named any more."""
    issues: tuple[FoundIssue, ...] = ()

    @property
    def is_list(self) -> bool:
        """True if it is no judgement of a version, as a list of known issues is none."""
        return self.score is None and not self.verdict and not self.lists_issues


_DATE = re.compile(r"(?:19|20)\d\d[-_.]?(?:0\d|1[0-2])(?:[-_.]?[0-3]\d)?")
_GENERIC = frozenset(
    """
    judge judges judged judgement judgements judgment judgments evaluation evaluations eval evals evaluator verdict
    verdicts score scores scoring grade grades grading review reviews critique assessment report reports calibration
    calibrations history histories result results output outputs run runs raw data json md docs doc final draft known
    issues issue gap gaps analysis notes note scout director researcher decisions patterns rubric summary links readme
    summary archive artifacts artefacts pipeline cases case tests test the of and for versions version all full file
    files content tmp exp exps experiment experiments round rounds iteration iterations attempt attempts drafts trial
    trials open points memo memos log logs runlog runlogs minutes letter brief briefs sheet sheets journal diary
    protocol register tracker board scorecard scorecards retrospective retro postmortem
    """.split()  # noqa: SIM905 - a list of words
)
"""Words of paths that say what a file is, and not of which case."""
JUDGING = re.compile(
    r"judg|eval|verdict|scor|grad|critique|assess|review|calibrat|history|(?:known|open)[ _-]?issues|open[ _-]?points|"
    r"gap[ _-]?analysis|"
    r"оцен|вердикт|bewert|beurteil|évalu|jugement|juicio|评审|评估",
    re.IGNORECASE,
)
"""Words by which a file's name says that it judges."""


def case_key(case: str) -> str:
    """Returns the name of a case, the same however it is written: `bads-russia` for "BADs Russia"."""
    return "-".join(re.findall(r"[^\W_]+", case.casefold()))[:200] or UNNAMED


def named_in_path(parts: Sequence[str]) -> tuple[str, str]:
    """Returns the case and the version that a path names, each empty where it names none.

    A folder called as a version (`v3`, `2025-03-18-v3`) stands below its case; a file's name may hold both
    (`tea-china-v3-judgement`). Where no part has a version of the common spellings, `w11` or `pilot2` is one.
    """
    *folders, name = parts or ("",)
    stem = name.rsplit(".", 1)[0]
    spelling = COMMON if any(map(version_in, (*folders, stem))) else OF_NAMES
    own = spelling.version(stem)
    at = next((place for place in reversed(range(len(folders))) if _is_of_version(folders[place], spelling)), None)
    version = own or (spelling.version(folders[at]) if at is not None else "")
    if at is not None and (case := _named_by(folders[:at], spelling)):
        return case, version
    if at and spelling is OF_NAMES:
        # `trials/t3`: the folder of a series names it, even by a word that says little.
        return folders[at - 1], version
    before = spelling.pattern.split(stem, maxsplit=1)[0] if own else stem
    left = _specific(_DATE.sub(" ", spelling.rest(before)), trimmed=True)
    if left and (own or JUDGING.search(stem)):
        return left, version
    return _named_by(folders, spelling) or (_specific(spelling.rest(stem), trimmed=True) if own else ""), version


def _is_of_version(folder: str, spelling: Spelling) -> bool:
    """Tells if a folder's name is that of a version, perhaps with a date and words that say what is in it."""
    undated = _DATE.sub(" ", folder)
    return spelling.version(undated) != "" and not _specific(spelling.rest(undated))


def _named_by(folders: Sequence[str], spelling: Spelling) -> str:
    """Returns the last folder that names a case; one that is a number takes the folder above to itself."""
    numbers: list[str] = []
    for folder in reversed(folders):
        if folder.isdigit():
            numbers.insert(0, folder)
        elif (named := _specific(folder)) and not _is_of_version(folder, spelling) and not _DATE.fullmatch(folder):
            return " ".join([named, *numbers])
    return ""


_VERBS = (
    "plan|evaluate|score|judge|review|assess|grade|rate|critique|audit|verify|re-?run|repeat|re-?do|continue|"
    r"revise|improve|research|scout|write|prepare|produce|start|(?:run|draft)(?!\s*[vr]?\d)"
)
_DOING = re.compile(rf"\W*(?:please\s+)?(?:(?:{_VERBS})\b[\s,]*(?:and\b\s*)?)+", re.IGNORECASE)
"""The beginning of a task that says what is to be done with a case."""
_PART = re.compile(
    r"\s*(?:(?:the|an?|our|this|next|new|latest|last|final|current|run|round|report|version|draft|iteration|attempt|"
    r"experiment|results?)\b\s*)*\b(?:of|for|on)\s+(?:the\s+)?|\s*the\s+",
    re.IGNORECASE,
)
"""Words that then name a run of the case: `the next run of`."""
_DANGLING = frozenset(
    {"", "in", "for", "of", "at", "as", "on", "the", "and", "its", "report", "run", "version", "draft"}
)


def named_in_task(task: str) -> str:
    """Returns the case that a task names: without leading verbs, versions, and what then dangles."""
    doing = _DOING.match(task)
    rest = without_version(task[doing.end() :] if doing else task)
    part = _PART.match(rest) if doing else None
    words = rest[part.end() if part else 0 :].split()
    while words and words[-1].strip(" ,;:()–—-").lower() in _DANGLING:
        words.pop()
    named = " ".join(words[words[:1] == ["of"] :]).strip(" ,;:–—-")
    return named if _specific(named) else task


def _specific(text: str, *, trimmed: bool = False) -> str:
    """Returns the words of a name; empty where all of them only say what kind of file it is."""
    words = re.findall(r"[^\W_]+", text)
    said = [word for word in words if word.lower() not in _GENERIC and not word.isdigit()]
    if not said and not re.fullmatch(r"(?i)(?:test|case)[^a-z0-9]*\d+", text.strip()):
        return ""
    while trimmed and words and words[-1].lower() in _GENERIC:
        words.pop()
    return " ".join(words)


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SAME_AS = re.compile(r"^(?:judge|evaluator)_(?!model)|^(?:overall|final)_(?!score)")
"""The beginning of a key that says nothing more than the rest."""


def key_of(raw: object) -> str:
    """Returns a key as it is looked up, however it is written: `judgeScore` and `Judge score` are `score`."""
    return _SAME_AS.sub("", re.sub(r"[\s-]+", "_", _CAMEL.sub("_", str(raw)).lower()))


def first(values: Mapping[str, Any], keys: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Returns the first of these values that is a text, a number or a truth."""
    return next((values[key] for key in keys if isinstance(values.get(key), str | int | float)), None)


def text_of(value: Any, limit: int) -> str:  # noqa: ANN401 - any JSON value
    """Returns a value in one line of at most `limit` characters."""
    if value is None or isinstance(value, bool | Mapping | list):
        return ""
    line = " ".join(str(value).replace("\0", " ").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def in_order(judged: Mapping[str, datetime | None]) -> list[str]:
    """Returns versions in their order: by number where all have one of the same kind, else by the dates given."""
    numbered = all(map(version_order, judged)) and len({name.rstrip("0123456789.") for name in judged}) == 1
    moments = {name: moment.timestamp() for name, moment in judged.items() if moment}
    latest = max(moments.values(), default=0.0)

    def place(name: str) -> tuple[float | tuple[int, ...], ...]:
        number, moment = version_order(name), moments.get(name, latest)
        return (number, moment) if numbered else (moment, number)

    return sorted(judged, key=place)
