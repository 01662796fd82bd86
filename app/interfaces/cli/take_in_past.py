"""Takes in the earlier sessions of a project: sends their logs to the service, and tells what came of them."""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

import typer
from priors_client import Client, ConnectionFailed
from priors_client import PriorsError as ClientError
from priors_client.models import Cue, FileOutcome, Week
from rich.console import Console

from app.errors import ConfigurationError
from app.interfaces.cli import failures
from app.interfaces.cli.client import client_of
from app.interfaces.cli.past_sessions import PastLog, Stamp, past_logs
from app.interfaces.cli.progress import Shown
from app.interfaces.cli.projects import Project
from app.interfaces.cli.unread import destination_of, note_read, read_logs
from app.recall.cues.signs import signs_of

_AT_ONCE = 3
"""Logs that are sent at the same time: the service reads one while it stores another."""
_SECONDS = 600.0
"""Longest wait for the service to store one log."""
_WHOLE_SECONDS, _LESSON_SECONDS, _LOOK_SECONDS = 50.0, 10.0, 0.5
"""Time from the start until which lessons are waited for, the least such time once all logs are stored, and time
between two looks at them."""
_PAGE = 100
_LONGEST_QUOTE = 200
"""Most characters of a sentence that is shown: a longer one is rarely a lesson as a person says it."""


def offer_past(project: Project, key: str, *, program: str, wanted: bool | None) -> None:
    """Takes in the earlier sessions of a project, if the user wants that; asks, where a terminal is there to ask.

    Raises:
        ConfigurationError: the service does not answer any more, or refuses.
    """
    if wanted is False:
        return
    try:
        with client_of(project.service(), key, project.workspace, _SECONDS) as client:
            _offer(client, project, program, wanted=wanted)
    except ClientError as error:
        raise ConfigurationError(f"the earlier sessions are not all taken in: {error}") from error


def _offer(client: Client, project: Project, program: str, *, wanted: bool | None) -> None:
    week = client.admin.status().week
    # A store that lost its sessions, or another one in the same place, has not read them.
    known = read_logs(destination_of(project, "")) if week.sessions else {}
    logs = [log for log in past_logs(Path(project.root)) if known.get(str(log.path)) != list(log.stamp)]
    if logs and _agrees(logs, program, wanted=wanted):
        _take_in(client, project, logs, week)
    elif wanted and not logs:
        typer.echo("no earlier session of this project is new")


def _agrees(logs: Sequence[PastLog], program: str, *, wanted: bool | None) -> bool:
    counts = Counter(log.program for log in logs)
    found = f"{len(logs)} logs of earlier sessions ({', '.join(f'{name} {count}' for name, count in counts.items())})"
    if wanted:
        return True
    if not sys.stdin.isatty():
        typer.echo(f"found {found}; take them in by: priors connect {program} --sessions")
        return False
    return typer.confirm(f"Found {found}. Take them in?", default=True)


def _take_in(client: Client, project: Project, logs: Sequence[PastLog], before: Week) -> None:
    """Takes logs in, notes those that were read, also where it is broken off, and tells what came of them."""
    started, read, grown = time.monotonic(), dict[str, Stamp](), 0
    try:
        with Shown("reading") as shown:
            for done, (log, outcome) in enumerate(_send_all(client, logs), 1):
                shown.show(done, len(logs), log.name)
                if _is_read(project, log, outcome):
                    read[str(log.path)] = log.stamp
                    grown += isinstance(outcome, FileOutcome) and outcome.status == "changed"
    finally:
        note_read(destination_of(project, ""), read)
    week = _wait_for_lessons(client, started)
    _tell(client, week, new=week.sessions - before.sessions, grown=grown, seconds=time.monotonic() - started)


def _send_all(client: Client, logs: Sequence[PastLog]) -> Iterator[tuple[PastLog, FileOutcome | Exception]]:
    """Yields what came of each log, several at a time.

    Raises:
        ConfigurationError: the service does not answer any more.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        pending = {threads.submit(_send, client, log): log for log in logs}
        for done in as_completed(pending):
            try:
                yield pending[done], done.result()
            except ConnectionFailed as error:
                threads.shutdown(cancel_futures=True)
                advice = "what is stored stays; the same command goes on with the rest"
                raise ConfigurationError(f"the service does not answer any more: {error}; {advice}") from error
            except Exception as error:  # noqa: BLE001 - one log that nobody thought of does not stop the others
                yield pending[done], error


def _send(client: Client, log: PastLog) -> FileOutcome:
    return client.ingest_report(path=log.name, content=log.path.read_bytes().decode(errors="replace"))


def _is_read(project: Project, log: PastLog, outcome: FileOutcome | Exception) -> bool:
    """Tells whether a log was read; one that was not is named, now and where failures are shown."""
    if isinstance(outcome, FileOutcome) and outcome.status != "failed":
        left_out = [outcome.reason] if outcome.reason else []
        for reason in (*left_out, *outcome.skipped):
            typer.echo(f"left out: {log.path}: {reason}", err=True)
        failures.clear("log", log.name, data_dir=project.data_dir)
        return True
    reason = str(outcome) if isinstance(outcome, Exception) else outcome.reason
    typer.echo(f"failed: {log.path}: {reason}", err=True)
    failures.note("log", log.name, reason, project=project.root, data_dir=project.data_dir)
    return False


def _wait_for_lessons(client: Client, started: float) -> Week:
    """Returns the state of the workspace once lessons are made of all sessions, or when that takes too long."""
    until = max(started + _WHOLE_SECONDS, time.monotonic() + _LESSON_SECONDS)
    with Console(stderr=True).status("making lessons of them …"):
        while (week := client.admin.status().week).unread and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
    return week


def _tell(client: Client, week: Week, *, new: int, grown: int, seconds: float) -> None:
    """Prints how many sessions were read and what they taught, with the weightiest sentence of a person."""
    cues = list(client.admin.iter_cues(state=["active"], limit=_PAGE))
    also = f" and what was new in {grown} others" if grown else ""
    line = f"Read {new} earlier sessions of this project{also} ({seconds:.0f} s). {len(cues)} lessons"
    line += f", {week.proposals} wait for you." if week.proposals else "."
    typer.echo(f"{line}{_own_sentence(cues)}")
    if week.unread:
        typer.echo(f"Lessons of {week.unread} sessions are still being made; `priors status` shows how many.")
    if pending := client.admin.status().waiting:
        typer.echo(f"Until their vectors are made, {pending:,} turns are found by their words alone.")


def _own_sentence(cues: Sequence[Cue]) -> str:
    """Returns the weightiest lesson that a person stated, in his own words and with their day; "" if there is none."""
    own = [cue for cue in cues if _is_sentence(cue)]
    if not own:
        return ""
    best = max(own, key=lambda cue: (cue.consequence, len(cue.seen_on), cue.confidence))
    said, at = best.evidence[0], best.evidence[0].at or best.valid_from
    year = "" if at.year == datetime.now(UTC).year else f" {at.year}"
    return f" Yours from {at.day} {at:%B}{year}: “{' '.join(said.quote.split())}”."


def _is_sentence(cue: Cue) -> bool:
    """Tells whether a lesson is a person's, with words of his that lay down a rule."""
    quotes = [item.quote for item in cue.evidence[:1]]
    return cue.trust == "person" and not cue.suspect and any(map(is_rule, quotes))


def is_rule(quote: str) -> bool:
    """Tells whether a sentence of a person holds beyond its moment, such as one that forbids something."""
    return len(quote) <= _LONGEST_QUOTE and "lasting" in signs_of(quote, "person")
