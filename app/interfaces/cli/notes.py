"""Files of notes on what this user's machine has read or sent, by the service and workspace that stored it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.interfaces.cli.projects import recorded_url, take_lock, write_whole

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
    with take_lock(path):
        known = {name: value for name, value in _read(path).items() if isinstance(value, dict)}
        write_whole(path, json.dumps({**known, place: change(known.get(place, {}))}))


def _read(path: Path) -> Notes:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
