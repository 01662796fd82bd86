"""The first library of cues: a start for a store that has none of its own yet."""

from collections.abc import Sequence
from functools import cache

import msgspec

from app.foundation.text.data import read_toml
from app.recall.cues.cue import DETAILS, STARTER, NewCue

CONFIDENCE = 0.5
"""Lower than that of a cue that a person states, because nobody in the workspace has said it."""


class StarterCue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cue as `starter.toml` has it."""

    kind: str
    trigger: str
    lesson: str
    consequence: float
    steps: list[str] = []
    context: str = ""
    preferred_over: str = ""

    def cue(self) -> NewCue:
        """Returns the cue."""
        details = {name: value for name in DETAILS[self.kind] if (value := getattr(self, name, None))}
        return NewCue(
            kind=self.kind,
            trigger=self.trigger,
            lesson=self.lesson,
            details=details,
            confidence=CONFIDENCE,
            consequence=self.consequence,
            tags=(STARTER,),
            language="english",
        )


class Library(msgspec.Struct, frozen=True):
    """The content of `starter.toml`."""

    cues: list[StarterCue]


@cache
def starter_cues() -> Sequence[NewCue]:
    """Returns the cues of the first library."""
    return [entry.cue() for entry in read_toml("app.recall.cues.review", "starter.toml", Library).cues]
