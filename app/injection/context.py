"""Where in a text something stands: quoted as data, discussed, or in a place that nobody sees. Pure."""

import bisect
import functools
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

Span = tuple[int, int]

FENCE = r"(?m)^[ \t]{0,3}(`{3,}|~{3,})[^\n`]*$"
INLINE = r"``[^`\n]+(?:`[^`\n]+)*``|`[^`\n]+`"
QUOTE = r"(?m)^[ \t]{0,3}>[^\n]*$"
QUOTED = r"\"[^\"\n]{4,}\"|“[^”\n]{4,}”|«[^»\n]{4,}»|„[^“”\n]{4,}[“”]|「[^」\n]{2,}」"
DISCUSSED = re.compile(
    r"\b(?:phrases?|phrasing|such as|like|e\.g|for example|for instance|attack\w*|inject\w*|jailbreak\w*|adversar\w*|"
    r"payloads?|strings?|examples?|pattern\w*|detect\w*|block\w*|filter\w*|scan\w*|caught|refus\w*|red[- ]?team\w*|"
    r"malicious|tried|tries|attempt\w*|contain\w*|said|says|wrote|writes|reads|titled|called|quote[sd]?|known as|"
    r"приме\w*|фраз\w*|атак\w*|инъекц\w*|пыта\w*|beispiel\w*|angriff\w*|satz|sätze|exemple\w*|attaque\w*|phrase\w*|"
    r"ejemplo\w*|ataque\w*|frase\w*)\b|例如|攻击|注入|短语|比如",
    re.IGNORECASE,
)
DISCUSSION_CHARACTERS = 100
"""Before a quotation, in which a word must say that it is discussed."""
MOST_MARKS = 10_000
"""Quotations of one kind that are looked at; what has more is no document, and what comes after counts as said."""
COMMENT_START, COMMENT_END = "<!--", "-->"
UNSEEN = (
    r"(?m)\]\([^()\s]*[ \t]+[\"'(]([^\"\n]{3,})[\"')]\)",
    r"(?m)^[ \t]{0,3}\[[^\]\n]+\]:[ \t]*\S+[ \t]+[\"'(]([^\n]{3,})[\"')]",
    r"!\[([^\]\n]{3,})\]\(",
    (
        r"(?i)<\w+\b[^<>]*(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0"
        r"|color\s*:\s*(?:white|#fff|transparent)|\bhidden\b)[^<>]*>([^<]{3,})<"
    ),
)
"""Titles of links, in their place and by reference; texts of images; elements that a style hides."""


@functools.cache
def _compiled(pattern: str) -> Any:  # noqa: ANN401 - re2 carries no types
    """By an engine whose time is linear in the text, also where nothing matches."""
    import re2  # type: ignore[import-untyped] # noqa: PLC0415 - it carries no types; only where text is stored

    return re2.compile(pattern)


def _spans(pattern: str, text: str) -> Iterator[Span]:
    for match in itertools.islice(_compiled(pattern).finditer(text), MOST_MARKS):
        yield match.start(), match.end()


def quoted_as_data(text: str) -> list[Span]:
    """Code blocks that are closed, inline code, and block quotes."""
    return merged([*_fences(text), *_spans(QUOTE, text), *_spans(INLINE, text)])


def _fences(text: str) -> Iterator[Span]:
    """From an opening fence to its own closing one; one that is never closed is no quotation."""
    opened: tuple[int, str] | None = None
    for match in itertools.islice(_compiled(FENCE).finditer(text), MOST_MARKS):
        mark = match.group(1)
        if opened is None:
            opened = match.start(), mark
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and match.group().strip() == mark:
            yield opened[0], match.end()
            opened = None


def merged(spans: Sequence[Span]) -> list[Span]:
    """Spans that touch or follow each other line by line are one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def discussed(text: str) -> list[Span]:
    """Quotations of which the words before them say that they are examples, attacks, or somebody's words."""
    return [
        (start, end)
        for start, end in _spans(QUOTED, text)
        if DISCUSSED.search(text, max(0, start - DISCUSSION_CHARACTERS), start)
    ]


def unseen(text: str) -> Iterator[tuple[str, int, int]]:
    """What stands where a person does not look: comments, titles of links, texts of images, hidden elements."""
    yield from _comments(text)
    for pattern in UNSEEN:
        for match in itertools.islice(_compiled(pattern).finditer(text), MOST_MARKS):
            yield match.group(1), match.start(1), match.end(1)


def _comments(text: str) -> Iterator[tuple[str, int, int]]:
    start = text.find(COMMENT_START)
    while start >= 0:
        end = text.find(COMMENT_END, start + len(COMMENT_START))
        if end < 0:
            return
        yield text[start + len(COMMENT_START) : end], start + len(COMMENT_START), end
        start = text.find(COMMENT_START, end)


def within(spans: Sequence[Span], start: int, end: int) -> bool:
    """Whether a place lies wholly in one of these, which are in order and do not overlap."""
    at = bisect.bisect_right(spans, (start, sys.maxsize)) - 1
    return at >= 0 and spans[at][0] <= start and end <= spans[at][1]
