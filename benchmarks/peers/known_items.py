"""Known-item questions about report files: each is made of one chunk's words, and that chunk must come back.

The rule. A chunk gives questions of two sorts: its heading path, where it comes from Markdown; and each of a
judge's reasons in it, at least eight words long. A text that stands in more than one chunk makes no question, because
no answer could be called the right one; nor do two texts that come to the same paraphrase. Where there are more than
asked for, every n-th is taken, in the order of the files.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from app.errors import InvalidInput
from app.foundation.models.tokens import BundledTokenCounter
from app.foundation.text.words import IDEOGRAPHS
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.prepare import chunk_document, read_report
from app.intake.reports.scan import SUFFIXES
from benchmarks.peers.system import Memory

REASON = re.compile(r"(?m)^(?:[\w.]+\.)?reason(?:ing)?: (.+)$")
REASON_WORDS = 8
LEAST_WORDS = 4
"""Of a paraphrase: a shorter one asks for too little."""
_SPOKEN = re.compile(rf"[{IDEOGRAPHS}]{{1,2}}|[^\W\d_{IDEOGRAPHS}][^\W{IDEOGRAPHS}]*(?:'[^\W\d_]+)?")
"""A word; in scripts without blanks between words, two characters."""
_NAME = re.compile(r".*\d")
_QUESTION_WORDS = 12
_DROPPED = 3
"""Every third word."""
_LEFT_OUT = frozenset(
    """
    a an and are as at be but by for from has have in into is it its no not of on or so such than that the
    their then there these this to was were which while will with
    """.split()  # noqa: SIM905 - forty quoted words cannot be read
)
_SYNONYMS = {
    "accurate": "right", "added": "put in", "agent": "assistant", "all": "every", "build": "compile", "check": "test",
    "clean": "tidy", "clear": "plain", "code": "program", "commands": "calls", "complete": "whole", "confirms": "shows",
    "contains": "holds", "correct": "right", "correctly": "rightly", "cost": "price", "created": "made",
    "criteria": "standards", "deduction": "penalty", "directory": "folder", "directories": "folders",
    "documentation": "docs", "duration": "time", "empty": "blank", "error": "fault", "errors": "faults",
    "excellent": "very good", "executed": "ran", "exists": "is present", "expected": "wanted", "explanation": "reasons",
    "extra": "additional", "failed": "broke", "file": "document", "files": "documents", "follows": "obeys",
    "functions": "routines", "grade": "mark", "imports": "modules", "issues": "problems", "judge": "evaluator",
    "line": "row", "minimal": "smallest", "minor": "small", "missing": "absent", "only": "just", "output": "result",
    "passed": "succeeded", "prints": "writes", "proper": "suitable", "quality": "standard", "remain": "are left",
    "required": "needed", "requirements": "demands", "result": "outcome", "results": "outcomes", "root": "top",
    "run": "attempt", "script": "program", "score": "rating", "shows": "tells", "simple": "plain", "single": "lone",
    "solution": "answer", "summary": "overview", "successfully": "with success", "task": "job", "tests": "checks",
    "unused": "needless", "uses": "employs", "valid": "well formed", "variables": "names", "verified": "proven",
    "workspace": "working folder",
}  # fmt: skip
"""Other words for those of reports and judgements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and the chunk that must come back."""

    exact: str
    paraphrased: str
    key: str


def chunks(folder: Path) -> list[Memory]:
    """Every chunk of the report files, as Priors' own chunker makes them; for every system the same."""
    counting = BundledTokenCounter()
    found: list[Memory] = []
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        uri = path.relative_to(folder).as_posix()
        try:
            shown = PurePosixPath(uri)
            made = chunk_document(shown, read_report(shown, path.read_bytes(), mask=False), counting)
        except InvalidInput:
            continue
        found += [
            Memory(
                key=f"{uri}#{ordinal}", kind="chunk", title=chunk.title, body=chunk.text, source=uri, ordinal=ordinal
            )
            for ordinal, chunk in enumerate(made)
        ]
    return found


def questions(memories: Sequence[Memory], most: int) -> list[Question]:
    """At most so many, spread evenly over the files."""
    found = [
        Question(exact=text, paraphrased=reword_text(text), key=memory.key)
        for memory in memories
        for text in dict.fromkeys(_askable(memory))
    ]
    chunk_texts = [memory.text.replace(HEADING_SEPARATOR, " ") for memory in memories]
    exact, other = Counter(item.exact for item in found), Counter(item.paraphrased for item in found)
    known = [
        item
        for item in found
        if exact[item.exact] == other[item.paraphrased] == 1
        and len(item.paraphrased.split()) >= LEAST_WORDS
        and sum(item.exact in text for text in chunk_texts) == 1
    ]
    return known[:: max(1, -(-len(known) // most))]


def _askable(memory: Memory) -> Iterator[str]:
    if memory.source.endswith(".md"):
        yield memory.title.replace(HEADING_SEPARATOR, " ")
    for reason in REASON.findall(memory.body):
        if len(reason.split()) >= REASON_WORDS:
            yield reason


def reword_text(text: str) -> str:
    """Returns the text in other words, so that a question about it is not the text itself. Deterministic.

    Lower case; stop words and marks left out; words of a small table exchanged for others; every third word that is
    left is dropped, as nobody remembers all; at most twelve words; the second half before the first. Names with a digit
    in them (`t3`, `run_01`) are not counted and stay: they say which of many like texts is meant.
    """
    words = [word for word in _SPOKEN.findall(text.lower()) if word not in _LEFT_OUT]
    places = {place for place, word in enumerate(words) if not _NAME.match(word)}
    dropped = sorted(places)[_DROPPED - 1 :: _DROPPED]
    cut = [_SYNONYMS.get(word, word) for place, word in enumerate(words) if place not in dropped][:_QUESTION_WORDS]
    middle = len(cut) // 2
    return " ".join([*cut[middle:], *cut[:middle]])
