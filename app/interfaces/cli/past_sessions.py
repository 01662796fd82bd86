"""Finds the logs of a project's earlier sessions, where coding programs store them.

Where they are: Claude Code, `projects` of its folder, by the session's working folder with a dash for every character
that is no letter or digit (code.claude.com/docs/en/claude-directory); Codex, `sessions` of its folder by date, with the
working folder in the first record; Gemini CLI, `tmp` of its folder by a hash or a short name of the project, in whose
folder `.project_root` names it (both by their sources, November 2026); aider and SpecStory, in the project.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from app.interfaces.cli.projects import project_of, repository_of

_NOT_IN_FOLDERS = re.compile(r"[^A-Za-z0-9]")
_LONGEST_FOLDER = 200
"""Most characters of a folder's name of Claude Code; a hash follows the first ones of a longer one."""
_WORKING_FOLDER = re.compile(r'"cwd"\s*:\s*("(?:[^"\\]|\\.)*")|<cwd>([^<\n]*)</cwd>')
_HEAD_BYTES = (8_192, 262_144)
"""Bytes of a log in which it names its working folder: the instructions of an agent may come before."""


Stamp = tuple[int, int]
"""Size of a log in bytes, and time of its last change in nanoseconds."""


class PastLog(NamedTuple):
    """The log of an earlier session, or of several."""

    path: Path
    name: str
    """The name that it is stored under: no folder of the user is in it."""
    program: str
    stamp: Stamp


def past_logs(root: Path, *, since: float = 0.0) -> list[PastLog]:
    """Returns the logs of a connected project, of its worktrees too, that have changed since then, the latest first."""
    found = {
        path.resolve(): PastLog(path, name, program, stamp_of(path))
        for program, path, name in _places(_roots(root), since)
        if _is_recent(path, since)
    }
    return sorted(found.values(), key=lambda log: log.stamp[1], reverse=True)


def stamp_of(path: str | Path) -> Stamp:
    """Returns what tells whether a log has changed; nothing of one that is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a path of either type
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _is_recent(path: Path, since: float) -> bool:
    size, changed = stamp_of(path)
    return size > 0 and changed / 1e9 >= since


def _roots(root: Path) -> list[Path]:
    """Returns the folders of a project: that of its repository, and those of its worktrees."""
    repository = repository_of(root)
    worktrees = list[Path]()
    for git in (repository / ".git", repository):
        for mark in git.glob("worktrees/*/gitdir"):
            with suppress(OSError, UnicodeDecodeError):
                worktrees.append(Path(mark.read_text(encoding="utf-8").strip()).parent)
    return list(dict.fromkeys([repository, root.resolve(), *worktrees]))


def _places(roots: Sequence[Path], since: float) -> Iterator[tuple[str, Path, str]]:
    """Yields the program, the path and the name of each log."""
    own = _Own(str(roots[0]), since)
    for found in (_of_claude(roots, own), _of_codex(own), _of_gemini(roots, own), _in_project(roots)):
        # A folder that cannot be read has no logs for this user.
        with suppress(OSError):
            yield from found


class _Own:
    """Tells which working folders and logs are of a project; a program has many logs of few folders."""

    def __init__(self, root: str, since: float) -> None:
        self._root, self._since = root, since
        self._known: dict[str, bool] = {"": False}

    def has_folder(self, folder: str) -> bool:
        if folder not in self._known:
            project = project_of(Path(folder))
            self._known[folder] = project is not None and project.root == self._root
        return self._known[folder]

    def has_log(self, path: Path, *, unnamed: bool = False) -> bool:
        """Tells whether a log is of the project and recent; `unnamed` is the answer for one that names no folder."""
        if not _is_recent(path, self._since):
            return False
        folder = _working_folder(path)
        return self.has_folder(folder) if folder else unnamed


def _of_claude(roots: Sequence[Path], own: _Own) -> Iterator[tuple[str, Path, str]]:
    base = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    names = [_NOT_IN_FOLDERS.sub("-", str(root)) for root in roots]
    for folder in sorted(base.glob("*/")):
        if not any(folder.name.startswith(name[:_LONGEST_FOLDER]) for name in names):
            continue
        for path in sorted(folder.rglob("*.jsonl")):
            name = path.relative_to(folder)
            is_session = len(name.parts) == 1 or (name.parts[-2] == "subagents" and name.name.startswith("agent-"))
            # Two folders may have one name, and a name may begin as another does: the log says which folder it is.
            if is_session and own.has_log(path, unnamed=folder.name in names):
                yield "Claude Code", path, name.as_posix()


def _of_codex(own: _Own) -> Iterator[tuple[str, Path, str]]:
    base = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    for folder in ("sessions", "archived_sessions"):
        for path in sorted((base / folder).rglob("rollout-*.jsonl")):
            if own.has_log(path):
                yield "Codex", path, path.name


def _of_gemini(roots: Sequence[Path], own: _Own) -> Iterator[tuple[str, Path, str]]:
    base = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini" / "tmp"
    hashes = {sha256(str(root).encode()).hexdigest() for root in roots}
    for folder in sorted(base.glob("*/")):
        mark = folder / ".project_root"
        owner = mark.read_text(encoding="utf-8", errors="replace").strip() if mark.is_file() else ""
        if folder.name in hashes or own.has_folder(owner):
            for path in sorted([*folder.glob("chats/*.json"), *folder.glob("chats/*.jsonl")]):
                yield "Gemini CLI", path, path.name


def _in_project(roots: Sequence[Path]) -> Iterator[tuple[str, Path, str]]:
    for root in roots:
        # A worktree has files of the same names.
        place = "" if root == roots[0] else f"{root.name}/"
        for path in (root / ".aider.chat.history.md", *sorted((root / ".specstory" / "history").rglob("*.md"))):
            if path.is_file():
                yield "aider" if path.parent == root else "SpecStory", path, place + path.relative_to(root).as_posix()


def _working_folder(path: Path) -> str:
    """Returns the folder in which the session of a log worked first; "" if its beginning names none, or is not read."""
    found = None
    # One that cannot be read, or is gone, hides no other.
    with suppress(OSError):
        for size in _HEAD_BYTES:
            with path.open("rb") as file:
                found = found or _WORKING_FOLDER.search(file.read(size).decode(errors="replace"))
    if found is None:
        return ""
    try:
        return found[2] or str(json.loads(found[1]))
    except ValueError:
        return ""
