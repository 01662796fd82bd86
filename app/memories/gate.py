"""What is worth keeping. Pure: what a store of this kind rots by is told here, each by a reason with a short name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from app.memories.wording import NUMBER, adds_nothing, resemblance, shingles

ECHO_SHARE = 0.75
"""Share of a text's shingles that one given memory holds, from which on the text is that memory again."""
NEAR_SHARE = 0.6
"""Jaccard share of the shingles of two observations of one task from which on they are near-duplicates."""
ECHO_SIMILARITY = 0.92
"""Cosine from which on a text says what a given memory says, if no word of it is new: sentences put in another order
have 0.94 to 0.99, and so have sentences that contradict each other by one word."""
LONGEST_REWORDED = 150
"""Words: the embedding of a longer text is that of its beginning."""
SHORTEST_REWORDED = 8
"""Words: a shorter text is too little to be sure of."""
BOILERPLATE_WORDS, BOILERPLATE_CHARACTERS = 16, 120
"""A longer text says more than that nothing was found."""

SPEAKS = re.compile(r"[^\W_]")
BOILERPLATE = re.compile(
    r"\A\W*(?:(?:sorry|unfortunately|as an ai(?: language)? model|i apologi[sz]e)\b\W*)*"
    r"(?:i (?:could ?n[o']t|can ?n[o']t|cannot|was(?: not|n't) able to|am unable to|did(?: not|n't)|do(?: not|n't)) "
    r"(?:find|locate|access|retrieve|have|help|complete|answer|provide|know)\b|"
    r"(?:sorry|i apologi[sz]e)\b|no (?:results?|data|information|output|answer)s? (?:was |were |is |are )?"
    r"(?:found|available|returned|given)?\W*\Z|"
    r"nothing (?:was )?(?:found|to report)\W*\Z|"
    r"(?:n/?a|none|null|undefined|todo|tbd|placeholder|lorem ipsum)\W*\Z|"
    r"(?:task|run|job) (?:completed|finished|done)(?: successfully)?\W*\Z|"
    r"(?:я )?не (?:смог|смогла|удалось) (?:найти|получить)|(?:ничего|данных) не найдено|нет данных\W*\Z|"
    r"(?:ich )?konnte (?:leider )?(?:keine|nichts)|je n'ai (?:pas|rien) (?:pu )?trouv|no (?:pude|he podido) encontrar|"
    r"(?:抱歉|对不起|未找到|没有找到))",
    re.IGNORECASE,
)
REASON = re.compile(
    r"\b(?:because|since|due|but|instead|although|after|unless|потому|поскольку|так как|weil|denn|parce|porque|因为)\b",
    re.IGNORECASE,
)
TRACE_HEAD = re.compile(r"^\s*(?:Traceback \(most recent call last\):|Exception in thread|Caused by:)", re.MULTILINE)
TRACE_LINE = re.compile(
    r"^\s*(?:File \"[^\"\n]*\", line \d+|at [\w.$<>]+ ?\(|\^+|~*\^+~*|\.\.\. \d+ more|#\d+\s+0x|goroutine \d+)"
)
TRACE_MESSAGE = re.compile(
    r"^\s*(?:[\w.]*(?:Error|Exception|Warning|panic|Interrupt|Exit)\b)[^:\n]*:\s*\S", re.MULTILINE
)

EMPTY, PUNCTUATION, BOILERPLATE_ONLY, STACK_TRACE, ECHO = "empty", "punctuation", "boilerplate", "stack_trace", "echo"
MEANINGS = {
    EMPTY: "is empty; a memory needs text",
    PUNCTUATION: "has no letter and no digit, so nothing could find it",
    BOILERPLATE_ONLY: "says only that nothing was found or done; say what was tried, and it is worth keeping",
    STACK_TRACE: "is a stack trace without a message; add what failed and why",
}


def worthless(text: str) -> str | None:
    """The reason for which a text is not worth keeping; None if it is."""
    if not text.strip():
        return EMPTY
    if not SPEAKS.search(text):
        return PUNCTUATION
    if _only_boilerplate(text):
        return BOILERPLATE_ONLY
    if _only_a_trace(text):
        return STACK_TRACE
    return None


def _only_boilerplate(text: str) -> bool:
    """A short text that nothing came of, without a figure and without a reason."""
    short = len(text.split()) <= BOILERPLATE_WORDS and len(text.strip()) <= BOILERPLATE_CHARACTERS
    return short and bool(BOILERPLATE.match(text)) and not NUMBER.search(text) and not REASON.search(text)


def _only_a_trace(text: str) -> bool:
    if not TRACE_HEAD.search(text) or TRACE_MESSAGE.search(text):
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    frames = sum(bool(TRACE_LINE.match(line) or TRACE_HEAD.match(line)) for line in lines)
    # A line of source stands below each frame.
    return 2 * frames >= len(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A memory that a run was given, with what echoes of it are known by."""

    memory_id: UUID
    text: str
    shingles: frozenset[str]

    @classmethod
    def of(cls, memory_id: UUID, text: str) -> "Given":
        """The memory's text, taken apart once."""
        return cls(memory_id=memory_id, text=text, shingles=shingles(text))


def echo_of(text: str, given: Iterable[Given]) -> UUID | None:
    """The given memory that `text` repeats: wholly a piece of it, or most of its shingles, and nothing in it is new."""
    found = shingles(text)
    if not found:
        return None
    shares = [(len(found & item.shingles) / len(found), item) for item in given]
    share, best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or share < ECHO_SHARE:
        return None
    return best.memory_id if share == 1 or adds_nothing(text, best.text) else None


def may_be_reworded(text: str) -> bool:
    """Whether meaning can tell that the text says what a given memory says."""
    return SHORTEST_REWORDED <= len(text.split()) <= LONGEST_REWORDED


def echo_by_meaning(text: str, nearest: Given, similarity: float) -> bool:
    """Whether `text` says what the nearest given memory says, put another way."""
    return similarity >= ECHO_SIMILARITY and adds_nothing(text, nearest.text)


def near_duplicates(one: str, other: str) -> bool:
    """Whether two texts share most of their shingles and every number: a changed figure is news."""
    if frozenset(NUMBER.findall(one)) != frozenset(NUMBER.findall(other)):
        return False
    return resemblance(shingles(one), shingles(other)) >= NEAR_SHARE
