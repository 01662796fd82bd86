"""Stores the compression of an output, joins it to an observation with the same content, or refuses it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import structlog

from app.foundation.db.session import Session
from app.foundation.models.protocols import TokenCounter
from app.foundation.safety.scan import blocking, scan
from app.foundation.values import frozen
from app.intake.runs import store as runs
from app.intake.runs.observations import store
from app.intake.runs.observations.observation import Compressed, is_issue_fact
from app.intake.runs.observations.store import Asked, Held, Sibling
from app.intake.runs.run import JOINED, REFUSED, STORED, Recorded
from app.storage.index.indexing import reindex_memories
from app.storage.index.vectors import embedded_text
from app.storage.links import store as links
from app.storage.links.relations import SUPERSEDES, Link
from app.storage.memories import changes
from app.storage.memories import store as memories
from app.storage.memories.echoes import says_no_more
from app.storage.memories.gate import BOILERPLATE_ONLY, ECHO, MEANINGS
from app.storage.memories.memory import SUPERSEDED, NewMemory, Screened, content_hash
from app.storage.memories.write import write
from app.storage.tenants import store as workspaces
from app.storage.tenants.workspace import Workspace, configuration

logger = structlog.get_logger()


@frozen
class Told:
    """The compressed form of an output, ready to be stored."""

    compressed: Compressed
    passed: Screened


@frozen
class Made:
    """The result of compressing an output."""

    used: frozenset[UUID]
    """The given memories that the output repeats."""
    told: Told | None = None
    """The compressed form; None if the output had nothing new."""


async def keep(session: Session, workspace: Workspace, asked: Asked, made: Made) -> Recorded:
    """Stores the compression, joins it to an equal observation, or refuses it; returns the outcome."""
    told = made.told
    if told is None:
        reason = ECHO if made.used else BOILERPLATE_ONLY
        message = "the output only repeats what the run was given" if made.used else MEANINGS[BOILERPLATE_ONLY]
        return await _refuse(session, asked, reason, message)
    objection = told.passed.objection
    if objection is not None:
        return await _refuse(session, asked, objection.code, objection.message)
    outdated = await store.outdated_memories(session, asked.recorded.observation_id)
    memory_id, outcome = await _stored_or_joined(session, workspace, asked, told, outdated)
    for older in outdated:
        if older != memory_id:
            await _give_way(session, older, memory_id)
    recorded = replace(
        asked.recorded,
        outcome=outcome,
        memory_id=memory_id,
        reason=told.compressed.fallback,
    )
    await store.finish(session, recorded)
    await memories.lock(session, [memory_id])
    await runs.judge(session, [memory_id])
    return recorded


async def _stored_or_joined(
    session: Session, workspace: Workspace, asked: Asked, told: Told, outdated: Sequence[UUID]
) -> tuple[UUID, str]:
    """Stores an observation or joins it to an older one; returns the memory that holds it, and the outcome.

    Two observations of one task are near-duplicates if one of them adds nothing to the other. If the new one adds
    nothing, it joins the older memory. If the older one adds nothing, or the new one was judged better, the new one
    replaces the older one. Observations that people have rated are not replaced. A replaced observation can be
    restored. `outdated` has the observations that only earlier outputs of the run state: the new one replaces them in
    any case.
    """
    memory, task = told.passed.memory, asked.request.task
    # An observation without a text of its own is no duplicate of any other.
    compared = bool(task) and memory.body.strip() != task.strip()
    found = await store.same_task(session, task) if compared else []
    siblings = [sibling for sibling in found if sibling.memory_id not in outdated]
    said = _that_says_it(memory, siblings)
    better = said is not None and _is_better(memory, said)
    if said is not None and not better:
        return said.memory_id, JOINED
    language = workspace.language if memory.language is None else configuration(memory.language)
    row = told.passed.row(source_id=None, language=language)
    row = replace(row, memory_id=await store.free_id(session, asked.recorded.observation_id))
    await workspaces.add_languages(session, workspace, {row.language})
    # The same text stays one memory, which takes a better judgement.
    (memory_id,) = (await write(session, [row], runs=store, known_first=not better)).ids
    older = said or _that_says_less(memory, siblings)
    if older is not None and older.memory_id != memory_id:
        await _give_way(session, older.memory_id, memory_id)
    return memory_id, STORED if memory_id == row.memory_id else JOINED


async def _give_way(session: Session, older: UUID, newer: UUID) -> None:
    await changes.supersede(session, older, newer)
    await memories.retire(session, [older], reason=SUPERSEDED)
    await links.add(session, [Link(newer, older, SUPERSEDES)])


def _words(memory: NewMemory) -> str:
    return f"{memory.title}\n{memory.body}"


def _that_says_it(memory: NewMemory, siblings: Sequence[Sibling]) -> Sibling | None:
    """Returns the best judged observation to which this one adds nothing, a rated one first."""
    saying = [sibling for sibling in siblings if says_no_more(_words(memory), sibling.text)]
    return max(saying, key=lambda sibling: (sibling.rated, sibling.final_score or 0.0), default=None)


def _that_says_less(memory: NewMemory, siblings: Sequence[Sibling]) -> Sibling | None:
    """Returns the newest observation of the task that adds nothing to this one, is unrated and not judged better."""
    score = memory.final_score or 0.0
    replaceable = (sibling for sibling in siblings if not sibling.rated and (sibling.final_score or 0.0) <= score)
    return next((sibling for sibling in replaceable if says_no_more(sibling.text, _words(memory))), None)


def _is_better(memory: NewMemory, older: Sibling) -> bool:
    if older.rated or memory.final_score is None:
        return False
    return older.final_score is None or memory.final_score > older.final_score


async def _refuse(session: Session, asked: Asked, reason: str, message: str) -> Recorded:
    await memories.add_refusals(session, Counter([reason]))
    recorded = replace(asked.recorded, outcome=REFUSED, reason=message)
    await store.finish(session, recorded)
    logger.info("observation refused", observation_id=str(recorded.observation_id), reason=reason)
    return recorded


def safe_issues(issues: Sequence[str]) -> tuple[str, ...]:
    """Returns the issues that do not instruct their reader."""
    return tuple(issue for issue in issues if not blocking(scan(issue)))


async def give_issues(
    session: Session, held: Held, issues: Sequence[str], evaluator: str, counter: TokenCounter
) -> bool:
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
    await links.forget_found(session, [memory.memory_id])
    return True
