"""The verbs that store runs, list them, and show the chain memory → run → output → judgement → memory."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from app.cues.outcomes import infer_outcomes
from app.db.database import Database, again_after_deadlock
from app.db.session import Across, Session
from app.errors import InvalidInput, NotFound, check
from app.memories import store as memories
from app.memories import tiers
from app.memories.browse import LARGEST_PAGE, with_memory
from app.memories.gate import NAME_LIMIT, TASK_LIMIT, moment_reasons, score_reasons, unstorable
from app.runs import store
from app.runs.judgements import store as judgements
from app.runs.judgements.extract import in_run
from app.runs.run import MemoryUses, NewRun, Run, RunPoint, RunStory
from app.safety.secrets import mask, masked_values
from app.workspaces.resolve import made
from app.workspaces.workspace import UNMADE, Workspace

LARGEST_OUTPUT = 5_000_000
"""Most characters of an output."""
LIST_LIMIT = 1_000
RUNS_AT_ONCE = 1_000
"""Runs whose judgements upkeep reads at a time."""
TEXTS = ("task", "task_type", "agent", "queries", "output", "output_path", "verdict", "issues", "stages", "metadata")
LARGEST_INT, LARGEST_BIGINT = 2**31 - 1, 2**63 - 1


async def record_run(
    database: Database,
    *,
    workspace: Workspace,
    run: NewRun,
    must_exist: bool = False,
    needs_output: bool = False,
    mask: bool = True,
    known_first: bool = False,
) -> tuple[Run, bool]:
    """Stores a run, or the new fields of a known run; returns it, and whether it is new.

    A repeated call changes nothing. The run's observations take its score and verdict, unless a better judged run
    states the same; with `known_first` only the unjudged observations do.

    Raises:
        InvalidInput: a field is not valid, or the run `needs_output` and has none; nothing is stored then.
        NotFound: with `must_exist`, the run is not stored.
    """
    run = await asyncio.to_thread(_storable, run, mask=mask)
    if needs_output and not must_exist and workspace.workspace_id == UNMADE:
        _check_output(run.output)
    target = workspace if must_exist else await made(database, workspace)

    async def attempt() -> tuple[Run, bool]:
        async with database.session(target) as session:
            await store.lock(session, run.run_id)
            if must_exist and await store.find(session, run.run_id) is None:
                raise NotFound(f"there is no run {run.run_id!r} in workspace {workspace.name}")
            saved, is_new = await save_run(session, run, known_first=known_first)
            if needs_output:
                _check_output(saved.output)
            return saved, is_new

    return await again_after_deadlock(attempt)


async def save_run(session: Session, run: NewRun, *, known_first: bool = False) -> tuple[Run, bool]:
    """Stores a checked run and judges its observations; returns the stored run, and whether it is new.

    The caller holds the run's lock.
    """
    saved, is_new = await store.save(session, run)
    if saved.finished_at or saved.output or saved.final_score is not None or saved.verdict:
        await tiers.end_run(session, run.run_id)
    if run.final_score is not None or run.verdict:
        held = await store.held_by(session, run.run_id)
        await memories.lock(session, held)
        await store.judge(session, held, known_first=known_first)
    await judgements.note_run(session, run.run_id, in_run(run.run_id, saved))
    await infer_outcomes(session, run.run_id, output=saved.output, score=saved.final_score)
    return saved, is_new


async def read_judgements(database: Database, across: Across) -> int:
    """Reads the judgements of runs that were stored by a version that did not; returns the number of runs."""
    async with across(transaction=False) as session:
        found = await store.unjudged_of_all(session, limit=RUNS_AT_ONCE)
    for workspace_id, run_id in found:
        async with database.session(workspace_id) as session:
            await store.lock(session, run_id)
            run = await store.find(session, run_id)
            if run is not None:
                await judgements.note_run(session, run_id, in_run(run_id, run))
    return len(found)


def _check_output(output: str | None) -> None:
    if not output:
        raise InvalidInput("remember", "needs the run's output, as text: send it with the run")


def _storable(run: NewRun, *, mask: bool) -> NewRun:
    """Returns the run in the form that is stored. The caller uses a thread, because the output may have megabytes.

    Raises:
        InvalidInput: a field is not valid.
    """
    check_run(run)
    run = masked_values(run) if mask else run
    counted = {} if run.output is None else counts(run.output)
    return replace(run, **{name: value for name, value in counted.items() if getattr(run, name) is None})


def counts(output: str) -> dict[str, Any]:
    """Returns the numbers of an output's lines and bytes."""
    lines = output.count("\n") + (not output.endswith("\n") and bool(output))
    return {"lines": lines, "bytes": len(output.encode())}


def check_run(run: NewRun) -> None:
    """Raises InvalidInput if a field is not valid."""
    check(_reasons(run))


def _reasons(run: NewRun) -> Iterator[str]:
    yield from name_reasons(run.run_id)
    limits = {"task": TASK_LIMIT, "task_type": NAME_LIMIT, "agent": NAME_LIMIT, "verdict": NAME_LIMIT}
    for name, limit in {**limits, "output": LARGEST_OUTPUT, "output_path": TASK_LIMIT}.items():
        if len(getattr(run, name) or "") > limit:
            yield f"{name}: has more than {limit:,} characters"
    for name in ("queries", "issues", "round_scores"):
        if len(getattr(run, name) or ()) > LIST_LIMIT:
            yield f"{name}: at most {LIST_LIMIT:,} are taken"
    yield from _number_reasons(run)
    yield from unstorable({name: getattr(run, name) for name in TEXTS})


def _number_reasons(run: NewRun) -> Iterator[str]:
    for score in run.round_scores or ():
        yield from score_reasons("round_scores", score)
    if run.final_score is not None:
        yield from score_reasons("final_score", run.final_score)
    for name, largest in (("lines", LARGEST_INT), ("bytes", LARGEST_BIGINT)):
        if not 0 <= (getattr(run, name) or 0) <= largest:
            yield f"{name}: must be from 0 to {largest}"
    yield from moment_reasons([("started_at", run.started_at), ("finished_at", run.finished_at)])


def name_reasons(run_id: str) -> Iterator[str]:
    """Yields the reasons why a run cannot have this name."""
    if not run_id.strip() or len(run_id) > NAME_LIMIT:
        yield f"run_id: has 1 to {NAME_LIMIT} characters"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in run_id):  # noqa: PLR2004 - control characters
        yield "run_id: has a control character"
    yield from unstorable({"run_id": run_id})


MOST_POINTS = 2_000
"""Most points of a plot: a reader could not distinguish more."""

Place = tuple[datetime, str]
"""The end of a page: the creation time and id of its last run."""


async def get_run(database: Database, *, workspace: Workspace, run_id: str) -> RunStory:
    """Returns a run with the memories that it was given and made, or only its traces if it is not stored.

    Raises:
        NotFound: no row of the workspace names this run.
    """
    unknown = NotFound(f"there is no run {run_id!r} in workspace {workspace.name}")
    if any(name_reasons(run_id)):
        raise unknown
    async with database.session(workspace, transaction=False) as session:
        run = await store.find(session, run_id)
        if run is None:
            # If its name contains a secret, all its traces are stored with the masked name.
            run_id = mask(run_id).text
            run = await store.find(session, run_id)
        given = await store.given_to(session, run_id)
        compression = await store.compression_of(session, run_id)
        made = await store.made_of(session, run_id)
    if not any((run, given, made, compression)):
        raise unknown
    return RunStory(run_id=run_id, run=run, given=tuple(given), compression=compression, observations=tuple(made))


async def list_runs(
    database: Database,
    *,
    workspace: Workspace,
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
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
    given = {"task_type": task_type, "verdict": verdict, "agent": agent}
    check(unstorable({name: value or "" for name, value in given.items()}))
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    conditions = [f"{name} = %({name})s" for name in values]
    if before is not None:
        conditions.append("(created_at, run_id) < (%(created_at)s, %(run_id)s)")
        values |= {"created_at": before[0], "run_id": before[1]}
    async with database.session(workspace, reading=True) as session:
        return await store.page(session, conditions=conditions, values=values, limit=limit)


async def run_points(database: Database, *, workspace: Workspace) -> Sequence[RunPoint]:
    """Returns the latest MOST_POINTS judged runs for a plot over time, newest first."""
    async with database.session(workspace, reading=True) as session:
        return await store.points(session, limit=MOST_POINTS)


async def memory_uses(database: Database, *, workspace: Workspace, memory_id: UUID) -> MemoryUses:
    """Returns the run that made a memory, the runs that state the same, and those that it was given to.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (session, memory):
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
