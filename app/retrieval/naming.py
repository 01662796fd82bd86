"""Whether a query names what a memory is called: a speaker, a person, a place, a paper. Pure."""

from collections.abc import Sequence
from functools import lru_cache

from app.memories.wording import content_words

TITLES_KNOWN = 20_000
"""Titles whose words are remembered: those of a pool come again with the next query."""


@lru_cache(maxsize=TITLES_KNOWN)
def _words(title: str) -> frozenset[str]:
    return content_words(title)


def named(query: str, titles: Sequence[str]) -> list[bool]:
    """For each title whether the query has every content word of it; a title without one names nothing."""
    asked = content_words(query)
    known: dict[str, bool] = {}
    for title in titles:
        if title not in known:
            words = _words(title)
            known[title] = bool(words) and words <= asked
    return [known[title] for title in titles]
