"""The fitted models: how likely a turn of a person, or of an agent, holds a lasting lesson. Weights are data. Pure.

`python -m benchmarks.cues --write` fits them. They know the words of a lesson, its form and its surroundings, and no
sentence vectors: those tell topics, and told people that the fit had not seen worse than chance (docs/cues.md).
"""

import functools
import math
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple

WEIGHTS = "weights.toml"


class Model(NamedTuple):
    """A fitted logistic function."""

    bias: float
    weights: Mapping[str, float]
    told: float
    """Probability from which on a turn is a cue that may be told, 0 to 1."""
    candidate: float
    """Probability from which on it is a candidate for a person, 0 to 1."""

    def probability(self, features: Mapping[str, float]) -> float:
        """Returns the probability that a turn with these features holds a lesson; an unknown feature weighs nothing."""
        odds = self.bias + sum(self.weights.get(name, 0.0) * value for name, value in features.items())
        return 1 / (1 + math.exp(-odds))


@functools.cache
def models() -> Mapping[str, Model]:
    """Reads the models of a person's and of an agent's turns, by the author."""
    read = tomllib.loads(files("app.cues.extraction").joinpath(WEIGHTS).read_text(encoding="utf-8"))
    return {
        author: Model(bias=item["bias"], weights=item["features"], told=item["told"], candidate=item["candidate"])
        for author, item in read.items()
    }
