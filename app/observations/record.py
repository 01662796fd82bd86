"""The verbs that make an observation: ask for it at once, compress it when there is time."""

from collections import Counter
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.queue import enqueue
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.errors import InvalidInput, NotFound, Refused
from app.llm.chat import Chat
from app.masking import masked
from app.memories import echoes, refusals
from app.memories import store as memories
from app.memories.admission import unstorable
from app.memories.gate import BOILERPLATE_ONLY, ECHO, MEANINGS, Given, near_duplicates, worthless
from app.memories.memory import NewMemory, ObservationDetail
from app.memories.remember import Counts, write
from app.memories.scored_text import embedded_text
from app.memories.screening import Screened, screened
from app.memories.store import SUPERSEDED, row_of
from app.observations import store
from app.observations.compress import compressed
from app.observations.observation import Compressed, Outcome
from app.observations.store import Asked, Sibling
from app.runs.record import check_run
from app.runs.run import NewRun
from app.workspaces import store as workspaces
from app.workspaces.language import configuration
from app.workspaces.workspace import Workspace, checked_name

STORED, JOINED, REFUSED = "stored", "joined", "refused"

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressor:
    """What compressing needs beside the database."""

    provider: EmbeddingProvider
    counter: TokenCounter
    chat: Chat | None
    evaluator: str
    mask: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of an observation that was asked for."""

    observation_id: UUID
    outcome: str | None
    """STORED, JOINED (an earlier memory says the same, or the new one took its place) or REFUSED; None: it waits."""
    reason: str = ""
    memory_id: UUID | None = None
    """The memory that holds it."""


async def request_observation(
    database: Database, *, workspace: str, language: str, outcome: Outcome, mask: bool = True
) -> UUID:
    """Keep an outcome and ask a worker to compress it; the observation's id. A run has one, however often it is sent.

    Raises:
        InvalidInput: a field cannot be taken.
        Refused: the output is empty, boilerplate, or a stack trace without a message.
    """
    _check(outcome)
    reason = worthless(outcome.output)
    if reason is not None:
        await _count(database, workspace, language, reason)
        raise Refused("output", MEANINGS[reason], reason=reason)
    kept = _masked(outcome) if mask else outcome
    async with database.transaction() as connection:
        target = await workspaces.ensure(connection, checked_name(workspace), configuration(language))
        observation_id = await store.ask(connection, target.workspace_id, kept)
        await ask_worker(connection, target.workspace_id, observation_id)
    return observation_id


def _check(outcome: Outcome) -> None:
    """An outcome is checked as the run that it is of."""
    shared = {name: getattr(outcome, name) for name in Outcome.__slots__ if name in NewRun.__slots__}
    check_run(NewRun(**{**shared, "run_id": outcome.run_id or "unnamed", "started_at": outcome.occurred_at}))
    for reason in unstorable({"tags": outcome.tags, "language": outcome.language or ""}):
        field, _, message = reason.partition(": ")
        raise InvalidInput(field, message)


async def ask_worker(connection: AsyncConnection, workspace_id: int, observation_id: UUID) -> None:
    """Ask a worker to compress it."""
    await enqueue(
        connection,
        "compress",
        lock=f"compress:{observation_id}",
        workspace_id=workspace_id,
        observation_id=str(observation_id),
    )


async def compress_waiting(
    database: Database, compressor: Compressor, workspace_id: int, observation_id: UUID
) -> Recorded:
    """Compress what was asked for, and store it, once: however often and by however many this is called.

    Raises:
        NotFound: nothing was asked for under this id.
    """
    async with database.statements() as connection:
        asked = await store.find(connection, workspace_id, observation_id)
        target = await workspaces.get(connection, workspace_id)
        given = await _given(connection, workspace_id, asked)
    if asked is None or target is None:
        raise NotFound(f"there is no observation {observation_id}")
    if asked.outcome is not None:
        return _recorded(asked)
    parts = echoes.paragraphs(asked.request.output) if given else [asked.request.output]
    found = await echoes.repeated(database, compressor.provider, workspace_id, parts, given)
    rest, used = echoes.without(parts, found), {memory_id for memory_id in found if memory_id}
    made: Compressed | None = None
    if worthless(rest) is None:
        made = await compressed(
            replace(asked.request, output=rest), compressor.provider, compressor.chat, evaluator=compressor.evaluator
        )
    async with database.transaction() as connection:
        locked = await store.find(connection, workspace_id, observation_id, lock=True)
        if locked is None or locked.outcome is not None:
            return _recorded(locked or asked)
        await echoes.count_uses(connection, workspace_id, dict.fromkeys(used, 1))
        return await _settle(connection, target, asked, made, compressor, repeated=bool(used))


async def compress_requested(
    database: Database, compressor: Compressor, *, workspace: str, observation_id: UUID
) -> Recorded:
    """Compress now what was asked for, whether or not a worker is about to.

    Raises:
        NotFound: nothing was asked for under this id in this workspace.
    """
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
    if target is None:
        raise NotFound(f"there is no observation {observation_id} in workspace {workspace}")
    return await compress_waiting(database, compressor, target.workspace_id, observation_id)


async def get_observation(database: Database, *, workspace: str, observation_id: UUID) -> Recorded:
    """What became of an observation that was asked for.

    Raises:
        NotFound: nothing was asked for under this id in this workspace.
    """
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        asked = None if target is None else await store.find(connection, target.workspace_id, observation_id)
    if asked is None:
        raise NotFound(f"there is no observation {observation_id} in workspace {workspace}")
    return _recorded(asked)


async def compress_all_waiting(database: Database, compressor: Compressor) -> int:
    """Compress what no job was left for: a restored backup, a worker that was killed. How many."""
    async with database.statements() as connection:
        waiting = await store.waiting(connection)
    for workspace_id, observation_id in waiting:
        await compress_waiting(database, compressor, workspace_id, observation_id)
    return len(waiting)


async def _given(connection: AsyncConnection, workspace_id: int, asked: Asked | None) -> list[Given]:
    if asked is None or asked.run_id is None:
        return []
    return (await echoes.given_to(connection, workspace_id, [asked.run_id])).get(asked.run_id, [])


async def _settle(
    connection: AsyncConnection,
    target: Workspace,
    asked: Asked,
    made: Compressed | None,
    compressor: Compressor,
    *,
    repeated: bool,
) -> Recorded:
    """Store what was made, join it to what says the same, or refuse it."""
    workspace_id = target.workspace_id
    if made is None:
        reason = ECHO if repeated else BOILERPLATE_ONLY
        message = "the output only repeats what the run was given" if repeated else MEANINGS[BOILERPLATE_ONLY]
        return await _refuse(connection, workspace_id, asked, reason, message)
    passed = screened(_memory(asked.request, made), mask=compressor.mask)
    if passed.objection is not None:
        return await _refuse(connection, workspace_id, asked, passed.objection.code, passed.objection.message)
    memory_id, outcome = await _keep(connection, target, asked, passed, compressor.counter)
    await store.finish(
        connection, workspace_id, asked.observation_id, outcome=outcome, memory_id=memory_id, reason=made.fallback
    )
    return Recorded(observation_id=asked.observation_id, outcome=outcome, memory_id=memory_id, reason=made.fallback)


async def _keep(
    connection: AsyncConnection, target: Workspace, asked: Asked, passed: Screened, counter: TokenCounter
) -> tuple[UUID, str]:
    """The memory that holds the observation, and how.

    A near-duplicate of the same task joins the older memory, unless it was judged better and nobody has rated the older
    one: then it takes its place, and the older one can be restored.
    """
    memory, workspace_id = passed.memory, target.workspace_id
    siblings = await store.same_task(connection, workspace_id, asked.request.task) if asked.request.task else []
    words = f"{memory.title}\n{memory.body}"
    older = next((sibling for sibling in siblings if near_duplicates(words, sibling.text)), None)
    if older is not None and not _is_better(memory, older):
        return older.memory_id, JOINED
    row = row_of(
        memory,
        source_id=None,
        language=target.language if memory.language is None else configuration(memory.language),
        tokens=counter.count(embedded_text(memory.title, memory.body)),
        findings=passed.findings,
    )
    row = replace(row, memory_id=asked.observation_id)
    (memory_id,) = await write(connection, target, [row], Counts())
    await workspaces.add_languages(connection, target, {row.language})
    if older is not None and older.memory_id != memory_id:
        await store.supersede(connection, workspace_id, older.memory_id, memory_id)
        await memories.retire(connection, workspace_id, [older.memory_id], reason=SUPERSEDED)
    return memory_id, STORED if memory_id == asked.observation_id else JOINED


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


async def _count(database: Database, workspace: str, language: str, reason: str) -> None:
    async with database.transaction() as connection:
        target = await workspaces.ensure(connection, checked_name(workspace), configuration(language))
        await refusals.add(connection, target.workspace_id, Counter([reason]))


def _masked(outcome: Outcome) -> Outcome:
    return replace(
        outcome,
        task=masked(outcome.task),
        output=masked(outcome.output),
        queries=tuple(masked(query) for query in outcome.queries),
        issues=tuple(masked(issue) for issue in outcome.issues),
    )


def _recorded(asked: Asked) -> Recorded:
    return Recorded(
        observation_id=asked.observation_id, outcome=asked.outcome, reason=asked.reason, memory_id=asked.memory_id
    )
