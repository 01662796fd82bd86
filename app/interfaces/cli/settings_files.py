"""The settings files of programs in a project: read, replaced at once, and put back as they were."""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.errors import InvalidInput
from app.interfaces.cli.edits import with_endings_of
from app.interfaces.cli.projects import state_folder, write_whole

_FOLDER = "edits"
_MARK = "\ufeff"
"""The byte order mark, with which some editors begin a file."""
Edit = Callable[[str], str]


class SettingsChange(NamedTuple):
    """Holds the text of a file before and after an edit."""

    before: str
    after: str | None
    """Its new text; None if it goes."""


class _Span(msgspec.Struct, frozen=True):
    """The part of a file that was changed, so that it can be put back to the byte."""

    written: str
    """The hash of the text that was written."""
    starts: int
    inserted: str
    replaced: str
    existed: bool


def change_by(path: Path, edit: Edit) -> SettingsChange:
    """Returns what an edit makes of a file.

    Raises:
        InvalidInput: the file cannot be read, or not be changed safely.
    """
    text = _text_of(path)
    return SettingsChange(text, _edit_in_form(text, edit))


def undo(path: Path, without_own: Edit) -> SettingsChange:
    """Returns what a file becomes without what was written into it: as it was to the byte, unless it was edited since.

    Edits of a person around it stay. `without_own` takes away what was written in any form.

    Raises:
        InvalidInput: the file cannot be read, or not be changed safely.
    """
    text, span = _text_of(path), _span_of(path)
    if span is not None and span.inserted:
        ends = span.starts + len(span.inserted)
        if span.written == _hash(text):
            before = text[: span.starts] + span.replaced + text[ends:]
            return SettingsChange(text, before if before or span.existed else None)
        before = text.replace(span.inserted, span.replaced)
        with suppress(InvalidInput):
            if text.count(span.inserted) == 1 and _edit_in_form(before, without_own) == before:
                return SettingsChange(text, before)
    after = _edit_in_form(text, without_own)
    return SettingsChange(text, after if after == text or after.strip(f"{_MARK} \r\n{{}}") else None)


def write(path: Path, change: SettingsChange, before: SettingsChange) -> str:
    """Writes a file at once, or removes it, and notes how to put it back; returns the word for what was done.

    `before` is what the file would become without what was written earlier. A link keeps leading to its file.

    Raises:
        InvalidInput: it cannot be written.
    """
    target, note = path.resolve(), _note_of(path)
    existed = target.exists()
    if change.after is None:
        target.unlink(missing_ok=True)
        note.unlink(missing_ok=True)
        return "removed"
    _replace(target, change.after)
    if change.after == before.after:
        note.unlink(missing_ok=True)
        return "changed"
    own = before.after or ""
    starts = _alike(own, change.after)
    ends = _alike(own[starts:][::-1], change.after[starts:][::-1])
    span = _Span(
        written=_hash(change.after),
        starts=starts,
        inserted=change.after[starts : len(change.after) - ends],
        replaced=own[starts : len(own) - ends],
        existed=before.after is not None and existed,
    )
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(note, msgspec.json.encode(span).decode(), mode=0o600)
    return "changed" if existed else "made"


def _alike(one: str, other: str) -> int:
    """Returns the number of characters with which both texts begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _span_of(path: Path) -> _Span | None:
    try:
        return msgspec.json.decode(_note_of(path).read_bytes(), type=_Span)
    except (OSError, msgspec.MsgspecError):
        return None


def _note_of(path: Path) -> Path:
    return Path(state_folder()) / _FOLDER / f"{_hash(str(path.resolve()))}.json"


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _edit_in_form(text: str, edit: Edit) -> str:
    """Returns an edited text with the line endings and the byte order mark that it had."""
    mark = _MARK if text.startswith(_MARK) else ""
    after = with_endings_of(text.removeprefix(mark), edit)
    return mark + after


def _text_of(path: Path) -> str:
    try:
        # Without `newline`, the line endings of Windows would be lost.
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(str(path), f"cannot be read, so nothing is changed: {error}") from error


def _replace(target: Path, text: str, *, mode: int = 0o644) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text, mode=target.stat().st_mode if target.exists() else mode)
    except OSError as error:
        raise InvalidInput(str(target), f"cannot be written: {error.strerror or error}") from error
