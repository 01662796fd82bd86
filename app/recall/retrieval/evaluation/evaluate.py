"""The verbs that measure a workspace's rankings, fit its weights, and take them away."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, Reranker
from app.recall.retrieval.evaluation import questions
from app.recall.retrieval.evaluation.bench import Bench, Figures, Gain, Measured, Questions, Ranking, gain
from app.recall.retrieval.evaluation.questions import AnsweredQuestion, Wanted
from app.recall.retrieval.rank.presets import DEFAULT, PRESETS, weights_of, with_weights
from app.storage.tenants import store as workspaces
from app.storage.tenants.workspace import Workspace

FUSION, SHIFT = "blend.lexical", 0.2
"""The weight of words against meaning, and the change of it that an evaluation tries."""
STEPS = (0.5, 0.25)
"""Shares by which a fit raises and lowers each weight, in this order."""
_LEAST_GAIN = 0.001
"""Gain of the fitted part's score that a step must bring."""
_LEAST_QUESTIONS = 10
"""Questions from which a ranking can be called better: the resamples of a single one are all alike."""
LEAST_PART = 20
"""Least questions of each part of a fit: of fewer, a single one decides."""

OnProgress = Callable[[str], None]
"""Called with what is measured next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A ranking with its figures."""

    name: str
    figures: Figures
    gain: Gain | None
    """The difference from the workspace's present ranking; None for that itself."""
    degraded: tuple[str, ...] = ()

    def is_better(self, present: "Row") -> bool:
        """Tells if it is surely better than the present ranking, without more junk."""
        return bool(self.gain and self.gain.is_sure) and (self.figures.junk or 0) <= (present.figures.junk or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The outcome of a fit; the figures are of the part that it did not see."""

    questions: int
    left_out: int
    before: Figures
    after: Figures
    gain: Gain
    weights: Mapping[str, float]
    """The weights that differ from those that every workspace has."""
    stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The figures of a workspace's rankings, the present one first."""

    workspace: str
    origin: str
    questions: int
    nothing: int
    rows: tuple[Row, ...]
    better: str | None
    """The ranking that would do better; None if none surely does."""
    reranker: str | None
    """The reason why the re-ranker was not measured; None if it was."""
    fit: Fit | None = None


async def evaluate(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace: Workspace,
    wanted: Sequence[Wanted] = (),
    most: int = 200,
    reranker: Reranker | None = None,
    fit: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> Evaluation:
    """Measures the workspace's rankings; with `fit`, fits weights of its own and stores them if they gain.

    Raises:
        InvalidInput: a question's answer is not in the store, or there are too few questions.
    """
    bench = Bench(database, provider, workspace=workspace, reranker=reranker)
    asked = await bench.questions(wanted, most)
    parts = await _parts_of_fit(bench, asked) if fit else None
    refusal = await bench.reranker_refusal()
    rows: list[Row] = []
    present: Measured | None = None
    for ranking in _rankings(workspace, reranks=refusal is None):
        on_progress(ranking.name)
        found = await bench.measure_ranking(ranking, asked.items, asked.nothing)
        compared = None if present is None else gain(present.outcomes, found.outcomes)
        present = present or found
        rows.append(Row(name=ranking.name, figures=found.figures, gain=compared, degraded=found.degraded))
    likely = rows[1:] if len(asked.items) >= _LEAST_QUESTIONS else []
    better = max((row for row in likely if row.is_better(rows[0])), key=lambda row: row.figures.score, default=None)
    return Evaluation(
        workspace=workspace.name,
        origin=asked.origin,
        questions=len(asked.items),
        nothing=len(asked.nothing),
        rows=tuple(rows),
        better=better.name if better else None,
        reranker=refusal,
        fit=await _fit_and_judge(bench, asked, parts, on_progress) if parts else None,
    )


async def forget_fit(database: Database, *, workspace: Workspace) -> Workspace:
    """Takes a workspace's own weights away, so that it ranks as every workspace does; returns it without them."""
    async with database.session(workspace) as session:
        await workspaces.set_ranking(session, {})
    return replace(workspace, ranking={})


def _rankings(workspace: Workspace, *, reranks: bool) -> Iterator[Ranking]:
    own = weights_of(with_weights(DEFAULT, workspace.weights))
    yield Ranking(DEFAULT.name)
    if workspace.weights:
        yield Ranking("default as shipped", weights={})
    if reranks:
        yield Ranking("default, re-ranked", rerank=True)
    shifts = (("default, more words", SHIFT), ("default, more meaning", -SHIFT))
    for name, change in shifts if FUSION in own else ():
        yield Ranking(name, weights=own | {FUSION: _share(own[FUSION] + change)})
    yield from (Ranking(name, preset=name) for name in PRESETS if name != DEFAULT.name)


async def _parts_of_fit(bench: Bench, asked: Questions) -> tuple[list[AnsweredQuestion], list[AnsweredQuestion]]:
    """Returns the questions and the hits that people liked in the two parts of a fit.

    Raises:
        InvalidInput: they are too few.
    """
    async with bench.database.session(bench.workspace, transaction=False) as session:
        seen, left = _parts([*asked.items, *await questions.praised_queries(session)])
    if min(len(seen), len(left)) < LEAST_PART:
        reason = (
            f"a fit needs {LEAST_PART} in each part; it has {len(seen)} and {len(left)}: give more, or ask for more"
        )
        raise InvalidInput("questions", f"{reason} (--most)")
    return seen, left


async def _fit_and_judge(
    bench: Bench,
    asked: Questions,
    parts: tuple[Sequence[AnsweredQuestion], Sequence[AnsweredQuestion]],
    on_progress: OnProgress,
) -> Fit:
    """Fits on one part of the questions and of the hits that people liked, and judges on the other part."""
    seen, left = parts
    nothing_seen, nothing_left = _parts(asked.nothing)
    start = weights_of(with_weights(DEFAULT, bench.workspace.weights))
    weights = await _climb_weights(bench, start, seen, nothing_seen, on_progress)
    before = await bench.measure_ranking(Ranking(DEFAULT.name), left, nothing_left)
    after = await bench.measure_ranking(Ranking("fitted", weights=weights), left, nothing_left)
    shipped = weights_of(DEFAULT)
    found = Fit(
        questions=len(seen),
        left_out=len(left),
        before=before.figures,
        after=after.figures,
        gain=(gained := gain(before.outcomes, after.outcomes)),
        weights={name: value for name, value in weights.items() if value != shipped[name]},
        stored=gained.is_sure and (after.figures.junk or 0) <= (before.figures.junk or 0),
    )
    if found.stored:
        await _store(bench, found)
    return found


async def _store(bench: Bench, fit: Fit) -> None:
    ranking = {
        "weights": fit.weights,
        "fitted_at": datetime.now(UTC),
        "questions": fit.questions,
        "left_out": fit.left_out,
        "before": fit.before.score,
        "after": fit.after.score,
        "certainty": fit.gain.certainty,
    }
    async with bench.database.session(bench.workspace) as session:
        await workspaces.set_ranking(session, ranking)


async def _climb_weights(
    bench: Bench,
    start: Mapping[str, float],
    items: Sequence[AnsweredQuestion],
    nothing: Sequence[AnsweredQuestion],
    on_progress: OnProgress,
) -> Mapping[str, float]:
    """Changes one weight after the other, up and down, and keeps each change that gains and brings no more junk."""
    weights = dict(start)
    found = (await bench.measure_ranking(Ranking("start", weights=weights), items, nothing)).figures
    for step in STEPS:
        for name in sorted(weights):
            on_progress(f"fit: {name} by {step:.0%}, score {found.score:.4f}")
            for factor in (1 + step, 1 - step):
                value = weights[name] * factor
                tried = Ranking("trial", weights=weights | {name: _share(value) if name == FUSION else value})
                score = (await bench.measure_ranking(tried, items, ())).figures.score
                if tried.weights == weights or score < found.score + _LEAST_GAIN:
                    continue
                trial = (await bench.measure_ranking(tried, items, nothing)).figures
                if (trial.junk or 0) <= (found.junk or 0):
                    weights, found = dict(tried.weights or {}), trial
                    break
    return weights


def _parts(items: Sequence[AnsweredQuestion]) -> tuple[list[AnsweredQuestion], list[AnsweredQuestion]]:
    """Divides questions into two parts by a hash of their source, so that a source is in one part only."""
    seen, left = list[AnsweredQuestion](), list[AnsweredQuestion]()
    for item in items:
        (left if zlib.crc32(item.group.encode()) % 2 else seen).append(item)
    return seen, left


def _share(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 4)
