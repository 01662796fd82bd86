"""The verb that checks a plan before anything of it is done."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.errors import InvalidInput, NotFound, check
from app.foundation.db.database import Database
from app.foundation.safety.secrets import masked_values
from app.foundation.text.faults import unstorable
from app.intake.cases.cases import CaseHistory
from app.intake.cases.service import Cases
from app.recall.cues.activate import DEFAULT_BUDGET, Activations, Firing, PlanAsked, check_plan, files_of, log_firing
from app.recall.cues.review import store as reviews
from app.recall.cues.review.rules import HARMFUL
from app.recall.preflight.verdict import (
    ISSUE,
    PlanEvidence,
    PlanStep,
    Verdict,
    gravest,
    is_about,
    markdown_of,
    of_case,
    of_cue,
    of_harmful,
    once_each,
    steps_of,
    with_added,
)
from app.recall.retrieval.rank.needs import case_of
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage import effects
from app.storage.memories.memory import NAME_LIMIT, new_id
from app.storage.tenants.workspace import NOBODY, Workspace

_RECALLED = 10
"""Memories that a recall for the plan shows, as a search does by default."""
_MOST_CASES = 200
"""Cases, the latest judged, among which the plan's is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAsked:
    """A plan to check."""

    plan: PlanAsked
    task_type: str = ""
    """It names the case where the plan does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """The check of a plan."""

    verdict: Verdict
    """The gravest of all."""
    steps: tuple[PlanStep, ...]
    """All steps in their order, and those that should be added."""
    evidence: tuple[PlanEvidence, ...]
    """The evidence that is about the whole plan."""
    case: str
    """The test case that the plan names; empty if it names none."""
    markdown: str
    """A section of the steps that are not clear, within the budget; empty where all is clear."""
    tokens: int
    activation_id: UUID | None
    degraded: str
    """The reason why meaning was not compared; empty if it was."""
    took_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflights:
    """Checks plans against what a database knows, without a language model."""

    activations: Activations
    cases: Cases
    retrieval: Retrieval

    @property
    def database(self) -> Database:
        """The database that they all read."""
        return self.activations.database

    async def check(self, workspace: Workspace, asked: CheckAsked) -> PlanCheck:
        """Returns a verdict for each step of a plan: the cues that it fires, and what its test case is faulted for.

        Harmful memories that nobody has reviewed and that a recall for the plan would show are evidence on all of it.

        It is logged as one activation, so that a run's outcome is noted for the cues that were shown.

        Raises:
            InvalidInput: the plan, the budget or the task type is not valid.
            DatabaseUnavailable: the database does not answer.
        """
        check_plan(asked.plan)
        _check_task_type(asked.task_type)
        started = time.perf_counter()
        texts, counter = steps_of(asked.plan.plan), self.activations.counter
        firings, history, harmful = await asyncio.gather(
            self._fire(workspace, asked.plan, texts), self._case(workspace, asked), self._harmful(workspace, asked.plan)
        )
        steps = [
            PlanStep(number=str(number), text=text, evidence=tuple(map(of_cue, firing.shown)))
            for number, (text, firing) in enumerate(zip(texts, firings, strict=True), start=1)
        ]
        of_plan: tuple[PlanEvidence, ...] = ()
        if history is not None:
            steps, of_plan = _with_case(steps, history)
        of_plan = (*of_plan, *harmful)
        steps = once_each(steps)
        markdown = markdown_of(steps, of_plan, asked.plan.budget_tokens, counter)
        tokens = counter.count(markdown)
        return PlanCheck(
            verdict=gravest([item for step in steps for item in step.evidence] + list(of_plan)),
            steps=tuple(with_added(steps)),
            evidence=of_plan,
            case="" if history is None else history.title,
            markdown=markdown,
            tokens=tokens,
            activation_id=await self._log(workspace, asked.plan, firings, tokens),
            degraded=next((item.activation.degraded for item in firings if item.activation.degraded), ""),
            took_ms=round((time.perf_counter() - started) * 1_000, 3),
        )

    async def _fire(self, workspace: Workspace, asked: PlanAsked, texts: Sequence[str]) -> list[Firing]:
        """Returns what each step fires. A file that no step names is one of all of them."""
        named = [set(files_of(PlanAsked(plan=text))) for text in texts]
        own = [tuple(name for name in asked.files if any(name.endswith(part) for part in parts)) for parts in named]
        others = tuple(name for name in asked.files if not any(name in files for files in own))
        plans = [
            replace(asked, plan=text, files=(*files, *others), trial=True, budget_tokens=DEFAULT_BUDGET)
            for text, files in zip(texts, own, strict=True)
        ]
        return await self.activations.fire(workspace, plans)

    async def _case(self, workspace: Workspace, asked: CheckAsked) -> CaseHistory | None:
        """Returns the history of the test case that the plan, or its task type, names."""
        known = workspace.of(NOBODY)
        names = [item.case_name for item in await self.cases.page(known, limit=_MOST_CASES)]
        found = case_of(f"{asked.plan.plan} {asked.task_type}", names, {})
        if found is None:
            return None
        try:
            return await self.cases.get(known, found.name)
        except NotFound:
            return None  # it was deleted meanwhile

    async def _harmful(self, workspace: Workspace, asked: PlanAsked) -> list[PlanEvidence]:
        """Returns the harmful memories that nobody has reviewed and that a recall for the plan would show.

        There are none for a past moment: only today's effects are stored.
        """
        if asked.as_of is not None:
            return []
        async with self.database.session(workspace, transaction=False) as session:
            reviewed = await reviews.decided_memories(session, HARMFUL)
            known = [
                item for item in await effects.of_memories(session, flagged=True) if item.memory_id not in reviewed
            ]
        if not known:
            return []
        query = Query(text=asked.plan, k=_RECALLED, agent=asked.agent)
        found = await self.retrieval.find(workspace, query, suspects=False, passages=True)
        recalled = {hit.memory.memory_id for hit in found.hits[:_RECALLED]}
        return [of_harmful(item) for item in known if item.memory_id in recalled]

    async def _log(self, workspace: Workspace, asked: PlanAsked, firings: Sequence[Firing], tokens: int) -> UUID | None:
        """Logs the check as one activation; returns its id, and None for a trial."""
        if not workspace.workspace_id or asked.trial:
            return None
        shown = {item.fired.cue.cue_id: item for firing in firings for item in firing.shown}
        activation = replace(firings[0].activation, activation_id=new_id(), tokens=tokens)
        plan = masked_values(asked) if self.activations.mask_secrets else asked
        async with self.database.session(workspace, transaction=False) as session:
            await log_firing(session, Firing(asked=plan, activation=activation, shown=list(shown.values())))
        return activation.activation_id


def _check_task_type(task_type: str) -> None:
    check(unstorable({"task_type": task_type}))
    if len(task_type) > NAME_LIMIT:
        raise InvalidInput("task_type", f"has {len(task_type):,} characters; at most {NAME_LIMIT:,} are taken")


def _with_case(steps: Sequence[PlanStep], history: CaseHistory) -> tuple[list[PlanStep], tuple[PlanEvidence, ...]]:
    """Returns the steps with the issues that are about them, and what is about the whole plan."""
    issues = {issue.issue_id: issue for issue in history.issues}
    found, of_plan = list(steps), list[PlanEvidence]()
    for item in of_case(history):
        issue = issues.get(item.issue_id) if item.kind == ISSUE and item.issue_id else None
        places = [at for at, step in enumerate(found) if issue is not None and is_about(issue, step.text)]
        for at in places[:1]:
            found[at] = replace(found[at], evidence=(*found[at].evidence, item))
        if not places:
            of_plan.append(item)
    return found, tuple(of_plan)
