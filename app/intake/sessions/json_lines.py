"""Reads JSON lines, and the plain log of messages: one `{role, text, at}` a line. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from app.intake.sessions.transcript import ROLES, Log, Transcript, Turn, title_of
from app.text.scores import moment_of

MOST_NAMED = 20
"""Most unreadable lines that are named one by one."""
OTHER_ROLES = {"human": "user", "ai": "assistant", "agent": "assistant", "model": "assistant", "developer": "system",
               "function": "tool"}  # fmt: skip
"""Names of roles in other logs."""


class Line(NamedTuple):
    """A line of a log."""

    number: int
    """Its number, from 1."""
    value: Mapping[str, Any]


class Lines(NamedTuple):
    """The objects of a file, and the lines that are none."""

    read: Sequence[Line]
    skipped: Sequence[str]


def read_lines(content: bytes) -> Lines:
    """Returns the JSON objects of a file's lines.

    The last line is left out silently if it is not complete: somebody is still writing it.
    """
    read, skipped = list[Line](), list[str]()
    *whole, last = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate([*whole, last], 1):
        if not line.strip():
            continue
        value = _object(line)
        if isinstance(value, str):
            if number <= len(whole):
                skipped.append(f"line {number}: {value}")
        else:
            read.append(Line(number, value))
    return Lines(read, skipped)


def _object(line: bytes) -> Mapping[str, Any] | str:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"is not JSON ({error})"
    return value if isinstance(value, dict) else "is not a JSON object"


def named(skipped: Sequence[str]) -> tuple[str, ...]:
    """Returns the reasons of the first unreadable lines, and the number of the others."""
    rest, skipped = len(skipped) - MOST_NAMED, sorted(skipped, key=_number)
    return (*skipped[:MOST_NAMED], *([f"and {rest:,} more lines"] if rest > 0 else []))


def _number(reason: str) -> int:
    """Returns the number of the line or conversation that a reason begins with."""
    return int(reason.partition(":")[0].rpartition(" ")[2])


def is_message(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a line of the plain log."""
    return isinstance(value.get("role"), str) and isinstance(value.get("text", value.get("content")), str)


def read_messages(lines: Lines, session_id: str) -> Log:
    """Reads the plain log: each line is a turn, whatever its role."""
    skipped, turns = list(lines.skipped), list[Turn]()
    for line in lines.read:
        found = _turn(line.value, len(turns))
        if isinstance(found, Turn):
            turns.append(found)
        else:
            skipped.append(f"line {line.number}: {found}")
    started_at = next((turn.at for turn in turns if turn.at is not None), None)
    transcript = Transcript(
        session_id=session_id,
        title=title_of(turns),
        started_at=started_at,
        format="messages",
        turns=tuple(turns),
    )
    return Log(transcripts=(transcript,), skipped=named(skipped))


def _turn(value: Mapping[str, Any], ordinal: int) -> Turn | str:
    if not is_message(value):
        return "has no role and text"
    role = value["role"].lower()
    role = OTHER_ROLES.get(role, role)
    if role not in ROLES:
        return f"has the role {value['role'][:40]!r}; there are {', '.join(ROLES)}"
    at = moment_of(value.get("at", value.get("timestamp")))
    return Turn(ordinal=ordinal, role=role, text=value.get("text", value.get("content")), at=at)


def texts_of(content: object, kinds: Sequence[str]) -> Iterator[str]:
    """Yields the texts of a message's content, which is one text, or a list of parts of which these kinds are text."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and part.get("type") in kinds and isinstance(part.get("text"), str):
            yield part["text"]
