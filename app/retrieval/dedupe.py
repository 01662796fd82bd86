"""Leaving out what says the same again. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

SHINGLE = 4
"""Words in a shingle: Broder's resemblance (1997) with short shingles, because memories are short."""
NEAR = 0.8
"""Jaccard resemblance from which on two texts are one: a changed number or name in a 100-word text stays above it,
a changed sentence does not."""
WORD = re.compile(r"\w+")


class Titled(Protocol):
    """What dedupe looks at."""

    @property
    def kind(self) -> str:
        """The memory's kind."""
        ...

    @property
    def title(self) -> str:
        """Two equal titles, but for case and white space, are one memory; an empty one equals none."""
        ...

    @property
    def body(self) -> str:
        """The text."""
        ...


T = TypeVar("T", bound=Titled)


def deduplicated(ranked: Iterable[T], *, title_kinds: frozenset[str]) -> Iterator[T]:
    """`ranked` without those that say what a better ranked one does, by near-identical text or (these kinds) title."""
    titles: set[tuple[str, str]] = set()
    kept: list[frozenset[Sequence[str]]] = []
    for item in ranked:
        title = " ".join(item.title.casefold().split()) if item.kind in title_kinds else ""
        shingles = shingles_of(item.body)
        if (item.kind, title) in titles or any(resemblance(shingles, other) >= NEAR for other in kept):
            continue
        titles |= {(item.kind, title)} if title else set()
        kept.append(shingles)
        yield item


def shingles_of(body: str) -> frozenset[Sequence[str]]:
    """The text's overlapping runs of words; a shorter text is one run."""
    words = WORD.findall(body.casefold())
    return frozenset(tuple(words[start : start + SHINGLE]) for start in range(max(1, len(words) - SHINGLE + 1)))


def resemblance(one: frozenset[Sequence[str]], other: frozenset[Sequence[str]]) -> float:
    """Jaccard's share of common shingles, 0 to 1."""
    return len(one & other) / len(one | other)
