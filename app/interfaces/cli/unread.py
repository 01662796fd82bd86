"""Stores the logs of connected projects that their service has not read: of sessions that ended while it was away.

A service calls it at each start, and a hook at the start of each session.
"""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from app.interfaces.cli import failures, hooks
from app.interfaces.cli.notes import Notes, change_notes, place_name, read_notes
from app.interfaces.cli.past_sessions import Stamp, past_logs
from app.interfaces.cli.projects import Project, known_projects, state_folder

_FILE = "read-logs.json"
"""The file that has the size and the time of change of each log when it was read last."""
_QUIET_SECONDS = 2.0
"""Time for which a log must not have changed: a hook stores one that a session is writing."""
_PROGRAMS = frozenset({"Claude Code", "Codex", "Gemini CLI"})
"""Programs that have a log for each session: a file of several would bring in what was before the connection."""


def note_read(place: hooks.Destination, stamps: Mapping[str, Stamp]) -> None:
    """Notes that a service has stored logs in a workspace as they were then."""

    def add(known: Notes) -> Notes:
        return {**{path: known[path] for path in known if Path(path).exists()}, **stamps}

    change_notes(_file(place), _name(place), add)


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


def destination_of(project: Project, key: str) -> hooks.Destination:
    """Returns the service and the workspace of a project."""
    return hooks.Destination(project.service(), key, project.workspace, data_dir=project.data_dir)


def _catch_up(project: Project, key: str) -> None:
    place = destination_of(project, key)
    known, now = read_logs(place), time.time()
    for log in reversed(past_logs(Path(project.root), since=project.since)):
        if log.program not in _PROGRAMS:
            continue
        if known.get(str(log.path)) == list(log.stamp):
            failures.clear("session", log.path.stem, data_dir=project.data_dir)
        elif now - log.stamp[1] / 1e9 > _QUIET_SECONDS:
            hooks.store_log(place, str(log.path), log.name, project.root, pauses=(0.0,))


def read_logs(place: hooks.Destination) -> Notes:
    """Returns the stamps of the logs that a service has stored in a workspace, as lists, by their paths."""
    return read_notes(_file(place), _name(place))


def _file(place: hooks.Destination) -> Path:
    return Path(place.data_dir or state_folder()) / _FILE


def _name(place: hooks.Destination) -> str:
    return place_name(place.url, place.workspace, data_dir=place.data_dir)


def catch_up_all(data_dir: str) -> None:
    """Stores the unread logs of all projects that have their service on a data directory."""
    for project in known_projects().values():
        if project.data_dir == data_dir:
            catch_up(project, os.environ.get("PRIORS_API_KEY", ""))


if __name__ == "__main__":
    os.nice(10)
    catch_up_all(sys.argv[1])
