"""Asks the questions of an evaluation of a running store, without a trace: no log, no access counts, no statistics."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from app.db.database import Database
from app.errors import InvalidInput, RerankerUnavailable
from app.index.reembed import OncePerText
from app.models.protocols import EmbeddingProvider, Reranker
from app.models.providers import NoopProvider
from app.retrieval.evaluation import store
from app.retrieval.evaluation.measuring import DEPTHS, Figures, Outcome, figures, outcome
from app.retrieval.evaluation.questions import SUBJECTS, Item, Wanted, about_nothing, known_items
from app.retrieval.rank.presets import CLOSEST, DEFAULT
from app.retrieval.recall import Query
from app.retrieval.search import find
from app.workspaces.workspace import UNMADE, Workspace

AT_ONCE = 4
"""Questions that are asked at the same time: twice as many as the connections that they need."""
LOADINGS = 30
"""Attempts to get the re-ranker; each waits as long as a recall does while the model is being loaded."""


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

    outcomes: Sequence[Outcome]
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
    items: Sequence[Item]
    nothing: Sequence[Item]


class Bench:
    """A workspace that is asked."""

    def __init__(
        self, database: Database, provider: EmbeddingProvider, *, workspace: Workspace, reranker: Reranker | None = None
    ) -> None:
        self.database, self.workspace, self.reranker = database, workspace, reranker
        self._provider = OncePerText(provider)
        self._turns = asyncio.Semaphore(AT_ONCE)

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
                memories = await store.sample(session)
            items, own = known_items(memories, most), []
        if not items:
            raise InvalidInput("questions", "the store's texts give no question; give a file of your own")
        nothing = own or about_nothing({subject: await self._knows(subject) for subject in SUBJECTS})
        spread = nothing if own else nothing[:: math.ceil(len(nothing) / most) or 1]
        return Questions(origin="given" if wanted else "known items", items=items, nothing=spread)

    async def measured(self, ranking: Ranking, items: Sequence[Item], nothing: Sequence[Item]) -> Measured:
        """Asks every question with this ranking."""
        reasons: dict[str, None] = {}
        answers = await asyncio.gather(*(self._asked(ranking, item, reasons) for item in (*items, *nothing)))
        found, junk = answers[: len(items)], answers[len(items) :]
        outcomes = [outcome(hits, item.answers) for hits, item in zip(found, items, strict=True)]
        return Measured(outcomes=outcomes, junk=[bool(hits) for hits in junk], degraded=tuple(reasons))

    async def reranker_refusal(self) -> str | None:
        """Returns the reason why there is no re-ranker; None once it is loaded."""
        if self.reranker is None:
            return "none is configured"
        reason = ""
        for _ in range(LOADINGS):
            try:
                await self.reranker.scores("ready?", ["ready"])
            except RerankerUnavailable as error:
                reason = str(error)
            else:
                return None
        return reason

    async def _asked(self, ranking: Ranking, item: Item, reasons: dict[str, None]) -> list[UUID]:
        workspace = self.workspace
        if ranking.weights is not None:
            workspace = replace(workspace, ranking={"weights": ranking.weights})
        query = Query(text=item.question, k=max(DEPTHS), preset=ranking.preset, rerank=ranking.rerank)
        async with self._turns:
            found = await find(
                self.database,
                self._provider,
                workspace=workspace,
                query=query,
                mask=False,
                reranker=self.reranker if ranking.rerank else None,
            )
        reasons.update((f"{part.arm}: {part.reason}", None) for part in found.degraded if part.silent)
        return [hit.memory.memory_id for hit in found.hits]

    async def _knows(self, subject: str) -> bool:
        """Tells if a memory has a word of the subject."""
        query = Query(text=subject, k=1, preset=CLOSEST.name, rerank=False)
        found = await find(self.database, NoopProvider(), workspace=self.workspace, query=query, mask=False)
        return bool(found.hits)

    async def _item(self, number: int, wanted: Wanted) -> Item:
        named = [
            *(("id", store.BY_ID, id_) for id_ in wanted.ids),
            *(("text", store.BY_TEXT, text) for text in wanted.texts),
            *(("source", store.BY_SOURCE, source) for source in wanted.sources),
        ]
        answers: list[frozenset[UUID]] = []
        group = wanted.question
        async with self.database.session(self.workspace, transaction=False) as session:
            for name, condition, value in named:
                live = await store.live_among(session, condition, value)
                if not live:
                    raise InvalidInput(f"question {number}", f"no live memory has the {name} {str(value)[:100]!r}")
                group = group if answers else str(min(live.values()))
                answers.append(frozenset(live))
        return Item(question=wanted.question, answers=tuple(answers), group=group)
