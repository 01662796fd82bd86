"""A session as its log tells it: its turns in their order, with the tools that they used. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct, structs

from app.foundation.text.data import json_lines, read_toml
from app.foundation.text.prose import without_inserted
from app.foundation.values import frozen

USER, CALLER, ASSISTANT, TOOL, SYSTEM = "user", "caller", "assistant", "tool", "system"
ROLES = (USER, CALLER, ASSISTANT, TOOL, SYSTEM)
"""Who speaks in a turn. `user` is a person and nobody else. `caller` is another agent, or a program, that gives this
agent its work: the parent of a sub-agent, a script that calls an SDK, or somebody of whom the log does not say that it
is a person. What a caller says is nobody's lesson."""

NAMES: Mapping[str, Mapping[str, frozenset[str]]] = read_toml(
    "app.intake.sessions", "names.toml", dict[str, dict[str, frozenset[str]]]
)
"""Names in logs, by program and by what they say."""


class ToolUse(Struct, frozen=True, kw_only=True):
    """A tool that a turn called: an act, and not speech."""

    name: str
    input: Mapping[str, Any] = {}
    result: str = ""
    """The tool's answer; "" if the log has none yet."""
    failed: bool = False
    """True if the log says that it did nothing but fail."""
    symbols: tuple[str, ...] = ()
    """The functions and sections that it changed, where the log has the file as it was before."""


@frozen
class Turn:
    """One message of a session."""

    ordinal: int
    """The turn's place among the session's messages, from 0."""
    role: str
    """One of ROLES."""
    text: str
    """The spoken text; "" for a turn that only used tools."""
    at: datetime | None = None
    tools: tuple[ToolUse, ...] = ()
    message_id: str = ""
    """The id of the record that begins it, in its log or of the caller; "" for none. A turn of a known id replaces the
    stored one, whatever it says."""


@frozen
class Transcript:
    """A session with all its turns."""

    session_id: str
    title: str = ""
    started_at: datetime | None = None
    format: str
    """The name of the log's format."""
    turns: tuple[Turn, ...]
    folder: str = ""
    """The folder in which the session worked; "" where the log does not say. Artifacts are named relative to it."""
    unspoken: tuple[Turn, ...] = ()
    """Texts in the place of turns that nobody said, such as a compaction's summary: an earlier reader may have taken
    them for turns."""


@frozen
class Log:
    """The content of a log file: one session, or several."""

    transcripts: tuple[Transcript, ...]
    skipped: tuple[str, ...] = ()
    """The lines that could not be read, each with its number and the reason."""
    notes: tuple[str, ...] = ()
    """Remarks on what else is left out, such as records of a type that the reader does not know."""


class Turns:
    """Collects the turns of a session in their order.

    A tool belongs to the turn that called it, and an answer to its tool. An assistant that calls tools without a word
    calls them in its latest turn, or in a turn of its own if somebody else spoke last.
    """

    def __init__(self) -> None:
        self._said: list[Turn] = []
        self._tools: list[list[ToolUse]] = []
        self._calls: dict[str, tuple[int, int]] = {}
        self._unspoken: list[Turn] = []

    def say(self, role: str, text: str, at: datetime | None = None, *, message_id: str = "") -> None:
        """Adds a turn; `message_id` is the id of its record, if the log has one that stays."""
        turn = Turn(ordinal=len(self._said), role=role, text=text.strip(), at=at, message_id=message_id)
        self._said.append(turn)
        self._tools.append([])

    def say_more(self, text: str) -> None:
        """Adds a paragraph to the latest turn."""
        last = self._said[-1]
        self._said[-1] = replace(last, text=f"{last.text}\n\n{text.strip()}".strip())

    def leave_out(self, text: str, at: datetime | None = None, *, message_id: str = "", role: str = USER) -> None:
        """Notes a text that stands in the place of a turn, and that nobody said."""
        if text.strip():
            self._unspoken.append(Turn(ordinal=0, role=role, text=text.strip(), at=at, message_id=message_id))

    def use(self, tool: ToolUse, *, call: str = "", at: datetime | None = None, message_id: str = "") -> None:
        """Adds a tool to the assistant's latest turn; `call` is the id by which its answer names it."""
        if not self._said or self._said[-1].role != ASSISTANT:
            self.say(ASSISTANT, "", at, message_id=message_id)
        self.attach(tool, call=call)

    def attach(self, tool: ToolUse, *, call: str = "") -> None:
        """Adds a tool to the latest turn, whoever spoke; without a turn it is left out."""
        if self._said:
            self._tools[-1].append(tool)
            self._calls[call] = len(self._said) - 1, len(self._tools[-1]) - 1

    def answer(self, call: str, result: str, *, failed: bool = False, symbols: Sequence[str] = ()) -> None:
        """Gives a tool its result; an answer to no known call is left out."""
        if call in self._calls:
            turn, place = self._calls[call]
            tool = self._tools[turn][place]
            self._tools[turn][place] = structs.replace(tool, result=result, failed=failed, symbols=tuple(symbols))

    def has_call(self, call: str) -> bool:
        """Tells whether a tool was called by this id."""
        return call in self._calls

    def rewind(self, count: int) -> None:
        """Takes back all turns but the first ones: the user went back to this point."""
        del self._said[count:], self._tools[count:]
        self._calls = {call: place for call, place in self._calls.items() if place[0] < count}

    def places(self, role: str) -> list[int]:
        """Returns the places of a speaker's turns."""
        return [place for place, turn in enumerate(self._said) if turn.role == role]

    @property
    def latest(self) -> str:
        """The role of the latest turn; "" before the first."""
        return self._said[-1].role if self._said else ""

    def transcript(
        self,
        session_id: str,
        *,
        format: str,  # noqa: A002 - the field's name
        title: str = "",
        started_at: datetime | None = None,
        folder: str = "",
    ) -> Transcript:
        """Returns the session of the turns that say or do something; what its log does not tell comes from these."""
        told = (replace(turn, tools=tuple(tools)) for turn, tools in zip(self._said, self._tools, strict=True))
        kept = (turn for turn in told if turn.text or turn.tools)
        turns = tuple(replace(turn, ordinal=ordinal) for ordinal, turn in enumerate(kept))
        return Transcript(
            session_id=session_id,
            title=title or title_of(turns),
            started_at=started_at or next((turn.at for turn in turns if turn.at is not None), None),
            format=format,
            turns=turns,
            folder=folder,
            unspoken=tuple(self._unspoken),
        )


_TITLE_CHARACTERS = 100
_COMMAND = re.compile(r"\s*/[\w:-]+\s*$")
"""A command to the program, such as `/clear`: it is no title."""
_BLANKS = re.compile(r"\s+")


def title_of(turns: Sequence[Turn]) -> str:
    """Returns the beginning of the first thing that the user said, for a session without a title.

    A session in which only a caller asks is marked as such: `Caller: find slow endpoints`.
    """
    by_user = any(turn.role == USER for turn in turns)
    texts = (without_inserted(turn.text) for turn in turns if turn.role == (USER if by_user else CALLER))
    said = next((text for text in texts if text.strip() and not _COMMAND.match(text)), "")
    said = said if by_user or not said else f"Caller: {said}"
    line = _BLANKS.sub(" ", said[: 4 * _TITLE_CHARACTERS]).strip()
    return line if len(line) <= _TITLE_CHARACTERS else f"{line[:_TITLE_CHARACTERS].rsplit(' ', 1)[0]} …"


WRITTEN_AT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?")
"""A time as logs in Markdown write it."""
_MOST_NAMED = 20
"""Most unreadable lines that are named one by one."""


class Lines(NamedTuple):
    """The objects of a file, and the lines that are none."""

    read: Mapping[int, Mapping[str, Any]]
    """Each object by the number of its line, from 1."""
    skipped: Sequence[str]


def read_lines(content: bytes) -> Lines:
    """Returns the JSON objects of a file's lines.

    The last line is left out silently if it is not complete: somebody is still writing it.
    """
    read, skipped = dict[int, Mapping[str, Any]](), list[str]()
    lines = content.split(b"\n")
    for number, value in json_lines(lines, dict[str, Any]):
        if not isinstance(value, str):
            read[number] = value
        elif number < len(lines):
            skipped.append(f"line {number}: {value}")
    return Lines(read, skipped)


_UNREADABLE = (TypeError, KeyError, AttributeError, ValueError)
"""The errors of a reader that meets a record of another form."""


@contextmanager
def noting_unread(skipped: list[str], record: str) -> Iterator[None]:
    """Notes a record, such as `line 3`, as skipped where the block meets another form than it knows."""
    try:
        yield
    except _UNREADABLE as error:
        skipped.append(f"{record}: is of another form ({type(error).__name__}: {error})")


def read_conversations(
    given: Sequence[Any], session_id: str, read: Callable[[Mapping[str, Any], str], Transcript]
) -> Log:
    """Reads an export of conversations, each of which is a session; `session_id` names those without an id."""
    transcripts, skipped = list[Transcript](), list[str]()
    for number, value in enumerate(given, 1):
        with noting_unread(skipped, f"conversation {number}"):
            transcripts.append(read(value, session_id if len(given) == 1 else f"{session_id}#{number}"))
    return Log(transcripts=tuple(item for item in transcripts if item.turns), skipped=reasons_shown(skipped))


def reasons_shown(skipped: Sequence[str]) -> tuple[str, ...]:
    """Returns the reasons of the first unreadable lines, and the number of the others."""
    rest, skipped = len(skipped) - _MOST_NAMED, sorted(skipped, key=_number)
    return (*skipped[:_MOST_NAMED], *([f"and {rest:,} more lines"] if rest > 0 else []))


def _number(reason: str) -> int:
    """Returns the number of the line or conversation that a reason begins with."""
    return int(reason.partition(":")[0].rpartition(" ")[2])


def unknown_types(count: Mapping[str, int]) -> tuple[str, ...]:
    """Returns a note on the records of unknown types, counted by type; none if there are none."""
    if not count:
        return ()
    named = ", ".join(f"{name[:40] or 'none'} {number:,}" for name, number in sorted(count.items()))
    return (f"left out {sum(count.values()):,} records of unknown types ({named})",)


def joined_text(content: object, *, kinds: Sequence[str] = ("text",), separator: str = "\n\n") -> str:
    """Returns the text of a message's content, which is one text, or a list of parts of which these kinds are text."""
    parts = content if isinstance(content, list) else [content] if isinstance(content, str) else []
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") in kinds else part for part in parts]
    return separator.join(text for text in texts if isinstance(text, str))
