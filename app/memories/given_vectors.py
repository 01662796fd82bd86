"""Vectors that writers bring along. Pure: which are taken, and as what."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.embeddings.provider import Matrix
from app.embeddings.store import StoredModel
from app.memories.memory import GivenVector
from app.memories.screening import INVALID, Objection, Screened

NUMBER = np.dtype("<f4")


def checked(batch: Sequence[Screened], model: StoredModel | None) -> list[Screened]:
    """The batch, with an objection to each memory whose vector cannot be compared with those of `model`."""
    return [_checked(item, model) for item in batch]


def _checked(item: Screened, model: StoredModel | None) -> Screened:
    given = item.memory.embedding
    if given is None or item.objection is not None:
        return item
    reason = _reason(given, model)
    return item if reason is None else replace(item, objection=Objection(message=f"embedding.{reason}", code=INVALID))


def _reason(given: GivenVector, model: StoredModel | None) -> str | None:
    if model is None:
        return "model: no model's vectors are served, so none are taken; leave the embedding out"
    if given.model != model.name:
        return f"model: is not {model.name}, whose vectors are served; embed by that model, or leave the embedding out"
    if len(given.numbers) != model.dimension * NUMBER.itemsize:
        found = len(given.numbers) / NUMBER.itemsize
        return f"vector: has {found:g} numbers; {model.name} has {model.dimension}"
    numbers = np.frombuffer(given.numbers, NUMBER)
    if not np.isfinite(numbers).all() or not numbers.any():
        return "vector: has no direction: every number must be finite, and one at least not zero"
    return None


def matrix(given: Sequence[GivenVector]) -> Matrix:
    """Checked vectors as rows of unit length."""
    rows = np.stack([np.frombuffer(item.numbers, NUMBER) for item in given]).astype(np.float64)
    # Divided by the largest first, so that no square is beyond a number.
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)
