"""Cutting and packing text by model tokens. Pure."""

import re
from collections.abc import Iterator, Sequence

from semantic_text_splitter import TextSplitter

from app.embeddings.provider import TokenCounter
from app.memories.gate import SPEAKS

LINE = re.compile(r"[^\n]*\n|[^\n]+")
OPAQUE = re.compile(r"https?://\S{1,2000}|[A-Za-z0-9+/=_-]{120,}")
"""Addresses, which stay, and runs that are hashes or encoded data, which nobody asks by."""
OPAQUE_SHOWN = 40
UNCUT_CHARACTERS = 20_000
"""A longer text is cut at line ends or blanks into such pieces first: the splitter's work outgrows its text."""


def says_something(text: str) -> bool:
    """Whether there is a letter or digit in it: bare punctuation is no text."""
    return SPEAKS.search(text) is not None


def shortened(text: str) -> str:
    """`text` with encoded data (Base64, hashes) cut to its beginning."""
    return OPAQUE.sub(lambda match: match[0] if _stays(match[0]) else f"{match[0][:OPAQUE_SHOWN]}…", text)


def _stays(run: str) -> bool:
    return run.startswith("http") or not says_something(run.replace("_", ""))


def lines_of(text: str) -> list[str]:
    """Lines with their ends, by line feeds alone: `str.splitlines` also cuts at characters that stand within a line."""
    return LINE.findall(text)


def packed(pieces: Sequence[str], counts: Sequence[int], room: int, separator: str) -> Iterator[str]:
    """Neighbouring pieces joined as long as they fit into `room` tokens; each piece fits by itself."""
    group: list[str] = []
    used = 0
    for piece, count in zip(pieces, counts, strict=True):
        if group and used + count > room:
            yield separator.join(group)
            group, used = [], 0
        group.append(piece)
        used += count
    if group:
        yield separator.join(group)


def split_prose(text: str, room: int, counter: TokenCounter) -> list[str]:
    """Slices of `text` of at most `room` tokens, cut at paragraphs, sentences, words, and only then within a word."""
    splitter = TextSplitter.from_callback(counter.count, room)
    return [chunk for part in _parts(text) for chunk in splitter.chunks(part)]


def _parts(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > UNCUT_CHARACTERS:
        end = start + UNCUT_CHARACTERS
        cut = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
        end = cut + 1 if cut > start else end
        yield text[start:end]
        start = end
    yield text[start:]
