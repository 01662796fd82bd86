"""The store, the service and the workspace of a command: by its options, the environment, and the project's record."""

import json
import os
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from time import monotonic, sleep

import psutil  # type: ignore[import-untyped]  # it has no types
import typer

from app.errors import ConfigurationError
from app.interfaces.cli import starting
from app.interfaces.cli.hooks import Destination
from app.interfaces.cli.projects import RECORD, own_data_dir, project_of, recorded_url, write_whole
from app.settings import Settings, from_environment

STORE = "postgres"
"""The folder of the embedded database."""
_EVERYWHERE = {"http://0.0.0.0:": "http://127.0.0.1:", "http://[::]:": "http://[::1]:"}
"""Addresses of all interfaces, and those at which this machine asks."""


HEALTH_SECONDS = 2.0
"""Longest wait for a service that the data directory's record names; after it, the command does without."""
START_SECONDS, _LOOK_SECONDS, _STOP_SECONDS = 180.0, 0.2, 30.0
"""Longest wait for a service that is started here: the first start makes the database and fetches the model."""
_NAMED = ("PRIORS_URL", "PRIORS_DATA_DIR", "PRIORS_DATABASE_URL")
"""Variables that name a service or a store."""


def settings_here() -> Settings:
    """Returns the settings of the environment, with the store or the service of this folder.

    It is what the environment names, else that of the connected project, else the data directory here, else this
    user's own. No store is made in a folder that was not named.

    Raises:
        ConfigurationError: a setting, or the record of the projects cannot be read.
    """
    settings = from_environment()
    if any(name in os.environ for name in _NAMED):
        return settings
    project = project_of()
    if project is not None and project.data_dir:
        return replace(settings, data_dir=Path(project.data_dir))
    url = "" if project is None else project.url
    data_dir = settings.data_dir if settings.data_dir.is_dir() else Path(own_data_dir())
    return replace(settings, url=url, data_dir=data_dir)


def workspace_here() -> str:
    """Returns the workspace of the environment or of the connected project; "" for the service's default.

    Raises:
        ConfigurationError: the record of the projects cannot be read.
    """
    if given := os.environ.get("PRIORS_WORKSPACE"):
        return given
    project = project_of()
    return "" if project is None else project.workspace


def check_store(settings: Settings) -> None:
    """Raises ConfigurationError if there is no store yet."""
    if settings.database_url or (settings.data_dir / STORE).is_dir():
        return
    elsewhere = f"this command works on a store itself, and not by the service at {settings.url}"
    service = elsewhere if settings.url else "PRIORS_URL a service"
    raise ConfigurationError(
        f"there is no store in {settings.data_dir}; PRIORS_DATA_DIR names another folder, {service}, or make one by"
        " `priors run`"
    )


def write_record(settings: Settings, url: str) -> None:
    """Notes that this process serves at a URL, and its settings. A folder that cannot be written to gets no note."""
    for everywhere, here in _EVERYWHERE.items():
        url = url.replace(everywhere, here)
    record = {"url": url, **_process_facts(os.getpid()), "database": _database_hash(settings)}
    with suppress(OSError):
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        write_whole(settings.data_dir / RECORD, json.dumps(record))
        starting.write_settings(settings.data_dir, os.environ)


def remove_record(settings: Settings) -> None:
    """Removes the note of this process; one of another process stays."""
    if _record(settings).items() >= _process_facts(os.getpid()).items():
        (settings.data_dir / RECORD).unlink(missing_ok=True)


def _recorded_url(settings: Settings) -> str:
    """Returns the URL of the service that runs on the data directory and its database; "" if none does."""
    pid = (record := _record(settings)).get("process")
    if not isinstance(pid, int) or record.get("database") != _database_hash(settings):
        return ""
    return str(record.get("url")) if record.items() >= _process_facts(pid).items() else ""


def _record(settings: Settings) -> dict[str, object]:
    try:
        record = json.loads((settings.data_dir / RECORD).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _process_facts(pid: int) -> dict[str, object]:
    """Returns what tells a process from others of its number; nothing that any record has, if it has ended."""
    try:
        return {"process": pid, "started": psutil.Process(pid).create_time()}
    except (psutil.Error, ValueError, OverflowError):
        return {"process": None}


def _database_hash(settings: Settings) -> str:
    """Returns what tells a database from others, without its password."""
    return sha256(settings.database_url.encode()).hexdigest() if settings.database_url else ""


def running_url(settings: Settings) -> str:
    """Returns the URL of the service on the data directory, if it answers; else ""."""
    url = _recorded_url(settings)
    return url if url and answers(url) else ""


def answers(url: str) -> bool:
    """Tells whether a service answers at a URL. It asks for no key."""
    try:
        health = Destination(url, "", "", until=monotonic() + HEALTH_SECONDS).ask("/health")
    except (OSError, ValueError):
        return False
    return isinstance(health, dict) and health.get("status") == "ok"


def needed_url(settings: Settings) -> str:
    """Returns the URL of the service of the connected project that this is, and starts it if it does not run.

    It returns "" where no project is connected, or the environment names another store.

    Raises:
        ConfigurationError: it does not start.
    """
    project = project_of()
    if project is None or not project.data_dir or settings.data_dir != Path(project.data_dir) or settings.database_url:
        return ""
    if not answers(project.service()):
        start(settings.data_dir, project.url)
    return project.service()


def start(data_dir: Path, url: str) -> None:
    """Starts the service of a data directory, or finds it starting, and waits until it answers at a URL.

    Raises:
        ConfigurationError: it does not start.
    """
    log = data_dir.absolute() / starting.LOG
    begins = log.stat().st_size if log.exists() else 0
    service: Popen[bytes] | None = None
    until = monotonic() + START_SECONDS
    try:
        # It notes itself once its model is loaded; before that it answers by words alone.
        while not recorded_url(str(data_dir)) or not answers(url):
            # One that another process starts may end before it answers.
            if service is None and (service := starting.start(data_dir, url)) is not None:
                place = f"with its data in {data_dir.absolute()} (end it by: kill {service.pid})"
                typer.echo(f"no service runs: starting one, {place} …", err=True)
            _wait_a_little(service, until)
    except BaseException as error:
        if service is not None:
            _end(service)
        if not isinstance(error, TimeoutError):
            raise
        last = log.read_bytes()[begins:].decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigurationError(f"the service does not start; {log} ends with: {''.join(last)}") from error


def _wait_a_little(service: "Popen[bytes] | None", until: float) -> None:
    """Waits until it is time to look at a service again.

    Raises:
        TimeoutError: it has ended, or takes too long.
    """
    if (service is not None and service.poll() is not None) or monotonic() > until:
        raise TimeoutError
    sleep(_LOOK_SECONDS)


def _end(service: "Popen[bytes]") -> None:
    """Ends a service, which stops its database first; one that does not end in time is killed."""
    service.terminate()
    try:
        service.wait(_STOP_SECONDS)
    except TimeoutExpired:
        service.kill()
