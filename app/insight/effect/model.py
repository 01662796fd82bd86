"""Estimates what memories do to later runs, by one ordinary regression. Pure.

The final score is explained by task type, agent, a cubic course over time, the number of memories that were recalled
(hard tasks may recall more) and which memories were shown. The coefficient of a memory is its effect. Draws, which
withhold memories by chance alone, are what tells its effect from the causes of its recall; without them it stays
observational.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.insight.effect.ledger import LEAST_RUNS, LEAST_SCORED, ScoredRun, Slot
from app.insight.effect.report import student
from app.storage.effects import Effect

Array = NDArray[np.float64]

LEAST_A_SIDE = 20
"""Runs that were shown a memory, and runs that were not, from which its effect is shown."""
_HARM = 0.2
"""Harm that is tolerated, in standard deviations of the score: other causes than the memory bias a coefficient. On
the seeds 1000 to 1049 of `benchmarks/pipeline.py`, 0.15, 0.20 and 0.25 flag 87, 87 and 85 % of the harmful memories;
6.2, 2.3 and 0.8 % of the flagged are harmless."""
_MOST_TERMS = 500
"""Most memories that have terms, those in the most runs; a regression with twice as many takes six times as long."""
_RUNS_PER_TERM = 4
"""Runs for each term: with fewer the regression explains chance."""
_LEAST_WITHHELD = 3
"""Runs from which draws withheld a memory, from which its effect is experimental; one run decides nothing. On the
seeds 3000 to 3099 of `benchmarks/pipeline.py` 1, 3, 6, 10 and 20 flag 404, 368, 244, 103 and 5 of 459 harmful memories,
and 12, 9, 5, 0 and 0 harmless ones."""
_LEAST_GROUP = 10
"""Runs of a task type or agent with a column of its own; all smaller groups share one. A column for each run leaves
nothing to estimate chance by: of 120 runs of noise, each with its own task type, harmless memories were flagged."""
_LEAST_FREEDOM = 30
"""Runs more than terms, from which there are effects. From here on Student's distribution is nearly the normal one:
its 95 % interval is 4 % wider (2.04 and 1.96 deviations)."""

_DEPENDENT = 1e-10
"""Share of the largest eigenvalue below which one is rounding: its columns depend on others."""


class _MemoryRuns(NamedTuple):
    """The places of the runs that were shown a memory, and of those from which a draw withheld it."""

    kind: str
    runs: set[int]
    withheld: set[int]
    recalled: set[int]
    """The runs whose recalls found it, without those for which it was only the next candidate of a draw."""


def estimate_effects(runs: Sequence[ScoredRun], slots: Sequence[Slot]) -> list[Effect]:
    """Returns the effect on the final score of each memory that LEAST_RUNS runs were shown, and as many were not.

    Runs without a score are left out. There are no effects where all runs have the same score, nor where the terms
    leave too few runs to tell chance by.
    """
    known = sorted((run for run in runs if run.final_score is not None), key=lambda run: (run.at, run.run_id))
    values = np.array([run.final_score for run in known], dtype=np.float64)
    memories = _memories({run.run_id: place for place, run in enumerate(known)}, slots)
    terms = [
        memory_id
        for memory_id, item in memories.items()
        if min(len(item.runs), len(known) - len(item.runs)) >= LEAST_RUNS
    ]
    terms.sort(key=lambda memory_id: (-len(memories[memory_id].runs), memory_id))
    terms = terms[: min(_MOST_TERMS, len(known) // _RUNS_PER_TERM)]
    if not terms or not values.std():
        return []
    found = _regress(np.hstack([_columns(len(known), memories, terms), _controls(known, memories)]), values)
    if found.freedom < _LEAST_FREEDOM:
        return []
    limit = _HARM * float(values.std())
    reach, below = student(found.freedom), _below(found.freedom)
    effects = []
    for place, memory_id in enumerate(terms):
        item, estimate, deviation = memories[memory_id], float(found.value[place]), float(found.deviation[place])
        with_, without = len(item.runs), len(known) - len(item.runs)
        is_drawn = len(item.withheld) >= _LEAST_WITHHELD
        effects.append(
            Effect(
                memory_id=memory_id,
                kind=item.kind,
                estimate=estimate,
                deviation=deviation,
                low=estimate - reach * deviation,
                high=estimate + reach * deviation,
                harmful=below((-limit - estimate) / deviation),
                basis="experimental" if is_drawn else "observational",
                runs_with=with_,
                runs_without=len(item.withheld) if is_drawn else without,
                enough=len(known) >= LEAST_SCORED and min(with_, without) >= LEAST_A_SIDE,
            )
        )
    return effects


def _below(freedom: int) -> Callable[[float], float]:
    """Returns the function that gives the probability of lying below a value, by Student's distribution."""
    from scipy.special import stdtr  # type: ignore[import-untyped]  # noqa: PLC0415 - no types; 0.3 s of start-up

    return lambda value: float(stdtr(freedom, value))


def _memories(places: Mapping[str, int], slots: Sequence[Slot]) -> Mapping[UUID, _MemoryRuns]:
    """Returns each memory of the slots of these runs; a memory shown in one recall of a run was shown to the run."""
    found = dict[UUID, _MemoryRuns]()
    for slot in slots:
        if slot.run_id in places:
            item = found.setdefault(slot.memory_id, _MemoryRuns(slot.kind, set(), set(), set()))
            (item.runs if slot.shown else item.withheld).add(places[slot.run_id])
            if not slot.is_next:
                item.recalled.add(places[slot.run_id])
    for item in found.values():
        item.withheld.difference_update(item.runs)
    return found


def _columns(count: int, memories: Mapping[UUID, _MemoryRuns], terms: Sequence[UUID]) -> Array:
    """Returns a column for each memory: 1 for the runs that were shown it."""
    columns = np.zeros((count, len(terms)))
    for place, memory_id in enumerate(terms):
        columns[list(memories[memory_id].runs), place] = 1
    return columns


def _controls(runs: Sequence[ScoredRun], memories: Mapping[UUID, _MemoryRuns]) -> Array:
    """Returns the columns of what is known beside the memories; constant and dependent ones do no harm.

    Without draws the number of recalled memories is that of the shown ones, which have columns already.
    """
    names = defaultdict[tuple[str, str], list[int]](list)
    recalled = np.zeros(len(runs))
    for item in memories.values():
        recalled[list(item.recalled)] += 1
    for place, run in enumerate(runs):
        names["task type", run.task_type].append(place)
        names["agent", run.agent].append(place)
    pooled = defaultdict[tuple[str, str], list[int]](list)
    for (name, value), places in names.items():
        pooled[name, value if len(places) >= _LEAST_GROUP else ""].extend(places)
    groups = np.zeros((len(runs), len(pooled)))
    for column, places in enumerate(pooled.values()):
        groups[places, column] = 1
    course = np.vander(np.linspace(-1, 1, len(runs)), 4)
    if any(item.withheld for item in memories.values()):
        course = np.column_stack([course, recalled])
    return np.hstack([groups, course])


class _Regression(NamedTuple):
    value: Array
    deviation: Array
    freedom: int


def _regress(columns: Array, values: Array) -> _Regression:
    """Returns the coefficients of the least squares with their standard errors."""
    sizes, directions = np.linalg.eigh(columns.T @ columns)
    used = sizes > _DEPENDENT * sizes[-1]
    inverse = (directions[:, used] / sizes[used]) @ directions[:, used].T
    value = inverse @ columns.T @ values
    freedom = len(values) - int(used.sum())
    variance = float(np.sum((values - columns @ value) ** 2)) / max(1, freedom)
    deviation = np.sqrt(np.maximum(variance * np.diag(inverse), np.finfo(np.float64).tiny))
    return _Regression(value, deviation, freedom)
