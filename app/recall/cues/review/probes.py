"""Probes a store of cues: each ought to fire for plans of its trigger, and none for plans of other trades."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from uuid import UUID

from app.foundation.text.data import read_toml
from app.recall.cues.activate import Activations, PlanAsked
from app.recall.cues.cue import ACTIVE, Cue
from app.recall.cues.service import Cues
from app.recall.cues.store import CueFilter
from app.storage.memories.service import LARGEST_PAGE
from app.storage.tenants.workspace import Workspace

MOST_PROBED = LARGEST_PAGE
"""Cues that one call probes, the newest."""
OLD = timedelta(days=90)
"""Time without a firing from which a cue counts as stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """The figures of a store's cues."""

    cues: int
    recall: float | None
    """Share of the plans made of triggers that fired their cue, or one that says the same; None without cues."""
    precision: float | None
    """Share of the cues that those plans fired which were their own; None if nothing fired."""
    unrelated: int
    """Number of plans that have nothing to do with any store."""
    unrelated_fired: float
    """Share of them that fired a cue: 0 is right."""
    stale: int
    """Number of cues that have not fired for a long time, or hold no more."""
    weak: tuple[Cue, ...]


@cache
def probe_texts() -> Mapping[str, Sequence[str]]:
    """Returns the forms of plans that triggers are put into, and plans that have nothing to do with any store."""
    return read_toml("app.recall.cues.review", "probes.toml", dict[str, list[str]])


def plans_of(trigger: str) -> Sequence[str]:
    """Returns plans that ought to fire a cue with this trigger."""
    told = trigger.strip().rstrip(".")
    return [form.format(trigger=told) for form in probe_texts()["plans"]]


async def run_probes(stored: Cues, activations: Activations, workspace: Workspace, *, limit: int) -> ProbeReport:
    """Returns whether the newest cues fire for plans made of their triggers, and what share of unrelated plans fires.

    Nothing is logged, and no count changes.

    Raises:
        InvalidInput: a limit out of range.
    """
    cues = await stored.page(workspace, asked=CueFilter(states=(ACTIVE,)), limit=limit)

    async def fire(plans: Sequence[str]) -> list[frozenset[UUID]]:
        found = await activations.fire(workspace, [PlanAsked(plan=plan, trial=True) for plan in plans])
        return [frozenset(cue.cue_id for cue in item.activation.cues) for item in found]

    own = [await fire(plans_of(cue.trigger)) for cue in cues]
    return report(cues, own, await fire(probe_texts()["unrelated"]), now=datetime.now(UTC))


def report(
    cues: Sequence[Cue],
    own: Sequence[Sequence[frozenset[UUID]]],
    others: Sequence[frozenset[UUID]],
    *,
    now: datetime,
) -> ProbeReport:
    """Returns the figures of cues, the ids that their own plans fired, and those that unrelated plans fired. Pure."""
    right = [[cue.cue_id in ids for ids in found] for cue, found in zip(cues, own, strict=True)]
    hits, plans = sum(map(sum, right)), sum(map(len, right))
    firings = sum(len(ids) for found in own for ids in found)
    return ProbeReport(
        cues=len(cues),
        recall=hits / plans if plans else None,
        precision=hits / firings if firings else None,
        unrelated=len(others),
        unrelated_fired=sum(map(bool, others)) / max(1, len(others)),
        stale=sum(_is_stale(cue, now) for cue in cues),
        weak=tuple(cue for cue, found in zip(cues, right, strict=True) if not any(found)),
    )


def _is_stale(cue: Cue, now: datetime) -> bool:
    has_ended = cue.valid_until is not None and cue.valid_until <= now
    return has_ended or (cue.last_fired_at or cue.created_at) < now - OLD
