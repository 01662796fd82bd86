"""The judge: scores a report by rules, and writes down what it faults."""

from dataclasses import dataclass

from examples.pipeline.agents import Work
from examples.pipeline.world import CHOICES, REGISTER, state_of

PRODUCER_POINTS = 3.0
"""Points where the report is right about all producers."""
MOST_NAMED = 2
"""Issues that a judgement names, the gravest first: a judge who stops reading a bad report early."""


@dataclass(frozen=True)
class Issue:
    """Something that a report is faulted for."""

    key: str
    """What it is about, by which a repetition is recognised."""
    severity: str
    text: str
    remedy: str

    def __str__(self) -> str:
        """Returns it as the judgement says it."""
        return f"{self.severity}: {self.text} {self.remedy}"


@dataclass(frozen=True)
class Judgement:
    """The judgement of a version."""

    score: float
    issues: tuple[Issue, ...]
    """All faults, the gravest first."""

    @property
    def named(self) -> tuple[Issue, ...]:
        """The faults that the judge writes down."""
        return self.issues[:MOST_NAMED]


def judge(work: Work) -> Judgement:
    """Judges a report by its choices and by the register."""
    right = sum(state_of(name) == state for name, state in work.claims.items())
    wrong = sorted(name for name, state in work.claims.items() if state_of(name) != state)
    score = PRODUCER_POINTS * max(0, right - len(wrong)) / len(REGISTER)
    score += sum(choice.points for choice in CHOICES if work.taken[choice.name] == choice.right)
    faults = [
        Issue(choice.name, choice.severity, choice.fault.format(work.taken[choice.name]), choice.remedy)
        for choice in CHOICES
        if work.taken[choice.name] != choice.right
    ]
    faults += [
        Issue(
            name,
            "P1",
            f"The licence of {name} is stated wrongly.",
            f"The register says {name}: licence {state_of(name)}.",
        )
        for name in wrong
    ]
    return Judgement(score=round(score, 1), issues=tuple(sorted(faults, key=lambda issue: issue.severity)))
