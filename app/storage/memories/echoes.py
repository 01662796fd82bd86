"""Finds echoes: parts of a run's text that repeat the memories it was given. An echo counts as a use of the memory."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import structlog

from app.errors import EmbeddingUnavailable
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.text.passages import (
    Piece,
    is_short,
    line_pieces,
    lines,
    lines_left,
    paragraphs_outside_frame,
    sentence_pieces,
    sentences_left,
)
from app.foundation.text.words import SHORTEST_REWORDED, adds_nothing, measures, resemblance, shingles
from app.foundation.values import frozen
from app.storage.index import vectors
from app.storage.index.models import active_model
from app.storage.memories import changes
from app.storage.memories.gate import ECHO
from app.storage.memories.memory import Given, Objection, Screened
from app.storage.memories.write import RunTraces, traces_of
from app.storage.tenants.workspace import Workspace

_ECHO_SHARE = 0.75
"""Least share of a text's shingles that one given memory has if the text repeats it."""
_NEAR_SHARE = 0.6
"""Least Jaccard index of the shingles of two observations of one task that are near-duplicates."""
_ECHO_SIMILARITY = 0.92
"""Least cosine at which a text without a new word repeats a given memory. Reordered sentences have 0.94 to 0.99;
sentences that contradict each other by one word have the same."""
_LONGEST_REWORDED = 150
"""Most words of a text that is compared by its embedding: the embedding of a longer text covers only its beginning."""
_MOST_DOUBTFUL = 200
"""Texts of one output that are embedded to find echoes; further texts are kept."""

logger = structlog.get_logger()


def echo_of(text: str, given: Iterable[Given]) -> UUID | None:
    """Returns the given memory that holds most of the text's shingles, if nothing in the text is new."""
    found = shingles(text)
    if not found:
        return None
    shares = [(len(found & item.shingles) / len(found), item) for item in given]
    share, best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or share < _ECHO_SHARE:
        return None
    # All shingles are equal, but a sign or a unit may differ.
    repeats = measures(text) <= measures(best.text) if share == 1 else adds_nothing(text, best.text)
    return best.memory_id if repeats else None


def _may_be_reworded(text: str) -> bool:
    """Returns whether the text has a length at which embeddings find an echo in other words."""
    return SHORTEST_REWORDED <= len(text.split()) <= _LONGEST_REWORDED


def echo_by_meaning(text: str, nearest: Given, similarity: float) -> bool:
    """Returns whether `text` repeats the nearest given memory in other words."""
    return similarity >= _ECHO_SIMILARITY and adds_nothing(text, nearest.text)


def says_no_more(text: str, known: str) -> bool:
    """Returns whether `text` is a near-duplicate of `known` and has no new number, name, negation or other word."""
    return resemblance(shingles(text), shingles(known)) >= _NEAR_SHARE and adds_nothing(text, known)


class Residual(NamedTuple):
    """A text without its echoes."""

    text: str
    """The residual text; "" if the whole text, or each of its pieces, repeats a memory."""
    repeats: frozenset[UUID] = frozenset()
    """The given memories that it repeats, wholly or in part."""


class _Way(NamedTuple):
    """A way to split a text, and to join its residual pieces."""

    apart: Callable[[str], list[Piece]]
    together: Callable[[Sequence[Piece], Sequence[str]], str]


_WAYS = (_Way(line_pieces, lines_left), _Way(sentence_pieces, sentences_left))


def _together(way: _Way, text: str, several: Sequence[Piece], left: Sequence[Residual]) -> Residual:
    repeats = _all_repeats(left)
    if not repeats:
        return Residual(text, repeats)
    if not any(item.text for item in left):
        return Residual("", repeats)
    kept = [piece.said if is_short(piece.said) else item.text for piece, item in zip(several, left, strict=True)]
    return Residual(way.together(several, kept), repeats)


def _all_repeats(found: Sequence[Residual]) -> frozenset[UUID]:
    return frozenset[UUID]().union(*(item.repeats for item in found))


def _doubtful(texts: Sequence[str], found: Sequence[UUID | None], given: Sequence[Given]) -> list[int]:
    """Returns the positions of texts without a new word: only their embedding tells whether they are echoes."""
    unknown = (place for place, memory_id in enumerate(found) if memory_id is None and _may_be_reworded(texts[place]))
    repeating = (place for place in unknown if any(adds_nothing(texts[place], item.text) for item in given))
    return list(islice(repeating, _MOST_DOUBTFUL))


def _objection(repeats: Sequence[UUID]) -> Objection:
    names = ", ".join(map(str, repeats))
    message = f"body: repeats memory {names}, which this run was given; it counts as a use of it"
    return Objection(message=message, code=ECHO, details=tuple({"memory_id": str(item)} for item in repeats))


def without(parts: Sequence[str], found: Sequence[Residual]) -> str:
    """Returns an output without its echoes and without the frame lines of a history section."""
    left = [item.text if item.repeats else part for part, item in zip(parts, found, strict=True)]
    kept = paragraphs_outside_frame([part for part, item in zip(left, found, strict=True) if part or not item.repeats])
    if any(item.repeats for item in found) and not any(lines(part) for part in kept):
        return ""
    return "\n\n".join(kept)


@frozen
class Echoes:
    """Finds what repeats the memories that runs were given."""

    database: Database
    provider: EmbeddingProvider | None = None

    async def note(self, workspace: Workspace, batch: Sequence[Screened], runs: RunTraces | None) -> Sequence[Screened]:
        """Returns the batch, with an objection to each memory that only repeats memories its run was given.

        A repeated memory counts as used, even if the text also says something new. Such a text is stored whole.
        """
        places: dict[str, list[int]] = defaultdict(list)
        for place, item in enumerate(batch):
            # Messages are kept word for word.
            if item.memory.run_id and item.objection is None and item.memory.kind != "message":
                places[item.memory.run_id].append(place)
        if not places:
            return batch
        async with self.database.session(workspace, transaction=False) as session:
            given = await changes.given_to(session, places)
        noted = list(batch)
        for run_id, memories in given.items():
            found = await self.residuals(workspace, memories, [batch[place].memory.body for place in places[run_id]])
            for place, residual in zip(places[run_id], found, strict=True):
                if not residual.text:
                    noted[place] = replace(batch[place], objection=_objection(sorted(residual.repeats)))
            async with self.database.session(workspace) as session:
                await traces_of(runs).note_uses(session, run_id, _all_repeats(found))
        return noted

    async def residuals(
        self, workspace: Workspace, given: Sequence[Given], texts: Sequence[str], ways: Sequence[_Way] = _WAYS
    ) -> Sequence[Residual]:
        """Returns each text without its echoes.

        They are searched for in the whole text, and in its pieces by each of the ways: its lines, their sentences.
        """
        if not given:
            return [Residual(text) for text in texts]
        wholes = await self._find_repeated(workspace, given, texts)
        found = [
            Residual(text) if memory_id is None else Residual("", frozenset({memory_id}))
            for text, memory_id in zip(texts, wholes, strict=True)
        ]
        if not ways:
            return found
        way, *further = ways
        cut = {place: way.apart(texts[place]) for place, memory_id in enumerate(wholes) if memory_id is None}
        said = [piece.said for several in cut.values() for piece in several if piece.said]
        of_pieces = iter(await self.residuals(workspace, given, said, further) if said else ())
        for place, several in cut.items():
            left = [next(of_pieces) if piece.said else Residual("") for piece in several]
            found[place] = _together(way, texts[place], several, left)
        return found

    async def _find_repeated(
        self, workspace: Workspace, given: Sequence[Given], texts: Sequence[str]
    ) -> list[UUID | None]:
        """Returns, for each text, the given memory that it repeats by words or by meaning."""
        found = await asyncio.to_thread(lambda: [echo_of(text, given) for text in texts])
        doubtful = await asyncio.to_thread(_doubtful, texts, found, given)
        nearest = await self._nearest(workspace, given, [texts[place] for place in doubtful])
        known = {item.memory_id: item for item in given}
        for place, (memory_id, similarity) in zip(doubtful, nearest, strict=False):
            if memory_id is not None and echo_by_meaning(texts[place], known[memory_id], similarity):
                found[place] = memory_id
        return found

    async def _nearest(
        self, workspace: Workspace, given: Sequence[Given], texts: Sequence[str]
    ) -> list[tuple[UUID | None, float]]:
        """Returns, for each text, the given memory nearest in meaning, with its cosine; returns [] without vectors."""
        provider = self.provider
        if provider is None or not provider.enabled or not texts:
            return []
        try:
            literals = vectors.as_literals(await provider.embed_documents(texts))
        except EmbeddingUnavailable as error:
            logger.warning("echoes are told by words alone", reason=str(error))
            return []
        async with self.database.session(workspace, transaction=False) as session:
            model = await active_model(session)
            if model is None or (model.name, model.dimension) != (provider.model_id, provider.dimension):
                return []
            return await vectors.nearest_of(session, model, [item.memory_id for item in given], literals)
