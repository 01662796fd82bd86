"""Tells the sections of a decision record (ADR) by their headings. Pure."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import PurePosixPath

from app.foundation.text.data import read_toml
from app.foundation.text.prose import FENCE, HEADING, plain
from app.storage.memories.memory import Memory

STATUS, REASONS, ALTERNATIVES, CONSEQUENCES = "status", "reasons", "alternatives", "consequences"
DECIDED, CONTEXT, META = "decision", "context", "meta"
"""The sections of a record. META is what is not about the decision: dates, people and links."""
NUMBER = re.compile(r"^\W*(?:adr\W{0,2})?\d{1,5}(?:[.:)]|\s*[-–—])?\s+|^\W*adr\W{0,2}\d{1,5}\W+", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DECISION = re.compile(r"\W*(?:decision|entscheidung|beschluss|решение)", re.IGNORECASE)
_REMEMBERED = 2_048
"""Texts whose sections are remembered: those that are hits again and again."""


@lru_cache(maxsize=4_096)
def role_of(heading: str, *, whole: bool = False) -> str:
    """Returns the section that a heading begins; "" if it is none of a record's. With `whole`, it says nothing else."""
    low = NUMBER.sub("", heading).strip().lower()
    for name, pattern in _patterns().items():
        match = pattern.match(low)
        if match is not None and (not whole or match.end() == len(low)):
            return name
    return ""


def role_at(heading_path: Sequence[str], body: str, start: int) -> str:
    """Returns the section of a passage that begins at a character of a body, by the headings above it.

    A heading counts if it says nothing but the section's name. The nearest one is first: those in the body, because
    small sections of a document are stored as one text, and then those of the `heading_path`, the document's title
    first. Below alternatives a solution is one of them, and a decision is not.
    """
    starts, roles = _sections(tuple(heading_path[1:]), body)
    return roles[bisect_right(starts, start) - 1]


@lru_cache(maxsize=_REMEMBERED)
def _sections(above: tuple[str, ...], body: str) -> tuple[Sequence[int], Sequence[str]]:
    """Returns the characters at which sections of a body begin, the first at 0, and what each is."""
    path = [(0, heading) for heading in above]
    starts, roles = [0], [_role_below(path)]
    at, fenced = 0, False
    for line in body.splitlines(keepends=True):
        fenced ^= FENCE.match(line) is not None
        heading = None if fenced else HEADING.match(line)
        if heading is not None:
            path = [item for item in path if item[0] < len(heading["marks"])]
            path.append((len(heading["marks"]), plain(heading["text"])))
            starts.append(at)
            roles.append(_role_below(path))
        at += len(line)
    return starts, roles


def _role_below(path: Sequence[tuple[int, str]]) -> str:
    """Returns the section below these headings, the nearest one last."""
    roles = [(role, heading) for _, heading in reversed(path) if (role := role_of(heading, whole=True))]
    if any(role == ALTERNATIVES for role, _ in roles) and not _DECISION.match(NUMBER.sub("", roles[0][1])):
        return ALTERNATIVES
    return roles[0][0] if roles else ""


def role_of_passage(memory: Memory, start: int) -> str:
    """Returns the section of a passage of a document; "" for a memory that is no part of one."""
    above = memory.metadata.get("trail") if memory.kind == "chunk" else None
    return role_at([str(heading) for heading in above], memory.body, start) if isinstance(above, list) else ""


def number_of(path: str) -> int | None:
    """Returns the number in the name of a record's file; None if it has none."""
    found = re.search(r"\d{1,5}", DATE.sub("", PurePosixPath(path).stem))
    return int(found[0]) if found else None


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Reads the expressions of all languages by section."""
    found: dict[str, list[str]] = {}
    for language in read_toml("app.intake.reports", "records.toml", dict[str, dict[str, list[str]]]).values():
        for name, expressions in language.items():
            found.setdefault(name, []).extend(expressions)
    return {name: re.compile(rf"^\W*(?:{'|'.join(own)})(?!\w)") for name, own in found.items()}
