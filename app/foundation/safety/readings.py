"""Parts of a text (quoted, discussed, hidden) and other readings of it. Pure.

The readings: without markup, with spaced letters joined, with figures read as letters, with encoded data decoded.
"""

import base64
import bisect
import collections
import functools
import html
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import re2  # type: ignore[import-untyped] # the package has no types

from app.foundation.safety.rules import Change, NormalView, Pieces, Span, fold, linear, pieces, rewritten, vocabulary

_FENCE = r"(?m)^[ \t]{0,3}(`{3,}|~{3,})[^\n`]*$"
_INLINE = r"``[^`\n]+(?:`[^`\n]+)*``|`[^`\n]+`"
_BLOCK_QUOTE = r"(?m)^[ \t]{0,3}>[^\n]*$"
_QUOTED = r"\"[^\"\n]{4,}\"|“[^”\n]{4,}”|«[^»\n]{4,}»|„[^“”\n]{4,}[“”]|「[^」\n]{2,}」"
_DISCUSSED = re.compile(
    r"\b(?:phrases?|phrasing|such as|like|e\.g|for example|for instance|attack\w*|inject\w*|jailbreak\w*|adversar\w*|"
    r"payloads?|strings?|examples?|pattern\w*|detect\w*|block\w*|filter\w*|scan\w*|caught|refus\w*|red[- ]?team\w*|"
    r"malicious|tried|tries|attempt\w*|contain\w*|said|says|wrote|writes|reads|titled|called|quote[sd]?|known as|"
    r"приме\w*|фраз\w*|атак\w*|инъекц\w*|пыта\w*|beispiel\w*|angriff\w*|satz|satze|exemple\w*|attaque\w*|phrase\w*|"
    r"ejemplo\w*|ataque\w*|frase\w*)\b|例如|攻击|注入|短语|比如",
    re.IGNORECASE,
)
_DISCUSSION_CHARACTERS = 100
"""Characters before a quotation in which a word must say that it is discussed."""
_MOST_MARKS = 10_000
"""Most quotations of one kind that are read; the text after them counts as not quoted."""
_COMMENT_START, _COMMENT_END = "<!--", "-->"
_SOME_TAG, _SOME_LINK = r"<!--|<\w", r"\]\(|\]:"
_TITLES = (
    r"(?m)\]\([^()\s]*[ \t]+[\"'(]([^\"\n]{3,})[\"')]\)",
    r"(?m)^[ \t]{0,3}\[[^\]\n]+\]:[ \t]*\S+[ \t]+[\"'(]([^\n]{3,})[\"')]",
    r"!\[([^\]\n]{3,})\]\(",
)
"""Titles of inline links, titles of reference links, and alternative texts of images."""
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)([^<>]*)>")
_VOID_ELEMENTS = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905 - shorter than quoted words
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?![.\d])"
    r"|(?<![\w-])color\s*:\s*(?:white|#fff|transparent)",
    re.IGNORECASE,
)
_HIDING_ATTRIBUTE = re.compile(r"\shidden(?=[\s=/]|$)", re.IGNORECASE)
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'")


def _spans(pattern: str, text: str) -> Iterator[Span]:
    return (match.span() for match in itertools.islice(linear(pattern).finditer(text), _MOST_MARKS))


def quoted_as_data(text: str) -> list[Span]:
    """Returns the spans of closed code blocks, inline code and block quotes."""
    return merge_spans([*_fences(text), *_spans(_BLOCK_QUOTE, text), *_spans(_INLINE, text)])


def _fences(text: str) -> Iterator[Span]:
    """Yields closed code blocks; a fence without its closing one quotes nothing."""
    opened: tuple[int, str] | None = None
    for match in itertools.islice(linear(_FENCE).finditer(text), _MOST_MARKS):
        mark = match.group(1)
        if opened is None:
            opened = match.start(), mark
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]) and match.group().strip() == mark:
            yield opened[0], match.end()
            opened = None


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Sorts spans and joins those that touch or follow each other line by line."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def within(spans: Sequence[Span], start: int, end: int) -> bool:
    """Tells if one of these spans, which are in order and do not overlap, holds the whole stretch."""
    at = bisect.bisect_right(spans, (start, sys.maxsize)) - 1
    return at >= 0 and spans[at][0] <= start and end <= spans[at][1]


def quotation_spans(text: str) -> list[Span]:
    """Returns the quotations that follow words such as `example`, `attack` or `said`."""
    return [
        (start, end)
        for start, end in _spans(_QUOTED, text)
        if _DISCUSSED.search(text, max(0, start - _DISCUSSION_CHARACTERS), start)
    ]


def hidden_parts(text: str) -> Pieces | None:
    """Extracts comments and hidden elements; returns None if there are none."""
    return pieces([*_comments(text), *_hidden_elements(text)]) if _has(_SOME_TAG, text) else None


def titles(text: str) -> Pieces | None:
    """Extracts titles of links and texts of images, which readers may see; returns None if there are none."""
    if not _has(_SOME_LINK, text):
        return None
    found = (match for pattern in _TITLES for match in itertools.islice(linear(pattern).finditer(text), _MOST_MARKS))
    return pieces((match.group(1), match.span(1)) for match in found)


def _comments(text: str) -> Iterator[tuple[str, Span]]:
    """Yields HTML comments; one that is never closed hides the rest of the text."""
    start = text.find(_COMMENT_START)
    while start >= 0:
        first = start + len(_COMMENT_START)
        end = text.find(_COMMENT_END, first)
        last = len(text) if end < 0 else end
        yield text[first:last], (first, last)
        start = text.find(_COMMENT_START, last)


def _hidden_elements(text: str) -> Iterator[tuple[str, Span]]:
    """Yields the text of hidden elements without tags; one that is never closed lasts to the end."""
    name, depth, first = "", 0, 0
    for tag in _TAG.finditer(text):
        if not name and not tag[1] and _hides(tag):
            name, depth, first = tag[2].lower(), 1, tag.end()
        elif name and tag[2].lower() == name:
            depth += -1 if tag[1] else 1
            if not depth:
                yield _TAG.sub("", text[first : tag.start()]), (first, tag.start())
                name = ""
    if name:
        yield _TAG.sub("", text[first:]), (first, len(text))


def _hides(tag: re.Match[str]) -> bool:
    if tag[2].lower() in _VOID_ELEMENTS or tag[3].endswith("/"):
        return False
    return bool(_HIDING_STYLE.search(tag[3]) or _HIDING_ATTRIBUTE.search(_VALUE.sub("", tag[3])))


_OPENED = "\f"
"""Replaces an opening mark: a blank at which a sentence may begin."""
_SOME_MARK = r"[*_`~\[\]\\]|<[/!A-Za-z]|&[#A-Za-z]"
_MARK = re.compile(
    r"<!(?:[^<>]*)>|</?(?P<tag>[A-Za-z][\w-]*)(?:[\s/][^<>]*)?>"
    r"|&(?P<entity>#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});|\]\([^()\n]*\)|\\(?=[^\w\n])|(?<![^\W_])_+|_+(?![^\W_])|[*`~\[\]]+"
)
_BLOCK_TAG = re.compile(
    r"address|article|aside|blockquote|br|d[dlt]|div|footer|h[1-6r]|header|li|main|nav|[ou]l|p|pre|section|t(?:able|[dhr])",
    re.IGNORECASE,
)


def without_marks(text: str) -> NormalView | None:
    """Removes emphasis, code marks, links, tags, entities and escapes; returns None if there are none."""
    changes = list(_mark_removals(text)) if _has(_SOME_MARK, text) else []
    return rewritten(text, changes) if changes else None


def _mark_removals(text: str) -> Iterator[Change]:
    """Yields the marks; of adjacent ones, only the first can be an opening one."""
    last = -1
    for match in _MARK.finditer(text):
        start, end = match.span()
        yield start, end, _replacement(match, opens=start != last and not text[start - 1 : start].isalnum())
        last = end


def _replacement(match: re.Match[str], *, opens: bool) -> str:
    if match["entity"]:
        return _character(match[0])
    if _BLOCK_TAG.fullmatch(match["tag"] or ""):
        return "\n"
    return _OPENED if opens and not match[0].startswith(("]", "\\")) else ""


@functools.lru_cache(maxsize=4096)
def _character(entity: str) -> str:
    return fold(html.unescape(entity))


_SEPARATORS = r"\s.\-_*·•|/\\—–~+,;:"
_SOME_SPACED = rf"(?:^|[^\p{{L}}\p{{N}}])(?:\p{{L}}[{_SEPARATORS}]{{1,4}}){{4}}\p{{L}}(?:$|[^\p{{L}}\p{{N}}])"
_SPACED = re.compile(rf"(?<![^\W_])(?:[^\W\d_][{_SEPARATORS}]{{1,4}}){{4,}}[^\W\d_](?![^\W_])")
"""A sequence of letters with separators between them."""
_BETWEEN = re.compile(rf"[{_SEPARATORS}]+")


def join_spaced_letters(text: str) -> NormalView | None:
    """Joins the letters of each spaced run to words; returns None if there is no such run."""
    return _substitute(text, _SOME_SPACED, _SPACED, _join_run)


def _substitute(text: str, needed: str, pattern: re.Pattern[str], replace: Callable[[str], str]) -> NormalView | None:
    """Replaces each match; `needed` is found by RE2 in every text that has one."""
    changes = [(*match.span(), replace(match[0])) for match in pattern.finditer(text)] if _has(needed, text) else []
    return rewritten(text, changes) if changes else None


def _join_run(run: str) -> str:
    """Joins a run's letters; a word ends at a longer gap than usual, or at a blank if the usual gap is a mark."""
    gaps = collections.Counter(_BETWEEN.findall(run))
    ((usual, _),) = gaps.most_common(1)
    ends = {gap for gap in gaps if len(gap) > len(usual) or (gap.isspace() and not usual.isspace())}
    return _BETWEEN.sub(lambda gap: " " if gap[0] in ends else "", run)


_FIGURES = str.maketrans("01345789@$!", "oieastbgasi")
"""Letters that figures and signs replace. A 1 is an l if it is doubled, ends its word, or makes a word of the rules."""
_FOR_L = re.compile(r"1(?=1)|(?<=1)1|(?<=[A-Za-z])1(?![A-Za-z0-9@$!])")
_SOME_FIGURED = r"[A-Za-z][01345789@$!]+[A-Za-z]|(?:^|[^\w])[01345789@$!][A-Za-z]{2}|[A-Za-z]{2}[01345789@$](?:$|[^\w])"
_FIGURED = re.compile(
    r"(?<![\w@$!])(?=[01345789@$!]*[A-Za-z])(?=[A-Za-z]*[01345789@$!])[A-Za-z01345789@$!]+[A-Za-z01345789@$](?![\w@$])"
)
"""A word of letters and figures or signs; a sign at its end does not belong to it."""


def figures_as_letters(text: str) -> NormalView | None:
    """Reads figures and signs as letters in words that also have letters; returns None if there are none."""
    return _substitute(text, _SOME_FIGURED, _FIGURED, _spell)


def _spell(word: str) -> str:
    spelled = _FOR_L.sub("l", word).translate(_FIGURES)
    other = word.replace("1", "l").translate(_FIGURES)
    return other if other.lower() in vocabulary() else spelled


_SOME_CODE = r"[A-Za-z0-9+/_-]{20}|(?:(?:0x|\\x|\\u00|%|&#x)?[0-9a-fA-F]{2}[\s:,;]{0,2}){12}"
_DIGIT = r"[A-Za-z0-9+/_-]"
_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/=_-]){_DIGIT}{{20,}}(?:\r?\n{_DIGIT}{{20,}})*(?:\r?\n{_DIGIT}+)?={{0,2}}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x|\\u00|%|&#x)?[0-9a-fA-F]{2}[\s:,;]{0,2}){12,}(?![0-9A-Za-z])")
_QUARTET = 4
"""Base64 digits that encode whole bytes."""
_HEX_MARKS = re.compile(r"0x|\\x|\\u00|%|&#x|[\s:,;]")
_READABLE = re.compile(r"[^\ufffd\x00-\x08\x0e-\x1f\x7f]{12,}")
"""A stretch of decoded bytes that can be text; other data has an undecodable byte in every few."""


def decode_runs(text: str) -> Pieces | None:
    """Decodes Base64 and hexadecimal data; returns None if none of it is text."""
    if not _has(_SOME_CODE, text):
        return None
    runs = itertools.chain(_HEX.finditer(text), _BASE64.finditer(text))
    return pieces((part, run.span()) for run in runs for read in _decode_run(run) for part in _READABLE.findall(read))


def _decode_run(match: re.Match[str]) -> Iterator[str]:
    """Decodes a run; bytes that are no text become U+FFFD."""
    if match.re is _HEX:
        yield bytes.fromhex(_HEX_MARKS.sub("", match[0])).decode(errors="replace")
        return
    for run in _base64_parts(match[0].replace("-", "+").replace("_", "/")):
        digits = run[: len(run) - (len(run) % _QUARTET == 1)]
        yield base64.b64decode(digits + "=" * (-len(digits) % _QUARTET)).decode(errors="replace")


def _base64_parts(digits: str) -> Iterator[str]:
    """Joins lines up to one whose digits do not encode whole bytes: there a value ends."""
    held = ""
    for line in digits.rstrip("=").split():
        held += line
        if len(line) % _QUARTET:
            yield held
            held = ""
    yield held


_SOME = (_SOME_TAG, _SOME_LINK, _SOME_MARK, _SOME_SPACED, _SOME_FIGURED, _SOME_CODE)
"""Expressions that a text must match to have a part or another reading. Most texts match none."""


def _has(pattern: str, text: str) -> bool:
    """Tells if one of _SOME matches anywhere."""
    return pattern in _present(text)


@functools.lru_cache(maxsize=4)
def _present(text: str) -> frozenset[str]:
    """Searches for all of _SOME in one pass."""
    return frozenset(_SOME[place] for place in _some().Match(text) or ())


@functools.cache
def _some() -> Any:  # noqa: ANN401 - re2 has no types
    found = re2.Set.SearchSet()
    for pattern in _SOME:
        found.Add(pattern)
    found.Compile()
    return found
