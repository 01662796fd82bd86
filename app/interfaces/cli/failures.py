"""Notes what failed while nobody watched, such as a session that a background copy could not store.

Hooks import this module, so it imports a few of Python's own modules and nothing else.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from app.interfaces.cli.projects import state_folder

FILE = "failures.jsonl"
"""The file of a data directory, or of this user's state, that has one failure a line."""
_MOST, _REASON_CHARACTERS = 500, 1_000
"""Most failures that are kept, the latest, and most characters of a reason."""
_WEEK_DAYS, _DAY_SECONDS = 6, 86_400
IN_PART = "session log"
"""The kind of a log that is stored without what could not be read in it. It may never be read, so it is told once."""
_DONE = {
    "session": "stored",
    IN_PART: "read whole",
    "service": "started",
    "log": "read",
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
    path = _path(data_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock(path.parent):
        known = _read(path)
        first = next((item.at for item in known if (item.what, item.name) == (what, name)), _now())
        others = [item for item in known if (item.what, item.name) != (what, name)]
        _write(path, [*others, NotedFailure(first, what, name, project, reason[:_REASON_CHARACTERS])][-_MOST:])


def clear(what: str, name: str, *, data_dir: str = "") -> None:
    """Removes the failure of a thing that has been done now.

    Raises:
        OSError: the file cannot be written.
    """
    _drop(lambda item: (item.what, item.name) == (what, name), data_dir)


def _drop(is_done: Callable[[NotedFailure], bool], data_dir: str) -> None:
    for path in _paths(data_dir):
        if any(map(is_done, _read(path))):
            with _lock(path.parent):
                _write(path, [item for item in _read(path) if not is_done(item)])


def failures(data_dir: str = "") -> list[NotedFailure]:
    """Returns what failed and has not been done since, the first failure first."""
    return sorted(item for path in _paths(data_dir) for item in _read(path))


def summary(found: Sequence[NotedFailure]) -> str:
    """Returns a line that tells what failed: `2 sessions could not be stored since Tuesday: no answer came from …`."""
    parts = []
    for what in dict.fromkeys(item.what for item in found):
        items = [item for item in found if item.what == what]
        things = f"{len(items)} {what}{'s' if len(items) > 1 else ''}"
        done = _DONE.get(what, "done")
        parts.append(f"{things} could not be {done} since {_day(items[0].at)}: {items[-1].reason}")
    return "; ".join(parts)


def _path(data_dir: str) -> Path:
    state = Path(state_folder())
    folder = Path(data_dir).expanduser() if data_dir else state
    return (folder if folder.is_dir() and os.access(folder, os.W_OK) else state) / FILE


def _paths(data_dir: str) -> Sequence[Path]:
    """Returns the files that may have a failure: of the data directory, and of this user's state."""
    return tuple(dict.fromkeys([_path(data_dir), Path(state_folder()) / FILE]))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _day(at: str) -> str:
    """Returns a moment as a person names it: the time of today, a day of this week, else the date."""
    # It takes 2 ms, and there is seldom a failure.
    from datetime import datetime  # noqa: PLC0415

    try:
        moment = datetime.fromisoformat(at).astimezone()
    except ValueError:
        return at
    now = datetime.now(moment.tzinfo)
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    days = (now - moment).total_seconds() / _DAY_SECONDS
    return f"{moment:%A}" if 0 <= days <= _WEEK_DAYS else f"{moment.day} {moment:%B %Y}"


def _read(path: Path) -> list[NotedFailure]:
    """Returns the failures of a file; a line of another form is left out."""
    found = []
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError, TypeError, AttributeError):
                found.append(NotedFailure(**{name: str(value) for name, value in json.loads(line).items()}))
    return found


def _write(path: Path, found: Sequence[NotedFailure]) -> None:
    """Replaces a file at once; one without a failure goes."""
    if not found:
        path.unlink(missing_ok=True)
        return
    part = path.with_name(f".{FILE}.{os.getpid()}")
    part.touch(mode=0o600)
    part.write_text("".join(f"{json.dumps(item._asdict())}\n" for item in found), encoding="utf-8")
    part.replace(path)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Holds a folder for this process, so that no other loses what it notes."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
