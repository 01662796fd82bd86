"""Facets: what kind of document a memory is of, as the path of its report and its place in it say. Pure."""

import re
from collections.abc import Sequence

FACET = "facet"
"""Its key in a memory's metadata."""
JUDGEMENT, ISSUES, CALIBRATION, SOURCES, DECISIONS = "judgement", "issues", "calibration", "sources", "decisions"
"""The facets of a report's chunk: what kind of document it is of, as its path and place say. Others are products."""
RECURRING = "recurring"
"""The facet of the note that tells a case's issues over all versions."""
CASE = "case:"
"""The beginning of the address of a case's notes; the rest is the case's name."""
UNNAMED = "unnamed"
"""The case of a judgement that names none."""
_LESSONS = frozenset({JUDGEMENT, ISSUES, CALIBRATION, SOURCES, DECISIONS, RECURRING, "cue", "note"})
"""Facets, and kinds of memories without one, that are no run's product: a low score speaks of the product alone."""

_FACETS_BY_NAME = (
    (CALIBRATION, re.compile(r"(?i)calibrat|score[ _-]?histor|scoring|rubric")),
    (ISSUES, re.compile(r"(?i)issue|gap[ _-]?analy|lessons?|post[ _-]?mortem|retro|failure|correction")),
    (JUDGEMENT, re.compile(r"(?i)judg|evaluat|verdict|critique|assessment|review|оцен|bewert")),
    (SOURCES, re.compile(r"(?i)scout|links?\b|sources?\b|references|bibliograph")),
    (DECISIONS, re.compile(r"(?i)director|decision")),
)


def is_case_note(uri: str | None) -> bool:
    """Tells whether the address of a source is that of a case's notes."""
    return uri is not None and uri.startswith(CASE)


def facet_of(parts: Sequence[str], place: str) -> str:
    """Returns the facet of a chunk of the file with this path, at this heading path or pointer; empty for a product."""
    stem = parts[-1].rsplit(".", 1)[0] if parts else ""
    for text in (stem, *reversed(parts[-3:-1])):
        found = next((facet for facet, pattern in _FACETS_BY_NAME if pattern.search(text)), "")
        if found:
            is_issue = found == JUDGEMENT and re.search(r"(?i)issues?\b|problems|what went wrong", place)
            return ISSUES if is_issue else found
    return (
        ISSUES
        if re.search(r"(?i)\bissues\b|what went wrong|\bcorrections?\b|\bfailures?\b|lessons learn", place)
        else ""
    )


def is_lesson(facet: str) -> bool:
    """Tells whether a memory of this facet or kind is no run's product."""
    return facet in _LESSONS
