"""Cutting and packing text by model tokens. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from semantic_text_splitter import TextSplitter

from app.text.sentences import sentences_of
from app.text.words import SPEAKS

LINE = re.compile(r"[^\n]*\n|[^\n]+")
OPAQUE = re.compile(r"https?://\S{1,2000}|[A-Za-z0-9+/=_-]{120,}")
"""Addresses, which stay, and runs that are hashes or encoded data, which nobody asks by."""
OPAQUE_SHOWN = 40
UNCUT_CHARACTERS = 20_000
"""A longer text is cut at line ends or blanks into such pieces first: the splitter's work outgrows its text."""


class Counter(Protocol):
    """Counts tokens, as `models.protocols.TokenCounter` does."""

    def count(self, text: str) -> int:
        """Returns the tokens of `text`."""
        ...


def says_something(text: str) -> bool:
    """Returns True where the text has a letter or a digit: bare punctuation says nothing."""
    return SPEAKS.search(text) is not None


def shortened(text: str) -> str:
    """Returns `text` with encoded data (Base64, hashes) cut to its beginning."""
    return OPAQUE.sub(lambda match: match[0] if _stays(match[0]) else f"{match[0][:OPAQUE_SHOWN]}…", text)


def _stays(run: str) -> bool:
    return run.startswith("http") or not says_something(run.replace("_", ""))


def lines_of(text: str) -> list[str]:
    """Returns the lines with their ends. Only line feeds end one; `str.splitlines` also cuts within a line."""
    return LINE.findall(text)


def packed(pieces: Sequence[str], counts: Sequence[int], room: int, separator: str) -> Iterator[str]:
    """Joins neighbouring pieces as long as they fit into `room` tokens; each piece fits by itself."""
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


def split_prose(text: str, room: int, counter: Counter) -> list[str]:
    """Cuts `text` into slices of at most `room` tokens: at paragraphs, sentences, words, and last within a word."""
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


RUN_TOKENS = 16
"""Cost of a run besides its tokens, in tokens: 2.4 ms on one core, where a token takes 0.15 ms."""


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yields positions in `lengths`, shortest first, in batches of at most `budget` padded tokens, or of one text.

    Each position comes exactly once, and the batches are the cheapest that there are: one costs RUN_TOKENS, and as
    much as if each of its texts were as long as its longest.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    end, batch_ends = len(order), []
    starts = _cheapest_starts([lengths[position] for position in order], budget)
    while end:
        batch_ends.append(end)
        end = starts[end - 1]
    for stop in reversed(batch_ends):
        yield order[starts[stop - 1] : stop]


def _cheapest_starts(ascending: Sequence[int], budget: int) -> list[int]:
    """Returns for each text the start of the batch that ends with it, where the texts up to it are cut most cheaply."""
    costs, starts = [0], []
    for last, longest in enumerate(ascending):
        first = max(0, min(last, last + 1 - budget // max(1, longest)))
        cost, start = min((costs[at] + (last + 1 - at) * longest, at) for at in range(first, last + 1))
        costs.append(cost + RUN_TOKENS)
        starts.append(start)
    return starts


PASSAGE_TOKENS = 200
"""Size of a passage, as `tokens_about` counts: 150 English words, and well within the model's 256 tokens."""
ASCII_TOKENS, OTHER_TOKENS = 0.22, 0.6
"""Tokens of a character, and those that each byte beyond its first adds: measured on English (0.21 a character) and
Russian (0.80), which the model's vocabulary spells out."""


def passages(text: str) -> list[str]:
    """Returns the text in groups of sentences of at most PASSAGE_TOKENS."""
    groups: list[list[str]] = []
    size = 0.0
    for piece in _pieces(text):
        cost = tokens_about(piece)
        if not groups or size + cost > PASSAGE_TOKENS:
            groups.append([])
            size = 0.0
        groups[-1].append(piece)
        size += cost
    return [" ".join(group) for group in groups]


def tokens_about(text: str) -> float:
    """Estimates how many tokens the model makes of a text."""
    return ASCII_TOKENS * len(text) + OTHER_TOKENS * (len(text.encode("utf-8", "surrogatepass")) - len(text))


def _pieces(text: str) -> Iterator[str]:
    """Yields sentences; one that is too long for a passage by its words, and a word that is too long by its letters."""
    for sentence in sentences_of(text) or [text.strip()]:
        if tokens_about(sentence) <= PASSAGE_TOKENS:
            yield sentence
            continue
        for word in sentence.split():
            yield from (word[at : at + PASSAGE_TOKENS] for at in range(0, len(word), PASSAGE_TOKENS))


def shares(counts: Sequence[int], budget: int) -> list[int]:
    """Returns how many passages of each text are compared, at least one, and at most `budget` together.

    Short texts are compared whole, and of each longer one as many passages as of the others.
    """
    most, left = 1, budget - len(counts)
    for level in range(1, max(counts, default=1)):
        left -= sum(count > level for count in counts)
        if left < 0:
            break
        most = level + 1
    return [min(count, most) for count in counts]


def spread(found: Sequence[str], count: int) -> list[str]:
    """Returns `count` of the passages, evenly spread over the text."""
    return [found[(2 * place + 1) * len(found) // (2 * count)] for place in range(count)]
