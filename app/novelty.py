"""How much texts add beyond what is stored: by meaning where vectors are, by words where they are not."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from app.db.engine import Database
from app.embeddings.provider import EmbeddingProvider, Matrix
from app.errors import EmbeddingUnavailable, InvalidInput
from app.memories.admission import unstorable
from app.memories.wording import content_words, same_words, shingles
from app.retrieval.query import Query
from app.retrieval.recall import Hit
from app.retrieval.search import find

NEAREST = 5
"""Memories that a text is compared with."""
MOST_RESULTS = 100
LONGEST_RESULT = 20_000
"""Characters."""
QUERY_CHARACTERS = 2_000
KNOWN_SIMILARITY, UNRELATED_SIMILARITY = 0.95, 0.35
"""Cosine at which a text says what is stored, and at which it is about something else."""
DETAIL_SHARE = 0.75
"""Weight of new numbers and names against new meaning: the same vocabulary with other facts is near in meaning."""

REWORDED = 0.2
"""Share of a text's shingles that a memory lacks, from which on the text is not a piece of it."""

VECTOR, LEXICAL = "vector", "lexical"

NUMBER = re.compile(r"(\d+(?:[.,]\d+)*)\s?(%|‰|[^\W\d_]+)?")
NAME = re.compile(r"(?<![.!?]\s)(?<!^)(?<![\n\"“])\b[A-ZА-ЯЁÄÖÜ][\w-]+", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A memory that a text was compared with."""

    memory_id: UUID
    title: str
    similarity: float
    """1: it says the same; 0: it has nothing of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultNovelty:
    """How much one text adds."""

    novelty: float
    """0: it is stored already; 1: nothing of it is."""
    nearest: tuple[Nearest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Novelty:
    """How much texts add, each and all together."""

    novelty: float
    """The mean of the texts', each weighed by its length."""
    results: tuple[ResultNovelty, ...]
    path: str
    """VECTOR or LEXICAL: how they were compared."""
    degraded: str = ""
    """Why the vectors were not used."""


async def novelty(
    database: Database, provider: EmbeddingProvider, *, workspace: str, task: str, results: Sequence[str]
) -> Novelty:
    """How much each of these texts adds beyond what the workspace holds, 0 to 1, with the nearest memories.

    Raises:
        InvalidInput: no text, too many, or one that is empty or too long.
    """
    _check(task, results)
    found = [
        await find(
            database, provider, workspace=workspace, query=Query(text=_asked(text), k=NEAREST, purpose="novelty")
        )
        for text in results
    ]
    vectors, degraded = await _vectors(provider, results, [hit for finding in found for hit in finding.hits])
    scored = []
    for place, (text, finding) in enumerate(zip(results, found, strict=True)):
        scored.append(_by_words(text, finding.hits) if vectors is None else vectors.scored(place, text, finding.hits))
    return Novelty(
        novelty=_together(results, scored),
        results=tuple(scored),
        path=LEXICAL if vectors is None else VECTOR,
        degraded=degraded,
    )


def _asked(text: str) -> str:
    return text[:QUERY_CHARACTERS]


def _together(results: Sequence[str], scored: Sequence[ResultNovelty]) -> float:
    weights = [max(1, len(text.split())) for text in results]
    return sum(weight * item.novelty for weight, item in zip(weights, scored, strict=True)) / sum(weights)


def _check(task: str, results: Sequence[str]) -> None:
    if not 1 <= len(results) <= MOST_RESULTS:
        raise InvalidInput("results", f"1 to {MOST_RESULTS} texts are taken")
    for place, text in enumerate(results):
        if not text.strip() or len(text) > LONGEST_RESULT:
            raise InvalidInput(f"results[{place}]", f"has 1 to {LONGEST_RESULT:,} characters that say something")
    for reason in unstorable({"results": list(results), "task": task}):
        field, _, message = reason.partition(": ")
        raise InvalidInput(field, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vectors:
    """Unit vectors of the texts, and of the memories by id."""

    texts: Matrix
    memories: Mapping[UUID, np.ndarray[tuple[int], np.dtype[np.float32]]]

    def scored(self, place: int, text: str, hits: Sequence[Hit]) -> ResultNovelty:
        """One text against the memories nearest to it."""
        similarities = [float(self.texts[place] @ self.memories[hit.memory.memory_id]) for hit in hits]
        shares = [novelty_by_meaning(text, _text(hit), value) for hit, value in zip(hits, similarities, strict=True)]
        return _result(text, hits, shares)


async def _vectors(
    provider: EmbeddingProvider, results: Sequence[str], hits: Sequence[Hit]
) -> tuple[_Vectors | None, str]:
    if not provider.enabled:
        return None, "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop)"
    memories = {hit.memory.memory_id: _text(hit) for hit in hits}
    try:
        matrix = await provider.embed_documents([*results, *memories.values()])
    except EmbeddingUnavailable as error:
        return None, str(error)
    rows = dict(zip(memories, matrix[len(results) :], strict=True))
    return _Vectors(texts=matrix[: len(results)], memories=rows), ""


def _text(hit: Hit) -> str:
    return f"{hit.title}\n{hit.body}" if hit.title else hit.body


def _by_words(text: str, hits: Sequence[Hit]) -> ResultNovelty:
    texts = [_text(hit) for hit in hits]
    shares = [novelty_by_words(text, stored, texts) for stored in texts]
    return _result(text, hits, shares)


def _result(text: str, hits: Sequence[Hit], shares: Sequence[float]) -> ResultNovelty:
    nearest = sorted(
        (
            Nearest(memory_id=hit.memory.memory_id, title=hit.title, similarity=1 - share)
            for hit, share in zip(hits, shares, strict=True)
        ),
        key=lambda item: (-item.similarity, item.memory_id),
    )
    if any(same_words(text, hit.body) or same_words(text, _text(hit)) for hit in hits):
        return ResultNovelty(novelty=0.0, nearest=tuple(nearest))
    return ResultNovelty(novelty=min(shares, default=1.0), nearest=tuple(nearest))


def novelty_by_meaning(text: str, stored: str, similarity: float) -> float:
    """How much `text` adds to `stored`, 0 to 1: what it means, and which numbers and names are new. Pure.

    Two texts with one vocabulary are near in meaning whatever they state, so new details count by themselves.
    """
    span = KNOWN_SIMILARITY - UNRELATED_SIMILARITY
    meaning = min(1.0, max(0.0, (KNOWN_SIMILARITY - similarity) / span))
    return _unsaid(text, stored) * (1 - (1 - meaning) * (1 - DETAIL_SHARE * new_details(text, stored)))


def novelty_by_words(text: str, stored: str, background: Sequence[str]) -> float:
    """The same from words alone: the idf-weighted share of new content words, and new details apart. Pure."""
    words = content_words(text)
    known = content_words(stored)
    if not words:
        return 0.0
    weights = {word: _idf(word, background) for word in words}
    fresh = sum(weight for word, weight in weights.items() if word not in known)
    share = fresh / sum(weights.values())
    return _unsaid(text, stored) * (1 - (1 - share) * (1 - DETAIL_SHARE * new_details(text, stored)))


def _unsaid(text: str, stored: str) -> float:
    """0 where the whole text stands in `stored` word for word, as a sentence of a memory does; 1 from REWORDED on."""
    found = shingles(text)
    unsaid = 1 - len(found & shingles(stored)) / len(found) if found else 1.0
    return min(1.0, unsaid / REWORDED)


def _idf(word: str, background: Sequence[str]) -> float:
    """A word that most of the nearest memories share is the domain's vocabulary and tells little."""
    holders = sum(word in content_words(text) for text in background)
    return math.log1p((len(background) + 1) / (holders + 0.5))


def new_details(text: str, stored: str) -> float:
    """The share of a text's numbers (with their units) and names that `stored` does not have; 0 where it has none."""
    shares = [share for share in (_new_numbers(text, stored), _new_names(text, stored)) if share is not None]
    return max(shares, default=0.0)


def _new_numbers(text: str, stored: str) -> float | None:
    told, known = _numbers(text), _numbers(stored)
    return len(told - known) / len(told) if told else None


def _numbers(text: str) -> frozenset[tuple[str, str]]:
    return frozenset((value.replace(",", "."), unit.lower()[:3]) for value, unit in NUMBER.findall(text))


def _new_names(text: str, stored: str) -> float | None:
    names = {name.lower() for name in NAME.findall(text)}
    lowered = stored.lower()
    return sum(name not in lowered for name in names) / len(names) if names else None
