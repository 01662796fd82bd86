"""A simulated pipeline with memories of known effect: whether the estimates find them, and what using them gains.

The simulation is ours, and its ranker is a small model (relevance + quality + influence), not that of the service.
A run has one task type and agent, and three recalls with two to four slots each. Hard tasks recall more memories, and
some memories more often: nobody logs how hard a task was. Two judges score with noise, the scores drift, and runs
write echoes of memories that they read. With exploration, a memory is withheld in a share of the recalls;
half of their slots stay empty, and half go to the next candidate.

Constants of the estimate were chosen on other seeds than those that are reported (DEVELOPMENT, REPORTED).
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import fmean
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, ttest_1samp, ttest_ind  # type: ignore[import-untyped]  # it has no types

from app.insight.effect.ledger import LEAST_RUNS, ScoredRun, Slot, flag_harmful, influence
from app.insight.effect.model import estimate_effects
from app.recall.retrieval.log import GIVEN
from app.storage.effects import Effect
from benchmarks.figures import Figure, report

Array = NDArray[np.float64]

DEVELOPMENT = (*range(1_000, 1_050), *range(3_000, 3_100))
"""Seeds for choosing constants; HARM was chosen on the first 50."""
REPORTED = tuple(range(50))
"""Seeds for reporting. They had been reported before the design of the draws changed."""
RUNS = 500
EXPLORATION = 0.1
LAST = 100
"""Runs at the end whose mean score is compared."""
REFRESH = 50
"""Runs after which the estimates are computed again."""
TYPES, AGENTS, RECALLS = 4, 3, 3
CHARACTERS = {"harmful": 4, "misleading": 2, "helpful": 7, "harmless": 14}
"""The memories at the start; each of the recalls may find a third of them."""
ECHO = 0.01
"""Share of the runs that write a memory like one that they read."""
BOUND = 0.1
"""Largest influence on a rank; relevance and quality have deviations of about 0.14 and 0.04 there."""
JUDGES, JUDGE_NOISE = (0.2, -0.3), (0.8, 1.2)
"""How much too mild each judge is, and the deviation of each; a score is their mean."""
TYPE_GAINS, AGENT_GAINS = (0.8, 0.3, -0.3, -0.8), (0.4, 0.0, -0.4)
KINDS = ("observation", "cue", "note")
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Library:
    """The memories, one entry of each list for each."""

    characters: list[str] = field(default_factory=list)
    effects: list[Array] = field(default_factory=list)
    """By task type, in points of the score."""
    topics: list[Array] = field(default_factory=list)
    """What its relevance gains by task type."""
    hard: list[float] = field(default_factory=list)
    """What its relevance gains by a hard task."""
    quality: list[float] = field(default_factory=list)
    recall: list[int] = field(default_factory=list)
    """Which of a run's recalls may find it."""

    def echo(self, memory: int, score: float, chance: np.random.Generator) -> None:
        """Adds a memory like another; its quality is the score of the run that wrote it."""
        self.characters.append(self.characters[memory])
        self.effects.append(self.effects[memory])
        self.topics.append(self.topics[memory] + chance.normal(0, 0.05, TYPES))
        self.hard.append(self.hard[memory])
        self.quality.append(score / 10)
        self.recall.append(self.recall[memory])


def first_library(chance: np.random.Generator) -> Library:
    """Draws the memories that a pipeline begins with."""
    library = Library()
    characters = [character for character, count in CHARACTERS.items() for _ in range(count)]
    for number, character in enumerate(chance.permutation(characters).tolist()):
        effects = np.zeros(TYPES)
        if character == "harmful":
            effects += chance.uniform(-2.2, -1.2)
        elif character == "helpful":
            effects += chance.uniform(0.5, 1.5)
        elif character == "misleading":
            effects[chance.integers(TYPES)] = chance.uniform(-3.5, -2.5)
        library.characters.append(character)
        library.effects.append(effects)
        library.topics.append(chance.normal(0, 0.15, TYPES))
        library.hard.append(float(chance.normal(0.05, 0.08)))
        library.quality.append(float(np.clip(0.65 + 0.02 * effects.mean() + chance.normal(0, 0.12), 0, 1)))
        library.recall.append(number % RECALLS)
    return library


@dataclass(slots=True)
class Pipeline:
    """A pipeline and the ledger of its runs."""

    seed: int
    ranker: str = "quality"
    """What is added to relevance: "none", "quality", or "influence" beside quality; "no memories" shows none."""
    exploration: float = EXPLORATION
    runs: list[ScoredRun] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    gains: dict[UUID, list[float]] = field(default_factory=lambda: defaultdict(list))
    """What each memory in truth added, or would have added, to the score of each run that recalled it."""
    library: Library = field(init=False)
    weights: dict[int, float] = field(default_factory=dict)
    """The influence of memories that have one."""

    def __post_init__(self) -> None:
        """Draws the library: the same for a seed, whatever the ranker."""
        self.library = first_library(np.random.default_rng(self.seed))

    def go(self, runs: int) -> "Pipeline":
        """Makes runs; with the ranker "influence", estimates effects between them."""
        for number in range(runs):
            if self.ranker == "influence" and number and number % REFRESH == 0:
                effects = estimate_effects(self.runs, self.slots)
                self.weights = {effect.memory_id.int: influence(effect, BOUND) for effect in effects}
            self._run(number)
        return self

    def _run(self, number: int) -> None:
        """Makes one run; its chances are the same for a seed, whatever the ranker."""
        chance = np.random.default_rng([self.seed, number])
        task_type, agent = int(chance.integers(TYPES)), int(chance.integers(AGENTS))
        hardness, judges, echo = chance.normal(), chance.normal(JUDGES, JUDGE_NOISE).mean(), chance.random()
        recalled = [] if self.ranker == "no memories" else self._recall(str(number), task_type, hardness, chance)
        effects = np.array([self.library.effects[memory][task_type] for memory, _ in recalled])
        shown = np.array([is_shown for _, is_shown in recalled], dtype=bool)
        drift = 0.5 * np.sin(number / 80) - (number > RUNS / 2)
        base = 5.5 + TYPE_GAINS[task_type] + AGENT_GAINS[agent] + drift - 0.9 * hardness + judges
        score = float(np.clip(base + effects[shown].sum(), 0, 10))
        for (memory, is_shown), effect in zip(recalled, effects, strict=True):
            without = base + effects[shown].sum() - effect * is_shown
            self.gains[UUID(int=memory)].append(float(np.clip(without + effect, 0, 10) - np.clip(without, 0, 10)))
        self.runs.append(
            ScoredRun(
                run_id=str(number),
                task_type=f"type {task_type}",
                agent=f"agent {agent}",
                at=START + timedelta(hours=number),
                final_score=score,
            )
        )
        if echo < ECHO and shown.any():
            self.library.echo(int(chance.choice([memory for memory, is_shown in recalled if is_shown])), score, chance)

    def _recall(
        self, run_id: str, task_type: int, hardness: float, chance: np.random.Generator
    ) -> list[tuple[int, bool]]:
        """Fills the slots of a run's recalls, and logs them."""
        library = self.library
        count = len(library.recall)
        rank = 0.5 + np.array(library.topics)[:, task_type] + np.array(library.hard) * hardness
        rank = 0.7 * (rank + chance.normal(0, 0.12, count))
        if self.ranker != "none":
            rank += 0.3 * np.array(library.quality)
        rank += [self.weights.get(memory, 0.0) for memory in range(count)]
        slots = int(3 + (hardness > 0.6) - (hardness < -0.6))
        found = []
        for recall in range(RECALLS):
            pool = np.flatnonzero(np.array(library.recall) == recall)
            luck, slot = chance.random(), int(chance.integers(slots))
            taken = slot if luck < self.exploration else None
            *first, following = pool[np.argsort(-rank[pool])[: slots + 1]].tolist()
            propensity = 1 - self.exploration / slots if self.exploration else None
            for place, memory in enumerate(first):
                found.append((memory, place != taken))
                self._log(run_id, memory, place, shown=place != taken, propensity=propensity)
            if taken is not None:
                gives = luck < self.exploration * GIVEN
                found.append((following, gives))
                self._log(run_id, following, taken, shown=gives, propensity=GIVEN, is_next=True)
        return found

    def _log(
        self, run_id: str, memory: int, place: int, *, shown: bool, propensity: float | None, is_next: bool = False
    ) -> None:
        slot = Slot(
            run_id=run_id,
            memory_id=UUID(int=memory),
            kind=KINDS[memory % len(KINDS)],
            rank=place + 1,
            shown=shown,
            propensity=propensity,
            is_next=is_next,
        )
        self.slots.append(slot)


@dataclass(slots=True)
class Tally:
    """What an estimate got right over many seeds."""

    harmful: int = 0
    enough: int = 0
    """Of the harmful memories, those with enough data."""
    caught: int = 0
    flagged: int = 0
    innocent: int = 0
    """Flagged memories that are helpful or harmless."""
    misleading: int = 0
    misleading_caught: int = 0
    intervals: int = 0
    covering: int = 0
    error: float = 0.0

    def add(self, pipeline: Pipeline, flagged: set[UUID], judged: Mapping[UUID, tuple[float, float, float]]) -> None:
        """Adds a pipeline, the memories flagged, and low, estimate and high of those with enough data."""
        for memory, gains in pipeline.gains.items():
            character, is_flagged = pipeline.library.characters[memory.int], memory in flagged
            self.harmful += character == "harmful"
            self.enough += character == "harmful" and memory in judged
            self.caught += character == "harmful" and is_flagged
            self.misleading += character == "misleading"
            self.misleading_caught += character == "misleading" and is_flagged
            self.flagged += is_flagged
            self.innocent += character in {"helpful", "harmless"} and is_flagged
            if memory in judged:
                low, estimate, high = judged[memory]
                truth = float(np.mean(gains))
                self.intervals += 1
                self.covering += low <= truth <= high
                self.error += (estimate - truth) ** 2

    def figures(self, name: str, *, judged: bool = False) -> list[Figure]:
        """Returns the shares, with the targets if this estimate is to meet them."""
        at_least, at_most = (0.9, 0.05) if judged else (None, None)
        coverage = self.covering / max(1, self.intervals)
        return [
            Figure(name=f"{name}: harmful memories flagged", value=self.caught / self.harmful, at_least=at_least),
            Figure(name=f"{name}: the same, of those with enough data", value=self.caught / max(1, self.enough)),
            Figure(
                name=f"{name}: flagged that are harmless", value=self.innocent / max(1, self.flagged), at_most=at_most
            ),
            Figure(
                name=f"{name}: misleading in one task type, flagged",
                value=self.misleading_caught / max(1, self.misleading),
            ),
            Figure(name=f"{name}: interval coverage", value=coverage),
            Figure(
                name=f"{name}: the coverage's distance from 0.95",
                value=abs(coverage - 0.95),
                at_most=0.02 if judged else None,
            ),
            Figure(name=f"{name}: error", value=(self.error / max(1, self.intervals)) ** 0.5, unit="points"),
        ]


def naive(pipeline: Pipeline) -> tuple[set[UUID], dict[UUID, tuple[float, float, float]]]:
    """Compares mean scores with and without each memory: Welch's test, Benjamini & Hochberg's (1995) 5 %."""
    scores = {run.run_id: run.final_score or 0.0 for run in pipeline.runs}
    shown: dict[UUID, set[str]] = defaultdict(set)
    for slot in pipeline.slots:
        if slot.shown:
            shown[slot.memory_id].add(slot.run_id)
    judged, chances = {}, {}
    for memory, runs in shown.items():
        with_ = [score for run, score in scores.items() if run in runs]
        without = [score for run, score in scores.items() if run not in runs]
        if min(len(with_), len(without)) >= LEAST_RUNS:
            test = ttest_ind(with_, without, equal_var=False, alternative="two-sided")
            low, high = test.confidence_interval(0.95)
            judged[memory] = (float(low), float(np.mean(with_) - np.mean(without)), float(high))
            chances[memory] = test.pvalue / 2 if test.statistic < 0 else 1 - test.pvalue / 2
    adjusted = false_discovery_control(list(chances.values()))
    return {memory for memory, chance in zip(chances, adjusted, strict=True) if chance <= 0.05}, judged


def estimated(effects: Sequence[Effect]) -> dict[UUID, tuple[float, float, float]]:
    """Returns low, estimate and high of each memory with enough data."""
    return {item.memory_id: (item.low, item.estimate, item.high) for item in effects if item.enough}


def last_scores(seeds: Sequence[int], runs: int, ranker: str, exploration: float) -> Array:
    """Returns the mean score of each seed's last runs."""
    pipelines = [Pipeline(seed, ranker, exploration).go(runs) for seed in seeds]
    scores = [[run.final_score or 0.0 for run in pipeline.runs[-LAST:]] for pipeline in pipelines]
    return np.array([fmean(each) for each in scores])


def accuracy(seeds: Sequence[int], runs: int) -> list[Figure]:
    """Returns how well the estimates, and the naive differences beside them, know the memories."""
    tallies = {name: Tally() for name in ("estimate", "naive", "without exploration")}
    claims = 0
    for seed in seeds:
        pipeline = Pipeline(seed).go(runs)
        effects = estimate_effects(pipeline.runs, pipeline.slots)
        flagged = {effect.memory_id for effect in flag_harmful(effects)}
        tallies["estimate"].add(pipeline, flagged, estimated(effects))
        tallies["naive"].add(pipeline, *naive(pipeline))
        pipeline = Pipeline(seed, exploration=0.0).go(runs)
        effects = estimate_effects(pipeline.runs, pipeline.slots)
        tallies["without exploration"].add(pipeline, set(), estimated(effects))
        claims += len(flag_harmful(effects)) + sum(effect.basis != "observational" for effect in effects)
    return [
        *(figure for name, tally in tallies.items() for figure in tally.figures(name, judged=name == "estimate")),
        Figure(name="without exploration: called other than observational, or flagged", value=claims, at_most=0),
    ]


def gain(seeds: Sequence[int], runs: int) -> list[Figure]:
    """Returns what ranking with influence gains; only this ranker pays for exploration."""
    scores = {ranker: last_scores(seeds, runs, ranker, 0.0) for ranker in ("quality", "none", "no memories")}
    scores["influence"] = last_scores(seeds, runs, "influence", EXPLORATION)
    figures = [
        Figure(name=f"score of the last runs: {name}", value=float(each.mean())) for name, each in scores.items()
    ]
    for name in ("quality", "none", "no memories"):
        difference = scores["influence"] - scores[name]
        low, high = ttest_1samp(difference, 0.0).confidence_interval(0.95)
        label = f"influence - {name}"
        figures += [
            Figure(name=label, value=float(difference.mean()), unit=f"({low:.2f} to {high:.2f})"),
            Figure(
                name=f"{label}: share of seeds above",
                value=float(np.mean(difference > 0)),
                at_least=0.9 if name == "quality" else None,
            ),
        ]
    return figures


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seeds", type=int, default=len(REPORTED))
    parser.add_argument("--development", action="store_true", help="use the seeds for choosing constants")
    given = parser.parse_args(arguments)
    seeds = (DEVELOPMENT if given.development else REPORTED)[: given.seeds]
    figures = [*accuracy(seeds, given.runs), *gain(seeds, given.runs)]
    report("pipeline", figures, ("priors", "numpy", "scipy"))
    return figures


if __name__ == "__main__":
    main()
