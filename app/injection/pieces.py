"""Texts from many places of one text, read as one: a rule is asked once, however many there are. Pure."""

import bisect
from collections.abc import Iterable
from dataclasses import dataclass

from app.injection.context import Span


@dataclass(frozen=True, slots=True)
class Pieces:
    """The texts, one after another."""

    text: str
    starts: tuple[int, ...]
    """Of each in `text`."""
    spans: tuple[Span, ...]
    """Of each in the text that was given."""

    def span(self, at: int) -> Span:
        """Where the text stood to which this place belongs."""
        return self.spans[max(bisect.bisect_right(self.starts, at) - 1, 0)]


def pieces(found: Iterable[tuple[str, Span]]) -> Pieces | None:
    """These texts; None where there is none."""
    texts: list[str] = []
    starts: list[int] = []
    spans: list[Span] = []
    at = 0
    for text, span in found:
        texts.append(text)
        starts.append(at)
        spans.append(span)
        at += len(text) + 1
    return Pieces("\n".join(texts), tuple(starts), tuple(spans)) if texts else None
