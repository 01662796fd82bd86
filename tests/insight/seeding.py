"""Memories with made-up vectors: many of them in a moment, in topics that are known."""

import random
from collections.abc import Sequence
from uuid import UUID

import numpy as np

from app.foundation.models.protocols import Matrix
from app.storage.index import models, vectors
from app.storage.memories.memory import Kind, NewMemory
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

TOPICS = {
    "harbour": "the ship left its harbour with grain and the crane loaded every container before dawn",
    "orchard": "these apples and pears in the orchard ripen when a gardener prunes each branch in spring",
    "telescope": "an astronomer points the telescope at a distant galaxy and measures its spectrum",
    "violin": "a quartet with violin and cello rehearses the sonata while the composer listens",
}


def text_of(topic: str, number: int) -> str:
    """A text on a topic, unlike the others."""
    words = TOPICS[topic].split()
    random.Random(f"{topic}{number}").shuffle(words)  # noqa: S311 - words, no secrets
    return f"{' '.join(words)}. Entry {number} of the {topic} diary."


def vectors_of(topics: Sequence[str], *, noise: float = 0.03, seed: int = 1) -> Matrix:
    """Unit vectors near their topics' centres."""
    centres = np.random.default_rng(0).normal(size=(len(TOPICS), 384))
    chosen = centres[[list(TOPICS).index(topic) for topic in topics]]
    chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
    rows = chosen + np.random.default_rng(seed).normal(size=chosen.shape) * noise
    units: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


async def seed(
    services: Services,
    workspace: Workspace,
    count: int,
    *,
    first: int = 0,
    kind: Kind = "note",
    topics: Sequence[str] = tuple(TOPICS),
    matrix: Matrix | None = None,
) -> list[UUID]:
    """Stores so many memories with vectors; returns their ids, oldest first."""
    chosen = [topics[number % len(topics)] for number in range(first, first + count)]
    memories = [
        NewMemory(kind=kind, title=f"{topic} {number}", body=text_of(topic, number), tags=(topic,))
        for number, topic in enumerate(chosen, first)
    ]
    stored = await services.write_gate.remember(workspace, memories)
    ids = [memory_id for memory_id in stored.ids if memory_id is not None]
    assert len(ids) == count, stored.rejected
    await embed(services, workspace, ids, vectors_of(chosen, seed=first + 1) if matrix is None else matrix)
    return ids


async def embed(services: Services, workspace: Workspace, ids: Sequence[UUID], matrix: Matrix) -> None:
    """Give memories these vectors."""
    async with services.database.session(workspace) as session:
        model = await models.active_model(session)
        assert model is not None
        parts = [[vectors.PassageVector(literal)] for literal in vectors.as_literals(matrix)]
        await vectors.write(session, model, dict(zip(ids, parts, strict=True)))
