"""Measures which of two passages on one thing are left out, on pairs that a person has read."""

import json
from collections.abc import Sequence
from pathlib import Path

from app.recall.retrieval.rank.corrections import ERRATUM, Dated, likely_corrections
from benchmarks.figures import Figure, report

PAIRS = Path(__file__).with_suffix(".jsonl")
"""Pairs of flows-dev (CC0), of which `corrects` says whether the later passage takes back a sentence of the earlier."""


def measure() -> list[Figure]:
    """Returns how many pairs are suppressed, and which share of these rightly."""
    pairs = [json.loads(line) for line in PAIRS.read_text().splitlines()]
    found = []
    for pair in pairs:
        old = Dated(pair["earlier"], pair["heading"], None, "old", "case", 1.0, None)
        is_erratum = ERRATUM.search(pair["new"].replace("_", " ")) is not None
        new = Dated(pair["later"], "", None, "new", "case", 1.0, None, is_erratum=is_erratum, intake=1)
        found.append(any(item.spans for item in likely_corrections([old, new]) if item.old == 0))
    right = [pair["corrects"] for pair, is_wrong in zip(pairs, found, strict=True) if is_wrong]
    known = sum(pair["corrects"] for pair in pairs)
    return [
        Figure(name="pairs", value=len(pairs)),
        Figure(name="suppressed", value=len(right)),
        Figure(name="… rightly, as a share", value=sum(right) / len(right) if right else 0.0, at_least=0.9),
        Figure(name="… of those to be suppressed", value=sum(right) / known),
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:  # noqa: ARG001 - all benchmarks take arguments
    """Measures and reports."""
    figures = measure()
    report("corrections", figures)
    return figures


if __name__ == "__main__":
    main()
