"""Other ways to read a text: without its Markdown and HTML, with letters that stand apart joined, and with figures that
stand for letters read as these. Pure."""

import base64
import collections
import functools
import html
import re
from collections.abc import Iterator

from app.safety.linear import has
from app.safety.normal import Change, Pieces, View, folded, pieces, rewritten
from app.safety.rules import vocabulary

OPENED = "\f"
"""Read where a mark opens: a blank, at which a sentence may begin."""
SOME_MARK = r"[*_`~\[\]\\]|<[/!A-Za-z]|&[#A-Za-z]"
MARK = re.compile(
    r"<!(?:[^<>]*)>|</?(?P<tag>[A-Za-z][\w-]*)(?:[\s/][^<>]*)?>"
    r"|&(?P<entity>#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});|\]\([^()\n]*\)|\\(?=[^\w\n])|(?<![^\W_])_+|_+(?![^\W_])|[*`~\[\]]+"
)
BLOCK_TAG = re.compile(
    r"address|article|aside|blockquote|br|d[dlt]|div|footer|h[1-6r]|header|li|main|nav|[ou]l|p|pre|section|t(?:able|[dhr])",
    re.IGNORECASE,
)
SEPARATORS = r"\s.\-_*·•|/\\—–~+,;:"
SOME_SPACED = rf"(?:^|[^\p{{L}}\p{{N}}])(?:\p{{L}}[{SEPARATORS}]{{1,4}}){{4}}\p{{L}}(?:$|[^\p{{L}}\p{{N}}])"
SPACED = re.compile(rf"(?<![^\W_])(?:[^\W\d_][{SEPARATORS}]{{1,4}}){{4,}}[^\W\d_](?![^\W_])")
"""Letters with something between each two of them."""
BETWEEN = re.compile(rf"[{SEPARATORS}]+")
FIGURES = str.maketrans("01345789@$!", "oieastbgasi")
"""The letters that figures and signs are written for. A 1 is an l where it is doubled or ends its word, and where the
rules know the word so."""
FOR_L = re.compile(r"1(?=1)|(?<=1)1|(?<=[A-Za-z])1(?![A-Za-z0-9@$!])")
SOME_FIGURED = r"[A-Za-z][01345789@$!]+[A-Za-z]|(?:^|[^\w])[01345789@$!][A-Za-z]{2}|[A-Za-z]{2}[01345789@$](?:$|[^\w])"
FIGURED = re.compile(
    r"(?<![\w@$!])(?=[01345789@$!]*[A-Za-z])(?=[A-Za-z]*[01345789@$!])[A-Za-z01345789@$!]+[A-Za-z01345789@$](?![\w@$])"
)
"""Words of letters and of what stands for letters; a sign at the end of a word is none."""


def without_marks(text: str) -> View | None:
    """Without emphasis, code marks, links, tags, entities and escapes; None where there are none."""
    if not has(SOME_MARK, text):
        return None
    changes = list(_unmarked(text))
    return rewritten(text, changes) if changes else None


def _unmarked(text: str) -> Iterator[Change]:
    """Of marks that follow each other the first says whether something opens."""
    last = -1
    for match in MARK.finditer(text):
        start, end = match.span()
        yield start, end, _instead(match, opens=start != last and not text[start - 1 : start].isalnum())
        last = end


def _instead(match: re.Match[str], *, opens: bool) -> str:
    if match["entity"]:
        return _character(match[0])
    if BLOCK_TAG.fullmatch(match["tag"] or ""):
        return "\n"
    return OPENED if opens and not match[0].startswith(("]", "\\")) else ""


@functools.lru_cache(maxsize=4096)
def _character(entity: str) -> str:
    return folded(html.unescape(entity))


def joined(text: str) -> View | None:
    """With each run of spaced letters as words; None where there is none."""
    if not has(SOME_SPACED, text):
        return None
    changes = [(run.start(), run.end(), _closed(run[0])) for run in SPACED.finditer(text)]
    return rewritten(text, changes) if changes else None


def figured(text: str) -> View | None:
    """With letters for the figures and signs in words that have letters too; None where there is none."""
    if not has(SOME_FIGURED, text):
        return None
    changes = [(word.start(), word.end(), _spelled(word[0])) for word in FIGURED.finditer(text)]
    return rewritten(text, changes) if changes else None


def _spelled(word: str) -> str:
    spelled = FOR_L.sub("l", word).translate(FIGURES)
    other = word.replace("1", "l").translate(FIGURES)
    return other if other.lower() in vocabulary() else spelled


def _closed(run: str) -> str:
    """Its letters; a word ends where more stands between them than mostly, or a blank where mostly a mark does."""
    gaps = collections.Counter(BETWEEN.findall(run))
    ((usual, _),) = gaps.most_common(1)
    ends = {gap for gap in gaps if len(gap) > len(usual) or (gap.isspace() and not usual.isspace())}
    return BETWEEN.sub(lambda gap: " " if gap[0] in ends else "", run) if ends else BETWEEN.sub("", run)


SOME_CODE = r"[A-Za-z0-9+/_-]{20}|(?:(?:0x|\\x|\\u00|%|&#x)?[0-9a-fA-F]{2}[\s:,;]{0,2}){12}"
DIGIT = r"[A-Za-z0-9+/_-]"
BASE64 = re.compile(rf"(?<![A-Za-z0-9+/=_-]){DIGIT}{{20,}}(?:\r?\n{DIGIT}{{20,}})*(?:\r?\n{DIGIT}+)?={{0,2}}")
HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x|\\u00|%|&#x)?[0-9a-fA-F]{2}[\s:,;]{0,2}){12,}(?![0-9A-Za-z])")
QUARTET = 4
"""Digits of Base64 that spell whole bytes."""
HEX_MARKS = re.compile(r"0x|\\x|\\u00|%|&#x|[\s:,;]")
READABLE = re.compile(r"[^\ufffd\x00-\x08\x0e-\x1f\x7f]{12,}")
"""A stretch that can be text: what else comes out of digits has a strange character in every few."""


def decoded(text: str) -> Pieces | None:
    """What the runs of digits spell; None where none spells text."""
    if not has(SOME_CODE, text):
        return None
    return pieces(
        (stretch, match.span()) for match in _runs(text) for run in _decoded(match) for stretch in READABLE.findall(run)
    )


def _runs(text: str) -> Iterator[re.Match[str]]:
    yield from HEX.finditer(text)
    yield from BASE64.finditer(text)


def _decoded(match: re.Match[str]) -> Iterator[str]:
    """What is no text becomes a character that no text has."""
    if match.re is HEX:
        digits = HEX_MARKS.sub("", match[0])
        yield bytes.fromhex(digits).decode(errors="replace")
        return
    for run in _lines(match[0].replace("-", "+").replace("_", "/")):
        digits = run[: len(run) - (len(run) % QUARTET == 1)]
        yield base64.b64decode(digits + "=" * (-len(digits) % QUARTET)).decode(errors="replace")


def _lines(digits: str) -> Iterator[str]:
    """Lines that were broken where a decoder may go on are one."""
    held = ""
    for line in digits.rstrip("=").split():
        held += line
        if len(line) % QUARTET:
            yield held
            held = ""
    yield held
