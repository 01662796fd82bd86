"""Fits the weights of the matcher to labelled plans, and judges them on sets that the fit has not seen.

Rank and score share their weights, so there are three: of the meaning, of the acts and of shared words. The loss adds
how surprising the right cue is among all cues (the rank), and how often a near miss scores above a plan (the score).
"""

import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped] # the package has no types

from app.cues.cue import FORMS
from app.cues.index import index_of
from app.cues.known import CueIndex, Learnt, learnt
from app.cues.match import Match, Plan, matched
from app.wiring import Services
from benchmarks.plans import Labelled, filled

WEIGHTS = Path(__file__).parents[1] / "app" / "cues" / "weights.toml"
SEPARATION = 1.0
"""Weight of telling plans from near misses beside finding the right cue."""
RIDGE = 0.001
"""Weight of the squared weights in the loss."""
FIRST = 18
"""Cues that 400 tokens hold."""
START = (8.0, 0.5, -8.0)

Numbers = NDArray[np.float64]


class Measured(NamedTuple):
    """The features of the plans of a set, and which cues are right for them."""

    features: Numbers
    """Shape (plans, cues, 3): mean cosine, likeness of the acts, shared words."""
    right: NDArray[np.bool_]
    fires: NDArray[np.bool_]


async def measured(services: Services, sets: Mapping[str, Labelled]) -> dict[str, Measured]:
    """Returns the features of each set's plans and all cues, stored together."""
    cues = [cue for data in sets.values() for cue in data.cues]
    groups = [f"{name}/{group}" for name, data in sets.items() for group in data.groups]
    workspace, ids = await filled(services, "fitted", cues)
    group_of = dict(zip(ids, groups, strict=True))
    index = await index_of(services.database, services.provider, workspace)
    order = [str(item.cue_id) for item in index.known]
    found = {}
    for name, data in sets.items():
        vectors = await services.provider.embed_documents([case.plan for case in data.cases])
        plans = [Plan(case.plan, (), vector) for case, vector in zip(data.cases, vectors, strict=True)]
        right = [[group_of[cue] == f"{name}/{case.group}" for cue in order] for case in data.cases]
        found[name] = Measured(
            np.stack([_features(index, plan) for plan in plans]),
            np.array(right),
            np.array([case.fires for case in data.cases]),
        )
    return found


def _features(index: CueIndex, plan: Plan) -> Numbers:
    found = {item.cue_id: item for item in matched(index, plan, moment=datetime.now(UTC), most=len(index.known))}
    return np.array([_row(found[item.cue_id]) if item.cue_id in found else [0.0] * 3 for item in index.known])


def _row(match: Match) -> list[float]:
    weights = learnt()
    meaning = sum(match.parts.get(form, 0.0) for form in FORMS) / weights.meaning
    return [meaning, match.parts.get("acts", 0.0) / weights.acts, match.same_words / weights.words]


def fitted(sets: Sequence[Measured]) -> Learnt:
    """Returns the weights that fit these sets best."""
    best = minimize(lambda weights: _loss(weights, sets), START, method="L-BFGS-B").x
    middle = statistics.median(float(score) for item in sets for score in _best(item, item.features @ best)[item.fires])
    meaning, acts, words = (round(float(weight), 2) for weight in best)
    return Learnt(meaning=meaning, acts=acts, words=words, middle=round(middle, 2))


def judged(item: Measured, weights: Learnt) -> tuple[float, float]:
    """Returns the share of plans whose right cue is among the first, and the area under the curve of the score."""
    ranks = item.features @ np.array([weights.meaning, weights.acts, 0.0])
    places = (ranks > _best(item, ranks)[:, None]).sum(axis=1)
    scores = _best(item, item.features @ np.array(weights[:3]))
    apart = scores[item.fires][:, None] - scores[~item.fires][None]
    return float((places[item.fires] < FIRST).mean()), float((apart > 0).mean())


def _loss(weights: Numbers, sets: Sequence[Measured]) -> float:
    """Returns the mean over all plans: a set counts by its plans."""
    total, plans = RIDGE * float(weights @ weights), sum(int(item.fires.sum()) for item in sets)
    for item in sets:
        ranks = item.features[item.fires] @ (weights * [1, 1, 0])
        surprise = _soft(ranks, np.ones_like(ranks, bool)) - _soft(ranks, item.right[item.fires])
        scores = _soft(item.features @ weights, item.right)
        apart = scores[item.fires][:, None] - scores[~item.fires][None]
        mean = float(surprise.mean()) + SEPARATION * float(np.logaddexp(0, -apart).mean())
        total += mean * int(item.fires.sum()) / plans
    return total


def _soft(scores: Numbers, chosen: NDArray[np.bool_]) -> Numbers:
    """Returns the logarithm of the sum of the exponentials of the chosen scores of each row."""
    found: Numbers = np.logaddexp.reduce(np.where(chosen, scores, -np.inf), axis=1)
    return found


def _best(item: Measured, scores: Numbers) -> Numbers:
    found: Numbers = np.where(item.right, scores, -np.inf).max(axis=1)
    return found


def written(weights: Learnt, sets: Mapping[str, Labelled], path: Path = WEIGHTS) -> None:
    """Writes the weights with their provenance."""
    given = ", ".join(f"{name} ({len(data.cases)} plans, {len(data.cues)} cues)" for name, data in sets.items())
    lines = [
        "# The weights of the matcher of plans and cues (app/cues/match.py has their meaning).",
        "# Fitted by `python -m benchmarks.activation --fit --data FOLDER…` to:",
        f"# {given}.",
        "",
        "[weights]",
        *(f"{name} = {value}" for name, value in weights._asdict().items()),
    ]
    path.write_text("\n".join(lines) + "\n")
