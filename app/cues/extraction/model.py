"""The learnt model: how likely a user's turn holds a cue, and of which kind. Its weights are data. Pure.

`python -m benchmarks.cues --write` fits them. Whether a turn holds a cue is told from its signs and its surroundings
alone: sentence vectors tell topics, and told people that the fit had not seen worse than chance (docs/cues.md). Which
kind it is, they help to tell.
"""

import functools
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.cues.cue import CUE_KINDS
from app.cues.extraction.features import names

Vector = NDArray[np.float64]
WEIGHTS, KIND_VECTORS = "weights.toml", "kinds.npz"


class Weights(NamedTuple):
    """The fitted model."""

    bias: float
    cue: Vector
    """Shape (features,)."""
    threshold: float
    """Probability from which on a turn is taken for a cue, 0 to 1."""
    weight_bias: float
    weight: Vector
    """Shape (features,): how grave a mistake is, from 0 (low) to 2 (high)."""
    weight_kinds: Vector
    """Shape (kinds,): the same for each kind."""
    kind_bias: Vector
    """Shape (kinds,), in the order of CUE_KINDS."""
    kinds: Vector
    """Shape (kinds, features)."""
    model_id: str
    """The embedding model whose vectors the following are for."""
    kind_vectors: Vector
    """Shape (kinds, dimension)."""
    mean: Vector
    """The mean vector, which stands for one that is missing or of another model."""


@functools.cache
def weights() -> Weights:
    """Reads the weights. A feature that the file does not name weighs nothing."""
    folder = files("app.cues.extraction")
    read = tomllib.loads(folder.joinpath(WEIGHTS).read_text(encoding="utf-8"))
    stored = np.load(BytesIO(folder.joinpath(KIND_VECTORS).read_bytes()))
    return Weights(
        bias=read["cue"]["bias"],
        cue=_row(read["cue"]["features"]),
        threshold=read["cue"]["threshold"],
        weight_bias=read["consequence"]["bias"],
        weight=_row(read["consequence"]["features"]),
        weight_kinds=np.array([read["consequence"]["kinds"][kind] for kind in CUE_KINDS], float),
        kind_bias=np.array([read["kinds"][kind]["bias"] for kind in CUE_KINDS], float),
        kinds=np.array([_row(read["kinds"][kind]["features"]) for kind in CUE_KINDS]),
        model_id=str(stored["model_id"]),
        kind_vectors=np.asarray(stored["weights"], float),
        mean=np.asarray(stored["mean"], float),
    )


def _row(named: Mapping[str, float]) -> Vector:
    return np.array([named.get(name, 0.0) for name in names()], float)


def probability(numbers: Vector) -> float:
    """Returns the probability that a turn with these features holds a cue."""
    fitted = weights()
    return float(1 / (1 + np.exp(-(fitted.bias + numbers @ fitted.cue))))


def gravity(numbers: Vector, kind: str) -> float:
    """Returns how grave the mistake is that a cue with these features is about: 0 if low, 1 if medium, 2 if high."""
    fitted = weights()
    return float(fitted.weight_bias + numbers @ fitted.weight + fitted.weight_kinds[CUE_KINDS.index(kind)])


def kinds(numbers: Vector, vector: NDArray[np.float32] | None) -> Mapping[str, float]:
    """Returns the probability of each kind for a turn that holds a cue; the vector is that of the turn's text."""
    fitted = weights()
    known = fitted.mean if vector is None or len(vector) != len(fitted.mean) else vector
    scores = fitted.kind_bias + fitted.kinds @ numbers + fitted.kind_vectors @ known
    parts = np.exp(scores - scores.max())
    return dict(zip(CUE_KINDS, (parts / parts.sum()).tolist(), strict=True))


def words_weigh(signs: frozenset[str]) -> float:
    """Returns how much the signs of a sentence speak for a cue."""
    return float(sum(weight for name, weight in zip(names(), weights().cue, strict=True) if name in signs))
