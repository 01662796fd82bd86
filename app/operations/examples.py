"""The examples: their content, as their files have it, and the verbs that store, play and take them away.

Storing continues after a kill.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import structs

from app.errors import EmbeddingUnavailable, InvalidInput, NotFound
from app.foundation.values import frozen
from app.insight.map import store as maps
from app.intake.cases import store as judgements
from app.intake.reports import store as reports
from app.intake.reports.store import IngestionOptions
from app.intake.runs import store as runs
from app.intake.runs.feedback.store import FeedbackEntry, RatingDetails
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


class ExampleRating(RatingDetails, frozen=True, kw_only=True):
    """A person's rating of the part of a report that has this text."""

    source: str
    text: str
    rating: Literal[1, -1]
    idempotency_key: str


class ExampleRun(msgspec.Struct, frozen=True):
    """A run, step by step as a pipeline sends it. What it wrote is in its file."""

    begun: NewRun
    recalls: tuple[Query, ...]
    judged: NewRun
    observed: Outcome
    ratings: tuple[ExampleRating, ...]
    ended: NewRun


class ExampleHistory(msgspec.Struct, frozen=True):
    """The content of _HISTORY: the runs in the order of their dates."""

    runs: tuple[ExampleRun, ...]


def example_runs() -> Sequence[ExampleRun]:
    """Returns the example runs in the order of their dates; none of an installation without them."""
    return msgspec.json.decode(_HISTORY.read_bytes(), type=ExampleHistory).runs if _HISTORY.is_file() else ()


def _session_ids() -> list[str]:
    """Returns the ids of the sessions in SESSIONS: the names of their files."""
    return sorted(path.stem for path in SESSIONS.glob("*.jsonl"))


_BUDGET = 500
"""Tokens of an example recall, as the recipe has them."""

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


@frozen
class Removed:
    """The numbers of examples that were taken away."""

    memories: int
    files: int
    runs: int


@frozen
class Examples:
    """Stores the examples as a user would, and takes them away."""

    services: Services

    async def are_lacking(self) -> bool:
        """Returns True if the store never held anything, or holds a part of the examples and nothing else."""
        async with self.services.database.across() as session:
            state = await session.one(_STATE, {"mark": EXAMPLE})
        if state.own or (state.used and not state.begun):
            return False
        return bool(state.finished < len(example_runs()))

    async def begin(self, workspace: Workspace) -> None:
        """Stores the example reports, sessions and their cues, and the beginnings of the runs.

        A second call stores what is missing.

        Raises:
            DatabaseUnavailable: another call stores the rest.
        """
        workspace = await self.services.workspaces.get_or_create(workspace)
        for run in example_runs():
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
        workspace, played = await self.services.workspaces.get_or_create(workspace), 0
        try:
            await self._plan(workspace)
            for run in example_runs():
                async with self.services.database.session(workspace, transaction=False) as session:
                    stored = await runs.find(session, run.begun.run_id)
                if stored is None or stored.finished_at is None:
                    await self._play(workspace, run)
                    played += 1
        except NotFound:
            await self.remove(workspace)
        return played

    async def remove(self, workspace: Workspace) -> Removed:
        """Takes the examples away for good, with their ratings, recalls and maps, in one transaction.

        What carries no mark stays. The next start does not store the examples again.
        """
        # A start that still stores the examples may have left traces of runs that are gone.
        known = [run.begun.run_id for run in example_runs()]
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

    async def _play(self, workspace: Workspace, run: ExampleRun) -> None:
        """Plays a run; its end is stored last, so that a run that was broken off is played again."""
        services = self.services
        await services.runs.record(workspace, run.begun, must_exist=True)
        async with services.database.session(workspace) as session:
            await recalls.forget_runs(session, [run.begun.run_id])
        for query in run.recalls:
            await services.histories.get(workspace, query, budget_tokens=_BUDGET)
        output = (_FOLDER / str(run.judged.output_path)).read_text()
        await services.runs.record(workspace, structs.replace(run.judged, output=output), must_exist=True)
        try:
            observation_id = await services.observations.request(workspace, run.observed)
        except InvalidInput as error:
            raise NotFound(f"{run.begun.run_id} was taken away") from error
        made_of = await services.observations.make(workspace, observation_id)
        if made_of.memory_id is not None:
            # The next run's recalls should find it by its meaning, too.
            with suppress(EmbeddingUnavailable):
                await services.embedder.embed_pending(workspace, ids=[made_of.memory_id])
        for rating in run.ratings:
            await self._rate(workspace, rating)
        await services.runs.record(workspace, run.ended, must_exist=True)

    async def _rate(self, workspace: Workspace, given: ExampleRating) -> None:
        filters = Filters(source=given.source, tags=(EXAMPLE,))
        chunks = await self.services.memories.list_live(workspace, filters=filters)
        for chunk in [chunk for chunk in chunks if given.text in chunk.body][:1]:
            entry = FeedbackEntry(
                memory_id=chunk.memory_id,
                rating=given.rating,
                reviewer=given.reviewer,
                comment=given.comment,
                run_id=given.run_id,
                idempotency_key=given.idempotency_key,
            )
            await self.services.ratings.rate(workspace, entry)
