"""The verbs that request an observation, show its state, and update the evaluator's issues in it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.db.database import Database, again_after_deadlock
from app.db.session import COMPRESS, Across, Session
from app.errors import InvalidInput, NotFound, Refused, check
from app.index.indexing import reindex_memories
from app.index.vectors import embedded_text
from app.links.store import forget_found
from app.memories import changes
from app.memories import store as memories
from app.memories.gate import MEANINGS, unstorable, worthless
from app.memories.memory import NewMemory, content_hash
from app.models.chat import Chat
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.runs import store as runs
from app.runs.judgements import store as judgements
from app.runs.judgements.extract import in_run
from app.runs.observations import store
from app.runs.observations.observation import (
    Outcome,
    completed,
    finished_run,
    is_issue_fact,
    issue_facts,
    missing,
    said,
)
from app.runs.observations.store import Asked, Held
from app.runs.record import check_run, counts, save_run
from app.runs.run import NewRun, Recorded, Run
from app.safety.scan import blocking, scan
from app.safety.secrets import masked_values
from app.workspaces import usage
from app.workspaces.quotas import check_room
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace, check_language

MOST_FAILURES = 5
"""Failed jobs after which a compression is abandoned. A job does not fail while it waits for an unreachable part."""


NO_OUTPUT = "output", "is missing: send it, or the run_id of a stored run that has an output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressor:
    """The parts that compression needs besides the database."""

    provider: EmbeddingProvider
    counter: TokenCounter
    chat: Chat | None
    evaluator: str
    mask: bool = True


async def request_observation(database: Database, *, workspace: Workspace, outcome: Outcome, mask: bool = True) -> UUID:
    """Stores an outcome and asks a worker to compress it; returns the observation's id.

    An outcome without an output is completed by its stored run; an outcome with one is stored as its run, too. A run
    has one observation for each of its tasks, even if it is sent several times. A new output of a run is compressed
    again, and replaces the observation of the earlier output.

    Raises:
        InvalidInput: a field is not valid, or there is no output and no stored run with one.
        Refused: the output is empty, boilerplate, or a stack trace without a message.
        QuotaReached: the workspace has no room for another memory, or too many unfinished jobs.
    """
    _check(outcome)
    kept = await asyncio.to_thread(masked_values, outcome) if mask else outcome
    is_stored = not kept.output
    kept = await _of_stored_run(database, workspace, kept) if is_stored else kept
    await check_room(database, workspace)
    reason = await asyncio.to_thread(worthless, kept.output)
    if reason is not None:
        async with database.session(await made(database, workspace)) as session:
            await memories.add_refusals(session, Counter([reason]))
        raise Refused("output", MEANINGS[reason], reason=reason)
    target, kept = await made(database, workspace), Outcome(**{**counts(kept.output), **said(kept)})

    async def attempt() -> UUID:
        async with database.session(target) as session:
            run = await _its_run(session, kept, is_stored=is_stored)
            await usage.take_jobs(session, 1)
            observation_id = await store.ask(session, kept)
            unnamed = f"observation {observation_id}"
            if run is None and (judgement := in_run(unnamed, kept)) is not None:
                await judgements.note_run(session, unnamed, judgement)
            await ask_worker(session, observation_id)
            return observation_id

    return await again_after_deadlock(attempt)


def _check(outcome: Outcome) -> None:
    """Raises InvalidInput if a field is not valid; an outcome is checked like its run."""
    check_run(finished_run(replace(outcome, run_id=outcome.run_id or "unnamed")))
    check(unstorable({"tags": outcome.tags, "language": outcome.language or ""}))
    check_language(outcome.language)


async def _of_stored_run(database: Database, workspace: Workspace, outcome: Outcome) -> Outcome:
    async with database.session(workspace, transaction=False) as session:
        run = None if outcome.run_id is None else await runs.find(session, outcome.run_id)
    if run is None or not run.output:
        raise InvalidInput(*NO_OUTPUT)
    return completed(outcome, run)


async def _its_run(session: Session, outcome: Outcome, *, is_stored: bool) -> Run | None:
    """Stores what an outcome says of its run, if it names one; returns the run.

    A run of the same task takes another output. Of a run with another task, only missing fields are filled. The run has
    the judgement that its fields state. A run that completed the outcome and is gone meanwhile is not made again.
    """
    if outcome.run_id is None:
        return None
    await runs.lock(session, outcome.run_id)
    run, told = await runs.find(session, outcome.run_id), finished_run(outcome)
    if is_stored and run is None:
        raise InvalidInput(*NO_OUTPUT)
    if run is not None and not (outcome.task in {"", run.task} and outcome.output != run.output):
        told = missing(told, run)
    if run is None or told != NewRun(run_id=outcome.run_id):
        run, _ = await save_run(session, told)
    return run


async def ask_worker(session: Session, observation_id: UUID, *, after: float = 0.0) -> None:
    """Asks a worker to compress this outcome, `after` some seconds."""
    lock, workspace_id = f"{COMPRESS}:{observation_id}", session.workspace_id
    asked = str(observation_id)
    await session.enqueue(COMPRESS, lock=lock, after=after, workspace_id=workspace_id, observation_id=asked)


async def get_observation(database: Database, *, workspace: Workspace, observation_id: UUID) -> Recorded:
    """Returns the state of a requested observation.

    Raises:
        NotFound: no observation was requested under this id in this workspace.
    """
    async with database.session(workspace, transaction=False) as session:
        return (await asked_for(session, workspace, observation_id)).recorded


async def asked_for(session: Session, workspace: Workspace, observation_id: UUID, *, lock: bool = False) -> Asked:
    """Returns a compression; with `lock` whoever else makes it waits.

    Raises:
        NotFound: no observation was requested under this id in this workspace.
    """
    asked = await store.find(session, observation_id, lock=lock)
    if asked is None:
        raise NotFound(f"there is no observation {observation_id} in workspace {workspace.name}")
    return asked


async def ask_again(database: Database, across: Across) -> int:
    """Asks a worker for requested observations without a job, as after a restored backup or a killed worker.

    It leaves out requests that failed MOST_FAILURES times; `?wait=true` can try these again. Returns the number of
    jobs.
    """
    async with across(transaction=False) as session:
        forgotten = await store.forgotten(session, failures=MOST_FAILURES)
    by_workspace: dict[int, list[UUID]] = defaultdict(list)
    for workspace_id, observation_id in forgotten:
        by_workspace[workspace_id].append(observation_id)
    for workspace_id, ids in by_workspace.items():
        async with database.session(workspace_id) as session:
            for observation_id in ids:
                await ask_worker(session, observation_id)
    return len(forgotten)


async def learn_issues(
    database: Database, counter: TokenCounter, *, workspace: Workspace, evaluator: str, run: Run
) -> int:
    """Updates the evaluator's issues among the facts of the run's observations.

    They are the issues in the requests for an observation and those of every run that states the same. The id, the
    ratings and the rest of the text stay; an issue that instructs its reader is left out. Returns the number of changed
    observations.
    """
    target = await made(database, workspace)

    async def attempt() -> int:
        async with database.session(target) as session:
            await runs.lock(session, run.run_id)
            held = await store.holding(session, await runs.held_by(session, run.run_id))
            safe = await asyncio.to_thread(lambda: [safe_issues(item.issues) for item in held])
            learnt = [
                await _learnt(session, item, issue_facts(issues, evaluator), evaluator, counter)
                for item, issues in zip(held, safe, strict=True)
            ]
        return sum(learnt)

    return await again_after_deadlock(attempt)


def safe_issues(issues: Sequence[str]) -> tuple[str, ...]:
    """Returns the issues that do not instruct their reader."""
    return tuple(issue for issue in issues if not blocking(scan(issue)))


async def _learnt(session: Session, held: Held, issues: Sequence[str], evaluator: str, counter: TokenCounter) -> bool:
    """Gives an observation these issues; returns whether they change it."""
    memory, known = held.memory, held.facts
    old = [fact for fact in known if is_issue_fact(fact, evaluator)]
    if old == list(issues):
        return False
    lines = memory.body.split("\n")
    for fact in old:
        if f"- {fact}" in lines:
            lines.remove(f"- {fact}")
    body = "\n".join((*lines, *(f"- {fact}" for fact in issues)))
    digest = content_hash(NewMemory(kind=memory.kind, title=memory.title, body=body), memory.language)
    if await changes.has_twin(session, digest):
        # Another run's observation has exactly this text.
        return False
    await changes.extend(
        session,
        replace(memory, body=body, tokens=counter.count(embedded_text(memory.title, body))),
        content_hash=digest,
        facts=[*(fact for fact in known if fact not in old), *issues],
    )
    await reindex_memories(session, [memory.memory_id])
    await forget_found(session, [memory.memory_id])
    return True
