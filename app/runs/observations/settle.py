"""The verb that makes an observation of what was asked for: compressed, screened, and stored, joined or refused."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database, again_after_deadlock
from app.errors import NotFound, Unavailable
from app.index.vectors import embedded_text
from app.links import store as links
from app.links.link import SUPERSEDES, Link
from app.memories import echoes, refusals
from app.memories import store as memories
from app.memories.gate import BOILERPLATE_ONLY, ECHO, MEANINGS, Given, Screened, says_no_more, screened, worthless
from app.memories.memory import NewMemory, ObservationDetail
from app.memories.store import SUPERSEDED, row_of
from app.memories.write import Counts, write
from app.runs import store as runs
from app.runs.observations import store
from app.runs.observations.compress import compressed, not_taken
from app.runs.observations.issues import safe_issues
from app.runs.observations.lease import Underway, turn
from app.runs.observations.observation import LLM, Compressed, Outcome, as_judged
from app.runs.observations.request import JOINED, REFUSED, STORED, Compressor, Recorded, recorded
from app.runs.observations.store import Asked, Sibling
from app.text.pieces import HEADING, paragraphs
from app.workspaces import store as workspaces
from app.workspaces.languages import configuration
from app.workspaces.workspace import Workspace, checked_name

ATTEMPTS = 3
"""To compress what is asked for anew, or judged, while it is being compressed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds before looking again whether another has compressed it: extraction takes a moment, a model half a minute."""

logger = structlog.get_logger()


async def compress_waiting(
    database: Database, compressor: Compressor, workspace_id: int, observation_id: UUID
) -> Recorded:
    """Compress what was asked for, and store it, once: however often and by however many this is called.

    What is said of it meanwhile counts: another output, a score or the evaluator's issues make it compressed anew.

    Raises:
        NotFound: nothing was asked for under this id.
        Underway: another compresses it.
        Unavailable: it changed at each of ATTEMPTS.
    """
    async with turn(database, workspace_id, observation_id) as is_ours:
        if not is_ours:
            return await _made_by_another(database, workspace_id, observation_id)
        for _ in range(ATTEMPTS):
            asked = await _asked(database, workspace_id, observation_id)
            if asked.asked.outcome is not None:
                return recorded(asked.asked)
            made = await _made(database, asked, compressor)
            settled = await _settled(database, asked, made)
            if settled is not None:
                return settled
    raise Unavailable(f"observation {observation_id} is asked for anew while it is compressed; try again")


async def _made_by_another(database: Database, workspace_id: int, observation_id: UUID) -> Recorded:
    async with database.statements() as connection:
        asked = await store.find(connection, workspace_id, observation_id)
    if asked is None:
        raise NotFound(f"there is no observation {observation_id}")
    if asked.outcome is None:
        raise Underway(f"observation {observation_id} is being compressed; try again")
    return recorded(asked)


async def compress_requested(
    database: Database, compressor: Compressor, *, workspace: str, observation_id: UUID
) -> Recorded:
    """Compress now what was asked for, whether or not a worker is about to; where one does, wait for it.

    Raises:
        NotFound: nothing was asked for under this id in this workspace.
    """
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
    if target is None:
        raise NotFound(f"there is no observation {observation_id} in workspace {workspace}")
    pause = FIRST_PAUSE
    while True:
        try:
            return await compress_waiting(database, compressor, target.workspace_id, observation_id)
        except Underway:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was asked for, with all that is known of it."""

    target: Workspace
    asked: Asked
    outcome: Outcome
    """The request, with its run's judgement as it is now."""
    given: tuple[Given, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What an output was compressed to, as it may be stored."""

    compressed: Compressed
    passed: Screened
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What became of an output."""

    used: frozenset[UUID]
    """The given memories that it repeats."""
    told: _Told | None = None
    """None: nothing worth keeping was left."""


async def _asked(database: Database, workspace_id: int, observation_id: UUID) -> _Asked:
    async with database.statements() as connection:
        asked = await store.find(connection, workspace_id, observation_id)
        target = await workspaces.get(connection, workspace_id)
        if asked is None or target is None:
            raise NotFound(f"there is no observation {observation_id}")
        given = {} if asked.run_id is None else await echoes.given_to(connection, workspace_id, [asked.run_id])
        outcome = await _outcome(connection, workspace_id, asked)
    return _Asked(target=target, asked=asked, outcome=outcome, given=tuple(given.get(asked.run_id or "", ())))


async def _outcome(connection: AsyncConnection, workspace_id: int, asked: Asked) -> Outcome:
    run = None if asked.run_id is None else await runs.find(connection, workspace_id, asked.run_id)
    return asked.request if run is None or asked.moved_on else as_judged(asked.request, run)


async def _made(database: Database, asked: _Asked, compressor: Compressor) -> _Made:
    output = asked.outcome.output
    parts = paragraphs(output) if asked.given or HEADING in output else [output]
    rests = await echoes.rests(database, compressor.provider, asked.target.workspace_id, parts, asked.given)
    rest, used = echoes.without(parts, rests), frozenset[UUID]().union(*(item.repeats for item in rests))
    if await asyncio.to_thread(worthless, rest) is not None:
        return _Made(used=used)
    outcome = replace(asked.outcome, output=rest, issues=safe_issues(asked.outcome.issues))
    told = await _told(outcome, compressor)
    if told.passed.objection is not None and told.compressed.compressor == LLM:
        # What a model says wrongly is not what the run has found.
        reason = not_taken(f"the language model's reply is not stored: {told.passed.objection.message}")
        told = await _told(outcome, replace(compressor, chat=None))
        told = replace(told, compressed=replace(told.compressed, fallback=reason))
    return _Made(used=used, told=told)


async def _told(outcome: Outcome, compressor: Compressor) -> _Told:
    made = await compressed(outcome, compressor.provider, compressor.chat, evaluator=compressor.evaluator)
    passed, tokens = await asyncio.to_thread(_screened, _memory(outcome, made), compressor)
    return _Told(compressed=made, passed=passed, tokens=tokens)


def _screened(memory: NewMemory, compressor: Compressor) -> tuple[Screened, int]:
    passed = screened(memory, mask=compressor.mask)
    return passed, compressor.counter.count(embedded_text(passed.memory.title, passed.memory.body))


async def _settled(database: Database, asked: _Asked, made: _Made) -> Recorded | None:
    """What became of it; None where it has changed since it was read, and is to be compressed anew."""
    return await again_after_deadlock(lambda: _settled_once(database, asked, made))


async def _settled_once(database: Database, asked: _Asked, made: _Made) -> Recorded | None:
    workspace_id, observation_id = asked.target.workspace_id, asked.asked.observation_id
    async with database.transaction() as connection:
        if asked.asked.run_id is not None:
            await runs.take_turn(connection, workspace_id, asked.asked.run_id)
        locked = await store.find(connection, workspace_id, observation_id, lock=True)
        if locked is None:
            raise NotFound(f"there is no observation {observation_id}")
        if locked.outcome is not None:
            return recorded(locked)
        if await _outcome(connection, workspace_id, locked) != asked.outcome:
            return None
        recorded_now = await _settle(connection, asked, made)
        if asked.asked.run_id is not None:
            await echoes.count_uses(connection, workspace_id, asked.asked.run_id, made.used)
        return recorded_now


async def _settle(connection: AsyncConnection, asked: _Asked, made: _Made) -> Recorded:
    """Store what was made, join it to what says the same, or refuse it."""
    workspace_id, told = asked.target.workspace_id, made.told
    if told is None:
        reason = ECHO if made.used else BOILERPLATE_ONLY
        message = "the output only repeats what the run was given" if made.used else MEANINGS[BOILERPLATE_ONLY]
        return await _refuse(connection, workspace_id, asked.asked, reason, message)
    objection = told.passed.objection
    if objection is not None:
        return await _refuse(connection, workspace_id, asked.asked, objection.code, objection.message)
    outdated = await store.outdated(connection, workspace_id, asked.asked.observation_id)
    memory_id, outcome = await _keep(connection, asked, told, outdated)
    for older in outdated:
        if older != memory_id:
            await _give_way(connection, workspace_id, older, memory_id)
    fallback = told.compressed.fallback
    observation_id = asked.asked.observation_id
    await store.finish(connection, workspace_id, observation_id, outcome=outcome, memory_id=memory_id, reason=fallback)
    await memories.lock(connection, workspace_id, [memory_id])
    await runs.judge(connection, workspace_id, [memory_id])
    return Recorded(observation_id=observation_id, outcome=outcome, memory_id=memory_id, reason=fallback)


async def _keep(connection: AsyncConnection, asked: _Asked, told: _Told, outdated: Sequence[UUID]) -> tuple[UUID, str]:
    """The memory that holds the observation, and how.

    Of two near-duplicates of one task, one says no more than the other. If it is the new one, it joins the older
    memory; if it is the older one, or the new one was judged better, the new one takes its place, unless people have
    rated the older one. What was replaced can be restored. What the run takes back by what it says now is `outdated`:
    it gives way however much of it is said again.
    """
    target, memory, task = asked.target, told.passed.memory, asked.asked.request.task
    # A mere task says nothing, so that nothing says it again.
    compared = bool(task) and memory.body.strip() != task.strip()
    found = await store.same_task(connection, target.workspace_id, task) if compared else []
    siblings = [sibling for sibling in found if sibling.memory_id not in outdated]
    said = _that_says_it(memory, siblings)
    better = said is not None and _is_better(memory, said)
    if said is not None and not better:
        return said.memory_id, JOINED
    row = row_of(
        memory,
        source_id=None,
        language=target.language if memory.language is None else configuration(memory.language),
        tokens=told.tokens,
        findings=told.passed.findings,
    )
    row = replace(row, memory_id=await store.free_id(connection, target.workspace_id, asked.asked.observation_id))
    await workspaces.add_languages(connection, target, {row.language})
    # The very same text stays one memory: a better judgement of it is then its own.
    (memory_id,) = await write(connection, target, [row], Counts(), known_first=not better)
    older = said or _that_says_less(memory, siblings)
    if older is not None and older.memory_id != memory_id:
        await _give_way(connection, target.workspace_id, older.memory_id, memory_id)
    return memory_id, STORED if memory_id == row.memory_id else JOINED


async def _give_way(connection: AsyncConnection, workspace_id: int, older: UUID, newer: UUID) -> None:
    await store.supersede(connection, workspace_id, older, newer)
    await memories.retire(connection, workspace_id, [older], reason=SUPERSEDED)
    await links.add(connection, workspace_id, [Link(newer, older, SUPERSEDES)])


def _words(memory: NewMemory) -> str:
    return f"{memory.title}\n{memory.body}"


def _that_says_it(memory: NewMemory, siblings: list[Sibling]) -> Sibling | None:
    """The best judged observation of the task that leaves nothing of this one to say."""
    saying = [sibling for sibling in siblings if says_no_more(_words(memory), sibling.text)]
    return max(saying, key=lambda sibling: (sibling.rated, sibling.final_score or 0.0), default=None)


def _that_says_less(memory: NewMemory, siblings: list[Sibling]) -> Sibling | None:
    """The newest observation of the task, unrated and not judged better, of which this one leaves nothing to say."""
    score = memory.final_score or 0.0
    replaceable = (sibling for sibling in siblings if not sibling.rated and (sibling.final_score or 0.0) <= score)
    return next((sibling for sibling in replaceable if says_no_more(sibling.text, _words(memory))), None)


def _is_better(memory: NewMemory, older: Sibling) -> bool:
    if older.rated or memory.final_score is None:
        return False
    return older.final_score is None or memory.final_score > older.final_score


def _memory(outcome: Outcome, made: Compressed) -> NewMemory:
    return NewMemory(
        kind="observation",
        title=made.title,
        body=made.body,
        tags=outcome.tags,
        run_id=outcome.run_id,
        final_score=outcome.final_score,
        occurred_at=outcome.occurred_at,
        language=outcome.language,
        observation=ObservationDetail(
            task=outcome.task,
            task_type=outcome.task_type,
            narrative=made.narrative,
            facts=made.facts,
            output_path=outcome.output_path,
            verdict=outcome.verdict,
            compressor=made.compressor,
            model=made.model,
            prompt=made.prompt,
        ),
    )


async def _refuse(connection: AsyncConnection, workspace_id: int, asked: Asked, reason: str, message: str) -> Recorded:
    await refusals.add(connection, workspace_id, Counter([reason]))
    await store.finish(connection, workspace_id, asked.observation_id, outcome=REFUSED, reason=message)
    logger.info("observation refused", observation_id=str(asked.observation_id), reason=reason)
    return Recorded(observation_id=asked.observation_id, outcome=REFUSED, reason=message)
