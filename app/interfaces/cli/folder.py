"""The data directory: whether it has a store, and the record by which commands find the service that runs on it."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no types

from app.errors import ConfigurationError
from app.settings import Settings

RECORD = "service.json"
STORE = "postgres"
"""The folder of the embedded database."""
_EVERYWHERE = {"http://0.0.0.0:": "http://127.0.0.1:", "http://[::]:": "http://[::1]:"}
"""Addresses of all interfaces, and those at which this machine asks."""


def check_store(settings: Settings) -> None:
    """Raises ConfigurationError if there is no store yet, and names the nearest one."""
    if settings.database_url or (settings.data_dir / STORE).is_dir():
        return
    near = next(_near(settings.data_dir.absolute()), None)
    other = f"the nearest one is {near}: set PRIORS_DATA_DIR to it" if near else "PRIORS_DATA_DIR names another folder"
    service = "this command works on a store itself, and not by PRIORS_URL" if settings.url else "PRIORS_URL a service"
    raise ConfigurationError(
        f"there is no store in {settings.data_dir}; {other}, {service}, or make one by `priors run`"
    )


def _near(folder: Path) -> Iterator[Path]:
    """Yields the data directories around a folder: those of the folders above it, beside it and in them."""
    above = (parent / folder.name for parent in folder.parent.parents)
    beside = chain(folder.parent.glob(f"*/{folder.name}"), folder.parent.parent.glob(f"*/{folder.name}"))
    with suppress(OSError):
        yield from (place for place in chain(above, beside) if (place / STORE).is_dir())


def write_record(settings: Settings, url: str) -> None:
    """Notes that this process serves at a URL. A folder that cannot be written to gets no note."""
    for everywhere, here in _EVERYWHERE.items():
        url = url.replace(everywhere, here)
    record = {"url": url, **_process(os.getpid()), "database": _database(settings)}
    part = settings.data_dir / f"{RECORD}.{os.getpid()}"
    with suppress(OSError):
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        part.touch(mode=0o600)
        part.write_text(json.dumps(record), encoding="utf-8")
        part.replace(settings.data_dir / RECORD)


def remove_record(settings: Settings) -> None:
    """Removes the note of this process; one of another process stays."""
    if _record(settings).items() >= _process(os.getpid()).items():
        (settings.data_dir / RECORD).unlink(missing_ok=True)


def recorded_url(settings: Settings) -> str:
    """Returns the URL of the service that runs on the data directory and its database; "" if none does."""
    record = _record(settings)
    pid = record.get("process")
    if not isinstance(pid, int) or record.get("database") != _database(settings):
        return ""
    return str(record.get("url")) if record.items() >= _process(pid).items() else ""


def _record(settings: Settings) -> dict[str, object]:
    try:
        record = json.loads((settings.data_dir / RECORD).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _process(pid: int) -> dict[str, object]:
    """Returns what tells a process from others of its number; nothing that any record has, if it has ended."""
    try:
        return {"process": pid, "started": psutil.Process(pid).create_time()}
    except (psutil.Error, ValueError, OverflowError):
        return {"process": None}


def _database(settings: Settings) -> str:
    """Returns what tells a database from others, without its password."""
    return sha256(settings.database_url.encode()).hexdigest() if settings.database_url else ""
