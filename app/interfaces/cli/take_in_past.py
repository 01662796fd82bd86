"""Takes in the earlier sessions of a project: sends their logs to the service, and tells what came of them."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

import typer
from priors_client import Client
from priors_client import PriorsError as ClientError
from priors_client.models import Cue, Week
from rich.console import Console

from app.errors import ConfigurationError
from app.interfaces.cli.client import client_of
from app.interfaces.cli.hooks import store_log
from app.interfaces.cli.past_sessions import PastLog, past_logs
from app.interfaces.cli.progress import progress
from app.interfaces.cli.projects import Project
from app.interfaces.cli.unread import destination_of, read_logs
from app.recall.cues.signs import signs_of

_AT_ONCE = 3
"""Logs that are sent at the same time: the service reads one while it stores another."""
_SECONDS = 60.0
"""Longest wait for an answer of the service beside its storing."""
_WHOLE_SECONDS, _LESSON_SECONDS, _LOOK_SECONDS = 50.0, 10.0, 0.5
"""Time from the start until which lessons are waited for, the least such time once all logs are stored, and time
between two looks at them."""
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
            _offer(client, project, key, program, wanted=wanted)
    except ClientError as error:
        raise ConfigurationError(f"the earlier sessions are not all taken in: {error}") from error


def _offer(client: Client, project: Project, key: str, program: str, *, wanted: bool | None) -> None:
    week = client.admin.status().week
    # A store that lost its sessions, or another one in the same place, has not read them.
    known = read_logs(destination_of(project, "")) if week.sessions else {}
    logs = [log for log in past_logs(Path(project.root)) if known.get(str(log.path)) != list(log.stamp)]
    if logs and _agrees(logs, program, wanted=wanted):
        _take_in(client, project, key, logs, week)
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


def _take_in(client: Client, project: Project, key: str, logs: Sequence[PastLog], before: Week) -> None:
    """Takes logs in, names those that cannot be stored, and tells what came of them."""
    started, place = time.monotonic(), destination_of(project, key)
    with progress("reading") as show, ThreadPoolExecutor(_AT_ONCE) as threads:
        pending = {
            threads.submit(store_log, place, str(log.path), log.name, project.root, pauses=(0.0,)): log for log in logs
        }
        for done, stored in enumerate(as_completed(pending), 1):
            show(done, len(logs), pending[stored].name)
            if reason := stored.result():
                typer.echo(f"failed: {pending[stored].path}: {reason}", err=True)
    week = _wait_for_lessons(client, started)
    _tell(client, week, new=week.sessions - before.sessions, seconds=time.monotonic() - started)


def _wait_for_lessons(client: Client, started: float) -> Week:
    """Returns the state of the workspace once lessons are made of all sessions, or when that takes too long."""
    until = max(started + _WHOLE_SECONDS, time.monotonic() + _LESSON_SECONDS)
    with Console(stderr=True).status("making lessons of them …"):
        while (week := client.admin.status().week).unread and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
    return week


def _tell(client: Client, week: Week, *, new: int, seconds: float) -> None:
    """Prints how many sessions were read and what they taught, with the weightiest sentence of a person."""
    cues = list(client.admin.iter_cues(state=["active"]))
    line = f"Read {new} earlier sessions of this project ({seconds:.0f} s). {len(cues)} lessons"
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
