"""The questions of an evaluation: a user's own, known items made from the store, and questions about nothing."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

import msgspec

from app.errors import InvalidInput
from app.foundation.db.session import Session
from app.foundation.text.data import json_lines
from app.foundation.text.passages import lines, sentences
from app.foundation.text.words import IDEOGRAPH, IDEOGRAPHS, content_words
from app.storage.memories.gate import unstorable

_LEAST_WORDS = 4
"""Least words of a known item's question: a shorter one asks for too little."""
_SENTENCE_WORDS = range(8, 61)
"""Words of a sentence that makes a question."""
_HEADING_WORDS = 3
SUBJECTS: tuple[str, ...] = tuple(
    """
    bassoon marzipan stalactite falconry origami tapioca glacier gondola zeppelin sauerkraut trombone walrus
    yodelling igloo haggis kayak lighthouse mandolin nougat obsidian pelican quicksand rhubarb sundial
    tarantula ukulele volcano weaving xylophone yurt zucchini armadillo bonsai cathedral dandelion eclipse
    flamingo gargoyle hovercraft juggling
    """.split()  # noqa: SIM905 - forty quoted words cannot be read
)
"""Subjects far from each other. One of which the store has a word is left out."""
_ABOUT = (
    "What did we decide about the {}?",
    "When did the {} go wrong last time, and why?",
    "How much does a {} cost, and who paid for it?",
    "Which {} is the best for beginners?",
    "Who is responsible for the {}?",
)
"""Questions about a subject. Their other words are common, so that they match where an answer does not look."""


class Wanted(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A line of a user's questions: a question, and the memories that answer it; without any, it is about nothing."""

    question: str
    ids: tuple[UUID, ...] = ()
    texts: tuple[str, ...] = ()
    """Whole texts of memories."""
    sources: tuple[str, ...] = ()
    """Paths or titles of sources, of which any memory answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """A question with its answers."""

    question: str
    answers: tuple[frozenset[UUID], ...] = ()
    """The memories that should be found; of each set one is enough. Empty for a question about nothing."""
    group: str = ""
    """The source of its answer, which is left out of a fit as a whole."""


class QuestionMemory(NamedTuple):
    """A memory from which a question can be made."""

    memory_id: UUID
    kind: str
    title: str
    body: str
    source: UUID | None


def read_questions(content: bytes) -> list[Wanted]:
    """Reads the lines of a file of questions.

    Raises:
        InvalidInput: a line is not a question; it is named by its number.
    """
    found = []
    for number, wanted in json_lines(content.splitlines(), Wanted):
        if isinstance(wanted, str):
            example = '{"question": "…", "ids": ["…"], "texts": ["…"], "sources": ["…"]}'
            raise InvalidInput(f"line {number}", f"{wanted}; a line is {example}")
        if not wanted.question.strip():
            raise InvalidInput(f"line {number}", "the question is empty")
        texts = {"question": wanted.question, "texts": wanted.texts, "sources": wanted.sources}
        if reason := next(unstorable(texts), None):
            raise InvalidInput(f"line {number}", reason)
        found.append(wanted)
    if not found:
        raise InvalidInput("questions", "the file has no line")
    return found


def known_items(memories: Sequence[QuestionMemory], most: int) -> list[AnsweredQuestion]:
    """Makes at most so many questions, each of which one memory answers; the same ones of the same store.

    Every second memory gives its heading, if it is a chunk's, and the others their rarest sentence; both in other
    words. A text that another memory has too makes no question.
    """
    rarity = _rarity(memories)
    made: dict[str, AnsweredQuestion] = {}
    twice: set[str] = set()
    for place, memory in enumerate(memories):
        said = _question_text(memory, rarity, heading=place % 2 == 0)
        question = reword_text(said, _EVERYDAY) if said else ""
        if len(question.split()) < _LEAST_WORDS or question == said.lower() or _is_elsewhere(said, memory, memories):
            continue
        if question in made:
            twice.add(question)
        source = str(memory.source or memory.memory_id)
        made[question] = AnsweredQuestion(question=question, answers=(frozenset({memory.memory_id}),), group=source)
        if len(made) - len(twice) == most:
            break
    return [item for question, item in made.items() if question not in twice]


def about_nothing(is_known: Mapping[str, bool]) -> list[AnsweredQuestion]:
    """Returns the questions about subjects that the store does not know."""
    unknown = [subject for subject in SUBJECTS if not is_known[subject]]
    return [AnsweredQuestion(question=asked.format(subject), group=subject) for asked in _ABOUT for subject in unknown]


def _rarity(memories: Sequence[QuestionMemory]) -> dict[str, float]:
    """Returns the inverse document frequency of each stem."""
    counts = Counter(word for memory in memories for word in content_words(memory.body))
    return {word: math.log(len(memories) / count) for word, count in counts.items()}


def _question_text(memory: QuestionMemory, rarity: Mapping[str, float], *, heading: bool) -> str:
    """Returns the heading or the rarest sentence of a memory; empty if it has none that would make a question."""
    if heading and memory.kind == "chunk" and len(memory.title.split()) >= _HEADING_WORDS:
        return memory.title
    return max(_sentences(memory.body), key=lambda said: _mean_rarity(said, rarity), default="")


def _sentences(body: str) -> Iterator[str]:
    for line in lines(body):
        yield from (
            said for said in sentences(line) if len(said.split()) + len(IDEOGRAPH.findall(said)) in _SENTENCE_WORDS
        )


def _mean_rarity(said: str, rarity: Mapping[str, float]) -> float:
    found = [rarity.get(word, 0.0) for word in content_words(said)]
    return sum(found) / len(found) if found else 0.0


def _is_elsewhere(said: str, memory: QuestionMemory, memories: Sequence[QuestionMemory]) -> bool:
    return any(said in (other.title, other.body) or said in other.body for other in memories if other is not memory)


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
_EVERYDAY: Mapping[str, str] = MappingProxyType(_SYNONYMS | {
    "agreed": "settled", "answer": "reply", "asked": "inquired", "bad": "poor", "begin": "start", "best": "finest",
    "big": "large", "bought": "purchased", "buy": "purchase", "car": "vehicle", "change": "alteration",
    "changed": "altered", "chose": "picked", "decided": "resolved", "decision": "choice", "delay": "lateness",
    "doctor": "physician", "enough": "sufficient", "family": "relatives", "fast": "quick", "fix": "repair",
    "fixed": "repaired", "found": "discovered", "friend": "companion", "happy": "glad", "help": "support",
    "home": "house", "idea": "notion", "important": "vital", "kids": "children", "large": "big", "loved": "adored",
    "many": "numerous", "meeting": "gathering", "money": "funds", "movie": "film", "need": "require",
    "people": "persons", "picture": "photo", "plan": "scheme", "problem": "trouble", "problems": "troubles",
    "reason": "cause", "report": "account", "sick": "ill", "slow": "sluggish", "small": "little", "start": "begin",
    "started": "began", "stop": "halt", "stopped": "halted", "talk": "speak", "team": "group", "think": "believe",
    "tired": "weary", "told": "informed", "town": "city", "trip": "journey", "try": "attempt", "use": "employ",
    "used": "employed", "want": "wish", "wrong": "mistaken",
})  # fmt: skip
"""Other words for those of reports, and for everyday ones."""


def reword_text(text: str, others: Mapping[str, str] = _SYNONYMS) -> str:
    """Returns the text in other words, so that a question about it is not the text itself. Deterministic.

    Lower case; stop words and marks left out; words of a small table exchanged for others; every third word that is
    left is dropped, as nobody remembers all; at most twelve words; the second half before the first. Names with a digit
    in them (`t3`, `run_01`) are not counted and stay: they say which of many like texts is meant.
    """
    words = [word for word in _SPOKEN.findall(text.lower()) if word not in _LEFT_OUT]
    places = {place for place, word in enumerate(words) if not _NAME.match(word)}
    dropped = sorted(places)[_DROPPED - 1 :: _DROPPED]
    cut = [others.get(word, word) for place, word in enumerate(words) if place not in dropped][:_QUESTION_WORDS]
    middle = len(cut) // 2
    return " ".join([*cut[middle:], *cut[:middle]])


_SAMPLED = 2_000
"""Memories of which questions are made; in the order of their texts' hashes, so that equal stores give equal ones."""
_READ_CHARACTERS = 20_000

_SAMPLE = f"""
SELECT m.memory_id, m.kind, m.title, left(m.body, {_READ_CHARACTERS}) AS body, m.source_id
FROM memories m JOIN lexical l USING (workspace_id, memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL AND m.kind <> 'cue'
ORDER BY m.content_hash, m.memory_id LIMIT {_SAMPLED}
"""  # noqa: S608 - constants
_LIVE = """
SELECT memory_id, coalesce(source_id, memory_id) AS source FROM memories
WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL AND {condition}
"""
BY_ID, BY_TEXT = "memory_id = %(wanted)s", "body = %(wanted)s"
BY_SOURCE = """source_id IN (
    SELECT source_id FROM sources
    WHERE workspace_id = %(workspace_id)s AND %(wanted)s IN (uri, title) AND retired_at IS NULL
)"""
# The latest recalls only: what people liked last year may have been written anew since.
_PRAISED = """
SELECT r.query, array_agg(DISTINCT h.memory_id) AS memories,
    min(coalesce(m.source_id, m.memory_id)::text) AS source
FROM (
    SELECT recall_id, query FROM recalls
    WHERE workspace_id = %(workspace_id)s AND purpose <> 'import' ORDER BY recall_id DESC LIMIT 5000
) AS r
JOIN recall_hits h ON h.workspace_id = %(workspace_id)s AND h.recall_id = r.recall_id
JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = h.memory_id
WHERE m.valid_until IS NULL AND (h.used OR m.quality > 0)
GROUP BY r.query ORDER BY r.query LIMIT 500
"""


async def sample(session: Session) -> list[QuestionMemory]:
    """Returns live memories from which questions can be made."""
    return [QuestionMemory(*row) for row in await session.tuples(_SAMPLE, {})]


async def live_among(session: Session, condition: str, wanted: object) -> dict[UUID, UUID]:
    """Returns the live memories that meet a condition of this module, each with its source, or itself without one."""
    return {
        row.memory_id: row.source for row in await session.rows(_LIVE.format(condition=condition), {"wanted": wanted})
    }


async def praised_queries(session: Session) -> Sequence[AnsweredQuestion]:
    """Returns queries of the log whose hits were used or rated up, with these as their answers."""
    rows = await session.rows(_PRAISED)
    return [
        AnsweredQuestion(
            question=row.query, answers=tuple(frozenset({memory}) for memory in row.memories), group=row.source
        )
        for row in rows
    ]
