"""Other ways to read a text: without its Markdown and HTML, and with letters that stand apart joined. Pure."""

import functools
import html
import re
from collections.abc import Iterator

from app.injection.linear import linear
from app.injection.normal import folded
from app.injection.view import Change, View, rewritten

OPENED = "\f"
"""Read where a mark opens: a blank, at which a sentence may begin."""
SOME_MARK = r"[*_`~\[\]\\]|<[/!A-Za-z]|&[#A-Za-z]"
MARK = re.compile(
    r"<!(?:[^<>]*)>|</?(?P<tag>[A-Za-z][\w-]*)(?:[\s/][^<>]*)?>|&(?P<entity>#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});"
    r"|\]\([^()\n]*\)|\\(?=[^\w\n])|(?<![^\W_])_+|_+(?![^\W_])|[*`~\[\]]+"
)
BLOCKS = frozenset(
    "address article aside blockquote br dd div dl dt footer h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table"
    " td th tr ul".split()
)
SEPARATORS = r"\s.\-_*·•|/\\—–~+,;:"
SOME_SPACED = rf"(?:^|[^\p{{L}}\p{{N}}])(?:\p{{L}}[{SEPARATORS}]{{1,4}}){{4}}\p{{L}}(?:$|[^\p{{L}}\p{{N}}])"
SPACED = re.compile(rf"(?<![^\W_])(?:[^\W\d_][{SEPARATORS}]{{1,4}}){{4,}}[^\W\d_](?![^\W_])")
"""Letters with something between each two of them."""
BETWEEN = re.compile(rf"[{SEPARATORS}]+")


def without_marks(text: str) -> View | None:
    """Without emphasis, code marks, links, tags, entities and escapes; None where there are none."""
    if not linear(SOME_MARK).search(text):
        return None
    changes = [(match.start(), match.end(), _instead(match)) for match in MARK.finditer(text)]
    return rewritten(text, changes) if changes else None


def _instead(match: re.Match[str]) -> str:
    if match["entity"]:
        return _character(match[0])
    if (match["tag"] or "").lower() in BLOCKS:
        return "\n"
    before = match.string[match.start() - 1 : match.start()]
    opens = not before.isalnum() and not match[0].startswith(("]", "\\"))
    return OPENED if opens else ""


@functools.lru_cache(maxsize=4096)
def _character(entity: str) -> str:
    return folded(html.unescape(entity))


def joined(text: str) -> View | None:
    """With each run of spaced letters as words; None where there is none."""
    if not linear(SOME_SPACED).search(text):
        return None
    changes = [change for run in SPACED.finditer(text) for change in _closed(run)]
    return rewritten(text, changes) if changes else None


def _closed(run: re.Match[str]) -> Iterator[Change]:
    """What stands between two letters goes; where there is more of it than elsewhere, or a blank among marks, a word ends."""
    gaps = list(BETWEEN.finditer(run[0]))
    narrow = min(len(gap[0]) for gap in gaps)
    marked = not all(gap[0].isspace() for gap in gaps)
    for gap in gaps:
        wide = len(gap[0]) > narrow or (marked and gap[0].isspace())
        yield run.start() + gap.start(), run.start() + gap.end(), " " if wide else ""
