"""Other ways to read a text: without its Markdown and HTML, with letters that stand apart joined, and with figures that
stand for letters read as these. Pure."""

import collections
import functools
import html
import re
from collections.abc import Iterator

from app.injection.linear import has
from app.injection.normal import folded
from app.injection.rules import vocabulary
from app.injection.view import Change, View, rewritten

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
