"""Starts the service of a data directory in the background, once, whoever needs it: a hook, `connect`, a command.

A hook imports it where no service answers: some of Python's own library and nothing else.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from app.errors import ConfigurationError
from app.interfaces.cli.projects import RECORD, write_whole

LOG = "service.log"
"""The file of the data directory that has what a service prints that was started in the background."""
SETTINGS = "settings.json"
"""The file of the data directory that has the settings of the service that ran last, without secrets."""
_LOCK, _LOCKED = "starting.lock", "LOCKED_BY_PRIORS"
"""The file that a service locks while it runs, and the variable that tells it the number of the open file."""
_PREFIX = "PRIORS_"
_OF_A_CALLER = frozenset({"URL", "WORKSPACE", "DATA_DIR", "HOST", "PORT"})
"""Settings that a service does not take over from the one before it: they are its caller's, or part of its address."""
_SECRET = ("KEY", "DATABASE_URL")
"""The ends of the names of settings that may hold a secret."""


def write_settings(data_dir: Path, environ: Mapping[str, str]) -> None:
    """Stores the settings that a service has of its environment; of those that may hold a secret only the names."""
    given = {name: value for name, value in environ.items() if name.startswith(_PREFIX) and _is_of_service(name)}
    secret = sorted(name for name in given if name.endswith(_SECRET))
    kept = {name: value for name, value in given.items() if name not in secret}
    write_whole(data_dir / SETTINGS, json.dumps({"settings": kept, "secret": secret}, indent=1))


def _is_of_service(name: str) -> bool:
    return name.removeprefix(_PREFIX) not in _OF_A_CALLER and not name.startswith(f"{_PREFIX}TEST_")


def service_environment(data_dir: Path, url: str) -> dict[str, str]:
    """Returns the environment of a service on a data directory, with the settings of the one that ran there last.

    Raises:
        ConfigurationError: that one had a secret which this process does not have.
    """
    known, secrets = _known_settings(data_dir)
    if lacking := [name for name in secrets if name not in os.environ]:
        names = " and ".join(lacking)
        raise ConfigurationError(
            f"the service on {data_dir} ran with {names}, not set here: start it yourself by `priors run`"
        )
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(_PREFIX) or _is_of_service(name)
    }
    parts = urlsplit(url)
    address = {"HOST": parts.hostname or "127.0.0.1", "PORT": str(parts.port or 80), "DATA_DIR": str(data_dir)}
    return {**known, **inherited, **{f"{_PREFIX}{name}": value for name, value in address.items()}}


def _known_settings(data_dir: Path) -> tuple[dict[str, str], list[str]]:
    """Returns the settings of the service that ran last on a data directory, and the names of its secrets."""
    try:
        found = json.loads((data_dir / SETTINGS).read_bytes())
        return dict(found["settings"]), list(found["secret"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, []


def start(data_dir: Path, url: str) -> "subprocess.Popen[bytes] | None":
    """Starts a service that goes on when this process has ended; returns None if one runs, or is starting.

    The service inherits the lock and has it until it ends, however that happens: no second one is started meanwhile.

    Raises:
        ConfigurationError: see `service_environment`; or the data directory cannot be written to.
    """
    folder = data_dir.absolute()
    environment = service_environment(folder, url)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _take_lock(folder)
    except OSError as error:
        raise ConfigurationError(f"{data_dir} cannot be written to: {error.strerror or error}") from error
    if lock is None:
        return None
    with lock, (folder / LOG).open("ab") as output:
        # That of a service which was killed.
        (folder / RECORD).unlink(missing_ok=True)
        return subprocess.Popen(  # noqa: S603 - this program itself
            [str(Path(sys.executable).with_name("priors")), "run"],
            cwd=folder,
            env={**environment, _LOCKED: str(lock.fileno())},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )


def _take_lock(folder: Path) -> "BinaryIO | None":
    """Returns the open file that keeps a data directory locked; None if another process has locked it."""
    lock = (folder / _LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def keep_locked(data_dir: Path) -> "BinaryIO | None":
    """Returns what keeps a data directory locked while this service runs; None if another service has locked it.

    No process that this one starts keeps the lock when this one is killed.
    """
    if not (inherited := os.environ.pop(_LOCKED, "")):
        with suppress(OSError):
            data_dir.mkdir(parents=True, exist_ok=True)
            return _take_lock(data_dir)
        return None
    os.set_inheritable(int(inherited), False)  # noqa: FBT003 - it takes no names
    return os.fdopen(int(inherited), "ab")
