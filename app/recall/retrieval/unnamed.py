"""Tells which versions and numbers of a query no memory names, so that the nearest is not taken for them. Pure."""

import re
from collections.abc import Sequence

from app.recall.retrieval.arms import Term
from app.recall.retrieval.recall import Hit

_IDENTIFIER = re.compile(
    r"(?<![\w./#-])(?:v\d+(?:\.\d+)+|\d+\.\d+\.\d+|[A-Z]{2,}-\d{2,}"
    r"|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})(?![\w/-]|\.\w)"
)
"""A version with a point (`v2.3`, `1.4.0`), a numbered name (`ADR-017`) or a hash. A bare `v6` is none: who writes the
next version names it before anything stored does."""
_DIGIT = re.compile(r"\d")
_JOINTS = re.compile(r"[\s_-]+")


def unnamed_in(text: str, terms: Sequence[Term], hits: Sequence[Hit]) -> tuple[str, ...]:
    """Returns the identifiers of a query that no memory names: the word statistics lack them, and so does each hit.

    The statistics lag behind the latest memories; one that names an identifier is a hit for it.
    """
    unknown = [term.lexeme for term in terms if not term.document_count and _DIGIT.search(term.lexeme)]
    found = [name for name in dict.fromkeys(_IDENTIFIER.findall(text)) if _has_one_of(name, unknown)]
    if not found:
        return ()
    told = "\n".join(_plain(f"{hit.title}\n{hit.memory.source_name or ''}\n{hit.body}") for hit in hits)
    return tuple(name for name in found if _plain(name) not in told)


def _has_one_of(name: str, lexemes: Sequence[str]) -> bool:
    return any(lexeme in name.lower() for lexeme in lexemes)


def _plain(text: str) -> str:
    """Returns a text in which `ADR 017`, `adr-017` and `ADR017` are one."""
    return _JOINTS.sub("", text).lower()
