"""Estimates what memories do to later runs, from runs and the slots of their recalls.

The service runs it as a process: scikit-learn takes 1 s to import and 100 MB, and an estimate holds a core for seconds,
which answers to agents need. A ledger comes on standard input, and the effects leave on standard output as MessagePack.

1. A ridge regression predicts the outcome from task type, agent, time, the number of memories recalled (hard tasks may
   recall more) and which these were. Each run is predicted by a model that did not see it (cross-fitting:
   Chernozhukov et al. 2018, Econometrics Journal 21).
2. A memory that was withheld at random gets an experimental estimate: its runs with and without it, weighted by the
   inverse of the logged propensities and augmented by the predictions (AIPW: Robins, Rotnitzky & Zhao 1994, JASA 89;
   with weights normalised to 1: Hájek 1971). It holds even if the regression is wrong, since propensities are logged.
   The next candidate that a slot was given to is a term of the regression, so that it stands for nothing else. Runs
   that got it, and those to which chance denied it after the same draw, give a second estimate of its effect.
3. A memory's coefficient in the regression is the observational estimate. Where there are experiments, it is added
   to them, less its mean bias and with the variance of that bias; else it stands alone.
4. Estimates are shrunk towards the mean of their kind by empirical Bayes with marginal likelihoods. DerSimonian &
   Laird's moment estimate of the variance between memories is often 0 if there are few, which makes intervals too
   short. The prior is a mixture, because a single normal one shrinks too little where most memories have no effect.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array, vstack  # type: ignore[import-untyped]  # it has no types
from sklearn.linear_model import RidgeCV  # type: ignore[import-untyped]  # as above
from sklearn.model_selection import KFold  # type: ignore[import-untyped]  # as above
from sklearn.preprocessing import OneHotEncoder, SplineTransformer  # type: ignore[import-untyped]  # as above

from app.insight.effect.ledger import LEAST_RUNS, LEAST_SCORED, OVERLAP, RunsAndSlots, ScoredRun, Slot
from app.insight.effect.shrinkage import Array, Posterior, Unshrunk
from app.storage.effects import OUTCOMES, Effect, Outcome

_NICE = 5
"""Priority of the process: if cores are few, answers to agents come first."""
_HARM = 0.1
"""Harm that is tolerated, in standard deviations of the outcome. On the seeds 3000 to 3099 of `benchmarks/pipeline.py`
0.09, 0.10 and 0.12 flag 93, 92 and 91 % of the harmful memories; 5.0, 3.4 and 2.8 % of the flagged are harmless."""
_KNOTS = 6
"""Largest number of knots of the piecewise linear course of the outcome over time."""
_RUNS_PER_KNOT = 50
"""Runs between two knots."""
_FOLDS = 5
"""Parts of the cross-fitting."""
_PENALTIES = np.logspace(-1, 3, 9)
"""The ridge penalties that generalised cross-validation chooses from."""
_MEMORIES = 1_000
"""Most memories that have terms in the regression, those in the most runs; it bounds the cost."""
_LEAST_REACH = 0.005
"""The reach of an interval beyond its quantiles, in deviations of the outcome. Where the prior is sure that a memory
has no effect, both quantiles are 0, and nobody knows an effect to be just that."""
_TAILS = (0.025, 0.975)
"""The ends of the 95 % interval."""


_Subject = tuple[UUID, str, str | None]
"""Memory, kind and task type."""


@dataclass(frozen=True, slots=True)
class _Entries:
    """One entry for each memory that was shown to a run or withheld from it."""

    run: NDArray[np.intp]
    """The run of each entry; the next arrays have its memory, if it was shown, and its propensity or NaN."""
    memory: NDArray[np.intp]
    shown: NDArray[np.bool_]
    propensity: Array
    memories: int
    runs: int

    @property
    def random(self) -> NDArray[np.bool_]:
        """The entries that a logged draw decided."""
        return (self.propensity > OVERLAP) & (self.propensity < 1 - OVERLAP)

    @property
    def drawn(self) -> Array:
        """The difference of each draw from its mean; 0 where there was no draw."""
        return np.where(self.random, self.shown - self.propensity, 0.0)

    def total(self, values: Array) -> Array:
        """Returns the sum over the entries of each memory."""
        sums: Array = np.bincount(self.memory, values, self.memories).astype(np.float64)
        return sums

    def table(self, values: Array | NDArray[np.bool_]) -> csr_array:
        """Returns the entries as a matrix of memories and runs."""
        return csr_array((values.astype(float), (self.memory, self.run)), shape=(self.memories, self.runs))


@dataclass(frozen=True, slots=True)
class _Ledger:
    """The scored runs, and the memories that were shown to them or withheld."""

    subjects: list[_Subject]
    controls: Array
    outcome: Array
    """Centred, in standard deviations."""
    scale: float
    own: _Entries
    """Memories in slots of their own."""
    following: _Entries
    """The next candidates for the slots of withheld memories; their propensities are those after that draw."""


def estimate_effects(
    runs: Sequence[ScoredRun], slots: Sequence[Slot], outcome: Outcome = "final_score", *, by_task_type: bool = False
) -> list[Effect]:
    """Estimates the effect of each memory and each kind on an outcome; runs without the outcome are left out.

    By task type, a memory has an effect for each type of the runs that it was in.
    """
    data = _prepare(runs, slots, outcome, by_task_type=by_task_type)
    if data is None:
        return []
    count = len(data.subjects)
    kinds = sorted({subject[1:] for subject in data.subjects}, key=str)
    belongs = np.array([[subject[1:] == kind for subject in data.subjects] for kind in kinds])
    measured = _measure(data)
    means = [Unshrunk(measured.effect[of], measured.variance[of]).mean() for of in belongs]
    posterior = measured.shrink(np.array([mean.effect for mean in means]) @ belongs).with_means(means)
    subjects = [*data.subjects, *((None, *kind) for kind in kinds)]
    groups = csr_array(vstack([eye_array(count), csr_array(belongs)]))
    return [
        Effect(memory_id=memory, kind=kind, task_type=task_type, **fields)
        for (memory, kind, task_type), fields in zip(subjects, _effects(data, groups, posterior, outcome), strict=True)
    ]


def _prepare(
    runs: Sequence[ScoredRun], slots: Sequence[Slot], outcome: Outcome, *, by_task_type: bool
) -> _Ledger | None:
    scored = [run for run in runs if getattr(run, outcome) is not None]
    numbers = {run.run_id: number for number, run in enumerate(scored)}
    values = np.array([getattr(run, outcome) for run in scored], dtype=float)
    own, following = dict[tuple[int, _Subject], tuple[bool, float]](), dict[tuple[int, _Subject], tuple[bool, float]]()
    for slot in slots:
        if (run := numbers.get(slot.run_id)) is not None:
            key = run, (slot.memory_id, slot.kind, scored[run].task_type if by_task_type else None)
            entries = following if slot.is_next else own
            entries[key] = _combine(slot, *entries.get(key, (False, 0.0)))
    # A memory with a slot of its own in another recall of the run is there with and without the given slot.
    following = {key: value for key, value in following.items() if key not in own}
    if not own or len(scored) < _FOLDS or not (scale := float(values.std())):
        return None
    subjects = {
        subject: number for number, subject in enumerate(dict.fromkeys(subject for _, subject in (*own, *following)))
    }
    return _Ledger(
        subjects=list(subjects),
        controls=_controls(scored),
        outcome=(values - values.mean()) / scale,
        scale=scale,
        own=_entries(own, subjects, len(scored)),
        following=_entries(following, subjects, len(scored)),
    )


def _entries(
    found: Mapping[tuple[int, _Subject], tuple[bool, float]], subjects: Mapping[_Subject, int], runs: int
) -> _Entries:
    return _Entries(
        run=np.array([run for run, _ in found], dtype=np.intp),
        memory=np.array([subjects[subject] for _, subject in found], dtype=np.intp),
        shown=np.array([shown for shown, _ in found.values()], dtype=bool),
        propensity=np.array([propensity for _, propensity in found.values()], dtype=float),
        memories=len(subjects),
        runs=runs,
    )


def _combine(slot: Slot, shown: bool, propensity: float) -> tuple[bool, float]:  # noqa: FBT001 - a row, unpacked
    """Adds a slot to what the run's other slots say of the memory: shown at least once, and how probable that was."""
    logged = np.nan if slot.propensity is None else slot.propensity
    return shown or slot.shown, 1 - (1 - propensity) * (1 - logged)


def _controls(runs: Sequence[ScoredRun]) -> Array:
    """Returns what is known before the recalls: task type, agent and a piecewise linear course over time."""
    names = OneHotEncoder(sparse_output=False).fit_transform([[run.task_type, run.agent] for run in runs])
    order = np.argsort(np.argsort([run.at.timestamp() for run in runs], kind="stable"), kind="stable")
    knots = min(_KNOTS, 2 + len(runs) // _RUNS_PER_KNOT)
    course = SplineTransformer(knots, degree=1).fit_transform(order[:, None] / len(runs))
    controls: Array = np.column_stack([names, course])
    return controls


def _features(data: _Ledger) -> tuple[Array, NDArray[np.intp]]:
    """Returns the terms of the regression and the memories that have two each, the last of them: presence, draw.

    A memory that a draw withheld counts as present: whatever else led to its recall is the same with and without it.
    One that was given the slot of another is not present, and its draw counts as 1.
    """
    own = data.own
    present = (own.shown | own.random).astype(float)
    most = np.argsort(-own.total(present), kind="stable")[:_MEMORIES]
    draws = own.table(own.drawn) + data.following.table(data.following.shown.astype(float))
    tables = [table[most].T.toarray() for table in (own.table(present), draws)]
    recalled = np.bincount(own.run, present, len(data.outcome))[:, None]
    return np.hstack([recalled, data.controls, *tables]), most


def _measure(data: _Ledger) -> Unshrunk:
    """Returns the effect of each memory by all that there is."""
    found = _observational(data)
    if not data.own.random.any():
        return found
    residual, own, following = _residuals(data)
    found = _experimental(data.own, residual, own).pool(found)
    return found.add(_experimental(data.following, residual, following))


def _observational(data: _Ledger) -> Unshrunk:
    """Returns the coefficient of each memory's presence, with the ridge's shrinkage taken back.

    A ridge estimate is the posterior mean under a normal prior (Hoerl & Kennard 1970; Lindley & Smith 1972). With
    the prior's precision subtracted, what remains is what the data alone say.
    """
    features, most = _features(data)
    model = RidgeCV(_PENALTIES).fit(features, data.outcome)
    variance = float(np.mean((data.outcome - model.predict(features)) ** 2))
    centred = features - features.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred + model.alpha_ * np.eye(centred.shape[1]))
    degrees = model.alpha_ * np.trace(inverse)  # terms that the penalty took away
    variance *= len(centred) / max(1.0, len(centred) - 1 - centred.shape[1] + degrees)
    start = features.shape[1] - 2 * len(most)
    terms = slice(start, start + len(most))
    spread = np.diag(inverse)[terms]
    kept = np.maximum(1e-9, 1 - model.alpha_ * spread)
    direct = Unshrunk(np.zeros(len(data.subjects)), np.full(len(data.subjects), np.inf))
    direct.effect[most], direct.variance[most] = model.coef_[terms] / kept, variance * spread / kept
    return direct


def _experimental(entries: _Entries, residual: Array, own: Array) -> Unshrunk:
    """Returns the augmented inverse propensity weighted difference of each memory's runs with and without it.

    `residual` is the error of each run's prediction, `own` how much of it the draw of each entry was to explain.
    """
    variance = float(np.mean(residual**2))
    others = residual[entries.run] + own  # what the other terms do not predict
    shares = [
        np.where(entries.random, chosen / probability, 0.0)
        for chosen, probability in ((entries.shown, entries.propensity), (~entries.shown, 1 - entries.propensity))
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        with_, without = (entries.total(share * others) / entries.total(share) for share in shares)
        spread = sum(entries.total(share**2) / entries.total(share) ** 2 for share in shares)
    usable = np.isfinite(spread)
    return Unshrunk(np.where(usable, with_ - without, 0.0), np.where(usable, variance * spread, np.inf))


def _residuals(data: _Ledger) -> tuple[Array, Array, Array]:
    """Returns each run's error, predicted from other runs, and how much of it the draws of entries were to explain.

    The second array has the entries of memories in slots of their own, the third those of next candidates.
    """
    features, most = _features(data)
    predicted = np.zeros(len(data.outcome))
    parts = ((data.own, data.own.drawn), (data.following, data.following.shown.astype(float)))
    explained = [np.zeros(len(entries.run)) for entries, _ in parts]
    for train, test in KFold(min(_FOLDS, len(features)), shuffle=True, random_state=0).split(features):
        model = RidgeCV(_PENALTIES).fit(features[train], data.outcome[train])
        predicted[test] = model.predict(features[test])
        coefficients = np.zeros(len(data.subjects))
        coefficients[most] = model.coef_[-len(most) :]
        for (entries, draws), found in zip(parts, explained, strict=True):
            within = np.isin(entries.run, test)
            found[within] = (coefficients[entries.memory] * draws)[within]
    own, following = explained
    return data.outcome - predicted, own, following


def _effects(data: _Ledger, groups: csr_array, posterior: Posterior, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """Yields the fields of each group's effect, in units of the outcome."""
    mean, deviation = posterior.moments()
    # A lower score is harm; so is a higher cost.
    limit = np.full(len(mean), _HARM)
    harmful = posterior.below(-limit) if outcome == "final_score" else 1 - posterior.below(limit)
    low, high = map(posterior.quantile, _TAILS)
    columns = [data.scale * column for column in (mean, deviation, low - _LEAST_REACH, high + _LEAST_REACH)]
    shown = _count_runs(groups, data.own.table(data.own.shown) + data.following.table(data.following.shown))
    is_drawn, withheld = _withheld(data, groups)
    basis = np.where(is_drawn, "experimental", "calibrated" if data.own.random.any() else "observational")
    without = np.where(is_drawn, withheld, len(data.outcome) - shown)
    enough = (len(data.outcome) >= LEAST_SCORED) & (np.minimum(shown, without) >= LEAST_RUNS)
    names = ("estimate", "deviation", "low", "high", "harmful", "basis", "runs_with", "runs_without", "enough")
    for row in zip(*(column.tolist() for column in (*columns, harmful, basis, shown, without, enough)), strict=True):
        yield dict(zip(names, row, strict=True))


def _withheld(data: _Ledger, groups: csr_array) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Returns whether each group has an experiment with LEAST_RUNS on both sides, and the runs it was withheld from.

    The own slots of memories are one experiment, the slots that they got as next candidates another. A memory counts
    in those alone in which draws both gave and withheld it: the others estimate nothing.
    """
    experiments = [
        tuple(entries.table(entries.random & side) for side in (entries.shown, ~entries.shown))
        for entries in (data.own, data.following)
    ]
    is_drawn, total = np.zeros(groups.shape[0], dtype=bool), csr_array((len(data.subjects), len(data.outcome)))
    for given, withheld in experiments:
        has_both = ((given.sum(axis=1) > 0) & (withheld.sum(axis=1) > 0)).astype(float)
        sides = [csr_array(diags_array(has_both) @ side) for side in (given, withheld)]
        is_drawn |= np.minimum(*(_count_runs(groups, side) for side in sides)) >= LEAST_RUNS
        total += sides[1]
    return is_drawn, _count_runs(groups, total)


def _count_runs(groups: csr_array, table: csr_array) -> NDArray[np.intp]:
    """Returns the number of runs in which a group has an entry of a table of memories and runs."""
    counts: NDArray[np.intp] = ((groups @ table) > 0).sum(axis=1)
    return counts


def main() -> None:
    """Answers one ledger."""
    os.nice(_NICE)
    ledger = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=RunsAndSlots)
    found = {outcome: estimate_effects(ledger.runs, ledger.slots, outcome) for outcome in OUTCOMES}
    sys.stdout.buffer.write(msgspec.msgpack.encode(found))


if __name__ == "__main__":
    main()
