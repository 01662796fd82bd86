"""How often a plan is told the cue that applies to it, and nothing where none does; and how fast.

With `--fit` the weights of the matcher are fitted, and judged on projects and sets that the fit has not seen.
"""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.foundation.models.protocols import EmbeddingProvider, Matrix, Window
from app.recall.cues.activate import Activation, PlanAsked
from app.recall.cues.cue import NewCue
from app.recall.cues.known import FittedWeights
from app.recall.preflight import CheckAsked, PlanCheck
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks import matcher
from benchmarks.figures import Figure, report
from benchmarks.plans import NEAR, Case, Labelled, filled, labelled, real_logs, requests
from benchmarks.stage import SHARED_DATA, stage

LABELLED = ("lessons-dev", "cues-dev")
SILENT = "flows-dev"
OWN, REAL = Path(__file__).parent / "lessons", "real-logs-dev"
"""Our own invented set, and the real logs, to which the weights are fitted too."""
BUDGET = 400
WANTED = {"kept silent, unrelated": 1.0, "kept silent, everyday": 0.95, "precision of what fired": 0.7}
"""Least value of some figures."""
SIZES = (5, 50)
"""Cues of small stores, which ought to behave as large ones do."""
NOISE = 0.7
"""Length of the noise that is added to a real vector to make one of the many. Their mean cosine is 0.67, so that few
are alike enough (0.7) to be compared word by word, as in a real store."""
STEPS = 5
"""Steps of a plan that is checked."""
ASKED = 60
"""Plans that are timed."""


async def asked(services: Services, workspace: Workspace, plan: str, budget: int = BUDGET) -> Activation:
    """Returns the activation of a plan."""
    return await services.activations.activate(workspace, PlanAsked(plan=plan, budget_tokens=budget))


async def fired(services: Services, data: Labelled, budget: int) -> AsyncIterator[Figure]:
    """Yields the figures of the labelled plans, as the service answers them."""
    workspace, ids = await filled(services, "labelled", data.cues)
    group_of = dict(zip(ids, data.groups, strict=True))
    found = [await asked(services, workspace, case.plan, budget) for case in data.cases]
    right = [
        [group_of[str(cue.cue_id)] in case.groups for cue in item.cues]
        for case, item in zip(data.cases, found, strict=True)
    ]
    for name, value in matcher.kept(data.cases, right):
        yield Figure(name=name, value=value, at_least=WANTED.get(name))
    yield Figure(name="tokens spent, mean", value=statistics.fmean(item.tokens for item in found))
    yield Figure(name="tokens spent, most", value=max(item.tokens for item in found), at_most=budget)
    took = statistics.median(item.took_ms for item in found)
    yield Figure(name="time, the plan's embedding with it, p50", value=took, unit="ms")


async def other_sizes(services: Services, sets: Sequence[Labelled]) -> AsyncIterator[Figure]:
    """Yields what share of silent plans fires in stores of other sizes: parts of the first set, and all of all sets."""
    data = sets[0]
    every = [cue for item in sets for cue in item.cues]
    silent = [case.plan for case in data.cases if case.role not in {"", NEAR}]
    for count in (*SIZES, len(every)):
        workspace, _ = await filled(services, f"size-{count}", every[:count])
        told = [bool((await asked(services, workspace, plan)).cues) for plan in silent]
        yield Figure(name=f"{count} cues: everyday and unrelated plans that fire", value=statistics.fmean(told))


async def checked(services: Services, sets: Sequence[Labelled], silent: Path) -> AsyncIterator[Figure]:
    """Yields how the check of a plan of STEPS steps answers: what it flags, and what it leaves clear.

    The store has the cues of the first set. Plans that deserve silence are those of this set, of the other sets, and
    the requests of a set about something else.
    """
    data, *others = sets
    workspace, ids = await filled(services, "checked", data.cues)
    group_of = dict(zip(ids, data.groups, strict=True))
    quiet = {
        "its own plans that deserve silence": [case for case in data.cases if case.role not in {"", NEAR}],
        "near misses": [case for case in data.cases if case.role == NEAR],
        "plans of other sets": [case for other in others for case in other.cases],
        "requests of another field": requests(silent),
    }
    for name, cases in quiet.items():
        found = [await _check(services, workspace, plan) for plan in batched(cases, STEPS)]
        steps = [step for item in found for step in item.steps if not step.added]
        clear, wordless = [not step.evidence for step in steps], [not item.markdown for item in found]
        yield Figure(name=f"check, {name}: steps left clear", value=statistics.fmean(clear))
        yield Figure(name=f"check, {name}: plans without a word", value=statistics.fmean(wordless))
    fires = [case for case in data.cases if not case.role]
    flagged = list[bool]()
    for plan in batched(fires, STEPS):
        steps = [step for step in (await _check(services, workspace, plan)).steps if not step.added]
        flagged += [
            any(group_of[str(item.memory_id)] in case.groups for item in step.evidence)
            for case, step in zip(plan, steps, strict=True)
        ]
    yield Figure(name="check, plans that a cue applies to: steps flagged by it", value=statistics.fmean(flagged))


async def _check(services: Services, workspace: Workspace, cases: Sequence[Case]) -> PlanCheck:
    plan = "\n".join(f"{number}. {' '.join(case.plan.split())}" for number, case in enumerate(cases, start=1))
    return await services.preflights.check(workspace, CheckAsked(plan=PlanAsked(plan=plan, trial=True)))


def batched(cases: Sequence[Case], size: int) -> Iterator[Sequence[Case]]:
    """Yields the cases in groups of this size; the last may be smaller."""
    yield from (cases[first : first + size] for first in range(0, len(cases), size))


class Noisy:
    """An embedding provider whose documents are real vectors with noise: thousands a second."""

    def __init__(self, real: EmbeddingProvider, vectors: Matrix) -> None:
        self._real, self._vectors, self._chance = real, vectors, np.random.default_rng(7)
        self.model_id, self.dimension, self.enabled = real.model_id, real.dimension, True

    async def start(self) -> None:
        """Does nothing: the real one has started."""

    async def close(self) -> None:
        """Does nothing: the real one is closed elsewhere."""

    async def embed_query(self, text: str) -> Any:  # noqa: ANN401 - a vector
        """Returns the real vector."""
        return await self._real.embed_query(text)

    async def window(self) -> Window | None:
        """Returns the real window."""
        return await self._real.window()

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Returns a vector for each text."""
        rows = self._vectors[self._chance.integers(0, len(self._vectors), len(texts))]
        noise = self._chance.normal(size=rows.shape).astype(np.float32)
        rows = rows + NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        found: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return found


async def large(services: Services, data: Labelled, count: int) -> list[Figure]:
    """Returns the time of an activation in a store of many cues, beyond the plan's embedding."""
    vectors = await services.provider.embed_documents([cue.lesson for cue in data.cues])
    many = replace(services, provider=Noisy(services.provider, vectors))
    workspace, _ = await filled(many, "large", list(_made_up(data.cues, count)))
    plans = [case.plan for case in data.cases if not case.role][:ASKED]
    await asked(services, workspace, plans[0])
    beyond, alone = list[float](), list[float]()
    for plan in plans:
        started = time.perf_counter()
        await services.provider.embed_query(plan)
        alone.append((time.perf_counter() - started) * 1_000)
        beyond.append((await asked(services, workspace, plan)).took_ms - alone[-1])
    return [
        Figure(name="embedding a plan, p50", value=statistics.median(alone), unit="ms"),
        Figure(name=f"{count:,} cues: beyond it, p50", value=statistics.median(beyond), unit="ms", at_most=10),
        Figure(name=f"{count:,} cues: beyond it, p95", value=sorted(beyond)[int(0.95 * len(beyond))], unit="ms"),
    ]


def _made_up(cues: Sequence[NewCue], count: int) -> Iterator[NewCue]:
    chance = random.Random(7)
    words = sorted({word for cue in cues for word in f"{cue.trigger} {cue.lesson}".split()})
    for place in range(count):
        cue = chance.choice(cues)
        trigger = f"{cue.trigger} {' '.join(chance.sample(words, 3))} {place}"
        yield NewCue(kind=cue.kind, trigger=trigger, lesson=cue.lesson, consequence=cue.consequence, quote=cue.quote)


async def measured(folders: Sequence[Path], silent: Path, budget: int, many: int) -> list[Figure]:
    """Returns all figures of the plans of the first set."""
    data, *others = map(labelled, folders)
    async with stage() as services:
        figures = [figure async for figure in fired(services, data, budget)]
        figures += [figure async for figure in other_sizes(services, [data, *others])]
        figures += [figure async for figure in checked(services, [data, *others], silent)]
        if many:
            figures += await large(services, data, many)
    return figures


async def fitted(folders: Sequence[Path], silent: Path) -> list[Figure]:
    """Fits the weights of the matcher to the first set, our own set and real logs, and writes them.

    Returns the figures of each of these with each of its projects left out, and those of the other sets, and the
    requests of `silent`, which the fit has not seen.
    """
    first, *others = folders
    sets = {first.name: labelled(first), OWN.name: labelled(OWN), **real_logs(SHARED_DATA / REAL)}
    async with stage() as services:
        pairs = {name: await matcher.measured(services, name, data) for name, data in sets.items()}
        unseen = {other.name: await matcher.measured(services, other.name, labelled(other)) for other in others}
        requested = replace(sets[first.name], cases=requests(silent))
        unseen[silent.name] = await matcher.measured(services, silent.name, requested)
        foreign = [await matcher.measured(services, f"{name}-foreign", data, "meaning") for name, data in sets.items()]
        bare = [await matcher.measured(services, f"{name}-bare", data, "alone") for name, data in sets.items()]
    found = FittedWeights(
        adapted=matcher.fitted(list(pairs.values())),
        meaning=matcher.fitted(foreign, matcher.MEANING),
        alone=matcher.fitted(bare, matcher.ALONE),
    )
    matcher.written(found, sets)
    tables = {}
    for name, item in pairs.items():
        rest = [other for other in pairs.values() if other is not item]
        tables[f"{name}, each project left out"] = item, matcher.left_out(item, rest, [1.0] * len(rest))
    tables |= {f"{other}, not seen": (item, matcher.scores(item, found.adapted)) for other, item in unseen.items()}
    return [
        Figure(name=f"{table}: {figure}", value=value)
        for table, (item, probabilities) in tables.items()
        for figure, value in (*matcher.ranks(item, probabilities), *matcher.figures_of(item, probabilities))
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[SHARED_DATA / name for name in LABELLED])
    parser.add_argument("--silent", type=Path, default=SHARED_DATA / SILENT, help="requests that no cue applies to")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--many", type=int, default=5_000, help="cues of the timed store; 0: it is left out")
    parser.add_argument("--fit", action="store_true", help="fit the weights, and write them")
    options = parser.parse_args(arguments)
    if options.fit:
        figures = asyncio.run(fitted(options.data, options.silent))
    else:
        figures = asyncio.run(measured(options.data, options.silent, options.budget, options.many))
    report("activation", figures)
    return figures


if __name__ == "__main__":
    main()
