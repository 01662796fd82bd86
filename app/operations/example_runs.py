"""The content of the examples: sessions, and the runs behind the reports, as their files have them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.intake.runs.run import NewRun

_FOLDER = Path(__file__).with_name("example_files")
REPORTS, SESSIONS, HISTORY = _FOLDER / "reports", _FOLDER / "sessions", _FOLDER / "history.json"
EXAMPLE = "priors-example"
"""The mark of the examples: a tag of their memories, and a key of their runs' metadata."""
PLAN, PLANNED_IN = "drop column deprecated_flag", "example-session-312"
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
    """The content of HISTORY."""

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
    return sorted(_read_runs(given), key=lambda run: run.judgement.date)


def _read_runs(given: ExampleHistory) -> Iterator[ExampleRun]:
    for case in given.cases:
        for version in case.runs:
            content = (REPORTS / case.folder / version.version / "judgement.json").read_bytes()
            facts = msgspec.json.decode(content)
            facts["date"] += "T00:00:00Z"
            yield ExampleRun(case=case, version=version, judgement=msgspec.convert(facts, ExampleJudgement))


def example_history() -> ExampleHistory:
    """Returns the content of HISTORY."""
    return msgspec.json.decode(HISTORY.read_bytes(), type=ExampleHistory)


def session_ids() -> list[str]:
    """Returns the ids of the sessions in SESSIONS: the names of their files."""
    return sorted(path.stem for path in SESSIONS.glob("*.jsonl"))
