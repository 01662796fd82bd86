"""Splits a decision record (ADR) into blocks, and tells their sections by headings, or else by wording. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.foundation.text.markdown import FENCE, FRONT_MATTER, HEADING, plain
from app.foundation.text.words import content_words
from app.recall.cues.signs import OPENING, patterns

DECIDES, WEIGHS = "decides", "weighs"
"""The signs of wording, in the languages' files."""
STATUS, REASONS, ALTERNATIVES, CONSEQUENCES = "status", "reasons", "alternatives", "consequences"
DECIDED, CONTEXT, META = "decision", "context", "meta"
"""The sections of a record. META is what is not about the decision: dates, people and links."""
WRAP = re.compile(r"\n(?!\s*(?:[-*+•]|\d{1,2}[.)]|\|)\s)\s*")
"""The end of a line within a paragraph or an item."""
SETEXT = re.compile(r"^(?P<text>(?![-*+>#|\s]).*\S)[ \t]*\n(?P<line>=|-)(?P=line){2,}[ \t]*$", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
NUMBER = re.compile(r"^\W*(?:adr\W{0,2})?\d{1,5}(?:[.:)]|\s*[-–—])?\s+|^\W*adr\W{0,2}\d{1,5}\W+", re.IGNORECASE)
"""The number before a title or a heading."""
LEAD = re.compile(
    r"^\s*(?:[-*+]\s+)?(?:\*\*|__)?(?P<name>[^\W\d_][^*_:.\n]{1,40})(?::(?=\s|$)|[:.]?(?:\*\*|__)[:.]?)\s*(?P<rest>.*)$"
)
"""A heading that stands in the line of its text: `**Decision.** …`, `* Status: …`."""
CHOSEN = re.compile(
    r"(?:chosen option|gewählte option|выбранный вариант)s?\W{0,6}(?:is|are|ist)?\s*[\"“„«'*`_\[]*"
    r"(?P<what>[^\"”“»*`\]\n]{2,200}?)(?=[\"”“»*`\]\n]|, (?:because|weil|da |потому)| because|[.,;:]?\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""The words of a template that name the choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBlock:
    """A paragraph or a list of a record."""

    text: str
    """Its lines as they stand in the file, without a heading in its first line."""
    role: str = ""
    """The section that it stands in; "" if no heading says so."""
    heading: str = ""
    """The nearest heading, without marks."""
    named: bool = False
    """True if that heading names the role itself, not a part of it such as an option."""


def blocks_of(text: str) -> tuple[str, list[RecordBlock]]:
    """Returns the title of a document and its blocks, each with the role that a heading gives it."""
    title, above, found = "", list[tuple[int, str, str]](), list[RecordBlock]()
    lines: list[str] = []

    def end() -> None:
        if said := "\n".join(lines).strip():
            found.append(_block(said, above))
        lines.clear()

    fenced = False
    for line in [*_lines(text), ""]:
        fenced ^= FENCE.match(line) is not None
        heading = None if fenced else HEADING.match(line)
        if heading is not None:
            end()
            depth, name = len(heading[1]), plain(heading[2].rstrip().rstrip("#"))
            above = [item for item in above if item[0] < depth]
            if title:
                above.append((depth, role_of(name), name))
            title = title or name
        elif (not line.strip() and not fenced) or (lines and _leads(line)):
            end()
            lines += [line] if line.strip() else []
        else:
            lines.append(line)
    end()
    return title, _continue_roles(found)


def _lines(text: str) -> list[str]:
    facts = FRONT_MATTER.match(text)
    if facts is not None:
        text = facts[0].strip().strip("-") + "\n\n" + text[facts.end() :]
    return SETEXT.sub(_heading, COMMENT.sub("", text)).splitlines()


def _heading(found: re.Match[str]) -> str:
    return f"{'#' if found['line'] == '=' else '##'} {found['text']}"


def role_of(heading: str, *, whole: bool = False) -> str:
    """Returns the section that a heading begins; "" if it is none of a record's. With `whole`, it says nothing else."""
    low = NUMBER.sub("", heading).strip().lower()
    for name, pattern in patterns("records").items():
        match = pattern.match(low)
        if match is not None and (not whole or match.end() == len(low)):
            return name.removeprefix(OPENING)
    return ""


def _leads(line: str) -> re.Match[str] | None:
    """Returns the parts of a line that begins with the heading of its text."""
    found = None if CHOSEN.search(line) else LEAD.match(line)
    return found if found is not None and role_of(found["name"], whole=True) else None


def _block(said: str, above: Sequence[tuple[int, str, str]]) -> RecordBlock:
    lead = _leads(said.partition("\n")[0])
    said = WRAP.sub(" ", said)
    if lead is not None:
        text = said[lead.start("rest") :]
        return RecordBlock(text=text, role=role_of(lead["name"]), heading=lead["name"], named=True)
    roles = [(role, name) for _, role, name in above if role]
    heading = above[-1][2] if above else ""
    return RecordBlock(
        text=said, role=roles[-1][0] if roles else "", heading=heading, named=bool(above and above[-1][1])
    )


def _continue_roles(blocks: Sequence[RecordBlock]) -> list[RecordBlock]:
    """Gives blocks that follow a heading in a line its role, up to the next one."""
    found: list[RecordBlock] = []
    for block in blocks:
        before = found[-1] if found else RecordBlock(text="")
        if not block.role and not block.heading and before.named and before.role not in {STATUS, META}:
            block = replace(block, role=before.role, heading=before.heading, named=True)  # noqa: PLW2901 - the same one
        found.append(block)
    return [block for block in found if block.text]


def by_wording(title: str, blocks: Sequence[RecordBlock]) -> list[RecordBlock]:
    """Returns blocks with the roles that their wording gives away: one decision, its alternatives, "" for others."""
    words = patterns("record_words")
    signs = [{name for name, pattern in words.items() if pattern.search(block.text.lower())} for block in blocks]
    weights = [
        (DECIDES in own) - (WEIGHS in own) + (place == 0) + 2 * _share(block.text, content_words(title))
        for place, (block, own) in enumerate(zip(blocks, signs, strict=True))
    ]
    best = weights.index(max(weights)) if weights else None
    weighed = [ALTERNATIVES if WEIGHS in own and DECIDES not in own else "" for own in signs]
    return [
        replace(block, role=DECIDED if place == best else role, named=True)
        for place, (block, role) in enumerate(zip(blocks, weighed, strict=True))
    ]


def _share(text: str, title: frozenset[str]) -> float:
    """Returns the share of a title's words that a text has; 2 for one that names the chosen option."""
    return 2 if CHOSEN.search(text) else len(title & content_words(text)) / max(1, len(title))
