"""Fits the function that tells if a store answers a request, with each tree left out in turn.

A request whose answer would not be shown is left out of the fit: to be silent on it is right, and so is to answer.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped] # the package has no types
from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped] # the package has no types

from app.foundation.models.tokens import BundledTokenCounter
from app.recall.context.blocks import gather_blocks, section_of
from app.recall.retrieval.rank.presets import DEFAULT, PRESETS, Signs, Threshold
from app.recall.retrieval.recall import Query
from benchmarks.figures import Figure, report
from benchmarks.flows import BLOCKS, BUDGET, SETS, judged, rows_of
from benchmarks.stage import stage, workspace_of

ELSEWHERE, THEIR_WEIGHT = 20, 0.1
"""Requests of other sets that each store is asked, and the weight of one: what is about something else is easily told
from what is near and has no answer, which counts in full."""


class Asked(NamedTuple):
    """A request with what speaks for an answer."""

    tree: str
    signs: Signs
    answered: bool
    """True if the tree has an answer."""
    shown: bool
    """True if a history shows it rightly."""
    elsewhere: bool
    """True if the request is of another set."""


Vector = NDArray[np.float64]
OPEN = replace(DEFAULT, name="open", threshold=replace(DEFAULT.threshold or Threshold(), likely=0.0))
"""The ranking whose histories are never silent."""


async def asked(trees: Sequence[Path], kept: Path) -> list[Asked]:
    """Asks each tree its requests of the first stage, and some of other sets."""
    found: list[Asked] = []
    counter = BundledTokenCounter()
    PRESETS[OPEN.name] = OPEN
    async with stage(kept / "before") as services:
        for tree in trees:
            workspace = await workspace_of(services, f"flows-{tree.name}")
            others = [row for other in trees if other.parent != tree.parent for row in rows_of(other)]
            others = random.Random(tree.name).sample([row for row in others if not row.get("empty")], ELSEWHERE)
            own = [row for row in rows_of(tree) if row.get("stage", "before") == "before"]
            for row in (*own, *others):
                query = Query(text=row["query"], k=BLOCKS, agent=row.get("agent"), preset=OPEN.name)
                finding = await services.retrieval.find(workspace, query, suspects=False, passages=True)
                if finding.signs is not None:
                    elsewhere = row in others
                    answered = not elsewhere and not row.get("empty")
                    blocks = gather_blocks(finding.hits, k=BLOCKS, budget=BUDGET, counter=counter)
                    shown = answered and judged(row, section_of(blocks)).is_right(row)
                    found.append(Asked(tree.name, finding.signs, answered, shown, elsewhere))
    return found


def fitted(items: Sequence[Asked]) -> tuple[Vector, float]:
    """Returns the coefficients and the intercept; requests with a right answer and without one weigh the same."""
    items = [item for item in items if item.shown or not item.answered]
    signs, answered = np.array([item.signs for item in items]), np.array([item.answered for item in items])
    weights = np.array([THEIR_WEIGHT if item.elsewhere else 1.0 for item in items])
    for part in (answered, ~answered):
        weights[part] *= len(items) / 2 / weights[part].sum()
    spread = signs.std(axis=0) + 1e-9
    model = LogisticRegression(max_iter=2_000).fit(signs / spread, answered, sample_weight=weights)
    return model.coef_[0] / spread, float(model.intercept_[0])


def left_out(items: Sequence[Asked]) -> Vector:
    """Returns the probability of each request by a fit that has not seen its tree."""
    found = np.zeros(len(items))
    for tree in {item.tree for item in items}:
        weights, intercept = fitted([item for item in items if item.tree != tree])
        for place, item in enumerate(items):
            if item.tree == tree:
                found[place] = 1 / (1 + np.exp(-(weights @ np.array(item.signs) + intercept)))
    return found


def figures(items: Sequence[Asked]) -> list[Figure]:
    """Returns how well left-out requests are told apart, and what the threshold in use makes of them."""
    values, least = left_out(items), DEFAULT.threshold.likely if DEFAULT.threshold else 0.0
    answered, shown, elsewhere = (np.array([item[place] for item in items]) for place in (2, 3, 4))
    silent, judged_by = values < least, shown | (~answered & ~elsewhere)
    parts = {
        "with an answer that is shown": shown,
        "with another answer": answered & ~shown,
        "without one": ~answered & ~elsewhere,
        "from other sets": elsewhere,
    }
    own = ~elsewhere
    return [
        Figure(name="AUC over the trees' own requests", value=roc_auc_score(answered[own], values[own])),
        Figure(name="AUC without those not shown", value=roc_auc_score(shown[judged_by], values[judged_by])),
        *(Figure(name=f"silent, {name}, of {part.sum()}", value=silent[part].mean()) for name, part in parts.items()),
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Fits, prints the weights, and reports; returns nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, required=True, help="the folder that `benchmarks.flows --kept` has filled")
    parser.add_argument("--data", type=Path, nargs="*", default=SETS, help="folders of trees with questions.jsonl")
    given = parser.parse_args(arguments)
    trees = [file.parent for folder in given.data for file in sorted(folder.glob("*/questions.jsonl"))]
    if not trees:
        print("there are no report trees: nothing is fitted", file=sys.stderr)
        return []
    items = asyncio.run(asked(trees, given.kept))
    weights, intercept = fitted(items)
    print(Signs(*weights.round(2).tolist()), round(intercept, 2))
    found = figures(items)
    report("gates", found)
    return found


if __name__ == "__main__":
    main()
