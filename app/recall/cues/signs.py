"""The data of the rules: each language's expressions, compiled, and the fitted weights of a turn's features."""

import functools
import math
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from app.foundation.text.data import read_toml

STATED = "stated"
OPENING = "open_"
"""Prefix of a sign that is looked for at the beginning of a text only."""
PACKAGE = "app.recall.cues.extraction.languages"
LONGEST = 3_000
"""Characters of a text that are read: what a person says to an agent is shorter."""


def signs_of(text: str, table: str) -> frozenset[str]:
    """Returns the names of the signs of a table that a text has."""
    low = text[:LONGEST].lower().replace("’", "'")
    return frozenset(name for name, pattern in patterns(table).items() if pattern.search(low))


@functools.cache
def patterns(table: str) -> Mapping[str, re.Pattern[str]]:
    """Reads the expressions of a table in all languages; a language is added by adding its file."""
    found: dict[str, list[str]] = {}
    for path in sorted(files(PACKAGE).iterdir(), key=lambda item: item.name):
        if path.name.endswith(".toml"):
            for name, expressions in read_toml(PACKAGE, path.name, dict[str, dict[str, list[str]]])[table].items():
                found.setdefault(name, []).extend(expressions)
    starts = {name: r"^\W*" if name.startswith(OPENING) else r"(?<!\w)" for name in found}
    return {name: re.compile(f"{starts[name]}(?:{'|'.join(own)})(?!\\w)") for name, own in found.items()}


class TurnModel(NamedTuple):
    """A fitted logistic function."""

    bias: float
    weights: Mapping[str, float]
    shown: float
    """Probability from which on a turn is a cue that may be shown, 0 to 1."""
    candidate: float
    """Probability from which on it is a candidate for a person, 0 to 1."""

    def probability(self, features: Mapping[str, float]) -> float:
        """Returns the probability that a turn with these features holds a lesson; an unknown feature weighs nothing."""
        odds = self.bias + sum(self.weights.get(name, 0.0) * value for name, value in features.items())
        return 1 / (1 + math.exp(-odds))


@functools.cache
def models() -> Mapping[str, TurnModel]:
    """Reads the models of a person's and of an agent's turns, by the author."""
    read = read_toml("app.recall.cues.extraction", "weights.toml", dict[str, dict[str, Any]])
    return {
        author: TurnModel(bias=item["bias"], weights=item["features"], shown=item["shown"], candidate=item["candidate"])
        for author, item in read.items()
    }
