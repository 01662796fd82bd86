"""What is worth keeping. Pure: what a store of this kind rots by is told here, each by a reason with a short name."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

SHINGLE_WORDS = 4
"""Words of a shingle: three are found in unrelated texts, five miss an edited sentence."""
ECHO_SHARE = 0.75
"""Share of a text's shingles that one given memory holds, from which on the text is that memory again."""
NEAR_SHARE = 0.6
"""Jaccard share of the shingles of two observations of one task from which on they are near-duplicates."""
ECHO_SIMILARITY = 0.92
"""Cosine from which on a text says what a given memory says, in other words, if it adds no number and no name."""
BOILERPLATE_WORDS, BOILERPLATE_CHARACTERS = 16, 120
"""A longer text says more than that nothing was found."""

WORD = re.compile(r"\w+")
SPEAKS = re.compile(r"[^\W_]")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NAME = re.compile(r"\b[A-ZА-ЯЁÄÖÜ][\w-]+")
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


def shingles(text: str) -> frozenset[str]:
    """The runs of SHINGLE_WORDS words in a text; of a shorter text all its words as one."""
    words = WORD.findall(text.lower())
    if len(words) <= SHINGLE_WORDS:
        return frozenset({" ".join(words)} if words else ())
    return frozenset(" ".join(words[at : at + SHINGLE_WORDS]) for at in range(len(words) - SHINGLE_WORDS + 1))


def adds_no_detail(text: str, known: str) -> bool:
    """Whether every number and every name of `text` stands in `known`."""
    lowered = known.lower()
    told = frozenset(NUMBER.findall(known))
    return frozenset(NUMBER.findall(text)) <= told and all(name.lower() in lowered for name in NAME.findall(text))


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
    """The given memory that `text` repeats: most of its shingles are that memory's, and no number in it is new."""
    found = shingles(text)
    if not found:
        return None
    shares = [(len(found & item.shingles) / len(found), item) for item in given]
    share, best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or share < ECHO_SHARE:
        return None
    return best.memory_id if frozenset(NUMBER.findall(text)) <= frozenset(NUMBER.findall(best.text)) else None


def without_echoes(output: str, given: Sequence[Given]) -> tuple[str, frozenset[UUID]]:
    """`output` without the paragraphs that repeat a given memory, and the memories that they repeat."""
    if not given:
        return output, frozenset()
    kept: list[str] = []
    used: set[UUID] = set()
    for paragraph in re.split(r"\n\s*\n", output):
        memory_id = echo_of(paragraph, given) if SPEAKS.search(paragraph) else None
        if memory_id is None:
            kept.append(paragraph)
        else:
            used.add(memory_id)
    return "\n\n".join(kept), frozenset(used)


def near_duplicates(one: str, other: str) -> bool:
    """Whether two texts share most of their shingles and every number: a changed figure is news."""
    if sorted(set(NUMBER.findall(one))) != sorted(set(NUMBER.findall(other))):
        return False
    some, others = shingles(one), shingles(other)
    together = len(some | others)
    return bool(together) and len(some & others) / together >= NEAR_SHARE
