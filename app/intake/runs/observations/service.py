"""The verbs that ask for an observation, show its state, make it, and update the evaluator's issues in it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from uuid import UUID

from msgspec import structs

from app.errors import InvalidInput, NotFound, Refused, Unavailable, check
from app.foundation.db.database import Database, again_after_deadlock, hold_lease
from app.foundation.db.session import Across, Session
from app.foundation.models.protocols import Chat, EmbeddingProvider, TokenCounter
from app.foundation.safety.secrets import masked_values
from app.foundation.text.data import unstorable
from app.foundation.text.passages import HEADING, paragraphs
from app.foundation.values import frozen
from app.intake.cases import store as judgements
from app.intake.cases.extract import in_run
from app.intake.runs import store as runs
from app.intake.runs.observations import store
from app.intake.runs.observations.compress import compress_outcome, not_taken
from app.intake.runs.observations.keep import Made, Told, give_issues, keep, safe_issues
from app.intake.runs.observations.observation import (
    LLM,
    Compressed,
    Outcome,
    as_judged,
    complete_from_run,
    finished_run,
    issue_facts,
    missing,
    nonempty_fields,
)
from app.intake.runs.observations.store import Asked
from app.intake.runs.run import NewRun, Recorded, Run, check_run, counts
from app.intake.runs.service import Runs
from app.storage.index.vectors import embedded_text
from app.storage.memories import changes, echoes
from app.storage.memories import store as memories
from app.storage.memories.gate import MEANINGS, screen_memory, worthless
from app.storage.memories.memory import CompressedDetail, Given, NewMemory, Screened
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace, check_language

_MOST_FAILURES = 5
"""Failed jobs after which a compression is abandoned. A job does not fail while it waits for an unreachable part."""
_ATTEMPTS = 3
"""Attempts to compress a request that changes, or is judged, while it is being compressed."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two checks for another's result: extraction takes a moment, a model half a minute."""
_NO_OUTPUT = "output", "is missing: send it, or the run_id of a stored run that has an output"


class BeingCompressed(Unavailable):
    """Another maker compresses the observation now."""


@frozen
class _Pending:
    """A requested compression, with the stored data that it needs."""

    asked: Asked
    outcome: Outcome
    """The request, with its run's judgement as it is now."""
    given: tuple[Given, ...]
    """The memories that its run was given."""


@frozen
class Observations:
    """The observations of finished runs in a database."""

    database: Database
    runs: Runs
    provider: EmbeddingProvider
    counter: TokenCounter
    evaluator: str
    """The evaluator's name, before each of its issues among the facts."""
    chat: Chat | None = None
    """The language model that compresses; None if sentences of the output are chosen."""
    mask_secrets: bool = True

    async def request(self, workspace: Workspace, outcome: Outcome) -> UUID:
        """Stores an outcome and asks a worker to compress it; returns the observation's id.

        An outcome without an output is completed by its stored run; an outcome with one is stored as its run, too. A
        run has one observation for each of its tasks, even if it is sent several times. A new output of a run is
        compressed again, and replaces the observation of the earlier output.

        Raises:
            InvalidInput: a field is not valid, or there is no output and no stored run with one.
            Refused: the output is empty, boilerplate, or a stack trace without a message.
        """
        _check(outcome)
        kept = await asyncio.to_thread(masked_values, outcome) if self.mask_secrets else outcome
        is_stored = not kept.output
        kept = await self._of_stored_run(workspace, kept) if is_stored else kept
        reason = await asyncio.to_thread(worthless, kept.output)
        target = await Workspaces(database=self.database).get_or_create(workspace)
        if reason is not None:
            async with self.database.session(target) as session:
                await memories.add_refusals(session, Counter([reason]))
            raise Refused("output", MEANINGS[reason], reason=reason)
        kept = Outcome(**{**counts(kept.output), **nonempty_fields(kept)})

        async def attempt() -> UUID:
            async with self.database.session(target) as session:
                run = await self._its_run(session, kept, is_stored=is_stored)
                observation_id = await store.ask(session, kept)
                unnamed = f"observation {observation_id}"
                if run is None and (judgement := in_run(unnamed, kept)) is not None:
                    await judgements.note_run(session, unnamed, judgement)
                await store.enqueue(session, observation_id)
                return observation_id

        return await again_after_deadlock(attempt)

    async def observe(self, workspace: Workspace, outcome: Outcome, *, wait: bool) -> Recorded:
        """Asks for an observation of a finished run, and makes it now with `wait`; returns its state."""
        observation_id = await self.request(workspace, outcome)
        workspace = await Workspaces(database=self.database).get_or_create(workspace)
        return await (self.make if wait else self.get)(workspace, observation_id)

    async def _of_stored_run(self, workspace: Workspace, outcome: Outcome) -> Outcome:
        async with self.database.session(workspace, transaction=False) as session:
            run = None if outcome.run_id is None else await runs.find(session, outcome.run_id)
        if run is None or not run.output:
            raise InvalidInput(*_NO_OUTPUT)
        return complete_from_run(outcome, run)

    async def _its_run(self, session: Session, outcome: Outcome, *, is_stored: bool) -> Run | None:
        """Stores what an outcome says of its run, if it names one; returns the run.

        A run of the same task takes another output. Of a run with another task, only missing fields are filled. The run
        has the judgement that its fields state. A run that completed the outcome and is gone meanwhile is not made
        again.
        """
        if outcome.run_id is None:
            return None
        await runs.lock(session, outcome.run_id)
        run, told = await runs.find(session, outcome.run_id), finished_run(outcome)
        if is_stored and run is None:
            raise InvalidInput(*_NO_OUTPUT)
        if run is not None and not (outcome.task in {"", run.task} and outcome.output != run.output):
            told = missing(told, run)
        if run is None or told != NewRun(run_id=outcome.run_id):
            run, _ = await self.runs.save(session, told)
        return run

    async def get(self, workspace: Workspace, observation_id: UUID) -> Recorded:
        """Returns the state of a requested observation.

        Raises:
            NotFound: no observation was requested under this id in this workspace.
        """
        async with self.database.session(workspace, transaction=False) as session:
            return (await _find(session, workspace, observation_id)).recorded

    async def ask_again(self, across: Across) -> int:
        """Asks a worker for requested observations without a job, as after a restored backup or a killed worker.

        It leaves out requests that failed _MOST_FAILURES times; `?wait=true` can try these again. Returns the number of
        jobs.
        """
        async with across(transaction=False) as session:
            forgotten = await store.forgotten(session, failures=_MOST_FAILURES)
        by_workspace: dict[int, list[UUID]] = defaultdict(list)
        for workspace_id, observation_id in forgotten:
            by_workspace[workspace_id].append(observation_id)
        for workspace_id, ids in by_workspace.items():
            async with self.database.session(workspace_id) as session:
                for observation_id in ids:
                    await store.enqueue(session, observation_id)
        return len(forgotten)

    async def learn_issues(self, workspace: Workspace, run: Run) -> int:
        """Updates the evaluator's issues among the facts of the run's observations.

        They are the issues in the requests for an observation and those of every run that states the same. The id, the
        ratings and the rest of the text stay; an issue that instructs its reader is left out. Returns the number of
        changed observations.
        """
        target = await Workspaces(database=self.database).get_or_create(workspace)

        async def attempt() -> int:
            async with self.database.session(target) as session:
                await runs.lock(session, run.run_id)
                held = await store.holding(session, await runs.held_by(session, run.run_id))
                safe = await asyncio.to_thread(lambda: [safe_issues(item.issues) for item in held])
                changed = [
                    await give_issues(session, item, issue_facts(issues, self.evaluator), self.evaluator, self.counter)
                    for item, issues in zip(held, safe, strict=True)
                ]
            return sum(changed)

        return await again_after_deadlock(attempt)

    async def for_owner(self, workspace: Workspace, observation_id: UUID) -> Workspace:
        """Returns the workspace as the user sees it for whom an observation was asked."""
        async with self.database.session(workspace, transaction=False) as session:
            return workspace.of(await store.owner(session, observation_id))

    async def make(self, workspace: Workspace, observation_id: UUID) -> Recorded:
        """Makes a requested observation now, or waits for the maker that already compresses it.

        Raises:
            NotFound: no observation was requested under this id in this workspace.
        """
        return await wait_for_maker(lambda: self.make_pending(workspace, observation_id))

    async def make_pending(self, workspace: Workspace, observation_id: UUID) -> Recorded:
        """Compresses and stores a requested observation, only once, even for repeated and concurrent calls.

        It considers changes meanwhile: another output, a score or the evaluator's issues start the compression again.

        Raises:
            NotFound: no observation was requested under this id in this workspace.
            BeingCompressed: another maker compresses it.
            Unavailable: the request changed during each of _ATTEMPTS.
        """
        work = {"observation_id": observation_id}
        async with hold_lease(self.database, workspace, store.LEASE, work) as is_ours:
            if not is_ours:
                return await self._of_another_maker(workspace, observation_id)
            for _ in range(_ATTEMPTS):
                pending = await self._pending(workspace, observation_id)
                if pending.asked.recorded.outcome is not None:
                    return pending.asked.recorded
                result = await self._compress(workspace, pending)
                kept = await again_after_deadlock(lambda: self._keep(workspace, pending, result))  # noqa: B023 - ends here
                if kept is not None:
                    return kept
        raise Unavailable(f"observation {observation_id} is asked for anew while it is compressed; try again")

    async def _of_another_maker(self, workspace: Workspace, observation_id: UUID) -> Recorded:
        recorded = await self.get(workspace, observation_id)
        if recorded.outcome is None:
            raise BeingCompressed(f"observation {observation_id} is being compressed; try again")
        return recorded

    async def _pending(self, workspace: Workspace, observation_id: UUID) -> _Pending:
        async with self.database.session(workspace, transaction=False) as session:
            asked = await _find(session, workspace, observation_id)
            given = {} if asked.run_id is None else await changes.given_to(session, [asked.run_id])
            outcome = await _outcome(session, asked)
        return _Pending(asked=asked, outcome=outcome, given=tuple(given.get(asked.run_id or "", ())))

    async def _new_part(self, workspace: Workspace, pending: _Pending) -> tuple[Outcome | None, frozenset[UUID]]:
        """Returns the outcome without what its run was given, None if nothing is new; and the repeated memories."""
        output = pending.outcome.output
        parts = paragraphs(output) if pending.given or HEADING in output else [output]
        comparison = echoes.Echoes(database=self.database, provider=self.provider)
        residuals = await comparison.residuals(workspace, pending.given, parts)
        residual = echoes.without(parts, residuals)
        used = frozenset[UUID]().union(*(item.repeats for item in residuals))
        if await asyncio.to_thread(worthless, residual) is not None:
            return None, used
        return structs.replace(pending.outcome, output=residual, issues=safe_issues(pending.outcome.issues)), used

    async def _compress(self, workspace: Workspace, pending: _Pending) -> Made:
        outcome, used = await self._new_part(workspace, pending)
        if outcome is None:
            return Made(used=used)
        told = await self._compress_and_screen(outcome, self.chat)
        if told.passed.objection is not None and told.compressed.compressor == LLM:
            # A mistake of the model is not a finding of the run.
            reason = not_taken(f"the language model's reply is not stored: {told.passed.objection.message}")
            told = await self._compress_and_screen(outcome, None)
            told = replace(told, compressed=replace(told.compressed, fallback=reason))
        return Made(used=used, told=told)

    async def _compress_and_screen(self, outcome: Outcome, chat: Chat | None) -> Told:
        found = await compress_outcome(outcome, self.provider, chat, evaluator=self.evaluator)
        passed = await asyncio.to_thread(self._screen, observation_memory(outcome, found))
        return Told(compressed=found, passed=passed)

    def _screen(self, memory: NewMemory) -> Screened:
        passed = screen_memory(memory, mask=self.mask_secrets)
        return replace(passed, tokens=self.counter.count(embedded_text(passed.memory.title, passed.memory.body)))

    async def _keep(self, workspace: Workspace, pending: _Pending, result: Made) -> Recorded | None:
        """Stores the result; returns None if the request has changed since and must be compressed again."""
        run_id, observation_id = pending.asked.run_id, pending.asked.recorded.observation_id
        async with self.database.session(workspace) as session:
            if run_id is not None:
                await runs.lock(session, run_id)
            locked = await _find(session, workspace, observation_id, lock=True)
            if locked.recorded.outcome is not None:
                return locked.recorded
            if await _outcome(session, locked) != pending.outcome:
                return None
            kept = await keep(session, workspace, pending.asked, result)
            if run_id is not None:
                await store.note_uses(session, run_id, result.used)
            return kept


async def wait_for_maker(attempt: Callable[[], Awaitable[Recorded]]) -> Recorded:
    """Tries until no other maker is at work; returns the result."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return await attempt()
        except BeingCompressed:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _check(outcome: Outcome) -> None:
    """Raises InvalidInput if a field is not valid; an outcome is checked like its run."""
    check_run(finished_run(structs.replace(outcome, run_id=outcome.run_id or "unnamed")))
    check(unstorable({"tags": outcome.tags, "language": outcome.language or ""}))
    check_language(outcome.language)


async def _find(session: Session, workspace: Workspace, observation_id: UUID, *, lock: bool = False) -> Asked:
    """Returns a compression; with `lock` whoever else makes it waits.

    Raises:
        NotFound: no observation was requested under this id in this workspace.
    """
    asked = await store.find(session, observation_id, lock=lock)
    if asked is None:
        raise NotFound(f"there is no observation {observation_id} in workspace {workspace.name}")
    return asked


async def _outcome(session: Session, asked: Asked) -> Outcome:
    run = None if asked.run_id is None else await runs.find(session, asked.run_id)
    return asked.request if run is None or asked.moved_on else as_judged(asked.request, run)


def observation_memory(outcome: Outcome, found: Compressed) -> NewMemory:
    """Returns the memory of a compressed outcome."""
    details = {**structs.asdict(outcome), **asdict(found)}
    return NewMemory(
        kind="observation",
        title=found.title,
        body=found.body,
        tags=outcome.tags,
        run_id=outcome.run_id,
        final_score=outcome.final_score,
        occurred_at=outcome.occurred_at,
        language=outcome.language,
        observation=CompressedDetail(**{name: details[name] for name in CompressedDetail.__struct_fields__}),
    )
