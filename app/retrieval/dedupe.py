"""Leaving out what says the same again. Pure."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from app.memories.wording import resemblance, shingles

NEAR = 0.8
"""Jaccard resemblance from which on two texts are one: a changed number or name in a 100-word text stays above it,
a changed sentence does not."""


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


def _near(one: frozenset[str], other: frozenset[str]) -> bool:
    """Two sets share at most the smaller one, so most pairs are told apart by their lengths."""
    shortest, longest = sorted((len(one), len(other)))
    return shortest >= NEAR * longest and resemblance(one, other) >= NEAR


def deduplicated(ranked: Iterable[T], *, title_kinds: frozenset[str], by_text: bool = True) -> Iterator[T]:
    """`ranked` without those that say what a better ranked one does, by near-identical text or (these kinds) title."""
    titles: set[str] = set()
    kept: list[frozenset[str]] = []
    for item in ranked:
        title = " ".join(item.title.casefold().split()) if item.kind in title_kinds else ""
        # A text without a word, like a smile, is itself alone.
        runs = (shingles(item.body) or frozenset({item.body.strip()})) if by_text else frozenset()
        if title in titles or any(_near(runs, other) for other in kept):
            continue
        titles |= {title} if title else set()
        kept.append(runs)
        yield item
