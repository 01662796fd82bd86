"""Plays the versions of the report, with a memory."""

from dataclasses import dataclass
from typing import Protocol

from examples.pipeline.agents import Memory, Work, director, researcher, scout, tokens_of
from examples.pipeline.judge import Judgement, judge
from examples.pipeline.world import VERSIONS


class Remembering(Memory, Protocol):
    """A memory that also takes the end of a version."""

    def end(self, work: Work, judgement: Judgement) -> None:
        """Takes a version and its judgement."""


@dataclass(frozen=True)
class Version:
    """A version that was played."""

    number: int
    score: float
    issues: tuple[str, ...]
    """What it was faulted for."""
    repeats: int
    """Faults that an earlier version had, too."""
    tokens: int
    read: int
    """Tokens that the memory returned, among `tokens`."""


def play(memory: Remembering, seed: int, versions: int = VERSIONS) -> list[Version]:
    """Plays the versions one after the other."""
    played: list[Version] = []
    faulted: set[str] = set()
    for number in range(1, versions + 1):
        work = Work(version=number, seed=seed)
        director(memory, work)
        scout(memory, work)
        researcher(memory, work)
        judgement = judge(work)
        memory.end(work, judgement)
        keys = tuple(issue.key for issue in judgement.issues)
        played.append(
            Version(
                number=number,
                score=judgement.score,
                issues=keys,
                repeats=sum(key in faulted for key in keys),
                tokens=tokens_of(work, len(keys)),
                read=work.read,
            )
        )
        faulted.update(keys)
    return played
