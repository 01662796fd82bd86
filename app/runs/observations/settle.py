"""The verbs that make a requested observation: they lease, compress and screen it, and store or refuse it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from uuid import UUID

from app.db import leases
from app.db.database import Database, again_after_deadlock
from app.db.session import Session
from app.errors import Unavailable
from app.index.vectors import embedded_text
from app.memories import changes, echoes
from app.memories.gate import screened, worthless
from app.memories.memory import Given, NewMemory, ObservationDetail, Screened
from app.runs import store as runs
from app.runs import traces
from app.runs.observations import store
from app.runs.observations.compress import compressed, not_taken
from app.runs.observations.keep import Made, Told, keep
from app.runs.observations.observation import LLM, Compressed, Outcome, as_judged
from app.runs.observations.request import Compressor, asked_for, get_observation, safe_issues
from app.runs.observations.store import Asked
from app.runs.run import Recorded
from app.text.pieces import HEADING, paragraphs
from app.workspaces.quotas import check_room
from app.workspaces.workspace import Workspace

ATTEMPTS = 3
"""Attempts to compress a request that changes, or is judged, while it is being compressed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two checks for another's result: extraction takes a moment, a model half a minute."""


class BeingCompressed(Unavailable):
    """Another maker compresses the observation now."""


@asynccontextmanager
async def leased(
    database: Database, workspace: Workspace, observation_id: UUID, *, seconds: float = leases.LEASE_SECONDS
) -> AsyncIterator[bool]:
    """Holds the lease on an observation, so that no other maker compresses it until this context ends.

    Yields False if another maker compresses it, or if it is made already.
    """

    async def take(maker: UUID, lasting: float) -> bool:
        async with database.session(workspace, transaction=False) as session:
            return await store.take_lease(session, observation_id, maker, lasting)

    async def end(maker: UUID) -> None:
        async with database.session(workspace, transaction=False) as session:
            await store.end_lease(session, observation_id, maker)

    async with leases.leased(take, end, seconds) as is_ours:
        yield is_ours


async def for_owner(database: Database, workspace: Workspace, observation_id: UUID) -> Workspace:
    """Returns the workspace as the user sees it for whom an observation was asked."""
    async with database.session(workspace, transaction=False) as session:
        return workspace.of(await store.owner(session, observation_id))


async def compress_pending(
    database: Database, compressor: Compressor, *, workspace: Workspace, observation_id: UUID
) -> Recorded:
    """Compresses and stores a requested observation, only once, even for repeated and concurrent calls.

    It considers changes meanwhile: another output, a score or the evaluator's issues start the compression again.

    Raises:
        NotFound: no observation was requested under this id in this workspace.
        BeingCompressed: another maker compresses it.
        Unavailable: the request changed during each of ATTEMPTS.
        QuotaReached: the workspace has no room for another memory; the request stays.
    """
    async with leased(database, workspace, observation_id) as is_ours:
        if not is_ours:
            return await _made_by_another(database, workspace, observation_id)
        for _ in range(ATTEMPTS):
            asked = await _asked(database, workspace, observation_id)
            if asked.asked.recorded.outcome is not None:
                return asked.asked.recorded
            await check_room(database, workspace)
            made = await _made(database, workspace, asked, compressor)
            kept = await again_after_deadlock(lambda: _kept(database, workspace, asked, made))  # noqa: B023 - ends here
            if kept is not None:
                return kept
    raise Unavailable(f"observation {observation_id} is asked for anew while it is compressed; try again")


async def _made_by_another(database: Database, workspace: Workspace, observation_id: UUID) -> Recorded:
    recorded = await get_observation(database, workspace=workspace, observation_id=observation_id)
    if recorded.outcome is None:
        raise BeingCompressed(f"observation {observation_id} is being compressed; try again")
    return recorded


async def compress_requested(
    database: Database, compressor: Compressor, *, workspace: Workspace, observation_id: UUID
) -> Recorded:
    """Makes a requested observation now, or waits for the maker that already compresses it.

    Raises:
        NotFound: no observation was requested under this id in this workspace.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await compress_pending(database, compressor, workspace=workspace, observation_id=observation_id)
        except BeingCompressed:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A requested compression, with the stored data that it needs."""

    asked: Asked
    outcome: Outcome
    """The request, with its run's judgement as it is now."""
    given: tuple[Given, ...]
    """The memories that its run was given."""


async def _asked(database: Database, workspace: Workspace, observation_id: UUID) -> _Asked:
    async with database.session(workspace, transaction=False) as session:
        asked = await asked_for(session, workspace, observation_id)
        given = {} if asked.run_id is None else await changes.given_to(session, [asked.run_id])
        outcome = await _outcome(session, asked)
    return _Asked(asked=asked, outcome=outcome, given=tuple(given.get(asked.run_id or "", ())))


async def _outcome(session: Session, asked: Asked) -> Outcome:
    run = None if asked.run_id is None else await runs.find(session, asked.run_id)
    return asked.request if run is None or asked.moved_on else as_judged(asked.request, run)


async def _made(database: Database, workspace: Workspace, asked: _Asked, compressor: Compressor) -> Made:
    output = asked.outcome.output
    parts = paragraphs(output) if asked.given or HEADING in output else [output]
    comparison = echoes.Comparison(database, compressor.provider, workspace, asked.given)
    residuals = await echoes.residuals(comparison, parts)
    residual, used = echoes.without(parts, residuals), frozenset[UUID]().union(*(item.repeats for item in residuals))
    if await asyncio.to_thread(worthless, residual) is not None:
        return Made(used=used)
    outcome = replace(asked.outcome, output=residual, issues=safe_issues(asked.outcome.issues))
    told = await _told(outcome, compressor)
    if told.passed.objection is not None and told.compressed.compressor == LLM:
        # A mistake of the model is not a finding of the run.
        reason = not_taken(f"the language model's reply is not stored: {told.passed.objection.message}")
        told = await _told(outcome, replace(compressor, chat=None))
        told = replace(told, compressed=replace(told.compressed, fallback=reason))
    return Made(used=used, told=told)


async def _told(outcome: Outcome, compressor: Compressor) -> Told:
    made = await compressed(outcome, compressor.provider, compressor.chat, evaluator=compressor.evaluator)
    passed, tokens = await asyncio.to_thread(_screened, _memory(outcome, made), compressor)
    return Told(compressed=made, passed=passed, tokens=tokens)


def _screened(memory: NewMemory, compressor: Compressor) -> tuple[Screened, int]:
    passed = screened(memory, mask=compressor.mask)
    return passed, compressor.counter.count(embedded_text(passed.memory.title, passed.memory.body))


def _memory(outcome: Outcome, made: Compressed) -> NewMemory:
    details = {**asdict(outcome), **asdict(made)}
    return NewMemory(
        kind="observation",
        title=made.title,
        body=made.body,
        tags=outcome.tags,
        run_id=outcome.run_id,
        final_score=outcome.final_score,
        occurred_at=outcome.occurred_at,
        language=outcome.language,
        observation=ObservationDetail(**{name: details[name] for name in ObservationDetail.__slots__}),
    )


async def _kept(database: Database, workspace: Workspace, asked: _Asked, made: Made) -> Recorded | None:
    """Stores the result; returns None if the request has changed since and must be compressed again."""
    run_id, observation_id = asked.asked.run_id, asked.asked.recorded.observation_id
    async with database.session(workspace) as session:
        if run_id is not None:
            await runs.lock(session, run_id)
        locked = await asked_for(session, workspace, observation_id, lock=True)
        if locked.recorded.outcome is not None:
            return locked.recorded
        if await _outcome(session, locked) != asked.outcome:
            return None
        kept = await keep(session, workspace, asked.asked, made)
        if run_id is not None:
            await traces.note_uses(session, run_id, made.used)
        return kept
