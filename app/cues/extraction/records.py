"""Reads the decision that a record (ADR) states: subject, choice, alternatives, reasons and state. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from app.cues.extraction.lesson import ITEM, LONGEST_LESSON, LONGEST_QUOTE, LONGEST_TRIGGER, REASON, cut, rejected
from app.cues.extraction.sections import (
    ALTERNATIVES,
    CHOSEN,
    CONSEQUENCES,
    CONTEXT,
    DECIDED,
    DECIDES,
    NUMBER,
    REASONS,
    STATUS,
    Block,
    blocks_of,
    by_wording,
)  # fmt: skip
from app.cues.signs import patterns
from app.text.sentences import plain
from app.text.speech import sentences_in
from app.text.words import content_words

ACCEPTED, SUPERSEDED, DEPRECATED, REJECTED, UNDECIDED = "accepted", "superseded", "deprecated", "rejected", "proposed"
STATES = (SUPERSEDED, DEPRECATED, REJECTED, ACCEPTED, UNDECIDED)
"""The states of a record; of several that its status names, the first counts. A record without a status is accepted."""
TOLD, BY_WORDING = 0.9, 0.6
"""Confidence of a decision under its heading, and of one that only its wording gives away."""
LONGEST_REASON = 600
LONGEST_OPTION = 160
MOST_OPTIONS = 12
ENGLISH = (
    r"in the context of (?P<context>.{3,300}?),?\s+(?:facing|faced with) (?P<concern>.{3,300}?),?\s+we (?:have )?"
    r"(?:decided|decide|chose|opted)(?: for| to)? (?P<choice>.{3,300}?)(?:,? and (?:neglected|against|not|rejected) "
    r"(?P<options>.{3,300}?))?,?\s+(?:in order )?to (?P<goal>.{3,300}?)(?:,?\s+accept(?:ing)? .{3,400}?)?(?:\.|$)"
)
GERMAN = (
    r"im kontext (?P<context>.{3,300}?),\s+(?:angesichts|konfrontiert mit) (?P<concern>.{3,300}?),\s+haben wir uns für "
    r"(?P<choice>.{3,300}?)(?: und gegen (?P<options>.{3,300}?))? entschieden,\s+um (?P<goal>.{3,300}?)(?:\.|$)"
)
RUSSIAN = (
    r"в контексте (?P<context>.{3,300}?),\s+(?:столкнувшись с|учитывая) (?P<concern>.{3,300}?),\s+мы (?:решили|"
    r"выбрали) (?P<choice>.{3,300}?)(?:,? (?:и отказались от|а не) (?P<options>.{3,300}?))?,\s+чтобы "
    r"(?P<goal>.{3,300}?)(?:\.|$)"
)
STATEMENTS = tuple(re.compile(text, re.IGNORECASE | re.DOTALL) for text in (ENGLISH, GERMAN, RUSSIAN))
"""A Y-statement: context, concern, choice, neglected options and goal in one sentence."""
PROS = re.compile(r"^\W*(?:good|bad|neutral|gut|schlecht|pros?|cons?|плюс|минус)\b", re.IGNORECASE)
BETWEEN = re.compile(r"\s[-–—]\s|:\s|\.\s|\s\(")
"""Separators between the name of an option and its description."""
PLACEHOLDER = re.compile(r"^\W*(?:chosen option\W+)?(?:\{[^}]{3,}\}|\[[^\]]{3,}\](?!\())", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d-\d\d")
REFERENCE = re.compile(r"\b(?:adr\W{0,2})?0*(\d{1,5})\b", re.IGNORECASE)
RECORD_PATH = re.compile(
    r"(^|/)(?:adrs?|decisions?|decision[-_ ]records?)/(?:.*/)?\D{0,8}\d{1,5}\D[^/]*$|(^|/)adr\W?\d[^/]*$", re.IGNORECASE
)


class Standing(NamedTuple):
    """The status of a record."""

    state: str
    """One of STATES."""
    superseded_by: tuple[int, ...]
    """Numbers of the records that hold in its place."""
    supersedes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A decision as its file states it."""

    subject: str
    choice: str
    lesson: str
    quote: str
    """The sentence of the decision, verbatim."""
    reasoning: str
    alternatives: tuple[str, ...]
    confidence: float
    standing: Standing


def record_in(text: str, path: str) -> Record | None:
    """Returns the decision that a document records; None if it records none, or is a template.

    Without headings, only a file whose path is that of a record is read, by its wording.
    """
    title, blocks = blocks_of(text)
    roles = {block.role for block in blocks}
    subject = cut(plain(NUMBER.sub("", title)) or PurePosixPath(path).stem, LONGEST_TRIGGER)
    if DECIDED in roles and roles & {CONTEXT, CONSEQUENCES, STATUS, ALTERNATIVES, REASONS}:
        return _record(subject, blocks, TOLD)
    statements = (pattern.search(block.text) for block in blocks for pattern in STATEMENTS)
    if (statement := next(filter(None, statements), None)) is not None:
        return _stated(subject, statement, blocks)
    return _record(subject, by_wording(title, blocks), BY_WORDING) if RECORD_PATH.search(path) else None


def _record(subject: str, blocks: Sequence[Block], confidence: float) -> Record | None:
    decision = [block.text for block in blocks if block.role == DECIDED]
    if not decision or PLACEHOLDER.match(decision[0]) or PLACEHOLDER.match(subject):
        return None
    whole = "\n\n".join(decision)
    quote = quote_in(blocks)
    chosen = CHOSEN.search(whole)
    choice = plain(chosen["what"] if chosen else quote).rstrip(" .:")
    return Record(
        subject=subject,
        choice=cut(choice, LONGEST_LESSON),
        lesson=cut(plain(quote), LONGEST_LESSON),
        quote=quote,
        reasoning=_reasoning(blocks, whole),
        alternatives=tuple(_options(blocks, choice, whole)),
        confidence=confidence,
        standing=_standing(blocks),
    )


def quote_in(blocks: Sequence[Block]) -> str:
    """Returns the sentence in which the decision is taken, or else the first one of its section; "" without any."""
    parts = [part for block in blocks if block.role == DECIDED for part in sentences_in(block.text)]
    takes = patterns("record_words")[DECIDES]
    chosen = next((part for part in parts if CHOSEN.search(part) or takes.search(part.lower())), (parts or [""])[0])
    return cut(chosen, LONGEST_QUOTE)


def _reasoning(blocks: Sequence[Block], decision: str) -> str:
    """Returns the reasons: a section of them, a clause of the decision, or the context."""
    told = " ".join(plain(block.text) for block in blocks if block.role == REASONS)
    because = REASON.search(plain(decision))
    given = told or (because["what"] if because else "")
    return cut(given or next((plain(block.text) for block in blocks if block.role == CONTEXT), ""), LONGEST_REASON)


def _options(blocks: Sequence[Block], choice: str, decision: str) -> Iterator[str]:
    """Yields the names of what was not chosen, each once."""
    named = [option for block in blocks if block.role == ALTERNATIVES for option in _named(block)]
    turned_down = "" if CHOSEN.search(decision) else rejected(plain(decision))
    seen: set[frozenset[str]] = {content_words(choice)}
    for option in [*named, *([turned_down] if turned_down else [])][: 2 * MOST_OPTIONS]:
        words = content_words(option)
        if not words or any(_same(words, other) for other in seen):
            continue
        if len(seen) <= MOST_OPTIONS:
            yield cut(option, LONGEST_OPTION)
        seen.add(words)


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Returns True if two names of options have most of their words in common."""
    return 2 * len(one & other) > max(len(one), len(other))


def _named(block: Block) -> list[str]:
    """Returns the names of the options in a block: its heading, its items, or the beginning of its first sentence."""
    if not block.named and block.heading:
        return [block.heading]
    items = [match["what"] for match in ITEM.finditer(block.text) if not match[0].startswith((" ", "\t"))]
    texts = items or sentences_in(block.text)[:1]
    return [
        name for text in texts if not PROS.match(text) and (name := plain(BETWEEN.split(plain(text))[0]).rstrip(".:,"))
    ]


def _stated(subject: str, found: re.Match[str], blocks: Sequence[Block]) -> Record:
    """Returns the record of a Y-statement."""
    parts = {name: plain(value) for name, value in found.groupdict().items() if value}
    options = re.split(r",| and | or | und | oder | и | или ", parts.get("options", ""))
    return Record(
        subject=subject,
        choice=cut(parts["choice"], LONGEST_LESSON),
        lesson=cut(plain(found[0]), LONGEST_LESSON),
        quote=cut(found[0].strip().split("\n\n")[0], LONGEST_QUOTE),
        reasoning=cut(f"{parts['concern']}; {parts['goal']}", LONGEST_REASON),
        alternatives=tuple(option.strip() for option in options if option.strip()),
        confidence=TOLD,
        standing=_standing(blocks),
    )


def _standing(blocks: Sequence[Block]) -> Standing:
    """Returns the state that the status of a record names, and the records that it refers to."""
    low = DATE.sub("", "\n".join(block.text for block in blocks if block.role == STATUS).lower())
    known = patterns("record_states")
    state = next((name for name in STATES if known[name].search(low)), ACCEPTED)
    return Standing(state, _numbers(known[SUPERSEDED], low), _numbers(known["replaces"], low))


def _numbers(verb: re.Pattern[str], status: str) -> tuple[int, ...]:
    lines = [line[match.end() :] for line in status.splitlines() if (match := verb.search(line))]
    return tuple(sorted({int(number) for line in lines for number in REFERENCE.findall(line)}))


def number_of(path: str) -> int | None:
    """Returns the number in the name of a record's file; None if it has none."""
    found = re.search(r"\d{1,5}", PurePosixPath(path).stem)
    return int(found[0]) if found else None
