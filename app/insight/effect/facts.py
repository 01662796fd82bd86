"""Facts of runs that a report compares: their outcomes, their judged issues, and what their recalls showed. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from math import prod
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import Struct

from app.insight.effect.effect import OVERLAP, ScoredRun, Slot
from app.intake.cases.store import JudgedRun
from app.intake.runs.run import sum_of_stages


class StoredRun(NamedTuple):
    """A finished run as it is stored."""

    run_id: str
    task_type: str
    agent: str
    at: datetime
    final_score: float | None
    stages: Mapping[str, Any]
    duration: float | None
    rounds: float | None
    version: str
    """The version of its case, or of the pipeline where the run names it in its metadata."""

    @property
    def scored(self) -> ScoredRun:
        """The run as reports and estimates take it."""
        values = self._asdict()
        used = sum_of_stages(values.pop("stages"))
        del values["version"]
        return ScoredRun(**values, cost=used.cost, tokens=used.tokens)


class GivenSlot(NamedTuple):
    """A memory that a recall showed to a run, or that a draw withheld from it."""

    run_id: str
    query: str
    memory_id: UUID
    kind: str
    rank: int
    shown: bool
    propensity: float | None
    is_next: bool = False
    """True of the next candidate for the slot of a memory that a draw withheld."""

    @property
    def is_evidence(self) -> bool:
        """True if it was shown, or a draw withheld it with a known probability."""
        return self.shown or self.propensity is not None

    @property
    def slot(self) -> Slot:
        """The slot as the estimates take it."""
        values = self._asdict()
        del values["query"]
        return Slot(**values)


class RunsAndSlots(Struct, frozen=True):
    """The ledger of a workspace, as the process that estimates effects reads it."""

    runs: Sequence[ScoredRun]
    slots: Sequence[Slot]

    @classmethod
    def of(cls, runs: Sequence[StoredRun], slots: Sequence[GivenSlot]) -> "RunsAndSlots":
        """Returns the ledger of what is stored; slots that are no evidence are left out."""
        return cls([run.scored for run in runs], [item.slot for item in slots if item.is_evidence])


class Exposure(Struct, frozen=True, kw_only=True):
    """The memories that the recalls of one run showed, and how probable that was."""

    shown: int = 0
    """Memories that were shown."""
    withheld: bool = False
    """True if a draw withheld a memory from the run, and left its slot empty or gave it to the next candidate."""
    whole: float | None = None
    """The probability that no draw withheld a memory; None where nothing was drawn."""
    some: float | None = None
    """The probability that the run was shown a memory at all; None where no draw decided on it."""


_NO_EXPOSURE = Exposure()


class RunFacts(Struct, frozen=True, kw_only=True):
    """A run with all that a report compares."""

    run: ScoredRun
    version: str = ""
    """The version of its case, or of the pipeline where the run names it in its metadata."""
    issues: int | None = None
    """Issues that its judge named; None if no judgement of it lists any."""
    repeats: int | None = None
    """Issues among them that were named of an earlier version of the case already; None if there is no earlier one."""
    exposure: Exposure = _NO_EXPOSURE


def facts_of(
    runs: Sequence[StoredRun], slots: Iterable[GivenSlot], judged: Mapping[str, JudgedRun]
) -> Sequence[RunFacts]:
    """Returns the facts of these runs; `judged` has the numbers of issues of those whose judgement lists issues."""
    given = exposures(slots)
    return [
        RunFacts(
            run=stored.scored,
            version=stored.version,
            issues=None if counts is None else counts.issues,
            repeats=None if counts is None else counts.repeats,
            exposure=given.get(stored.run_id, _NO_EXPOSURE),
        )
        for stored in runs
        for counts in (judged.get(stored.run_id),)
    ]


def exposures(slots: Iterable[GivenSlot]) -> Mapping[str, Exposure]:
    """Returns the exposure of each run that has slots."""
    ordered = sorted(slots, key=lambda item: (item.run_id, item.query))
    return {run_id: _exposure(list(its)) for run_id, its in groupby(ordered, key=lambda item: item.run_id)}


def _exposure(slots: Sequence[GivenSlot]) -> Exposure:
    shown = len({item.memory_id for item in slots if item.shown})
    own = [item for item in slots if not item.is_next]
    withheld = any(not item.shown for item in own)
    recalls = [list(its) for _, its in groupby(own, key=lambda item: item.query)]
    drawn = [recall for recall in recalls if any(_is_random(item) for item in recall)]
    if not drawn:
        return Exposure(shown=shown, withheld=withheld)
    # A draw withholds one memory of a recall at most, so the probabilities of its memories add up.
    less = [min(1.0, sum(1 - item.propensity for item in recall if item.propensity is not None)) for recall in drawn]
    # The slot of a recall's only memory is never given to another one.
    is_all = len(drawn) == len(recalls) and all(len(recall) == 1 for recall in drawn)
    return Exposure(
        shown=shown,
        withheld=withheld,
        whole=prod(1 - one for one in less),
        some=1 - prod(less) if is_all else None,
    )


def _is_random(slot: GivenSlot) -> bool:
    return slot.propensity is not None and OVERLAP < slot.propensity < 1 - OVERLAP
