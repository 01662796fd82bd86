"""The verbs that ask for an observation, and tell what became of it. It is compressed when there is time."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.queue import COMPRESS, enqueue
from app.errors import NotFound, Refused, check
from app.memories import refusals
from app.memories.admission import unstorable
from app.memories.gate import MEANINGS, worthless
from app.memories.store import DELETED
from app.models.chat import Chat
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.runs.observations import store
from app.runs.observations.observation import Outcome
from app.runs.observations.store import Asked
from app.runs.record import check_run
from app.runs.run import DELETED_SINCE, NewRun
from app.safety.secrets import masked_values
from app.workspaces import store as workspaces
from app.workspaces.languages import check_language, configuration
from app.workspaces.workspace import checked_name

STORED, JOINED, REFUSED = "stored", "joined", "refused"
MOST_FAILURES = 5
"""Of a compression's jobs, each of which has tried again for as long as a part did not answer."""


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
    """STORED, JOINED (an earlier memory says the same), REFUSED, or DELETED since; None: it waits."""
    reason: str = ""
    memory_id: UUID | None = None
    """The memory that holds it."""


async def request_observation(
    database: Database, *, workspace: str, language: str, outcome: Outcome, mask: bool = True
) -> UUID:
    """Keep an outcome and ask a worker to compress it; the observation's id. A run has one, however often it is sent.

    Another output of a run is compressed anew, and what was made of the earlier one gives way to it.

    Raises:
        InvalidInput: a field cannot be taken.
        Refused: the output is empty, boilerplate, or a stack trace without a message.
    """
    _check(outcome)
    reason = await asyncio.to_thread(worthless, outcome.output)
    if reason is not None:
        await _count(database, workspace, language, reason)
        raise Refused("output", MEANINGS[reason], reason=reason)
    kept = await asyncio.to_thread(masked_values, outcome) if mask else outcome
    async with database.transaction() as connection:
        target = await workspaces.ensure(connection, checked_name(workspace), configuration(language))
        observation_id = await store.ask(connection, target.workspace_id, kept)
        await ask_worker(connection, target.workspace_id, observation_id)
    return observation_id


def _check(outcome: Outcome) -> None:
    """An outcome is checked as the run that it is of."""
    shared = {name: getattr(outcome, name) for name in Outcome.__slots__ if name in NewRun.__slots__}
    check_run(NewRun(**{**shared, "run_id": outcome.run_id or "unnamed", "started_at": outcome.occurred_at}))
    check(unstorable({"tags": outcome.tags, "language": outcome.language or ""}))
    check_language(outcome.language)


async def ask_worker(connection: AsyncConnection, workspace_id: int, observation_id: UUID) -> None:
    """Ask a worker to compress it."""
    await enqueue(
        connection,
        COMPRESS,
        lock=f"{COMPRESS}:{observation_id}",
        workspace_id=workspace_id,
        observation_id=str(observation_id),
    )


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
    return recorded(asked)


async def ask_again(database: Database) -> int:
    """Ask a worker for what no job was left for: after a restored backup, or a worker that was killed. How many.

    What has failed MOST_FAILURES times is left alone; its request stays, and `?wait=true` tries it again.
    """
    async with database.transaction() as connection:
        forgotten = await store.forgotten(connection, failures=MOST_FAILURES)
        for workspace_id, observation_id in forgotten:
            await ask_worker(connection, workspace_id, observation_id)
    return len(forgotten)


async def _count(database: Database, workspace: str, language: str, reason: str) -> None:
    async with database.transaction() as connection:
        target = await workspaces.ensure(connection, checked_name(workspace), configuration(language))
        await refusals.add(connection, target.workspace_id, Counter([reason]))


def recorded(asked: Asked) -> Recorded:
    """What is known of what was asked for."""
    is_deleted = asked.deleted and asked.outcome is not None
    return Recorded(
        observation_id=asked.observation_id,
        outcome=DELETED if is_deleted else asked.outcome,
        reason=DELETED_SINCE if is_deleted else asked.reason,
        memory_id=asked.memory_id,
    )
