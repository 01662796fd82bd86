"""Stores the logs of connected projects that their service has not read: of sessions that ended while it was away.

A service calls it at each start, and a hook at the start of each session.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.interfaces.cli import failures, hooks
from app.interfaces.cli.past_sessions import Stamp, past_logs
from app.interfaces.cli.projects import Project, known_projects, state_folder

_FILE = "read-logs.json"
"""The file that has the size and the time of change of each log when it was read last."""
_QUIET_SECONDS = 2.0
"""Time for which a log must not have changed: a hook stores one that a session is writing."""
_PROGRAMS = frozenset({"Claude Code", "Codex", "Gemini CLI"})
"""Programs that have a log for each session: a file of several would bring in what was before the connection."""


def note_read(data_dir: str, stamps: Mapping[str, Stamp]) -> None:
    """Notes that the service on a data directory has stored logs as they were then."""
    with _lock(data_dir):
        kept = {name: value for name, value in read_notes(data_dir).items() if Path(name).exists()}
        _write(data_dir, {**kept, **{path: list(stamp) for path, stamp in stamps.items()}})


def catch_up(project: Project, key: str) -> None:
    """Stores the logs of a project that have changed since they were read last, and since it was connected.

    One that cannot be stored is noted as a failure, and tried again at the next call. A failure is over where another
    process has stored the log since. It never raises: logs that cannot be looked for are a failure of the project.
    """
    try:
        _catch_up(project, key)
    except Exception as error:  # noqa: BLE001 - nobody sees it otherwise
        failures.note("project", project.root, str(error), project=project.root, data_dir=project.data_dir)
    else:
        failures.clear("project", project.root, data_dir=project.data_dir)


def _catch_up(project: Project, key: str) -> None:
    place = hooks.Destination(project.service(), key, project.workspace, data_dir=project.data_dir)
    known, now = read_notes(project.data_dir), time.time()
    for log in reversed(past_logs(Path(project.root), since=project.since)):
        if log.program not in _PROGRAMS:
            continue
        if known.get(str(log.path)) == list(log.stamp):
            failures.clear("session", log.path.stem, data_dir=project.data_dir)
        elif now - log.stamp[1] / 1e9 > _QUIET_SECONDS:
            hooks.store_log(place, str(log.path), log.name, project.root, pauses=(0.0,))


def _folder(data_dir: str) -> Path:
    return Path(data_dir or state_folder())


def read_notes(data_dir: str) -> dict[str, list[int]]:
    """Returns the stamps of the logs that were read, by their paths."""
    try:
        found = json.loads((_folder(data_dir) / _FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(data_dir: str, known: dict[str, list[int]]) -> None:
    part = _folder(data_dir) / f"{_FILE}.{os.getpid()}"
    part.touch(mode=0o600)
    part.write_text(json.dumps(known), encoding="utf-8")
    part.replace(_folder(data_dir) / _FILE)


@contextmanager
def _lock(data_dir: str) -> Iterator[None]:
    """Locks the notes of a data directory for this process, so that no other loses what it notes."""
    _folder(data_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    with (_folder(data_dir) / f"{_FILE}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def catch_up_all(data_dir: str) -> None:
    """Stores the unread logs of all projects that have their service on a data directory."""
    for project in known_projects().values():
        if project.data_dir == data_dir:
            catch_up(project, os.environ.get("PRIORS_API_KEY", ""))


if __name__ == "__main__":
    os.nice(10)
    catch_up_all(sys.argv[1])
