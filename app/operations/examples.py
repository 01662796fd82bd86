"""The verbs that store the examples in an empty store, continue after a kill, and take them away."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from app.context.history import history
from app.cues import log as activations
from app.cues.activate import PlanAsked, activate
from app.cues.cue import CORRECTION, PREFERENCE
from app.cues.extraction.extracting import extract_session
from app.cues.outcomes import note_outcome
from app.cues.tending import store as tending
from app.cues.tending.proposals import CANDIDATE
from app.db.database import Database
from app.errors import EmbeddingUnavailable, InvalidInput, NotFound
from app.index.backfill import embed_pending
from app.index.indexing import refresh_statistics
from app.insight.map import store as maps
from app.intake.reports import store as reports
from app.intake.reports.ingest import ingest
from app.intake.reports.outcome import Ingestion
from app.intake.sessions import store as sessions
from app.memories import changes, sources
from app.memories.browse import list_memories
from app.memories.filters import Filters
from app.memories.remember import Door
from app.operations.example_runs import (
    EXAMPLE,
    HISTORY,
    PLAN,
    PLANNED_IN,
    REPORTS,
    SESSIONS,
    ExampleHistory,
    ExampleRating,
    ExampleRun,
    example_history,
    runs_of,
    session_ids,
)
from app.retrieval import log
from app.retrieval.recall import Query
from app.runs import store as runs
from app.runs.feedback.rate import rate
from app.runs.judgements import store as judgements
from app.runs.observations.observation import Outcome
from app.runs.observations.request import request_observation
from app.runs.observations.settle import compress_requested
from app.runs.record import record_run
from app.runs.run import NewRun
from app.wiring import Services
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace

HITS, BUDGET = 4, 500
"""Hits and tokens of an example recall, as the recipe has them."""

# Counting its words is the last step of the first ingestion and of a removal: a workspace without a memory whose words
# were never counted has never held anything, or was made by a start that was killed at once.
# The notes of a case are made of the judgements in reports and runs, and are nobody's own.
STATE = """
SELECT EXISTS (
        SELECT 1 FROM memories m WHERE body <> '' AND NOT tags @> ARRAY[%(mark)s] AND NOT EXISTS (
            SELECT 1 FROM sources s WHERE s.workspace_id = m.workspace_id AND s.source_id = m.source_id
                AND s.kind = 'other' AND s.uri LIKE 'case:%%'
        )
    )
    OR EXISTS (SELECT 1 FROM runs WHERE NOT jsonb_exists(metadata, %(mark)s)) AS own,
    EXISTS (SELECT 1 FROM workspaces WHERE statistics_at IS NOT NULL) AS used,
    (SELECT count(*) FROM runs WHERE jsonb_exists(metadata, %(mark)s)) AS begun,
    (SELECT count(*) FROM runs WHERE jsonb_exists(metadata, %(mark)s) AND finished_at IS NOT NULL) AS finished
"""


async def are_lacking(database: Database) -> bool:
    """Returns True if the store never held anything, or holds a part of the examples and nothing else."""
    if not HISTORY.is_file():
        return False
    async with database.across() as session:
        state = await session.one(STATE, {"mark": EXAMPLE})
    if state.own or (state.used and not state.begun):
        return False
    return bool(state.finished < len(runs_of(example_history())))


async def begin(services: Services, workspace: Workspace) -> Ingestion:
    """Stores the example reports and sessions, and the beginnings of the runs. A second call stores what is missing.

    Raises:
        DatabaseUnavailable: another call stores the rest.
    """
    workspace = await made(services.database, workspace)
    for run in runs_of(example_history()):
        await record_run(services.database, workspace=workspace, run=run.begun)
    return await ingest(replace(services.intake(workspace), tags=(EXAMPLE,)), [REPORTS, SESSIONS])


async def play(services: Services, workspace: Workspace) -> int:
    """Plays the example runs that are not finished, in the order of their dates; returns their number.

    Before them, it makes the cues of the example sessions, and asks what session 312 asked.
    Each recall finds only what was there before its run. If a person takes the examples away meanwhile, this takes
    away the rest.

    Raises:
        Unavailable: another call plays the rest.
    """
    workspace, given, played = await made(services.database, workspace), example_history(), 0
    try:
        await _plan(services, workspace)
        for run in runs_of(given):
            async with services.database.session(workspace, transaction=False) as session:
                stored = await runs.find(session, run.run_id)
            if stored is None or stored.finished_at is None:
                await _play(services, workspace, given, run)
                played += 1
    except NotFound:
        await remove(services.database, workspace=workspace)
    return played


async def _plan(services: Services, workspace: Workspace) -> None:
    """Makes cues of the example sessions, and the activation of which the agent of session 312 tells, once."""
    database, mask = services.database, services.settings.mask_secrets
    door = Door(database, services.counter, workspace, mask=mask, provider=services.provider)
    for session_id in session_ids():
        await extract_session(door, session_id)
    async with database.session(workspace, transaction=False) as session:
        if await activations.of_run(session, PLANNED_IN):
            return
    asked = PlanAsked(plan=PLAN, agent="coder", run_id=PLANNED_IN)
    told = await activate(database, services.provider, services.counter, workspace=workspace, asked=asked, mask=mask)
    if told.activation_id is not None:
        heeded = [cue.cue_id for cue in told.cues if cue.kind in {CORRECTION, PREFERENCE}]
        await note_outcome(database, workspace=workspace, activation_id=told.activation_id, heeded=heeded)


async def _play(services: Services, workspace: Workspace, given: ExampleHistory, run: ExampleRun) -> None:
    """Plays a run; its end is stored last, so that a run that was broken off is played again."""
    database = services.database
    await record_run(database, workspace=workspace, run=run.begun, must_exist=True)
    async with database.session(workspace) as session:
        await log.forget_runs(session, [run.run_id])
    for agent, query in given.asks.items():
        if agent in run.version.stages:
            await _recall(services, workspace, run, agent, query.format(case=run.case.case))
    await record_run(database, workspace=workspace, run=run.judged, must_exist=True)
    tags = (EXAMPLE, run.case.folder, run.version.version)
    outcome = Outcome(run_id=run.run_id, tags=tags, occurred_at=run.finished_at)
    try:
        observation_id = await request_observation(database, workspace=workspace, outcome=outcome)
    except InvalidInput as error:
        raise NotFound(f"{run.run_id} was taken away") from error
    compressor = services.compressor
    made_of = await compress_requested(database, compressor, workspace=workspace, observation_id=observation_id)
    if made_of.memory_id is not None:
        # The next run's recalls should find it by its meaning, too.
        with suppress(EmbeddingUnavailable):
            await embed_pending(database, services.provider, workspace=workspace, ids=[made_of.memory_id])
    await _rate(database, workspace, run, given.ratings)
    ended = NewRun(run_id=run.run_id, finished_at=run.finished_at)
    await record_run(database, workspace=workspace, run=ended, must_exist=True)


async def _recall(services: Services, workspace: Workspace, run: ExampleRun, agent: str, query: str) -> None:
    asked = Query(
        text=query,
        k=HITS,
        filters=Filters(until=run.judgement.date),
        agent=agent,
        run_id=run.run_id,
        purpose="history",
        now=run.started_at,
    )
    database, provider, counter = services.database, services.provider, services.counter
    await history(database, provider, counter, workspace=workspace, query=asked, budget_tokens=BUDGET)


async def _rate(database: Database, workspace: Workspace, run: ExampleRun, ratings: Sequence[ExampleRating]) -> None:
    """Rates the parts of this run's reports."""
    for number, given in enumerate(ratings):
        if not given.report.startswith(f"{run.path}/"):
            continue
        filters = Filters(source=given.report, tags=(EXAMPLE,))
        chunks = await list_memories(database, workspace=workspace, filters=filters)
        for chunk in [chunk for chunk in chunks if given.text in chunk.body][:1]:
            await rate(
                database,
                workspace=workspace,
                memory_id=chunk.memory_id,
                rating=given.rating,
                reviewer=given.reviewer,
                comment=given.comment,
                run_id=run.run_id,
                idempotency_key=f"{EXAMPLE}-{number}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The numbers of examples that were taken away."""

    memories: int
    files: int
    runs: int


async def remove(database: Database, *, workspace: Workspace) -> Removed:
    """Takes the examples away for good, with their ratings, recalls and maps, in one transaction.

    What carries no mark stays. The next start does not store the examples again.
    """
    # A start that still stores the examples may have left traces of runs that are gone.
    known = [run.run_id for run in runs_of(example_history())] if HISTORY.is_file() else []
    async with database.session(workspace) as session:
        names = await runs.marked(session, EXAMPLE, known)
        stored = await runs.forget(session, names)
        await log.forget_runs(session, names)
        await activations.forget_run(session, PLANNED_IN)
        rows = await changes.destroy_tagged(session, EXAMPLE)
        tagged = list({row.source_id for row in rows if row.source_id})
        await judgements.replace(session, dict.fromkeys([*names, *tagged], ()))
        idle = await judgements.idle(session)
        gone = [*(row.memory_id for row in rows), *await changes.destroy_case_notes(session, idle)]
        await sources.forget_empty(session, idle)
        logs = await sessions.paths_of(session, tagged)
        files = await sources.forget_empty(session, tagged)
        await sessions.forget_untouched(session)
        await reports.forget_ingestions(session, [*files, *(end for path in logs for end in _ends_of(path))])
        await maps.forget_layouts(session, gone)
        await tending.withdraw(session, CANDIDATE, gone)
        if stored or gone:
            await refresh_statistics(session, stale=-1)
    return Removed(memories=len(gone), files=len(files), runs=stored)


def _ends_of(path: str) -> list[str]:
    """Returns the names that an ingestion may show for a path: its last parts."""
    parts = path.split("/")
    return ["/".join(parts[place:]) for place in range(len(parts))]
