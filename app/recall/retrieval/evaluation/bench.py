"""Asks the questions of an evaluation of a running store, without a trace: no log, no access counts, no statistics."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.errors import InvalidInput, RerankerUnavailable
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, Reranker
from app.foundation.models.providers import NoopProvider
from app.recall.retrieval.evaluation import questions
from app.recall.retrieval.evaluation.questions import SUBJECTS, AnsweredQuestion, Wanted, about_nothing, known_items
from app.recall.retrieval.rank.presets import CLOSEST, DEFAULT
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.index.reembed import OncePerText
from app.storage.tenants.workspace import UNMADE, Workspace

DEPTHS = (1, 5, 10)
"""The numbers of hits among which an answer is looked for."""
_JUDGED = 5
"""The depth that counts in a comparison, with the reciprocal rank."""
RESAMPLES, SEED = 2_000, 7
_SURE = 0.95
"""Share of the resamples in which a difference must be a gain."""
_LEAST = 0.005
"""Least gain of the score that counts: half a point, below which no idea was kept in the ranking either."""
_AT_ONCE = 4
"""Questions that are asked at the same time: twice as many as the connections that they need."""
_LOADINGS = 30
"""Attempts to get the re-ranker; each waits as long as a recall does while the model is being loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOutcome:
    """The answer to one question."""

    recall: Mapping[int, float]
    """Share of what should be found among the first hits, by their number."""
    reciprocal_rank: float
    """1 by the place of the first right hit; 0 without one."""

    @property
    def score(self) -> float:
        """The mean of both, by which two rankings are compared."""
        return (self.recall[_JUDGED] + self.reciprocal_rank) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The means over all questions."""

    recall: Mapping[int, float]
    mrr: float
    junk: float | None
    """Share of the questions about nothing that got a hit; None if none was asked."""
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The difference of two rankings over the same questions."""

    mean: float
    """The mean difference of the score."""
    certainty: float
    """Share of resamples of the questions (a paired bootstrap) in which the second ranking is better."""

    @property
    def is_sure(self) -> bool:
        """True if it is better, beyond the chance of these questions."""
        return self.mean >= _LEAST and self.certainty >= _SURE


class Ranking(NamedTuple):
    """A way of ranking that is measured."""

    name: str
    preset: str = DEFAULT.name
    weights: Mapping[str, float] | None = None
    """Weights of the preset `default` in place of the workspace's; None for these, empty for those of all."""
    rerank: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The outcomes of a ranking, question by question."""

    outcomes: Sequence[QuestionOutcome]
    junk: Sequence[bool]
    degraded: tuple[str, ...]
    """Reasons for which an arm was left out of an answer."""

    @property
    def figures(self) -> Figures:
        """The means."""
        return figures(self.outcomes, self.junk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The questions of an evaluation."""

    origin: str
    """`given`, or `known items` made from the store."""
    items: Sequence[AnsweredQuestion]
    nothing: Sequence[AnsweredQuestion]


class Bench:
    """A workspace that is asked."""

    def __init__(
        self, database: Database, provider: EmbeddingProvider, *, workspace: Workspace, reranker: Reranker | None = None
    ) -> None:
        self.database, self.workspace, self.reranker = database, workspace, reranker
        self._provider = OncePerText(provider)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def questions(self, wanted: Sequence[Wanted], most: int) -> Questions:
        """Returns a user's questions with their answers, or known items; and questions about nothing.

        Raises:
            InvalidInput: no memory is what a question names as its answer, or the store gives no questions.
        """
        if self.workspace.workspace_id == UNMADE:
            raise InvalidInput("workspace", f"{self.workspace.name!r} holds no memories")
        if wanted:
            given = [await self._item(number, line) for number, line in enumerate(wanted, start=1)]
            items, own = [item for item in given if item.answers], [item for item in given if not item.answers]
        else:
            async with self.database.session(self.workspace, transaction=False) as session:
                memories = await questions.sample(session)
            items, own = known_items(memories, most), []
        if not items:
            raise InvalidInput("questions", "the store's texts give no question; give a file of your own")
        nothing = own or about_nothing({subject: await self._knows(subject) for subject in SUBJECTS})
        spread = nothing if own else nothing[:: math.ceil(len(nothing) / most) or 1]
        return Questions(origin="given" if wanted else "known items", items=items, nothing=spread)

    async def measure_ranking(
        self, ranking: Ranking, items: Sequence[AnsweredQuestion], nothing: Sequence[AnsweredQuestion]
    ) -> Measured:
        """Asks every question with this ranking."""
        reasons: dict[str, None] = {}
        answers = await asyncio.gather(*(self._ask_question(ranking, item, reasons) for item in (*items, *nothing)))
        found, junk = answers[: len(items)], answers[len(items) :]
        outcomes = [outcome(hits, item.answers) for hits, item in zip(found, items, strict=True)]
        return Measured(outcomes=outcomes, junk=[bool(hits) for hits in junk], degraded=tuple(reasons))

    async def reranker_refusal(self) -> str | None:
        """Returns the reason why there is no re-ranker; None once it is loaded."""
        if self.reranker is None:
            return "none is configured"
        reason = ""
        for _ in range(_LOADINGS):
            try:
                await self.reranker.scores("ready?", ["ready"])
            except RerankerUnavailable as error:
                reason = str(error)
            else:
                return None
        return reason

    async def _ask_question(self, ranking: Ranking, item: AnsweredQuestion, reasons: dict[str, None]) -> list[UUID]:
        workspace = self.workspace
        if ranking.weights is not None:
            workspace = replace(workspace, ranking={"weights": ranking.weights})
        query = Query(text=item.question, k=max(DEPTHS), preset=ranking.preset, rerank=ranking.rerank)
        async with self._turns:
            reranker = self.reranker if ranking.rerank else None
            retrieval = Retrieval(
                database=self.database, provider=self._provider, reranker=reranker, mask_secrets=False
            )
            found = await retrieval.find(workspace, query)
        reasons.update((f"{part.arm}: {part.reason}", None) for part in found.degraded if part.silent)
        return [hit.memory.memory_id for hit in found.hits]

    async def _knows(self, subject: str) -> bool:
        """Tells if a memory has a word of the subject."""
        query = Query(text=subject, k=1, preset=CLOSEST.name, rerank=False)
        retrieval = Retrieval(database=self.database, provider=NoopProvider(), mask_secrets=False)
        found = await retrieval.find(self.workspace, query)
        return bool(found.hits)

    async def _item(self, number: int, wanted: Wanted) -> AnsweredQuestion:
        named = [
            *(("id", questions.BY_ID, id_) for id_ in wanted.ids),
            *(("text", questions.BY_TEXT, text) for text in wanted.texts),
            *(("source", questions.BY_SOURCE, source) for source in wanted.sources),
        ]
        answers: list[frozenset[UUID]] = []
        group = wanted.question
        async with self.database.session(self.workspace, transaction=False) as session:
            for name, condition, value in named:
                live = await questions.live_among(session, condition, value)
                if not live:
                    raise InvalidInput(f"question {number}", f"no live memory has the {name} {str(value)[:100]!r}")
                group = group if answers else str(min(live.values()))
                answers.append(frozenset(live))
        return AnsweredQuestion(question=wanted.question, answers=tuple(answers), group=group)


def outcome(hits: Sequence[UUID], answers: Sequence[frozenset[UUID]]) -> QuestionOutcome:
    """Returns the outcome of a question from its hits, best first."""
    wanted = frozenset().union(*answers)
    first = next((place for place, memory_id in enumerate(hits, start=1) if memory_id in wanted), None)
    shares = {depth: sum(not answer.isdisjoint(hits[:depth]) for answer in answers) / len(answers) for depth in DEPTHS}
    return QuestionOutcome(recall=shares, reciprocal_rank=1 / first if first else 0.0)


def figures(outcomes: Sequence[QuestionOutcome], junk: Sequence[bool]) -> Figures:
    """Returns the means."""
    return Figures(
        recall={depth: _mean([item.recall[depth] for item in outcomes]) for depth in DEPTHS},
        mrr=_mean([item.reciprocal_rank for item in outcomes]),
        junk=_mean(junk) if junk else None,
        score=_mean([item.score for item in outcomes]),
    )


def gain(before: Sequence[QuestionOutcome], after: Sequence[QuestionOutcome]) -> Gain:
    """Compares two rankings question by question."""
    differences = np.array([new.score - old.score for old, new in zip(before, after, strict=True)])
    drawn = np.random.default_rng(SEED).integers(0, len(differences), (RESAMPLES, len(differences)))
    return Gain(mean=float(differences.mean()), certainty=float((differences[drawn].mean(axis=1) > 0).mean()))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
