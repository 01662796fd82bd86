"""Packing pieces up to the window, and cutting what is longer than one. Pure.

What is cut are slices: joined again they give the text, but for white space at the cuts.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from app.reports.window import Window

SPEAKS = re.compile(r"[^\W_]")
SENTENCE_END = re.compile(r"""[.!?…]+["'”’»)\]*_`]*\s+|[。！？]+["”’」』）]*\s*|\n\s*\n\s*|\n(?=\s*(?:[-*+•>|#]|\d+[.)])\s)""")
LINE_END = re.compile(r"\n\s*")
WORD_END = re.compile(r"\s+")
MARK = re.compile(r"[^\w\s]|[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Within a run without blanks: after a punctuation mark, or a letter of a script that sets no blanks."""
RUN_CHARACTERS = 24
"""A run without any mark is cut into pieces of this many characters."""
EVENLY = 1.15
"""Pieces are spread over a chunk's room so that the last chunk is no scrap; this much above the mean is allowed."""


def says_something(text: str) -> bool:
    """Whether there is a letter or digit in it: bare punctuation is no text."""
    return SPEAKS.search(text) is not None


def grouped(costs: Sequence[int], room: int) -> list[range]:
    """Runs of neighbouring pieces of together at most `room`, as few runs as possible, of about even size.

    A piece that alone is beyond the room is a run by itself.
    """
    greedy = _filled(costs, room)
    if len(greedy) == 1:
        return greedy
    even = _filled(costs, min(room, int(sum(costs) / len(greedy) * EVENLY) + 1))
    return even if len(even) == len(greedy) else greedy


def _filled(costs: Sequence[int], room: int) -> list[range]:
    runs, start, used = [], 0, 0
    for place, cost in enumerate(costs):
        if place > start and used + cost > room:
            runs.append(range(start, place))
            start, used = place, 0
        used += cost
    return [*runs, range(start, len(costs))] if costs else []


def packed(pieces: Sequence[str], room: int, window: Window, separator: str = "") -> list[str]:
    """Neighbouring pieces joined as long as they fit into `room` tokens."""
    runs = grouped(window.costs(pieces), room)
    return [separator.join(pieces[place] for place in run) for run in runs]


def split_prose(text: str, room: int, window: Window) -> list[str]:
    """Slices of `text` of at most `room` tokens: cut after sentences, else lines, else words, else within a word.

    An own cutter rather than a library's: it asks for the costs of all pieces of a level at once, which is about six
    times as fast as asking for each, and linear in the text.
    """
    return _cut(text, room, window, LEVELS)


def _cut(text: str, room: int, window: Window, levels: Sequence["Level"]) -> list[str]:
    if not levels:
        return [text]
    pieces = list(levels[0](text))
    costs = window.costs(pieces)
    result = []
    for run in grouped(costs, room):
        if costs[run.start] <= room:
            result.append("".join(pieces[place] for place in run))
        else:
            result += _cut(pieces[run.start], room, window, levels[1:])
    return result


Level = Callable[[str], Iterator[str]]


def _after(boundary: re.Pattern[str]) -> Level:
    def pieces(text: str) -> Iterator[str]:
        start = 0
        for match in boundary.finditer(text):
            yield text[start : match.end()]
            start = match.end()
        if start < len(text):
            yield text[start:]

    return pieces


def _runs(text: str) -> Iterator[str]:
    for piece in _after(MARK)(text):
        for start in range(0, len(piece), RUN_CHARACTERS):
            yield piece[start : start + RUN_CHARACTERS]


LEVELS: Sequence[Level] = (_after(SENTENCE_END), _after(LINE_END), _after(WORD_END), _runs)
