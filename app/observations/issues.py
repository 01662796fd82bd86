"""The evaluator's issues as facts of an observation, also those that are found after it was made."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.queue import enqueue
from app.embeddings import store as vectors
from app.embeddings.provider import TokenCounter
from app.injection import blocking, scan
from app.memories import lexical_index, refusals
from app.memories.identity import content_hash
from app.memories.memory import Memory, NewMemory
from app.memories.scored_text import embedded_text
from app.memories.screening import INJECTION
from app.observations import store
from app.observations.observation import issue_facts
from app.runs.run import Run
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name


async def learn_issues(database: Database, counter: TokenCounter, *, workspace: str, evaluator: str, run: Run) -> int:
    """Append what the evaluator found since to the facts of the run's observations. How many they gained.

    An observation keeps its id, ratings and all that it says; an issue that instructs its reader is refused.
    """
    facts = issue_facts(run.issues, evaluator)
    if not facts:
        return 0
    gained = 0
    async with database.transaction() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        made = [] if target is None else await store.made_of_run(connection, target.workspace_id, run.run_id)
        for memory, known in made:
            assert target is not None, "without a workspace nothing was made"  # noqa: S101
            news = [fact for fact in facts if fact not in known]
            new = await _safe(connection, target.workspace_id, news, evaluator)
            gained += len(new)
            await _append(connection, target.workspace_id, memory, new, counter)
    return gained


async def _safe(connection: AsyncConnection, workspace_id: int, facts: Sequence[str], evaluator: str) -> list[str]:
    safe = [fact for fact in facts if not blocking(scan(fact.removeprefix(f"[{evaluator}] ")))]
    if len(safe) < len(facts):
        await refusals.add(connection, workspace_id, Counter({INJECTION: len(facts) - len(safe)}))
    return safe


async def _append(
    connection: AsyncConnection, workspace_id: int, memory: Memory, facts: Sequence[str], counter: TokenCounter
) -> None:
    if not facts:
        return
    body = "\n".join((memory.body, *(f"- {fact}" for fact in facts)))
    given = NewMemory(kind=memory.kind, title=memory.title, body=body)
    await store.extend(
        connection,
        workspace_id,
        replace(memory, body=body, tokens=counter.count(embedded_text(memory.title, body))),
        content_hash=content_hash(given, memory.language),
        facts=facts,
    )
    await lexical_index.index(connection, workspace_id, [memory.memory_id])
    await vectors.drop(connection, workspace_id, [memory.memory_id])
    await vectors.wait_for_vectors(connection, workspace_id, [memory.memory_id])
    await enqueue(connection, "embed_waiting", lock="embed_waiting")
