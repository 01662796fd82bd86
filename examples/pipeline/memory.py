"""What the agents know of earlier versions: what Priors returns, or nothing."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast
from uuid import UUID

from priors_client import Client
from priors_client.models import Filters

from examples.pipeline.agents import CLAIM, Work
from examples.pipeline.judge import Judgement
from examples.pipeline.world import CASE, CHOICES, OTHER_WORK, RUMOURS, TASK, Choice, state_of

Kind: TypeAlias = Literal["observation", "chunk", "message", "cue", "note"]
Severity: TypeAlias = Literal["low", "medium", "high", "severe"]
SEVERITIES: dict[str, Severity] = {"P0": "severe", "P1": "high", "P2": "medium"}
GOOD = 8.0
"""The score from which a version passes."""


class Nothing:
    """No memory: each version starts cold."""

    def history(self, work: Work, agent: str, question: str, kinds: Sequence[str] = ()) -> str:  # noqa: ARG002 - as Priors
        """Returns nothing."""
        return ""

    def lessons(self, work: Work, choice: Choice) -> str:  # noqa: ARG002 - as Priors
        """Returns nothing."""
        return ""

    def note(self, work: Work, text: str) -> None:
        """Forgets a finding."""

    def end(self, work: Work, judgement: Judgement) -> None:
        """Forgets a judgement."""


class Priors:
    """The memory of a workspace. It waits for whatever it stores, so that the next version finds it."""

    def __init__(self, priors: Client, noted: Sequence[str] = (*RUMOURS, *OTHER_WORK)) -> None:
        """Stores what somebody has `noted` before the first version."""
        self._priors = priors
        self._read: dict[UUID, str] = {}
        for text in noted:
            priors.store("note", body=text, wait=True)

    def history(self, work: Work, agent: str, question: str, kinds: Sequence[str] = ()) -> str:
        """Returns the section of history for a question."""
        found = self._priors.history(
            question,
            agent=agent,
            run_id=work.run_id,
            k=10,
            budget_tokens=700,
            filters=Filters(kinds=[cast("Kind", kind) for kind in kinds]),
        )
        work.read += found.tokens
        self._read |= {hit.id: hit.body for hit in found.hits}
        return found.markdown

    def lessons(self, work: Work, choice: Choice) -> str:
        """Returns the section of lessons before an act."""
        found = self._priors.activate(plan=choice.plan, agent=choice.agent, run_id=work.run_id, budget_tokens=200)
        work.read += found.tokens
        return found.markdown

    def note(self, work: Work, text: str) -> None:
        """Stores a finding."""
        self._priors.store("note", body=text, tags=["producer"], run_id=work.run_id, wait=True)

    def end(self, work: Work, judgement: Judgement) -> None:
        """Stores a version with its judgement, rates the notes that it was given, and learns from each named issue."""
        self._priors.complete_run(
            work.run_id,
            task=TASK,
            agent="researcher",
            output=work.report,
            final_score=judgement.score,
            verdict="pass" if judgement.score >= GOOD else "revise",
            issues=[str(issue) for issue in judgement.named],
            metadata={"test_case": CASE, "version": f"v{work.version}"},
            remember=True,
            wait=True,
        )
        for memory_id, body in self._read.items():
            claim = CLAIM.match(body)
            if claim:
                rating: Literal[1, -1] = 1 if state_of(claim[1]) == claim[2] else -1
                self._priors.rate(memory_id, rating, comment="checked in the state register", run_id=work.run_id)
        self._read.clear()
        plans = {choice.name: choice.plan for choice in CHOICES}
        for issue in judgement.named:
            if issue.key in plans:
                self._priors.learn(
                    kind="correction",
                    when=plans[issue.key],
                    lesson=issue.remedy,
                    because=issue.text,
                    severity=SEVERITIES[issue.severity],
                )
