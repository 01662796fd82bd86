"""Screens memories before they are stored: worthless text, injections, secrets; and finds echoes by words. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from app.errors import Refused, told_apart
from app.memories.admission import reason_to_reject
from app.memories.memory import NewMemory
from app.safety.scan import Finding, blocking, scan
from app.safety.secrets import masked_values
from app.text.words import SHORTEST_REWORDED, SPEAKS, adds_nothing, measures, resemblance, shingles

ECHO_SHARE = 0.75
"""Share of a text's shingles in one given memory from which on the text repeats that memory."""
NEAR_SHARE = 0.6
"""Jaccard share of the shingles of two observations of one task from which on they are near-duplicates."""
ECHO_SIMILARITY = 0.92
"""Cosine from which on a text without a new word repeats a given memory. Reordered sentences have 0.94 to 0.99, and so
have sentences that contradict each other by one word."""
LONGEST_REWORDED = 150
"""Words: the embedding of a longer text is that of its beginning."""
BOILERPLATE_CHARACTERS = 160
"""Characters; a longer text is no boilerplate."""

BOILERPLATE = re.compile(
    r"""\A\W*
    (?:(?:(?:i['’]m\ )?sorry|unfortunately|i\ apologi[sz]e|as\ an\ ai(?:\ language)?\ model|but|leider|désolée?|
        lo\ siento|извините|к\ сожалению|抱歉|对不起)\b\W*)*
    (?:
        i\ (?:could\ ?n['o’]t|can\ ?n?['o’]t|was(?:\ not|n['’]t)\ able\ to|am\ unable\ to|was\ unable\ to|
            did(?:\ not|n['’]t)|do(?:\ not|n['’]t))
        \ (?:find|locate|access|retrieve|have|help|assist|complete|answer|provide|know|browse)\b
        (?:\ (?:you|with|any|the|this|that|a|an|it|to|on|about|for|relevant|useful|more|enough|further|information|
            results?|data|answers?|anything|pages?|web|internet|websites?|question|request|task|topic|details?))*
        |(?:there\ (?:was|were|are|is)\ )?(?:no|not?\ any)\ (?:relevant\ |useful\ |further\ )?
            (?:results?|data|information|output|answers?)(?:\ (?:was|were|is|are))?
            (?:\ (?:found|available|returned|given))?
        |nothing\ (?:was\ )?(?:found|to\ report)
        |n/?a|none|null|undefined|todo|tbd|placeholder|lorem\ ipsum
        |(?:task|run|job)\ (?:completed|finished|done)(?:\ successfully)?
        |(?:я\ )?не\ (?:смог|смогла|удалось)\ (?:найти|получить)(?:\ (?:никакой|никаких|нужную|информаци\w+|данны\w+|
            результат\w*|ничего))*
        |(?:ничего|данных|информации)\ не\ найдено|нет\ данных
        |(?:ich\ )?konnte\ (?:leider\ )?(?:keine|nichts)(?:\ (?:informationen|ergebnisse|daten|finden))*
        |je\ n['’]ai\ (?:pas|rien)\ (?:pu\ )?trouv\w*(?:\ (?:d['’]informations?|de\ résultats?))*
        |no\ (?:pude|he\ podido)\ encontrar(?:\ (?:información|resultados|datos|nada|ninguna))*
        |(?:未找到|没有找到)(?:任何)?(?:相关)?(?:的)?(?:信息|结果|数据|内容)?
    )\W*\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""A whole text that says only that nothing was found or done. If it names the thing that was not found, it is kept."""
TRACE_HEAD = re.compile(r"^[ \t]*(?:Traceback \(most recent call last\):|Exception in thread|Caused by:)", re.MULTILINE)
TRACE_LINE = re.compile(
    r"^\s*(?:File \"[^\"\n]*\", line \d+|at [\w.$<>]+ ?\(|\^+|~*\^+~*|\.\.\. \d+ more|#\d+\s+0x|goroutine \d+)"
)
TRACE_MESSAGE = re.compile(
    r"^(?:Caused by: )?[\w.$]+(?:\[[^\]\n]*\])?: \S|^Caused by: (?![\w.$]+:?\s*$)\S", re.MULTILINE
)
"""The last line of a trace: the exception and its message."""

EMPTY, PUNCTUATION, BOILERPLATE_ONLY, STACK_TRACE, ECHO = "empty", "punctuation", "boilerplate", "stack_trace", "echo"
MEANINGS = {
    EMPTY: "is empty; a memory needs text",
    PUNCTUATION: "has no letter and no digit, so nothing could find it",
    BOILERPLATE_ONLY: "says only that nothing was found or done; say what was tried, and it is worth keeping",
    STACK_TRACE: "is a stack trace without a message; add what failed and why",
}


def worthless(text: str) -> str | None:
    """Returns the reason to refuse a text as worthless; None if there is none."""
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
    return len(text) <= BOILERPLATE_CHARACTERS and bool(BOILERPLATE.match(text))


def _only_a_trace(text: str) -> bool:
    if not TRACE_HEAD.search(text) or TRACE_MESSAGE.search(text):
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    if not any(TRACE_LINE.match(line) for line in lines):
        return False
    frames = sum(bool(TRACE_LINE.match(line) or TRACE_HEAD.match(line)) for line in lines)
    # A line of source follows each frame.
    return 2 * frames >= len(lines) and not any(_is_prose(line) for line in lines)


def _is_prose(line: str) -> bool:
    """Returns whether a line is prose: words at the margin, not a line of source."""
    return line[0].isalpha() and len(line.split()) > 2 and not (TRACE_HEAD.match(line) or TRACE_LINE.match(line))  # noqa: PLR2004 - words


@dataclass(frozen=True, kw_only=True)
class Given:
    """A memory that a run was given, with its shingles."""

    memory_id: UUID
    text: str

    @cached_property
    def shingles(self) -> frozenset[str]:
        """The shingles of its text."""
        return shingles(self.text)


def echo_of(text: str, given: Iterable[Given]) -> UUID | None:
    """Returns the given memory that holds most of the text's shingles, if nothing in the text is new."""
    found = shingles(text)
    if not found:
        return None
    shares = [(len(found & item.shingles) / len(found), item) for item in given]
    share, best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or share < ECHO_SHARE:
        return None
    # All shingles are the same, but a sign or a unit may differ.
    repeats = measures(text) <= measures(best.text) if share == 1 else adds_nothing(text, best.text)
    return best.memory_id if repeats else None


def may_be_reworded(text: str) -> bool:
    """Returns whether the text has a length at which embeddings find an echo in other words."""
    return SHORTEST_REWORDED <= len(text.split()) <= LONGEST_REWORDED


def echo_by_meaning(text: str, nearest: Given, similarity: float) -> bool:
    """Returns whether `text` repeats the nearest given memory in other words."""
    return similarity >= ECHO_SIMILARITY and adds_nothing(text, nearest.text)


def says_no_more(text: str, known: str) -> bool:
    """Returns whether `text` is a near-duplicate of `known` without a new number, name, negation or other word."""
    return resemblance(shingles(text), shingles(known)) >= NEAR_SHARE and adds_nothing(text, known)


INVALID, INJECTION = "invalid", "injection"
SHOWN_OF_A_FINDING = ("rule", "family", "severity", "start", "end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A reason not to store a memory."""

    message: str
    """Names the field, the fault and the remedy."""
    code: str
    """The name that statistics count it by."""
    details: tuple[dict[str, Any], ...] = ()

    def as_error(self) -> Refused:
        """Returns the error for a caller."""
        return Refused(*told_apart(self.message), reason=self.code, details=self.details)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """A memory after the gate, without its secrets."""

    memory: NewMemory
    objection: Objection | None = None
    """None: it may be stored."""
    findings: tuple[dict[str, Any], ...] = ()
    """The findings of the injection scan, by field; also those that block nothing."""
    tokens: int = 0
    """Length of its embedded text; 0 until it is counted."""


def screened(memory: NewMemory, *, mask: bool) -> Screened:
    """Returns a memory after the gate: without its secrets, with its findings and an objection, if there is one."""
    reason = reason_to_reject(memory)
    if reason is not None:
        return Screened(memory=memory, objection=Objection(message=reason, code=INVALID))
    clean = _without_secrets(memory) if mask else memory
    # A message is kept however worthless: without it, the others of its source would have other neighbours.
    useless = None if memory.kind == "message" else worthless(clean.body)
    if useless is not None:
        return Screened(memory=clean, objection=Objection(message=f"body: {MEANINGS[useless]}", code=useless))
    found = tuple(_found(clean))
    blocked = [(field, finding) for field, findings in found for finding in blocking(findings)]
    details = tuple(_as_detail(field, finding) for field, findings in found for finding in findings)
    if not blocked:
        return Screened(memory=clean, findings=details)
    return Screened(memory=clean, findings=details, objection=_injection(blocked, details))


def _injection(blocked: Sequence[tuple[str, Finding]], details: tuple[dict[str, Any], ...]) -> Objection:
    field, first = blocked[0]
    message = (
        f"{field}: characters {first.start} to {first.end} look like an instruction to the reader (rule {first.rule});"
        " quote it in a code block or a block quote if it is what you report on"
    )
    return Objection(message=message, code=INJECTION, details=details)


def _found(memory: NewMemory) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    texts = {"title": memory.title, "body": memory.body}
    if memory.source is not None:
        texts |= {"source.title": memory.source.title, "source.uri": memory.source.uri}
    if memory.observation is not None:
        texts |= {f"facts[{place}]": fact for place, fact in enumerate(memory.observation.facts)}
        if memory.observation.narrative not in memory.body:
            texts["narrative"] = memory.observation.narrative
    for field, text in (*texts.items(), *_leaves("tags", memory.tags), *_leaves("metadata", memory.metadata)):
        findings = scan(text)
        if findings:
            yield field, findings


def _leaves(field: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    """Yields the texts of a JSON value, keys included, each with its place."""
    match value:
        case str():
            yield field, value
        case Mapping():
            for key, item in value.items():
                yield field, key
                yield from _leaves(f"{field}.{key}", item)
        case list() | tuple():
            for place, item in enumerate(value):
                yield from _leaves(f"{field}[{place}]", item)


def _as_detail(field: str, finding: Finding) -> dict[str, Any]:
    """Returns a finding as it is stored and shown."""
    return {"field": field, **{name: getattr(finding, name) for name in SHOWN_OF_A_FINDING}}


def _without_secrets(memory: NewMemory) -> NewMemory:
    clean = masked_values(replace(memory, embedding=None))
    if (clean.title, clean.body) != (memory.title, memory.body):
        # The vector was made of the unmasked text.
        return clean
    return replace(clean, embedding=memory.embedding)
