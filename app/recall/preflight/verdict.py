"""Splits a plan into its steps, and gives each a verdict by what speaks against it. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import Literal, TypeAlias
from uuid import UUID

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.prose import ITEM
from app.foundation.text.words import content_words, in_one_line
from app.intake.cases.cases import CaseHistory, CaseIssue
from app.intake.cases.judgement import REOPENED
from app.intake.cases.service import issue_line, score_range
from app.recall.context.blocks import fence_around
from app.recall.cues import render
from app.recall.cues.arbitrate import ShownCue
from app.storage.effects import MemoryEffect

Verdict: TypeAlias = Literal["clear", "look again", "stop and ask"]
_CLEAR: Verdict = "clear"
_LOOK: Verdict = "look again"
_STOP: Verdict = "stop and ask"
_ORDER: Sequence[Verdict] = (_CLEAR, _LOOK, _STOP)
ISSUE, SCORING, HARMFUL = "issue", "scoring", "harmful"
HEADING = "## Check of the plan"
_SHARED_WORDS = 2
"""Content words that an issue's title and a step share at least where the issue is about the step."""
_RECURRING = 2
"""Versions from which an open issue recurs."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """A step of a plan with its verdict."""

    number: str
    """`3`, or `3a` for a step that is to come before step 3 goes on."""
    text: str
    added: bool = False
    """True for a step that the plan does not have and should."""
    evidence: tuple[PlanEvidence, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The gravest of its evidence."""
        return gravest(self.evidence)


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


def of_case(history: CaseHistory) -> Iterator[PlanEvidence]:
    """Yields the open issues of a case that recur, the worst first, and what its scores show."""
    for issue in history.issues:
        if issue.is_open and (len(issue.versions) >= _RECURRING or issue.status == REOPENED):
            yield PlanEvidence(kind=ISSUE, statement=issue_line(issue).removeprefix("- "), issue_id=issue.issue_id)
    if pattern := score_range(history):
        yield PlanEvidence(kind=SCORING, statement=f"{history.title}: {pattern}", verdict=_CLEAR)


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


def is_about(issue: CaseIssue, step: str) -> bool:
    """Tells whether an issue's title shares enough words with a step to be about it."""
    return len(content_words(issue.title) & content_words(step)) >= _SHARED_WORDS


def with_added(steps: Sequence[PlanStep]) -> Iterator[PlanStep]:
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


def once_each(steps: Sequence[PlanStep]) -> list[PlanStep]:
    """Returns the steps with each cue at the step alone to which it most likely applies."""
    best: dict[UUID, tuple[float, int]] = {}
    for place, step in enumerate(steps):
        for item in step.evidence:
            if item.memory_id is not None:
                found = (item.score or 0.0, -place)
                best[item.memory_id] = max(best.get(item.memory_id, found), found)
    return [
        replace(
            step,
            evidence=tuple(
                item for item in step.evidence if item.memory_id is None or best[item.memory_id][1] == -place
            ),
        )
        for place, step in enumerate(steps)
    ]


def markdown_of(steps: Sequence[PlanStep], of_plan: Sequence[PlanEvidence], budget: int, counter: TokenCounter) -> str:
    """Returns the section of what is not clear, within a budget, the gravest kept; empty where all is clear."""
    rows = [(item.verdict, _line(step, number, item)) for step in steps for number, item in _number_evidence(step)]
    rows += [(item.verdict, f"- The whole plan: {_sentence_of(item)}") for item in of_plan]
    if all(verdict == _CLEAR for verdict, _ in rows):
        return ""
    kept: set[int] = set()
    used = counter.count(HEADING)
    for place in sorted(range(len(rows)), key=lambda at: (-_ORDER.index(rows[at][0]), at)):
        used += counter.count(rows[place][1]) + 1
        if used > budget:
            break
        kept.add(place)
    lines = [rows[place][1] for place in sorted(kept)]
    return "\n".join([HEADING, "", *lines]) + "\n" if lines else ""


def _line(step: PlanStep, number: str, item: PlanEvidence) -> str:
    text = step.text if len(step.text) <= _STEP_CHARACTERS else f"{step.text[:_STEP_CHARACTERS]}…"
    if item.verdict == _STOP:
        return f"- Step {number}: stop and ask before step {step.number} “{text}”. {_sentence_of(item)}"
    return f"- Step {number} “{text}”: {item.verdict}. {_sentence_of(item)}"


def _sentence_of(item: PlanEvidence) -> str:
    return f"{item.statement.rstrip('.')}." + (f" Because: {item.reason.rstrip('.')}." if item.reason else "")
