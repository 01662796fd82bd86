"""A seeded corpus: Zipf-like text in sources, vectors like those of real text, and queries that never come twice."""

import asyncio
from collections.abc import Iterator, Sequence
from uuid import UUID

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from app.foundation.db.database import Database
from app.foundation.db.session import LINK
from app.storage.index.indexing import STALE_AT_WRITES
from app.storage.index.service import build_indexes, lacks_an_index
from app.storage.memories.memory import GivenVector, NewMemory, SourceReference
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

VOCABULARY = 30_000
EXPONENT = 1.05
"""Of the Zipf distribution; English text has about 1."""
CHUNKS_A_SOURCE = 20
DIMENSION = 384
AREAS, TOPICS = 200, 5_000
SHARES = {"area": 0.2, "topic": 0.2, "source": 0.2, "own": 0.4}
"""Of a vector's variance: what it shares with those of its area, topic and source, and what is its own."""
FALL, COMMON = 0.8, 0.08
"""How the variance falls from one direction to the next (the i-th has i^-0.8 of the first's), and what all vectors have
in common. So 6,000 of them are like 5,182 texts of reports, conversations and encyclopaedias that the bundled model
embedded (in brackets) in the cosine of random pairs, 0.08 +- 0.11 (0.07 +- 0.11), and to the nearest, 0.71 (0.71), and
in their effective dimensions, 67 (80). Near by they are harder to tell apart: the twelfth has 0.62 (0.50), and there
are 37 dimensions by two nearest neighbours (8). All are turned by one random rotation, which keeps every cosine: the
numbers of a model's vector vary alike, and an index of their signs must not find most of the variance in a few."""
TERMS = 8
"""Words of a query."""
PORTION = 10_000
"""Memories that are made and held at once."""


class Corpus:
    """Text, vectors and queries from one seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = np.random.default_rng(seed)
        letters = list("etaoinshrdlucmfwypvbgkjqxz")
        self._words = [
            "".join(self._random.choice(letters, size=self._random.integers(3, 10))) for _ in range(VOCABULARY)
        ]
        weights = 1 / np.arange(1, VOCABULARY + 1) ** EXPONENT
        self._cumulative = np.cumsum(weights / weights.sum())
        self._cumulative /= self._cumulative[-1]
        deviations = np.arange(1, DIMENSION + 1) ** (-FALL / 2)
        self._deviations = deviations / np.linalg.norm(deviations)
        areas = self._spread(AREAS, "area")[self._random.integers(0, AREAS, TOPICS)]
        common = self._random.normal(size=DIMENSION)
        self._topics = common * np.sqrt(COMMON) / np.linalg.norm(common) + areas + self._spread(TOPICS, "topic")
        turned = np.linalg.qr(np.random.default_rng(seed).normal(size=(DIMENSION, DIMENSION))).Q
        self._rotation = turned.astype(np.float32)

    def memories(self, count: int, start: int = 0) -> Iterator[NewMemory]:
        """Chunks of 30 to 130 words, 20 a source, numbered from `start`."""
        for number in range(start, start + count):
            source = SourceReference(kind="report", uri=f"reports/{number // CHUNKS_A_SOURCE}.md")
            yield NewMemory(
                kind="chunk",
                title=f"Report {number // CHUNKS_A_SOURCE}",
                body=self.text(int(self._random.integers(30, 130))),
                source=source,
                ordinal=number % CHUNKS_A_SOURCE,
                tags=(f"t{number % 100}",),
            )

    def text(self, words: int) -> str:
        """So many words, frequent ones frequently."""
        places = self._cumulative.searchsorted(self._random.random(words), side="right")
        return " ".join(self._words[place] for place in places)

    def vectors(self, count: int) -> NDArray[np.float32]:
        """Unit vectors of texts, 20 a source, each source of one topic."""
        sources = -(-count // CHUNKS_A_SOURCE)
        topics = self._topics[self._random.integers(0, TOPICS, sources)] + self._spread(sources, "source")
        found = np.repeat(topics, CHUNKS_A_SOURCE, axis=0)[:count] + self._spread(count, "own")
        unit: NDArray[np.float32] = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
        return unit @ self._rotation

    def _spread(self, count: int, level: str) -> NDArray[np.float64]:
        deviations: NDArray[np.float64] = self._deviations * np.sqrt(SHARES[level])
        return self._random.normal(size=(count, DIMENSION)) * deviations

    def queries(self, count: int) -> list[str]:
        """Distinct queries."""
        return [f"{self.text(TERMS)} {number}" for number in range(count)]


async def fill(services: Services, corpus: Corpus, workspace: Workspace, count: int) -> None:
    """Store `count` memories with vectors, counted words and, where there are enough, a vector index."""
    for start in range(0, count, PORTION):
        size = min(PORTION, count - start)
        await store(services, workspace, list(corpus.memories(size, start)), corpus.vectors(size))
    await services.statistics.refresh_all(services.database.across)
    await until_indexed(services.database)
    await vacuum(services)


async def vacuum(services: Services) -> None:
    """What autovacuum does within a minute."""
    async with services.database.across(transaction=False) as session:
        await session.execute("VACUUM ANALYZE")


async def store(
    services: Services, workspace: Workspace, memories: Sequence[NewMemory], made: NDArray[np.float32]
) -> Sequence[UUID | None]:
    """Store memories whose vectors are ready, and count words as often as a worker would; their ids."""
    done = await services.write_gate.remember(workspace, with_vectors(services.provider.model_id, memories, made))
    await services.statistics.refresh_all(services.database.across, stale=STALE_AT_WRITES)
    return done.ids


def with_vectors(model: str, memories: Sequence[NewMemory], made: NDArray[np.float32]) -> list[NewMemory]:
    """Returns the memories, each with its ready vector."""
    return [
        structs.replace(memory, embedding=GivenVector(model=model, vector=vector.tobytes()))
        for memory, vector in zip(memories, made.astype("<f4"), strict=True)
    ]


async def until_indexed(database: Database) -> None:
    """Build what vector indexes are lacking, or wait for who builds them."""
    await build_indexes(database.across)
    while await lacks_an_index(database.across):
        await asyncio.sleep(0.1)
        await build_indexes(database.across)


async def until_linked(database: Database) -> None:
    """Wait until a worker has found all links."""
    async with database.across() as session:
        await session.enqueue(LINK)
    while True:
        async with database.across() as session:
            if not await session.value("SELECT count(*) FROM pending_links"):
                return
        await asyncio.sleep(0.2)
