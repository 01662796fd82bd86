"""A text read in another way, which still knows where each of its characters stood. Pure."""

import bisect
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence

Step = tuple[int, int]
"""Characters of the view, and of the text that was given, that stand for each other."""
Change = tuple[int, int, str]
"""A stretch of a text, and what is read instead."""


class View:
    """A text as it is read. Where its characters stood is worked out when first asked for."""

    def __init__(self, text: str, *, steps: Callable[[], Iterable[Step]] | None = None) -> None:
        self.text = text
        self._steps = steps

    def place(self, at: int) -> int:
        """Where a character stood."""
        if self._steps is None:
            return at
        reads, stood, widths = self._places
        step = bisect.bisect_right(reads, at) - 1
        length = reads[step + 1] - reads[step] if step + 1 < len(reads) else 1
        return stood[step] + (at - reads[step]) * max(widths[step] - 1, 0) // max(length - 1, 1)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of this text stood."""
        first = self.place(start)
        return first, max(first + 1, self.place(max(end - 1, start)) + 1)

    @functools.cached_property
    def _places(self) -> tuple[list[int], list[int], list[int]]:
        steps = list(self._steps()) if self._steps is not None else []
        reads = itertools.accumulate((read for read, _ in steps), initial=0)
        stood = itertools.accumulate((width for _, width in steps), initial=0)
        return list(reads), list(stood), [*(width for _, width in steps), 1]


def rewritten(text: str, changes: Sequence[Change]) -> View:
    """The text with these changes, which are in order and do not overlap."""
    pieces: list[str] = []
    last = 0
    for start, end, instead in changes:
        pieces += (text[last:start], instead)
        last = end
    return View("".join([*pieces, text[last:]]), steps=lambda: _steps(changes, len(text)))


def _steps(changes: Sequence[Change], length: int) -> Iterable[Step]:
    last = 0
    for start, end, instead in changes:
        yield start - last, start - last
        yield len(instead), end - start
        last = end
    yield length - last, length - last
