"""How often a plan fires the cue that applies to it, within a token budget, beside plain baselines; and how fast."""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.cues.activate import Activation, PlanAsked, activate
from app.cues.cue import NewCue
from app.models.protocols import EmbeddingProvider, Matrix, Window
from app.wiring import Services
from app.workspaces.workspace import Workspace
from benchmarks import matcher
from benchmarks.figures import Figure, report
from benchmarks.plans import Labelled, filled, labelled, with_others
from benchmarks.stage import SHARED_DATA, stage

LABELLED = "cues-dev"
BUDGET = 400
NOISE = 0.7
"""Length of the noise that is added to a real vector to make one of the many. Their mean cosine is 0.67, so that few
are alike enough (0.7) to be compared word by word, as in a real store."""
ASKED = 60
"""Plans that are timed."""


async def asked(services: Services, workspace: Workspace, plan: str, budget: int = BUDGET) -> Activation:
    """Returns the activation of a plan."""
    parts = services.database, services.provider, services.counter
    return await activate(*parts, workspace=workspace, asked=PlanAsked(plan=plan, budget_tokens=budget))


async def fired(services: Services, data: Labelled, budget: int) -> list[Figure]:
    """Returns the figures of the labelled plans."""
    workspace, ids = await filled(services, "labelled", data.cues)
    group_of = dict(zip(ids, data.groups, strict=True))
    scores: dict[bool, list[float]] = {True: [], False: []}
    tokens, shown, took = list[int](), list[int](), list[float]()
    for case in data.cases:
        found = await asked(services, workspace, case.plan, budget)
        right = [cue.score for cue in found.cues if group_of[str(cue.cue_id)] == case.group]
        scores[case.fires].append(max(right, default=0.0))
        tokens.append(found.tokens)
        shown.append(len(found.cues))
        took.append(found.took_ms)
    hits = statistics.fmean(score > 0 for score in scores[True])
    wrong = statistics.fmean(score > 0 for score in scores[False])
    return [
        Figure(name=f"plans that fire the right cue, within {budget} tokens", value=hits, at_least=0.6),
        Figure(name="near misses that fire it", value=wrong),
        Figure(name="area under the curve of the fired score", value=area(scores[True], scores[False]), at_least=0.45),
        Figure(name="tokens spent, mean", value=statistics.fmean(tokens)),
        Figure(name="tokens spent, most", value=max(tokens), at_most=budget),
        Figure(name="cues told, mean", value=statistics.fmean(shown)),
        Figure(name="time, the plan's embedding with it, p50", value=statistics.median(took), unit="ms"),
    ]


def area(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Returns the probability that a right plan scores above a wrong one; a draw counts half."""
    pairs = [(one > other) + (one == other) / 2 for one in right for other in wrong]
    return statistics.fmean(pairs)


async def baselines(provider: EmbeddingProvider, data: Labelled) -> list[Figure]:
    """Returns the figures of the plain cosine of a plan with trigger and lesson."""
    texts = [f"{cue.trigger}\n{cue.lesson}" for cue in data.cues]
    likeness = (
        await provider.embed_documents([case.plan for case in data.cases]) @ (await provider.embed_documents(texts)).T
    )
    figures = [
        Figure(name=f"baseline, cosine: the right cue among the first {most}", value=_among(likeness, data, most))
        for most in (5, 10)
    ]
    best = [max(row[at] for at, group in enumerate(data.groups) if group == case.group)
            for row, case in zip(likeness, data.cases, strict=True)]  # fmt: skip
    right, wrong = ([float(score) for score, case in zip(best, data.cases, strict=True) if case.fires is fires]
                    for fires in (True, False))  # fmt: skip
    return [*figures, Figure(name="baseline, cosine: area under the curve", value=area(right, wrong))]


def _among(likeness: Matrix, data: Labelled, most: int) -> float:
    return statistics.fmean(
        case.group in {data.groups[at] for at in np.argsort(-row)[:most]}
        for row, case in zip(likeness, data.cases, strict=True)
        if case.fires
    )


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
    plans = [case.plan for case in data.cases if case.fires][:ASKED]
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


async def measured(folder: Path, beside: Sequence[Path], budget: int, many: int) -> list[Figure]:
    """Returns all figures of a set of plans."""
    data = with_others(labelled(folder), [labelled(other) for other in beside])
    async with stage() as services:
        figures = await fired(services, data, budget)
        figures += await baselines(services.provider, data)
        if many:
            figures += await large(services, data, many)
    return figures


async def fitted(folders: Sequence[Path]) -> list[Figure]:
    """Fits the weights of the matcher and writes them; returns the figures of sets that a fit has not seen."""
    sets = {folder.name: labelled(folder) for folder in folders}
    async with stage() as services:
        features = await matcher.measured(services, sets)
    figures = []
    for name, item in features.items():
        others = [other for known, other in features.items() if known != name]
        hits, separated = matcher.judged(item, matcher.fitted(others or [item]))
        figures.append(Figure(name=f"{name}, left out: right cue among the first {matcher.FIRST}", value=hits))
        figures.append(Figure(name=f"{name}, left out: area under the curve of the score", value=separated))
    matcher.written(matcher.fitted(list(features.values())), sets)
    return figures


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[SHARED_DATA / LABELLED])
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="sets whose cues are stored as well")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--many", type=int, default=50_000, help="cues of the timed store; 0: it is left out")
    parser.add_argument("--fit", action="store_true", help="fit the weights to the sets, and write them")
    options = parser.parse_args(arguments)
    if options.fit:
        figures = asyncio.run(fitted(options.data))
    else:
        figures = asyncio.run(measured(options.data[0], options.beside, options.budget, options.many))
    report("activation", figures)
    return figures


if __name__ == "__main__":
    main()
