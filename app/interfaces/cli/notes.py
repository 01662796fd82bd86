"""Files of notes on what this user's machine has read or sent, by the service and workspace that stored it."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.interfaces.cli.projects import recorded_url

Notes = dict[str, Any]


def place_name(url: str, workspace: str, *, data_dir: str = "") -> str:
    """Returns the name of a workspace of a service: of its data directory where it is on this machine, else its URL.

    The port of a service on this machine may change. Any other URL than that of the data directory is another service.
    """
    service = data_dir if data_dir and url in {"", recorded_url(data_dir)} else url.rstrip("/")
    return f"{workspace} {service}"


def read_notes(path: Path, place: str) -> Notes:
    """Returns the notes of a place in a file; nothing of a file that was written before its notes named a place."""
    found = _read(path).get(place)
    return found if isinstance(found, dict) else {}


def change_notes(path: Path, place: str, change: Callable[[Notes], Notes]) -> None:
    """Replaces the notes of a place; no other process loses what it notes meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock(path):
        known = {name: value for name, value in _read(path).items() if isinstance(value, dict)}
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.touch(mode=0o600)
        part.write_text(json.dumps({**known, place: change(known.get(place, {}))}), encoding="utf-8")
        part.replace(path)


def _read(path: Path) -> Notes:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.with_name(f"{path.name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
