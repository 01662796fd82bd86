"""The values of estimated effects, and the sentence of their evidence."""

from typing import Literal, NamedTuple, get_args
from uuid import UUID

from msgspec import Struct

from app.foundation.text.words import count_noun

Outcome = Literal["final_score", "cost", "tokens", "duration", "rounds"]
Basis = Literal["experimental", "calibrated", "observational"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class Effect(Struct, frozen=True, kw_only=True):
    """The effect on a run's outcome of showing a memory, or a memory of a kind, instead of leaving it out."""

    memory_id: UUID | None
    """None: the mean over the memories of the kind."""
    kind: str
    task_type: str | None
    """The only task type that it holds for, where effects are estimated by task type."""
    estimate: float
    """The shrunk effect, in units of the outcome."""
    deviation: float
    """The posterior standard deviation of the effect."""
    low: float
    high: float
    """The ends of the 95 % interval."""
    harmful: float
    """The probability that it does harm of at least the tolerated size."""
    basis: Basis
    """Experimental: rests on draws that gave it to at least 3 runs and withheld it from 3, in slots of its own or as
    the next candidate. Calibrated: too few did; rests on a regression whose bias is known from other memories' slots.
    Observational: a regression whose bias is unknown; other causes may stand behind the difference."""
    runs_with: int
    runs_without: int
    """The runs in which it was withheld at random; of an effect on another basis, all runs without it."""
    enough: bool
    """False: too little data for a conclusion, whatever the numbers."""


class StoredEffect(NamedTuple):
    """An effect with what follows from it."""

    outcome: Outcome
    effect: Effect
    flagged: bool
    """True if it is among those that are called harmful."""
    influence: float
    """Its gain in a rank, -1 to 1."""


class MemoryEffect(Struct, frozen=True, kw_only=True):
    """A memory with its estimated effect on the final score of later runs."""

    memory_id: UUID
    title: str
    kind: str
    quality: int
    final_score: float | None
    estimate: float
    low: float
    high: float
    harmful: float
    """The probability that it does harm of a size that matters."""
    basis: Basis
    runs_with: int
    runs_without: int
    enough: bool
    flagged: bool
    """True if it is among those that are called harmful."""
    influence: float
    """Its gain in a rank, as a share of the most; 0 where nothing is known well enough."""

    @property
    def why(self) -> str:
        """The evidence of the estimate, in a sentence."""
        shown = f"{count_noun(self.runs_with, 'run')} {'was' if self.runs_with == 1 else 'were'} shown it"
        if not self.enough:
            return f"{shown}: too little data for a conclusion."
        sure = f"{self.estimate:+.1f} points ({self.low:+.1f} to {self.high:+.1f})"
        if self.basis == "experimental":
            return (
                f"{shown} and from {self.runs_without:,} a draw withheld it: {sure} of the final score by showing it."
            )
        known = "the bias of such comparisons is known from draws over other memories"
        if self.basis == "observational":
            known = "nothing was drawn, so another cause may stand behind it"
        without = f"{self.runs_without:,} {'was' if self.runs_without == 1 else 'were'} not"
        return f"{shown} and {without}: {sure}; {known}."
