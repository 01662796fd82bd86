"""Finds and reads report files. A file that cannot be read is named with its reason, and does not stop the others."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePath, PurePosixPath

from app.errors import InvalidInput
from app.foundation.safety.secrets import mask
from app.foundation.text.document import decode, read_document, utf8
from app.foundation.text.scores import found_date, written_date
from app.foundation.text.words import WORD
from app.foundation.values import frozen
from app.storage.memories.gate import too_long_uri

SUFFIXES = (".md", ".markdown", ".txt", ".log", ".json", ".jsonl")
"""Suffixes of the files that are taken in: reports, and logs of sessions, which their content tells apart."""
SUFFIXES_SHOWN = f"{', '.join(SUFFIXES[:-1])} and {SUFFIXES[-1]}"
NO_SUFFIX = "without a suffix"
NO_REPORT = f"is no report and no log of a session; {SUFFIXES_SHOWN} files are"
_OWN_OF_PROGRAMS = frozenset({".git", ".hg", ".svn"})
"""Folders whose files only a program reads: they are no reports, and are not counted one by one."""
LOG_TIMES = 10
"""A log of sessions may be this many times as large as a report: it holds what every tool said."""
_REPORTS = "reports"
"""Name of a folder that holds reports; it does not describe them, so it is left out of names."""
_SHOWN_FOLDERS = 2
"""Number of folders that a file's name shows at least, such as case and version; it shows all below the given
folder."""


Folder = tuple[int, int]
"""A folder's device and inode, which identify it regardless of the path that leads to it."""


class UnreadableFile(InvalidInput):
    """A file that cannot be read; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__("", message)


@frozen
class ReportFile:
    """A file that was found."""

    path: Path
    """The absolute path with links resolved."""
    shown: PurePosixPath
    """The path that people see, without secrets; its folders become tags."""
    content: bytes | None = None
    """The content, if it was sent: the path is one of another machine, or of another process."""

    @property
    def uri(self) -> str:
        """The source's URI: the path; of one with a secret the masked path, and a hash that tells it from others."""
        path, text = str(self.path), mask(str(self.path)).text
        return path if text == path else f"{text}#{hashlib.blake2b(path.encode(), digest_size=4).hexdigest()}"


@dataclass(slots=True)
class Discovery:
    """The files below the given paths."""

    files: dict[Path, ReportFile] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """The reasons by path."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The suffixes of the files that are no reports, by path; "" for a file without one."""
    roots: list[Path] = field(default_factory=list)
    """The given paths that exist, resolved."""
    gone: frozenset[str] | None = None
    """The paths at which the sender no longer has a file; None if this machine has the files."""
    dates: dict[Path, datetime] | None = None
    """The dates of judgements, as `judged_on` returns them, if they were sent."""
    walked: set[Folder] = field(default_factory=set)
    """Folders that were walked; many links may lead to one folder."""
    looped: set[Folder] = field(default_factory=set)
    """Folders that contain a link back to themselves."""

    @contextmanager
    def naming(self, path: Path) -> Iterator[None]:
        """Notes an error in its block as this path's failure."""
        try:
            yield
        except UnreadableFile as error:
            self.failures[mask(_printable(path)).text] = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this path's alone
            self.failures[mask(_printable(path)).text] = _reason(error)


def discover(paths: Sequence[Path]) -> Discovery:
    """Finds the report files below these paths, each once, in the order of their paths."""
    found = Discovery()
    for path in paths:
        with found.naming(path):
            _discover(path, found)
    return found


def _discover(path: Path, found: Discovery) -> None:
    if not path.exists():
        raise UnreadableFile("is a link to nothing" if path.is_symlink() else "does not exist")
    root = path.resolve()
    found.roots.append(root)
    if root.is_dir():
        _walk(root, (), found, ())
    else:
        _add(root, (), found)


def _walk(folder: Path, below: tuple[str, ...], found: Discovery, above: tuple[Folder, ...]) -> None:
    """Walks each folder once. `below` are the folders between the given one and this one's entries.

    Raises:
        UnreadableFile: the folder is one of those above it, and no other link to it was reported before.
    """
    status = folder.stat()
    identity = status.st_dev, status.st_ino
    if identity in above and identity not in found.looped:
        found.looped.add(identity)
        raise UnreadableFile("is a link to a folder above it; the loop is not followed")
    if identity in found.walked:
        return
    found.walked.add(identity)
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        with found.naming(path):
            if entry.name in _OWN_OF_PROGRAMS:
                found.left_out[mask(_printable(path)).text] = entry.name
            elif entry.is_dir():
                _walk(path, (*below, entry.name), found, (*above, identity))
            else:
                _add(path, below, found)


def _add(path: Path, below: tuple[str, ...], found: Discovery) -> None:
    if path.suffix.lower() not in SUFFIXES:
        found.left_out[mask(_printable(path)).text] = path.suffix.lower()
        return
    if not path.exists():
        raise UnreadableFile("is a link to nothing")
    resolved = path.resolve()
    if reason := too_long_uri(_printable(resolved)):
        raise UnreadableFile(reason)
    if _printable(resolved) != str(resolved):
        raise UnreadableFile("has a path that is not UTF-8; rename it")
    shown = _display_path(path.parent, below) / path.name
    found.files.setdefault(resolved, ReportFile(path=resolved, shown=without_secrets(shown)))


def _display_path(folder: Path, below: tuple[str, ...]) -> PurePosixPath:
    """Returns a folder's name for people: its last _SHOWN_FOLDERS parts, or all parts below the given folder.

    If the given folder is a folder `reports`, or in one, the name is the path below that. A folder `reports` further
    below stays in the name: there may be several, and files of equal names beside them.
    """
    above = folder.parts[: len(folder.parts) - len(below)]
    if _REPORTS in above:
        place = len(above) - above[::-1].index(_REPORTS)
        return PurePosixPath(*folder.parts[place:])
    here = Path.cwd()
    known = folder.relative_to(here).parts if folder.is_relative_to(here) and folder != here else folder.parts[1:]
    return PurePosixPath(*known[-max(_SHOWN_FOLDERS, len(below)) :])


def without_secrets(shown: PurePath) -> PurePosixPath:
    """Returns a path without the secrets in it."""
    return PurePosixPath(mask(str(shown)).text)


def content_of(file: ReportFile, *, max_bytes: int) -> bytes:
    """Returns the content of a file, as it was sent or as this machine has it.

    Raises:
        UnreadableFile: see `read`.
    """
    if file.content is None:
        return read(file.path, max_bytes=max_bytes)
    check_size(file.content, max_bytes=max_bytes)
    return file.content


def read(path: Path, *, max_bytes: int) -> bytes:
    """Returns the file's content, as UTF-8 if a mark at its beginning tells another encoding.

    Raises:
        UnreadableFile: it is not a regular file, is too large, or cannot be opened.
        InvalidInput: it does not have the encoding that its mark tells.
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
    check_size(content, max_bytes=max_bytes)
    return utf8(content)


def check_size(content: bytes, *, max_bytes: int) -> None:
    """Raises UnreadableFile for a content that is too large."""
    if len(content) > max_bytes:
        raise UnreadableFile(f"is larger than {max_bytes:,} bytes; split it, or raise PRIORS_MAX_FILE_BYTES")


_JUDGEMENT = re.compile("judge?ment|verdict|evaluation", re.IGNORECASE)
"""In the name of a file that judges the reports beside it."""
_VERSION = re.compile(r"v\d+")
_Dated = tuple[frozenset[str], datetime]
"""The words of a judgement's name, without the one that calls it so, and its date."""


def judged_on(files: Iterable[Path], *, max_bytes: int) -> dict[Path, datetime]:
    """Returns, for each of these files, the date of the earliest dated judgement in its folder that fits its name best.

    `tea-v3-report.md` is of `tea-v3-judgement.json`, and not of `tea-v4-judgement.json`.
    """
    files = list(files)
    folders = {folder: list(_judgements(folder, max_bytes)) for folder in {file.parent for file in files}}
    dates = {file: _fitting(_words(file.stem), folders[file.parent]) for file in files}
    return {file: date for file, date in dates.items() if date is not None}


def _fitting(words: frozenset[str], judgements: Sequence[_Dated]) -> datetime | None:
    versions = _versions(words)
    fits = [(-len(words & named), date) for named, date in judgements if not versions or _versions(named) <= versions]
    return min(fits)[1] if fits else None


def _versions(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if _VERSION.fullmatch(word))


def _words(name: str) -> frozenset[str]:
    return frozenset(WORD.findall(name.lower().replace("_", " ")))


def _judgements(folder: Path, max_bytes: int) -> Iterator[_Dated]:
    with suppress(OSError):
        for path in folder.iterdir():
            if path.suffix.lower() in SUFFIXES and _JUDGEMENT.search(path.stem):
                # A file that cannot be read is named when it is ingested itself, whatever the reason.
                with suppress(Exception):
                    if (date := _stated_date(path, max_bytes)) is not None:
                        yield _words(_JUDGEMENT.sub(" ", path.stem)), date


def _stated_date(path: Path, max_bytes: int) -> datetime | None:
    document = read_document(decode(read(path, max_bytes=max_bytes)), path.suffix.lower())
    if not document.is_json:
        return found_date(document.facts) or written_date(document.body)
    facts = document.value
    objects = [facts, *facts.values()] if isinstance(facts, dict) else []
    return next((date for part in objects if isinstance(part, dict) and (date := found_date(part))), None)


def _printable(path: Path) -> str:
    """Returns the path as text, without the surrogates of a name that is not UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def _reason(error: Exception) -> str:
    named = str(error) if isinstance(error, OSError | RuntimeError) else f"{type(error).__name__}: {error}"
    return f"cannot be read: {getattr(error, 'strerror', None) or named}"


def missing_paths(uris: Sequence[str]) -> list[str]:
    """Returns the paths without a file; a path that cannot be read still counts as a file."""
    missing = []
    for uri in uris:
        try:
            Path(uri).lstat()
        except (FileNotFoundError, NotADirectoryError):
            missing.append(uri)
        except OSError:
            continue
    return missing
