"""Cuts texts into passages, and embeds these."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from app.foundation.models.late import TokenCodes
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Window, embed_tokens
from app.foundation.text.passages import groups_within, overlapping, passages_of
from app.storage.index.indexing import PendingText
from app.storage.index.vectors import PassageVector, as_literals, embedded_text, packed_parts, packed_tokens

MOST_PASSAGES = 32
"""Vectors of one memory at most: about 30 kB of English. The limit bounds the size of a memory in the index."""
_OVERLAP = 40
"""Tokens that neighbouring passages share at most, so that a sentence at the cut stands whole in one of them."""
_PASSAGE_CHARACTERS = 1_000
"""Characters of an English passage."""


class PendingPassage(NamedTuple):
    """A passage that is still to be embedded."""

    text: str
    starts: int = 0
    ends: int | None = None
    parts: Sequence[tuple[int, str]] = ()
    """The first characters and the texts of the passages that answers show. Only a memory's first cut has them, and
    only if there are several: a single one has the memory's own vector."""
    title_ends: int = 0
    """Characters of the title with which the texts of a memory's first cut begin."""

    @property
    def embedded_texts(self) -> Sequence[str]:
        """Returns all texts of it that get a vector."""
        return [self.text, *(text for _, text in self.parts)]


Cuts: TypeAlias = Sequence[PendingPassage]
Text: TypeAlias = tuple[str, str]
"""The title and the body of a memory."""


async def cut(provider: EmbeddingProvider, texts: Sequence[Text]) -> list[Cuts]:
    """Returns the passages of each text: one, unless it is longer than the model's window.

    Raises:
        EmbeddingUnavailable: the model's tokenizer cannot be had.
    """
    window = await provider.window()
    return await asyncio.to_thread(
        lambda: [_with_parts(*pair) for pair in zip(cut_to(window, texts), texts, strict=True)]
    )


def _with_parts(cuts: Cuts, text: Text) -> Cuts:
    title, body = text
    first, found = cuts[0]._replace(title_ends=len(title)), passages_of(body)
    if len(found) < 2:  # noqa: PLR2004 - a single passage is the text
        return [first, *cuts[1:]]
    parts = [(part.start, embedded_text(title, part.of(body))) for part in found]
    return [first._replace(parts=parts), *cuts[1:]]


def cut_to(window: Window | None, texts: Sequence[Text]) -> list[Cuts]:
    """Returns the windows of each text, at most MOST_PASSAGES, or one if the window is not known; in this thread."""
    if window is None:
        return [[PendingPassage(embedded_text(*text))] for text in texts]
    whole = [embedded_text(*text) for text in texts]
    counts = window.counts(whole)
    return [
        [PendingPassage(read)] if count <= window.tokens else _passages(window, *text)
        for read, count, text in zip(whole, counts, texts, strict=True)
    ]


def _passages(window: Window, title: str, body: str) -> Cuts:
    """Returns the passages of a long text, each with the title above it; a title of half a window is one of its own."""
    taken = window.counter.count(title)
    first: Cuts = ()
    above, room = title, window.tokens - taken
    if taken > window.tokens // 2:
        first, above, room = [PendingPassage(title, 0, 0)], "", window.tokens
    found = overlapping(body, room, min(_OVERLAP, room // 4), window.counter)
    parts = (PendingPassage(embedded_text(above, body[at:end]), at, end) for at, end in found)
    return list(islice(chain(first, parts), MOST_PASSAGES))


def portion(batch: Sequence[PendingText], size: int) -> Sequence[PendingText]:
    """Returns the first texts that have about `size` passages together, or one text of more.

    A batch of long texts would take minutes, in which newer memories wait for their vectors.
    """
    sizes = (min(len(item.body) // _PASSAGE_CHARACTERS + 1, MOST_PASSAGES) for item in batch)
    return batch[next(groups_within(sizes, size), slice(0))]


async def embed_passages(provider: EmbeddingProvider, texts: Sequence[Cuts]) -> list[Sequence[PassageVector]]:
    """Returns the vectors of each text's passages; equal passages are embedded once.

    Raises:
        EmbeddingUnavailable: the provider gives no vectors.
    """
    unique = list(dict.fromkeys(text for cuts in texts for cut in cuts for text in cut.embedded_texts))
    vectors, tokens = await embed_tokens(provider, unique)
    places = {text: place for place, text in enumerate(unique)}
    windows = list(dict.fromkeys(cut.text for cuts in texts for cut in cuts))
    literals = dict(zip(windows, as_literals(vectors[[places[text] for text in windows]]), strict=True))
    return [
        [
            PassageVector(
                literals[cut.text],
                cut.starts,
                cut.ends,
                _parts(cut, vectors, places),
                None if number else _tokens(cut, tokens, places),
            )
            for number, cut in enumerate(cuts)
        ]
        for cuts in texts
    ]


def _parts(cut: PendingPassage, vectors: Matrix, places: Mapping[str, int]) -> bytes | None:
    if not cut.parts:
        return None
    return packed_parts([start for start, _ in cut.parts], vectors[[places[text] for _, text in cut.parts]])


def _tokens(first: PendingPassage, tokens: Sequence[TokenCodes | None], places: Mapping[str, int]) -> bytes | None:
    """Returns the codes of the words of a memory's passages, by its first cut; None where the model gives none.

    They are empty for a title that fills the first cut alone, above a single passage.
    """
    found = [tokens[places[text]] for _, text in first.parts or [(0, first.text)]]
    known = [item for item in found if item is not None]
    if not known or len(known) < len(found):
        return None
    return b"" if first.ends == 0 and not first.parts else packed_tokens(first.title_ends, known)


def groups(texts: Sequence[Cuts], size: int) -> Iterator[slice]:
    """Returns groups of neighbouring texts that together have at most `size` passages, or one text of more."""
    return groups_within((sum(len(cut.embedded_texts) for cut in cuts) for cuts in texts), size)
