"""The weights of the ranking: numbers of weights.toml, each with its unit and its measurement."""

from collections.abc import Mapping
from datetime import date
from functools import cache

import msgspec

from app.foundation.text.data import read_toml


class Weight(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A number that the ranking uses, and where it comes from."""

    value: float
    unit: str
    does: str
    measured: str
    """The section of benchmarks/retrieval.md."""
    date: date
    """The day of the measurement."""
    brings: Mapping[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    """Points of recall@5, and @10 where it was measured, that are lost without it, by development set."""


@cache
def weights() -> Mapping[str, Mapping[str, Weight]]:
    """Returns the weights by part and name, like `blend` and `lexical`."""
    return read_toml("app.recall.retrieval.rank", "weights.toml", dict[str, dict[str, Weight]])


def values(part: str) -> Mapping[str, float]:
    """Returns the numbers of a part by name."""
    return {name: weight.value for name, weight in weights()[part].items()}
