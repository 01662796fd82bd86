"""Tells the sections of a decision record (ADR) by their headings. Pure."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import PurePosixPath

from app.foundation.text.data import read_toml
from app.foundation.text.prose import HEADING, plain
from app.storage.memories.memory import Memory

STATUS, REASONS, ALTERNATIVES, CONSEQUENCES = "status", "reasons", "alternatives", "consequences"
DECIDED, CONTEXT, META = "decision", "context", "meta"
"""The sections of a record. META is what is not about the decision: dates, people and links."""
NUMBER = re.compile(r"^\W*(?:adr\W{0,2})?\d{1,5}(?:[.:)]|\s*[-–—])?\s+|^\W*adr\W{0,2}\d{1,5}\W+", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d-\d\d")
REFERENCE = re.compile(r"\b(?:adr\W{0,2})?0*(\d{1,5})\b", re.IGNORECASE)
_DEEPER_THAN_ANY = 7


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

    Those in the body are nearest: small sections of a document are stored as one text. Then come those of the
    `heading_path`, the document's title first.
    """
    depth = _DEEPER_THAN_ANY
    for line in reversed(body[: body.find("\n", start) if "\n" in body[start:] else len(body)].splitlines()):
        heading = HEADING.match(line)
        if heading is not None and len(heading[1]) < depth:
            depth = len(heading[1])
            if role := role_of(plain(heading["text"])):
                return role
    return next(filter(None, map(role_of, reversed(heading_path[1:]))), "")


def role_of_passage(memory: Memory, start: int) -> str:
    """Returns the section of a passage of a document; "" for a memory that is no part of one."""
    above = memory.metadata.get("trail") if memory.kind == "chunk" else None
    return role_at([str(heading) for heading in above], memory.body, start) if isinstance(above, list) else ""


def number_of(path: str) -> int | None:
    """Returns the number in the name of a record's file; None if it has none."""
    found = re.search(r"\d{1,5}", PurePosixPath(path).stem)
    return int(found[0]) if found else None


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Reads the expressions of all languages by section."""
    found: dict[str, list[str]] = {}
    for language in read_toml("app.intake.reports", "records.toml", dict[str, dict[str, list[str]]]).values():
        for name, expressions in language.items():
            found.setdefault(name, []).extend(expressions)
    return {name: re.compile(rf"^\W*(?:{'|'.join(own)})(?!\w)") for name, own in found.items()}
