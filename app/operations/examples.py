"""The examples: their content, as their files have it, and the verbs that store, play and take them away.

Storing continues after a kill.
"""

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.errors import EmbeddingUnavailable, InvalidInput, NotFound
from app.insight.map import store as maps
from app.intake.cases import store as judgements
from app.intake.reports import store as reports
from app.intake.reports.store import IngestionOptions
from app.intake.runs import store as runs
from app.intake.runs.feedback.store import FeedbackEntry
from app.intake.runs.observations.observation import Outcome
from app.intake.runs.run import NewRun
from app.intake.sessions import store as sessions
from app.recall.cues import log as activations
from app.recall.cues.activate import PlanAsked
from app.recall.cues.cue import CORRECTION, PREFERENCE
from app.recall.cues.review import store as tending
from app.recall.cues.review.rules import CANDIDATE
from app.recall.retrieval.recall import Query
from app.storage.index.indexing import refresh_statistics
from app.storage.memories import changes, sources
from app.storage.memories.filters import Filters
from app.storage.recalls import store as recalls
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

_FOLDER = Path(__file__).with_name("example_files")
REPORTS, SESSIONS, _HISTORY = _FOLDER / "reports", _FOLDER / "sessions", _FOLDER / "history.json"
EXAMPLE = "priors-example"
"""The mark of the examples: a tag of their memories, and a key of their runs' metadata."""
_PLAN, _PLANNED_IN = "drop column deprecated_flag", "example-session-312"
"""The plan that the agent of session 312 asked about, and the run of that activation."""
_STARTS_AT = timedelta(hours=9)
"""Time of the day at which an example run starts, in UTC."""


class ExampleVersion(msgspec.Struct, frozen=True):
    """One run of a case. What it wrote and how it was judged are in the report and the judgement of its folder."""

    version: str
    minutes: int
    round_scores: tuple[float, ...]
    queries: tuple[str, ...]
    stages: Mapping[str, Any]


class Market(msgspec.Struct, frozen=True):
    """A market that was studied several times."""

    case: str
    folder: str
    task: str
    runs: tuple[ExampleVersion, ...]


class ExampleRating(msgspec.Struct, frozen=True):
    """A person's rating of the part of a report that has this text."""

    report: str
    text: str
    rating: Literal[1, -1]
    reviewer: str
    comment: str


class ExampleHistory(msgspec.Struct, frozen=True):
    """The content of _HISTORY."""

    asks: Mapping[str, str]
    """The query of each agent before it acts."""
    cases: tuple[Market, ...]
    ratings: tuple[ExampleRating, ...]


class ExampleIssue(msgspec.Struct, frozen=True):
    """An issue in a judgement."""

    severity: str
    title: str


class ExampleJudgement(msgspec.Struct, frozen=True):
    """The judgement of a version, as its file has it."""

    date: datetime
    score: float
    verdict: str
    issues: tuple[ExampleIssue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    """An example run with the files of its version."""

    case: Market
    version: ExampleVersion
    judgement: ExampleJudgement

    @property
    def path(self) -> str:
        """The folder of its files, below REPORTS."""
        return f"{self.case.folder}/{self.version.version}"

    @property
    def run_id(self) -> str:
        """The run's name."""
        return f"example-{self.case.folder}-{self.version.version}"

    @property
    def started_at(self) -> datetime:
        """The start of the run, on the day of its judgement."""
        return self.judgement.date + _STARTS_AT

    @property
    def finished_at(self) -> datetime:
        """The end of the run."""
        return self.started_at + timedelta(minutes=self.version.minutes)

    @property
    def begun(self) -> NewRun:
        """The run as it is known at its start."""
        return NewRun(
            run_id=self.run_id,
            task=self.case.task,
            task_type="market study",
            agent="researcher",
            queries=self.version.queries,
            metadata={EXAMPLE: True, "case": self.case.case, "version": self.version.version},
            started_at=self.started_at,
        )

    @property
    def judged(self) -> NewRun:
        """The run's output and judgement."""
        return NewRun(
            run_id=self.run_id,
            output=(REPORTS / self.path / "report.md").read_text(),
            output_path=f"reports/{self.path}/report.md",
            stages=self.version.stages,
            round_scores=self.version.round_scores,
            final_score=self.judgement.score,
            verdict=self.judgement.verdict,
            issues=tuple(f"{issue.severity}: {issue.title}" for issue in self.judgement.issues),
        )


def runs_of(given: ExampleHistory) -> list[ExampleRun]:
    """Returns the example runs in the order of their dates."""
    runs = [_read_run(case, version) for case in given.cases for version in case.runs]
    return sorted(runs, key=lambda run: run.judgement.date)


def _read_run(case: Market, version: ExampleVersion) -> ExampleRun:
    facts = msgspec.json.decode((REPORTS / case.folder / version.version / "judgement.json").read_bytes())
    facts["date"] += "T00:00:00Z"
    return ExampleRun(case=case, version=version, judgement=msgspec.convert(facts, ExampleJudgement))


def example_history() -> ExampleHistory:
    """Returns the content of _HISTORY."""
    return msgspec.json.decode(_HISTORY.read_bytes(), type=ExampleHistory)


def _session_ids() -> list[str]:
    """Returns the ids of the sessions in SESSIONS: the names of their files."""
    return sorted(path.stem for path in SESSIONS.glob("*.jsonl"))


_HITS, _BUDGET = 4, 500
"""Hits and tokens of an example recall, as the recipe has them."""

_STORING = "storing-examples"
"""The file of the data directory that a process locks while it stores the examples."""
NOT_ALL_STORED = "the examples are still being stored: what is asked of them may be missing for some seconds"

# Counting its words is the last step of the first ingestion and of a removal: a workspace without a memory whose words
# were never counted has never held anything, or was made by a start that was killed at once.
# The notes of a case are made of the judgements in reports and runs, and are nobody's own.
_STATE = """
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


@contextmanager
def storing(data_dir: Path) -> Iterator[None]:
    """Lets all processes of the data directory know that examples are being stored.

    The system releases the lock of a process that is killed.
    """
    mark = data_dir / _STORING
    try:
        with mark.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    finally:
        mark.unlink(missing_ok=True)


def are_being_stored(data_dir: Path) -> bool:
    """Tells whether a process stores the examples now. It takes 2 µs where none does."""
    try:
        with (data_dir / _STORING).open() as mark:
            fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The numbers of examples that were taken away."""

    memories: int
    files: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Stores the examples as a user would, and takes them away."""

    services: Services

    async def are_lacking(self) -> bool:
        """Returns True if the store never held anything, or holds a part of the examples and nothing else."""
        if not _HISTORY.is_file():
            return False
        async with self.services.database.across() as session:
            state = await session.one(_STATE, {"mark": EXAMPLE})
        if state.own or (state.used and not state.begun):
            return False
        return bool(state.finished < len(runs_of(example_history())))

    async def begin(self, workspace: Workspace) -> None:
        """Stores the example reports, sessions and their cues, and the beginnings of the runs.

        A second call stores what is missing.

        Raises:
            DatabaseUnavailable: another call stores the rest.
        """
        workspace = await self.services.workspaces.get_or_create(workspace)
        for run in runs_of(example_history()):
            await self.services.runs.record(workspace, run.begun)
        await self.services.ingestions.ingest(workspace, [REPORTS, SESSIONS], IngestionOptions(tags=(EXAMPLE,)))
        by_rules = replace(self.services.extraction, chat=None)
        for session_id in _session_ids():
            await by_rules.extract_session(workspace, session_id)

    async def play(self, workspace: Workspace) -> int:
        """Plays the example runs that are not finished, in the order of their dates; returns their number.

        Before them, it asks what session 312 asked.
        Each recall finds only what was there before its run. If a person takes the examples away meanwhile, this takes
        away the rest.

        Raises:
            Unavailable: another call plays the rest.
        """
        workspace, given, played = await self.services.workspaces.get_or_create(workspace), example_history(), 0
        try:
            await self._plan(workspace)
            for run in runs_of(given):
                async with self.services.database.session(workspace, transaction=False) as session:
                    stored = await runs.find(session, run.run_id)
                if stored is None or stored.finished_at is None:
                    await self._play(workspace, given, run)
                    played += 1
        except NotFound:
            await self.remove(workspace)
        return played

    async def remove(self, workspace: Workspace) -> Removed:
        """Takes the examples away for good, with their ratings, recalls and maps, in one transaction.

        What carries no mark stays. The next start does not store the examples again.
        """
        # A start that still stores the examples may have left traces of runs that are gone.
        known = [run.run_id for run in runs_of(example_history())] if _HISTORY.is_file() else []
        async with self.services.database.session(workspace) as session:
            names = await runs.runs_with_key(session, EXAMPLE, known)
            stored = await runs.forget(session, names)
            await recalls.forget_runs(session, names)
            await activations.forget_run(session, _PLANNED_IN)
            rows = await changes.destroy_tagged(session, EXAMPLE)
            tagged = list({row.source_id for row in rows if row.source_id})
            await judgements.replace(session, dict.fromkeys([*names, *tagged], ()))
            idle = await judgements.idle(session)
            gone = [*(row.memory_id for row in rows), *await changes.destroy_case_notes(session, idle)]
            await sources.forget_empty(session, idle)
            logs = await sessions.paths_of(session, tagged)
            files = await sources.forget_empty(session, tagged)
            await sessions.forget_untouched(session)
            # An ingestion may show a path by its last parts.
            ends = ["/".join(parts[at:]) for parts in (path.split("/") for path in logs) for at in range(len(parts))]
            await reports.forget_ingestions(session, [*files, *ends])
            await maps.forget_shown(session, gone)
            await tending.withdraw(session, CANDIDATE, gone)
            if stored or gone:
                await refresh_statistics(session, stale=-1)
        return Removed(memories=len(gone), files=len(files), runs=stored)

    async def _plan(self, workspace: Workspace) -> None:
        """Makes the activation of which the agent of session 312 tells, once."""
        async with self.services.database.session(workspace, transaction=False) as session:
            if await activations.of_run(session, _PLANNED_IN):
                return
        asked = PlanAsked(plan=_PLAN, agent="coder", run_id=_PLANNED_IN)
        told = await self.services.activations.activate(workspace, asked)
        if told.activation_id is not None:
            heeded = [cue.cue_id for cue in told.cues if cue.kind in {CORRECTION, PREFERENCE}]
            await self.services.activations.note_outcome(workspace, told.activation_id, heeded=heeded)

    async def _play(self, workspace: Workspace, given: ExampleHistory, run: ExampleRun) -> None:
        """Plays a run; its end is stored last, so that a run that was broken off is played again."""
        await self.services.runs.record(workspace, run.begun, must_exist=True)
        async with self.services.database.session(workspace) as session:
            await recalls.forget_runs(session, [run.run_id])
        for agent, query in given.asks.items():
            if agent in run.version.stages:
                await self._recall(workspace, run, agent, query.format(case=run.case.case))
        await self.services.runs.record(workspace, run.judged, must_exist=True)
        tags = (EXAMPLE, run.case.folder, run.version.version)
        outcome = Outcome(run_id=run.run_id, tags=tags, occurred_at=run.finished_at)
        try:
            observation_id = await self.services.observations.request(workspace, outcome)
        except InvalidInput as error:
            raise NotFound(f"{run.run_id} was taken away") from error
        made_of = await self.services.observations.make(workspace, observation_id)
        if made_of.memory_id is not None:
            # The next run's recalls should find it by its meaning, too.
            with suppress(EmbeddingUnavailable):
                await self.services.embedder.embed_pending(workspace, ids=[made_of.memory_id])
        await self._rate(workspace, run, given.ratings)
        ended = NewRun(run_id=run.run_id, finished_at=run.finished_at)
        await self.services.runs.record(workspace, ended, must_exist=True)

    async def _recall(self, workspace: Workspace, run: ExampleRun, agent: str, query: str) -> None:
        asked = Query(
            text=query,
            k=_HITS,
            filters=Filters(until=run.judgement.date),
            agent=agent,
            run_id=run.run_id,
            purpose="history",
            now=run.started_at,
        )
        await self.services.histories.get(workspace, asked, budget_tokens=_BUDGET)

    async def _rate(self, workspace: Workspace, run: ExampleRun, ratings: Sequence[ExampleRating]) -> None:
        """Rates the parts of this run's reports."""
        for number, given in enumerate(ratings):
            if not given.report.startswith(f"{run.path}/"):
                continue
            filters = Filters(source=given.report, tags=(EXAMPLE,))
            chunks = await self.services.memories.list_live(workspace, filters=filters)
            for chunk in [chunk for chunk in chunks if given.text in chunk.body][:1]:
                entry = FeedbackEntry(
                    memory_id=chunk.memory_id,
                    rating=given.rating,
                    reviewer=given.reviewer,
                    comment=given.comment,
                    run_id=run.run_id,
                    idempotency_key=f"{EXAMPLE}-{number}",
                )
                await self.services.ratings.rate(workspace, entry)
