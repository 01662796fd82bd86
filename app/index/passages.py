"""Cuts a memory's text into passages that the embedding model reads whole, and embeds them."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import NamedTuple, TypeAlias

from app.index.indexing import PendingText
from app.index.vectors import Passage, as_literals, embedded_text
from app.models.protocols import EmbeddingProvider, Window
from app.text.pieces import overlapping

MOST_PASSAGES = 32
"""Vectors of one memory at most: about 30 kB of English. The limit bounds the size of a memory in the index."""
OVERLAP = 40
"""Tokens that neighbouring passages share at most, so that a sentence at the cut stands whole in one of them."""
PASSAGE_CHARACTERS = 1_000
"""Characters of an English passage."""


class Cut(NamedTuple):
    """A passage that is still to be embedded."""

    text: str
    starts: int = 0
    ends: int | None = None


Cuts: TypeAlias = Sequence[Cut]
Text: TypeAlias = tuple[str, str]
"""The title and the body of a memory."""


async def cut(provider: EmbeddingProvider, texts: Sequence[Text]) -> list[Cuts]:
    """Returns the passages of each text: one, unless it is longer than the model's window.

    Raises:
        EmbeddingUnavailable: the model's tokenizer cannot be had.
    """
    window = await provider.window()
    if window is None:
        return [[Cut(embedded_text(*text))] for text in texts]
    return await asyncio.to_thread(lambda: cut_to(window, texts))


def cut_to(window: Window, texts: Sequence[Text]) -> list[Cuts]:
    """Returns the passages of each text that fit into the window, at most MOST_PASSAGES; in this thread."""
    whole = [embedded_text(*text) for text in texts]
    counts = window.counts(whole)
    return [
        [Cut(read)] if count <= window.tokens else _passages(window, *text)
        for read, count, text in zip(whole, counts, texts, strict=True)
    ]


def _passages(window: Window, title: str, body: str) -> Cuts:
    """Returns the passages of a long text, each with the title above it; a title of half a window is one of its own."""
    taken = window.counter.count(title)
    first: Cuts = ()
    above, room = title, window.tokens - taken
    if taken > window.tokens // 2:
        first, above, room = [Cut(title, 0, 0)], "", window.tokens
    found = overlapping(body, room, min(OVERLAP, room // 4), window.counter)
    parts = (Cut(embedded_text(above, body[at:end]), at, end) for at, end in found)
    return list(islice(chain(first, parts), MOST_PASSAGES))


def portion(batch: Sequence[PendingText], size: int) -> Sequence[PendingText]:
    """Returns the first texts that have about `size` passages together, or one text of more.

    A batch of long texts would take minutes, in which newer memories wait for their vectors.
    """
    sizes = accumulate(min(len(item.body) // PASSAGE_CHARACTERS + 1, MOST_PASSAGES) for item in batch)
    return batch[: max(1, sum(total <= size for total in sizes))]


async def embedded(provider: EmbeddingProvider, texts: Sequence[Cuts]) -> list[Sequence[Passage]]:
    """Returns the vectors of each text's passages; equal passages are embedded once.

    Raises:
        EmbeddingUnavailable: the provider gives no vectors.
    """
    unique = list(dict.fromkeys(part.text for parts in texts for part in parts))
    literals = dict(zip(unique, as_literals(await provider.embed_documents(unique)), strict=True))
    return [[Passage(literals[part.text], part.starts, part.ends) for part in parts] for parts in texts]


def groups(texts: Sequence[Cuts], size: int) -> Iterator[slice]:
    """Yields neighbouring texts that together have at most `size` passages, or one text of more."""
    start, used = 0, 0
    for place, parts in enumerate(texts):
        if place > start and used + len(parts) > size:
            yield slice(start, place)
            start, used = place, 0
        used += len(parts)
    if start < len(texts):
        yield slice(start, len(texts))
