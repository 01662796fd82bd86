"""The project of a folder, and the name of its workspace: no two projects of a user share one."""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from app.errors import ConfigurationError
from app.settings import Settings

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_NAME, SUFFIX = 50, 6
"""Most characters of a project's name, and characters of the suffix that tells it from another of its name."""
FILE = "projects.json"
_RESERVED = frozenset({Settings().workspace})
"""Names that no project gets: the examples are in the workspace of commands that name none."""


def project_root(folder: Path) -> Path:
    """Returns the root of the Git repository or worktree that a folder is in; the folder itself, if it is in none."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def workspace_of_root(root: Path, *, keep: bool) -> str:
    """Returns the name of a project's workspace, which is the same at each call; with `keep` it is noted.

    It is the name of the project's folder, with a suffix if another project has it. A worktree is of its repository's
    project.

    Raises:
        ConfigurationError: the file of the names cannot be read.
    """
    project = str(repository_of(root))
    if not keep:
        known = _known_projects()
        return known.get(project) or _free_name(Path(project), known)
    with _lock():
        known = _known_projects()
        if project not in known:
            _store({**known, project: _free_name(Path(project), known)})
        return _known_projects()[project]


def forget_project(root: Path) -> None:
    """Drops the name of a project's workspace; the workspace itself stays.

    Raises:
        ConfigurationError: the file of the names cannot be read.
    """
    if not _file().exists():
        return
    with _lock():
        known, project = _known_projects(), str(repository_of(root))
        if project in known:
            _store({other: name for other, name in known.items() if other != project})


@contextmanager
def _lock() -> Iterator[None]:
    """Holds the file for this process, so that no other loses what it notes."""
    _file().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _file().with_name(f"{FILE}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _store(known: Mapping[str, str]) -> None:
    part = _file().with_name(f"{FILE}.{os.getpid()}")
    part.write_text(json.dumps(known, indent=1), encoding="utf-8")
    part.replace(_file())


def repository_of(root: Path) -> Path:
    """Returns the folder of the repository that a worktree belongs to; else the root itself."""
    mark = root / ".git"
    if mark.is_file():
        leads_to = mark.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip()
        before, inside, _ = leads_to.partition("/.git/worktrees/")
        if inside:
            return Path(before).resolve()
    return root.resolve()


def _free_name(project: Path, known: Mapping[str, str]) -> str:
    name = _NOT_IN_NAMES.sub("-", project.name).lstrip("._-")[:LONGEST_NAME] or "project"
    return (
        name
        if name not in _RESERVED.union(known.values())
        else f"{name}-{sha256(str(project).encode()).hexdigest()[:SUFFIX]}"
    )


def _file() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "priors" / FILE


def _known_projects() -> dict[str, str]:
    try:
        found = json.loads(_file().read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{_file()}, which names the projects' workspaces, cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"{_file()}, which names the projects' workspaces, has no JSON object; mend it")
    return {str(root): str(name) for root, name in found.items()}
