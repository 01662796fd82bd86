"""The record of connected projects: the workspace, the service and the programs of each, by the root of its repository.

A hook imports it, before each act of an agent: some of Python's own library, without `typing` and `pathlib`, which take
8 ms of a core, and nothing else.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections import namedtuple

from app.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

RECORD = "service.json"
"""The file of a data directory that names the service which runs on it, as `app.interfaces.cli.client` writes it."""
_FILE = "projects.json"
_FOLDERS = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
"""Variables by which a program names its project to what it starts: an agent may have changed the working folder."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME, _SUFFIX = 50, 6
"""Most characters of a project's name, and characters of the suffix that tells it from another of its name."""
_RESERVED = frozenset({"default"})
"""Names that no project gets: the examples are in the workspace of commands that name none."""


class Project(namedtuple("Project", "root workspace url data_dir programs since", defaults=("", "", (), 0.0))):
    """A connected project."""

    root: str
    """The folder of its repository, to which its worktrees belong; the folder itself where there is none."""
    workspace: str
    url: str
    """The URL at which its service answered when it was connected last."""
    data_dir: str
    """The data directory of its service; empty for a service on another machine."""
    programs: tuple[str, ...]
    """The programs that are connected, by the names that `priors connect` has for them."""
    since: float
    """The time at which it was connected first, in seconds: earlier logs are not read without being asked for."""

    def service(self) -> str:
        """Returns the URL of the service: of the one that ran last on its data directory, or else the stored one."""
        return recorded_url(self.data_dir) or self.url


def recorded_url(data_dir: str) -> str:
    """Returns the URL of the service that ran last on a data directory; "" if none did. Asking it tells if it runs."""
    if not data_dir:
        return ""
    try:
        with open(os.path.join(os.path.expanduser(data_dir), RECORD), "rb") as record:
            return str(json.load(record)["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def state_folder() -> str:
    """Returns the folder of what Priors notes for this user."""
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "priors")


def own_data_dir() -> str:
    """Returns the data directory of the service for all projects of this user."""
    return os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "priors")


def record_file() -> str:
    """Returns the path of the record."""
    return os.path.join(state_folder(), _FILE)


def known_projects() -> dict[str, Project]:
    """Returns the connected projects by their roots.

    Raises:
        ConfigurationError: the record cannot be read.
    """
    try:
        with open(record_file(), "rb") as record:
            found = json.load(record)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{record_file()}, the record of the projects, cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"{record_file()}, the record of the projects, has no JSON object; mend it")
    return {root: _read(root, value) for root, value in found.items()}


def _read(root: str, value: object) -> Project:
    fields = value if isinstance(value, dict) else {}
    if not (workspace := fields.get("workspace")):
        raise ConfigurationError(f"{record_file()}, the record of the projects, has no workspace for {root}; mend it")
    url, data_dir = fields.get("url", ""), fields.get("data_dir", "")
    return Project(root, workspace, url, data_dir, tuple(fields.get("programs", ())), fields.get("since", 0.0))


def project_of(folder: Path | str = "") -> Project | None:
    """Returns the connected project of a folder, or of the program that started this process; None if it is in none.

    A worktree is of its repository's project, and a submodule, unless it is connected itself, of the project around it.
    Another repository inside a project is not of that project.

    Raises:
        ConfigurationError: the record cannot be read.
    """
    if not (known := known_projects()):
        return None
    for place in _upwards(os.path.realpath(folder or current_folder())):
        repository = _repository_at(place)
        if found := known.get(place) or known.get(repository):
            return found
        if repository:
            return None
    return None


def current_folder() -> str:
    """Returns the folder of the program that started this process, if it names one; else the working folder."""
    named = next(filter(None, map(os.environ.get, _FOLDERS)), "")
    return named if os.path.isdir(named) else os.getcwd()


def _upwards(folder: str) -> Sequence[str]:
    """Returns a folder and those around it."""
    found = [folder]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found


def root_of(folder: Path) -> Path:
    """Returns the root of the Git repository or worktree that a folder is in; the folder itself, if it is in none."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def repository_of(root: Path) -> Path:
    """Returns the folder of the repository that a worktree belongs to; else the root itself."""
    return type(root)(_repository_at(str(root)) or os.path.realpath(root))


def _repository_at(place: str) -> str:
    """Returns the repository of a root, also of a worktree; "" if the place is no root, or that of a submodule."""
    mark = os.path.join(place, ".git")
    if not os.path.isfile(mark):
        return os.path.realpath(place) if os.path.exists(mark) else ""
    with open(mark, encoding="utf-8", errors="replace") as told:
        leads_to = told.read().removeprefix("gitdir:").strip()
    folder = os.path.dirname(os.path.realpath(os.path.join(place, leads_to)))
    if os.path.basename(folder) != "worktrees":
        return ""
    git = os.path.dirname(folder)
    # That of a bare repository has no folder around it.
    return os.path.dirname(git) if os.path.basename(git) == ".git" else git


def free_workspace(root: Path, known: Mapping[str, Project]) -> str:
    """Returns the name of a project's workspace: that of its folder, with a suffix if another project has it."""
    project = repository_of(root)
    if stored := known.get(str(project)):
        return stored.workspace
    name = _NOT_IN_NAMES.sub("-", project.name).lstrip("._-")[:_LONGEST_NAME] or "project"
    if name not in _RESERVED.union(other.workspace for other in known.values()):
        return name
    from hashlib import sha256  # noqa: PLC0415 - it loads OpenSSL, 5 ms, and a hook makes no name

    return f"{name}-{sha256(str(project).encode()).hexdigest()[:_SUFFIX]}"


def store_project(root: Path, workspace: str = "", *, url: str = "", data_dir: str = "", program: str = "") -> Project:
    """Stores the project of a root with its service and one more program, and returns it.

    Without a workspace it keeps the one that it has, or gets a free name.

    Raises:
        ConfigurationError: the record cannot be read.
    """
    with take_lock(record_file()):
        known, key = known_projects(), str(repository_of(root))
        programs = known[key].programs if key in known else ()
        added = (program,) if program and program not in programs else ()
        since = (known[key].since if key in known else 0.0) or time.time()
        stored = Project(key, workspace or free_workspace(root, known), url, data_dir, (*programs, *added), since)
        _write({**known, key: stored})
    return stored


def keep_programs(root: Path, programs: Sequence[str]) -> None:
    """Stores which programs of a project are still connected, and removes a project without any from the record.

    Its workspace stays.

    Raises:
        ConfigurationError: the record cannot be read.
    """
    if not os.path.exists(record_file()):
        return
    with take_lock(record_file()):
        known, key = known_projects(), str(repository_of(root))
        if key not in known:
            return
        kept = {other: project for other, project in known.items() if other != key}
        _write({**kept, key: known[key]._replace(programs=tuple(programs))} if programs else kept)


def _write(known: Mapping[str, Project]) -> None:
    values = {key: project._asdict() for key, project in known.items()}
    for value in values.values():
        del value["root"]
    write_whole(record_file(), json.dumps(values, indent=1, ensure_ascii=False))


def take_lock(path: str | Path) -> BinaryIO:
    """Locks a file for this process, so that no other loses what it stores, until the returned one is closed."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    lock = open(f"{path}.lock", "ab")  # noqa: SIM115 - whoever locks it closes it
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def write_whole(path: str | Path, text: str, *, mode: int = 0o600) -> None:
    """Replaces a file at once: nobody reads half of it.

    Raises:
        OSError: it cannot be written.
    """
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        with open(part, "w", encoding="utf-8", newline="", opener=_open_private) as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
