"""Reads the decision that a record (ADR) states, by its headings. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from app.foundation.text.prose import FRONT_MATTER, blocks, plain, sentences_in, without_spans
from app.foundation.text.words import content_words
from app.intake.reports.record import (
    ALTERNATIVES,
    CONSEQUENCES,
    CONTEXT,
    DATE,
    DECIDED,
    META,
    NUMBER,
    REASONS,
    STATUS,
    role_of,
)
from app.recall.cues.cue import (
    DECISION,
    EXTRACTED,
    IMPORTED,
    LONGEST_LESSON,
    LONGEST_QUOTE,
    LONGEST_TRIGGER,
    NewCue,
    cut,
)
from app.recall.cues.extraction.extract import REASON, rejected_way
from app.recall.cues.signs import patterns

ACCEPTED, SUPERSEDED, DEPRECATED, REJECTED, UNDECIDED = "accepted", "superseded", "deprecated", "rejected", "proposed"
STATES = (SUPERSEDED, DEPRECATED, REJECTED, ACCEPTED, UNDECIDED)
"""The states of a record; of several that its status names, the first counts. A record without a status is accepted."""
TOLD = 0.9
"""Confidence of a decision that its file states, 0 to 1: a heading may be a decision's by chance."""
LONGEST_REASON = 600
LONGEST_OPTION = 160
MOST_OPTIONS = 12
ITEM = re.compile(
    r"(?:^[^\S\n]*(?:[-*•]|\d{1,2}[.)])|(?<=[:,;])\s*\d{1,2}[.)])\s+(?P<what>\S.{1,200}?)(?=[,;]\s*\d{1,2}[.)]\s|$)",
    re.MULTILINE,
)
PROS = re.compile(r"^\W*(?:good|bad|neutral|gut|schlecht|pros?|cons?|плюс|минус)\b", re.IGNORECASE)
BETWEEN = re.compile(r"\s[-–—]\s|:\s|\.\s|\s\(")
"""Separators between the name of an option and its description."""
SHORTEST_DECISION = 2
"""Least content words of a sentence that takes a decision; "Therefore" takes none."""
PLACEHOLDER = re.compile(r"^\W*(?:chosen option\W+)?(?:\{[^}]{3,}\}|\[[^\]]{3,}\](?!\())", re.IGNORECASE)
REFERENCE = re.compile(r"\b(?:adr\W{0,2})?0*(\d{1,5})\b", re.IGNORECASE)
WRAP = re.compile(r"\n(?!\s*(?:[-*+•]|\d{1,2}[.)]|\|)\s)\s*")
LEAD = re.compile(
    r"^\s*(?:[-*+]\s+)?(?:\*\*|__)?(?P<name>[^\W\d_][^*_:.\n]{1,40})(?::(?=\s|$)|[:.]?(?:\*\*|__)[:.]?)\s*(?P<rest>.*)$"
)
CHOSEN = re.compile(
    r"(?:chosen option|gewählte option|выбранный вариант)s?\W{0,6}(?:is|are|ist)?\s*[\"“„«'*`_\[]*"
    r"(?P<what>[^\"”“»*`\]\n]{2,200}?)(?=[\"”“»*`\]\n]|, (?:because|weil|da |потому)| because|[.,;:]?\s*$)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """A paragraph or a list of a record."""

    text: str
    """Its lines as they stand in the file, without a heading in its first line."""
    role: str = ""
    """The section that it stands in; "" if no heading says so."""
    heading: str = ""
    named: bool = False
    """True if that heading names the role itself, not a part of it such as an option."""


class Record(NamedTuple):
    """A decision as its file states it: a cue without its evidence, and the status of the file."""

    cue: NewCue
    state: str
    """One of STATES."""
    superseded_by: tuple[int, ...]
    """Numbers of the records that hold in its place."""
    supersedes: tuple[int, ...]


def record_in(text: str, path: str) -> Record | None:
    """Returns the decision that a document records under its headings; None if it records none, or is a template."""
    title, blocks = blocks_of(text)
    roles = {block.role for block in blocks}
    subject = cut(plain(NUMBER.sub("", title)) or PurePosixPath(path).stem, LONGEST_TRIGGER)
    if not roles & {CONTEXT, CONSEQUENCES, STATUS, ALTERNATIVES, REASONS}:
        return None
    decision = [block.text for block in blocks if block.role == DECIDED]
    if not decision or PLACEHOLDER.match(decision[0]) or PLACEHOLDER.match(subject):
        return None
    whole = "\n\n".join(decision)
    quote = quote_in(blocks)
    chosen = CHOSEN.search(whole)
    choice = plain(chosen["what"] if chosen else quote).rstrip(" .:")
    status = DATE.sub("", "\n".join(block.text for block in blocks if block.role == STATUS).lower())
    states = patterns("record_states")
    details = {
        "subject": subject,
        "choice": cut(choice, LONGEST_LESSON),
        "alternatives": _options(blocks, choice, whole),
        "reasoning": cut(_reasoning(blocks, whole), LONGEST_REASON),
    }
    cue = NewCue(
        kind=DECISION,
        trigger=subject,
        lesson=cut(plain(quote), LONGEST_LESSON),
        details={name: value for name, value in details.items() if value},
        confidence=TOLD,
        quote=quote,
        trust=IMPORTED,
        origin=EXTRACTED,
    )
    return Record(
        cue=cue,
        state=next((name for name in STATES if states[name].search(status)), ACCEPTED),
        superseded_by=_numbers(states[SUPERSEDED], status),
        supersedes=_numbers(states["replaces"], status),
    )


def quote_in(blocks: Sequence[RecordBlock]) -> str:
    """Returns the sentence in which the decision is taken, or else the first one of its section; "" without any.

    A sentence that announces a list comes with it.
    """
    whole = "\n\n".join(block.text for block in blocks if block.role == DECIDED)
    parts = [part for part in sentences_in(whole) if len(content_words(part)) >= SHORTEST_DECISION] or [whole.strip()]
    takes = patterns("record_words")["decides"]
    chosen = next((part for part in parts if CHOSEN.search(part) or takes.search(part.lower())), parts[0])
    if chosen.endswith(":"):
        chosen = whole[max(0, whole.find(chosen)) :]
    return cut(chosen, LONGEST_QUOTE)


def _reasoning(blocks: Sequence[RecordBlock], decision: str) -> str:
    told = " ".join(plain(block.text) for block in blocks if block.role == REASONS)
    because = REASON.search(plain(decision))
    given = told or (because["what"] if because else "")
    return given or next((plain(block.text) for block in blocks if block.role == CONTEXT), "")


def _options(blocks: Sequence[RecordBlock], choice: str, decision: str) -> list[str]:
    named = [option for block in blocks if block.role == ALTERNATIVES for option in _option_names(block)]
    turned_down = "" if CHOSEN.search(decision) else rejected_way(plain(decision))
    found, seen = list[str](), [content_words(choice)]
    for option in [*named[: 2 * MOST_OPTIONS], turned_down]:
        words = content_words(option)
        if words and not any(2 * len(words & other) > max(len(words), len(other)) for other in seen):
            found.append(cut(option, LONGEST_OPTION))
            seen.append(words)
    return found[:MOST_OPTIONS]


def _option_names(block: RecordBlock) -> list[str]:
    if not block.named and block.heading:
        return [block.heading]
    items = [match["what"] for match in ITEM.finditer(block.text) if not match[0].startswith((" ", "\t"))]
    texts = items or sentences_in(block.text)[:1]
    return [
        name for text in texts if not PROS.match(text) and (name := plain(BETWEEN.split(plain(text))[0]).rstrip(".:,"))
    ]


def _numbers(verb: re.Pattern[str], status: str) -> tuple[int, ...]:
    lines = [line[match.end() :] for line in status.splitlines() if (match := verb.search(line))]
    return tuple(sorted({int(number) for line in lines for number in REFERENCE.findall(line)}))


def blocks_of(text: str) -> tuple[str, list[RecordBlock]]:
    """Returns the title of a document and its blocks, each with the role that a heading gives it."""
    text = without_spans(text, "<!--", "-->")
    if facts := FRONT_MATTER.match(text):
        text = f"{facts[0].strip().strip('-')}\n\n{text[facts.end() :]}"
    title, above, found = "", list[tuple[int, str, str]](), list[RecordBlock]()
    lines = text.splitlines()
    for block in blocks(text):
        if not block.depth:
            for said in _parts(lines[block.first : block.last]):
                found.append(_block(said, above, found))
            continue
        above = [item for item in above if item[0] < block.depth]
        if title:
            above.append((block.depth, role_of(plain(block.heading)), plain(block.heading)))
        title = title or plain(block.heading)
    return title, [block for block in found if block.text]


def _parts(lines: Sequence[str]) -> Iterator[str]:
    """Yields the parts of a block; each line that names a section begins one."""
    starts = [0, *(place for place, line in enumerate(lines) if place and _leads(line)), len(lines)]
    yield from ("\n".join(lines[start:end]) for start, end in pairwise(starts))


def _leads(line: str) -> re.Match[str] | None:
    found = None if CHOSEN.search(line) else LEAD.match(line)
    return found if found is not None and role_of(found["name"], whole=True) else None


def _block(said: str, above: Sequence[tuple[int, str, str]], before: Sequence[RecordBlock]) -> RecordBlock:
    """Returns a block with its role: of its first line, of the headings above, or that of such a line before it."""
    lead = _leads(said.partition("\n")[0])
    said = WRAP.sub(" ", said.strip())
    if lead is not None:
        return RecordBlock(said[lead.start("rest") :], role_of(lead["name"]), lead["name"], named=True)
    if not above and before and before[-1].named and before[-1].role not in {STATUS, META}:
        return replace(before[-1], text=said)
    role = next((role for _, role, _ in reversed(above) if role), "")
    return RecordBlock(said, role, above[-1][2] if above else "", named=bool(above and above[-1][1]))
