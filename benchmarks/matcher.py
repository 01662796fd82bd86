"""Fits the weights of the matcher to labelled pairs of plan and cue, and judges them on projects that were left out.

Every pair counts once: a plan and a cue that does not apply to it are a silent pair, from whatever project the cue is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped] # the package has no types
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped] # as above

from app.foundation.models.protocols import EmbeddingProvider, adapted_vectors
from app.recall.cues import render, store
from app.recall.cues.arbitrate import MOST_OF_SECTION, RIGHT, threshold
from app.recall.cues.cue import CONSEQUENCES, Cue
from app.recall.cues.known import CueIndex, FittedWeights, IndexedCue, PairWeights, fitted_weights
from app.recall.cues.match import PlannedAct, find_matches
from app.recall.cues.ways import does_right, naming, read_lesson, read_plan
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.plans import Case, Labelled, filled

WEIGHTS = Path(__file__).parents[1] / "app" / "recall" / "cues" / "weights.toml"
RIDGE = 1.0
"""Weight of the squared weights in the loss, of features of unit variance."""
FEATURES = tuple(name for name in PairWeights._fields if name != "bias")
MEANING = tuple(name for name in FEATURES if name != "adapted")
"""Features of a cue that the adapted model has not read."""
ALONE = ("acts", "words", "covered", "rules_out")
"""Features of a cue without vectors."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The features of the plans of a set with each of its cues."""

    features: Numbers
    """Shape (plans, cues, features)."""
    added: Numbers
    """The log-odds that no weight is fitted to: of names, and of plans that do it right."""
    right: NDArray[np.bool_]
    groups: Sequence[str]
    cases: Sequence[Case]
    projects: NDArray[np.str_]
    """The project of each cue."""

    @property
    def planned(self) -> NDArray[np.str_]:
        """The project of each plan."""
        return np.array([case.project for case in self.cases])

    def without(self, project: str) -> "Pairs":
        """Returns the pairs of other projects."""
        plans, cues = self.planned != project, self.projects != project
        return replace(
            self,
            features=self.features[np.ix_(plans, cues)],
            added=self.added[np.ix_(plans, cues)],
            right=self.right[np.ix_(plans, cues)],
            groups=[group for group, kept in zip(self.groups, cues, strict=True) if kept],
            cases=[case for case, kept in zip(self.cases, plans, strict=True) if kept],
            projects=self.projects[cues],
        )


class Unadapted:
    """Another provider without its adapted model."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the provider has
        if name == "embed_adapted":
            raise AttributeError(name)
        return getattr(self._provider, name)


async def measured(services: Services, name: str, data: Labelled, kind: str = "adapted") -> Pairs:
    """Returns the features of a set's plans and cues, as the matcher finds them, with the weights of one kind."""
    if kind != "adapted":
        services = replace(services, provider=cast("EmbeddingProvider", Unadapted(services.provider)))
    workspace, ids = await filled(services, name, data.cues)
    # A text that is stored already keeps its id: the cue has the groups of both.
    groups = dict(zip(ids, data.groups, strict=True))
    projects = dict(zip(ids, data.projects, strict=True))
    index = await services.cues.conflicts.indexes.of(workspace)
    # A cue may have taken an earlier one's place.
    holding = index.holding_at(datetime.now(UTC), past=False)
    known = [item for item, holds in zip(index.known, holding, strict=True) if holds]
    order = [str(item.cue_id) for item in known]
    texts = [case.plan for case in data.cases]
    vectors = await services.provider.embed_documents(texts)
    adapted = await adapted_vectors(services.provider, texts)
    plans = [
        PlannedAct(
            text,
            datetime.now(UTC),
            vector=None if kind == "alone" else vectors[place],
            adapted=None if adapted is None else adapted[place],
        )
        for place, text in enumerate(texts)
    ]
    cues = await _read(services, workspace, [item.cue_id for item in known])
    return Pairs(
        features=np.stack([_features(index, known, plan, kind) for plan in plans]),
        added=np.array([[_added(cue, text) for cue in cues] for text in texts]),
        right=np.array([[groups[cue] in case.groups for cue in order] for case in data.cases]),
        groups=[groups[cue] for cue in order],
        cases=data.cases,
        projects=np.array([projects[cue] for cue in order]),
    )


async def _read(services: Services, workspace: Workspace, ids: Sequence[UUID]) -> list[Cue]:
    async with services.database.session(workspace, transaction=False) as session:
        found = await store.read(session, list(ids))
    return [found[cue_id] for cue_id in ids]


def _added(cue: Cue, plan: str) -> float:
    named = naming(read_lesson(cue.lesson, cue.trigger), read_plan(plan))
    return named - RIGHT * does_right(cue, plan, render.way_of(cue))


def _features(index: CueIndex, known: Sequence[IndexedCue], plan: PlannedAct, kind: str) -> Numbers:
    weights: PairWeights = getattr(fitted_weights(), kind)
    found = {item.cue_id: item for item in find_matches(index, plan, most=len(index.known))}
    rows = [found[item.cue_id].parts for item in known]
    return np.array([[_feature(row, weights, name) for name in FEATURES] for row in rows])


def _feature(parts: Mapping[str, float], weights: PairWeights, name: str) -> float:
    weight = getattr(weights, name)
    return parts.get(name, 0.0) / weight if weight else 0.0


def fitted(sets: Sequence[Pairs], names: Sequence[str] = FEATURES, shares: Sequence[float] = ()) -> PairWeights:
    """Returns the weights that fit these sets best; `shares` says how much a pair of each set counts."""
    places = [FEATURES.index(name) for name in names]
    rows = np.vstack([item.features[..., places].reshape(-1, len(places)) for item in sets])
    right = np.concatenate([item.right.ravel() for item in sets])
    counts = np.concatenate(
        [np.full(item.right.size, share) for item, share in zip(sets, shares or [1.0] * len(sets), strict=True)]
    )
    scaler = StandardScaler().fit(rows)
    found = LogisticRegression(C=1 / RIDGE, max_iter=1_000).fit(scaler.transform(rows), right, sample_weight=counts)
    weights = found.coef_[0] / scaler.scale_
    bias = float(found.intercept_[0] - weights @ scaler.mean_)
    return PairWeights(bias=round(bias, 2), **{"acts": 0.0, "words": 0.0}
        | {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)})  # fmt: skip


def scores(item: Pairs, weights: PairWeights) -> Numbers:
    """Returns the probability of each pair."""
    odds = item.features @ np.array([getattr(weights, name) for name in FEATURES]) + weights.bias + item.added
    found: Numbers = 1 / (1 + np.exp(-odds))
    return found


def left_out(item: Pairs, others: Sequence[Pairs] = (), shares: Sequence[float] = ()) -> Numbers:
    """Returns the probability of each pair by a fit to the pairs of other projects than the plan's."""
    found = np.zeros(item.right.shape)
    for project in sorted(set(item.planned)):
        plans = item.planned == project
        weights = fitted([item.without(project), *others], shares=[1.0, *shares])
        found[plans] = scores(item, weights)[plans]
    return found


def figures_of(
    item: Pairs, probabilities: Numbers, *, consequence: float = CONSEQUENCES["medium"]
) -> Iterator[tuple[str, float]]:
    """Yields how plans are answered and how silence is kept, if all cues have this consequence."""
    told = [_told(item, row, consequence) for row in probabilities]
    right = [[item.groups[at] in case.groups for at in found] for case, found in zip(item.cases, told, strict=True)]
    return kept(item.cases, right)


def ranks(item: Pairs, probabilities: Numbers) -> Iterator[tuple[str, float]]:
    """Yields how often a right cue is the likeliest, whether it is told or not, and among the two likeliest."""
    best = np.take_along_axis(item.right, np.argsort(-probabilities, axis=1), axis=1)[item.right.any(axis=1)]
    if len(best):
        yield "right cue likeliest", float(best[:, 0].mean())
        yield "right cue among the two likeliest", float(best[:, :2].any(axis=1).mean())


def kept(cases: Sequence[Case], right: Sequence[Sequence[bool]]) -> Iterator[tuple[str, float]]:
    """Yields the figures of plans, whose told cues are right or not."""
    firing = [row for case, row in zip(cases, right, strict=True) if not case.role]
    if firing:
        yield "plans answered", float(np.mean([any(row) for row in firing]))
        yield "first right", float(np.mean([row[:1] == [True] for row in firing]))
        yield "precision of what fired", sum(map(sum, right)) / max(1, sum(map(len, right)))
    for role in sorted({case.role for case in cases} - {""}):
        silent = [not row for case, row in zip(cases, right, strict=True) if case.role == role]
        yield f"kept silent, {role}", float(np.mean(silent))


def _told(item: Pairs, row: Numbers, consequence: float) -> list[int]:
    """Returns the cues that a plan is told, as `app.recall.cues.arbitrate` chooses them, one of a group."""
    told: dict[str, int] = {}
    for at in np.argsort(-row).tolist():
        if row[at] < threshold(consequence, len(told)) or len(told) == MOST_OF_SECTION:
            break
        told.setdefault(item.groups[at], at)
    return list(told.values())


def written(found: FittedWeights, sets: Mapping[str, Labelled], path: Path = WEIGHTS) -> None:
    """Writes the weights with their provenance."""
    given = ", ".join(f"{name} ({len(data.cases)} plans, {len(data.cues)} cues)" for name, data in sets.items())
    lines = [
        "# The weights of the matcher of plans and cues (app/recall/cues/match.py has their meaning).",
        "# Fitted by `python -m benchmarks.activation --fit` to:",
        f"# {given}.",
    ]
    for name, weights in found._asdict().items():
        lines += ["", f"[{name}]", *(f"{field} = {value}" for field, value in weights._asdict().items() if value)]
    path.write_text("\n".join(lines) + "\n")
    fitted_weights.cache_clear()
