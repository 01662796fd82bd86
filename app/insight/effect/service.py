"""The verbs of effects: the report for an owner, the estimate of a workspace, and whether ranking uses it."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import structlog

from app.errors import InvalidInput, NotFound, Unavailable, check
from app.foundation.db.database import Database
from app.foundation.db.session import Across
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.insight.effect import ledger, report
from app.insight.effect.ledger import (
    RunSelection,
    ScoredRun,
    Slot,
    facts_of,
    flag_harmful,
    influence,
)
from app.insight.effect.model import estimate_effects
from app.insight.effect.report import Report, limits, limits_of_selection
from app.intake.cases import store as cases
from app.recall.cues.review.review import Reviews
from app.recall.cues.review.rules import HARMFUL, Proposal
from app.storage import effects
from app.storage.effects import Effect, MemoryEffect, StoredEffect
from app.storage.memories.memory import in_utc
from app.storage.tenants import store as tenants
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace

logger = structlog.get_logger()

MOST_REPORTED = 20_000
"""Runs that a report compares, the latest; more would take seconds, and hardly change a mean."""
_MOST_RUNS = 5_000
"""Runs that an estimate uses, the latest: older ones say little of a pipeline that has changed since."""
_SEVERE = ("P0", "P1")
"""Severities whose repetition is an alert."""


class _StoredParts(NamedTuple):
    """The stored parts of a report."""

    asked: RunSelection
    runs: Sequence[ScoredRun]
    in_all: int
    """The runs of the selection, with those that are not compared."""
    slots: Sequence[Slot]
    judged: Mapping[str, cases.JudgedRun]
    recurring: Sequence[cases.Alert]
    effects: Sequence[MemoryEffect]
    estimated_at: datetime | None

    @property
    def known(self) -> Sequence[MemoryEffect]:
        """The effects of memories that these runs recalled; of all memories where no run is left out."""
        if self.asked.is_all:
            return self.effects
        recalled = {item.memory_id for item in self.slots}
        return [item for item in self.effects if item.memory_id in recalled]


@frozen
class Effects:
    """Reports and estimates what memories did to later runs."""

    database: Database
    reviews: Reviews
    explore: float = 0.0

    async def report(self, workspace: Workspace, period: RunSelection, *, versions: int) -> Report:
        """Compares the runs of a period with history and without it; a severe issue of so many versions is an alert.

        Raises:
            InvalidInput: the period is none, or no task type is called so.
        """
        check(unstorable(period._asdict()))
        since, until = (None if moment is None else in_utc(moment) for moment in (period.since, period.until))
        if since and until and since >= until:
            raise InvalidInput("until", "must be after `since`")
        found = await self._read(workspace, RunSelection(since, until, period.task_type), versions)
        return await asyncio.to_thread(self._compose, workspace, period, found)

    async def _read(self, workspace: Workspace, asked: RunSelection, versions: int) -> _StoredParts:
        async with self.database.session(workspace, reading=True) as session:
            runs = await ledger.runs(session, asked, limit=MOST_REPORTED)
            run_ids = [run.run_id for run in runs]
            of_runs = None if asked.is_all else run_ids
            latest = await effects.latest(session)
            return _StoredParts(
                asked=asked,
                runs=runs,
                in_all=len(runs) if len(runs) < MOST_REPORTED else await ledger.count(session, asked),
                slots=await ledger.slots(session, run_ids),
                judged=await cases.judged_runs(session, run_ids),
                recurring=await cases.recurring(session, severities=_SEVERE, least=versions, run_ids=of_runs),
                effects=await effects.of_memories(session),
                estimated_at=None if latest is None else latest.estimated_at,
            )

    def _compose(self, workspace: Workspace, period: RunSelection, found: _StoredParts) -> Report:
        facts = facts_of(found.runs, found.slots, found.judged)
        history, drawn = report.contrast("all runs", facts), report.draws(facts)
        helpful, harmful = report.rank_effects(found.known)
        left_out = max(0, found.in_all - len(facts))
        return Report(
            workspace=workspace.name,
            since=period.since,
            until=period.until,
            task_type=period.task_type,
            runs=len(facts),
            left_out=left_out,
            scored=sum(item.run.final_score is not None for item in facts),
            history=history,
            draws=drawn,
            weeks=report.weeks(facts),
            versions=report.versions(facts),
            task_types=report.task_types(facts),
            helpful=helpful,
            harmful=harmful,
            estimated_at=found.estimated_at,
            alerts=tuple(found.recurring),
            limits=(
                *limits(facts, history, drawn, self.explore),
                *limits_of_selection(len(facts), left_out, is_all=found.asked.is_all, most_estimated=_MOST_RUNS),
            ),
            explore=self.explore,
            uses_effects=workspace.uses_effects,
        )

    async def estimate(self, workspace: Workspace) -> int:
        """Estimates the effects of a workspace's memories anew, and proposes the harmful ones to Review.

        Returns the number of effects; it does nothing if no scored run has changed since the last time.
        """
        async with self.database.session(workspace, snapshot=True) as session:
            state, latest = await ledger.fingerprint(session), await effects.latest(session)
            if state == ("" if latest is None else latest.ledger):
                return 0
            runs = await ledger.runs(session, RunSelection(), limit=_MOST_RUNS)
            slots = await ledger.slots(session, [run.run_id for run in runs])
        evidence = [item for item in slots if item.is_evidence]
        rows = _with_consequences(await asyncio.to_thread(estimate_effects, runs, evidence))
        async with self.database.session(workspace) as session:
            await effects.replace(session, state, rows)
            flagged = await effects.of_memories(session, flagged=True)
            owners = await ledger.owners(session, [item.memory_id for item in flagged])
        for item in flagged:
            owned = workspace.of(owners[item.memory_id])
            await self.reviews.propose(owned, [Proposal(change=HARMFUL, cue_ids=(item.memory_id,), reason=item.why)])
        return len(rows)

    async def estimate_all(self, across: Across) -> None:
        """Estimates the effects of each workspace, one after the other."""
        async with across(transaction=False) as session:
            ids = await tenants.ids_of_all(session)
        for workspace_id in ids:
            # A workspace may have been erased meanwhile.
            with suppress(NotFound):
                workspace = await Workspaces(database=self.database).resolve_id(workspace_id)
                try:
                    await self.estimate(workspace)
                except Unavailable as error:
                    logger.warning("effects were not estimated", workspace=workspace.name, reason=str(error))


def _with_consequences(found: Sequence[Effect]) -> list[StoredEffect]:
    """Returns the effects, with what follows from them."""
    harmful = {item.memory_id for item in flag_harmful(found)}
    return [StoredEffect(item, item.memory_id in harmful, influence(item, 1.0)) for item in found]
