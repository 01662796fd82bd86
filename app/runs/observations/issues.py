"""The evaluator's issues as facts of an observation, also those that are found after it was made."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from app.db.database import Database, again_after_deadlock
from app.db.session import Session
from app.index.indexing import reindex_memories
from app.index.vectors import embedded_text
from app.links.store import forget_found
from app.memories import changes
from app.memories.memory import NewMemory, content_hash
from app.models.protocols import TokenCounter
from app.runs import store as runs
from app.runs.observations import store
from app.runs.observations.observation import is_issue_fact, issue_facts
from app.runs.observations.store import Held
from app.runs.run import Run
from app.safety.scan import blocking, scan
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace


async def learn_issues(
    database: Database, counter: TokenCounter, *, workspace: Workspace, evaluator: str, run: Run
) -> int:
    """Make the evaluator's issues among the facts of the run's observations those that they have by now.

    Those are the issues of every run that says it, and what the observation was asked for with. An observation keeps
    its id, ratings and all else that it says; an issue that instructs its reader is left out. Returns how many
    observations have changed.
    """
    target = await made(database, workspace)
    return await again_after_deadlock(lambda: _learn_issues(database, counter, target, evaluator, run.run_id))


async def _learn_issues(
    database: Database, counter: TokenCounter, workspace: Workspace, evaluator: str, run_id: str
) -> int:
    async with database.session(workspace) as session:
        await runs.lock(session, run_id)
        held = await store.holding(session, await runs.held_by(session, run_id))
        safe = await asyncio.to_thread(lambda: [safe_issues(item.issues) for item in held])
        changed = [
            await _learnt(session, item, issue_facts(issues, evaluator), evaluator, counter)
            for item, issues in zip(held, safe, strict=True)
        ]
    return sum(changed)


def safe_issues(issues: Sequence[str]) -> tuple[str, ...]:
    """Returns the issues that do not instruct their reader."""
    return tuple(issue for issue in issues if not blocking(scan(issue)))


async def _learnt(
    session: Session,
    held: Held,
    issues: Sequence[str],
    evaluator: str,
    counter: TokenCounter,
) -> bool:
    """Gives an observation these issues; returns whether that changes it."""
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
        # Another run's observation says exactly this.
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
