"""Reads chat histories of aider: one file holds all chats in a folder. Pure."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import ASSISTANT, USER, Log, ToolUse, Turns

_START = re.compile(r"^# aider chat started at (.+?)\s*$", re.MULTILINE)
_SAID, _TOLD = "#### ", "> "
"""Beginnings of a line of the user, and of one of the program."""
_BREAK = "  "
_EDITED = re.compile(r"Applied edit to (.+)")
_FIX = "# Fix any errors below, if possible."
"""The beginning of a text in which the program itself asks for after a check of the style."""
_ECHO = re.compile(r"^(/(?:ask|code|architect|chat) )(.{1,5000})\n+\2$", re.MULTILINE | re.DOTALL)
"""A command, and what it asks once more."""
_THOUGHT = re.compile(
    r"^<(?P<tag>thinking-content[\w-]*)>.*?(?:^</(?P=tag)>[ \t]*$|(?=^#### )|\Z)|"
    r"^-*\n{0,3}► \*\*THINKING\*\*.*?(?:► \*\*ANSWER\*\*[ \t]*$|(?=^#### )|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""The thoughts of a model, as the history has them, or as the screen showed them: they are no speech."""


def is_history(text: str) -> bool:
    """Tells whether a text is such a history."""
    found = _START.search(text[:2_000])
    return found is not None and not text[: found.start()].strip()


def read_history(text: str, session_id: str) -> Log:
    """Reads a history: each chat is a session, named by its file and the time at which it began.

    The times have no zone in the file; they are taken as UTC.
    """
    _, *parts = _START.split(text)
    count = Counter[str]()
    transcripts = []
    for started, chat in zip(parts[::2], parts[1::2], strict=True):
        count[started] += 1
        again = f" ({count[started]})" if count[started] > 1 else ""
        found = Turns()
        for kind, lines in groupby(_lines(_THOUGHT.sub("", chat)), key=lambda line: line[0]):
            _take_lines(found, kind, [line for _, line in lines])
        transcripts.append(
            found.transcript(
                f"{session_id}#{started}{again}",
                started_at=moment_of(started),
                format="aider",
                folder=session_id.rpartition("/")[0],
            )
        )
    return Log(transcripts=tuple(item for item in transcripts if item.turns))


def _lines(chat: str) -> Iterator[tuple[str, str]]:
    """Yields the lines, each with its speaker's mark; blank lines belong to what precedes them.

    Lines of the user and of the program end with two blanks, which tells them from an answer's own Markdown.
    """
    lines = chat.splitlines()
    ending = _BREAK if any(line.startswith(_SAID) and line.endswith(_BREAK) for line in lines) else ""
    mark = ""
    for line in lines:
        if line.strip():
            marks = (mark for mark in (_SAID, _TOLD) if line.startswith(mark) and line.endswith(ending))
            mark = next(marks, "")
        yield mark, line


def _take_lines(found: Turns, mark: str, lines: list[str]) -> None:
    if mark == _SAID:
        said = "\n".join(line.removeprefix(_SAID).strip() for line in lines).strip()
        if said.startswith(_FIX):
            found.leave_out(said)
        else:
            found.say(USER, _ECHO.sub(r"\1\2", said))
    elif mark == _TOLD:
        _take_program_text(found, [line.removeprefix(_TOLD).strip() for line in lines])
    elif any(line.strip() for line in lines):
        found.say(ASSISTANT, "\n".join(lines))


def _take_program_text(found: Turns, lines: list[str]) -> None:
    """Takes what the program says: its edits one by one, the rest as one result."""
    for line in lines:
        if edited := _EDITED.fullmatch(line):
            found.attach(ToolUse(name="edit", input={"path": edited[1]}))
    rest = "\n".join(line for line in lines if line and not _EDITED.fullmatch(line))
    if rest:
        found.attach(ToolUse(name="aider", result=rest))
