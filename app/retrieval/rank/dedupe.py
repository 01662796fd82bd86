"""Leaves out what says the same again. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from app.text.words import resemblance, shingles

NEAR = 0.8
"""Jaccard resemblance from which on two texts are one: a changed number or name in a 100-word text stays above it,
a changed sentence does not."""

COMPARED_CHARACTERS = 4_000
"""At either end of a text: what is longer than both is compared by its ends and its length. A chunk, an observation and
a turn are shorter; of 250 texts of 20,000 characters all runs of words took 5 s."""


class Titled(Protocol):
    """A hit, as far as dedupe looks at it."""

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


class Wording(NamedTuple):
    """The form in which texts are compared."""

    length: int
    """Characters."""
    runs: frozenset[str]


def wording(body: str) -> Wording:
    """Returns the form in which `body` is compared; a text without a word, like a smile, is its own only run."""
    body = body.strip()
    shown = body
    if len(body) > 2 * COMPARED_CHARACTERS:
        shown = f"{body[:COMPARED_CHARACTERS]} {body[-COMPARED_CHARACTERS:]}"
    return Wording(len(body), shingles(shown) or frozenset({shown}))


def deduplicated(
    ranked: Iterable[T],
    *,
    title_kinds: frozenset[str],
    by_text: bool = True,
    wording: Callable[[str], Wording] = wording,
) -> Iterator[T]:
    """Yields `ranked` without those that say what a better ranked one does, by near-identical text or (these kinds)
    title.

    A caller that asks again with more gives a `wording` that remembers.
    """
    titles: set[str] = set()
    kept: list[Wording] = []
    for item in ranked:
        title = " ".join(item.title.casefold().split()) if item.kind in title_kinds else ""
        words = wording(item.body) if by_text else None
        if title in titles or (words and any(_near(words, other) for other in kept)):
            continue
        titles |= {title} if title else set()
        kept += [words] if words else []
        yield item


def _near(one: Wording, other: Wording) -> bool:
    """Returns True for near-identical texts. Most pairs fail by size alone: two sets share at most the smaller one."""
    shortest, longest = sorted((len(one.runs), len(other.runs)))
    if shortest < NEAR * longest or resemblance(one.runs, other.runs) < NEAR:
        return False
    shortest, longest = sorted((one.length, other.length))
    return longest <= 2 * COMPARED_CHARACTERS or shortest >= NEAR * longest
