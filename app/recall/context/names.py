"""Says which versions and numbered names of a query the blocks of an answer do not name. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from app.foundation.text.words import fold
from app.intake.reports.record import number_of
from app.recall.retrieval.recall import Hit

_NAME = re.compile(
    r"(?<![\w./#-])(?:[vV](?P<version>\d{1,4}(?:\.\d{1,4}){1,3})|(?P<prefix>[A-Z]{2,10})-0*(?P<number>\d{1,6})"
    r"|(?P<hash>[0-9a-f]{7,40}))(?![\w-]|\.\w)"
)
"""A version with a point (`v2.3`), a numbered name (`ADR-017`) or a hash. A bare `v6` is none: who writes the next
version names it before anything stored does."""
_STANDARDS = frozenset({"UTF", "SHA", "ISO", "HTTP", "COVID", "FY", "GPT", "IPV", "USB", "MP", "HTML", "CSS", "ES"})
"""Prefixes of names that no project gives."""
_LEAST_CHANGES = 3
"""Changes between letters and digits in a hash: `deadbeef` and `cafe2024` are words."""
_HASH_READ = 7
"""Characters of a hash that name it."""
_MOST_NAMED = 3


def remark_on_names(query: str, hits: Sequence[Hit], markdown: str) -> str:
    """Returns the line that names the identifiers of a query which no shown hit names; empty without any, or hits.

    It speaks of what is shown, not of the store: a filter or another user may hide what names them.
    """
    asked = list(_names_in(query))
    if not hits or not asked:
        return ""
    told = fold("\n".join([markdown, *(f"{hit.title} {hit.memory.source_name} {hit.body}" for hit in hits)]))
    numbers = {number_of(hit.memory.source_name or "") for hit in hits} - {None}
    missing = dict.fromkeys(
        name for name, pattern, number in asked if number not in numbers and not re.search(pattern, told, re.IGNORECASE)
    )
    if not missing:
        return ""
    more = len(missing) - _MOST_NAMED
    named = ", ".join(islice(missing, _MOST_NAMED)) + (f" and {more} more" if more > 0 else "")
    return f"None of these names {named}.\n"


def _names_in(query: str) -> Iterator[tuple[str, str, int | None]]:
    """Yields each identifier with the expression that finds it in a text, and its number if it is a numbered name."""
    for found in _NAME.finditer(query):
        if version := found["version"]:
            yield found[0], rf"(?<![\d.]){re.escape(version)}(?!\d|\.\d)", None
        elif found["prefix"] and found["prefix"] not in _STANDARDS:
            number = found["number"]
            yield found[0], rf"\b{found['prefix']}[\s#_-]{{0,3}}0*{number}(?!\d)", int(number)
        elif (commit := found["hash"]) and _changes(commit) >= _LEAST_CHANGES:
            yield found[0], commit[:_HASH_READ], None


def _changes(text: str) -> int:
    return sum(one.isdigit() != other.isdigit() for one, other in pairwise(text))
