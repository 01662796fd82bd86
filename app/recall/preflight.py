"""Checks a plan before anything of it is done: its steps get a verdict each, by what speaks against them."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import Literal, TypeAlias
from uuid import UUID

from msgspec import Struct, structs

from app.errors import check
from app.foundation.db.database import Database
from app.foundation.models.protocols import TokenCounter
from app.foundation.safety.secrets import masked_values
from app.foundation.text.data import unstorable
from app.foundation.text.prose import ITEM
from app.foundation.text.words import content_words, in_one_line
from app.intake.cases.cases import CaseHistory
from app.intake.cases.service import Cases, score_range
from app.recall.context.blocks import fence_around
from app.recall.cues import render
from app.recall.cues.activate import DEFAULT_BUDGET, Activations, Firing, PlanAsked, check_plan, files_of, log_firing
from app.recall.cues.arbitrate import ShownCue
from app.recall.cues.review import store as reviews
from app.recall.cues.review.rules import HARMFUL
from app.recall.retrieval.judged import case_of_plan, is_about, open_issues
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage import effects
from app.storage.effects import MemoryEffect
from app.storage.memories.memory import new_id
from app.storage.tenants.workspace import Workspace

Verdict: TypeAlias = Literal["clear", "look again", "stop and ask"]
_CLEAR: Verdict = "clear"
_LOOK: Verdict = "look again"
_STOP: Verdict = "stop and ask"
_ORDER: Sequence[Verdict] = (_CLEAR, _LOOK, _STOP)
ISSUE, SCORING = "issue", "scoring"
HEADING = "## Check of the plan"
_FEWEST_WORDS = 5
"""Words of a line below which it says nothing: `- Step 2: stop and ask …`."""
_STEP_CHARACTERS = 80
MOST_STEPS = 30
"""Steps that are looked at one by one; the last one has the rest of a longer plan."""
_FEWEST_ITEMS = 2
"""List items that make a plan a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEvidence:
    """Something that speaks to a step, or to the whole plan."""

    kind: str
    """The kind of a cue, `issue`, `scoring` for what the judge's scores show, or `harmful` for a memory that is
    estimated to lower the scores of later runs."""
    statement: str
    reason: str = ""
    verdict: Verdict = _LOOK
    memory_id: UUID | None = None
    """The cue, or the harmful memory; None for what a case's judgements say."""
    issue_id: UUID | None = None
    score: float | None = None
    """The probability that a cue applies."""


class PlanStep(Struct, frozen=True, kw_only=True):
    """A step of a plan with its verdict."""

    number: str
    """`3`, or `3a` for a step that is to come before step 3 goes on."""
    text: str
    added: bool = False
    """True for a step that the plan does not have and should."""
    evidence: tuple[PlanEvidence, ...] = ()
    verdict: Verdict = _CLEAR
    """The gravest of its evidence."""

    def __post_init__(self) -> None:
        """Finds the verdict."""
        structs.force_setattr(self, "verdict", gravest(self.evidence))


def steps_of(plan: str) -> tuple[str, ...]:
    """Returns the steps of a plan: the items of its list, or its paragraphs where it has none.

    A paragraph is not split: the thresholds of activations were fitted to plans of one to three sentences.
    """
    lines = plan.strip().splitlines()
    if sum(bool(ITEM.match(line)) for line in lines) >= _FEWEST_ITEMS:
        parts = _items(lines)
    else:
        parts = [" ".join(part.split()) for part in "\n".join(line.rstrip() for line in lines).split("\n\n")]
    steps = [part for part in parts if part] or [plan.strip()]
    last = " ".join(steps[MOST_STEPS - 1 :])
    return (*steps[: MOST_STEPS - 1], *([last] if last else []))


def _items(lines: list[str]) -> list[str]:
    """Returns the items of a list. A line below an item belongs to it; lines before the first one are no step."""
    found: list[str] = []
    for line in lines:
        if ITEM.match(line):
            found.append(ITEM.sub("", line).strip())
        elif found:
            found[-1] = f"{found[-1]} {line.strip()}".strip()
    return found


def gravest(evidence: Sequence[PlanEvidence]) -> Verdict:
    """Returns the gravest verdict; clear where nothing speaks against it."""
    return max((item.verdict for item in evidence), key=_ORDER.index, default=_CLEAR)


def of_cue(shown: ShownCue) -> PlanEvidence:
    """Returns a cue as evidence: a severe one, and one whose rejected way the step takes, stop the plan."""
    cue, against = shown.fired.cue, shown.contradiction
    stops = against is not None or render.checkpoint(cue)
    return PlanEvidence(
        kind=cue.kind,
        statement=in_one_line(render.imperative(cue)).removeprefix("Then: ") if against is None else against.statement,
        reason=render.reason(cue) if against is None else "",
        verdict=_STOP if stops else _LOOK,
        memory_id=cue.cue_id,
        score=shown.fired.score,
    )


def of_harmful(memory: MemoryEffect) -> PlanEvidence:
    """Returns a memory that is called harmful as evidence against a plan for which it would be recalled.

    Its title is not trusted, so it stands in a fence.
    """
    title = in_one_line(memory.title)[:_STEP_CHARACTERS]
    fence, kind = fence_around(title), "turn" if memory.kind == "message" else memory.kind
    return PlanEvidence(
        kind=HARMFUL,
        statement=(
            f"An estimate that nobody has reviewed yet: runs that were shown the {kind} {fence} {title} {fence}"
            " scored lower"
        ),
        reason=memory.why,
        memory_id=memory.memory_id,
    )


def _with_added(steps: Sequence[PlanStep]) -> Iterator[PlanStep]:
    """Yields the steps, and after each that stops the plan the steps that are to be taken first."""
    for step in steps:
        yield step
        for number, item in _number_evidence(step):
            if item.verdict == _STOP:
                text = f"Ask before going on with step {step.number}: {item.statement}"
                yield PlanStep(number=number, text=text, added=True, evidence=(item,))


def _number_evidence(step: PlanStep) -> Iterator[tuple[str, PlanEvidence]]:
    """Yields the evidence of a step, each with the number of the step, or of the one that should be added for it."""
    letters = iter(ascii_lowercase)
    for item in step.evidence:
        yield f"{step.number}{next(letters) if item.verdict == _STOP else ''}", item


def _once_each(steps: Sequence[PlanStep]) -> list[PlanStep]:
    """Returns the steps with each cue at the step alone to which it most likely applies."""
    scored = [
        (item.score or 0.0, -place, item.memory_id)
        for place, step in enumerate(steps)
        for item in step.evidence
        if item.memory_id is not None
    ]
    # The last of a cue's places counts: the likeliest, and of two alike the first.
    places: dict[UUID | None, int] = {memory_id: -before for _, before, memory_id in sorted(scored)}
    return [
        structs.replace(
            step, evidence=tuple(item for item in step.evidence if places.get(item.memory_id, place) == place)
        )
        for place, step in enumerate(steps)
    ]


def markdown_of(steps: Sequence[PlanStep], of_plan: Sequence[PlanEvidence], budget: int, counter: TokenCounter) -> str:
    """Returns the section of what is not clear, within a budget; empty where all is clear.

    The gravest are shown, the first of them cut where it does not fit, and the number of the others.
    """
    rows = [(item.verdict, _line(step, number, item)) for step in steps for number, item in _number_evidence(step)]
    rows += [(item.verdict, f"- The whole plan: {_sentence_of(item)}") for item in of_plan]
    if all(verdict == _CLEAR for verdict, _ in rows):
        return ""
    texts = [text for _, text in rows]
    order = sorted(range(len(rows)), key=lambda at: (-_ORDER.index(rows[at][0]), at))
    for shown in range(len(rows), 0, -1):
        made = _section(texts, order[:shown])
        if counter.count(made) <= budget:
            return made
    words = texts[order[0]].split(" ")
    for length in range(len(words) - 1, _FEWEST_WORDS, -1):
        texts[order[0]] = " ".join(words[:length]) + " …"
        made = _section(texts, order[:1])
        if counter.count(made) <= budget:
            return made
    return ""


def _section(texts: Sequence[str], shown: Sequence[int]) -> str:
    left = len(texts) - len(shown)
    more = [f"- And {left} more: ask again with a larger budget."] if left else []
    return "\n".join([HEADING, "", *(texts[place] for place in sorted(shown)), *more]) + "\n"


def _line(step: PlanStep, number: str, item: PlanEvidence) -> str:
    text = step.text if len(step.text) <= _STEP_CHARACTERS else f"{step.text[:_STEP_CHARACTERS]}…"
    if item.verdict == _STOP:
        return f"- Step {number}: stop and ask before step {step.number} “{text}”. {_sentence_of(item)}"
    return f"- Step {number} “{text}”: {item.verdict}. {_sentence_of(item)}"


def _sentence_of(item: PlanEvidence) -> str:
    return f"{item.statement.rstrip('.')}." + (f" Because: {item.reason.rstrip('.')}." if item.reason else "")


_RECALLED = 10
"""Memories that a recall for the plan shows, as a search does by default."""


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
    """The case of the plan's run, or that the plan names; empty if it has none."""
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
        check(unstorable({"task_type": asked.task_type}))
        started = time.perf_counter()
        texts, counter = steps_of(asked.plan.plan), self.activations.counter
        firings, history, harmful = await asyncio.gather(
            self._fire(workspace, asked.plan, texts), self._case(workspace, asked), self._harmful(workspace, asked.plan)
        )
        steps = [
            PlanStep(number=str(number), text=text, evidence=tuple(map(of_cue, firing.shown)))
            for number, (text, firing) in enumerate(zip(texts, firings, strict=True), start=1)
        ]
        if history is not None:
            steps, of_case = _with_case(steps, history)
            harmful = [*of_case, *harmful]
        of_plan, steps = tuple(harmful), _once_each(steps)
        markdown = markdown_of(steps, of_plan, asked.plan.budget_tokens, counter)
        tokens = counter.count(markdown)
        return PlanCheck(
            verdict=gravest([*of_plan, *(item for step in steps for item in step.evidence)]),
            steps=tuple(_with_added(steps)),
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
        """Returns the history of the case of the plan's run, or that the plan, its task type or an issue names."""
        found = await case_of_plan(
            self.cases, workspace, asked.plan.plan, run_id=asked.plan.run_id, task_type=asked.task_type
        )
        return None if found is None else found.history

    async def _harmful(self, workspace: Workspace, asked: PlanAsked) -> list[PlanEvidence]:
        """Returns the harmful memories that nobody has reviewed and that a recall for the plan would show.

        There are none for a past moment: only today's effects are stored.
        """
        if asked.as_of is not None:
            return []
        async with self.database.session(workspace, transaction=False) as session:
            reviewed = await reviews.decided_memories(session, HARMFUL)
            flagged = await effects.of_memories(session, flagged=True)
        known = [item for item in flagged if item.memory_id not in reviewed]
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


def _with_case(steps: Sequence[PlanStep], history: CaseHistory) -> tuple[list[PlanStep], list[PlanEvidence]]:
    """Returns the steps with the open issues that are about them, and what is about the whole plan: the others, the
    worst first, and what the case's scores show."""
    found, of_plan = list(steps), list[PlanEvidence]()
    words = [content_words(step.text) for step in steps]
    for issue in open_issues(history):
        item = PlanEvidence(kind=ISSUE, statement=issue.statement, issue_id=issue.issue_id)
        place = next((at for at, said in enumerate(words) if is_about(issue.title, said)), None)
        if place is None:
            of_plan.append(item)
        else:
            found[place] = structs.replace(found[place], evidence=(*found[place].evidence, item))
    if pattern := score_range(history):
        of_plan.append(PlanEvidence(kind=SCORING, statement=f"{history.title}: {pattern}", verdict=_CLEAR))
    return found, of_plan
