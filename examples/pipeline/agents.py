"""The four agents. None has a model: each acts on the words of the text that it is given, and else as it is drawn."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from examples.pipeline.world import (
    CASE,
    CHOICES,
    DRAFT_TOKENS,
    LOOK_UP_TOKENS,
    LOOK_UPS,
    REGISTER,
    REWORK_TOKENS,
    Choice,
    drawn,
    state_of,
)

SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
ADVICE = re.compile(r"\b(take|give|state|explain|use|write|instead)\b", re.IGNORECASE)
BLAME = re.compile(r"\b(nobody|cannot|never|not|avoid|wrongly)\b", re.IGNORECASE)
"""The words of a sentence that speak for the option that it names, and against it."""
CLAIM = re.compile(r"\b([A-Z][a-z]+): licence (valid|lost)")


@dataclass
class Work:
    """A version of the report, as its agents make it."""

    version: int
    seed: int
    taken: dict[str, str] = field(default_factory=dict)
    """The option of each choice."""
    claims: dict[str, str] = field(default_factory=dict)
    """The state of each producer's licence."""
    looked_up: int = 0
    read: int = 0
    """Tokens that Priors returned."""

    @property
    def run_id(self) -> str:
        """The name of the run."""
        return f"supplements/v{self.version}"

    @property
    def report(self) -> str:
        """The report."""
        producers = "\n".join(f"- {name}: licence {state}" for name, state in sorted(self.claims.items()))
        return (
            f"# {CASE}, version v{self.version}\n\nThe market has 221 billion, by {self.taken['source']}, in"
            f" {self.taken['currency']}, with {self.taken['year']}. How it was estimated: by {self.taken['method']}."
            f"\n\n## Producers\n\n{producers}\n"
        )


class Memory(Protocol):
    """What agents may ask, and tell."""

    def history(self, work: Work, agent: str, question: str, kinds: Sequence[str] = ()) -> str:
        """Returns what earlier versions say to a question."""

    def lessons(self, work: Work, choice: Choice) -> str:
        """Returns what was learnt about an act."""

    def note(self, work: Work, text: str) -> None:
        """Notes a finding."""


def advised(choice: Choice, text: str) -> str | None:
    """Returns the option that a text speaks for; None if it speaks for none more than for the others."""
    votes = dict.fromkeys(choice.options, 0)
    for sentence in SENTENCE.split(text):
        for option in choice.options:
            if option in sentence:
                votes[option] += bool(ADVICE.search(sentence)) - 2 * bool(BLAME.search(sentence))
    best = max(votes.values())
    found = [option for option, count in votes.items() if count == best]
    return found[0] if best > 0 and len(found) == 1 else None


def decide(memory: Memory, work: Work, choice: Choice, known: str) -> None:
    """Takes the option that was learnt, or that the history speaks for; else the one that is drawn."""
    lessons = memory.lessons(work, choice)
    text = f"{lessons}\n{known}"
    work.taken[choice.name] = advised(choice, text) or drawn(choice, work.version, work.seed)


def director(memory: Memory, work: Work) -> None:
    """Reads what earlier versions were faulted for, and chooses the source."""
    known = memory.history(
        work, "director", f"What was faulted in earlier versions of the report {CASE}, and how to mend it?"
    )
    for choice in CHOICES:
        if choice.agent == "director":
            decide(memory, work, choice, known)


def scout(memory: Memory, work: Work) -> None:
    """Believes what it reads of producers, looks others up in the register, and notes these."""
    known = memory.history(
        work, "scout", "Which producers of food supplements have a licence, valid or lost?", kinds=("note",)
    )
    claims = Counter(claim for claim in CLAIM.findall(known) if claim[0] in REGISTER)
    for (name, state), _ in claims.most_common():
        work.claims.setdefault(name, state)
    for name in [name for name in REGISTER if name not in work.claims][:LOOK_UPS]:
        work.claims[name] = state_of(name)
        work.looked_up += 1
        memory.note(work, f"{name}: {REGISTER[name]}.")


def researcher(memory: Memory, work: Work) -> None:
    """Writes the report, with what it reads of earlier ones in mind."""
    known = memory.history(work, "researcher", f"How should the report {CASE} be written, by its judgements?")
    for choice in CHOICES:
        if choice.agent == "researcher":
            decide(memory, work, choice, known)


def tokens_of(work: Work, issues: int) -> int:
    """Returns the tokens of a version: what was read, looked up, written and worked in."""
    return work.read + DRAFT_TOKENS + work.looked_up * LOOK_UP_TOKENS + issues * REWORK_TOKENS
