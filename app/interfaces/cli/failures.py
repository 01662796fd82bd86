"""Notes what failed while nobody watched, such as a session that a background copy could not store.

Hooks import this module, so it imports a few of Python's own modules and nothing else.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from app.interfaces.cli.notes import Notes, change_notes, read_notes
from app.interfaces.cli.projects import state_folder

FILE, _PLACE = "failures.json", "failures"
"""The file of a data directory, or of this user's state, that has the failures, and their name in it."""
_MOST, _REASON_CHARACTERS = 500, 1_000
"""Most failures that are kept, the latest, and most characters of a reason."""
IN_PART = "session log"
"""The kind of a log that is stored without what could not be read in it. It may never be read, so it is told once."""
_DONE = {
    "session": "stored",
    IN_PART: "read whole",
    "service": "started",
    "project": "searched for logs",
}
"""The word for what was to be done with each kind of thing."""


class NotedFailure(NamedTuple):
    """A thing that could not be done, and has not been done since."""

    at: str
    """The moment of its first failure, in UTC."""
    what: str
    """The kind of the thing, such as `session`."""
    name: str
    project: str
    """The folder in which it happened."""
    reason: str
    """The latest reason."""


def note(what: str, name: str, reason: str, *, project: str = "", data_dir: str = "") -> None:
    """Notes a failure beside the store, or in this user's state where the data directory is not on this machine.

    An earlier failure of the same thing keeps its moment and gets the new reason.

    Raises:
        OSError: the file cannot be written.
    """

    def add(known: Notes) -> Notes:
        first = known.get(key, {}).get("at") or _now()
        failure = NotedFailure(first, what, name, project, reason[:_REASON_CHARACTERS])
        others = [item for item in known.items() if item[0] != key]
        return dict([*others, (key, failure._asdict())][-_MOST:])

    key = f"{what} {name}"
    change_notes(_path(data_dir), _PLACE, add)


def clear(what: str, name: str, *, data_dir: str = "") -> None:
    """Removes the failure of a thing that has been done now.

    Raises:
        OSError: the file cannot be written.
    """
    key = f"{what} {name}"
    for path in _paths(data_dir):
        if key in read_notes(path, _PLACE):
            change_notes(path, _PLACE, lambda known: {one: known[one] for one in known if one != key})


def failures(data_dir: str = "") -> list[NotedFailure]:
    """Returns what failed and has not been done since, the first failure first."""
    return sorted(NotedFailure(**item) for path in _paths(data_dir) for item in read_notes(path, _PLACE).values())


def summary(found: Sequence[NotedFailure]) -> str:
    """Returns a line that tells what failed: `2 sessions could not be stored since 2026-11-24 10:02 UTC: …`."""
    parts = []
    for what in dict.fromkeys(item.what for item in found):
        items = [item for item in found if item.what == what]
        things = f"{len(items)} {what}{'s' if len(items) > 1 else ''}"
        done = _DONE.get(what, "done")
        parts.append(f"{things} could not be {done} since {items[0].at}: {items[-1].reason}")
    return "; ".join(parts)


def _path(data_dir: str) -> Path:
    state = Path(state_folder())
    folder = Path(data_dir).expanduser() if data_dir else state
    return (folder if folder.is_dir() and os.access(folder, os.W_OK) else state) / FILE


def _paths(data_dir: str) -> Sequence[Path]:
    """Returns the files that may have a failure: of the data directory, and of this user's state."""
    return tuple(dict.fromkeys([_path(data_dir), Path(state_folder()) / FILE]))


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
