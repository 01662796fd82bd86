"""Finding and reading report files. Every file that cannot be read is named with its reason; none stops the rest."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

SUFFIXES = frozenset({".md", ".json"})
SHOWN_PARTS = 3
"""Parts of the path of a single file that stand for it where no folder was named."""


class UnreadableFile(Exception):
    """A file that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFile:
    """A file that was found."""

    path: Path
    """Absolute, links resolved: the source's URI."""
    shown: PurePosixPath
    """Relative to the folder that was named: what people call it, and where its tags come from."""


@dataclass(slots=True)
class Discovery:
    """What stands below the given paths."""

    files: dict[Path, ReportFile] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Path to reason."""
    roots: list[Path] = field(default_factory=list)
    """The given paths that exist, resolved."""


def discover(paths: Sequence[Path]) -> Discovery:
    """Every report file below these paths, each once, in the order of their paths."""
    found = Discovery()
    for path in paths:
        if not path.exists():
            reason = "is a link to nothing" if path.is_symlink() else "does not exist"
            found.failures[str(path)] = reason
            continue
        root = path.resolve()
        found.roots.append(root)
        if root.is_dir():
            _walk(root, PurePosixPath(), found, ())
        else:
            _add(root, _shown(root), found)
    return found


def _walk(folder: Path, shown: PurePosixPath, found: Discovery, above: tuple[tuple[int, int], ...]) -> None:
    try:
        identity = folder.stat().st_dev, folder.stat().st_ino
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        found.failures[str(folder)] = _reason(error)
        return
    if identity in above:
        found.failures[str(folder)] = "is a link to a folder above it; the loop is not followed"
        return
    for entry in entries:
        path, name = Path(entry.path), shown / entry.name
        if entry.is_dir():
            _walk(path, name, found, (*above, identity))
        elif path.suffix.lower() in SUFFIXES:
            _add(path, name, found)


def _add(path: Path, shown: PurePosixPath, found: Discovery) -> None:
    if path.suffix.lower() not in SUFFIXES:
        found.failures[str(path)] = "is not a report; .md and .json files are"
    elif not path.exists():
        found.failures[str(path)] = "is a link to nothing"
    else:
        resolved = path.resolve()
        found.files.setdefault(resolved, ReportFile(path=resolved, shown=_printable(shown)))


def _shown(path: Path) -> PurePosixPath:
    here = Path.cwd()
    relative = path.relative_to(here) if path.is_relative_to(here) else Path(*path.parts[-SHOWN_PARTS:])
    return PurePosixPath(relative.as_posix())


def _printable(path: PurePosixPath) -> PurePosixPath:
    """A name that is not UTF-8 (its bytes come as surrogates) cannot be stored as text."""
    return PurePosixPath(os.fsencode(str(path)).decode(errors="replace").replace("\0", "\ufffd"))


def read(path: Path, *, max_bytes: int) -> bytes:
    """The file's content.

    Raises:
        UnreadableFile: it is no regular file, too large, or cannot be opened.
    """
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableFile("is not a regular file")
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from error
    if len(content) > max_bytes:
        raise UnreadableFile(f"is larger than {max_bytes:,} bytes; split it, or raise PRIORS_MAX_FILE_BYTES")
    return content


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"


def gone(uris: Sequence[str]) -> Iterator[str]:
    """Those of these paths at which nothing stands any more; one that cannot be looked at is not gone."""
    for uri in uris:
        try:
            Path(uri).lstat()
        except (FileNotFoundError, NotADirectoryError):
            yield uri
        except OSError:
            continue
