"""A sample: one of several compressions of one output. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.foundation.text.words import in_one_line
from app.intake.runs.observations.observation import Compressed

MOST_SAMPLES = 4
"""Most compressions of one output: that many fit side by side for a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSample:
    """A stored compression of an output."""

    sample: int
    """Its number, from 0, in the order in which they were made."""
    title: str
    narrative: str
    facts: tuple[str, ...]
    """Its facts, without the evaluator's issues."""
    compressor: str
    model: str | None
    created_at: datetime
    chosen: bool
    """True for the one that the memory has the text of, which agents are shown; false for all others."""
    quality: int = 0
    """Its ratings in order, from -3 to 3."""
    rated: bool = False
    """True if a rating of it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The result of making samples of one output."""

    made: tuple[Compressed, ...] = ()
    failures: tuple[str, ...] = ()
    """The reason for each sample that could not be made."""
    last_seed: int = 0
    """The highest seed that the language model drew with; 0 if it drew none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesAsked:
    """Samples that were asked for, with the stored data that they need."""

    observation_id: UUID
    memory_id: UUID | None
    samples: int
    sampling: bool
    prompt: str | None
    """The prompt of the first compression; None if no language model made it."""
    last_seed: int
    """The highest seed of an earlier draw for this output; 0 if there was none."""
    objection: str
    """The reason why no samples can be made; "" if they can."""


def _text_of(compressed: Compressed) -> str:
    """Returns the text by which two samples are told apart: spaces, line breaks and capitals make no difference."""
    return in_one_line(f"{compressed.title} {compressed.body}").casefold()


def new_ones(made: Iterable[Compressed], known: Sequence[Compressed], room: int) -> list[Compressed]:
    """Returns the first `room` compressions that say something else than the known ones and each other."""
    texts = {_text_of(item) for item in known}
    found: list[Compressed] = []
    for item in made:
        if len(found) < room and _text_of(item) not in texts:
            texts.add(_text_of(item))
            found.append(item)
    return found


def best_rated(qualities: Mapping[int, int]) -> int:
    """Returns the number of the best rated sample, the first among equals. The first sample counts 0 if it is unrated.

    Another unrated one is never the best: a rating against the text that is shown may be of what the output says.
    """
    return min({0: 0, **qualities}.items(), key=lambda item: (-item[1], item[0]))[0]
