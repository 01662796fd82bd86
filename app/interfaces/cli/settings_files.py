"""The settings files of programs in a project: read, and replaced at once."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from app.errors import InvalidInput
from app.interfaces.cli.edits import with_endings_of
from app.interfaces.cli.projects import write_whole

_MARK = "\ufeff"
"""The byte order mark, with which some editors begin a file."""
Edit = Callable[[str], str]


class SettingsChange(NamedTuple):
    """Holds the text of a file before and after an edit."""

    before: str
    after: str | None
    """Its new text; None if the edit leaves nothing of it."""


def change_by(path: Path, edit: Edit) -> SettingsChange:
    """Returns what an edit makes of a file.

    Raises:
        InvalidInput: the file cannot be read, or not be changed safely.
    """
    text = _text_of(path)
    after = _edit_in_form(text, edit)
    return SettingsChange(text, after if after == text or after.strip(f"{_MARK} \r\n{{}}") else None)


def write(path: Path, change: SettingsChange) -> str:
    """Writes a file at once, or removes it; returns the word for what was done. A link keeps leading to its file.

    Raises:
        InvalidInput: it cannot be written.
    """
    target = path.resolve()
    existed = target.exists()
    if change.after is None:
        target.unlink(missing_ok=True)
        return "removed"
    _replace(target, change.after)
    return "changed" if existed else "made"


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


def _replace(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text, mode=target.stat().st_mode if target.exists() else 0o644)
    except OSError as error:
        raise InvalidInput(str(target), f"cannot be written: {error.strerror or error}") from error
