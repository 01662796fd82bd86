"""Where in a text something stands: quoted as data, discussed, or in a place that nobody sees. Pure."""

import bisect
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.safety.linear import has, linear

Span = tuple[int, int]

FENCE = r"(?m)^[ \t]{0,3}(`{3,}|~{3,})[^\n`]*$"
INLINE = r"``[^`\n]+(?:`[^`\n]+)*``|`[^`\n]+`"
QUOTE = r"(?m)^[ \t]{0,3}>[^\n]*$"
QUOTED = r"\"[^\"\n]{4,}\"|“[^”\n]{4,}”|«[^»\n]{4,}»|„[^“”\n]{4,}[“”]|「[^」\n]{2,}」"
DISCUSSED = re.compile(
    r"\b(?:phrases?|phrasing|such as|like|e\.g|for example|for instance|attack\w*|inject\w*|jailbreak\w*|adversar\w*|"
    r"payloads?|strings?|examples?|pattern\w*|detect\w*|block\w*|filter\w*|scan\w*|caught|refus\w*|red[- ]?team\w*|"
    r"malicious|tried|tries|attempt\w*|contain\w*|said|says|wrote|writes|reads|titled|called|quote[sd]?|known as|"
    r"приме\w*|фраз\w*|атак\w*|инъекц\w*|пыта\w*|beispiel\w*|angriff\w*|satz|satze|exemple\w*|attaque\w*|phrase\w*|"
    r"ejemplo\w*|ataque\w*|frase\w*)\b|例如|攻击|注入|短语|比如",
    re.IGNORECASE,
)
DISCUSSION_CHARACTERS = 100
"""Before a quotation, in which a word must say that it is discussed."""
MOST_MARKS = 10_000
"""Quotations of one kind that are looked at; what has more is no document, and what comes after counts as said."""
COMMENT_START, COMMENT_END = "<!--", "-->"
SOME_UNSEEN = r"<!--|\]\(|\]:|<\w"
TITLES = (
    r"(?m)\]\([^()\s]*[ \t]+[\"'(]([^\"\n]{3,})[\"')]\)",
    r"(?m)^[ \t]{0,3}\[[^\]\n]+\]:[ \t]*\S+[ \t]+[\"'(]([^\n]{3,})[\"')]",
    r"!\[([^\]\n]{3,})\]\(",
)
"""Of links, in their place and by reference; and texts of images."""
TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)([^<>]*)>")
VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
"""Elements that hold nothing."""
HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?![.\d])"
    r"|(?<![\w-])color\s*:\s*(?:white|#fff|transparent)",
    re.IGNORECASE,
)
HIDING_ATTRIBUTE = re.compile(r"\shidden(?=[\s=/]|$)", re.IGNORECASE)
VALUE = re.compile(r"\"[^\"]*\"|'[^']*'")


@dataclass(frozen=True, slots=True)
class Unseen:
    """What stands where a person does not look."""

    text: str
    start: int
    end: int
    title: bool = False
    """A text of an image or a title of a link, which a person may see, and which describes."""


def _spans(pattern: str, text: str) -> Iterator[Span]:
    for match in itertools.islice(linear(pattern).finditer(text), MOST_MARKS):
        yield match.start(), match.end()


def quoted_as_data(text: str) -> list[Span]:
    """Code blocks that are closed, inline code, and block quotes."""
    return merged([*_fences(text), *_spans(QUOTE, text), *_spans(INLINE, text)])


def _fences(text: str) -> Iterator[Span]:
    """From an opening fence to its own closing one; one that is never closed is no quotation."""
    opened: tuple[int, str] | None = None
    for match in itertools.islice(linear(FENCE).finditer(text), MOST_MARKS):
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


def unseen(text: str) -> Iterator[Unseen]:
    """What stands where a person does not look: comments, titles of links, texts of images, hidden elements."""
    if not has(SOME_UNSEEN, text):
        return
    yield from _comments(text)
    yield from _hidden_elements(text)
    for pattern in TITLES:
        for match in itertools.islice(linear(pattern).finditer(text), MOST_MARKS):
            yield Unseen(match.group(1), match.start(1), match.end(1), title=True)


def _comments(text: str) -> Iterator[Unseen]:
    """One that is never closed hides all that follows."""
    start = text.find(COMMENT_START)
    while start >= 0:
        first = start + len(COMMENT_START)
        end = text.find(COMMENT_END, first)
        last = len(text) if end < 0 else end
        yield Unseen(text[first:last], first, last)
        start = text.find(COMMENT_START, last)


def _hidden_elements(text: str) -> Iterator[Unseen]:
    """From a tag that hides to the one that closes it, or to the end; what stands between, its tags left out."""
    name, depth, first = "", 0, 0
    for tag in TAG.finditer(text):
        if not name and not tag[1] and _hides(tag):
            name, depth, first = tag[2].lower(), 1, tag.end()
        elif name and tag[2].lower() == name:
            depth += -1 if tag[1] else 1
            if not depth:
                yield _element(text, first, tag.start())
                name = ""
    if name:
        yield _element(text, first, len(text))


def _hides(tag: re.Match[str]) -> bool:
    if tag[2].lower() in VOID or tag[3].endswith("/"):
        return False
    return bool(HIDING_STYLE.search(tag[3]) or HIDING_ATTRIBUTE.search(VALUE.sub("", tag[3])))


def _element(text: str, start: int, end: int) -> Unseen:
    return Unseen(TAG.sub("", text[start:end]), start, end)


def within(spans: Sequence[Span], start: int, end: int) -> bool:
    """Whether a place lies wholly in one of these, which are in order and do not overlap."""
    at = bisect.bisect_right(spans, (start, sys.maxsize)) - 1
    return at >= 0 and spans[at][0] <= start and end <= spans[at][1]
