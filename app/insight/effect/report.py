"""Compares runs with history and without it: the figures of a report, their intervals and their limits. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from statistics import median
from typing import Literal

from msgspec import Struct

from app.foundation.text.scores import version_order
from app.foundation.text.words import count_noun
from app.insight.effect.ledger import LEAST_RUNS, LEAST_SCORED, RunFacts
from app.intake.cases.store import Alert
from app.storage.effects import MemoryEffect

_CONFIDENCE = 0.95
_HIGHEST_SCORE = 10.0
_LEAST_SIZE = 2.0
"""Effective number of runs below which the few that have most of the weight tell too little of chance."""
_MOST_PARTS = 52
"""Weeks, versions or task types that are compared one by one, the latest or the largest."""
TOP = 10
"""Memories of each sign that a report names."""
Named = Literal["score", "cost", "tokens", "duration", "rounds", "repeats"]
_MEASURES: Mapping[Named, Callable[[RunFacts], float | None]] = {
    "score": lambda item: item.run.final_score,
    "cost": lambda item: item.run.cost,
    "tokens": lambda item: item.run.tokens,
    "duration": lambda item: item.run.duration,
    "rounds": lambda item: item.run.rounds,
    "repeats": lambda item: item.repeats,
}
"""The value of each measure of a run."""


class MeanOfRuns(Struct, frozen=True, kw_only=True):
    """The mean of a measure over runs, or the difference of two means."""

    mean: float
    low: float | None
    """The ends of the 95 % interval; None where there is none: of fewer than 3 runs, of runs of which one has most of
    the weight, and of runs that all have the same value. They do not tell how much chance does."""
    high: float | None
    runs: int
    """The runs of which the measure is known; of a difference, those of both sides."""


class Measure(Struct, frozen=True, kw_only=True):
    """One measure of both groups."""

    name: Named
    given: MeanOfRuns | None
    """The runs with history; None if the measure is known of none."""
    without: MeanOfRuns | None
    difference: MeanOfRuns | None
    """With history less without; it has no interval where a group has none."""


class Contrast(Struct, frozen=True, kw_only=True):
    """Two groups of runs."""

    label: str
    given: int
    """The number of runs with history."""
    without: int
    measures: tuple[Measure, ...]
    repeat_rate: float | None
    """The share of the issues that judges named of runs with history which an earlier version of the case had too.
    First versions of a case do not count: they have nothing to repeat."""
    repeat_rate_without: float | None

    def measure(self, name: Named) -> Measure:
        """Returns the measure of this name."""
        return next(item for item in self.measures if item.name == name)


class Report(Struct, frozen=True, kw_only=True):
    """The proof for an owner: what history did to runs, and what cannot be concluded."""

    workspace: str
    since: datetime | None
    until: datetime | None
    task_type: str
    runs: int
    left_out: int
    """Earlier runs of the period that are not compared, because there are too many."""
    scored: int
    history: Contrast
    """Runs that were shown at least one memory, and runs that were shown none."""
    draws: Contrast | None
    """Runs that were shown all that was meant for them, and runs from which a draw withheld a memory; None if nothing
    was drawn."""
    weeks: tuple[Contrast, ...]
    versions: tuple[Contrast, ...]
    task_types: tuple[Contrast, ...]
    helpful: tuple[MemoryEffect, ...]
    harmful: tuple[MemoryEffect, ...]
    estimated_at: datetime | None
    """When effects of memories were estimated last, over the workspace's latest runs and not this period's alone; None
    if never."""
    alerts: tuple[Alert, ...]
    """Issues that judges named of these runs; of a report on all runs, of all judgements."""
    limits: tuple[str, ...]
    """Conclusions that the figures do not allow, in sentences."""
    explore: float
    """The present share of recalls with a draw."""
    uses_effects: bool
    """True if estimated effects count in the ranking."""


Weigh = Callable[[RunFacts], tuple[bool, float]]
"""Returns the group of a run, and its weight."""


def by_history(item: RunFacts) -> tuple[bool, float]:
    """Tells runs with history from those without; weighted by the inverse of the logged probability, where one is."""
    some = item.exposure.some
    has_history = item.exposure.shown > 0
    return has_history, 1.0 if some is None else 1 / (some if has_history else 1 - some)


def by_draw(item: RunFacts) -> tuple[bool, float]:
    """Tells runs that were shown everything from those with a withheld memory, weighted likewise; all must be drawn."""
    whole = item.exposure.whole or 0.0
    return not item.exposure.withheld, 1 / (1 - whole if item.exposure.withheld else whole)


def contrast(label: str, facts: Sequence[RunFacts], weigh: Weigh = by_history) -> Contrast:
    """Compares the two groups of these runs."""
    groups: tuple[list[tuple[RunFacts, float]], ...] = ([], [])
    for item in facts:
        is_given, weight = weigh(item)
        groups[not is_given].append((item, weight))
    given, without = groups
    rates = [_repeat_rate([item for item, _ in group]) for group in groups]
    return Contrast(
        label=label,
        given=len(given),
        without=len(without),
        measures=tuple(_measure(name, given, without) for name in _MEASURES),
        repeat_rate=rates[0],
        repeat_rate_without=rates[1],
    )


def draws(facts: Sequence[RunFacts]) -> Contrast | None:
    """Compares runs that were shown everything with those from which a draw withheld a memory."""
    drawn = [item for item in facts if item.exposure.whole is not None and 0 < item.exposure.whole < 1]
    return contrast("one memory withheld, by a draw", drawn, by_draw) if drawn else None


def weeks(facts: Sequence[RunFacts]) -> tuple[Contrast, ...]:
    """Compares the runs of each week, which begins on Monday; the latest, in their order."""
    return _parts(
        facts,
        lambda item: (item.run.at.date() - timedelta(days=item.run.at.weekday())).isoformat(),
        key=lambda label: label,
    )


def versions(facts: Sequence[RunFacts]) -> tuple[Contrast, ...]:
    """Compares the runs of each version, where runs name one, in the order of their numbers."""
    return _parts(facts, lambda item: item.run.version, key=version_order)


def task_types(facts: Sequence[RunFacts]) -> tuple[Contrast, ...]:
    """Compares the runs of each task type, those with the most runs last."""
    counts = Counter(item.run.task_type for item in facts)
    return _parts(facts, lambda item: item.run.task_type, key=lambda label: counts[label])[::-1]


def _parts(
    facts: Sequence[RunFacts], label_of: Callable[[RunFacts], str], *, key: Callable[[str], object]
) -> tuple[Contrast, ...]:
    groups: dict[str, list[RunFacts]] = {}
    for item in facts:
        if label := label_of(item):
            groups.setdefault(label, []).append(item)
    ordered = sorted(groups, key=key)[-_MOST_PARTS:]  # type: ignore[arg-type]  # each caller's keys are of one type
    return tuple(contrast(label, groups[label]) for label in ordered)


def _repeat_rate(facts: Sequence[RunFacts]) -> float | None:
    known = [item for item in facts if item.repeats is not None]
    named = sum(item.issues or 0 for item in known)
    return sum(item.repeats or 0 for item in known) / named if named else None


_Weighted = Sequence[tuple[RunFacts, float]]


def _measure(name: Named, given: _Weighted, without: _Weighted) -> Measure:
    one, other = (_sample(_MEASURES[name], group) for group in (given, without))
    most = _HIGHEST_SCORE if name == "score" else math.inf
    return Measure(name=name, given=_mean(one, most), without=_mean(other, most), difference=_difference(one, other))


class _WeightedSample(Struct, frozen=True):
    """The weighted values of a measure in a group."""

    runs: int
    mean: float
    error: float | None
    """The variance of the mean; None where it is not known: of too few runs, and where all values are the same."""
    size: float
    """The effective number of runs: (sum of weights)² / sum of their squares (Kish 1965)."""


def _sample(value_of: Callable[[RunFacts], float | None], group: _Weighted) -> _WeightedSample | None:
    known = [(value, weight) for item, weight in group if (value := value_of(item)) is not None]
    if not known:
        return None
    total, squares = sum(weight for _, weight in known), sum(weight**2 for _, weight in known)
    mean, size = sum(value * weight for value, weight in known) / total, total**2 / squares
    spread = sum(weight * (value - mean) ** 2 for value, weight in known) / total
    is_known = len(known) >= LEAST_RUNS and size >= _LEAST_SIZE and len({value for value, _ in known}) > 1
    error = spread / (size - 1) if is_known else None
    return _WeightedSample(len(known), mean, error, size)


def _mean(sample: _WeightedSample | None, most: float) -> MeanOfRuns | None:
    """Returns the mean of a sample, and that part of its interval which is possible: from 0 to `most`."""
    if sample is None:
        return None
    return _with_interval(sample.mean, sample.error, sample.size, sample.runs, possible=(0.0, most))


def _with_interval(
    mean: float, error: float | None, size: float, runs: int, *, possible: tuple[float, float] = (-math.inf, math.inf)
) -> MeanOfRuns:
    if error is None:
        return MeanOfRuns(mean=mean, low=None, high=None, runs=runs)
    reach, (least, most) = student(round(size - 1, 3)) * error**0.5, possible
    return MeanOfRuns(mean=mean, low=max(least, mean - reach), high=min(most, mean + reach), runs=runs)


def _difference(one: _WeightedSample | None, other: _WeightedSample | None) -> MeanOfRuns | None:
    """Returns the difference of two means, with an interval that has the degrees of freedom of the smaller group.

    It is never too narrow, whatever the groups (Mickey & Brown 1966, Annals of Mathematical Statistics 37). Welch's
    interval covers 0.88 to 0.94 instead of 0.95 where a group of 2 or 3 runs stands beside one of 10 or 40.
    """
    if one is None or other is None:
        return None
    error = None if one.error is None or other.error is None else one.error + other.error
    return _with_interval(one.mean - other.mean, error, min(one.size, other.size), one.runs + other.runs)


@lru_cache(maxsize=4_096)
def student(degrees: float) -> float:
    """Returns the standard errors from a mean to an end of its 95 % interval, by Student's distribution."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # noqa: PLC0415 - no types; 0.3 s of start-up

    return float(stdtrit(degrees, (1 + _CONFIDENCE) / 2))


def rank_effects(found: Sequence[MemoryEffect]) -> tuple[tuple[MemoryEffect, ...], tuple[MemoryEffect, ...]]:
    """Returns the most helpful and the most harmful memories, the surest first.

    A memory is neither with too little data, by a comparison alone, or while its interval includes 0.
    """
    known = [item for item in found if item.enough and item.basis != "observational"]
    helpful = sorted((item for item in known if item.low > 0), key=lambda item: -item.low)
    harmful = sorted((item for item in known if item.high < 0), key=lambda item: item.high)
    return tuple(helpful[:TOP]), tuple(harmful[:TOP])


_OBSERVATIONAL = (
    "Runs with history and runs without it were not {all}chosen by chance, so this comparison alone proves no cause:"
    " hard tasks may recall more, and the pipeline itself may have changed meanwhile."
)
_BY_DRAWS = (
    "The comparison by draws is not open to other causes, but it is of all that was found with one memory withheld,"
    " whose slot the next candidate may have got, and not of all history"
)
_SPENT: tuple[tuple[Named, str], ...] = (("cost", "cost"), ("tokens", "number of tokens"), ("duration", "duration"))
_MOSTLY = 0.8
"""Share of a group's runs before the middle of the other group from which they are mostly earlier."""


def limits(facts: Sequence[RunFacts], history: Contrast, drawn: Contrast | None, explore: float) -> tuple[str, ...]:
    """Returns what the figures do not allow to conclude, in sentences."""
    if not facts:
        return ("No finished run is in this period, so there is nothing to compare.",)
    return (
        *_too_few(history),
        *_causes(facts, drawn, explore),
        *_unknown(facts, history),
    )


def limits_of_selection(runs: int, left_out: int, *, is_all: bool, most_estimated: int) -> Iterator[str]:
    """Yields what a report says of other runs than those of its period and task type, or leaves out of them.

    `left_out` earlier runs are not compared, and effects are estimated from the latest `most_estimated` runs.
    """
    if left_out:
        yield (
            f"There are {runs + left_out:,} finished runs; the latest {runs:,} are compared, and"
            f" {count_noun(left_out, 'earlier run')} {'is' if left_out == 1 else 'are'} left out."
        )
    if is_all and runs + left_out > most_estimated:
        yield f"The effects of memories are estimated from the latest {most_estimated:,} runs alone."
    if not is_all:
        yield (
            f"The effects of memories are estimated over the workspace's latest {most_estimated:,} runs at most, of all"
            " periods and task types; those of memories that these runs recalled are shown. An"
            " alert is about an issue that was named of these runs; its versions are those of all runs."
        )


def _too_few(history: Contrast) -> list[str]:
    score = history.measure("score")
    counts = [0 if side is None else side.runs for side in (score.given, score.without)]
    if not any(counts):
        return ["No run has a final score, so nothing can be said about the quality of the outputs."]
    found = []
    if min(counts) < LEAST_SCORED:
        found.append(
            f"{count_noun(counts[0], 'scored run')} with history and {counts[1]:,} without are too little data for a"
            f" conclusion: each group should have {LEAST_SCORED} at least. A difference may be chance."
        )
    if score.difference is None:
        return found
    if score.difference.low is None or score.difference.high is None:
        cause = (
            f"A group has fewer than {LEAST_RUNS} scored runs, which are too little data"
            if min(counts) < LEAST_RUNS
            else "All scores of a group are the same, which is not enough"
        )
        found.append(f"{cause} to tell how much chance does, so the difference in score has no interval.")
    elif min(counts) >= LEAST_SCORED and score.difference.low <= 0 <= score.difference.high:
        found.append(
            "The interval of the difference in score includes 0: these runs do not show that history helps,"
            " nor that it harms."
        )
    return found


def _causes(facts: Sequence[RunFacts], drawn: Contrast | None, explore: float) -> list[str]:
    chosen = sum(item.exposure.some is not None for item in facts)
    found = [_OBSERVATIONAL.format(all="all " if chosen else "")] if chosen < len(facts) else []
    if earlier := _earlier(facts):
        found.append(f"The runs {earlier} history are mostly the earlier ones, so what changed over time counts too.")
    if drawn is None:
        how = f"is {explore:g}, but no run of this period has a draw yet" if explore else "is 0"
        found.append(
            f"No memory was withheld by chance (PRIORS_EXPLORE {how}). With a share such as 0.1, the effect of a"
            " memory can be told from other causes."
        )
    else:
        few = drawn.measure("score").without
        known = 0 if few is None else few.runs
        support = (
            ""
            if known >= LEAST_SCORED
            else f"; it rests on {count_noun(known, 'scored run')} with a withheld memory: too little data"
        )
        found.append(f"{_BY_DRAWS}{support}.")
    return found


def _unknown(facts: Sequence[RunFacts], history: Contrast) -> list[str]:
    found = []
    for name, word in _SPENT:
        known = sum(_MEASURES[name](item) is not None for item in facts)
        if not known:
            found.append(f"No run names its {word}.")
        elif known < len(facts):
            found.append(f"The {word} is known of {known:,} of {count_noun(len(facts), 'run')}.")
    if history.repeat_rate is None and history.repeat_rate_without is None:
        found.append(
            "No run has a judgement that lists issues and follows one of an earlier version of its case, so nothing can"
            " be said about repeated mistakes."
        )
    return found


def _earlier(facts: Sequence[RunFacts]) -> str:
    """Returns the group whose runs are mostly earlier than those of the other; empty if neither's are."""
    given, without = ([item.run.at for item in facts if (item.exposure.shown > 0) is side] for side in (True, False))
    if not given or not without:
        return ""
    for name, early, late in (("without", without, given), ("with", given, without)):
        middle = median(moment.timestamp() for moment in late)
        if sum(moment.timestamp() < middle for moment in early) >= _MOSTLY * len(early):
            return name
    return ""
