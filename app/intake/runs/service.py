"""The verbs that store runs, list them, and show the chain memory → run → output → judgement → memory."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from msgspec import structs

from app.errors import InvalidInput, NotFound, check
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Across, Session
from app.foundation.safety.secrets import mask, masked_values
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.intake.cases import store as judgements
from app.intake.cases.extract import in_run
from app.intake.runs import store
from app.intake.runs.run import MemoryUses, NewRun, Run, RunStory, check_run, counts, name_reasons
from app.storage.memories import store as memories
from app.storage.memories.service import Memories, check_limit
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import UNMADE, Workspace

_RUNS_AT_ONCE = 1_000
"""Runs whose judgements upkeep reads at a time."""
Place = tuple[datetime, str]
"""The end of a page: the creation time and id of its last run."""


class RunEnd(Protocol):
    """Notes what the output and the score of a run show, in the transaction that stores the run."""

    async def __call__(self, session: Session, run_id: str, *, output: str | None, score: float | None) -> None:
        """Notes it."""


@frozen
class Runs:
    """The runs of a database."""

    database: Database
    mask_secrets: bool = True
    on_end: RunEnd | None = None
    """Notes what a run shows of the cues that it was shown; None if nothing is to be noted."""

    async def record(
        self,
        workspace: Workspace,
        run: NewRun,
        *,
        must_exist: bool = False,
        needs_output: bool = False,
        known_first: bool = False,
    ) -> tuple[Run, bool]:
        """Stores a run, or the new fields of a known run; returns it, and whether it is new.

        A repeated call changes nothing. The run's observations take its score and verdict, unless a better judged run
        states the same; with `known_first` only the unjudged observations do.

        Raises:
            InvalidInput: a field is not valid, or the run `needs_output` and has none; nothing is stored then.
            NotFound: with `must_exist`, the run is not stored.
        """
        run = await asyncio.to_thread(self._storable, run)
        if needs_output and not must_exist and workspace.workspace_id == UNMADE:
            _check_output(run.output)
        target = workspace if must_exist else await Workspaces(database=self.database).get_or_create(workspace)

        async def attempt() -> tuple[Run, bool]:
            async with self.database.session(target) as session:
                await store.lock(session, run.run_id)
                if must_exist and await store.find(session, run.run_id) is None:
                    raise NotFound(f"there is no run {run.run_id!r} in workspace {workspace.name}")
                saved, is_new = await self.save(session, run, known_first=known_first)
                if needs_output:
                    _check_output(saved.output)
                return saved, is_new

        return await again_after_deadlock(attempt)

    def _storable(self, run: NewRun) -> NewRun:
        """Returns the run in the form that is stored. The caller uses a thread: the output may have megabytes.

        Raises:
            InvalidInput: a field is not valid.
        """
        check_run(run)
        run = masked_values(run) if self.mask_secrets else run
        counted = {} if run.output is None else counts(run.output)
        return structs.replace(run, **{name: value for name, value in counted.items() if getattr(run, name) is None})

    async def save(self, session: Session, run: NewRun, *, known_first: bool = False) -> tuple[Run, bool]:
        """Stores a checked run and judges its observations; returns the stored run, and whether it is new.

        The caller holds the run's lock.
        """
        saved, is_new = await store.save(session, run)
        if run.final_score is not None or run.verdict:
            held = await store.held_by(session, run.run_id)
            await memories.lock(session, held)
            await store.judge(session, held, known_first=known_first)
        await judgements.note_run(session, run.run_id, in_run(run.run_id, saved))
        if self.on_end is not None:
            await self.on_end(session, run.run_id, output=saved.output, score=saved.final_score)
        return saved, is_new

    async def read_judgements(self, across: Across) -> int:
        """Reads the judgements of runs that were stored by a version that did not; returns the number of runs."""
        async with across(transaction=False) as session:
            found = await store.unjudged_of_all(session, limit=_RUNS_AT_ONCE)
        for workspace_id, run_id in found:
            async with self.database.session(workspace_id) as session:
                await store.lock(session, run_id)
                run = await store.find(session, run_id)
                if run is not None:
                    await judgements.note_run(session, run_id, in_run(run_id, run))
        return len(found)

    async def get(self, workspace: Workspace, run_id: str) -> RunStory:
        """Returns a run with the memories that it was given and made, or only its traces if it is not stored.

        Raises:
            NotFound: no row of the workspace names this run.
        """
        unknown = NotFound(f"there is no run {run_id!r} in workspace {workspace.name}")
        if any(name_reasons(run_id)):
            raise unknown
        async with self.database.session(workspace, transaction=False) as session:
            run = await store.find(session, run_id)
            if run is None:
                # If its name contains a secret, all its traces are stored with the masked name.
                run_id = mask(run_id).text
                run = await store.find(session, run_id)
            given = await store.given_to(session, run_id)
            cues = await store.warned_by(session, run_id)
            compression = await store.compression_of(session, run_id)
            made_of = await store.made_of(session, run_id)
        if not any((run, given, cues, made_of, compression)):
            raise unknown
        return RunStory(
            run_id=run_id,
            run=run,
            given=tuple(given),
            cues=tuple(cues),
            compression=compression,
            observations=tuple(made_of),
        )

    async def page(
        self,
        workspace: Workspace,
        *,
        task_type: str | None = None,
        verdict: str | None = None,
        agent: str | None = None,
        limit: int = 50,
        before: Place | None = None,
    ) -> Sequence[Run]:
        """Returns runs, newest first, after the place that `before` names.

        Raises:
            InvalidInput: the limit is out of range.
        """
        check_limit(limit)
        given = {"task_type": task_type, "verdict": verdict, "agent": agent}
        check(unstorable({name: value or "" for name, value in given.items()}))
        values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        conditions = [f"{name} = %({name})s" for name in values]
        if before is not None:
            conditions.append("(created_at, run_id) < (%(created_at)s, %(run_id)s)")
            values |= {"created_at": before[0], "run_id": before[1]}
        async with self.database.session(workspace, reading=True) as session:
            return await store.page(session, conditions=conditions, values=values, limit=limit)

    async def uses(self, workspace: Workspace, memory_id: UUID) -> MemoryUses:
        """Returns the run that made a memory, the runs that state the same, and those that it was given to.

        Raises:
            NotFound: the workspace has no such memory.
        """
        async with Memories(database=self.database).open(workspace, memory_id) as (session, memory):
            maker = None if memory.run_id is None else await store.find(session, memory.run_id)
            said_by = await store.said_by(session, memory_id)
            given = await store.uses_of(session, memory_id)
        return MemoryUses(
            memory_id=memory_id,
            made_by=memory.run_id,
            made_by_stored=maker is not None,
            uses=memory.uses,
            said_by=tuple(said_by),
            given_to=tuple(given),
        )


def _check_output(output: str | None) -> None:
    if not output:
        raise InvalidInput("remember", "needs the run's output, as text: send it with the run")
